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
    const AGAIN: Duration = Duration::from_mins(1);
    /// Limit of remembered messages. Clients choose the content of some messages, so further ones within the interval
    /// are suppressed.
    const MOST: usize = 64;

    /// Whether `message` was not logged within the interval. The call records it as logged.
    pub(super) fn is_news(&self, thing: &str) -> bool {
        self.is_news_at(thing, Instant::now())
    }

    fn is_news_at(&self, thing: &str, now: Instant) -> bool {
        let mut logged = self.logged.lock();
        let is_fresh = |at: &Instant| now.duration_since(*at) < Self::AGAIN;
        if logged.get(thing).is_some_and(is_fresh) {
            return false;
        }
        if logged.len() >= Self::MOST {
            logged.retain(|_, at| is_fresh(at));
        }
        if logged.len() >= Self::MOST {
            return false;
        }
        logged.insert(thing.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_news_again_after_a_while() {
        let (news, start) = (LogLimiter::default(), Instant::now());
        assert!(news.is_news_at("a", start));
        assert!(!news.is_news_at("a", start + LogLimiter::AGAIN / 2));
        assert!(news.is_news_at("b", start + LogLimiter::AGAIN / 2));
        assert!(news.is_news_at("a", start + LogLimiter::AGAIN));
    }

    #[test]
    fn more_things_than_are_remembered_are_not_news_until_the_oldest_is_forgotten() {
        let (news, start) = (LogLimiter::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert!(news.is_news_at("first", start));
        let said = (0..1_000).filter(|number| news.is_news_at(&number.to_string(), start + second)).count();
        assert_eq!(said, LogLimiter::MOST - 1);
        assert!(!news.is_news_at("first", start + second));
        assert!(news.is_news_at("another", start + LogLimiter::AGAIN));
        assert!(!news.is_news_at("one more", start + LogLimiter::AGAIN));
        assert_eq!(news.logged.lock().len(), LogLimiter::MOST);
    }
}
