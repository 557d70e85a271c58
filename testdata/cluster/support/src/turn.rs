//! The number of clusters that a program has at the same time.

use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use tokio::sync::{Semaphore, SemaphorePermit};

/// However many processors there are: each cluster takes half a gigabyte of memory.
const MAX_CLUSTERS: usize = 8;

/// A cluster that starts keeps a processor busy, and tests beside it bound what they wait for.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, usize::from).min(MAX_CLUSTERS)));

/// That a test may have clusters, until it has none any more.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// The semaphore is never closed, so there is a permit.
    _permit: Arc<Option<SemaphorePermit<'static>>>,
}

impl Turn {
    /// Waits for a turn; who asks first gets it first.
    pub(crate) async fn take() -> Self {
        Self::of(&TURNS).await
    }

    async fn of(turns: &'static Semaphore) -> Self {
        Self { _permit: Arc::new(turns.acquire().await.ok()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn a_turn_ends_with_the_last_cluster_of_its_test() {
        static ONE: Semaphore = Semaphore::const_new(1);
        let turn = Turn::of(&ONE).now_or_never().unwrap();
        let beside = turn.clone();
        drop(turn);
        assert!(Turn::of(&ONE).now_or_never().is_none());
        drop(beside);
        assert!(Turn::of(&ONE).now_or_never().is_some());
    }
}
