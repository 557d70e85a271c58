//! The timeouts of trials without a confirmation, and the end of a given-up search.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::{Acceptance, AcceptanceOutcome, DraftNumber};

/// The timeout of a trial without a connected instance: longer than PingSIX takes to reconnect, which is three seconds
/// and the time to read.
pub(super) const UNCONNECTED_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout of a trial with a connected instance that does not confirm.
pub(super) const CONFIRMATION_TIMEOUT: Duration = Duration::from_mins(2);

/// A trial without a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialTimeout {
    /// The number of the trial; `None` while the former content is restored.
    trial: (DraftNumber, bool),
    since: Instant,
    /// The time since which no instance is connected.
    unconnected_since: Option<Instant>,
}

impl Acceptance {
    /// Ends trials without a report, repeats searches without a quarantine, and retries objects in quarantine, each
    /// when due. Callers repeat this every few seconds.
    pub(crate) fn tick(&mut self, now: Instant) -> AcceptanceOutcome {
        let is_released = self.end_probations(now);
        if !self.is_busy() && !self.is_restoring {
            self.trial_timeout = None;
            if is_released {
                return AcceptanceOutcome::Search;
            }
            return if self.refused_publication.is_some() { self.reconsider(now) } else { self.retry(now) };
        }
        let trial = (self.last_number, self.is_restoring);
        let trial_timeout = self.trial_timeout.filter(|trial_timeout| trial_timeout.trial == trial);
        let trial_timeout =
            trial_timeout.unwrap_or(TrialTimeout { trial, since: now, unconnected_since: None });
        let unconnected_since =
            self.receptions.is_empty().then(|| trial_timeout.unconnected_since.unwrap_or(now));
        self.trial_timeout = Some(TrialTimeout { unconnected_since, ..trial_timeout });
        // A retry does not wait, and an instance that connects during its publication begins with its content.
        let (unconnected_timeout, timeout) = if self.is_retrying() {
            (Duration::ZERO, 3 * UNCONNECTED_TIMEOUT)
        } else {
            (UNCONNECTED_TIMEOUT, CONFIRMATION_TIMEOUT)
        };
        let is_unconnected =
            unconnected_since.is_some_and(|since| now.duration_since(since) >= unconnected_timeout);
        if !is_unconnected && now.duration_since(trial_timeout.since) < timeout {
            return AcceptanceOutcome::Nothing;
        }
        self.trial_timeout = None;
        self.is_restoring = false;
        self.stop_retry();
        if self.search.take().is_some() {
            // A new instance may accept the content; a refusal would show again.
            self.refused_publication = None;
            self.published.clear();
        }
        AcceptanceOutcome::Unanswered
    }

    /// Repeats a search without a quarantine.
    fn reconsider(&mut self, now: Instant) -> AcceptanceOutcome {
        let Some(publication) =
            self.refused_publication.as_mut().filter(|publication| publication.given_up.is_some())
        else {
            return AcceptanceOutcome::Nothing;
        };
        if !publication.next_search.is_due(now) {
            return AcceptanceOutcome::Nothing;
        }
        publication.next_search.failed();
        publication.given_up = None;
        publication.suspects_accepted = true;
        self.judge(&BTreeSet::new())
    }
}
