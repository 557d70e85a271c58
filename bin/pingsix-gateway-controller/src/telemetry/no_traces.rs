//! No traces: the program was built without the feature `otel`, and refuses a configuration with `otlp.endpoint`.

use crate::log::Layer;
use crate::values::CollectorUrl;

/// There are none.
pub(super) enum Traces {}

impl Traces {
    pub(super) fn start(_: &CollectorUrl) -> anyhow::Result<Self> {
        anyhow::bail!("the program was built without the cargo feature otel (otlp.endpoint)")
    }

    pub(super) fn layer(&self) -> Layer {
        match *self {}
    }

    pub(super) fn end(self) {
        match self {}
    }
}
