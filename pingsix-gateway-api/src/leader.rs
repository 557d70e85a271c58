//! Which replica writes: a Lease that one of them holds at a time.
//!
//! ```text
//! Elector::run ──► GET, PUT of the Lease every few seconds ──► Leadership: held, and until when
//! ```
//!
//! - Whether a lease has expired is judged by when *we* last saw it change, on a monotonic clock. What its holder
//!   wrote about the time of day is never read: clocks of machines differ.
//! - Every write carries the `resourceVersion` that was read, so of two candidates one gets a conflict.
//! - [`Leadership`] ends by itself when it was not renewed in time, also in a process that was stopped meanwhile and
//!   whose elector has not run yet. That is well before others may take the lease.
//! - A holder that stops in an orderly way clears its name, and the next one need not wait.
//!
//! The lease keeps two replicas from writing at the same time; it is no lock. Who writes does so within
//! [`Leadership::while_held`], which drops a request that has not been answered when the leadership ends. What the network has
//! taken by then has the time between the renew deadline and the duration of the lease to arrive, and whatever arrives later
//! than that is refused: writes of statuses carry `resourceVersion`s.

mod lease;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::pin::pin;
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

use crate::fault::{Fault, FaultCategory, within};

/// Most time that letting go of the lease may take.
const RELEASE: Duration = Duration::from_secs(2);

/// No time that anybody waits for.
const FOR_EVER: Duration = Duration::from_hours(30 * 365 * 24);

/// Whether this replica leads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<Option<Instant>>);

impl Leadership {
    /// That of a controller which is alone.
    pub fn always() -> Self {
        Self(watch::channel(Some(Instant::now() + FOR_EVER)).1)
    }

    /// One that somebody else decides on: held until then, or not at all. For embedding, and for tests.
    pub const fn of(held: watch::Receiver<Option<Instant>>) -> Self {
        Self(held)
    }

    /// Whether it is held at this moment.
    pub fn is_held(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Does something that only the leader may do, for as long as it is held; `None` when it was lost before that was done.
    ///
    /// Every time before the work goes on, the clock is looked at. A timer would not do: when a process that was stopped
    /// continues, tasks run before the timers that have run out do.
    pub async fn while_held<T>(&self, work: impl Future<Output = T>) -> Option<T> {
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

    /// Waits until it is held; for ever if it never is.
    pub async fn gained(&mut self) {
        while !self.is_held() {
            if self.0.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until it is not held.
    pub async fn lost(&mut self) {
        loop {
            let Some(until) = *self.0.borrow_and_update() else { return };
            if until <= Instant::now() {
                return;
            }
            let wait = async {
                if self.0.changed().await.is_err() {
                    // Nobody renews it any more.
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = wait => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }
}

/// Takes a Lease when nobody holds it, and keeps it.
#[derive(Debug)]
pub struct Elector {
    api: Api<Lease>,
    options: LeaseOptions,
    held: watch::Sender<Option<Instant>>,
    /// What the Lease said when it was last seen to change, and when that was.
    observed: Option<(LeaseSpec, Instant)>,
    /// The fault that was last complained about.
    complaint: Option<FaultCategory>,
}

/// What an attempt to take or to keep the lease came to.
#[derive(Debug)]
enum Attempt {
    /// It is ours until then.
    Held { until: Instant },
    /// Another one has it, for so long at least.
    Taken { holder: String, expires: Instant },
}

impl Elector {
    /// For a Lease, which is created when it does not exist.
    ///
    /// # Errors
    ///
    /// When the times of the options do not go together.
    pub fn new(client: Client, options: LeaseOptions) -> Result<(Self, Leadership), LeaseOptionsError> {
        options.validate()?;
        let (held, leadership) = watch::channel(None);
        let api = Api::namespaced(client, &options.namespace);
        Ok((Self { api, options, held, observed: None, complaint: None }, Leadership(leadership)))
    }

    /// Stands for election until it is stopped; then lets go of the lease.
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

    /// For how long the lease is ours, if it is.
    fn time_left(&self) -> Option<Duration> {
        let until = (*self.held.borrow())?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// What follows from an attempt; returns when to make the next.
    fn conclude(&mut self, attempt: Result<Attempt, Fault>) -> Duration {
        // Up to a quarter sooner, so that candidates do not keep step, and never later.
        let retry = self.options.retry.mul_f64(1.0 - 0.25 * fastrand::f64());
        match attempt {
            // The process was stopped while it asked.
            Ok(Attempt::Held { until }) if until <= Instant::now() => {
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
                // Not a moment later than it may be taken.
                retry.min(expires.saturating_duration_since(Instant::now()))
            }
            Err(fault) => {
                self.complain(&fault);
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
            warn!(reason = why, "not leading any more");
        }
    }

    /// A fault that stays is said once.
    fn complain(&mut self, fault: &Fault) {
        let category = fault.category.as_str();
        if self.complaint == Some(fault.category) || fault.category == FaultCategory::Conflict {
            debug!(category, error = %fault, "the lease could not be taken or renewed");
            return;
        }
        self.complaint = Some(fault.category);
        let namespace = &self.options.namespace;
        if fault.category == FaultCategory::Forbidden {
            let needed = "get, create and update on leases of coordination.k8s.io";
            warn!(%namespace, needed, error = %fault, "not allowed to use the lease: this replica cannot lead");
        } else {
            warn!(%namespace, category, error = %fault, "the lease could not be taken or renewed");
        }
    }

    async fn attempt(&mut self, limit: Duration) -> Result<Attempt, Fault> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let mut lease = match within(left(), self.api.get(&self.options.name)).await {
            Ok(lease) => lease,
            Err(fault) if fault.category == FaultCategory::NotFound => return self.create(left()).await,
            Err(fault) => return Err(fault),
        };
        let spec = lease.spec.take().unwrap_or_default();
        let expires = self.observe(&spec);
        let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty());
        if let Some(holder) = holder.filter(|holder| *holder != self.options.identity)
            && Instant::now() < expires
        {
            return Ok(Attempt::Taken { holder: holder.to_owned(), expires });
        }
        lease.spec = Some(self.taken(&spec));
        let asked = Instant::now();
        let stored =
            within(left(), self.api.replace(&self.options.name, &PostParams::default(), &lease)).await?;
        Ok(self.held_since(asked, stored))
    }

    async fn create(&mut self, limit: Duration) -> Result<Attempt, Fault> {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(self.options.name.clone()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec { lease_transitions: Some(0), ..self.taken(&LeaseSpec::default()) }),
        };
        let asked = Instant::now();
        let stored = within(limit, self.api.create(&PostParams::default(), &lease)).await?;
        Ok(self.held_since(asked, stored))
    }

    /// Others count from when they see what was asked for then, which is later.
    fn held_since(&mut self, asked: Instant, stored: Lease) -> Attempt {
        self.observe(&stored.spec.unwrap_or_default());
        Attempt::Held { until: asked + self.options.renew_deadline }
    }

    /// Notes what the Lease says; returns when it expires unless it changes.
    fn observe(&mut self, spec: &LeaseSpec) -> Instant {
        let since = match &self.observed {
            Some((known, since)) if known == spec => *since,
            Some(_) | None => {
                let now = Instant::now();
                self.observed = Some((spec.clone(), now));
                now
            }
        };
        let written = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        since + written.map_or(self.options.duration, Duration::from_secs)
    }

    /// The Lease as we would have it.
    fn taken(&self, before: &LeaseSpec) -> LeaseSpec {
        let is_ours = before.holder_identity.as_deref() == Some(&self.options.identity);
        let renewed = self.options.clock.now();
        // Others see by the change of the record that we are there, even where the time of day stands still or goes back.
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

    /// Lets go of the lease, if it is ours, so that the next one need not wait until it expires. It may be also when we do
    /// not lead: the answer to a request may have been lost, or not been waited for.
    async fn release(mut self) {
        // First of all, nobody here writes any more.
        self.held.send_replace(None);
        let deadline = Instant::now() + RELEASE;
        let let_go = loop {
            match self.try_release(deadline).await {
                // A renewal that was on its way has arrived.
                Err(fault) if fault.category == FaultCategory::Conflict && Instant::now() < deadline => {}
                let_go => break let_go,
            }
        };
        match let_go {
            Ok(true) => info!("let go of the lease"),
            Ok(false) => {}
            Err(fault) if fault.category == FaultCategory::NotFound => {}
            Err(fault) => self.complain(&fault),
        }
    }

    /// Whether it was ours.
    async fn try_release(&self, deadline: Instant) -> Result<bool, Fault> {
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

fn next_microsecond(time: Timestamp) -> Timestamp {
    time.checked_add(SignedDuration::from_micros(1)).unwrap_or(time)
}
