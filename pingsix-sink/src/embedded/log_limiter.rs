//! Rate limit of log lines.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The recently logged messages. Clients repeat the same requests every few seconds.
#[derive(Debug, Default)]
pub(super) struct LogLimiter {
    logged: Mutex<BTreeMap<String, Instant>>,
}

impl LogLimiter {
    const INTERVAL: Duration = Duration::from_mins(1);
    /// Limit of remembered messages. Clients choose the content of some messages, so further ones within the interval
    /// are suppressed.
    const MAX_ENTRIES: usize = 64;

    /// Whether `message` was not logged within the interval. The call records it as logged.
    pub(super) fn should_log(&self, message: &str) -> bool {
        self.should_log_at(message, Instant::now())
    }

    fn should_log_at(&self, message: &str, now: Instant) -> bool {
        let mut logged = self.logged.lock();
        let is_recent = |at: &Instant| now.duration_since(*at) < Self::INTERVAL;
        if logged.get(message).is_some_and(is_recent) {
            return false;
        }
        if logged.len() >= Self::MAX_ENTRIES {
            logged.retain(|_, at| is_recent(at));
        }
        if logged.len() >= Self::MAX_ENTRIES {
            return false;
        }
        logged.insert(message.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_again_after_the_interval() {
        let (news, start) = (LogLimiter::default(), Instant::now());
        assert!(news.should_log_at("a", start));
        assert!(!news.should_log_at("a", start + LogLimiter::INTERVAL / 2));
        assert!(news.should_log_at("b", start + LogLimiter::INTERVAL / 2));
        assert!(news.should_log_at("a", start + LogLimiter::INTERVAL));
    }

    #[test]
    fn messages_beyond_the_limit_are_suppressed_until_the_oldest_expires() {
        let (news, start) = (LogLimiter::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert!(news.should_log_at("first", start));
        let said =
            (0..1_000).filter(|number| news.should_log_at(&number.to_string(), start + second)).count();
        assert_eq!(said, LogLimiter::MAX_ENTRIES - 1);
        assert!(!news.should_log_at("first", start + second));
        assert!(news.should_log_at("another", start + LogLimiter::INTERVAL));
        assert!(!news.should_log_at("one more", start + LogLimiter::INTERVAL));
        assert_eq!(news.logged.lock().len(), LogLimiter::MAX_ENTRIES);
    }
}
