//! The start and the end of watches, by the plan and by changes of sources.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{AbortHandle, BoxStream, StreamExt as _, abortable};
use pingsix_translate::snapshot::{ConfigMap, Secret};
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use tokio::sync::Semaphore;

use super::super::input::Closed;
use super::super::named::{AnswerSource, NameWatch, NamespaceReferences, named_events};
use super::super::options::Namespaces;
use super::super::stream::{Selection, WatchContext};
use super::super::watch_plan::{Demand, KindInNamespace, PlanInputs, Width, plan_watches};
use super::super::wide::{Scope, State, WideEvent, WideWatch, wide_events};
use super::{Referenced, ReferencedEvent};

impl Referenced {
    /// Plans the watches, and starts and stops them accordingly.
    pub(super) async fn apply_plan(&mut self) -> Result<(), Closed> {
        let demand = |references: &NamespaceReferences| Demand {
            names: references.objects.len(),
            width: references.quota.map(|quota| quota.width),
        };
        let demands =
            self.places.iter().map(|(place, references)| (place.clone(), demand(references))).collect();
        let plan = plan_watches(&demands, &self.plan_inputs());
        let mut scopes: BTreeSet<Scope> = plan.cluster.iter().copied().map(Scope::everywhere).collect();
        let mut refused = 0;
        for (place, quota) in plan.quotas {
            if quota.width == Width::Namespace {
                scopes.insert(Scope::of(&place));
            }
            refused += usize::from(quota.width == Width::Refused);
            if let Some(references) = self.places.get_mut(&place) {
                references.quota = Some(quota);
            }
        }
        if std::mem::replace(&mut self.has_refused_places, refused > 0) != (refused > 0) {
            self.log_refused(refused);
        }
        for scope in &scopes {
            if !self.wide.contains_key(scope) {
                let stop = self.start_wide(scope);
                self.wide.insert(scope.clone(), WideWatch::new(stop));
            }
        }
        self.planned_scopes = scopes;
        let places: Vec<KindInNamespace> = self.places.keys().cloned().collect();
        for place in &places {
            self.update_sources(place);
            self.start_named_watches(place).await?;
        }
        self.stop_unneeded_wide();
        Ok(())
    }

    fn plan_inputs(&self) -> PlanInputs {
        let everywhere = self.wide.iter().filter(|(scope, _)| scope.namespace.is_none());
        let forbidden = everywhere.clone().filter(|(_, wide)| wide.forbidden.is_some());
        PlanInputs {
            bounds: self.context.options.names,
            all_namespaces: self.context.options.namespaces == Namespaces::All,
            cluster: everywhere.map(|(scope, _)| scope.kind).collect(),
            forbidden: forbidden.map(|(scope, _)| scope.kind).collect(),
        }
    }

    fn log_refused(&self, refused: usize) {
        let watches = self.context.options.names.watches;
        if refused > 0 {
            tracing::warn!(
                namespaces = refused,
                watches,
                "references in more namespaces than watches are allowed, and listing all namespaces is forbidden; \
                 the objects of other namespaces cannot be read"
            );
        } else {
            tracing::info!("watching referenced objects in all namespaces again");
        }
    }

    /// The scope of the planned wide watch of a namespace.
    pub(super) fn scope_of(&self, place: &KindInNamespace) -> Option<Scope> {
        match self.places.get(place)?.quota?.width {
            Width::Namespace => Some(Scope::of(place)),
            Width::Cluster => Some(Scope::everywhere(place.kind)),
            Width::Name | Width::Refused => None,
        }
    }

    /// Makes the planned watch of an object its source when both agree on the state, and then stops an obsolete watch
    /// by name. Returns whether anything changed.
    pub(super) fn update_source(&mut self, place: &KindInNamespace, name: &ObjectName) -> bool {
        let scope = self.scope_of(place);
        let wide = scope.and_then(|scope| Some((AnswerSource::of(&scope), self.wide.get(&scope)?)));
        let wide = wide.filter(|(_, wide)| wide.is_usable()).map(|(source, wide)| (source, wide.state(name)));
        let Some(references) = self.places.get_mut(place) else { return false };
        let Some(named) = references.objects.get_mut(name) else { return false };
        let by_name = || named.watch.as_ref().map_or(State::Unknown, |watch| watch.state.clone());
        let (planned, state) = wide.unwrap_or_else(|| (AnswerSource::Name, by_name()));
        let mut is_other = false;
        if named.reported.is_known() && named.source != planned && state == named.reported {
            named.source = planned;
            is_other = true;
        }
        if named.source == planned
            && planned != AnswerSource::Name
            && named.reported.is_known()
            && let Some(watch) = named.watch.take()
        {
            watch.stop.abort();
            references.by_name -= 1;
            self.by_name -= 1;
            is_other = true;
        }
        is_other
    }

    pub(super) fn update_sources(&mut self, place: &KindInNamespace) {
        let Some(references) = self.places.get(place) else { return };
        let all: Vec<ObjectName> = references.objects.keys().cloned().collect();
        for name in all {
            self.update_source(place, &name);
        }
    }

    /// Starts the watches by name of a namespace, up to the planned number.
    pub(super) async fn start_named_watches(&mut self, place: &KindInNamespace) -> Result<(), Closed> {
        let scope = self.scope_of(place);
        let Some((references, quota)) =
            self.places.get(place).and_then(|references| Some((references, references.quota?)))
        else {
            return Ok(());
        };
        let room = quota.by_name.saturating_sub(references.by_name);
        let unwatched =
            |name: &&ObjectName| references.objects.get(*name).is_some_and(|named| named.watch.is_none());
        let Some(scope) = scope else {
            if quota.width == Width::Refused {
                let message = format!(
                    "Objects are referred to in more than {} namespaces, and the list of all namespaces is forbidden.",
                    self.context.options.names.watches
                );
                return self.report_forbidden(place, 0, message).await;
            }
            let started: Vec<ObjectName> = references.objects.keys().filter(unwatched).cloned().collect();
            self.start_all_named(place, started);
            return Ok(());
        };
        let Some(wide) = self.wide.get(&scope) else { return Ok(()) };
        if let Some(why) = &wide.forbidden {
            let message = format!(
                "{} objects of namespace {} are referred to, {} of them are watched by name, and the list of the \
                 namespace is forbidden: {why}",
                references.objects.len(),
                place.namespace,
                quota.by_name
            );
            let started: Vec<ObjectName> =
                references.objects.keys().filter(unwatched).take(room).cloned().collect();
            self.start_all_named(place, started);
            return self.report_forbidden(place, quota.by_name, message).await;
        }
        if !wide.is_complete() {
            return Ok(());
        }
        let late = || {
            let unresolved = references.unresolved.iter().filter(|name| !references.awaited.contains(*name));
            unresolved.filter(unwatched)
        };
        let many = self.context.options.names.names_per_namespace;
        if quota.width == Width::Namespace && late().take(many + 1).count() > many {
            if !wide.is_listing {
                let stop = self.start_wide(&scope);
                if let Some(wide) = self.wide.get_mut(&scope) {
                    wide.restart(stop);
                }
            }
            return Ok(());
        }
        let started: Vec<ObjectName> = late().take(room).cloned().collect();
        self.start_all_named(place, started);
        Ok(())
    }

    /// Reports all objects as forbidden, except for this many objects watched by name.
    async fn report_forbidden(
        &mut self,
        place: &KindInNamespace,
        limit: usize,
        message: String,
    ) -> Result<(), Closed> {
        let Some(references) = self.places.get_mut(place) else { return Ok(()) };
        let mut refused = Vec::new();
        for (name, named) in references.objects.iter_mut().rev() {
            if references.by_name > limit
                && let Some(watch) = named.watch.take()
            {
                watch.stop.abort();
                references.by_name -= 1;
                self.by_name -= 1;
            }
            if named.watch.is_none() && !matches!(named.reported, State::Forbidden(_)) {
                refused.push(name.clone());
            }
        }
        for name in refused {
            let key = ObjectKey { kind: place.kind, name };
            self.report(&key, State::Forbidden(message.clone()), None).await?;
        }
        Ok(())
    }

    fn start_all_named(&mut self, place: &KindInNamespace, names: Vec<ObjectName>) {
        for name in names {
            let key = ObjectKey { kind: place.kind, name };
            let stop = self.start_named(&key);
            if let Some(references) = self.places.get_mut(place)
                && let Some(named) = references.objects.get_mut(&key.name)
            {
                named.watch = Some(NameWatch { stop, state: State::Unknown });
                references.by_name += 1;
                self.by_name += 1;
            }
        }
    }

    fn start_named(&mut self, key: &ObjectKey) -> AbortHandle {
        let selection = Selection {
            namespace: Some(key.name.namespace.to_string()),
            labels: None,
            fields: Some(format!("metadata.name={}", key.name.name)),
        };
        let events = events(&self.context, key.kind, &selection, &self.list_permits);
        let name = key.clone();
        let wrap = move |event| ReferencedEvent::Named(name.clone(), event);
        self.run_stream(named_events(events).map(wrap).boxed())
    }

    fn start_wide(&mut self, scope: &Scope) -> AbortHandle {
        let namespace = scope.namespace.as_ref().map(ToString::to_string);
        let selection = Selection { namespace, ..Selection::default() };
        let events = events(&self.wide_context, scope.kind, &selection, &self.wide_list_permits);
        let name = scope.clone();
        let wrap = move |event| ReferencedEvent::Wide(name.clone(), event);
        self.run_stream(events.map(wrap).boxed())
    }

    fn run_stream(&mut self, stream: BoxStream<'static, ReferencedEvent>) -> AbortHandle {
        let (stream, stop) = abortable(stream);
        self.streams.push(stream);
        stop
    }

    /// Stops wide watches that are outside the plan and no source of an object.
    pub(super) fn stop_unneeded_wide(&mut self) {
        // All running wide watches are planned.
        if self.wide.len() == self.planned_scopes.len() {
            return;
        }
        let is_source = |scope: &Scope| {
            let places = self.places.iter().filter(|(place, _)| scope.covers(place));
            let mut named = places.flat_map(|(_, references)| references.objects.values());
            named.any(|named| named.source == AnswerSource::of(scope) && named.reported.is_known())
        };
        let unwanted = self.wide.keys().filter(|scope| !self.planned_scopes.contains(*scope));
        let ended: Vec<Scope> = unwanted.filter(|scope| !is_source(scope)).cloned().collect();
        for scope in ended {
            if let Some(wide) = self.wide.remove(&scope) {
                wide.stop.abort();
            }
        }
    }

    /// Stops an unplanned wide watch that failed. Watches by name that disagree with it may never agree, so they
    /// restart.
    pub(super) fn replace_wide(&mut self, scope: &Scope) {
        if let Some(wide) = self.wide.remove(scope) {
            wide.stop.abort();
        }
        for place in self.places_in(scope) {
            let Some(references) = self.places.get_mut(&place) else { continue };
            let mut again = Vec::new();
            for (name, named) in &mut references.objects {
                if named.source == AnswerSource::of(scope)
                    && let Some(watch) = named.watch.take_if(|watch| watch.state != named.reported)
                {
                    watch.stop.abort();
                    references.by_name -= 1;
                    self.by_name -= 1;
                    again.push(name.clone());
                }
            }
            self.start_all_named(&place, again);
        }
    }
}

/// The events of the referenced objects of a kind.
fn events(
    context: &WatchContext,
    kind: Kind,
    selection: &Selection,
    list_permits: &Arc<Semaphore>,
) -> BoxStream<'static, WideEvent> {
    if kind == Kind::Secret {
        wide_events::<Secret>(context, selection, Arc::clone(list_permits)).boxed()
    } else {
        wide_events::<ConfigMap>(context, selection, Arc::clone(list_permits)).boxed()
    }
}
