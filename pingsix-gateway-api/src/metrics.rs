//! The metrics of the controller.
//!
//! Names begin with `pingsix_gateway_`, and values are in base units. Labels are kinds, reasons, categories and the
//! like, and never names of objects, so the number of series does not grow with the cluster. Components with their own
//! counters are read at each scrape ([`Metrics::observe_feed`] and the other `observe_` functions, each called once).
//! All other metrics have a function for each occurrence.
//!
//! A test compares the metrics with `docs/reference/operations.md`.

mod observed;
mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::time::Duration;

use parking_lot::Mutex;
use pingsix_sink::{Published, Revision};
use pingsix_translate::Kind;
use pingsix_translate::status::{Delivery, Problem};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge as AnyGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::acceptance::TrialCause;
use crate::named::named_values;
use page::{CallbackCollector, Page};

/// The content type of the text of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Buckets of latencies, in seconds.
const LATENCY_BUCKETS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Buckets of numbers of owners.
const OWNER_BUCKETS: [f64; 10] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 1000.0];

/// The kinds of owners.
const OWNER_KINDS: [Kind; 2] = [Kind::Gateway, Kind::IngressClass];

type Gauge = AnyGauge<i64, AtomicI64>;
type FractionGauge = AnyGauge<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The labels of a series, by name.
pub(crate) type Labels<const COUNT: usize> = [(&'static str, &'static str); COUNT];

named_values! {
    /// The outcome of a reconciliation.
    pub(crate) enum Outcome {
        /// The owner is ours, and its documents are published.
        Current = "current",
        /// The owner is deleted or not ours, and its data planes are empty.
        Withdrawn = "withdrawn",
        /// The owner waits for referenced objects.
        Waiting = "waiting",
        /// Another reconciliation began before the end of all publications.
        Superseded = "superseded",
        /// A publication failed, and is retried.
        Failed = "failed",
        /// The translation panicked. The last publication stays, and the translation is retried.
        Panicked = "panicked",
    }
}

/// Declares the metrics, each with its type, its name, its help and its value at zero. The crate appends the full stop to
/// texts, and `_total` and `_info` to names.
macro_rules! metrics {
    ($($field:ident: $type:ty = $name:literal, $help:literal, $zero:expr;)+) => {
        /// All metrics of a controller, with their own registry.
        pub struct Metrics {
            registry: Mutex<Registry>,
            oldest: Arc<Mutex<Option<Instant>>>,
            known_problems: Mutex<BTreeSet<Labels<2>>>,
            $($field: $type,)+
        }

        impl Metrics {
            const NAMES: &'static [&'static str] = &["build", $($name),+];

            fn at_zero(mut registry: Registry) -> Self {
                $(
                    let $field: $type = $zero;
                    registry.register($name, $help, $field.clone());
                )+
                let oldest = Arc::default();
                Self { registry: Mutex::new(registry), oldest, known_problems: Mutex::default(), $($field),+ }
            }
        }
    };
}

metrics! {
    events: Family<Labels<1>, Counter> = "events", "Events of watches, without those of lists", Family::default();
    event_owners: Histogram = "event_owners", "Gateways and IngressClasses that an event affects", Histogram::new(OWNER_BUCKETS);
    event_to_live: Histogram = "event_to_live_seconds", "Time from an event to the publication of its effects", latencies();
    reconcile_duration: Histograms<Labels<1>> = "reconcile_duration_seconds",
        "Time of the reconciliation of a Gateway or an IngressClass, publications included", Histograms::new_with_constructor(latencies);
    reconciliations: Family<Labels<2>, Counter> = "reconciliations", "Reconciliations of Gateways and IngressClasses", Family::default();
    queue: Gauge = "queue_depth", "Waiting Gateways and IngressClasses", Gauge::default();
    turn_wait: Histogram = "turn_wait_seconds",
        "Time from the due time of a Gateway or an IngressClass to the start of its translation", latencies();
    translations: Gauge = "translations_running", "Running translations", Gauge::default();
    publications: Family<Labels<1>, Counter> = "publications", "Publications, those without changes included", Family::default();
    publication_failures: Family<Labels<2>, Counter> = "publication_failures", "Failed publications", Family::default();
    trials: Family<Labels<1>, Counter> = "trials",
        "Publications that PingSIX may refuse: trials of a search for the object at fault, and retries of objects in quarantine",
        Family::default();
    plan_steps: Family<Labels<2>, Counter> = "plan_steps", "Written and deleted documents", Family::default();
    published_revision: Family<Labels<1>, Gauge> = "published_revision", "The highest published revision", Family::default();
    confirmed_revision: Gauge = "confirmed_revision",
        "The highest revision that all PingSIX instances of a data plane have confirmed", Gauge::default();
    data_planes: Family<Labels<1>, Gauge> = "data_planes", "Data planes by delivery", Family::default();
    budget_charged: FractionGauge = "budget_charged_ratio",
        "The charged part of the bytes or matcher entries of the fullest data plane; rules and certificates beyond 1 are refused",
        FractionGauge::default();
    problems: Family<Labels<2>, Gauge> = "problems", "Problems of objects", Family::default();
    leader: Gauge = "leader", "Whether this replica writes statuses", Gauge::default();
    feed_authority_waits_for: Gauge = "feed_authority_waits_for",
        "Owners that delay a rotation of the feed's authority, because their Secrets cannot be written", Gauge::default();
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("names", &Self::NAMES).finish_non_exhaustive()
    }
}

fn latencies() -> Histogram {
    Histogram::new(LATENCY_BUCKETS)
}

impl Metrics {
    /// Metrics at zero, with the version of the program.
    pub fn new(version: &'static str) -> Self {
        let mut registry = Registry::with_prefix("pingsix_gateway");
        let help = "The version of the controller";
        registry.register("build", help, Info::new(vec![("version", version)]));
        let metrics = Self::at_zero(registry);
        let since = Arc::clone(&metrics.oldest);
        metrics.observe(move |page| {
            let age = since.lock().map_or(Duration::ZERO, |due| due.elapsed());
            let help = "Time since the longest waiting Gateway or IngressClass is due";
            page.fraction("queue_age_seconds", help, age.as_secs_f64())
        });
        metrics.begin_at_zero();
        metrics
    }

    /// Creates the series that may begin with an error: Prometheus sees no increase in a series that begins at 1.
    fn begin_at_zero(&self) {
        for kind in OWNER_KINDS.map(Kind::as_str) {
            for outcome in Outcome::ALL.iter().map(|outcome| outcome.as_str()) {
                drop(self.reconciliations.get_or_create(&[("kind", kind), ("outcome", outcome)]));
            }
        }
        for cause in TrialCause::ALL.iter().map(|cause| cause.as_str()) {
            drop(self.trials.get_or_create(&[("cause", cause)]));
        }
    }

    /// All metrics in the text format of `OpenMetrics`, which Prometheus reads.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writes to a string cannot fail.
        let _ = text::encode(&mut text, &self.registry.lock());
        text
    }

    /// Records an event of a watch, and the number of affected Gateways and IngressClasses.
    pub(crate) fn event(&self, kind: Kind, owners: usize) {
        self.events.get_or_create(&[("kind", kind.as_str())]).inc();
        self.event_owners.observe(to_float(owners));
    }

    /// Records the time from an event to the publication of its effects.
    pub(crate) fn live(&self, after: Duration) {
        self.event_to_live.observe(after.as_secs_f64());
    }

    /// Records the reconciliation of an owner of a kind.
    pub(crate) fn reconciled(&self, kind: Kind, outcome: Outcome, took: Duration) {
        let kind = kind.as_str();
        self.reconcile_duration.get_or_create(&[("kind", kind)]).observe(took.as_secs_f64());
        self.reconciliations.get_or_create(&[("kind", kind), ("outcome", outcome.as_str())]).inc();
    }

    /// Records the number of waiting owners, and the due time of the first one.
    pub(crate) fn queue(&self, depth: usize, due: Option<Instant>) {
        self.queue.set(to_whole(depth));
        *self.oldest.lock() = due;
    }

    /// Records the time that an owner waited for its turn.
    pub(crate) fn turn(&self, after: Duration) {
        self.turn_wait.observe(after.as_secs_f64());
    }

    /// Records the number of running translations.
    pub(crate) fn translations(&self, running: usize) {
        self.translations.set(to_whole(running));
    }

    /// Records a publication, with or without changes.
    pub(crate) fn published(&self, sink: &'static str, published: &Published) {
        self.publications.get_or_create(&[("sink", sink)]).inc();
        let Published { revision, changed } = published;
        let steps =
            [("created", changed.created), ("updated", changed.updated), ("deleted", changed.deleted)];
        for (step, count) in steps {
            self.plan_steps.get_or_create(&[("sink", sink), ("step", step)]).inc_by(count as u64);
        }
        raise(&self.published_revision.get_or_create(&[("sink", sink)]), *revision);
    }

    /// Records a trial: a publication that PingSIX may refuse.
    pub(crate) fn trial(&self, cause: TrialCause) {
        self.trials.get_or_create(&[("cause", cause.as_str())]).inc();
    }

    /// Records a failed publication, with the category of its error.
    pub(crate) fn publication_failed(&self, sink: &'static str, category: &'static str) {
        self.publication_failures.get_or_create(&[("sink", sink), ("category", category)]).inc();
    }

    /// Records a revision that all instances of a data plane have confirmed.
    pub(crate) fn confirmed(&self, revision: Revision) {
        raise(&self.confirmed_revision, revision);
    }

    /// Records the delivery of all data planes.
    pub(crate) fn deliveries<'a>(&self, deliveries: impl IntoIterator<Item = &'a Delivery>) {
        let mut counts = [("confirmed", 0), ("delivered", 0), ("pending", 0), ("refused", 0)];
        for delivery in deliveries {
            let [confirmed, delivered, pending, refused] = &mut counts;
            let (_, count) = match delivery {
                Delivery::Confirmed | Delivery::ConfirmedInPart(_) | Delivery::ConfirmedByOtherVersion(_) => {
                    confirmed
                }
                Delivery::Delivered => delivered,
                Delivery::Offline | Delivery::Pending(_) => pending,
                Delivery::Refused(_) => refused,
            };
            *count += 1;
        }
        for (delivery, count) in counts {
            self.data_planes.get_or_create(&[("delivery", delivery)]).set(count);
        }
    }

    /// Records the [charged ratio](pingsix_translate::DataPlane::charged_ratio) of the budget of the fullest data plane.
    pub(crate) fn budget_charged(&self, part: f64) {
        self.budget_charged.set(part);
    }

    /// Records the current problems of objects.
    pub(crate) fn problems<'a>(&self, problems: impl IntoIterator<Item = &'a Problem>) {
        let mut counts = std::collections::BTreeMap::<Labels<2>, i64>::new();
        let mut known = self.known_problems.lock();
        for gone in known.iter() {
            counts.insert(*gone, 0);
        }
        for problem in problems {
            let label = [("severity", problem.severity.as_str()), ("reason", problem.reason.as_str())];
            *counts.entry(label).or_default() += 1;
        }
        for (label, count) in counts {
            self.problems.get_or_create(&label).set(count);
            known.insert(label);
        }
    }

    /// Records whether this replica leads.
    pub(crate) fn leader(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// Records the number of owners that delay a rotation of the feed's authority.
    pub(crate) fn feed_authority_waits_for(&self, owners: usize) {
        self.feed_authority_waits_for.set(to_whole(owners));
    }

    /// Registers a function that writes metrics at each scrape.
    fn observe(&self, write: impl Fn(&mut Page<'_>) -> fmt::Result + Send + Sync + 'static) {
        self.registry.lock().register_collector(CallbackCollector::boxed(write));
    }
}

/// Raises a gauge to a revision. Data planes report their revisions in any order.
fn raise(gauge: &Gauge, revision: Revision) {
    gauge.inner().fetch_max(revision.get(), std::sync::atomic::Ordering::Relaxed);
}

fn to_whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn to_signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "no count comes near 2^53")]
fn to_float(count: usize) -> f64 {
    count as f64
}
