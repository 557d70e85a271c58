//! The routes of a translation, with indexes by source and by reference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::RouteOutcome;
use super::current_problems::CurrentProblems;
use super::protected_services::ProtectedServices;
use super::shared::Interners;
use crate::attach::Listener;
use crate::backends::Backends;
use crate::lower::{RouteChange, RouteInput};
use crate::model::{Hostname, Kind, ObjectKey, ObjectName, Problem};
use crate::normalise::{Part, Route};
use crate::packed::pack;
use crate::small_set::SmallSet;

/// The unit in which routes are added, changed and removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An object: a route, or an Ingress, which is several routes.
    Object(Arc<ObjectKey>),
    /// A host. The IngressClass has a fallback route for the host.
    Host(Hostname),
}

/// A slab of routes: each keeps its **slot** until it is removed. The first slots are the places in the snapshot.
///
/// The order of slots has no effect on results.
#[derive(Debug, Default)]
pub(super) struct RouteSlab {
    /// By slot.
    pub(super) inputs: Vec<Arc<RouteInput>>,
    /// By slot: the listeners that counted the route in its verdict.
    counted: Vec<SmallSet<usize>>,
    /// By slot: the problems of a route; only routes with a problem have an entry.
    problems: BTreeMap<usize, RouteProblems>,
    by_source: BTreeMap<Source, SmallSet<usize>>,
    /// The number of routes.
    len: usize,
    free: Vec<usize>,
    /// Slots of the routes that refer to a Service, or to a ListenerSet as a parent.
    referring: BTreeMap<ObjectKey, SmallSet<usize>>,
}

/// The problems of a route.
#[derive(Debug, Default)]
struct RouteProblems {
    /// The problems before its verdict.
    attached: Vec<Problem>,
    judged: Vec<Problem>,
}

/// The inputs and outputs of attaching and resolving routes.
pub(super) struct AttachContext<'a> {
    /// Attaches a route and resolves what it refers to.
    pub(super) attach: &'a mut dyn FnMut(Route, &mut Interners, &mut Vec<Problem>) -> RouteInput,
    pub(super) shared: &'a mut Interners,
    pub(super) problems: &'a mut CurrentProblems,
    /// The changed routes.
    pub(super) changes: &'a mut BTreeMap<usize, RouteChange>,
    /// The number of attached routes.
    pub(super) count: usize,
}

impl RouteSlab {
    /// Frees unused capacity.
    pub(super) fn pack(&mut self) {
        pack(&mut self.by_source);
        pack(&mut self.referring);
        self.inputs.shrink_to_fit();
        self.counted.shrink_to_fit();
    }

    /// The number of routes.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The routes that refer to a Service, or to a ListenerSet as a parent.
    pub(super) fn referring<'s>(&'s self, referent: &ObjectKey) -> impl Iterator<Item = usize> + use<'s> {
        self.referring.get(referent).into_iter().flatten().copied()
    }

    /// The routes that refer to a Service.
    pub(super) fn of_service<'s>(&'s self, service: &ObjectName) -> impl Iterator<Item = usize> + use<'s> {
        self.referring(&ObjectKey { kind: Kind::Service, name: service.clone() })
    }

    /// The routes of a namespace.
    pub(super) fn of_namespace<'s>(&'s self, namespace: &'s Arc<str>) -> impl Iterator<Item = usize> + 's {
        Kind::routes().flat_map(move |kind| {
            let first = ObjectKey { kind, name: ObjectName::new(namespace.clone(), "") };
            let sources = self.by_source.range(Source::Object(Arc::new(first))..);
            let is_of_namespace = move |source: &Source| match source {
                Source::Object(key) => key.kind == kind && key.name.namespace == *namespace,
                Source::Host(_) => false,
            };
            let sources = sources.take_while(move |(source, _)| is_of_namespace(source));
            sources.flat_map(|(_, slots)| slots).copied()
        })
    }

    /// The routes of a namespace that refer to a Service of another namespace.
    pub(super) fn crossing<'s>(
        &'s self,
        from: &'s Arc<str>,
        into: &'s Arc<str>,
    ) -> impl Iterator<Item = usize> + 's {
        let refers = move |slot: &usize| {
            let is_there =
                |referent: ObjectKey| referent.kind == Kind::Service && referent.name.namespace == *into;
            referents(&self.inputs[*slot].route).any(is_there)
        };
        self.of_namespace(from).filter(refers)
    }

    /// The routes on which policies for a target may have an effect: for a Service, the routes that refer to it.
    pub(super) fn of_target(&self, target: &ObjectKey) -> BTreeSet<usize> {
        if target.kind == Kind::Service {
            return self.referring(target).collect();
        }
        if target.kind.is_route() || target.kind == Kind::Ingress {
            let source = Source::Object(Arc::new(target.clone()));
            let mut slots: BTreeSet<usize> = self.slots_of(&source).collect();
            let is_default = |slot: &usize| self.inputs[*slot].route.part == Part::DefaultBackend;
            if slots.iter().any(is_default) {
                slots.extend(self.fallback_slots().filter(|slot| *self.inputs[*slot].route.key == *target));
            }
            return slots;
        }
        (0..self.inputs.len()).filter(|slot| self.inputs[*slot].is_there()).collect()
    }

    /// The fallback routes of hosts.
    fn fallback_slots(&self) -> impl Iterator<Item = usize> {
        // Hosts come behind all objects.
        let sources = self.by_source.iter().rev();
        let fallback_slots = sources.take_while(|(source, _)| matches!(source, Source::Host(_)));
        fallback_slots.flat_map(|(_, slots)| slots).copied()
    }

    /// The routes for the verdicts on policies with these targets, in the order of the snapshot: by kind, then by
    /// name. Verdicts on policies for Gateways and ListenerSets need no routes.
    pub(super) fn of_targets<'n>(
        &self,
        targets: impl Iterator<Item = &'n ObjectKey>,
    ) -> Vec<Arc<RouteInput>> {
        let targets = targets.filter(|target| ![Kind::Gateway, Kind::ListenerSet].contains(&target.kind));
        let slots: BTreeSet<usize> = targets.flat_map(|target| self.of_target(target)).collect();
        let inputs = slots.into_iter().map(|slot| {
            let input = &self.inputs[slot];
            ((&*input.route.key, input.route.part, slot), input)
        });
        // An Ingress is several routes.
        let in_order: BTreeMap<(&ObjectKey, Part, usize), &Arc<RouteInput>> = inputs.collect();
        in_order.into_values().cloned().collect()
    }

    /// The routes of a source.
    pub(super) fn of_source(&self, source: &Source) -> impl Iterator<Item = &Route> {
        self.slots_of(source).map(|slot| &self.inputs[slot].route)
    }

    /// The slots of a source.
    pub(super) fn slots_of(&self, source: &Source) -> impl Iterator<Item = usize> {
        self.by_source.get(source).into_iter().flatten().copied()
    }

    /// Replaces the routes of a source.
    pub(super) fn replace(&mut self, source: Source, routes: Vec<Route>, attaching: &mut AttachContext<'_>) {
        let place = |slot: usize| (self.inputs[slot].route.place(), slot);
        let mut known: BTreeMap<(Part, Option<u8>, u8), usize> = self.slots_of(&source).map(place).collect();
        self.len = self.len - known.len() + routes.len();
        for slot in known.values() {
            for referent in referents(&self.inputs[*slot].route) {
                if let Some(slots) = self.referring.get_mut(&referent) {
                    slots.remove(slot);
                    if slots.is_empty() {
                        self.referring.remove(&referent);
                    }
                }
            }
        }
        let mut slots = SmallSet::default();
        for route in routes {
            let route = attaching.shared.route(route);
            let was = known.remove(&route.place());
            let slot = was.or_else(|| self.free.pop()).unwrap_or(self.inputs.len());
            for referent in referents(&route) {
                self.referring.entry(referent).or_default().insert(slot);
            }
            if was.is_none() {
                attaching.changes.insert(slot, RouteChange { before: None, is_there: true });
            }
            slots.insert(slot);
            self.put(slot, route, attaching);
        }
        for slot in known.into_values() {
            let gone = Arc::new(RouteInput::gone(self.inputs[slot].route.clone()));
            let before = Some(std::mem::replace(&mut self.inputs[slot], gone));
            attaching.changes.insert(slot, RouteChange { before, is_there: false });
            self.note_problems(slot, attaching.problems, |problems| &mut problems.attached, Vec::new());
        }
        if slots.is_empty() {
            self.by_source.remove(&source);
        } else {
            self.by_source.insert(source, slots);
        }
    }

    /// Attaches and resolves the route of a slot again.
    pub(super) fn attach_again(&mut self, slot: usize, attaching: &mut AttachContext<'_>) {
        if self.inputs[slot].is_there() {
            self.put(slot, self.inputs[slot].written(), attaching);
        }
    }

    /// Attaches and resolves a route of a known slot, or of the next one.
    fn put(&mut self, slot: usize, route: Route, attaching: &mut AttachContext<'_>) {
        attaching.count += 1;
        let mut problems = Vec::new();
        let AttachContext { attach, shared, changes, problems: current, .. } = attaching;
        let mut input = attach(route, shared, &mut problems);
        // The index of protected Services decides again after all changes.
        if let Some(known) = self.inputs.get(slot) {
            input.keep_fixed_hosts(known);
        }
        self.note_problems(slot, current, |problems| &mut problems.attached, problems);
        match self.inputs.get_mut(slot) {
            Some(known) if **known == input => {}
            Some(known) => {
                let before = std::mem::replace(known, Arc::new(input));
                changes.entry(slot).or_insert(RouteChange { before: Some(before), is_there: true });
            }
            None => {
                self.inputs.push(Arc::new(input));
                self.counted.push(SmallSet::default());
            }
        }
    }

    /// Updates the index of protected Services after changes of routes, and fixes the hosts of rules by it. Other routes
    /// whose rules differ become changes, too.
    pub(super) fn fix_hosts(
        &mut self,
        protected: &mut ProtectedServices,
        (listeners, backends): (&[Listener], &Backends),
        changes: &mut BTreeMap<usize, RouteChange>,
    ) {
        // Additions come first, so that a pair of a changed route neither goes nor comes.
        let mut services = BTreeSet::new();
        for slot in changes.keys() {
            protected.add(&self.inputs[*slot], (listeners, backends), &mut services);
        }
        for before in changes.values().filter_map(|change| change.before.as_ref()) {
            protected.remove(before, (listeners, backends), &mut services);
        }
        let mut slots: BTreeSet<usize> = changes.keys().copied().collect();
        for service in &services {
            slots.extend(self.of_service(service));
        }
        for slot in slots {
            if let Some(fixed) = protected.fix_hosts(&self.inputs[slot], listeners, backends) {
                let before = std::mem::replace(&mut self.inputs[slot], fixed);
                changes.entry(slot).or_insert(RouteChange { before: Some(before), is_there: true });
            }
        }
    }

    /// The listeners that counted a route in its verdict.
    pub(super) fn counted(&self, slot: usize) -> impl Iterator<Item = usize> {
        self.counted[slot].iter().copied()
    }

    /// Notes the side results of a verdict.
    pub(super) fn note_judged(&mut self, slot: usize, judged: RouteOutcome, current: &mut CurrentProblems) {
        self.counted[slot] = judged.counted;
        self.note_problems(slot, current, |problems| &mut problems.judged, judged.problems);
    }

    /// Frees the slot of a removed route.
    pub(super) fn release(&mut self, slot: usize, current: &mut CurrentProblems) {
        self.note_judged(slot, RouteOutcome::default(), current);
        self.free.push(slot);
    }

    /// Replaces a part of the problems of a route.
    fn note_problems(
        &mut self,
        slot: usize,
        current: &mut CurrentProblems,
        part: impl FnOnce(&mut RouteProblems) -> &mut Vec<Problem>,
        now: Vec<Problem>,
    ) {
        let mut problems = self.problems.remove(&slot).unwrap_or_default();
        let part = part(&mut problems);
        current.replace(part, &now);
        *part = now;
        if !problems.attached.is_empty() || !problems.judged.is_empty() {
            self.problems.insert(slot, problems);
        }
    }

    /// The problems of a route.
    pub(super) fn problems_of(&self, route: &Arc<ObjectKey>) -> impl Iterator<Item = &Problem> {
        let slots = self.by_source.get(&Source::Object(route.clone())).into_iter().flatten();
        let problems = slots.filter_map(|slot| self.problems.get(slot));
        problems.flat_map(|problems| problems.attached.iter().chain(&problems.judged))
    }
}

/// The Services of a route's backends, default backends and mirrors, and the ListenerSets among its parents.
fn referents(route: &Route) -> impl Iterator<Item = ObjectKey> {
    let mirrors = route.rules.iter().flat_map(|rule| &rule.mirrors).map(|mirror| &mirror.backend);
    let backends = route.rules.iter().flat_map(|rule| &rule.backends).chain(mirrors);
    let settings = route.rules.iter().filter_map(|rule| rule.backend_settings.as_deref());
    let default_backends = settings.filter_map(|settings| settings.default_backend.as_ref());
    let services = backends.map(|backend| &backend.name).chain(default_backends);
    let services = services.map(|name| ObjectKey { kind: Kind::Service, name: name.clone() });
    let namespace = &route.key.name.namespace;
    let parents = route.parent_refs.iter().filter(|parent| parent.kind.is_some());
    let sets = parents
        .filter_map(|parent| parent.target(namespace))
        .filter(|parent| parent.kind == Kind::ListenerSet);
    services.chain(sets).collect::<BTreeSet<_>>().into_iter()
}
