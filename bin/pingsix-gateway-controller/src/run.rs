//! The controller: what runs, and how its parts are connected.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use pingsix_gateway_api::controller::{Controller, Observers, SinkOpener};
use pingsix_gateway_api::health::Health;
use pingsix_gateway_api::metrics::Metrics;
use pingsix_gateway_api::operations::{debug, server};
use pingsix_gateway_api::replicas::Replicas;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::configuration::{Configuration, Kube};
use crate::sinks::{self, Opened};
use crate::wiring::{Replica, controller_options, instance};

/// Runs until it is stopped, or until a part of it ends, which then ends the others.
pub(crate) async fn run(configuration: &Configuration, stop: CancellationToken) -> anyhow::Result<()> {
    let health = Health::new(configuration.health.stuck_after.duration());
    let metrics = Arc::new(Metrics::new(env!("CARGO_PKG_VERSION")));
    let (debug_client, debug_requests) = debug::channel();

    // These are served until everything else has ended, so that a shutdown can be watched.
    let last = CancellationToken::new();
    let _ends_with_this = last.clone().drop_guard();
    let mut pages = JoinSet::new();
    let listener = listen(configuration.health.address, "health.address").await?;
    let router = server::health_and_metrics(health.clone(), Arc::clone(&metrics));
    pages.spawn(server::serve("health", listener, router, last.clone()));
    if let Some(address) = configuration.debug.address.address() {
        let listener = listen(address, "debug.address").await?;
        pages.spawn(server::serve("debug", listener, server::debug(debug_client), last.clone()));
    }

    let (client, namespace) = connect(&configuration.kube).await?;
    let options = controller_options(configuration, &Replica { namespace, instance: instance() })?;
    let replicas = options.lease.as_ref().map(|lease| Replicas::new(client.clone(), lease));
    let Opened { router, etcd } = sinks::open(configuration, replicas.as_ref()).await?;
    if let Some(etcd) = &etcd {
        metrics.observe_feed(etcd.clone());
    }
    let observers = Observers { health: Some(health), metrics: Some(metrics), debug: Some(debug_requests) };
    let controller = Controller::new(client, router, options).observed_by(observers);
    let mut controller = controller.with_attached_sinks(SinkOpener::of_servers());
    if let Some(replicas) = replicas.filter(|_| etcd.is_some()) {
        controller = controller.with_replicas(replicas);
    }

    let mut parts: JoinSet<anyhow::Result<()>> = JoinSet::new();
    if let Some(etcd) = etcd {
        let listener = listen(configuration.feed.address, "feed.address").await?;
        let stop = stop.clone();
        parts.spawn(async move { etcd.serve(listener, stop).await.context("the feed ended") });
    }
    {
        let stop = stop.clone();
        parts.spawn(async move { controller.run(stop).await.context("the controller ended") });
    }

    let ended = all_end(parts, &stop).await;
    last.cancel();
    while pages.join_next().await.is_some() {}
    info!("stopped");
    ended
}

/// Waits until all parts have ended. A part that ends before the shutdown ends the others. The first error is returned.
async fn all_end(mut parts: JoinSet<anyhow::Result<()>>, stop: &CancellationToken) -> anyhow::Result<()> {
    let mut result = Ok(());
    while let Some(ended) = parts.join_next().await {
        let ended = match ended {
            Ok(Ok(())) if !stop.is_cancelled() => Err(anyhow!("a part of the controller ended by itself")),
            Ok(ended) => ended,
            Err(panic) => Err(anyhow!(panic).context("a part of the controller failed")),
        };
        stop.cancel();
        result = result.and(ended);
    }
    result
}

async fn listen(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} ({key})"))
}

/// A client of the API server, and the namespace it is for. Whether it answers shows later.
async fn connect(kube: &Kube) -> anyhow::Result<(Client, String)> {
    let options = KubeConfigOptions { context: kube.context.clone(), ..KubeConfigOptions::default() };
    let mut config = match (&kube.config, &kube.context) {
        (Some(file), _) => {
            let read = Kubeconfig::read_from(file);
            let kubeconfig = read.with_context(|| format!("cannot use {} (kube.config)", file.display()))?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .context("cannot use the kubeconfig (kube.config, kube.context)")
        }
        (None, Some(_)) => {
            Config::from_kubeconfig(&options).await.context("cannot use the kubeconfig (kube.context)")
        }
        (None, None) => Config::infer().await.context(
            "cannot find the API server: the program has no kubeconfig and runs outside of a Pod \
             (kube.config)",
        ),
    }?;
    info!(server = %config.cluster_url, "using the API server");
    // The callers choose their own delays of retries.
    config.default_retry = false;
    let namespace = config.default_namespace.clone();
    Ok((Client::try_from(config).context("cannot make a client of the API server")?, namespace))
}
