//! The turn of an owner: its translation begins, and ends some time later.

use std::time::Duration;

use pingsix_translate::ObjectKey;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::Engine;
use super::jobs::{JobOutcome, RunningJob};
use crate::controller::Feed;
use crate::metrics::Outcome;
use crate::reconcile::{Job, Prepared, Reconciled, Turn};

/// What is said of an owner whose translation has panicked.
const PANICKED: &str =
    "the controller has failed to translate it, which is a fault of the controller; its log says more";

/// What a reconsideration has taken so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// When it began.
    pub(super) started: Instant,
    /// What it took of a processor, until it went on.
    before: Duration,
    /// When it went on.
    since: Instant,
}

impl Taken {
    pub(super) fn from(started: Instant) -> Self {
        Self { started, before: Duration::ZERO, since: started }
    }

    /// What it took of a processor.
    pub(super) fn by(&self, now: Instant) -> Duration {
        self.before + now.duration_since(self.since)
    }
}

impl<F: Feed + 'static> Engine<F> {
    /// Gives the next owner its turn, if it is time and there is room.
    pub(super) fn take_turn(&mut self) {
        let now = Instant::now();
        let Some(Turn { owner, due, is_light }) = self.ingest.turn(now) else { return };
        let span = info_span!("reconcile", %owner, outcome = Empty);
        let job = span.in_scope(|| self.prepare(&owner, now));
        if let Some(metrics) = &self.parts.metrics {
            metrics.turn(now.duration_since(due));
        }
        if let Some(job) = job {
            let took = now.elapsed();
            self.ingest.jobs.begin(job, RunningJob { is_light, started: now, took, span, is_stale: false });
            self.count_jobs();
        }
    }

    /// Withdraws what is published of an owner that is gone. That takes no translation.
    pub(super) fn withdraw_gone(&mut self, owner: &ObjectKey) {
        let span = info_span!("reconcile", %owner, outcome = Empty);
        span.in_scope(|| drop(self.prepare(owner, Instant::now())));
    }

    /// Does what can be done for an owner without a translation, or returns the translation.
    pub(super) fn prepare(&mut self, owner: &ObjectKey, started: Instant) -> Option<Job> {
        match self.parts.reconciler.prepare(owner, jiff::Timestamp::now()) {
            Prepared::Job(job) => return Some(*job),
            Prepared::Waiting(missing) => {
                self.ingest.awaits(owner, missing);
                Span::current().record("outcome", Outcome::Waiting.as_str());
                self.count(owner, Outcome::Waiting, started);
            }
            Prepared::Withdrawn(reconciled) => {
                self.ingest.awaits(owner, reconciled.awaited.clone());
                self.follow_parameters(owner);
                self.publish_owner(owner, reconciled, false, Taken::from(started));
            }
        }
        None
    }

    /// A translation has ended.
    pub(super) fn job_ended(&mut self, ended: JobOutcome) {
        let JobOutcome { owner, running_job, done } = ended;
        let now = Instant::now();
        let RunningJob { started, took, span, is_stale, .. } = running_job;
        self.count_jobs();
        let _of_the_reconsideration = span.enter();
        let reconciled = done.map(|done| self.parts.reconciler.finish(done));
        match reconciled {
            Some(Some(reconciled)) => {
                self.act_on(&owner, reconciled, Taken { started, before: took, since: now });
            }
            // What has happened meanwhile has made it useless.
            Some(None) => {
                Span::current().record("outcome", Outcome::Superseded.as_str());
                self.count(&owner, Outcome::Superseded, started);
                self.ingest.queue.rest(&owner, now, took);
                self.ingest.queue.push(owner.clone(), now);
            }
            None => self.survive(&owner, started, took),
        }
        if is_stale {
            self.ingest.queue.push(owner, now);
        }
    }

    /// Does what follows from what was made of an owner.
    pub(super) fn act_on(&mut self, owner: &ObjectKey, reconciled: Reconciled, taken: Taken) {
        self.ingest.awaits(owner, reconciled.awaited.clone());
        self.follow_parameters(owner);
        self.publish_owner(owner, reconciled, true, taken);
    }

    /// A translation has panicked: what was published before stays, and nothing is left that the panic could have spoilt.
    fn survive(&mut self, owner: &ObjectKey, started: Instant, took: Duration) {
        tracing::error!(%owner, "translation panicked (a bug); previous configuration stays");
        Span::current().record("outcome", Outcome::Panicked.as_str());
        self.count(owner, Outcome::Panicked, started);
        for data_plane in self.parts.reconciler.data_planes(owner) {
            self.deliveries.failed(&data_plane, PANICKED.to_owned());
        }
        self.report.tell_later(owner);
        self.tell_delivery(owner);
        let now = Instant::now();
        self.ingest.queue.rest(owner, now, took);
        self.ingest.queue.retry(owner.clone(), now);
    }

    fn count_jobs(&self) {
        if let Some(metrics) = &self.parts.metrics {
            metrics.translations(self.ingest.jobs.len());
        }
    }
}
