//! Watches of referenced Secrets and ConfigMaps.
//!
//! Each object is watched by its name, so the controller reads no other object and roles can name single objects. The
//! client speaks HTTP/1.1, so each watch takes its own connection. Beyond a limit, wide watches cover whole namespaces
//! ([`watch_plan`](super::watch_plan)), and unreferenced objects are dropped.
//!
//! One watch at a time is the **source** of an object. Another watch becomes the source when it has the last reported
//! state: the same version, or absence. Both watches run until then, so reported versions never go back and no object
//! is lost between them. While the state of an object is unknown or its watch is forbidden, the first watch with a
//! known state becomes the source.
//!
//! A list is an answer for older references alone: an object may be created after the list, together with its
//! reference. An object with a newer reference is read by name. For many newer references, the wide watch restarts.
//!
//! All these watches run in one task. One more task per watch forwards its requests.

mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use futures::stream::{Abortable, BoxStream, SelectAll, StreamExt as _};
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use tokio::sync::{Semaphore, mpsc, watch};

use super::input::{Answer, Closed, Input, send};
use super::named::{AnswerSource, NamedEvent, NamespaceReferences, ReferencedObject, can_exist};
use super::options::{SecretWatch, WatchOptions};
use super::stream::WatchContext;
use super::watch_plan::KindInNamespace;
use super::wide::{Scope, State, WideEvent, WideWatch};

/// The page size of the list of a wide watch. The list includes unreferenced objects of up to a megabyte.
const WIDE_PAGE_OBJECTS: u32 = 16;

/// The number of concurrent lists of wide watches.
const MAX_CONCURRENT_WIDE_LISTS: usize = 4;

/// Watches referenced objects.
pub(super) struct Referenced {
    context: WatchContext,
    /// The context of wide watches, with their page size.
    wide_context: WatchContext,
    inputs: mpsc::Sender<Input>,
    wanted: watch::Receiver<BTreeSet<ObjectKey>>,
    streams: SelectAll<Abortable<BoxStream<'static, ReferencedEvent>>>,
    places: BTreeMap<KindInNamespace, NamespaceReferences>,
    /// References with invalid names.
    impossible: BTreeSet<ObjectKey>,
    wide: BTreeMap<Scope, WideWatch>,
    /// The scopes of the planned wide watches.
    planned_scopes: BTreeSet<Scope>,
    /// The number of objects watched by name.
    by_name: usize,
    /// Whether the log has a refusal of namespaces.
    has_refused_places: bool,
    list_permits: Arc<Semaphore>,
    wide_list_permits: Arc<Semaphore>,
}

/// The event of a stream.
enum ReferencedEvent {
    Named(ObjectKey, NamedEvent),
    Wide(Scope, WideEvent),
}

impl Referenced {
    pub(super) fn new(
        context: WatchContext,
        inputs: mpsc::Sender<Input>,
        wanted: watch::Receiver<BTreeSet<ObjectKey>>,
    ) -> Self {
        let list_permits = Arc::new(Semaphore::new(context.options.concurrent_lists.max(1)));
        let page_size = context.options.page_size.min(WIDE_PAGE_OBJECTS);
        let options = WatchOptions { page_size, ..(*context.options).clone() };
        Self {
            wide_context: WatchContext { options: Arc::new(options), ..context.clone() },
            context,
            inputs,
            wanted,
            streams: SelectAll::new(),
            places: BTreeMap::new(),
            impossible: BTreeSet::new(),
            wide: BTreeMap::new(),
            planned_scopes: BTreeSet::new(),
            by_name: 0,
            has_refused_places: false,
            list_permits,
            wide_list_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_WIDE_LISTS)),
        }
    }

    /// Runs until the receiver of inputs or the sender of references is dropped.
    pub(super) async fn run(mut self) -> Result<Infallible, Closed> {
        loop {
            tokio::select! {
                biased;
                changed = self.wanted.changed() => {
                    changed.map_err(|_| Closed)?;
                    self.apply_references().await?;
                }
                Some(event) = self.streams.next(), if !self.streams.is_empty() => match event {
                    ReferencedEvent::Named(key, event) => self.apply_named(key, event).await?,
                    ReferencedEvent::Wide(scope, event) => self.apply_wide(&scope, event).await?,
                },
                () = self.inputs.closed() => return Err(Closed),
            }
            self.count();
        }
    }

    fn count(&self) {
        let known = self.wide.values().map(WideWatch::len).sum();
        self.context.stats.watching_referenced(self.by_name, self.wide.len(), known);
    }

    /// Applies a new set of references.
    async fn apply_references(&mut self) -> Result<(), Closed> {
        let with_secrets = self.context.options.secrets == SecretWatch::ByName;
        let is_by_name =
            |key: &&ObjectKey| key.kind == Kind::ConfigMap || key.kind == Kind::Secret && with_secrets;
        let wanted: BTreeSet<ObjectKey> =
            self.wanted.borrow_and_update().iter().filter(is_by_name).cloned().collect();
        self.release_unreferenced(&wanted).await?;
        for key in wanted {
            if !can_exist(&key) {
                if self.impossible.insert(key.clone()) {
                    send(&self.inputs, Input::Answered { key, answer: Answer::Absent }).await?;
                }
                continue;
            }
            let references = self.places.entry(KindInNamespace::of(&key)).or_default();
            if !references.objects.contains_key(&key.name) {
                references.unresolved.insert(key.name.clone());
                let (reported, delivered) = (State::Unknown, None);
                references.objects.insert(
                    key.name,
                    ReferencedObject { watch: None, source: AnswerSource::Name, reported, delivered },
                );
            }
        }
        self.apply_plan().await
    }

    /// Releases objects without a reference.
    async fn release_unreferenced(&mut self, wanted: &BTreeSet<ObjectKey>) -> Result<(), Closed> {
        let mut released: Vec<ObjectKey> =
            self.impossible.extract_if(.., |key| !wanted.contains(key)).collect();
        for (place, references) in &mut self.places {
            let key = |name: &ObjectName| ObjectKey { kind: place.kind, name: name.clone() };
            for (name, named) in references.objects.extract_if(.., |name, _| !wanted.contains(&key(name))) {
                references.unresolved.remove(&name);
                references.awaited.remove(&name);
                // An aborted stream yields no more events, so the release is the last input about the object.
                if let Some(watch) = named.watch {
                    watch.stop.abort();
                    references.by_name -= 1;
                    self.by_name -= 1;
                }
                released.push(key(&name));
            }
        }
        self.places.retain(|_, references| !references.objects.is_empty());
        for key in released {
            send(&self.inputs, Input::Released(key)).await?;
        }
        Ok(())
    }

    /// Applies an event of a watch by name. The event is reported if the watch is the source of the object.
    async fn apply_named(&mut self, key: ObjectKey, event: NamedEvent) -> Result<(), Closed> {
        let place = KindInNamespace::of(&key);
        let source_is_gone = self.source_is_gone(&place, &key.name);
        let Some(named) = self.named(&place, &key.name) else { return Ok(()) };
        let (state, event) = match event {
            NamedEvent::Present(version, event) => (State::Present(version), Some(event)),
            NamedEvent::Absent => (State::Absent, None),
            NamedEvent::Forbidden(message) => (State::Forbidden(message), None),
        };
        if let Some(watch) = &mut named.watch {
            watch.state = state.clone();
        }
        if source_is_gone || named.source == AnswerSource::Name || !named.reported.is_known() {
            named.source = AnswerSource::Name;
            if let State::Forbidden(message) = &state
                && named.reported != state
            {
                let (kind, namespace, name) = (key.kind, &*key.name.namespace, &*key.name.name);
                tracing::warn!(%kind, namespace, name, error = message, "referenced object cannot be read");
            }
            self.report(&key, state, event).await?;
        }
        if self.update_source(&place, &key.name) {
            self.start_named_watches(&place).await?;
        }
        self.stop_unneeded_wide();
        Ok(())
    }

    /// Whether the wide watch that is the source of an object has ended or is forbidden.
    fn source_is_gone(&self, place: &KindInNamespace, name: &ObjectName) -> bool {
        let named = self.places.get(place).and_then(|references| references.objects.get(name));
        let scope = named.and_then(|named| named.source.scope(place));
        scope.is_some_and(|scope| self.wide.get(&scope).is_none_or(|wide| wide.forbidden.is_some()))
    }

    /// Applies an event of a wide watch. The event is reported for the objects with this source.
    async fn apply_wide(&mut self, scope: &Scope, event: WideEvent) -> Result<(), Closed> {
        let Some(wide) = self.wide.get_mut(scope) else { return Ok(()) };
        let permission_changed = wide.apply(&event);
        match event {
            WideEvent::ListStarted => {
                for place in self.places_in(scope) {
                    if let Some(references) = self.places.get_mut(&place) {
                        references.awaited = references.unresolved.clone();
                    }
                }
                return Ok(());
            }
            WideEvent::Present(name, version, event) => {
                self.apply_wide_state(scope, name, State::Present(version), Some(event)).await?;
            }
            WideEvent::Deleted(name) => self.apply_wide_state(scope, name, State::Absent, None).await?,
            WideEvent::ListDone => {
                for place in self.places_in(scope) {
                    self.apply_list(scope, &place).await?;
                }
            }
            WideEvent::ListFailed | WideEvent::ListForbidden(_) if !self.planned_scopes.contains(scope) => {
                self.replace_wide(scope);
            }
            WideEvent::ListFailed => {}
            WideEvent::ListForbidden(message) => {
                if permission_changed {
                    let (kind, namespace) = (scope.kind, scope.namespace.as_deref());
                    tracing::warn!(
                        %kind,
                        namespace,
                        error = message,
                        "too many referenced objects to watch by name, and listing them is forbidden"
                    );
                }
            }
        }
        if permission_changed { self.apply_plan().await } else { Ok(()) }
    }

    /// The namespaces of a scope with referenced objects.
    fn places_in(&self, scope: &Scope) -> Vec<KindInNamespace> {
        self.places.keys().filter(|place| scope.covers(place)).cloned().collect()
    }

    /// Applies the state of one object in a wide watch.
    async fn apply_wide_state(
        &mut self,
        scope: &Scope,
        name: ObjectName,
        state: State,
        event: Option<Input>,
    ) -> Result<(), Closed> {
        let place = KindInNamespace { kind: scope.kind, namespace: name.namespace.clone() };
        let source_is_gone = self.source_is_gone(&place, &name);
        let Some(named) = self.named(&place, &name) else { return Ok(()) };
        // A deletion does not reveal the state of an unknown object: another object may have its name.
        let may_become_source = (source_is_gone || !named.reported.is_known()) && event.is_some();
        if may_become_source || named.source == AnswerSource::of(scope) {
            named.source = AnswerSource::of(scope);
            let key = ObjectKey { kind: scope.kind, name: name.clone() };
            self.report(&key, state, event).await?;
        }
        if self.update_source(&place, &name) {
            self.start_named_watches(&place).await?;
        }
        Ok(())
    }

    /// Reports the absence of objects from a complete list.
    async fn apply_list(&mut self, scope: &Scope, place: &KindInNamespace) -> Result<(), Closed> {
        let (Some(wide), Some(references)) = (self.wide.get(scope), self.places.get_mut(place)) else {
            return Ok(());
        };
        let awaited = std::mem::take(&mut references.awaited);
        // For an object with another source, that source has the newer answer.
        let is_answered = |(name, named): &(&ObjectName, &ReferencedObject)| {
            if named.reported.is_known() {
                named.source == AnswerSource::of(scope)
            } else {
                awaited.contains(*name)
            }
        };
        let answered = references.objects.iter().filter(is_answered).map(|(name, _)| name);
        let absent: Vec<ObjectName> =
            answered.filter(|name| wide.state(name) == State::Absent).cloned().collect();
        for name in absent {
            if let Some(named) = self.named(place, &name) {
                named.source = AnswerSource::of(scope);
            }
            self.report(&ObjectKey { kind: place.kind, name }, State::Absent, None).await?;
        }
        self.update_sources(place);
        self.start_named_watches(place).await
    }

    fn named(&mut self, place: &KindInNamespace, name: &ObjectName) -> Option<&mut ReferencedObject> {
        self.places.get_mut(place)?.objects.get_mut(name)
    }

    /// Reports a new state: first the object, then the answer.
    async fn report(&mut self, key: &ObjectKey, state: State, event: Option<Input>) -> Result<(), Closed> {
        let Some(references) = self.places.get_mut(&KindInNamespace::of(key)) else { return Ok(()) };
        let Some(named) = references.objects.get_mut(&key.name) else { return Ok(()) };
        let mut inputs = Vec::with_capacity(2);
        let answer = match &state {
            State::Unknown => return Ok(()),
            State::Present(version) => {
                // A repeated list mostly has known versions, but it may end a refusal.
                let is_news = version.is_none() || named.delivered.as_ref() != Some(version);
                named.delivered = Some(version.clone());
                inputs.extend(event.filter(|_| is_news));
                Answer::Present
            }
            State::Absent => {
                if named.delivered.take().is_some() {
                    inputs.push(Input::Gone(key.clone()));
                }
                Answer::Absent
            }
            State::Forbidden(message) => Answer::Forbidden { message: message.clone() },
        };
        let is_answered = match (&named.reported, &state) {
            (State::Present(_), State::Present(_)) => true,
            (reported, state) => reported == state,
        };
        if state.is_known() {
            references.unresolved.remove(&key.name);
        } else {
            references.unresolved.insert(key.name.clone());
        }
        named.reported = state;
        if !is_answered {
            inputs.push(Input::Answered { key: key.clone(), answer });
        }
        for input in inputs {
            send(&self.inputs, input).await?;
        }
        Ok(())
    }
}
