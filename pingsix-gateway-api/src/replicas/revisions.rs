//! The store of revisions: a Lease with the highest reserved one.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use parking_lot::Mutex;
use pingsix_sink::Revision;
use pingsix_sink::embedded::revisions::{Block, Reservations, ReserveError, Reserving, SharedTime};
use tokio::time::{Instant, sleep};

use crate::api_error::{ApiError, ApiErrorCategory, within};
use crate::clock::Clock;

/// The annotation with the highest reserved revision.
const CEILING: &str = "pingsix.io/reserved-revision";

/// The timeout of a reservation, conflicts included. It is shorter than that of the waiting publication.
const RESERVATION_TIMEOUT: Duration = Duration::from_secs(3);

/// The longest wait after a conflict. Few replicas compete.
const MAX_CONFLICT_DELAY: Duration = Duration::from_millis(20);

/// Reserves revisions in a Lease that all replicas write. Each write carries the observed version.
pub(super) struct LeaseReservations {
    api: Api<Lease>,
    name: String,
    clock: Clock,
    time: SharedTime,
    /// The last observed Lease, which is mostly current.
    known: Mutex<Option<Lease>>,
}

impl LeaseReservations {
    pub(super) fn new(api: Api<Lease>, name: String, clock: Clock) -> Self {
        Self { api, name, clock, time: SharedTime::default(), known: Mutex::default() }
    }

    pub(super) const fn time(&self) -> &SharedTime {
        &self.time
    }

    /// Raises the shared time to that of this machine; for a single replica.
    pub(super) fn advance_to_wall_clock(&self) {
        self.clock_revision().into_iter().for_each(|now| self.time.continue_from(now));
    }

    fn clock_revision(&self) -> Option<Revision> {
        Revision::new(self.clock.now().as_microsecond())
    }

    /// Records the reservations of other replicas for as long as the future lives.
    pub(super) async fn follow(&self) {
        super::follow(&self.api, &self.name, |lease| {
            let Some(lease) = lease else { return };
            if let Some(ceiling) = ceiling_of(&lease) {
                self.time.raise(ceiling);
                let mut known = self.known.lock();
                // The answer to our own write may have come first.
                if known.as_ref().is_none_or(|known| ceiling_of(known) < Some(ceiling)) {
                    *known = Some(lease);
                }
            }
        })
        .await;
    }

    async fn try_reserve(&self, at_least: Revision, count: u32) -> Result<Block, ReserveError> {
        let deadline = Instant::now() + RESERVATION_TIMEOUT;
        let left = || deadline.saturating_duration_since(Instant::now());
        let parameters = PostParams::default();
        loop {
            let known = self.known.lock().take();
            let stored = match known {
                Some(lease) => Ok(lease),
                None => within(left(), self.api.get(&self.name)).await,
            };
            let written = match stored {
                Ok(mut lease) => {
                    let ceiling = ceiling_of(&lease).or_else(|| self.time.now());
                    let block = Block::above(ceiling, at_least, count)?;
                    note(&mut lease, block);
                    let replace = self.api.replace(&self.name, &parameters, &lease);
                    // After a removal, the next write creates it.
                    let written = within(left(), replace).await.map_err(as_race);
                    written.map(|stored| (stored, block))
                }
                Err(error) if error.category == ApiErrorCategory::NotFound => {
                    // The Lease has no ceiling, or an old one.
                    let now = self.clock_revision().unwrap_or(at_least);
                    let block = Block::above(self.time.now(), at_least.max(now), count)?;
                    let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                    let mut lease = Lease { metadata, ..Lease::default() };
                    note(&mut lease, block);
                    let create = self.api.create(&parameters, &lease);
                    within(left(), create).await.map(|stored| (stored, block))
                }
                Err(error) => Err(error),
            };
            match written {
                Ok((stored, block)) => {
                    *self.known.lock() = Some(stored);
                    return Ok(block);
                }
                Err(error) if error.category == ApiErrorCategory::Conflict && !left().is_zero() => {
                    sleep(MAX_CONFLICT_DELAY.mul_f64(fastrand::f64())).await;
                }
                Err(error) => return Err(ReserveError::Store(Box::new(error))),
            }
        }
    }
}

/// In tests: another client removes the Lease before the write.
fn as_race(error: ApiError) -> ApiError {
    if error.category == ApiErrorCategory::NotFound { ApiError::conflict() } else { error }
}

impl Reservations for LeaseReservations {
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_> {
        Box::pin(self.try_reserve(at_least, count))
    }

    fn shared(&self) -> Option<&SharedTime> {
        Some(&self.time)
    }
}

/// The highest reserved revision. Another program may have written an invalid text, which counts as none: then the
/// next revision is above those that this process knows, as after a removal of the Lease.
fn ceiling_of(lease: &Lease) -> Option<Revision> {
    lease.metadata.annotations.as_ref()?.get(CEILING)?.parse().ok().and_then(Revision::new)
}

fn note(lease: &mut Lease, block: Block) {
    let annotations = lease.metadata.annotations.get_or_insert_default();
    annotations.insert(CEILING.to_owned(), block.last.to_string());
    lease.metadata.managed_fields = None;
}
