//! The roles that run, until a signal ends them.

use anyhow::{Context as _, anyhow};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::arguments::Arguments;
use crate::log;
use crate::responder::Responder;

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
    let stop = CancellationToken::new();
    let running = roles(arguments, &stop);
    tokio::pin!(running);
    tokio::select! {
        ended = running.as_mut() => return ended,
        signal = stopped() => info!(signal, "stopping"),
    }
    stop.cancel();
    let ended = tokio::select! {
        ended = running => ended,
        signal = stopped() => return Err(anyhow!("a second signal came: {signal}")),
    };
    info!("stopped");
    ended
}

/// Runs the roles until they are stopped, or until one of them ends, which then ends the others.
async fn roles(arguments: &Arguments, stop: &CancellationToken) -> anyhow::Result<()> {
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
