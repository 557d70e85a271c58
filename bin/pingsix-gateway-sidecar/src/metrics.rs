//! The metrics of the process.
//!
//! Names begin with `pingsix_sidecar_`, and values are in base units. Labels are kinds, and never names of objects.

use std::fmt;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge as AnyGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::stream::{Applied, Subject};

/// The content type of the text of [`Metrics::encode`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Buckets of latencies, in seconds.
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

type Gauge = AnyGauge<i64, AtomicI64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CategoryLabels {
    category: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    kind: &'static str,
}

/// All metrics.
pub(crate) struct Metrics(Mutex<Registry>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// No metrics but the version.
    pub(crate) fn new(version: &'static str) -> Self {
        let mut registry = Registry::with_prefix("pingsix_sidecar");
        registry.register("build", "The version of the program", Info::new([("version", version)]));
        Self(Mutex::new(registry))
    }

    /// Adds the metrics of a part.
    pub(crate) fn add<M>(&self, register: impl FnOnce(&mut Registry) -> M) -> M {
        register(&mut self.0.lock())
    }

    /// The metrics in the text format of `OpenMetrics`.
    pub(crate) fn encode(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.0.lock())?;
        Ok(page)
    }
}

/// The metrics of the source of stream documents.
#[derive(Clone, Debug)]
pub(crate) struct FeedMetrics {
    connected: Gauge,
    failures: Family<CategoryLabels, Counter>,
    observed_revision: Gauge,
    applied_revision: Gauge,
    documents: Gauge,
    errors: Family<ErrorLabels, Gauge>,
    apply: Histogram,
}

impl FeedMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            connected: Gauge::default(),
            failures: Family::default(),
            observed_revision: Gauge::default(),
            applied_revision: Gauge::default(),
            documents: Gauge::default(),
            errors: Family::default(),
            apply: Histogram::new(BUCKETS),
        };
        let registered = metrics.clone();
        let help = "1 while the source of stream documents can be read";
        registry.register("feed_connected", help, registered.connected);
        registry.register(
            "feed_failures",
            "Failures to read the source of stream documents",
            registered.failures,
        );
        registry.register(
            "feed_observed_revision",
            "The revision that was read last",
            registered.observed_revision,
        );
        registry.register("feed_applied_revision", "The revision in force", registered.applied_revision);
        registry.register("documents", "Stream documents", registered.documents);
        registry.register("faults", "Faults of stream documents and of listeners", registered.errors);
        registry.register("apply_seconds", "Time from documents to their effect", registered.apply);
        metrics
    }

    /// Documents were read.
    pub(crate) fn observed(&self, revision: i64, documents: usize) {
        self.connected.set(1);
        self.observed_revision.set(revision);
        self.documents.set(gauge(documents));
    }

    /// Documents were applied, which took this time.
    pub(crate) fn applied(&self, took: Duration, applied: &Applied) {
        self.apply.observe(took.as_secs_f64());
        self.applied_revision.set(applied.revision);
        let is_listener = |subject: &Subject| matches!(subject, Subject::Port(_));
        let listeners = applied.errors.iter().filter(|error| is_listener(&error.subject)).count();
        for (kind, count) in [("listener", listeners), ("document", applied.errors.len() - listeners)] {
            self.errors.get_or_create(&ErrorLabels { kind }).set(gauge(count));
        }
    }

    /// The source could not be read.
    pub(crate) fn failed(&self, category: &'static str) {
        self.connected.set(0);
        self.failures.get_or_create(&CategoryLabels { category }).inc();
    }
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
