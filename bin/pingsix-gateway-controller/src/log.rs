//! The log: on standard error, as text or JSON.

use std::io::{self, IsTerminal as _};

use anyhow::anyhow;
use tracing_subscriber::EnvFilter;

use crate::configuration::Log;
use crate::values::LogFormat;

/// Begins to log.
pub(crate) fn start(log: &Log) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&log.filter)?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match log.format {
        LogFormat::Text => subscriber.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).with_current_span(true).try_init(),
    }
    .map_err(|error| anyhow!(error).context("cannot begin to log"))
}
