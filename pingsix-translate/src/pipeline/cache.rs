//! The state that one translation keeps for the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::current_problems::CurrentProblems;
use super::diff::ReferentsDiff;
use super::owner::{FullTranslationNeeded, Owner, OwnerDiff, OwnerUpdate, RouteResults};
use super::protected_services::ProtectedServices;
use super::route_slab::{AttachContext, RouteSlab};
use super::shared::Interners;
use super::{Translation, TranslationMode};
use crate::backends::Backends;
use crate::lower::{
    DataPlane, LoweredPlane, LoweredStreams, Lowering, LoweringDiff, RouteChange, RouteRefusals, StreamPlane,
    lower_streams,
};
use crate::model::{ObjectKey, ObjectName, Options};
use crate::references::{ReferenceCache, References};
use crate::shared_map::SharedMap;
use crate::snapshot::Referents;
use crate::status::{Refusals, RouteVerdict};

/// The number of routes up to which an incremental translation is not compared with a full one.
const MIN_ROUTES_FOR_FULL: usize = 32;

/// A translation with the inputs of each stage.
///
/// The next translation repeats each stage for the inputs that differ. [`ReferentsDiff`] has the referents that differ, and
/// the [`Owner`] finds its own objects. A route is attached and resolved again when the route or one of these inputs has
/// changed. Only results that differ are lowered and judged.
#[derive(Debug)]
pub(super) struct TranslationCache<O: Owner> {
    last: O::Snapshot,
    reference_cache: Arc<ReferenceCache>,
    owner: O,
    backends: Backends,
    shared: Interners,
    protected: ProtectedServices,
    slab: RouteSlab,
    planes: Vec<LoweredPlane>,
    streams: Option<LoweredStreams>,
    /// The number of accepted routes of each listener.
    counts: Vec<i32>,
    verdicts: SharedMap<Arc<ObjectKey>, RouteVerdict>,
    problems: CurrentProblems,
}

impl<O: Owner> TranslationCache<O> {
    /// Translates a first snapshot.
    pub(super) fn new(snapshot: &O::Snapshot, options: &Options) -> (Self, Translation) {
        let referents = O::referents(snapshot);
        let references = References::new(referents);
        let mut owner = O::new(snapshot, &references, options);
        let mut backends = Backends::new(options.backend_addresses.clone());
        let (mut shared, mut protected) = (Interners::default(), ProtectedServices::default());
        let (mut slab, mut changes) = (RouteSlab::default(), BTreeMap::new());
        let mut problems = CurrentProblems::default();
        owner.take_routes(snapshot, |owner, source, routes| {
            let attach = &mut |route, shared: &mut _, problems: &mut _| {
                owner.attach(route, &references, (&mut backends, shared), problems)
            };
            let (shared, changes, problems) = (&mut shared, &mut changes, &mut problems);
            slab.replace(source, routes, &mut AttachContext { attach, shared, problems, changes, count: 0 });
        });
        slab.fix_hosts(&mut protected, (owner.listeners(), &backends), &mut changes);
        backends.take_changed();
        let planes = owner.planes().iter().map(|plane| {
            let (routes, backends, policies) = (&*slab.inputs, &backends, owner.policies());
            LoweredPlane::new(&Lowering { plane, routes, backends, policies, options })
        });
        let planes = planes.collect();
        backends.pack();
        slab.pack();
        let mut cache = Self {
            last: snapshot.clone(),
            reference_cache: references.reference_cache().clone(),
            counts: vec![0; owner.listeners().len()],
            owner,
            backends,
            shared,
            protected,
            slab,
            planes,
            streams: None,
            verdicts: SharedMap::default(),
            problems,
        };
        let mut to_judge = changes.into_keys().collect();
        cache.lower_streams(options, &mut to_judge);
        let translation = cache.judge(snapshot, &references, to_judge);
        (cache, translation)
    }

    /// Translates a snapshot that differs from the last one. After [`FullTranslationNeeded`], the cache is unusable, and a
    /// full translation is cheaper.
    pub(super) fn change(
        &mut self,
        snapshot: &O::Snapshot,
        options: &Options,
    ) -> Result<(Translation, TranslationMode), FullTranslationNeeded> {
        let referents = O::referents(snapshot);
        let before = std::mem::replace(&mut self.last, snapshot.clone());
        let diff = ReferentsDiff::between(O::referents(&before), referents);
        if diff.of_own_addresses {
            // Any Service may have an endpoint with such an address.
            return Err(FullTranslationNeeded);
        }
        self.read(&diff, referents);
        let references = References::with(referents, self.reference_cache.clone());
        let limit = MIN_ROUTES_FOR_FULL.max(self.slab.len() / 3);
        let mut to_attach: BTreeSet<usize> = BTreeSet::new();
        let OwnerDiff { routes, has_new_context, policies } = self.owner.update(OwnerUpdate {
            before: &before,
            snapshot,
            diff: &diff,
            references: &references,
            options,
            limit,
            slab: &self.slab,
            planes: &mut self.planes,
            to_attach: &mut to_attach,
        })?;
        // Listeners of ListenerSets that are not allowed come last and have no routes, so they come and go without a
        // full translation.
        self.counts.resize(self.owner.listeners().len(), 0);
        self.find_routes(&diff, &references, &mut to_attach);
        let count = routes.iter().map(|(_, routes)| routes.len().max(1)).sum::<usize>();
        if count + to_attach.len() > limit || self.backends.is_mostly_removed() {
            return Err(FullTranslationNeeded);
        }

        let mut changes = BTreeMap::new();
        let (owner, backends) = (&self.owner, &mut self.backends);
        let mut attaching = AttachContext {
            attach: &mut |route, shared, problems| {
                owner.attach(route, &references, (backends, shared), problems)
            },
            shared: &mut self.shared,
            problems: &mut self.problems,
            changes: &mut changes,
            count: 0,
        };
        for (source, routes) in routes {
            for slot in self.slab.slots_of(&source) {
                to_attach.remove(&slot);
            }
            self.slab.replace(source, routes, &mut attaching);
        }
        for slot in to_attach {
            self.slab.attach_again(slot, &mut attaching);
        }
        let count = attaching.count;
        let context = (self.owner.listeners(), &self.backends);
        self.slab.fix_hosts(&mut self.protected, context, &mut changes);
        if changes.len() > limit {
            return Err(FullTranslationNeeded);
        }
        let backends = self.backends.take_changed();

        let mut to_judge: BTreeSet<usize> = changes.keys().copied().collect();
        let difference = LoweringDiff { routes: &changes, backends: &backends, policies: &policies };
        for (lowered, plane) in self.planes.iter_mut().zip(self.owner.planes()) {
            let (routes, backends, policies) = (&*self.slab.inputs, &self.backends, self.owner.policies());
            let lowering = Lowering { plane, routes, backends, policies, options };
            to_judge.extend(lowered.change(&lowering, difference));
        }
        if has_new_context || self.concern_streams(&changes, &backends) {
            self.lower_streams(options, &mut to_judge);
        }
        let mode = if self.planes.iter().any(|plane| plane.is_lowered_anew) {
            TranslationMode::Full
        } else {
            TranslationMode::Incremental { routes: count }
        };
        Ok((self.judge(snapshot, &references, to_judge), mode))
    }

    /// Judges the policies, these routes and those with other policies, and assembles the translation.
    fn judge(
        &mut self,
        snapshot: &O::Snapshot,
        references: &References<'_>,
        mut to_judge: BTreeSet<usize>,
    ) -> Translation {
        let targets = self.slab.of_targets(self.owner.targets());
        let with_other_policies = self.owner.judge_policies(&targets, references);
        let routes = with_other_policies.iter().filter(|object| object.kind.is_route());
        to_judge.extend(routes.flat_map(|route| self.slab.of_target(route)));
        self.judge_routes(&to_judge);
        self.translation(snapshot, references)
    }

    /// The number of Route documents that the last change wrote.
    pub(super) fn routes_written(&self) -> usize {
        self.planes.iter().map(|plane| plane.routes_written).sum()
    }

    /// Reads changed Secrets and ReferenceGrants.
    fn read(&mut self, diff: &ReferentsDiff, referents: &Referents) {
        if diff.secrets.is_empty() && diff.reference_grants.is_empty() {
            return;
        }
        let reference_cache = Arc::make_mut(&mut self.reference_cache);
        for secret in &diff.secrets {
            reference_cache.read_secret(&secret.name, secret.now.as_ref(), referents);
        }
        if !diff.reference_grants.is_empty() {
            reference_cache.read_grants(referents);
        }
    }

    /// Finds unchanged routes that refer to changed Services or ports.
    fn find_routes(
        &mut self,
        diff: &ReferentsDiff,
        references: &References<'_>,
        to_attach: &mut BTreeSet<usize>,
    ) {
        for service in &diff.services {
            self.backends.remove_service(service);
            to_attach.extend(self.slab.of_service(service));
        }
        let services: BTreeSet<&ObjectName> = diff.services.iter().collect();
        for service in diff.slices.iter().filter(|service| !services.contains(service)) {
            if references.refresh_endpoints(service, &mut self.backends) {
                to_attach.extend(self.slab.of_service(service));
            }
        }
    }

    /// Whether stream documents may differ.
    fn concern_streams(&self, changes: &BTreeMap<usize, RouteChange>, backends: &BTreeSet<usize>) -> bool {
        let mut inputs = changes
            .iter()
            .flat_map(|(slot, change)| std::iter::once(&self.slab.inputs[*slot]).chain(&change.before));
        inputs.any(|input| !input.route.traffic.has_requests())
            || backends.iter().any(|index| !self.backends.get(*index).key.usage.traffic.has_requests())
    }

    /// Lowers all stream documents again.
    fn lower_streams(&mut self, options: &Options, to_judge: &mut BTreeSet<usize>) {
        let Some(stream_listeners) = self.owner.stream_listeners() else { return };
        let streams = lower_streams(&stream_listeners, &self.slab.inputs, &self.backends, options);
        let before = self.streams.iter().flat_map(|before| &before.refused_rules);
        to_judge.extend(before.chain(&streams.refused_rules).map(|(rule, _)| rule.route));
        self.streams = Some(streams);
    }

    /// Judges these routes again.
    fn judge_routes(&mut self, to_judge: &BTreeSet<usize>) {
        if to_judge.is_empty() {
            return;
        }
        let mut refusals = Refusals::default();
        for (number, (lowered, plane)) in self.planes.iter().zip(self.owner.planes()).enumerate() {
            refusals.add_plane(number, plane.served_listeners(self.owner.listeners()));
            for &slot in to_judge {
                let RouteRefusals { rules, zones, served } =
                    lowered.refused_of(plane, slot, &self.slab.inputs);
                refusals.add_rules(number, rules);
                refusals.add_zones(self.owner.listeners(), &zones, served);
            }
        }
        if let Some(streams) = &self.streams {
            let number = self.planes.len();
            refusals.add_plane(number, streams.listeners.iter().copied());
            refusals.add_rules(number, streams.refused_rules.iter().cloned());
        }
        let mut verdicts = Vec::new();
        for &slot in to_judge {
            for listener in self.slab.counted(slot) {
                self.counts[listener] -= 1;
            }
            let input = &self.slab.inputs[slot];
            let key = input.route.key.clone();
            if !input.is_there() {
                self.verdicts.remove(&*key);
                self.slab.release(slot, &mut self.problems);
                continue;
            }
            let (verdict, judged) = self.owner.judge(slot, input, &refusals, &mut self.shared);
            for listener in &judged.counted {
                self.counts[*listener] += 1;
            }
            self.slab.note_judged(slot, judged, &mut self.problems);
            let verdict = verdict.filter(|verdict| self.verdicts.get(&*key) != Some(verdict));
            verdicts.extend(verdict.map(|verdict| (key, verdict)));
        }
        self.verdicts.extend(verdicts);
    }

    fn translation(&mut self, snapshot: &O::Snapshot, references: &References<'_>) -> Translation {
        let is_refused = self.owner.is_refused();
        let data_planes = self.planes.iter().zip(self.owner.planes()).map(|(lowered, plane)| {
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
        let served = RouteResults {
            data_planes: data_planes.collect(),
            stream_planes: stream_planes.collect(),
            counts: &self.counts,
            verdicts: self.verdicts.clone(),
            slab: &self.slab,
            problems: &mut self.problems,
            recomputed: of_others.cloned().chain(of_certificates).collect(),
        };
        let translation = self.owner.translation(snapshot, references, served);
        self.problems.clear_changed();
        translation
    }
}
