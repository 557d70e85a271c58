//! What a translation leaves for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::seen::{Difference, SeenFrame, SeenRoutes};
use super::{Attached, Frame, JudgedRoute, JudgedRoutes, add_refusals, add_streams, judge_one};
use crate::lower::{Changed, LoweredPlane, LoweredStreams, RouteChange, RouteInput, Stale, lower_streams};
use crate::object::{Kind, ObjectKey, ObjectName};
use crate::options::Options;
use crate::resolve::{Backends, References};
use crate::route::{
    Route, normalise_grpc_route, normalise_http_route, normalise_tcp_route, normalise_tls_route,
    normalise_udp_route,
};
use crate::shared_map::SharedMap;
use crate::snapshot::Snapshot;
use crate::translation::{DataPlane, StreamPlane, Translation};
use crate::verdict::{Problem, Refusals, RouteVerdict, refuse_gateway};

/// Below how many routes nobody asks whether it would be cheaper to translate everything.
const FEW: usize = 32;

/// A translation with what it was made of.
///
/// Routes are known by **slots**, which they keep while they are there; at first they are the places in the snapshot.
/// Nothing that comes out depends on the order of slots.
#[derive(Debug)]
pub(super) struct Memo {
    seen_frame: SeenFrame,
    seen: SeenRoutes,
    frame: Frame,
    backends: Backends,
    /// By slot.
    inputs: Vec<Arc<RouteInput>>,
    /// By slot.
    details: Vec<Details>,
    slots: BTreeMap<ObjectKey, usize>,
    free: Vec<usize>,
    /// Slots of the routes that refer to a Service.
    of_service: BTreeMap<ObjectName, BTreeSet<usize>>,
    /// Slots with something wrong.
    with_problems: BTreeSet<usize>,
    planes: Vec<LoweredPlane>,
    streams: Option<LoweredStreams>,
    /// How many accepted routes each listener has.
    attached: Vec<i32>,
    verdicts: SharedMap<Arc<ObjectKey>, RouteVerdict>,
}

/// What else is known about a route.
#[derive(Debug, Default)]
struct Details {
    /// What was wrong before it was judged.
    problems: Vec<Problem>,
    judged: JudgedRoute,
}

impl Memo {
    pub(super) fn new(
        snapshot: &Snapshot,
        judged: JudgedRoutes,
        planes: Vec<LoweredPlane>,
        translation: &Translation,
    ) -> Self {
        let JudgedRoutes { attached: Attached { frame, backends, inputs, problems }, streams, judged } =
            judged;
        let mut attached = vec![0; frame.listeners.all.len()];
        let mut of_service: BTreeMap<ObjectName, BTreeSet<usize>> = BTreeMap::new();
        let mut slots = BTreeMap::new();
        let mut with_problems = BTreeSet::new();
        let mut details = Vec::with_capacity(inputs.len());
        for (slot, ((input, problems), judged)) in inputs.iter().zip(problems).zip(judged).enumerate() {
            slots.insert((*input.route.key).clone(), slot);
            for service in services(&input.route) {
                of_service.entry(service).or_default().insert(slot);
            }
            for listener in &judged.counted {
                attached[*listener] += 1;
            }
            let details_of_route = Details { problems, judged };
            if details_of_route.has_problems() {
                with_problems.insert(slot);
            }
            details.push(details_of_route);
        }
        Self {
            seen_frame: SeenFrame::new(snapshot),
            seen: SeenRoutes::new(snapshot),
            frame,
            backends,
            inputs,
            details,
            slots,
            free: Vec::new(),
            of_service,
            with_problems,
            planes,
            streams,
            attached,
            verdicts: translation.verdicts.routes.clone(),
        }
    }

    /// Translates a snapshot that differs from the last one. When that is not to be had for less than a full
    /// translation, nothing can be said of what is left.
    pub(super) fn change(&mut self, snapshot: &Snapshot, options: &Options) -> Result<Translation, Stale> {
        if !self.seen_frame.is_same(snapshot) {
            return Err(Stale);
        }
        let references = References::new(&snapshot.referents);
        let mut services: BTreeSet<ObjectName> = BTreeSet::new();
        let slices = self.seen.slices.update(&snapshot.referents.endpoint_slices);
        services.extend(slices.into_iter().map(|difference| difference.name));
        let other = self.seen.services.update(&snapshot.referents.services);
        services.extend(other.into_iter().map(|difference| difference.name));
        let routes = self.routes_that_changed(snapshot);
        let mut slots: BTreeSet<usize> = BTreeSet::new();
        for service in &services {
            self.backends.forget(service);
            slots.extend(self.of_service.get(service).into_iter().flatten());
        }
        let few = FEW.max(self.slots.len() / 3);
        if routes.len() + slots.len() > few || self.backends.is_overgrown() {
            return Err(Stale);
        }

        let mut changes: BTreeMap<usize, RouteChange> = BTreeMap::new();
        for (key, route) in routes {
            if let Some(slot) = self.replace(key, route, &references, &mut changes) {
                slots.remove(&slot);
            }
        }
        for slot in slots {
            if self.inputs[slot].is_there() {
                let route = self.inputs[slot].route.clone();
                self.put(slot, route, &references, &mut changes);
            }
        }
        let backends = self.backends.take_changed();

        let mut told: BTreeSet<usize> = changes.keys().copied().collect();
        let what = Changed { routes: &changes, backends: &backends };
        for (lowered, plane) in self.planes.iter_mut().zip(&self.frame.planes) {
            told.extend(lowered.change(plane, &self.inputs, &self.backends, options, what)?);
        }
        self.lower_streams(&changes, &backends, options, &mut told);
        self.judge_routes(&told);
        Ok(self.translation(snapshot, options))
    }

    /// The routes that are not those of the last time, normalised, or nothing for one that is gone.
    fn routes_that_changed(&mut self, snapshot: &Snapshot) -> Vec<(ObjectKey, Option<Route>)> {
        fn changed<K>(
            kind: Kind,
            differences: Vec<Difference<Arc<K>>>,
            normalise: impl Fn(&K) -> Route,
            all: &mut Vec<(ObjectKey, Option<Route>)>,
        ) {
            all.extend(differences.into_iter().map(|Difference { name, now }| {
                (ObjectKey { kind, name }, now.map(|object| normalise(&object)))
            }));
        }
        let mut all = Vec::new();
        let seen = &mut self.seen;
        changed(Kind::HttpRoute, seen.http.update(&snapshot.http_routes), normalise_http_route, &mut all);
        changed(Kind::GrpcRoute, seen.grpc.update(&snapshot.grpc_routes), normalise_grpc_route, &mut all);
        changed(Kind::TlsRoute, seen.tls.update(&snapshot.tls_routes), normalise_tls_route, &mut all);
        changed(Kind::TcpRoute, seen.tcp.update(&snapshot.tcp_routes), normalise_tcp_route, &mut all);
        changed(Kind::UdpRoute, seen.udp.update(&snapshot.udp_routes), normalise_udp_route, &mut all);
        all
    }

    /// Puts a route in the place of the one with its name, or takes that away. Returns its slot.
    fn replace(
        &mut self,
        key: ObjectKey,
        route: Option<Route>,
        references: &References<'_>,
        changes: &mut BTreeMap<usize, RouteChange>,
    ) -> Option<usize> {
        let known = self.slots.get(&key).copied();
        if let Some(slot) = known {
            for service in services(&self.inputs[slot].route) {
                if let Some(slots) = self.of_service.get_mut(&service) {
                    slots.remove(&slot);
                    if slots.is_empty() {
                        self.of_service.remove(&service);
                    }
                }
            }
        }
        match (known, route) {
            (None, None) => None,
            (Some(slot), None) => {
                let gone = Arc::new(RouteInput::gone(self.inputs[slot].route.clone()));
                let before = Some(std::mem::replace(&mut self.inputs[slot], gone));
                changes.insert(slot, RouteChange { before, is_there: false });
                self.details[slot].problems = Vec::new();
                self.slots.remove(&key);
                Some(slot)
            }
            (known, Some(route)) => {
                let route = Arc::new(route);
                let slot = known.or_else(|| self.free.pop()).unwrap_or(self.inputs.len());
                for service in services(&route) {
                    self.of_service.entry(service).or_default().insert(slot);
                }
                if known.is_none() {
                    self.slots.insert(key, slot);
                    let gone = Arc::new(RouteInput::gone(route.clone()));
                    if slot == self.inputs.len() {
                        self.inputs.push(gone);
                        self.details.push(Details::default());
                    } else {
                        self.inputs[slot] = gone;
                    }
                    changes.insert(slot, RouteChange { before: None, is_there: true });
                }
                self.put(slot, route, references, changes);
                Some(slot)
            }
        }
    }

    /// Attaches and resolves the route of a slot again.
    fn put(
        &mut self,
        slot: usize,
        route: Arc<Route>,
        references: &References<'_>,
        changes: &mut BTreeMap<usize, RouteChange>,
    ) {
        let mut problems = Vec::new();
        let input = self.frame.attach(route, references, &mut self.backends, &mut problems);
        if self.details[slot].problems != problems {
            self.details[slot].problems = problems;
            self.note_problems(slot);
        }
        if *self.inputs[slot] != input {
            let before = std::mem::replace(&mut self.inputs[slot], Arc::new(input));
            changes.entry(slot).or_insert(RouteChange { before: Some(before), is_there: true });
        }
    }

    fn note_problems(&mut self, slot: usize) {
        if self.details[slot].has_problems() {
            self.with_problems.insert(slot);
        } else {
            self.with_problems.remove(&slot);
        }
    }

    /// Lowers stream documents again if something about them may be different.
    fn lower_streams(
        &mut self,
        changes: &BTreeMap<usize, RouteChange>,
        backends: &BTreeSet<usize>,
        options: &Options,
        told: &mut BTreeSet<usize>,
    ) {
        let Some(streams) = &mut self.streams else { return };
        let of_stream = |input: &RouteInput| !input.route.traffic.has_requests();
        let route_changed = changes.iter().any(|(slot, change)| {
            of_stream(&self.inputs[*slot]) || change.before.as_ref().is_some_and(|before| of_stream(before))
        });
        let backend_changed =
            || backends.iter().any(|index| !self.backends.get(*index).key.usage.traffic.has_requests());
        if !route_changed && !backend_changed() {
            return;
        }
        let Frame { gateway, listeners, .. } = &self.frame;
        let refused_before = streams.refused_rules.iter().map(|(rule, _)| rule.route);
        told.extend(refused_before);
        *streams = lower_streams(&gateway.name, &listeners.all, &self.inputs, &self.backends, options);
        told.extend(streams.refused_rules.iter().map(|(rule, _)| rule.route));
    }

    /// Judges these routes again.
    fn judge_routes(&mut self, told: &BTreeSet<usize>) {
        let mut refusals = Refusals::default();
        for (number, (lowered, plane)) in self.planes.iter().zip(&self.frame.planes).enumerate() {
            for &slot in told {
                let of_route = lowered.refused_of(plane, slot, &self.inputs[slot]);
                add_refusals(&mut refusals, number, plane, &self.frame.listeners, of_route);
            }
        }
        if let Some(streams) = &self.streams {
            add_streams(&mut refusals, self.planes.len(), streams);
        }
        let mut gone = Vec::new();
        for &slot in told {
            let input = &self.inputs[slot];
            for listener in &self.details[slot].judged.counted {
                self.attached[*listener] -= 1;
            }
            let key = input.route.key.clone();
            if input.is_there() {
                let (verdict, judged) = judge_one(slot, input, &refusals);
                for listener in &judged.counted {
                    self.attached[*listener] += 1;
                }
                self.details[slot].judged = judged;
                if self.verdicts.get(&*key) != Some(&verdict) {
                    self.verdicts.insert(key, verdict);
                }
            } else {
                self.details[slot].judged = JudgedRoute::default();
                gone.push((slot, key));
            }
            self.note_problems(slot);
        }
        for (slot, key) in gone {
            self.verdicts.remove(&*key);
            self.free.push(slot);
        }
    }

    fn translation(&self, snapshot: &Snapshot, options: &Options) -> Translation {
        let is_refused = refuse_gateway(&snapshot.gateway).is_some();
        let data_planes = self.planes.iter().zip(&self.frame.planes).map(|(lowered, plane)| {
            let data_plane = if is_refused { DataPlane::default() } else { lowered.data_plane().clone() };
            (plane.key.clone(), data_plane)
        });
        let stream_planes = self.streams.iter().map(|streams| {
            (streams.key.clone(), if is_refused { StreamPlane::default() } else { streams.plane.clone() })
        });
        let mut problems: Vec<Problem> = Vec::new();
        for slot in &self.with_problems {
            let Details { problems: resolving, judged } = &self.details[*slot];
            problems.extend(resolving.iter().chain(&judged.problems).cloned());
        }
        problems.extend(self.streams.iter().flat_map(|streams| &streams.problems).cloned());
        let inputs = if self.frame.policies.is_empty() { Vec::new() } else { self.inputs_in_order() };
        let verdicts =
            self.frame.judge(snapshot, options, &inputs, &self.attached, self.verdicts.clone(), problems);
        Translation { data_planes: data_planes.collect(), stream_planes: stream_planes.collect(), verdicts }
    }

    /// The routes in the order of the snapshot.
    fn inputs_in_order(&self) -> Vec<Arc<RouteInput>> {
        let seen = &self.seen;
        let http = seen.http.names().map(|name| (Kind::HttpRoute, name));
        let grpc = seen.grpc.names().map(|name| (Kind::GrpcRoute, name));
        let tls = seen.tls.names().map(|name| (Kind::TlsRoute, name));
        let tcp = seen.tcp.names().map(|name| (Kind::TcpRoute, name));
        let udp = seen.udp.names().map(|name| (Kind::UdpRoute, name));
        let all = http.chain(grpc).chain(tls).chain(tcp).chain(udp);
        let slots = all.filter_map(|(kind, name)| self.slots.get(&ObjectKey { kind, name: name.clone() }));
        slots.map(|slot| self.inputs[*slot].clone()).collect()
    }
}

impl Details {
    fn has_problems(&self) -> bool {
        !self.problems.is_empty() || !self.judged.problems.is_empty()
    }
}

/// The Services that a route may have to do with.
fn services(route: &Route) -> BTreeSet<ObjectName> {
    let own = &route.key.name.namespace;
    let mirrors = route.rules.iter().flat_map(|rule| &rule.mirrors).map(|mirror| &mirror.backend);
    let backends = route.rules.iter().flat_map(|rule| &rule.backends).chain(mirrors);
    backends
        .map(|backend| {
            let namespace = backend.namespace.as_deref().map_or_else(|| own.clone(), Arc::from);
            ObjectName::new(namespace, backend.name.as_str())
        })
        .collect()
}
