//! What a translation leaves for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::frame::{Frame, JudgedBefore};
use super::seen::{News, Seen};
use super::shared::Shared;
use super::slots::{Attaching, Slots};
use super::{Attached, JudgedRoutes, Translation, add_refusals, add_streams, judge_one};
use crate::backends::Backends;
use crate::lower::{
    Changed, DataPlane, LoweredPlane, LoweredStreams, RouteChange, Stale, StreamPlane, lower_streams,
};
use crate::model::{ObjectKey, ObjectName, Options};
use crate::references::{Reading, References, labels_of};
use crate::shared_map::SharedMap;
use crate::snapshot::Snapshot;
use crate::status::{Refusals, RouteVerdict};

/// Below how many routes nobody asks whether it would be cheaper to translate everything.
const FEW: usize = 32;

/// A translation with what it was made of.
///
/// Each stage is a function of what stands here and of the snapshot, and is done again for what is different of that:
/// [`Seen`] tells which objects are; those that everything depends on give another [`Frame`], which has to take routes
/// like the one before; a route is attached and resolved again when it, or something it was resolved by, is another;
/// and what comes out different is lowered and judged.
#[derive(Debug)]
pub(super) struct Memo {
    seen: Seen,
    reading: Arc<Reading>,
    frame: Frame,
    backends: Backends,
    shared: Shared,
    slots: Slots,
    planes: Vec<LoweredPlane>,
    streams: Option<LoweredStreams>,
    /// How many accepted routes each listener has.
    counts: Vec<i32>,
    verdicts: SharedMap<Arc<ObjectKey>, RouteVerdict>,
}

impl Memo {
    pub(super) fn new(
        snapshot: &Snapshot,
        judged: JudgedRoutes,
        planes: Vec<LoweredPlane>,
        translation: &Translation,
    ) -> Self {
        let JudgedRoutes { attached, streams, judged } = judged;
        let Attached { reading, frame, mut backends, shared, inputs, problems } = attached;
        backends.pack();
        let mut counts = vec![0; frame.listeners.all.len()];
        let mut slots = Slots::default();
        for ((input, problems), judged) in inputs.into_iter().zip(problems).zip(judged) {
            for listener in &judged.counted {
                counts[*listener] += 1;
            }
            slots.push(input, problems, judged);
        }
        slots.pack();
        let verdicts = translation.verdicts.routes.clone();
        let seen = Seen::new(snapshot);
        Self { seen, reading, frame, backends, shared, slots, planes, streams, counts, verdicts }
    }

    /// Translates a snapshot that differs from the last one; also says how many routes were attached. When that is not
    /// to be had for less than a full translation, nothing can be said of what is left.
    pub(super) fn change(
        &mut self,
        snapshot: &Snapshot,
        options: &Options,
    ) -> Result<(Translation, usize), Stale> {
        let news = self.seen.update(snapshot);
        if news.of_own_addresses {
            // Any Service may have such an endpoint.
            return Err(Stale);
        }
        self.read(&news, snapshot);
        let references = References::with(&snapshot.referents, self.reading.clone());
        let mut again: BTreeSet<usize> = BTreeSet::new();
        let is_reframed = concerns_frame(&news, snapshot);
        if is_reframed {
            self.reframe(Frame::new(snapshot, &references, options), &mut again)?;
        }
        self.find_routes(&news, &references, &mut again);
        let few = FEW.max(self.slots.len() / 3);
        if news.routes.len() + again.len() > few || self.backends.is_overgrown() {
            return Err(Stale);
        }

        let mut attaching = Attaching {
            frame: &self.frame,
            references: &references,
            backends: &mut self.backends,
            shared: &mut self.shared,
            changes: BTreeMap::new(),
            count: 0,
        };
        for (key, route) in news.routes {
            if let Some(slot) = self.slots.replace(&key, route, &mut attaching) {
                again.remove(&slot);
            }
        }
        for slot in again {
            self.slots.again(slot, &mut attaching);
        }
        let Attaching { changes, count, .. } = attaching;
        let backends = self.backends.take_changed();

        let mut told: BTreeSet<usize> = changes.keys().copied().collect();
        let what = Changed { routes: &changes, backends: &backends };
        for (lowered, plane) in self.planes.iter_mut().zip(&self.frame.planes) {
            told.extend(lowered.change(plane, &self.slots.inputs, &self.backends, options, what)?);
        }
        if is_reframed || self.concern_streams(&changes, &backends) {
            self.lower_streams(options, &mut told);
        }
        self.judge_routes(&told);
        Ok((self.translation(snapshot, &references), count))
    }

    /// Reads what is different of what is read once.
    fn read(&mut self, news: &News, snapshot: &Snapshot) {
        if news.secrets.is_empty() && news.reference_grants.is_empty() {
            return;
        }
        let reading = Arc::make_mut(&mut self.reading);
        for secret in &news.secrets {
            reading.read_secret(&secret.name, secret.now.as_ref(), &snapshot.referents);
        }
        if !news.reference_grants.is_empty() {
            reading.read_grants(&snapshot.referents);
        }
    }

    /// Puts another frame in the place of the one before. `again` gets the routes for which policies demand something
    /// else.
    fn reframe(&mut self, frame: Frame, again: &mut BTreeSet<usize>) -> Result<(), Stale> {
        if !frame.takes_routes_like(&self.frame) {
            return Err(Stale);
        }
        let services = frame.policies.changed(&self.frame.policies);
        again.extend(services.into_iter().flat_map(|service| self.slots.of_service(service)));
        let planes = self.frame.planes.iter().zip(&frame.planes);
        for (lowered, (before, now)) in self.planes.iter_mut().zip(planes) {
            lowered.change_certificates(&before.certificates, &now.certificates)?;
        }
        self.frame = frame;
        Ok(())
    }

    /// Finds the routes that are not other ones, but may be attached or resolve to something else.
    ///
    /// Attaching looks at the labels of a route's namespace, and resolving at the Services it refers to, the ports that
    /// were looked up, and the ReferenceGrants in the namespaces of these Services that are for the route's.
    fn find_routes(&mut self, news: &News, references: &References<'_>, again: &mut BTreeSet<usize>) {
        for namespace in &news.namespaces {
            let name = &namespace.name;
            let [before, now] =
                [&namespace.before, &namespace.now].map(|object| labels_of(name, object.as_deref()));
            if self.frame.listeners.tell_apart(name, &before, &now) {
                again.extend(self.slots.of_namespace(name));
            }
        }
        for grant in &news.reference_grants {
            let into = &grant.name.namespace;
            let from = [&grant.before, &grant.now].into_iter().flatten().flat_map(|grant| &grant.spec.from);
            let namespaces: BTreeSet<&str> = from.map(|from| from.namespace.as_str()).collect();
            for from in namespaces.into_iter().map(Arc::from) {
                again.extend(self.slots.crossing(&from, into));
            }
        }
        for service in &news.services {
            self.backends.forget(service);
            again.extend(self.slots.of_service(service));
        }
        let services: BTreeSet<&ObjectName> = news.services.iter().collect();
        for service in news.slices.iter().filter(|service| !services.contains(service)) {
            if references.look_again(service, &mut self.backends) {
                again.extend(self.slots.of_service(service));
            }
        }
    }

    /// Whether some stream documents may be different.
    fn concern_streams(&self, changes: &BTreeMap<usize, RouteChange>, backends: &BTreeSet<usize>) -> bool {
        let mut inputs = changes
            .iter()
            .flat_map(|(slot, change)| std::iter::once(&self.slots.inputs[*slot]).chain(&change.before));
        inputs.any(|input| !input.route.traffic.has_requests())
            || backends.iter().any(|index| !self.backends.get(*index).key.usage.traffic.has_requests())
    }

    /// Lowers all stream documents again.
    fn lower_streams(&mut self, options: &Options, told: &mut BTreeSet<usize>) {
        let Some(streams) = &mut self.streams else { return };
        let refused_before = streams.refused_rules.iter().map(|(rule, _)| rule.route);
        told.extend(refused_before);
        *streams = lower_streams(&self.frame.listened(), &self.slots.inputs, &self.backends, options);
        told.extend(streams.refused_rules.iter().map(|(rule, _)| rule.route));
    }

    /// Judges these routes again.
    fn judge_routes(&mut self, told: &BTreeSet<usize>) {
        if told.is_empty() {
            return;
        }
        let mut refusals = Refusals::default();
        for (number, (lowered, plane)) in self.planes.iter().zip(&self.frame.planes).enumerate() {
            refusals.add_plane(number, plane.listeners());
            for &slot in told {
                let of_route = lowered.refused_of(plane, slot, &self.slots.inputs);
                add_refusals(&mut refusals, number, &self.frame.listeners, of_route);
            }
        }
        if let Some(streams) = &self.streams {
            add_streams(&mut refusals, self.planes.len(), streams);
        }
        for &slot in told {
            for listener in self.slots.counted(slot) {
                self.counts[listener] -= 1;
            }
            let input = &self.slots.inputs[slot];
            let key = input.route.key.clone();
            if !input.is_there() {
                self.verdicts.remove(&*key);
                self.slots.release(slot);
                continue;
            }
            let (verdict, judged) = judge_one(slot, input, &refusals, &mut self.shared);
            for listener in &judged.counted {
                self.counts[*listener] += 1;
            }
            self.slots.note_judged(slot, judged);
            if self.verdicts.get(&*key) != Some(&verdict) {
                self.verdicts.insert(key, verdict);
            }
        }
    }

    fn translation(&self, snapshot: &Snapshot, references: &References<'_>) -> Translation {
        let is_refused = self.frame.refused.is_some();
        let data_planes = self.planes.iter().zip(&self.frame.planes).map(|(lowered, plane)| {
            let data_plane = if is_refused { DataPlane::default() } else { lowered.data_plane().clone() };
            (plane.key.clone(), data_plane)
        });
        let stream_planes = self.streams.iter().map(|streams| {
            (streams.key.clone(), if is_refused { StreamPlane::default() } else { streams.plane.clone() })
        });
        let of_streams = self.streams.iter().flat_map(|streams| &streams.problems);
        let of_certificates = self.planes.iter().flat_map(LoweredPlane::refused_certificates);
        let of_certificates = of_certificates.map(|(owner, refusal)| refusal.of(owner));
        let of_shares = self.planes.iter().flat_map(LoweredPlane::problems);
        let of_others = of_streams.chain(of_shares);
        let problems = self.slots.problems().chain(of_others).cloned().chain(of_certificates).collect();
        let inputs = self.slots.of_services(self.frame.policies.targets());
        let judged = JudgedBefore { counts: &self.counts, routes: self.verdicts.clone(), problems };
        let verdicts = self.frame.judge(snapshot, references, &inputs, judged);
        Translation {
            data_planes: data_planes.collect(),
            stream_planes: stream_planes.collect(),
            infrastructure: self.frame.infrastructure.clone(),
            attached: self.frame.parameters.attached().cloned(),
            has_unusable_parameters: self.frame.has_unusable_parameters(),
            verdicts,
        }
    }
}

/// Whether something is different that listeners and policies are judged by. Of Namespaces, those of ListenerSets are.
fn concerns_frame(news: &News, snapshot: &Snapshot) -> bool {
    let has_listener_set = |namespace: &Arc<str>| {
        let first = ObjectName::new(namespace.clone(), "");
        let mut sets = snapshot.listener_sets.from_key(&first);
        sets.next().is_some_and(|(name, _)| name.namespace == *namespace)
    };
    news.of_frame
        || !news.secrets.is_empty()
        || !news.reference_grants.is_empty()
        || news.namespaces.iter().any(|namespace| has_listener_set(&namespace.name))
}
