//! The routes of a translation, with indexes by source and by Service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::JudgedRoute;
use super::owner::Owner;
use super::shared::Shared;
use crate::backends::Backends;
use crate::lower::{RouteChange, RouteInput};
use crate::model::{Hostname, Kind, ObjectKey, ObjectName, Problem};
use crate::normalise::{Hostnames, Part, Route};
use crate::packed::pack;
use crate::references::References;
use crate::small_set::SmallSet;

/// What routes come, change and go with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An object: a route, or an Ingress, which is several routes.
    Object(Arc<ObjectKey>),
    /// A host, of which an IngressClass has to answer for the rest.
    Host(Hostname),
}

impl Source {
    fn of(route: &Route) -> Self {
        match (route.part, &route.hostnames) {
            (Part::RestOfHost(_) | Part::DefaultOfHost, Hostnames::Named(names)) if !names.is_empty() => {
                Self::Host(names[0].clone())
            }
            (_, _) => Self::Object(route.key.clone()),
        }
    }
}

/// A slab of routes: each keeps its **slot** until it is removed. The first slots are the places in the snapshot.
///
/// Nothing that comes out depends on the order of slots.
#[derive(Debug, Default)]
pub(super) struct RouteSlab {
    /// By slot.
    pub(super) inputs: Vec<Arc<RouteInput>>,
    /// By slot: the listeners that counted a route when it was judged.
    counted: Vec<SmallSet<usize>>,
    /// By slot: what is wrong with routes, of those with anything wrong.
    problems: BTreeMap<usize, Problems>,
    by_source: BTreeMap<Source, SmallSet<usize>>,
    /// How many routes there are.
    len: usize,
    free: Vec<usize>,
    /// Slots of the routes that refer to a Service.
    of_service: BTreeMap<ObjectName, SmallSet<usize>>,
}

/// What is wrong with a route.
#[derive(Debug, Default)]
struct Problems {
    /// What was before it was judged.
    attached: Vec<Problem>,
    judged: Vec<Problem>,
}

/// What it takes to attach and resolve routes, and what came of it.
#[derive(Debug)]
pub(super) struct Attaching<'a, O> {
    pub(super) owner: &'a O,
    pub(super) references: &'a References<'a>,
    pub(super) backends: &'a mut Backends,
    pub(super) shared: &'a mut Shared,
    pub(super) changes: BTreeMap<usize, RouteChange>,
    /// How many routes were attached.
    pub(super) count: usize,
}

impl RouteSlab {
    /// Takes the next slot for a route.
    pub(super) fn push(&mut self, input: Arc<RouteInput>, problems: Vec<Problem>, judged: JudgedRoute) {
        let slot = self.inputs.len();
        self.by_source.entry(Source::of(&input.route)).or_default().insert(slot);
        self.len += 1;
        for service in services(&input.route) {
            self.of_service.entry(service).or_default().insert(slot);
        }
        self.inputs.push(input);
        self.counted.push(judged.counted);
        self.note_problems(slot, |known| *known = Problems { attached: problems, judged: judged.problems });
    }

    /// Takes no more memory than what is there needs.
    pub(super) fn pack(&mut self) {
        pack(&mut self.by_source);
        pack(&mut self.of_service);
        self.inputs.shrink_to_fit();
        self.counted.shrink_to_fit();
    }

    /// How many routes there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The routes that may refer to a Service.
    pub(super) fn of_service(&self, service: &ObjectName) -> impl Iterator<Item = usize> {
        self.of_service.get(service).into_iter().flatten().copied()
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

    /// The routes that name one of these parents. It looks at all routes, if there is any such parent.
    pub(super) fn naming(&self, parents: &[&Arc<ObjectKey>]) -> Vec<usize> {
        if parents.is_empty() {
            return Vec::new();
        }
        let names = |input: &RouteInput| {
            let namespace = &input.route.key.name.namespace;
            let mut named = input.route.parent_refs.iter();
            named.any(|named| parents.iter().any(|parent| named.names(namespace, parent)))
        };
        let slots = self.inputs.iter().enumerate();
        slots.filter(|(_, input)| input.is_there() && names(input)).map(|(slot, _)| slot).collect()
    }

    /// The routes of a namespace that may refer to a Service of another one.
    pub(super) fn crossing<'s>(
        &'s self,
        from: &'s Arc<str>,
        into: &'s Arc<str>,
    ) -> impl Iterator<Item = usize> + 's {
        let refers = move |slot: &usize| {
            services(&self.inputs[*slot].route).iter().any(|service| service.namespace == *into)
        };
        self.of_namespace(from).filter(refers)
    }

    /// The routes on which policies for a target may have an effect: for a Service, those that may refer to it.
    pub(super) fn of_target(&self, target: &ObjectKey) -> BTreeSet<usize> {
        if target.kind == Kind::Service {
            return self.of_service(&target.name).collect();
        }
        (0..self.inputs.len()).filter(|slot| self.inputs[*slot].is_there()).collect()
    }

    /// The routes on which policies for any of some targets may have an effect, in the order of the snapshot: by kind, then
    /// by name.
    pub(super) fn of_targets<'n>(
        &self,
        targets: impl Iterator<Item = &'n ObjectKey>,
    ) -> Vec<Arc<RouteInput>> {
        let slots: BTreeSet<usize> = targets.flat_map(|target| self.of_target(target)).collect();
        let inputs = slots.into_iter().map(|slot| &self.inputs[slot]);
        let in_order: BTreeMap<&ObjectKey, &Arc<RouteInput>> =
            inputs.map(|input| (&*input.route.key, input)).collect();
        in_order.into_values().cloned().collect()
    }

    /// The routes of a source.
    pub(super) fn of_source(&self, source: &Source) -> impl Iterator<Item = &Route> {
        self.by_source.get(source).into_iter().flatten().map(|slot| &self.inputs[*slot].route)
    }

    /// Puts routes in the place of those of a source. Returns the slots of both.
    pub(super) fn replace<O: Owner>(
        &mut self,
        source: Source,
        routes: Vec<Route>,
        attaching: &mut Attaching<'_, O>,
    ) -> BTreeSet<usize> {
        let mut known: BTreeMap<Part, usize> = BTreeMap::new();
        for &slot in self.by_source.get(&source).into_iter().flatten() {
            known.insert(self.inputs[slot].route.part, slot);
        }
        let mut seen: BTreeSet<usize> = known.values().copied().collect();
        self.len = self.len - known.len() + routes.len();
        for slot in known.values() {
            for service in services(&self.inputs[*slot].route) {
                if let Some(slots) = self.of_service.get_mut(&service) {
                    slots.remove(slot);
                    if slots.is_empty() {
                        self.of_service.remove(&service);
                    }
                }
            }
        }
        let mut slots: Vec<usize> = Vec::with_capacity(routes.len());
        for route in routes {
            let route = attaching.shared.route(route);
            let was = known.remove(&route.part);
            let slot = was.or_else(|| self.free.pop()).unwrap_or(self.inputs.len());
            for service in services(&route) {
                self.of_service.entry(service).or_default().insert(slot);
            }
            if was.is_none() {
                attaching.changes.insert(slot, RouteChange { before: None, is_there: true });
            }
            slots.push(slot);
            self.put(slot, route, attaching);
        }
        for slot in known.into_values() {
            let gone = Arc::new(RouteInput::gone(self.inputs[slot].route.clone()));
            let before = Some(std::mem::replace(&mut self.inputs[slot], gone));
            attaching.changes.insert(slot, RouteChange { before, is_there: false });
            self.note_problems(slot, |problems| problems.attached = Vec::new());
        }
        seen.extend(&slots);
        if slots.is_empty() {
            self.by_source.remove(&source);
        } else {
            self.by_source.insert(source, slots.into_iter().collect());
        }
        seen
    }

    /// Attaches and resolves the route of a slot again.
    pub(super) fn again<O: Owner>(&mut self, slot: usize, attaching: &mut Attaching<'_, O>) {
        if self.inputs[slot].is_there() {
            self.put(slot, self.inputs[slot].route.clone(), attaching);
        }
    }

    /// Attaches and resolves a route that has a slot, or is given the next one.
    fn put<O: Owner>(&mut self, slot: usize, route: Route, attaching: &mut Attaching<'_, O>) {
        attaching.count += 1;
        let mut problems = Vec::new();
        let Attaching { owner, references, backends, shared, changes, .. } = attaching;
        let input = owner.attach(route, references, (backends, shared), &mut problems);
        self.note_problems(slot, |known| known.attached = problems);
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

    /// The listeners that counted a route when it was judged.
    pub(super) fn counted(&self, slot: usize) -> impl Iterator<Item = usize> {
        self.counted[slot].iter().copied()
    }

    /// Notes what a verdict came with.
    pub(super) fn note_judged(&mut self, slot: usize, judged: JudgedRoute) {
        self.counted[slot] = judged.counted;
        self.note_problems(slot, |problems| problems.judged = judged.problems);
    }

    /// Lets other routes have the slot of one that is gone.
    pub(super) fn release(&mut self, slot: usize) {
        self.note_judged(slot, JudgedRoute::default());
        self.free.push(slot);
    }

    /// Notes something else about what is wrong with a route.
    fn note_problems(&mut self, slot: usize, note: impl FnOnce(&mut Problems)) {
        let mut problems = self.problems.remove(&slot).unwrap_or_default();
        note(&mut problems);
        if !problems.attached.is_empty() || !problems.judged.is_empty() {
            self.problems.insert(slot, problems);
        }
    }

    /// What is wrong with routes.
    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.values().flat_map(|problems| problems.attached.iter().chain(&problems.judged))
    }
}

/// The Services that a route may have to do with.
fn services(route: &Route) -> BTreeSet<ObjectName> {
    let mirrors = route.rules.iter().flat_map(|rule| &rule.mirrors).map(|mirror| &mirror.backend);
    let backends = route.rules.iter().flat_map(|rule| &rule.backends).chain(mirrors);
    backends.map(|backend| backend.name.clone()).collect()
}
