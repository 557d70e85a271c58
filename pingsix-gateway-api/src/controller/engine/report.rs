//! Statuses, Events and readiness. A report waits until the publication of its owner has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::selection::{ObjectSource as _, Target};
use pingsix_translate::snapshot::{GatewayClass, Ingress};
use pingsix_translate::status::{Delivery, GatewayVerdict, Problem, Verdicts, judge_pingsix_proxy};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};
use tokio::sync::watch;
use tokio::time::Instant;

use super::settling::Settling;
use super::shared::Shared;
use crate::controller::Progress;
use crate::controller::bundles::Bundles;
use crate::controller::observers::Gates;
use crate::status::{EventBoard, Readers, StatusBoard, Wanted};
use crate::world::Effects;

/// The longest time for which the reports of an owner are held back.
const MAX_REPORT_DELAY: Duration = Duration::from_secs(1);

/// The boards of statuses and Events, readiness, and the statuses that are held back.
pub(in crate::controller) struct Report {
    pub(super) status: StatusBoard,
    pub(super) events: EventBoard,
    pub(super) readers: Readers,
    pub(super) bundles: watch::Receiver<Bundles>,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) gates: Option<Gates>,
    /// Owners with a running publication, and their held-back statuses.
    deferred: BTreeMap<ObjectKey, DeferredStatuses>,
    pub(super) settling: Settling,
    /// The time until which readiness waits for owners with unknown references; `None` before the initial lists have ended.
    pub(super) ready_by: Option<Instant>,
    /// Whether all publications that readiness waits for have been made.
    pub(super) is_ready: bool,
    /// Whether every owner of the initial lists has a report.
    pub(super) is_complete: bool,
    /// The number of times that the verdicts of an owner were assembled.
    #[cfg(test)]
    pub(super) assembled: std::sync::atomic::AtomicUsize,
}

/// Statuses of an owner that are held back until its publication has ended.
#[derive(Debug)]
struct DeferredStatuses {
    /// The objects with a changed report.
    changed: BTreeSet<Arc<ObjectKey>>,
    /// The last reported delivery of its data planes; `None` after a held-back report.
    before: Option<BTreeMap<DataPlaneKey, Delivery>>,
    /// The time since which reports are held back.
    deferred_since: Instant,
    /// Whether the longest time has passed.
    is_late: bool,
}

impl Report {
    pub(in crate::controller) fn new(
        (status, events, readers): (StatusBoard, EventBoard, Readers),
        bundles: watch::Receiver<Bundles>,
        progress: watch::Sender<Progress>,
        gates: Option<Gates>,
    ) -> Self {
        Self {
            status,
            events,
            readers,
            bundles,
            progress,
            gates,
            deferred: BTreeMap::new(),
            settling: Settling::default(),
            ready_by: None,
            is_ready: false,
            is_complete: false,
            #[cfg(test)]
            assembled: std::sync::atomic::AtomicUsize::default(),
        }
    }

    /// Advances the [grace period](Settling). At its end, absent readers count.
    pub(super) fn settle(&mut self, shared: &Shared, now: Instant) {
        if self.settling.advance(self.is_ready && shared.leadership.is_held(), now) {
            for owner in shared.reconciler.ours() {
                self.update_delivery(shared, &owner);
            }
        }
    }

    /// Reports the verdicts on objects of kinds that owners judge.
    fn update_statuses<'o>(&self, shared: &Shared, objects: impl IntoIterator<Item = &'o ObjectKey>) {
        for (object, wanted) in self.wanted(shared, objects) {
            self.set_status(shared, object, wanted.unwrap_or(Wanted::Released));
        }
    }

    /// Reports on the objects of an input, with the changed problems of their decoding.
    pub(super) fn changed(
        &self,
        shared: &Shared,
        effects: Effects,
        decoded: Vec<(ObjectKey, Option<Problem>)>,
    ) {
        let Effects { classes, touched, removed, .. } = effects;
        for key in &removed {
            self.status.removed(key);
        }
        for class in &classes {
            self.update_class(shared, class);
        }
        for key in touched.iter().filter(|key| key.kind == Kind::PingsixProxy) {
            self.update_proxy(shared, key);
        }
        for (key, problem) in decoded {
            self.events.undecodable(&key, problem);
        }
        self.touched(shared, &touched);
        let mut policies = BTreeSet::new();
        for key in touched.into_iter().chain(removed) {
            policies.extend(shared.reconciler.world().policies_of(&Target::Object(key.clone())));
            policies.extend(key.kind.is_policy().then_some(key));
        }
        for policy in &policies {
            self.update_policy(shared, policy);
        }
    }

    /// Repeats the reports on objects that came or that another client changed.
    fn touched(&self, shared: &Shared, touched: &BTreeSet<ObjectKey>) {
        let mut unreported = Vec::new();
        for key in touched {
            if self.settling.is_too_early(shared, key) {
                // Its status differs from the report of this replica.
                self.status.hold(key);
            } else if self.status.contains(key) {
                self.status.touched(key);
            } else {
                unreported.push(key);
            }
        }
        for (key, wanted) in self.wanted(shared, unreported) {
            // Another object of the same name replaced the object before the report, with the same status; or the
            // report came too early.
            if let Some(wanted) = wanted {
                self.set_status(shared, key, wanted);
            }
        }
    }

    /// Ends the reports on deleted objects, even if verdicts still mention them.
    fn set_status(&self, shared: &Shared, object: &ObjectKey, wanted: Wanted) {
        if !shared.reconciler.world().contains(object) || self.waits_for_publication(shared, object) {
            return;
        }
        if self.settling.is_too_early(shared, object) {
            // A new leader must not repeat old statuses.
            self.status.hold(object);
        } else {
            self.status.set(object.clone(), wanted);
        }
    }

    /// Whether `Programmed` of an object is about to change.
    fn waits_for_publication(&self, shared: &Shared, object: &ObjectKey) -> bool {
        matches!(object.kind, Kind::Gateway | Kind::ListenerSet)
            && shared.judging_owner(object).is_some_and(|owner| self.is_deferred(owner))
    }

    /// The wanted status of each of these objects with an owner. The statuses of a Gateway and all its ListenerSets are
    /// assembled once.
    fn wanted<'o>(
        &self,
        shared: &Shared,
        objects: impl IntoIterator<Item = &'o ObjectKey>,
    ) -> Vec<(&'o ObjectKey, Option<Wanted>)> {
        let mut verdicts = BTreeMap::new();
        objects.into_iter().map(|object| (object, self.wanted_of(shared, object, &mut verdicts))).collect()
    }

    fn wanted_of<'e>(
        &self,
        shared: &'e Shared,
        object: &ObjectKey,
        verdicts: &mut BTreeMap<&'e ObjectKey, Option<Verdicts>>,
    ) -> Option<Wanted> {
        let reconciler = &shared.reconciler;
        #[allow(clippy::wildcard_enum_match_arm, reason = "nothing is said of objects of other kinds here")]
        match object.kind {
            kind if kind.is_route() => reconciler.route(object).map(Wanted::Route),
            kind if kind.is_policy() => {
                let mut verdicts = reconciler.policy(object);
                verdicts.extend(reconciler.judged_targets(object).verdicts);
                Some(verdicts).filter(|verdicts| !verdicts.is_empty()).map(Wanted::Policy)
            }
            Kind::Gateway | Kind::ListenerSet => {
                let owner = shared.judging_owner(object)?;
                let verdicts =
                    verdicts.entry(owner).or_insert_with(|| self.verdicts(shared, owner)).as_ref()?;
                if object.kind == Kind::Gateway {
                    verdicts.gateway.clone().map(|verdict| wanted_gateway(shared, verdict))
                } else {
                    verdicts.listener_sets.get(object).cloned().map(Box::new).map(Wanted::ListenerSet)
                }
            }
            Kind::Ingress => {
                let addresses = shared.addresses_of(shared.judging_owner(object)?)?;
                Some(Wanted::Ingress { addresses })
            }
            Kind::PingsixProxy => {
                let proxy = reconciler.world().get::<PingsixProxy>(&object.name)?;
                Some(Wanted::PingsixProxy(Box::new(judge_pingsix_proxy(&proxy))))
            }
            _ => None,
        }
    }

    /// The statuses of an owner's Gateway and ListenerSets, with their delivery.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests count how often this is done"))]
    fn verdicts(&self, shared: &Shared, owner: &ObjectKey) -> Option<Verdicts> {
        #[cfg(test)]
        self.assembled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let planes = shared.reconciler.data_planes(owner);
        shared.reconciler.verdicts(owner, &shared.deliveries.of(&planes))
    }

    /// Reports the verdict on a class. Before the initial lists have ended, its parameters may seem absent, so it has no report.
    pub(super) fn update_class(&self, shared: &Shared, class: &ObjectKey) {
        let is_listed = self.ready_by.is_some();
        if !is_listed || shared.reconciler.world().get::<GatewayClass>(&class.name).is_none() {
            return;
        }
        let verdict = shared.reconciler.class(class).cloned();
        let problems = verdict.as_ref().map(|verdict| verdict.problems.clone()).unwrap_or_default();
        self.events.set(class, problems);
        if let Some(verdict) = verdict {
            let runs_none = shared.managed.provisioning.is_none();
            let verdict = if runs_none { verdict.without_data_planes() } else { verdict };
            let verdict = verdict.with_bundles(self.bundles.borrow().as_ref());
            self.status.set(class.clone(), Wanted::GatewayClass(Box::new(verdict)));
        }
    }

    /// Reports the targets of a policy that lead to no object. Before the initial lists have ended, targets may seem absent.
    fn update_policy(&self, shared: &Shared, policy: &ObjectKey) {
        if self.ready_by.is_none() {
            return;
        }
        self.events.set(policy, shared.reconciler.judged_targets(policy).problems);
        let wanted = self.wanted_of(shared, policy, &mut BTreeMap::new());
        // A policy without a verdict may be that of another controller.
        if wanted.is_some() || self.status.contains(policy) {
            self.set_status(shared, policy, wanted.unwrap_or(Wanted::Released));
        }
    }

    pub(super) fn update_policies(&self, shared: &Shared) {
        let world = shared.reconciler.world();
        for policy in Kind::policies().flat_map(|kind| world.keys_of(kind)) {
            self.update_policy(shared, &policy);
        }
    }

    /// A PingsixProxy is the only source of its own status.
    fn update_proxy(&self, shared: &Shared, key: &ObjectKey) {
        let Some(proxy) = shared.reconciler.world().get::<PingsixProxy>(&key.name) else { return };
        let verdict = judge_pingsix_proxy(&proxy);
        self.events.set(key, verdict.problems.clone());
        self.status.set(key.clone(), Wanted::PingsixProxy(Box::new(verdict)));
    }

    pub(super) fn update_classes(&self, shared: &Shared) {
        for class in shared.reconciler.world().keys::<GatewayClass>() {
            self.update_class(shared, &class);
        }
    }

    /// Addresses are in the statuses of Gateways and Ingresses.
    pub(super) fn update_all_addresses(&self, shared: &Shared) {
        let changed = self.status.keys();
        // The status of an Ingress holds addresses alone.
        let ingresses = shared.reconciler.world().keys::<Ingress>();
        let judged = ingresses.iter().filter(|key| shared.judging_owner(key).is_some());
        self.update_statuses(
            shared,
            changed.iter().filter(|key| matches!(key.kind, Kind::Gateway | Kind::Ingress)).chain(judged),
        );
    }

    /// Reports the delivery of an owner's data planes.
    pub(super) fn update_delivery(&self, shared: &Shared, owner: &ObjectKey) {
        if self.is_deferred(owner) {
            return;
        }
        let Some(Verdicts { gateway: Some(gateway), listener_sets, .. }) = self.verdicts(shared, owner)
        else {
            return;
        };
        self.set_status(shared, owner, wanted_gateway(shared, gateway));
        for (set, verdict) in listener_sets {
            if shared.judging_owner(&set) == Some(owner) {
                self.set_status(shared, &set, Wanted::ListenerSet(Box::new(verdict)));
            }
        }
    }

    /// Holds back the reports of an owner from the begin of its publication. Reports that are held back already keep
    /// their time limit.
    pub(super) fn defer_statuses(
        &mut self,
        shared: &Shared,
        owner: &ObjectKey,
        mut changed: BTreeSet<Arc<ObjectKey>>,
        started: Instant,
    ) {
        let delivery = shared.deliveries.of(&shared.reconciler.data_planes(owner));
        let (mut before, mut deferred_since, mut is_late) = (Some(delivery), started, false);
        if let Some(earlier) = self.deferred.remove(owner) {
            changed.extend(earlier.changed);
            (before, deferred_since, is_late) = (None, earlier.deferred_since, earlier.is_late);
        }
        self.deferred.insert(owner.clone(), DeferredStatuses { changed, before, deferred_since, is_late });
    }

    /// Ends a publication of an owner, and releases its reports.
    pub(super) fn release_deferred(&mut self, shared: &Shared, owner: &ObjectKey) {
        let Some(DeferredStatuses { mut changed, before, .. }) = self.deferred.remove(owner) else { return };
        let planes = shared.reconciler.data_planes(owner);
        if before != Some(shared.deliveries.of(&planes)) {
            self.update_delivery(shared, owner);
            changed.retain(|object| {
                !matches!(object.kind, Kind::Gateway | Kind::ListenerSet)
                    || shared.judging_owner(object) != Some(owner)
            });
        }
        self.update_statuses(shared, changed.iter().map(|object| &**object));
    }

    /// Reports the delivery of an owner's data planes, and makes its next report complete.
    pub(super) fn update_delivery_again(&mut self, shared: &Shared, owner: &ObjectKey) {
        self.forget_reported_delivery(owner);
        self.update_delivery(shared, owner);
    }

    /// Reports the changed state of an owner's infrastructure.
    pub(super) fn provisioned(&mut self, shared: &Shared, owner: &ObjectKey) {
        self.update_delivery_again(shared, owner);
        if owner.kind == Kind::IngressClass {
            let ingresses = shared.reconciler.world().keys::<Ingress>();
            let judged = ingresses.iter().filter(|ingress| shared.judging_owner(ingress) == Some(owner));
            self.update_statuses(shared, judged);
        }
    }

    /// Forgets the last reported delivery, so that the next report is complete.
    fn forget_reported_delivery(&mut self, owner: &ObjectKey) {
        if let Some(deferred) = self.deferred.get_mut(owner) {
            deferred.before = None;
        }
    }

    /// Releases the reports of an owner if they are held back for too long.
    pub(super) fn release_overdue(&mut self, shared: &Shared, owner: &ObjectKey) {
        self.forget_reported_delivery(owner);
        let Some(deferred) = self.deferred.get_mut(owner).filter(|deferred| deferred.is_late) else {
            return;
        };
        let changed = std::mem::take(&mut deferred.changed);
        self.update_delivery(shared, owner);
        self.update_statuses(shared, changed.iter().map(|object| &**object));
    }

    /// Objects whose reports are held back.
    fn deferred_objects(&self) -> impl Iterator<Item = &ObjectKey> {
        self.deferred.values().flat_map(|deferred| &deferred.changed).map(|object| &**object)
    }

    /// Whether the statuses of an owner's data planes wait.
    fn is_deferred(&self, owner: &ObjectKey) -> bool {
        self.deferred.get(owner).is_some_and(|deferred| !deferred.is_late)
    }

    /// Owners whose reports have been held back for the longest time.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<ObjectKey> {
        let late = self.deferred.iter_mut().filter(|(_, deferred)| {
            !deferred.is_late && now.duration_since(deferred.deferred_since) >= MAX_REPORT_DELAY
        });
        let late = late.map(|(owner, deferred)| {
            deferred.is_late = true;
            owner.clone()
        });
        late.collect()
    }

    /// Releases statuses of an earlier process whose object has no owner any more.
    pub(super) fn release_what_is_left(&self, controller: &str) {
        let mut changed: BTreeSet<ObjectKey> = self.status.keys().into_iter().collect();
        // Other targets may lack the publication, so the report was held back.
        changed.extend(self.deferred_objects().cloned());
        for key in self.readers.with_entries_of(controller) {
            if !changed.contains(&key) {
                self.status.set(key, Wanted::Released);
            }
        }
    }
}

fn wanted_gateway(shared: &Shared, mut verdict: GatewayVerdict) -> Wanted {
    shared.managed.hinder(&shared.reconciler, &mut verdict);
    let addresses = shared.addresses_of(&verdict.key);
    Wanted::Gateway { verdict: Box::new(verdict), addresses }
}
