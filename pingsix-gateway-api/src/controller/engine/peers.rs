//! Reports of confirmations and quarantines between replicas.
//!
//! The status page of an instance has the revisions of the replica that it reads from, and other replicas issue other
//! revisions. The replica therefore reports the confirmations of its instances, with a fingerprint of the content, which is
//! equal at all replicas. The report has the quarantines, too (`acceptance/quarantines.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_sink::{DocumentSet, Fingerprint, Scope};
use pingsix_translate::{DataPlaneKey, ObjectKey};
use tokio::time::Instant;

use super::shared::Shared;
use crate::acceptance::Acceptance;
use crate::delivery::status_page::{InstancePages, StatusUrl};
use crate::digest::short_digest;
use crate::reconcile::Publication;
use crate::replicas::{Confirmed, ReplicaReport};

/// The time for which an earlier confirmation counts while replicas have different content. Replicas see a change at
/// different times, and the status of a Gateway must not flip with each change.
const AGREEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The report for other replicas, and the state of their reports.
#[derive(Debug, Default)]
pub(super) struct Peers {
    report: ReplicaReport,
    /// The last documents of each data plane, and their fingerprint.
    pub(super) contents: BTreeMap<DataPlaneKey, (DocumentSet, Fingerprint)>,
    /// The last time at which another replica reported that an instance has confirmed the content.
    agreed: BTreeMap<(DataPlaneKey, StatusUrl), Instant>,
}

impl Peers {
    /// Records the documents of an owner before encryption, which gives different bytes each time. `current` has all
    /// data planes of the owner.
    pub(super) fn record_contents(
        &mut self,
        shared: &Shared,
        owner: &ObjectKey,
        current: &BTreeSet<DataPlaneKey>,
        publications: &[Publication],
    ) {
        if shared.sinks.replicas().is_none() {
            return;
        }
        let gone = |plane: &DataPlaneKey| plane.owner() == *owner && !current.contains(plane);
        let left: Vec<DataPlaneKey> = self.contents.keys().filter(|plane| gone(plane)).cloned().collect();
        for plane in &left {
            self.contents.remove(plane);
            self.agreed.retain(|(agreed, _), _| agreed != plane);
        }
        let publications =
            publications.iter().filter(|publication| current.contains(&publication.data_plane));
        for Publication { data_plane, desired } in publications {
            let documents = desired.documents();
            let (before, fingerprint) = self.contents.remove(data_plane).unwrap_or_default();
            let fingerprint = documents.fingerprint_after(&before, fingerprint);
            self.contents.insert(data_plane.clone(), (documents.clone(), fingerprint));
        }
        for scope in left.iter().filter_map(|plane| shared.scope(plane)) {
            self.report.confirmed.remove(&scope);
        }
        self.report_quarantines(shared, owner);
    }

    /// Reports the quarantines of an owner to other replicas.
    pub(super) fn report_quarantines(&mut self, shared: &Shared, owner: &ObjectKey) {
        let Some(replicas) = shared.sinks.replicas() else { return };
        let acceptance = shared.reconciler.acceptance(owner);
        let found = acceptance.map(Acceptance::quarantines).unwrap_or_default();
        if found.is_empty() {
            self.report.found.remove(owner);
        } else {
            self.report.found.insert(owner.clone(), found);
        }
        replicas.set_report(&self.report);
    }

    /// Reports the confirmations of these instances to other replicas, and applies the confirmations of their reports.
    pub(super) fn compare(
        &mut self,
        shared: &Shared,
        data_plane: &DataPlaneKey,
        scope: &Scope,
        pages: &mut InstancePages,
    ) {
        let Some(replicas) = shared.sinks.replicas() else { return };
        let Self { report, contents, agreed } = self;
        agreed.retain(|(plane, url), _| plane != data_plane || pages.contains_key(url));
        let Some((_, fingerprint)) = contents.get(data_plane) else { return };
        let (content, now) = (fingerprint.to_string(), Instant::now());
        let mut by = BTreeSet::new();
        let mut has_own = false;
        let settled = shared.deliveries.settled(data_plane);
        for (url, page) in pages.iter_mut().filter_map(|(url, page)| Some((url, page.as_mut().ok()?))) {
            let instance = short_digest(&url.to_string());
            let is_good = page.refusal().is_none() && page.published_revision > 0;
            if !page.is_elsewhere {
                has_own = true;
                if is_good && settled.is_some_and(|revision| page.published_revision >= revision.get()) {
                    by.insert(instance);
                }
                continue;
            }
            let key = (data_plane.clone(), url.clone());
            if is_good && replicas.has_confirmed(scope, &content, &instance) {
                agreed.insert(key.clone(), now);
            }
            let is_recent = |at: &Instant| now.duration_since(*at) < AGREEMENT_TIMEOUT;
            page.is_confirmed = is_good && agreed.get(&key).is_some_and(is_recent);
        }
        if !by.is_empty() {
            report.confirmed.insert(scope.clone(), Confirmed { content, by });
        } else if !has_own || report.confirmed.get(scope).is_some_and(|told| told.content == content) {
            // Until the instances have the next content, the former confirmation stands. It is not wrong, and saves a
            // write.
            report.confirmed.remove(scope);
        }
        replicas.set_report(report);
    }
}
