//! The log: on standard error, as text or JSON.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt};

use crate::configuration::Log;
use crate::values::LogFormat;

/// The subscriber layer of events and spans.
pub(crate) type Layer = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

/// Writes the log.
pub(crate) fn layer(log: &Log) -> anyhow::Result<Layer> {
    let filter = EnvFilter::try_new(&log.filter)?;
    let layer = fmt::layer::<Registry>().with_writer(io::stderr);
    Ok(match log.format {
        LogFormat::Text => layer.with_ansi(io::stderr().is_terminal()).with_filter(filter).boxed(),
        LogFormat::Json => {
            layer.json().flatten_event(true).with_current_span(true).with_filter(filter).boxed()
        }
    })
}
