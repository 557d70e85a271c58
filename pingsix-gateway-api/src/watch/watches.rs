//! All watches of a cluster.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use kube::Client;
use pingsix_translate::{Kind, ObjectKey, for_each_kind, snapshot};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::input::{Closed, Input};
use super::kinds::{Presence, presence};
use super::lifecycle::Lifecycle;
use super::options::{SecretWatch, WatchOptions};
use super::referenced::Referenced;
use super::stats::WatchStats;
use super::stream::WatchContext;
use crate::wait;

/// The running watches of a cluster. Dropping the value ends them.
#[derive(Debug)]
pub struct Watches {
    references: watch::Sender<BTreeSet<ObjectKey>>,
    rediscover: watch::Sender<()>,
    stats: Arc<WatchStats>,
    tasks: Tasks,
}

impl Watches {
    /// Starts the watches. The receiver yields the inputs of each kind in order, and inputs of different kinds in any
    /// order. Watches wait for a slow consumer. The receiver ends after all watches have ended.
    ///
    /// `stop` ends all watches. A watch that panics ends all others, and so does a dropped receiver; [`Watches::ended`]
    /// returns the cause.
    pub fn start(
        client: Client,
        options: WatchOptions,
        stop: &CancellationToken,
    ) -> (Self, mpsc::Receiver<Input>) {
        let (inputs, receiver) = mpsc::channel(options.capacity.max(1));
        let (references, references_receiver) = watch::channel(BTreeSet::new());
        let (rediscover, rediscover_receiver) = watch::channel(());
        let stats = Arc::new(WatchStats::default());
        let watches_all_secrets = matches!(options.secrets, SecretWatch::All { .. });
        let context = WatchContext { client, options: Arc::new(options), stats: stats.clone() };
        let mut tasks = Tasks { set: JoinSet::new(), stop: stop.child_token(), failure: None };

        macro_rules! watch_kinds {
            ($($kind:ident in $field:ident $facts:tt)+) => {$(
                let is_by_name = presence(Kind::$kind) == Presence::Referenced;
                if !is_by_name || Kind::$kind == Kind::Secret && watches_all_secrets {
                    let (inputs, rediscover) = (inputs.clone(), rediscover_receiver.clone());
                    let lifecycle = Lifecycle::<snapshot::$kind>::new(context.clone(), inputs, rediscover);
                    let span = tracing::info_span!("watch", kind = stringify!($kind));
                    tasks.spawn(lifecycle.run().instrument(span));
                }
            )+};
        }
        for_each_kind! { watch_kinds }
        tasks.spawn(Referenced::new(context, inputs, references_receiver).run());
        (Self { references, rediscover, stats, tasks }, receiver)
    }

    /// Replaces the set of all references to Secrets and ConfigMaps. A new reference is watched from now on, and gets
    /// an [`Answer`](super::Answer) when the state of its object is known. An object without a reference is released.
    ///
    /// References to other kinds are ignored. References to Secrets are ignored with [`SecretWatch::All`]: all Secrets
    /// are known when [`World::is_complete`](crate::world::World::is_complete) is true.
    pub fn set_references(&self, references: BTreeSet<ObjectKey>) {
        wait::set(&self.references, references);
    }

    /// Requests an immediate discovery of absent kinds.
    pub fn rediscover(&self) {
        self.rediscover.send_replace(());
    }

    /// The counters of the watches.
    #[doc(hidden)]
    pub const fn stats(&self) -> &Arc<WatchStats> {
        &self.stats
    }

    /// Waits until every watch has ended.
    ///
    /// # Errors
    ///
    /// A watch panicked. The call is cancel safe.
    pub async fn ended(&mut self) -> Result<(), JoinError> {
        while let Some(ended) = self.tasks.set.join_next().await {
            if let Err(error) = ended {
                self.tasks.failure.get_or_insert(error);
            }
        }
        self.tasks.failure.take().map_or(Ok(()), Err)
    }
}

#[derive(Debug)]
struct Tasks {
    set: JoinSet<()>,
    stop: CancellationToken,
    /// The first panic.
    failure: Option<JoinError>,
}

impl Tasks {
    fn spawn(&mut self, run: impl Future<Output = Result<Infallible, Closed>> + Send + 'static) {
        let stop = self.stop.clone();
        self.set.spawn(async move {
            // The end of one task, also by a panic, ends all others: an outdated kind would make the world
            // inconsistent.
            let _others = stop.clone().drop_guard();
            if let Some(Err(Closed)) = stop.run_until_cancelled(run).await {
                tracing::debug!("the receiver of watch events is gone");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::api_server::ApiServer;

    #[tokio::test(start_paused = true)]
    async fn a_panic_ends_all_watches_and_is_returned() {
        let server = ApiServer::default();
        let stop = CancellationToken::new();
        let (mut watches, mut inputs) = Watches::start(server.client(), WatchOptions::default(), &stop);
        watches.tasks.spawn(async {
            tokio::task::yield_now().await;
            panic!("a defect")
        });
        while inputs.recv().await.is_some() {}
        assert!(!stop.is_cancelled(), "the rest of the process goes on");
        assert!(watches.ended().await.unwrap_err().is_panic());
    }
}
