//! Every watch there is, as one.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use kube::Client;
use pingsix_translate::ObjectKey;
use pingsix_translate::snapshot::{
    BackendTlsPolicy, EndpointSlice, Gateway, GatewayClass, GrpcRoute, HttpRoute, Ingress, IngressClass,
    ListenerSet, Namespace, ReferenceGrant, Secret, Service, TcpRoute, TlsRoute, UdpRoute,
};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::input::{Closed, Input};
use super::lifecycle::Lifecycle;
use super::options::{SecretWatch, WatchOptions};
use super::referenced::Referenced;
use super::stats::WatchStats;
use super::stream::Ground;

/// The watches of a cluster, while they run. Dropping it ends them.
#[derive(Debug)]
pub struct Watches {
    wanted: watch::Sender<BTreeSet<ObjectKey>>,
    look: watch::Sender<()>,
    stats: Arc<WatchStats>,
    tasks: JoinSet<()>,
    failure: Option<JoinError>,
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
        let ground = Ground { client, options: Arc::new(options), stats: stats.clone() };
        let mut start = Start { tasks: JoinSet::new(), stop: stop.child_token() };

        macro_rules! watch_kinds {
            ($($kind:ty)+) => {$(
                let lifecycle = Lifecycle::<$kind>::new(ground.clone(), inputs.clone(), look_receiver.clone());
                let span = tracing::info_span!("watch", kind = stringify!($kind));
                start.spawn(lifecycle.run().instrument(span));
            )+};
        }
        watch_kinds! {
            GatewayClass Gateway ListenerSet HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute BackendTlsPolicy
            ReferenceGrant IngressClass Ingress Service EndpointSlice Namespace
        }
        if watches_all_secrets {
            watch_kinds!(Secret);
        }
        start.spawn(Referenced::new(ground, inputs, wanted_receiver).run());
        (Self { wanted, look, stats, tasks: start.tasks, failure: None }, receiver)
    }

    /// Says which Secrets and ConfigMaps are referred to: all of them, each time. Those that were not are watched from now
    /// on, and answered when something is known; those that are no longer are released. Other kinds are passed over, and
    /// Secrets too when all of them are watched.
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

    /// What the watches have been through.
    pub const fn stats(&self) -> &Arc<WatchStats> {
        &self.stats
    }

    /// Waits until every watch has ended.
    ///
    /// # Errors
    ///
    /// One of them panicked. May be dropped and called again without losing that.
    pub async fn ended(&mut self) -> Result<(), JoinError> {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                self.failure.get_or_insert(error);
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}

struct Start {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Start {
    fn spawn(&mut self, run: impl Future<Output = Result<Infallible, Closed>> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            // However it ends, also by a panic, the others end too: a picture of which a part stands still is no picture.
            let _others = stop.clone().drop_guard();
            if let Some(Err(Closed)) = stop.run_until_cancelled(run).await {
                tracing::debug!("nobody takes what is watched any more");
            }
        });
    }
}
