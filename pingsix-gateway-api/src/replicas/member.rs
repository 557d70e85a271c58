//! One of several replicas: the record that it writes, and the records that it reads.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use pingsix_sink::backoff::jittered;
use pingsix_sink::{Revision, Scope};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::membership::RENEWAL_INTERVAL;
use super::record::{Record, annotation, encoded_readers};
use super::report::{ReplicaReport, confirmed, found};
use super::{Inner, Replicas, follow};
use crate::api_error::{ApiError, ApiErrorCategory, within};
use crate::digest::short_digest;
use crate::leader::Leadership;
use crate::wait;

/// The timeout of a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(4);

/// The timeout of the last write at a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The shortest time between two writes, for instance while many readers connect in sequence.
const MIN_WRITE_INTERVAL: Duration = Duration::from_millis(500);

/// The shortest time between writes of confirmations, which may change all the time.
const MIN_CONFIRMATION_INTERVAL: Duration = Duration::from_secs(2);

/// The delay after a failed write.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl Replicas {
    /// Writes the record of this replica and reads the others until it is stopped; then removes the record. `readers`
    /// counts the readers of each scope, and `changed` signals that the counts may differ.
    pub(crate) async fn run<R: Fn() -> BTreeMap<Scope, usize>>(
        self,
        readers: R,
        changed: Option<watch::Receiver<u64>>,
        leadership: Leadership,
        stop: CancellationToken,
    ) {
        let Self(inner) = &self;
        let live = async {
            tokio::join!(
                inner.reservations.follow(),
                follow(&inner.api, &inner.name, |lease| inner.observe(lease)),
                inner.publish_record(readers, changed, &leadership),
            )
        };
        stop.run_until_cancelled(Box::pin(live)).await;
        inner.leave().await;
    }
}

impl Inner {
    /// The name of the record of this replica.
    fn own(&self) -> String {
        annotation(&short_digest(&self.identity))
    }

    fn observe(&self, lease: Option<Lease>) {
        let annotations = lease.and_then(|lease| lease.metadata.annotations).unwrap_or_default();
        let (change, is_alone) = {
            let mut membership = self.membership.lock();
            let is_known = membership.is_alone();
            (membership.observe(&annotations), membership.is_alone() && !is_known)
        };
        if let Some(reported) = change.time {
            let time = self.reservations.time();
            // The report of a new replica may be from any earlier time.
            if change.is_new { time.raise(reported) } else { time.observe(reported) }
        }
        if is_alone {
            self.reservations.advance_to_wall_clock();
        }
        if change.is_new {
            self.newcomers.send_modify(|count| *count += 1);
        }
        if change.is_change {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Writes the record of this replica for as long as the future lives.
    async fn publish_record<R: Fn() -> BTreeMap<Scope, usize>>(
        &self,
        current: R,
        mut changed: Option<watch::Receiver<u64>>,
        leadership: &Leadership,
    ) {
        let mut newcomers = self.newcomers.subscribe();
        let mut says = self.report.subscribe();
        let mut times = 0;
        let mut complaint = None;
        loop {
            let readers = current();
            let report = says.borrow_and_update().clone();
            times += 1;
            let (next, mut soonest) = match self.write(times, &readers, &report, leadership).await {
                Ok(()) => {
                    complaint = None;
                    // Up to a tenth sooner, so that replicas do not keep step.
                    (RENEWAL_INTERVAL.mul_f64(1.0 - 0.1 * fastrand::f64()), MIN_WRITE_INTERVAL)
                }
                Err(error) => {
                    if complaint.replace(error.category) != Some(error.category) {
                        let category = error.category.as_str();
                        tracing::warn!(lease = self.name, category, error = %error, "cannot report to other replicas; retrying");
                    }
                    (jittered(RETRY_DELAY), RETRY_DELAY)
                }
            };
            let now = Instant::now();
            tokio::select! {
                () = sleep_until(now + next) => {}
                () = other_readers(&current, changed.as_mut(), &readers) => {}
                // A new replica needs our reading of the shared time.
                _ = newcomers.changed() => {}
                () = self.something_to_say(&mut says) => soonest = soonest.max(MIN_CONFIRMATION_INTERVAL),
            }
            sleep_until((now + soonest).min(now + next)).await;
        }
    }

    /// Waits until the report differs, apart from readers, and another replica exists.
    async fn something_to_say(&self, says: &mut watch::Receiver<ReplicaReport>) {
        while says.changed().await.is_ok() {
            if self.membership.lock().present().next().is_some() {
                return;
            }
        }
        // This future owns the sender.
        std::future::pending::<()>().await;
    }

    /// The record with this number.
    fn record(&self, times: u64, readers: &BTreeMap<Scope, usize>, report: &ReplicaReport) -> Record {
        Record {
            identity: self.identity.clone(),
            time: self.reservations.time().now().map(Revision::get),
            renewals: times,
            readers: encoded_readers(readers),
            confirmed: confirmed(report),
            found: found(report),
        }
    }

    async fn write(
        &self,
        times: u64,
        readers: &BTreeMap<Scope, usize>,
        report: &ReplicaReport,
        leadership: &Leadership,
    ) -> Result<(), ApiError> {
        let record = self.record(times, readers, report);
        let mut annotations = BTreeMap::from([(self.own(), serde_json::to_string(&record).ok())]);
        if leadership.is_held() {
            // Removes the records of replicas that are gone.
            let forgotten = self.membership.lock().forgotten();
            annotations.extend(forgotten.iter().map(|replica| (annotation(replica), None)));
        }
        match self.patch(WRITE_TIMEOUT, &annotations).await {
            Err(error) if error.category == ApiErrorCategory::NotFound => {}
            written => return written,
        }
        let there = annotations.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
        let name = Some(self.name.clone());
        let metadata = ObjectMeta { name, annotations: Some(there), ..ObjectMeta::default() };
        let lease = Lease { metadata, ..Lease::default() };
        within(WRITE_TIMEOUT, self.api.create(&PostParams::default(), &lease)).await.map(drop)
    }

    async fn patch(
        &self,
        limit: Duration,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> Result<(), ApiError> {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        within(limit, self.api.patch(&self.name, &PatchParams::default(), &patch)).await.map(drop)
    }

    /// Removes the record, so that its readers no longer count.
    async fn leave(&self) {
        match self.patch(SHUTDOWN_TIMEOUT, &BTreeMap::from([(self.own(), None)])).await {
            Err(error) if error.category != ApiErrorCategory::NotFound => {
                tracing::warn!(lease = self.name, error = %error, "cannot remove the record of this replica; other replicas count its readers until the record expires");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
impl Replicas {
    /// In tests: another replica reads the record of this one repeatedly, or `None` once it is removed.
    pub(crate) fn deliver(&self, other: &Self, is_there: bool) {
        let report = self.0.report.borrow().clone();
        for times in 0..2 {
            let record = self.0.record(fastrand::u64(..) | times, &BTreeMap::new(), &report);
            let annotations = is_there.then(|| (self.0.own(), serde_json::to_string(&record).unwrap()));
            let metadata =
                ObjectMeta { annotations: Some(annotations.into_iter().collect()), ..ObjectMeta::default() };
            other.0.observe(Some(Lease { metadata, ..Lease::default() }));
        }
    }
}

/// Waits until the readers of this replica differ from these.
async fn other_readers(
    current: &impl Fn() -> BTreeMap<Scope, usize>,
    mut changed: Option<&mut watch::Receiver<u64>>,
    readers: &BTreeMap<Scope, usize>,
) {
    loop {
        wait::changed(changed.as_deref_mut()).await;
        if current() != *readers {
            return;
        }
    }
}
