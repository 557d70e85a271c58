//! Secrets and ConfigMaps that something refers to.
//!
//! Each is watched by its name, so that no other is read and permission can be given object by object. Such a watch takes
//! a connection of its own, since the client speaks HTTP/1.1, so there is a bound: beyond it, whole namespaces are watched
//! ([`allotment`](super::allotment)), and of their objects those are handed on that are referred to.
//!
//! One watch **speaks** for an object at a time. Another one takes over when it knows the object in the version that was
//! handed on last, or knows as well that it is not there. So the picture neither goes back nor loses an object while one
//! watch takes the place of another, and both run until then. Where nothing is known of an object, or its watch is
//! forbidden, the first watch that knows more speaks for it.
//!
//! A list answers for the names that were referred to before it was asked for, and for no other: the object may have been
//! created together with the reference, later than the list. A name that comes later is read by itself, and a wide watch
//! begins anew when there are many of them.
//!
//! All these watches run in one task, and one more per watch hands its requests on.

mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use futures::stream::{Abortable, BoxStream, SelectAll, StreamExt as _};
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use tokio::sync::{Semaphore, mpsc, watch};

use super::allotment::KindInNamespace;
use super::input::{Answer, Closed, Input, send};
use super::named::{Named, NamedEvent, Referents, Speaker, can_exist};
use super::options::{SecretWatch, WatchOptions};
use super::stream::WatchContext;
use super::wide::{Scope, State, WideEvent, WideWatch};

/// The number of objects in one page of the list of a wide watch. The list includes unreferenced objects of up to a
/// megabyte.
const WIDE_PAGE: u32 = 16;

/// The number of concurrent lists of wide watches.
const WIDE_LISTS: usize = 4;

/// Watches the objects that are referred to.
pub(super) struct Referenced {
    ground: WatchContext,
    /// For wide watches.
    wide_ground: WatchContext,
    inputs: mpsc::Sender<Input>,
    wanted: watch::Receiver<BTreeSet<ObjectKey>>,
    streams: SelectAll<Abortable<BoxStream<'static, ReferencedEvent>>>,
    places: BTreeMap<KindInNamespace, Referents>,
    /// Referents that no object can have.
    impossible: BTreeSet<ObjectKey>,
    wide: BTreeMap<Scope, WideWatch>,
    /// The wide watches that there are to be.
    wanted_scopes: BTreeSet<Scope>,
    /// The number of objects watched by name.
    by_name: usize,
    /// Whether the refusal of places was logged.
    are_refused: bool,
    gate: Arc<Semaphore>,
    wide_gate: Arc<Semaphore>,
}

/// The event of a stream.
enum ReferencedEvent {
    Named(ObjectKey, NamedEvent),
    Wide(Scope, WideEvent),
}

impl Referenced {
    pub(super) fn new(
        ground: WatchContext,
        inputs: mpsc::Sender<Input>,
        wanted: watch::Receiver<BTreeSet<ObjectKey>>,
    ) -> Self {
        let gate = Arc::new(Semaphore::new(ground.options.concurrent_lists.max(1)));
        let page_size = ground.options.page_size.min(WIDE_PAGE);
        let options = WatchOptions { page_size, ..(*ground.options).clone() };
        Self {
            wide_ground: WatchContext { options: Arc::new(options), ..ground.clone() },
            ground,
            inputs,
            wanted,
            streams: SelectAll::new(),
            places: BTreeMap::new(),
            impossible: BTreeSet::new(),
            wide: BTreeMap::new(),
            wanted_scopes: BTreeSet::new(),
            by_name: 0,
            are_refused: false,
            gate,
            wide_gate: Arc::new(Semaphore::new(WIDE_LISTS)),
        }
    }

    /// Runs until nobody takes inputs any more, or nobody can say any more what is referred to.
    pub(super) async fn run(mut self) -> Result<Infallible, Closed> {
        loop {
            tokio::select! {
                biased;
                changed = self.wanted.changed() => {
                    changed.map_err(|_| Closed)?;
                    self.set().await?;
                }
                Some(heard) = self.streams.next(), if !self.streams.is_empty() => match heard {
                    ReferencedEvent::Named(key, sight) => self.apply_named(key, sight).await?,
                    ReferencedEvent::Wide(scope, sight) => self.apply_wide(&scope, sight).await?,
                },
                () = self.inputs.closed() => return Err(Closed),
            }
            self.count();
        }
    }

    fn count(&self) {
        let known = self.wide.values().map(WideWatch::len).sum();
        self.ground.stats.watching_referenced(self.by_name, self.wide.len(), known);
    }

    /// Watches what is wanted, and nothing else.
    async fn set(&mut self) -> Result<(), Closed> {
        let with_secrets = self.ground.options.secrets == SecretWatch::ByName;
        let is_by_name =
            |key: &&ObjectKey| key.kind == Kind::ConfigMap || key.kind == Kind::Secret && with_secrets;
        let wanted: BTreeSet<ObjectKey> =
            self.wanted.borrow_and_update().iter().filter(is_by_name).cloned().collect();
        self.release_others(&wanted).await?;
        for key in wanted {
            if !can_exist(&key) {
                if self.impossible.insert(key.clone()) {
                    send(&self.inputs, Input::Answered { key, answer: Answer::Absent }).await?;
                }
                continue;
            }
            let held = self.places.entry(KindInNamespace::of(&key)).or_default();
            if !held.objects.contains_key(&key.name) {
                held.unsettled.insert(key.name.clone());
                let (told, delivered) = (State::Unknown, None);
                held.objects.insert(key.name, Named { watch: None, speaker: Speaker::Name, told, delivered });
            }
        }
        self.adjust().await
    }

    /// Lets go of what is not wanted any more.
    async fn release_others(&mut self, wanted: &BTreeSet<ObjectKey>) -> Result<(), Closed> {
        let mut released: Vec<ObjectKey> =
            self.impossible.extract_if(.., |key| !wanted.contains(key)).collect();
        for (place, held) in &mut self.places {
            let key = |name: &ObjectName| ObjectKey { kind: place.kind, name: name.clone() };
            for (name, named) in held.objects.extract_if(.., |name, _| !wanted.contains(&key(name))) {
                held.unsettled.remove(&name);
                held.awaited.remove(&name);
                // From here on its stream yields nothing, so this is the last that is said about it.
                if let Some(watch) = named.watch {
                    watch.stop.abort();
                    held.by_name -= 1;
                    self.by_name -= 1;
                }
                released.push(key(&name));
            }
        }
        self.places.retain(|_, held| !held.objects.is_empty());
        for key in released {
            send(&self.inputs, Input::Released(key)).await?;
        }
        Ok(())
    }

    /// Hands on what the watch of one object has found out, if it speaks for the object.
    async fn apply_named(&mut self, key: ObjectKey, sight: NamedEvent) -> Result<(), Closed> {
        let place = KindInNamespace::of(&key);
        let is_free = self.is_free(&place, &key.name);
        let Some(named) = self.named(&place, &key.name) else { return Ok(()) };
        let (state, event) = match sight {
            NamedEvent::There(version, event) => (State::There(version), Some(event)),
            NamedEvent::Absent => (State::Absent, None),
            NamedEvent::Forbidden(message) => (State::Forbidden(message), None),
        };
        if let Some(watch) = &mut named.watch {
            watch.state = state.clone();
        }
        if is_free || named.speaker == Speaker::Name || !named.told.is_settled() {
            named.speaker = Speaker::Name;
            if let State::Forbidden(message) = &state
                && named.told != state
            {
                let (kind, namespace, name) = (key.kind, &*key.name.namespace, &*key.name.name);
                tracing::warn!(%kind, namespace, name, error = message, "referenced object cannot be read");
            }
            self.tell(&key, state, event).await?;
        }
        if self.settle(&place, &key.name) {
            self.fill(&place).await?;
        }
        self.end_wide();
        Ok(())
    }

    /// Whether the watch that answers for an object has ended, or is forbidden.
    fn is_free(&self, place: &KindInNamespace, name: &ObjectName) -> bool {
        let named = self.places.get(place).and_then(|held| held.objects.get(name));
        let scope = named.and_then(|named| named.speaker.scope(place));
        scope.is_some_and(|scope| self.wide.get(&scope).is_none_or(|wide| wide.forbidden.is_some()))
    }

    /// Hands on what a wide watch has seen of objects for which it speaks.
    async fn apply_wide(&mut self, scope: &Scope, sight: WideEvent) -> Result<(), Closed> {
        let Some(wide) = self.wide.get_mut(scope) else { return Ok(()) };
        let is_turn = wide.take(&sight);
        match sight {
            WideEvent::Began => {
                for place in self.covered(scope) {
                    if let Some(held) = self.places.get_mut(&place) {
                        held.awaited = held.unsettled.clone();
                    }
                }
                return Ok(());
            }
            WideEvent::There(name, version, event) => {
                self.record_answer(scope, name, State::There(version), Some(event)).await?;
            }
            WideEvent::Gone(name) => self.record_answer(scope, name, State::Absent, None).await?,
            WideEvent::Done => {
                for place in self.covered(scope) {
                    self.take_list(scope, &place).await?;
                }
            }
            WideEvent::Failed | WideEvent::Forbidden(_) if !self.wanted_scopes.contains(scope) => {
                self.abandon(scope);
            }
            WideEvent::Failed => {}
            WideEvent::Forbidden(message) => {
                if is_turn {
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
        if is_turn { self.adjust().await } else { Ok(()) }
    }

    /// The places of a scope in which something is referred to.
    fn covered(&self, scope: &Scope) -> Vec<KindInNamespace> {
        self.places.keys().filter(|place| scope.covers(place)).cloned().collect()
    }

    /// Hands on how a wide watch sees one object.
    async fn record_answer(
        &mut self,
        scope: &Scope,
        name: ObjectName,
        state: State,
        event: Option<Input>,
    ) -> Result<(), Closed> {
        let place = KindInNamespace { kind: scope.kind, namespace: name.namespace.clone() };
        let is_free = self.is_free(&place, &name);
        let Some(named) = self.named(&place, &name) else { return Ok(()) };
        // That an unknown object is gone says nothing: there may be another one of its name.
        let may_speak = (is_free || !named.told.is_settled()) && event.is_some();
        if may_speak || named.speaker == Speaker::of(scope) {
            named.speaker = Speaker::of(scope);
            let key = ObjectKey { kind: scope.kind, name: name.clone() };
            self.tell(&key, state, event).await?;
        }
        if self.settle(&place, &name) {
            self.fill(&place).await?;
        }
        Ok(())
    }

    /// Hands on what is not in a list that was read to its end.
    async fn take_list(&mut self, scope: &Scope, place: &KindInNamespace) -> Result<(), Closed> {
        let (Some(wide), Some(held)) = (self.wide.get(scope), self.places.get_mut(place)) else {
            return Ok(());
        };
        let awaited = std::mem::take(&mut held.awaited);
        // A wide watch that knows the object has the newer answer.
        let is_answered = |(name, named): &(&ObjectName, &Named)| {
            if named.told.is_settled() {
                named.speaker == Speaker::of(scope)
            } else {
                awaited.contains(*name)
            }
        };
        let answered = held.objects.iter().filter(is_answered).map(|(name, _)| name);
        let absent: Vec<ObjectName> =
            answered.filter(|name| wide.state(name) == State::Absent).cloned().collect();
        for name in absent {
            if let Some(named) = self.named(place, &name) {
                named.speaker = Speaker::of(scope);
            }
            self.tell(&ObjectKey { kind: place.kind, name }, State::Absent, None).await?;
        }
        self.settle_all(place);
        self.fill(place).await
    }

    fn named(&mut self, place: &KindInNamespace, name: &ObjectName) -> Option<&mut Named> {
        self.places.get_mut(place)?.objects.get_mut(name)
    }

    /// Says what is new: the object first, then what is known about it.
    async fn tell(&mut self, key: &ObjectKey, state: State, event: Option<Input>) -> Result<(), Closed> {
        let Some(held) = self.places.get_mut(&KindInNamespace::of(key)) else { return Ok(()) };
        let Some(named) = held.objects.get_mut(&key.name) else { return Ok(()) };
        let mut inputs = Vec::with_capacity(2);
        let answer = match &state {
            State::Unknown => return Ok(()),
            State::There(version) => {
                // A list that is read anew mostly says what is known, but it ends a refusal.
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
        let is_answered = match (&named.told, &state) {
            (State::There(_), State::There(_)) => true,
            (told, state) => told == state,
        };
        if state.is_settled() {
            held.unsettled.remove(&key.name);
        } else {
            held.unsettled.insert(key.name.clone());
        }
        named.told = state;
        if !is_answered {
            inputs.push(Input::Answered { key: key.clone(), answer });
        }
        for input in inputs {
            send(&self.inputs, input).await?;
        }
        Ok(())
    }
}
