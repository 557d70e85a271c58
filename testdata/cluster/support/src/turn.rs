//! How many tests of a program have a cluster at the same time.

use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// No more than these at a time, however many processors there are: each takes half a gigabyte of memory.
const AT_MOST: usize = 8;

/// A cluster that starts keeps a processor busy, and tests have times that they expect things in.
static TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(processors.min(AT_MOST)))
});

/// That a test may have a cluster. It is given back with the last cluster of the test.
#[derive(Clone, Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "held, not read")] Arc<OwnedSemaphorePermit>);

impl Turn {
    /// Waits for a turn. Who comes first gets it first.
    pub(crate) async fn take() -> Option<Self> {
        // Nobody ever closes it.
        let permit = Arc::clone(&TURNS).acquire_owned().await.ok()?;
        Some(Self(Arc::new(permit)))
    }
}
