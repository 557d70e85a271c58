//! Runs the responder.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum, value_parser};
use pingsix_gateway_responder::{Options, Reach, Responder};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// The answers PingSIX cannot give itself.
///
/// An HTTP/1.1 and h2c upstream for PingSIX: it answers reserved hosts with a status and redirect instructions with a
/// Location. It keeps no state and opens nothing but its listener.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    /// The address to listen on.
    #[arg(long, env = "PINGSIX_RESPONDER_LISTEN", value_name = "IP:PORT", default_value = "127.0.0.1:8089")]
    listen: SocketAddr,

    /// Accept an address that can be reached from other machines.
    #[arg(long)]
    allow_non_loopback: bool,

    /// Connections served at a time.
    #[arg(long, value_name = "N", default_value_t = Options::default().max_connections)]
    max_connections: usize,

    /// Seconds the head of a request may take.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), default_value_t = Options::default().header_timeout.as_secs())]
    header_timeout: u64,

    /// Seconds a connection may stay open without a request.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), default_value_t = Options::default().idle_timeout.as_secs())]
    idle_timeout: u64,

    /// Seconds connections may take to end after SIGTERM or SIGINT.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400), default_value_t = Options::default().shutdown_grace.as_secs())]
    shutdown_grace: u64,

    /// The format of the log on standard error; the variable `RUST_LOG` selects its lines.
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Arguments {
    fn reach(&self) -> Reach {
        if self.allow_non_loopback { Reach::Anywhere } else { Reach::Loopback }
    }

    fn options(&self) -> Options {
        Options {
            max_connections: self.max_connections,
            header_timeout: Duration::from_secs(self.header_timeout),
            idle_timeout: Duration::from_secs(self.idle_timeout),
            shutdown_grace: Duration::from_secs(self.shutdown_grace),
            ..Options::default()
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let filter = EnvFilter::builder().with_default_directive(tracing::Level::INFO.into()).from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match arguments.log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }

    // Before the listener, so that no signal finds the default action in place while somebody relies on the port.
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let responder = match Responder::bind(arguments.listen, arguments.reach(), arguments.options()).await {
        Err(error @ pingsix_gateway_responder::BindError::NotLoopback(_)) => {
            return Err(error).context("use --allow-non-loopback to listen where other machines can connect");
        }
        responder => responder?,
    };
    responder
        .run(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await;
    Ok(())
}
