//! Waiting for a value that changes, and between attempts.

use std::time::Duration;

use tokio::sync::watch;

/// Waits for a change; forever without a receiver.
pub(crate) async fn changed<T>(receiver: Option<&mut watch::Receiver<T>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// The delay after a number of failures in a row: `first` after one, doubled with each further failure, `longest` at most.
pub(crate) fn doubled(first: Duration, failures: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << failures.saturating_sub(1).min(31)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_with_each_failure_up_to_the_longest() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(30));
        let delays =
            [0, 1, 2, 3, 9, 10, u32::MAX].map(|failures| doubled(first, failures, longest).as_millis());
        assert_eq!(delays, [100, 100, 200, 400, 25_600, 30_000, 30_000]);
    }
}
