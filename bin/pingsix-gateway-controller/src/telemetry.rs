//! The telemetry of the program: a log, and optional traces.

#[cfg(feature = "otel")]
mod traces;
#[cfg(not(feature = "otel"))]
#[path = "telemetry/no_traces.rs"]
mod traces;

use anyhow::anyhow;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::configuration::Configuration;
use crate::log;
use traces::Traces;

/// The installed subscribers. Call [`Telemetry::end`] to flush the last spans.
pub(crate) struct Telemetry {
    traces: Option<Traces>,
}

impl Telemetry {
    /// Installs the subscribers. Traces are sent from the runtime of the caller.
    pub(crate) fn start(configuration: &Configuration) -> anyhow::Result<Self> {
        let mut layers = vec![log::layer(&configuration.log)?];
        let traces = configuration.otlp.endpoint.as_ref().map(Traces::start).transpose()?;
        layers.extend(traces.as_ref().map(Traces::layer));
        let started = registry().with(layers).try_init();
        started.map_err(|error| anyhow!(error).context("cannot begin to log"))?;
        Ok(Self { traces })
    }

    /// Sends pending spans. Blocks for a bounded time, during which the runtime must run.
    pub(crate) fn end(self) {
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}
