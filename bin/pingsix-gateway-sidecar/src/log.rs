//! The log: on standard error, as text or JSON.

use std::io::{self, IsTerminal as _};

use anyhow::anyhow;
use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text.
    #[default]
    Text,
    /// An object of JSON.
    Json,
}

/// Writes the log from now on. The variable `RUST_LOG` selects its lines.
pub(crate) fn start(format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::builder().with_default_directive(tracing::Level::INFO.into()).from_env_lossy();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => log.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow!(error).context("cannot begin to log"))
}
