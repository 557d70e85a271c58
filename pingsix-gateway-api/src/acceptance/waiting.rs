//! The timeouts of trials without a confirmation, and the end of a given-up search.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{Acceptance, AcceptanceOutcome, DraftNumber};

/// The timeout of a trial without a connected instance: longer than PingSIX takes to reconnect, which is three seconds
/// and the time to read.
pub(super) const ALONE: Duration = Duration::from_secs(10);

/// The timeout of a trial with a connected instance that does not confirm.
pub(super) const UNANSWERED: Duration = Duration::from_mins(2);

/// A trial without a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// The number of the trial; `None` while the former content is restored.
    trial: (DraftNumber, bool),
    since: Instant,
    /// The time since which no instance is connected.
    alone_since: Option<Instant>,
}

impl Acceptance {
    /// Ends trials without a report, searches refused content without a finding again, and retries held-back objects,
    /// each at its time. Callers repeat this every few seconds.
    pub fn beat(&mut self, now: Instant) -> AcceptanceOutcome {
        let is_released = self.end_probations(now);
        if !self.is_busy() && !self.is_restoring {
            self.waiting = None;
            if is_released {
                return AcceptanceOutcome::Search;
            }
            return if self.fault.is_some() { self.reconsider(now) } else { self.retry(now) };
        }
        let trial = (self.last_number, self.is_restoring);
        let waiting = self.waiting.filter(|waiting| waiting.trial == trial);
        let waiting = waiting.unwrap_or(Waiting { trial, since: now, alone_since: None });
        let alone_since = self.receptions.is_empty().then(|| waiting.alone_since.unwrap_or(now));
        self.waiting = Some(Waiting { alone_since, ..waiting });
        // A retry does not wait, and an instance that connects during its publication begins with its content.
        let (alone, unanswered) =
            if self.is_retrying() { (Duration::ZERO, 3 * ALONE) } else { (ALONE, UNANSWERED) };
        let is_alone = alone_since.is_some_and(|since| now.duration_since(since) >= alone);
        if !is_alone && now.duration_since(waiting.since) < unanswered {
            return AcceptanceOutcome::Nothing;
        }
        self.waiting = None;
        self.is_restoring = false;
        self.stop_retry();
        if self.search.take().is_some() {
            // A new instance may accept the content; a refusal would show again.
            self.fault = None;
            self.published.clear();
        }
        AcceptanceOutcome::Unanswered
    }

    /// Searches refused content without a finding again.
    fn reconsider(&mut self, now: Instant) -> AcceptanceOutcome {
        let Some(fault) = self.fault.as_mut().filter(|fault| fault.given_up.is_some()) else {
            return AcceptanceOutcome::Nothing;
        };
        if !fault.again.is_due(now) {
            return AcceptanceOutcome::Nothing;
        }
        fault.again.failed();
        fault.given_up = None;
        fault.doubts_everything = true;
        self.judge(&BTreeSet::new())
    }
}
