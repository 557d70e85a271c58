//! A controller that runs in a task of the test.

use std::sync::Arc;

use kube::Client;
use pingsix_gateway_api::controller::{
    Controller, ControllerError, ControllerOptions, Progress, SinkOpener, SinkRouter,
};
use pingsix_gateway_api::replicas::Replicas;
use pingsix_sink::EmbeddedEtcd;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::WAIT_TIMEOUT;

/// A running controller.
pub(crate) struct Running {
    stop: CancellationToken,
    run: JoinHandle<Result<(), ControllerError>>,
    pub(crate) progress: watch::Receiver<Progress>,
}

impl Running {
    /// Runs a controller that publishes to this server.
    pub(crate) fn start(client: Client, etcd: &EmbeddedEtcd, options: ControllerOptions) -> Self {
        Self::with_feed(Arc::new(etcd.clone()), client, options)
    }

    /// One of several replicas, of the election that the options name.
    pub(crate) fn replica(
        client: Client,
        etcd: &EmbeddedEtcd,
        replicas: Replicas,
        options: ControllerOptions,
    ) -> Self {
        Self::replica_with_feed(Arc::new(etcd.clone()), client, replicas, options)
    }

    /// The same, with another feed.
    pub(crate) fn replica_with_feed(
        sinks: impl Into<SinkRouter>,
        client: Client,
        replicas: Replicas,
        options: ControllerOptions,
    ) -> Self {
        Self::run(Controller::new(client, sinks, options).with_replicas(replicas))
    }

    /// A controller that also publishes to the sinks of parameters.
    pub(crate) fn with_attached_sinks(
        client: Client,
        etcd: &EmbeddedEtcd,
        options: ControllerOptions,
    ) -> Self {
        Self::run(
            Controller::new(client, Arc::new(etcd.clone()), options)
                .with_attached_sinks(SinkOpener::of_servers()),
        )
    }

    /// The same, with another feed.
    pub(crate) fn with_feed(
        sinks: impl Into<SinkRouter>,
        client: Client,
        options: ControllerOptions,
    ) -> Self {
        Self::run(Controller::new(client, sinks, options))
    }

    fn run(controller: Controller) -> Self {
        let progress = controller.progress();
        let stop = CancellationToken::new();
        let run = tokio::spawn(controller.run(stop.clone()));
        Self { stop, run, progress }
    }

    /// Waits until all owners are published once.
    pub(crate) async fn wait_until_ready(&mut self) {
        self.wait_for(Progress::is_ready).await;
    }

    /// Waits for this progress.
    pub(crate) async fn wait_for(&mut self, far: impl FnMut(&Progress) -> bool) {
        let has_come =
            timeout(WAIT_TIMEOUT, self.progress.wait_for(far)).await.is_ok_and(|seen| seen.is_ok());
        assert!(has_come, "not so far: {:?}", self.progress.borrow());
    }

    /// Ends the task at once, as SIGKILL would, without releasing its resources.
    pub(crate) async fn kill(self) {
        self.run.abort();
        let ended = timeout(WAIT_TIMEOUT, self.run).await.unwrap();
        assert!(ended.is_err_and(|error| error.is_cancelled()), "it had ended before");
    }

    /// Stops it, as at the end of a process.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        timeout(WAIT_TIMEOUT, self.run).await.unwrap().unwrap().unwrap();
    }
}
