//! Every watch there is, as one.

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

/// The watches of a cluster, while they run. Dropping it ends them.
#[derive(Debug)]
pub struct Watches {
    wanted: watch::Sender<BTreeSet<ObjectKey>>,
    look: watch::Sender<()>,
    stats: Arc<WatchStats>,
    tasks: Tasks,
}

impl Watches {
    /// Starts to watch. Everything that is seen comes out of the receiver, one kind in order, different kinds in any; when
    /// its consumer is slow, the watches wait. It ends when all watches have.
    ///
    /// `stop` ends all of them. One that ends by itself, which it does only by a panic or when the receiver is dropped,
    /// ends the others; [`Watches::ended`] says why.
    pub fn start(
        client: Client,
        options: WatchOptions,
        stop: &CancellationToken,
    ) -> (Self, mpsc::Receiver<Input>) {
        let (inputs, receiver) = mpsc::channel(options.capacity.max(1));
        let (wanted, wanted_receiver) = watch::channel(BTreeSet::new());
        let (look, look_receiver) = watch::channel(());
        let stats = Arc::new(WatchStats::default());
        let watches_all_secrets = matches!(options.secrets, SecretWatch::All { .. });
        let ground = WatchContext { client, options: Arc::new(options), stats: stats.clone() };
        let mut tasks = Tasks { set: JoinSet::new(), stop: stop.child_token(), failure: None };

        macro_rules! watch_kinds {
            ($($kind:ident in $field:ident $facts:tt)+) => {$(
                let is_by_name = presence(Kind::$kind) == Presence::Referenced;
                if !is_by_name || Kind::$kind == Kind::Secret && watches_all_secrets {
                    let (inputs, look) = (inputs.clone(), look_receiver.clone());
                    let lifecycle = Lifecycle::<snapshot::$kind>::new(ground.clone(), inputs, look);
                    let span = tracing::info_span!("watch", kind = stringify!($kind));
                    tasks.spawn(lifecycle.run().instrument(span));
                }
            )+};
        }
        for_each_kind! { watch_kinds }
        tasks.spawn(Referenced::new(ground, inputs, wanted_receiver).run());
        (Self { wanted, look, stats, tasks }, receiver)
    }

    /// Says which Secrets and ConfigMaps are referred to: all of them, each time. Those that were not are watched from now
    /// on, and answered when something is known; those that are no longer are released.
    ///
    /// Other kinds are passed over. So are Secrets when all of them are watched: then they are known as soon as
    /// [`World::is_complete`](crate::world::World::is_complete) says so.
    pub fn refer(&self, wanted: BTreeSet<ObjectKey>) {
        self.wanted.send_if_modified(|held| {
            let is_other = *held != wanted;
            *held = wanted;
            is_other
        });
    }

    /// Has kinds that are absent looked for now.
    pub fn look_again(&self) {
        self.look.send_replace(());
    }

    /// The counters of the watches.
    pub const fn stats(&self) -> &Arc<WatchStats> {
        &self.stats
    }

    /// Waits until every watch has ended.
    ///
    /// # Errors
    ///
    /// One of them panicked. May be dropped and called again without losing that.
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
            // However it ends, also by a panic, the others end too: a picture of which a part stands still is no picture.
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
    async fn a_panic_ends_all_watches_and_is_told() {
        let server = ApiServer::default();
        let stop = CancellationToken::new();
        let (mut watches, mut inputs) = Watches::start(server.client(), WatchOptions::default(), &stop);
        watches.tasks.spawn(async {
            tokio::task::yield_now().await;
            panic!("a defect")
        });
        while inputs.recv().await.is_some() {}
        assert!(!stop.is_cancelled(), "the rest of the process decides for itself");
        assert!(watches.ended().await.unwrap_err().is_panic());
    }
}
