//! Time limits of waits for referenced objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pingsix_translate::ObjectKey;
use tokio::time::Instant;

/// The longest wait for an answer. A request without an answer fails after a minute
/// ([`WatchOptions::request_timeout`](crate::watch::WatchOptions::request_timeout)), and is repeated once.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// The objects of one owner with references that the API server has not answered, each with the time limit of its wait.
#[derive(Debug, Default)]
pub(super) struct Waits(BTreeMap<ObjectKey, Wait>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Since the last [`Waits::expire`].
    New,
    Until(Instant),
    /// The wait has ended until all references are answered. A further reference does not renew the wait.
    Over,
}

impl Waits {
    /// Sets the objects with unanswered references. Returns the objects that still wait.
    pub(super) fn set(&mut self, lacking: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        self.0.retain(|object, _| lacking.contains(object));
        let mut waiting = lacking;
        waiting.retain(|object| *self.0.entry(object.clone()).or_insert(Wait::New) != Wait::Over);
        waiting
    }

    /// Ends the waits of these objects.
    pub(super) fn end(&mut self, lacking: BTreeSet<ObjectKey>) {
        self.0 = lacking.into_iter().map(|object| (object, Wait::Over)).collect();
    }

    /// Ends the waits that have reached their time limit. The time limit starts again while the API server does not answer.
    /// Returns whether any wait has ended.
    pub(super) fn expire(&mut self, now: Instant, is_answering: bool) -> bool {
        let mut has_ended = false;
        for wait in self.0.values_mut() {
            match *wait {
                Wait::Until(until) if is_answering && until <= now => {
                    *wait = Wait::Over;
                    has_ended = true;
                }
                Wait::Until(_) if is_answering => {}
                Wait::New | Wait::Until(_) => *wait = Wait::Until(now + ANSWER_TIMEOUT),
                Wait::Over => {}
            }
        }
        has_ended
    }
}

#[cfg(test)]
mod tests {
    use pingsix_translate::Kind;

    use super::*;

    fn set(names: &[&str]) -> BTreeSet<ObjectKey> {
        names.iter().map(|name| ObjectKey::new(Kind::ListenerSet, "shop", *name)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_further_reference_does_not_renew_a_wait() {
        let (mut waits, now) = (Waits::default(), Instant::now());
        assert_eq!(waits.set(set(&["a"])), set(&["a"]));
        assert!(!waits.expire(now, true));
        let later = now + ANSWER_TIMEOUT / 2;
        assert_eq!(waits.set(set(&["a", "b"])), set(&["a", "b"]));
        assert!(!waits.expire(later, true));
        assert!(waits.expire(now + ANSWER_TIMEOUT, true));
        // A further unanswered name of another object does not extend the first wait.
        assert_eq!(waits.set(set(&["a", "b"])), set(&["b"]));
        assert!(waits.expire(later + ANSWER_TIMEOUT, true));
        assert_eq!(waits.set(set(&["a", "b"])), set(&[]));
        // All is answered; then it waits anew.
        waits.set(set(&["b"]));
        assert_eq!(waits.set(set(&["a", "b"])), set(&["a"]));
    }

    #[tokio::test(start_paused = true)]
    async fn patience_counts_while_the_api_server_answers() {
        let (mut waits, now) = (Waits::default(), Instant::now());
        waits.set(set(&["a"]));
        for away in 0..100 {
            assert!(!waits.expire(now + ANSWER_TIMEOUT * away, false));
        }
        // The API server was silent for 99 times as long.
        let back = now + ANSWER_TIMEOUT * 99;
        assert!(!waits.expire(back + ANSWER_TIMEOUT / 2, true) && waits.expire(back + ANSWER_TIMEOUT, true));
    }
}
