//! Files that another process may change at any time.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// Limit of repeated reads until two agree.
const MAX_READS: usize = 5;

/// The result of `read` with its digest; `known` is the digest of the previous result.
///
/// Files may be replaced one by one, or written piece by piece between two reads. So a new result counts when two
/// consecutive reads agree. If no two agree, the last one counts, and the next call will find another.
pub(super) fn read_stable<D: Copy + PartialEq, T>(
    known: Option<D>,
    mut read: impl FnMut() -> (D, T),
) -> (D, T) {
    let (mut digest, mut found) = read();
    for _ in 0..MAX_READS {
        if Some(digest) == known {
            break;
        }
        let before = digest;
        (digest, found) = read();
        if digest == before {
            break;
        }
    }
    (digest, found)
}

/// Calls `refresh` at intervals, on a thread that may block.
pub(super) async fn refresh_every(
    interval: Duration,
    refresh: impl Fn() + Clone + Send + 'static,
) -> Infallible {
    let mut interval = tokio::time::interval(interval);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        if let Err(error) = tokio::task::spawn_blocking(refresh.clone()).await {
            tracing::error!(%error, "watched files could not be checked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_content_counts_when_read_twice_and_known_content_at_once() {
        for (known, finds, expected, reads) in [
            (Some(1), vec![1], 1, 1),
            (Some(1), vec![2, 2], 2, 2),
            (None, vec![1, 1], 1, 2),
            (Some(1), vec![2, 3, 3], 3, 3),
            (Some(1), vec![2, 1], 1, 2),
            (Some(1), vec![2, 3, 4, 5, 6, 7], 7, 6),
        ] {
            let mut left = finds.iter();
            let read = || left.next().map(|found| (*found, *found)).expect("no more reads than needed");
            assert_eq!(read_stable(known, read), (expected, expected), "{finds:?}");
            assert_eq!(finds.len() - left.len(), reads, "{finds:?}");
        }
    }
}
