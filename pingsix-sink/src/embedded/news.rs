//! Saying a thing once in a while, however often it happens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Remembers what was logged, since clients do the same again every few seconds.
#[derive(Debug, Default)]
pub(super) struct News {
    logged: Mutex<BTreeMap<String, Instant>>,
}

impl News {
    const AGAIN: Duration = Duration::from_mins(1);
    const MOST: usize = 64;

    /// Whether `thing` was not logged for a while; it counts as logged from now on.
    pub(super) fn is_news(&self, thing: &str) -> bool {
        let now = Instant::now();
        let mut logged = self.logged.lock();
        if logged.get(thing).is_some_and(|at| now.duration_since(*at) < Self::AGAIN) {
            return false;
        }
        if logged.len() >= Self::MOST {
            logged.clear();
        }
        logged.insert(thing.to_owned(), now);
        true
    }
}
