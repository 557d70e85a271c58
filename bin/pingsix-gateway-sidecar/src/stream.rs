//! The role `--streams`: a proxy for TCP, UDP and TLS, as its documents have it.
//!
//! This file stands for the proxy until the proxy is there. It opens no port, and says so of each document of a route.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;

use crate::documents::Documents;

/// The options of the proxy.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StreamOptions {}

/// The metrics of the proxy.
#[derive(Debug, Default)]
pub struct StreamMetrics {}

impl StreamMetrics {
    /// Metrics that are part of a registry.
    pub fn new(_registry: &mut Registry) -> Self {
        Self {}
    }
}

/// The proxy.
#[derive(Debug)]
pub struct Streams {
    _metrics: Arc<StreamMetrics>,
}

/// The effect of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The open listeners, such as `tcp 5432`.
    pub bound: BTreeSet<String>,
    /// What could not be put in force.
    pub faults: Vec<Fault>,
}

/// A document or a listener that could not be put in force.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The document or the listener.
    pub at: FaultPlace,
    /// The fault, without content of a document.
    pub message: String,
}

/// The place of a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultPlace {
    /// The key of a document. Its connections are rejected, and everything else is in force.
    Document(String),
    /// A listener that is not open, such as `tcp 5432`.
    Listener(String),
}

impl Streams {
    /// Starts without documents.
    pub fn start(_options: StreamOptions, metrics: Arc<StreamMetrics>) -> Self {
        Self { _metrics: metrics }
    }

    /// Puts documents in force.
    #[expect(clippy::unused_async, reason = "the proxy opens its listeners here")]
    pub async fn apply(&self, documents: &Documents) -> Applied {
        let routes = documents.by_key.keys().filter(|key| key.starts_with("stream_routes/"));
        let faults = routes.map(|key| Fault {
            at: FaultPlace::Document(key.clone()),
            message: "this build has no proxy for streams".to_owned(),
        });
        Applied { bound: BTreeSet::new(), faults: faults.collect() }
    }

    /// Stops accepting; connections may go on until the duration is over.
    #[expect(clippy::unused_async, reason = "the proxy waits for its connections here")]
    pub async fn drain(self, _grace: Duration) {}
}
