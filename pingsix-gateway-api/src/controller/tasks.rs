//! The tasks of a controller.

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// The tasks of a controller. They end when it is stopped.
#[derive(Debug)]
pub(super) struct Tasks {
    set: JoinSet<()>,
    pub(super) stop: CancellationToken,
}

impl Tasks {
    pub(super) fn new(stop: &CancellationToken) -> Self {
        Self { set: JoinSet::new(), stop: stop.clone() }
    }

    /// Runs a task until it is stopped.
    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let (stop, task) = (self.stop.clone(), Box::pin(task));
        self.set.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Runs a task that ends by itself when it is stopped.
    pub(super) fn spawn_to_end(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(task);
    }

    /// Waits until one of the tasks fails, for ever if none does.
    pub(super) async fn first_error(&mut self) -> JoinError {
        while let Some(ended) = self.set.join_next().await {
            if let Err(error) = ended {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Waits until all tasks have ended.
    pub(super) async fn all_ended(mut self) -> Result<(), JoinError> {
        while let Some(ended) = self.set.join_next().await {
            ended?;
        }
        Ok(())
    }
}
