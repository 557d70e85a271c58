//! `serve`: manifests to PingSIX over the etcd protocol, again and again.

mod explainer;
mod manifest_cache;
mod publisher;
mod reporter;
mod state;
mod view;
mod watcher;

use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use pingsix_gateway_api::IncrementalPipeline;
use pingsix_gateway_sidecar::responder::{BindError, Reach, Responder};
use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::EmbeddedError;
use pingsix_sink::http_server::{self, Versions};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, block_in_place};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::Exit;
use crate::arguments::{ResponderArgument, ServeArguments};
use manifest_cache::ManifestCache;
use publisher::Publisher;
use reporter::{Reporter, Unjudged};
use view::Pages;
use watcher::Watcher;

/// The time limit of clients at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &ServeArguments) -> anyhow::Result<Exit> {
    let filter = EnvFilter::builder().with_default_directive(tracing::Level::WARN.into()).from_env_lossy();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // A second subscriber cannot be installed, which only a test could try.
    let _ = log.try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(arguments))
}

/// Prints a line and flushes it, because readers act on each line.
fn print_line(line: impl std::fmt::Display) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

async fn serve(arguments: &ServeArguments) -> anyhow::Result<Exit> {
    // First of all, so that no signal finds the default action in place.
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let mut watcher = Watcher::new(arguments)?;
    let mut manifests = ManifestCache::new(arguments.translation.endpoints.clone());

    let stop = CancellationToken::new();
    let mut tasks: JoinSet<anyhow::Result<()>> = JoinSet::new();
    let mut options = arguments.translation.options();
    if let ResponderArgument::At(address) = arguments.translation.responder {
        let responder = bind_responder(address, arguments).await?;
        let address = responder.local_addr()?;
        options.responder = Some(address);
        print_line(format_args!("responder on {address}"))?;
        let stop = stop.clone();
        tasks.spawn(async move {
            responder.run(stop.cancelled_owned()).await;
            Ok(())
        });
    }
    let etcd = start_etcd(arguments).await?;
    let listener = listen(arguments.listen, "--listen").await?;
    // Plaintext goes without saying, as it does with etcd.
    let scheme = if arguments.tls.tls_cert.is_some() { "https://" } else { "" };
    print_line(format_args!("etcd on {scheme}{}", listener.local_addr()?))?;
    {
        let (etcd, stop) = (etcd.clone(), stop.clone());
        tasks.spawn(async move { Ok(etcd.serve(listener, stop).await?) });
    }

    let mut publisher = Publisher::new(etcd.clone());
    let mut pipeline = IncrementalPipeline::new(options.clone());
    let changed = watcher.take_changed();
    let (translated, _) = block_in_place(|| {
        manifests.load(watcher.found(), changed);
        Unjudged::new(manifests.manifests().clone(), &mut pipeline).judge(&options)
    });
    let (current, latest) = watch::channel(translated.clone());
    if let Some(address) = arguments.explain {
        if !address.ip().to_canonical().is_loopback() && !arguments.allow_non_loopback {
            bail!(
                "{address} can be reached from other machines; use a loopback address, or --allow-non-loopback"
            );
        }
        let listener = listen(address, "--explain").await?;
        print_line(format_args!("explaining on http://{}", listener.local_addr()?))?;
        let latest = latest.clone();
        let stop = stop.clone();
        let respond = move |request: &Request<Incoming>| {
            let translated = latest.borrow().clone();
            explainer::respond(&translated, request)
        };
        tasks.spawn(serve_http(listener, respond, stop));
    }
    if let Some(address) = arguments.view {
        // The pages show all objects, so they stay on this machine even if other addresses are allowed.
        if !address.ip().to_canonical().is_loopback() {
            bail!("{address} can be reached from other machines; --view needs a loopback address");
        }
        let listener = listen(address, "--view").await?;
        print_line(format_args!("view on http://{}/view", listener.local_addr()?))?;
        let pages = Pages {
            latest,
            publications: publisher.publications(),
            etcd: etcd.clone(),
            options: options.clone(),
            input: view::input(arguments),
        };
        tasks.spawn(serve_http(listener, move |request| pages.respond(request), stop.clone()));
    }
    let mut reporter = Reporter::default();
    let failures = publisher.publish(&translated.output).await?;
    reporter.report(&translated.findings, failures)?;
    etcd.open();
    print_line("ready")?;
    let (to_judge, publications) = mpsc::unbounded_channel();
    tasks.spawn(reporter::run(publications, options, current, reporter));

    let ended = loop {
        tokio::select! {
            _ = terminate.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
            Some(task) = tasks.join_next() => break task.map_err(anyhow::Error::from).flatten(),
            () = watcher.changed() => {
                let changed = watcher.take_changed();
                let count = block_in_place(|| manifests.load(watcher.found(), changed));
                tracing::debug!(count, "manifests have changed");
                if count == 0 {
                    continue;
                }
                let unjudged = || Unjudged::new(manifests.manifests().clone(), &mut pipeline);
                let mut unjudged = block_in_place(unjudged);
                unjudged.failures = publisher.publish(unjudged.output.output()).await?;
                // The receiver ends with an error alone, which the task returns.
                let _ = to_judge.send(unjudged);
            }
        }
    };
    drop(to_judge);
    stop.cancel();
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    ended.map(|()| Exit::Success)
}

async fn start_etcd(arguments: &ServeArguments) -> anyhow::Result<EmbeddedEtcd> {
    let tls = arguments.tls.server();
    if tls.is_none() && !arguments.listen.ip().to_canonical().is_loopback() && !arguments.allow_non_loopback {
        bail!(
            "{} can be reached from other machines, and private keys pass in plaintext; use a loopback address, \
             --tls-cert and --tls-key, or --allow-non-loopback",
            arguments.listen
        );
    }
    let mut builder = EmbeddedEtcd::builder().drain_timeout(DRAIN_TIMEOUT);
    if let Some(path) = state::state_file(arguments.state.as_deref(), arguments.listen) {
        builder = builder.state_file(path);
    }
    if let Some(tls) = tls {
        builder = builder.tls(tls.reread_interval(Duration::from_millis(arguments.poll)));
    }
    if arguments.allow_non_loopback {
        builder = builder.allow_plaintext_beyond_loopback();
    }
    match builder.start().await {
        Ok(etcd) => Ok(etcd),
        Err(error) => {
            let options = match error.downcast_ref() {
                Some(EmbeddedError::Tls(_)) => "--tls-cert, --tls-key, --client-ca",
                Some(_) | None => "--state",
            };
            Err(error).with_context(|| format!("cannot start the etcd server ({options})"))
        }
    }
}

/// Answers HTTP requests until it is stopped.
async fn serve_http<F>(listener: TcpListener, respond: F, stop: CancellationToken) -> anyhow::Result<()>
where
    F: Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Send + Sync + 'static,
{
    let respond = Arc::new(respond);
    let service = service_fn(move |request| {
        let respond = Arc::clone(&respond);
        // An answer may take a processor for a while.
        async move { Ok::<_, Infallible>(block_in_place(|| respond(&request))) }
    });
    http_server::serve(listener, service, Versions::Http1And2, stop).await;
    Ok(())
}

async fn bind_responder(
    address: std::net::SocketAddr,
    arguments: &ServeArguments,
) -> anyhow::Result<Responder> {
    let reach = if arguments.allow_non_loopback { Reach::Anywhere } else { Reach::Loopback };
    let options =
        pingsix_gateway_sidecar::responder::Options { shutdown_grace: DRAIN_TIMEOUT, ..Default::default() };
    match Responder::bind(address, reach, options).await {
        Ok(responder) => Ok(responder),
        Err(error @ BindError::NotLoopback(_)) => {
            Err(error).context("use --allow-non-loopback to listen where other machines can connect")
        }
        Err(error @ BindError::Listen { .. }) => {
            Err(error).context("cannot run the responder; --responder chooses another address, or off")
        }
    }
}

/// Listens on the address of an option.
async fn listen(address: std::net::SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address} ({option})"))
}
