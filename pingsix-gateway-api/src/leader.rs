//! The election of the replica that writes: one replica at a time holds a Lease.
//!
//! ```text
//! Elector::run ──► GET, PUT of the Lease every few seconds ──► Leadership: held, and until when
//! ```
//!
//! - The expiry of a lease counts from *our* last observation of a change, on a monotonic clock that includes the
//!   time for which the machine was suspended ([`LeaseClock`]). The time of day that its holder wrote is not read,
//!   because clocks of machines differ.
//! - Every write carries the observed `resourceVersion`, so one of two candidates gets a conflict.
//! - [`Leadership`] ends by itself without a renewal in time, also in a process that was stopped and whose elector
//!   has not run yet. That is well before another replica may take the lease.
//! - A holder that stops in order clears its name, and the next one takes over at once.
//!
//! There is one leader at a time if no clock of a replica is slower than another by more than the margin between the
//! renew deadline and the duration of the lease (a third, by default). The clock of a virtual machine that its host
//! stops does not go on: its process may believe that it leads for one renew deadline after it continues. Writes in
//! this time are fenced, where the target has a fence: a write succeeds only if its object is as the leader has read
//! it.
//!
//! The lease keeps two replicas from writing at the same time; it is no lock. Writers use `Leadership::while_held`,
//! which drops an unanswered request when the leadership ends. A request in the network has the time between the
//! renew deadline and the duration of the lease to arrive. A later one is refused, because writes of statuses carry a
//! `resourceVersion`.

mod lease;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
use kube::core::ObjectMeta;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

pub use lease::{LeaseOptions, LeaseOptionsError, lease_name};

use crate::api_error::{ApiError, ApiErrorCategory, within};
use crate::clock::LeaseClock;
use crate::wait::changed;

/// The longest time for reading the Lease before a write.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest time for releasing the lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The remaining time of a leadership without an end.
const FOR_EVER: Duration = Duration::from_hours(30 * 365 * 24);

/// The longest sleep before the clock of leases is read again: timers stand still while the machine is suspended.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Whether this replica leads. Cheap to clone.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct Leadership {
    /// The end of the leadership by the clock.
    held: watch::Receiver<Option<Instant>>,
    clock: LeaseClock,
    /// The Lease, if there is an election.
    lease: Option<Arc<Candidacy>>,
}

/// A Lease and a candidate.
#[derive(Debug)]
struct Candidacy {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The term of our last lease; zero before the first.
    term: AtomicU64,
}

impl Leadership {
    /// The leadership of a single replica.
    pub fn always() -> Self {
        Self::of(watch::channel(Some(Instant::now() + FOR_EVER)).1)
    }

    /// A leadership that the caller decides on, either held until a time of tokio's clock or not held. For embedding,
    /// and for tests.
    pub fn of(held: watch::Receiver<Option<Instant>>) -> Self {
        Self { held, clock: LeaseClock::of_tokio(), lease: None }
    }

    /// Whether this replica leads at this moment.
    pub fn is_held(&self) -> bool {
        self.held.borrow().is_some_and(|until| self.clock.now() < until)
    }

    /// Asks the API server whether the Lease is ours, for a write that must not depend on a clock. The Lease was ours
    /// when the API server answered. So a write is fenced if it requires its object to be unchanged since before the
    /// question.
    ///
    /// # Errors
    /// [`ApiError`] when the Lease could not be read.
    pub(crate) async fn confirm(&self) -> Result<bool, ApiError> {
        let Some(lease) = &self.lease else { return Ok(self.is_held()) };
        let held = within(CONFIRM_TIMEOUT, lease.api.get(&lease.name)).await?;
        let holder = held.spec.and_then(|spec| spec.holder_identity);
        Ok(self.is_held() && holder.as_ref() == Some(&lease.identity))
    }

    /// The number of our last term. It exceeds the numbers of all earlier leaders, so targets can refuse their writes. `None`
    /// without an election, or before the first term.
    pub(crate) fn term(&self) -> Option<u64> {
        let term = self.lease.as_ref()?.term.load(Ordering::Relaxed);
        Some(term).filter(|term| *term > 0)
    }

    /// Runs a future of the leader while leadership is held; `None` if it was lost first.
    ///
    /// The clock is read before each poll. A timer would be too late: in a process that continues after a stop, tasks
    /// run before expired timers.
    pub(crate) async fn while_held<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut leadership, mut work) = (self.clone(), pin!(work));
        let mut lost = pin!(leadership.lost());
        poll_fn(|context| {
            if lost.as_mut().poll(context).is_ready() || !self.is_held() {
                return Poll::Ready(None);
            }
            work.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Waits until the leadership is held.
    pub async fn gained(&mut self) {
        while !self.is_held() {
            changed(Some(&mut self.held)).await;
        }
    }

    /// Waits until the leadership is not held.
    pub async fn lost(&mut self) {
        loop {
            let Some(until) = *self.held.borrow_and_update() else { return };
            let left = self.clock.until(until);
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = changed(Some(&mut self.held)) => {}
                () = sleep(left.min(CHECK_INTERVAL)) => {}
            }
        }
    }
}

/// Takes a Lease that has no holder, and keeps it.
#[derive(Debug)]
#[doc(hidden)]
pub struct Elector {
    api: Api<Lease>,
    options: LeaseOptions,
    held: watch::Sender<Option<Instant>>,
    candidacy: Arc<Candidacy>,
    /// The content of the Lease at its last observed change, and the time of that change.
    observed: Option<(LeaseSpec, Instant)>,
    /// The last logged error.
    complaint: Option<ApiErrorCategory>,
}

/// The outcome of an attempt to take or to renew the lease.
#[derive(Debug)]
enum Attempt {
    /// The lease is ours until then.
    Held { until: Instant },
    /// Another replica has the lease for at least this long.
    Taken { holder: String, expires: Instant },
}

impl Elector {
    /// An elector for a Lease, which it creates if needed.
    ///
    /// # Errors
    ///
    /// When the times of the options do not go together.
    pub fn new(client: Client, options: LeaseOptions) -> Result<(Self, Leadership), LeaseOptionsError> {
        options.validate()?;
        let (held, leadership) = watch::channel(None);
        let api = Api::namespaced(client, &options.namespace);
        let lease = Candidacy {
            api: api.clone(),
            name: options.name.clone(),
            identity: options.identity.clone(),
            term: AtomicU64::new(0),
        };
        let clock = options.lease_clock.clone();
        let lease = Arc::new(lease);
        let leadership = Leadership { held: leadership, clock, lease: Some(Arc::clone(&lease)) };
        Ok((Self { api, options, held, candidacy: lease, observed: None, complaint: None }, leadership))
    }

    /// Stands for election until it is stopped; then releases the lease.
    #[tracing::instrument(name = "lease", skip_all, fields(lease = %self.options.name, holder = %self.options.identity))]
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let limit = self.time_left().unwrap_or(self.options.renew_deadline);
            let attempt = tokio::select! {
                () = stop.cancelled() => break,
                attempt = self.attempt(limit) => attempt,
            };
            let pause = self.conclude(attempt);
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(pause) => {}
            }
        }
        self.release().await;
    }

    /// The remaining time of our lease.
    fn time_left(&self) -> Option<Duration> {
        let until = (*self.held.borrow())?;
        Some(self.options.lease_clock.until(until))
    }

    fn now(&self) -> Instant {
        self.options.lease_clock.now()
    }

    /// Applies the outcome of an attempt, and returns the time of the next one.
    fn conclude(&mut self, attempt: Result<Attempt, ApiError>) -> Duration {
        // Up to a quarter sooner, so that candidates do not keep step, and never later.
        let retry = self.options.retry.mul_f64(1.0 - 0.25 * fastrand::f64());
        match attempt {
            // The process was stopped during the request.
            Ok(Attempt::Held { until }) if until <= self.now() => {
                self.step_down("the lease was not renewed in time");
                Duration::ZERO
            }
            Ok(Attempt::Held { until }) => {
                self.complaint = None;
                if self.held.send_replace(Some(until)).is_none() {
                    info!("leading");
                }
                retry
            }
            Ok(Attempt::Taken { holder, expires }) => {
                self.complaint = None;
                self.step_down(&format!("{holder} holds the lease"));
                // No later than the lease may be taken.
                retry.min(self.options.lease_clock.until(expires))
            }
            Err(error) => {
                self.log_error(&error);
                match self.time_left() {
                    None => retry,
                    Some(Duration::ZERO) => {
                        self.step_down("the lease was not renewed in time");
                        retry
                    }
                    Some(left) => retry.min(left),
                }
            }
        }
    }

    fn step_down(&self, why: &str) {
        if self.held.send_replace(None).is_some() {
            warn!(reason = why, "leadership ended");
        }
    }

    /// A lasting error is logged once.
    fn log_error(&mut self, error: &ApiError) {
        let category = error.category.as_str();
        if self.complaint == Some(error.category) || error.category == ApiErrorCategory::Conflict {
            debug!(category, error = %error, "the lease could not be taken or renewed");
            return;
        }
        self.complaint = Some(error.category);
        let namespace = &self.options.namespace;
        if error.category == ApiErrorCategory::Forbidden {
            let needed = "get, create and update on leases of coordination.k8s.io";
            warn!(%namespace, needed, error = %error, "not allowed to use the lease: this replica cannot lead");
        } else {
            warn!(%namespace, category, error = %error, "the lease could not be taken or renewed");
        }
    }

    async fn attempt(&mut self, limit: Duration) -> Result<Attempt, ApiError> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let mut lease = match within(left(), self.api.get(&self.options.name)).await {
            Ok(lease) => lease,
            Err(error) if error.category == ApiErrorCategory::NotFound => return self.create(left()).await,
            Err(error) => return Err(error),
        };
        let spec = lease.spec.take().unwrap_or_default();
        let expires = self.observe(&spec);
        let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty());
        if let Some(holder) = holder.filter(|holder| *holder != self.options.identity)
            && self.now() < expires
        {
            return Ok(Attempt::Taken { holder: holder.to_owned(), expires });
        }
        lease.spec = Some(self.taken(&spec));
        let asked = self.now();
        let stored =
            within(left(), self.api.replace(&self.options.name, &PostParams::default(), &lease)).await?;
        Ok(self.held_since(asked, stored))
    }

    async fn create(&mut self, limit: Duration) -> Result<Attempt, ApiError> {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(self.options.name.clone()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec { lease_transitions: Some(0), ..self.taken(&LeaseSpec::default()) }),
        };
        let asked = self.now();
        let stored = within(limit, self.api.create(&PostParams::default(), &lease)).await?;
        Ok(self.held_since(asked, stored))
    }

    /// Other replicas count from their observation of the request, which is later.
    fn held_since(&mut self, asked: Instant, stored: Lease) -> Attempt {
        self.candidacy.term.fetch_max(term_of(&stored), Ordering::Relaxed);
        self.observe(&stored.spec.unwrap_or_default());
        Attempt::Held { until: asked + self.options.renew_deadline }
    }

    /// Records the Lease. Returns the time of its expiry without a change.
    fn observe(&mut self, spec: &LeaseSpec) -> Instant {
        let since = match &self.observed {
            Some((known, since)) if known == spec => *since,
            Some(_) | None => {
                let now = self.now();
                self.observed = Some((spec.clone(), now));
                now
            }
        };
        let written = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        since + written.map_or(self.options.duration, Duration::from_secs)
    }

    /// The Lease with our claim.
    fn taken(&self, before: &LeaseSpec) -> LeaseSpec {
        let is_ours = before.holder_identity.as_deref() == Some(&self.options.identity);
        let renewed = self.options.clock.now();
        // Other replicas observe the change of the record, even if the time of day stands still or goes back.
        let renewed = match &before.renew_time {
            Some(MicroTime(last)) => renewed.max(next_microsecond(*last)),
            None => renewed,
        };
        let acquired = before.acquire_time.clone().filter(|_| is_ours);
        let transitions = before.lease_transitions.unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.options.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.options.duration.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: Some(acquired.unwrap_or(MicroTime(renewed))),
            renew_time: Some(MicroTime(renewed)),
            lease_transitions: Some(if is_ours { transitions } else { transitions.saturating_add(1) }),
            ..before.clone()
        }
    }

    /// Releases the lease, if it is ours, so that the next holder need not wait for its expiry. It may be ours
    /// although this replica does not lead: the answer to a request may be lost.
    async fn release(mut self) {
        // First, this replica stops writing.
        self.held.send_replace(None);
        let deadline = Instant::now() + RELEASE_TIMEOUT;
        let let_go = loop {
            match self.try_release(deadline).await {
                // A running renewal has arrived.
                Err(error) if error.category == ApiErrorCategory::Conflict && Instant::now() < deadline => {}
                let_go => break let_go,
            }
        };
        match let_go {
            Ok(true) => info!("lease released"),
            Ok(false) => {}
            Err(error) if error.category == ApiErrorCategory::NotFound => {}
            Err(error) => self.log_error(&error),
        }
    }

    /// Whether the lease was ours.
    async fn try_release(&self, deadline: Instant) -> Result<bool, ApiError> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let mut lease = within(left(), self.api.get(&self.options.name)).await?;
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.options.identity) {
            return Ok(false);
        }
        spec.holder_identity = None;
        within(left(), self.api.replace(&self.options.name, &PostParams::default(), &lease)).await?;
        Ok(true)
    }
}

/// The number of a term. It exceeds the numbers of earlier holders. It begins with the time at which the API server created
/// the Lease, so a deletion of the Lease keeps the order. Never zero.
fn term_of(lease: &Lease) -> u64 {
    let made = lease.metadata.creation_timestamp.as_ref().map_or(0, |made| made.0.as_second());
    let made = u64::from(u32::try_from(made).unwrap_or_default());
    let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default();
    (made << 32) | u64::from(u32::try_from(transitions).unwrap_or_default().saturating_add(1))
}

fn next_microsecond(time: Timestamp) -> Timestamp {
    time.checked_add(SignedDuration::from_micros(1)).unwrap_or(time)
}
