//! The roles that run, until a signal ends them.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::arguments::Arguments;
use crate::feed::{self, Feed};
use crate::log;
use crate::metrics::{FeedMetrics, Metrics};
use crate::pages::{self, Pages};
use crate::responder::Responder;
use crate::status::Status;
use crate::stream::{StreamMetrics, Streams};

/// Runs until a signal comes or a role fails.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    log::start(arguments.process.log_format)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(until_stopped(arguments));
    // Blocking threads, such as the lookup of a name, do not delay the exit.
    runtime.shutdown_background();
    ended
}

/// After a first signal, roles end within the time of `--drain-seconds`. A second signal ends them at once.
async fn until_stopped(arguments: &Arguments) -> anyhow::Result<()> {
    // First of all, so that no signal finds the default action in place.
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut stopped = async move || {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    let feed = arguments.streams.streams.then(|| arguments.streams.feed()).transpose()?;
    let pages = Pages {
        status: Arc::new(Status::new(feed.as_ref().map(Feed::source))),
        metrics: Arc::new(Metrics::new(env!("CARGO_PKG_VERSION"))),
        key: arguments.process.status_key()?,
    };
    // The pages are served until everything else has ended, so that a shutdown can be watched.
    let last = CancellationToken::new();
    let _ends_with_this = last.clone().drop_guard();
    let mut serving = JoinSet::new();
    if let Some(address) = arguments.process.status_listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address} (--status-listen)"))?;
        serving.spawn(pages::serve(listener, pages.clone(), last.clone()));
    }
    let stop = CancellationToken::new();
    let running = roles(arguments, feed, &pages, &stop);
    tokio::pin!(running);
    let signal = tokio::select! {
        ended = running.as_mut() => return ended,
        signal = stopped() => signal,
    };
    // Before the log line: its reader may request the readiness page at once.
    pages.status.draining();
    info!(signal, "stopping");
    stop.cancel();
    let ended = tokio::select! {
        ended = running => ended,
        signal = stopped() => return Err(anyhow!("a second signal came: {signal}")),
    };
    last.cancel();
    while serving.join_next().await.is_some() {}
    info!("stopped");
    ended
}

/// Runs the roles until they are stopped, or until one of them ends, which then ends the others.
async fn roles(
    arguments: &Arguments,
    feed: Option<Feed>,
    pages: &Pages,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let drain = arguments.process.drain();
    let mut roles: JoinSet<anyhow::Result<()>> = JoinSet::new();
    if arguments.responder.responder {
        let (address, reach) = (arguments.responder.responder_listen, arguments.responder.reach());
        let responder = Responder::bind(address, reach, arguments.responder.options(drain)).await;
        let responder = responder.context("cannot run the responder (--responder-listen)")?;
        let stop = stop.clone();
        roles.spawn(async move {
            responder.run(stop.cancelled_owned()).await;
            Ok(())
        });
    }
    if let Some(feed) = feed {
        let stream_metrics = Arc::new(StreamMetrics::default());
        pages.metrics.add(|registry| stream_metrics.register(registry));
        let feed_metrics = pages.metrics.add(FeedMetrics::new);
        let streams = Streams::start(arguments.streams.options(), stream_metrics);
        let (status, stop) = (Arc::clone(&pages.status), stop.clone());
        roles.spawn(async move {
            feed::follow(feed, &status, &feed_metrics, &stop, &streams).await;
            streams.drain(drain).await;
            Ok(())
        });
    }
    pages.status.started();
    let mut result = Ok(());
    while let Some(ended) = roles.join_next().await {
        let ended = match ended {
            Ok(Ok(())) if !stop.is_cancelled() => Err(anyhow!("a role ended by itself")),
            Ok(ended) => ended,
            Err(panic) => Err(anyhow!(panic).context("a role failed")),
        };
        stop.cancel();
        result = result.and(ended);
    }
    result
}
