//! Statuses, Events and readiness. A report waits until the publication of its owner has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{
    BackendTrafficPolicy, GatewayClass, Ingress, SecurityPolicy, TrafficPolicy,
};
use pingsix_translate::status::{Address, Delivery, GatewayVerdict, Verdicts, judge_pingsix_proxy};
use pingsix_translate::{DataPlaneKey, Kind, ObjectKey};
use tokio::sync::watch;
use tokio::time::Instant;

use super::View;
use super::settling::Settling;
use crate::controller::Progress;
use crate::controller::bundles::Bundles;
use crate::controller::observers::Gates;
use crate::status::{EventBoard, Readers, StatusBoard, Wanted};

/// The longest time for which the reports of an owner are held back.
const MAX_REPORT_DELAY: Duration = Duration::from_secs(1);

/// The boards of statuses and Events, readiness, and the statuses that are held back.
pub(super) struct Report {
    pub(super) status: StatusBoard,
    pub(super) events: EventBoard,
    pub(super) readers: Readers,
    /// The addresses of data planes from the options.
    pub(super) addresses: watch::Receiver<Option<Vec<Address>>>,
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
    pub(super) fn new(
        (status, events, readers): (StatusBoard, EventBoard, Readers),
        addresses: watch::Receiver<Option<Vec<Address>>>,
        bundles: watch::Receiver<Bundles>,
        progress: watch::Sender<Progress>,
        gates: Option<Gates>,
    ) -> Self {
        Self {
            status,
            events,
            readers,
            addresses,
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
    pub(super) fn settle(&mut self, view: View<'_>, leads: bool, now: Instant) {
        if self.settling.advance(self.is_ready && leads, now) {
            for owner in view.reconciler.ours() {
                self.update_delivery(view, &owner);
            }
        }
    }

    /// Reports the verdicts on objects of kinds that owners judge.
    pub(super) fn update_statuses<'o>(
        &self,
        view: View<'_>,
        objects: impl IntoIterator<Item = &'o ObjectKey>,
    ) {
        for (object, wanted) in self.wanted(view, objects) {
            self.set_status(view, object, wanted.unwrap_or(Wanted::Released));
        }
    }

    /// Repeats the reports on objects that came or that another client changed.
    pub(super) fn touched(&self, view: View<'_>, touched: &BTreeSet<ObjectKey>) {
        let mut unreported = Vec::new();
        for key in touched {
            if self.settling.is_too_early(view, key) {
                // Its status differs from the report of this replica.
                self.status.hold(key);
            } else if self.status.contains(key) {
                self.status.touched(key);
            } else {
                unreported.push(key);
            }
        }
        for (key, wanted) in self.wanted(view, unreported) {
            // Another object of the same name replaced the object before the report, with the same status; or the
            // report came too early.
            if let Some(wanted) = wanted {
                self.set_status(view, key, wanted);
            }
        }
    }

    /// Ends the reports on deleted objects, even if verdicts still mention them.
    fn set_status(&self, view: View<'_>, object: &ObjectKey, wanted: Wanted) {
        if !view.reconciler.world().contains(object) || self.waits_for_publication(view, object) {
            return;
        }
        if self.settling.is_too_early(view, object) {
            // A new leader must not repeat old statuses.
            self.status.hold(object);
        } else {
            self.status.set(object.clone(), wanted);
        }
    }

    /// Whether `Programmed` of an object is about to change.
    fn waits_for_publication(&self, view: View<'_>, object: &ObjectKey) -> bool {
        matches!(object.kind, Kind::Gateway | Kind::ListenerSet)
            && view.judging_owner(object).is_some_and(|owner| self.is_deferred(owner))
    }

    /// The wanted status of each of these objects with an owner. The statuses of a Gateway and all its ListenerSets are
    /// assembled once.
    fn wanted<'o>(
        &self,
        view: View<'_>,
        objects: impl IntoIterator<Item = &'o ObjectKey>,
    ) -> Vec<(&'o ObjectKey, Option<Wanted>)> {
        let mut verdicts = BTreeMap::new();
        objects.into_iter().map(|object| (object, self.wanted_of(view, object, &mut verdicts))).collect()
    }

    fn wanted_of<'e>(
        &self,
        view: View<'e>,
        object: &ObjectKey,
        verdicts: &mut BTreeMap<&'e ObjectKey, Option<Verdicts>>,
    ) -> Option<Wanted> {
        let reconciler = view.reconciler;
        #[allow(clippy::wildcard_enum_match_arm, reason = "nothing is said of objects of other kinds here")]
        match object.kind {
            kind if kind.is_route() => reconciler.route(object).map(Wanted::Route),
            kind if kind.is_policy() => {
                let mut verdicts = reconciler.policy(object);
                verdicts.extend(reconciler.judged_targets(object).verdicts);
                Some(verdicts).filter(|verdicts| !verdicts.is_empty()).map(Wanted::Policy)
            }
            Kind::Gateway | Kind::ListenerSet => {
                let owner = view.judging_owner(object)?;
                let verdicts =
                    verdicts.entry(owner).or_insert_with(|| self.verdicts(view, owner)).as_ref()?;
                if object.kind == Kind::Gateway {
                    verdicts.gateway.clone().map(|verdict| self.wanted_gateway(view, verdict))
                } else {
                    verdicts.listener_sets.get(object).cloned().map(Box::new).map(Wanted::ListenerSet)
                }
            }
            Kind::Ingress => {
                let addresses = self.addresses_of(view, view.judging_owner(object)?)?;
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
    fn verdicts(&self, view: View<'_>, owner: &ObjectKey) -> Option<Verdicts> {
        #[cfg(test)]
        self.assembled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let planes = view.reconciler.data_planes(owner);
        view.reconciler.verdicts(owner, &view.deliveries.of(&planes))
    }

    fn wanted_gateway(&self, view: View<'_>, mut verdict: GatewayVerdict) -> Wanted {
        view.managed.hinder(view.reconciler, &mut verdict);
        let addresses = self.addresses_of(view, &verdict.key);
        Wanted::Gateway { verdict: Box::new(verdict), addresses }
    }

    /// The addresses of an owner's data planes: those of its Service if the controller runs them, else those of its
    /// parameters, else those of the options. `None` while they are unknown. A controller that runs no data planes knows
    /// that there is no address, so those of former parameters do not stay.
    pub(super) fn addresses_of(&self, view: View<'_>, owner: &ObjectKey) -> Option<Vec<Address>> {
        let reconciler = view.reconciler;
        if reconciler.infrastructure(owner).is_some() {
            let runs_none = view.managed.provisioning.is_none();
            return if runs_none { Some(Vec::new()) } else { view.managed.addresses(owner) };
        }
        let addresses = reconciler.attached(owner).map(|attached| &attached.addresses);
        let addresses = addresses.filter(|addresses| !addresses.is_empty()).cloned();
        addresses.or_else(|| self.addresses.borrow().clone())
    }

    /// Reports the verdict on a class. Before the initial lists have ended, its parameters may seem absent, so it has no report.
    pub(super) fn update_class(&self, view: View<'_>, class: &ObjectKey) {
        let is_listed = self.ready_by.is_some();
        if !is_listed || view.reconciler.world().get::<GatewayClass>(&class.name).is_none() {
            return;
        }
        let verdict = view.reconciler.class(class).cloned();
        let problems = verdict.as_ref().map(|verdict| verdict.problems.clone()).unwrap_or_default();
        self.events.set(class, problems);
        if let Some(verdict) = verdict {
            let runs_none = view.managed.provisioning.is_none();
            let verdict = if runs_none { verdict.without_data_planes() } else { verdict };
            let verdict = verdict.with_bundles(self.bundles.borrow().as_ref());
            self.status.set(class.clone(), Wanted::GatewayClass(Box::new(verdict)));
        }
    }

    /// Reports the targets of a policy that lead to no object. Before the initial lists have ended, targets may seem absent.
    pub(super) fn update_policy(&self, view: View<'_>, policy: &ObjectKey) {
        if self.ready_by.is_none() {
            return;
        }
        self.events.set(policy, view.reconciler.judged_targets(policy).problems);
        let wanted = self.wanted_of(view, policy, &mut BTreeMap::new());
        // A policy without a verdict may be that of another controller.
        if wanted.is_some() || self.status.contains(policy) {
            self.set_status(view, policy, wanted.unwrap_or(Wanted::Released));
        }
    }

    pub(super) fn update_policies(&self, view: View<'_>) {
        let world = view.reconciler.world();
        let policies = [
            world.keys::<SecurityPolicy>(),
            world.keys::<TrafficPolicy>(),
            world.keys::<BackendTrafficPolicy>(),
        ];
        for policy in policies.iter().flatten() {
            self.update_policy(view, policy);
        }
    }

    /// A PingsixProxy is the only source of its own status.
    pub(super) fn update_proxy(&self, view: View<'_>, key: &ObjectKey) {
        let Some(proxy) = view.reconciler.world().get::<PingsixProxy>(&key.name) else { return };
        let verdict = judge_pingsix_proxy(&proxy);
        self.events.set(key, verdict.problems.clone());
        self.status.set(key.clone(), Wanted::PingsixProxy(Box::new(verdict)));
    }

    pub(super) fn update_classes(&self, view: View<'_>) {
        for class in view.reconciler.world().keys::<GatewayClass>() {
            self.update_class(view, &class);
        }
    }

    /// Addresses are in the statuses of Gateways and Ingresses.
    pub(super) fn update_all_addresses(&self, view: View<'_>) {
        let changed = self.status.keys();
        // The status of an Ingress holds addresses alone.
        let ingresses = view.reconciler.world().keys::<Ingress>();
        let judged = ingresses.iter().filter(|key| view.judging_owner(key).is_some());
        self.update_statuses(
            view,
            changed.iter().filter(|key| matches!(key.kind, Kind::Gateway | Kind::Ingress)).chain(judged),
        );
    }

    /// Reports the delivery of an owner's data planes.
    pub(super) fn update_delivery(&self, view: View<'_>, owner: &ObjectKey) {
        if self.is_deferred(owner) {
            return;
        }
        let Some(Verdicts { gateway: Some(gateway), listener_sets, .. }) = self.verdicts(view, owner) else {
            return;
        };
        self.set_status(view, owner, self.wanted_gateway(view, gateway));
        for (set, verdict) in listener_sets {
            if view.judging_owner(&set) == Some(owner) {
                self.set_status(view, &set, Wanted::ListenerSet(Box::new(verdict)));
            }
        }
    }

    /// Holds back the reports of an owner from the begin of its publication. Reports that are held back already keep
    /// their time limit.
    pub(super) fn defer_statuses(
        &mut self,
        owner: &ObjectKey,
        mut changed: BTreeSet<Arc<ObjectKey>>,
        delivery: BTreeMap<DataPlaneKey, Delivery>,
        started: Instant,
    ) {
        let (mut before, mut deferred_since, mut is_late) = (Some(delivery), started, false);
        if let Some(earlier) = self.deferred.remove(owner) {
            changed.extend(earlier.changed);
            (before, deferred_since, is_late) = (None, earlier.deferred_since, earlier.is_late);
        }
        self.deferred.insert(owner.clone(), DeferredStatuses { changed, before, deferred_since, is_late });
    }

    /// Ends a publication of an owner, and releases its reports.
    pub(super) fn release_deferred(&mut self, view: View<'_>, owner: &ObjectKey) {
        let Some(DeferredStatuses { mut changed, before, .. }) = self.deferred.remove(owner) else { return };
        let planes = view.reconciler.data_planes(owner);
        if before != Some(view.deliveries.of(&planes)) {
            self.update_delivery(view, owner);
            changed.retain(|object| {
                !matches!(object.kind, Kind::Gateway | Kind::ListenerSet)
                    || view.judging_owner(object) != Some(owner)
            });
        }
        self.update_statuses(view, changed.iter().map(|object| &**object));
    }

    /// Forgets the last reported delivery, so that the next report is complete.
    pub(super) fn forget_reported_delivery(&mut self, owner: &ObjectKey) {
        if let Some(deferred) = self.deferred.get_mut(owner) {
            deferred.before = None;
        }
    }

    /// Releases the reports of an owner if they are held back for too long.
    pub(super) fn release_overdue(&mut self, view: View<'_>, owner: &ObjectKey) {
        self.forget_reported_delivery(owner);
        let Some(deferred) = self.deferred.get_mut(owner).filter(|deferred| deferred.is_late) else {
            return;
        };
        let changed = std::mem::take(&mut deferred.changed);
        self.update_delivery(view, owner);
        self.update_statuses(view, changed.iter().map(|object| &**object));
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
