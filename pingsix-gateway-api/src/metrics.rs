//! Every metric, by name.
//!
//! All begin with `pingsix_gateway_`, and count in base units. No label has the name of an object: labels are of kinds,
//! reasons, categories and the like, so that the number of series does not grow with the cluster. What a part of the
//! controller counts for itself is read when somebody asks ([`Metrics::observe_feed`] and its like, each to be called once);
//! the rest is told by one call per happening.
//!
//! `docs/reference/operations.md` lists them; a test compares.

mod observed;
mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use parking_lot::Mutex;
use pingsix_sink::{Published, Revision};
use pingsix_translate::Kind;
use pingsix_translate::status::{Delivery, Problem};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge as AnyGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use tokio::time::Instant;

pub use observed::{ReferencedTotals, WatchTotals};
use page::{Observed, Page};

/// The content type of the text of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Seconds from a hundredth of a blink to the time after which nobody waits any more.
const LATENCIES: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

const OWNERS: [f64; 10] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 1000.0];

type Gauge = AnyGauge<i64, AtomicI64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReconciliation {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSink {
    sink: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStep {
    sink: &'static str,
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFailure {
    sink: &'static str,
    category: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDelivery {
    delivery: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct OfProblem {
    severity: &'static str,
    reason: &'static str,
}

/// The outcome of a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The owner is ours, and its documents are published.
    Current,
    /// The owner is deleted or not ours, and its data planes are empty.
    Withdrawn,
    /// The owner waits for referenced objects.
    Waiting,
    /// Another reconciliation began before the end of all publications.
    Superseded,
    /// Something could not be published; it is tried again.
    Failed,
    /// Its translation has panicked; what was published before stays, and it is tried again.
    Panicked,
}

impl Outcome {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Withdrawn => "withdrawn",
            Self::Waiting => "waiting",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
        }
    }
}

/// All metrics of a controller, with a registry of their own.
pub struct Metrics {
    registry: Mutex<Registry>,
    names: Vec<String>,
    events: Family<OfKind, Counter>,
    event_owners: Histogram,
    event_to_live: Histogram,
    reconcile_duration: Histograms<OfKind>,
    reconciliations: Family<OfReconciliation, Counter>,
    queue: Gauge,
    oldest: Arc<Mutex<Option<Instant>>>,
    turn_wait: Histogram,
    translations: Gauge,
    publications: Family<OfSink, Counter>,
    publication_failures: Family<OfFailure, Counter>,
    trials: Counter,
    plan_steps: Family<OfStep, Counter>,
    published_revision: Family<OfSink, Gauge>,
    confirmed_revision: Gauge,
    data_planes: Family<OfDelivery, Gauge>,
    problems: Family<OfProblem, Gauge>,
    known_problems: Mutex<BTreeSet<OfProblem>>,
    leader: Gauge,
    feed_authority_waits_for: Gauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Registers metrics, and remembers their names.
struct Registrar {
    registry: Registry,
    names: Vec<String>,
}

impl Registrar {
    fn add<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.names.push(name.to_owned());
        self.registry.register(name, help, metric.clone());
        metric
    }
}

impl Metrics {
    /// Metrics at zero. The version is that of the program.
    pub fn new(version: &'static str) -> Self {
        let mut add = Registrar { registry: Registry::with_prefix("pingsix_gateway"), names: Vec::new() };
        // The crate adds the full stop behind each text, and `_total` and `_info` where they belong.
        add.names.push("build".to_owned());
        add.registry.register(
            "build",
            "The version of the controller",
            Info::new(vec![("version", version)]),
        );
        let events =
            add.add("events", "Changes that watches saw; what lists bring is none", Family::default());
        let event_owners = add.add(
            "event_owners",
            "Gateways and IngressClasses that an event concerns",
            Histogram::new(OWNERS),
        );
        let event_to_live = add.add(
            "event_to_live_seconds",
            "From an event to the publication that takes it into account",
            Histogram::new(LATENCIES),
        );
        let reconcile_duration = add.add(
            "reconcile_duration_seconds",
            "How long it takes to reconsider a Gateway or an IngressClass, until all is published",
            Histograms::new_with_constructor(|| Histogram::new(LATENCIES)),
        );
        let reconciliations =
            add.add("reconciliations", "Gateways and IngressClasses reconsidered", Family::default());
        let queue = add.add("queue_depth", "Gateways and IngressClasses that wait", Gauge::default());
        let oldest = Arc::<Mutex<Option<Instant>>>::default();
        let turn_wait = add.add(
            "turn_wait_seconds",
            "From when a Gateway or an IngressClass is due until its translation begins",
            Histogram::new(LATENCIES),
        );
        let translations = add.add("translations_running", "Translations that run", Gauge::default());
        let publications =
            add.add("publications", "Publications, also those without a change", Family::default());
        let publication_failures =
            add.add("publication_failures", "Publications that could not be made", Family::default());
        let trials =
            add.add("trials", "Publications of a part, to find out what PingSIX refuses", Counter::default());
        let plan_steps = add.add("plan_steps", "Documents written and deleted", Family::default());
        let published_revision =
            add.add("published_revision", "The highest revision that was published", Family::default());
        let confirmed_revision = add.add(
            "confirmed_revision",
            "The highest revision that all PingSIX instances of a data plane have confirmed",
            Gauge::default(),
        );
        let data_planes = add.add("data_planes", "Data planes by how far they have come", Family::default());
        let problems = add.add("problems", "What is wrong with objects", Family::default());
        let leader = add.add("leader", "Whether this replica writes statuses", Gauge::default());
        let feed_authority_waits_for = add.add(
            "feed_authority_waits_for",
            "Owners that a rotation of the feed's authority waits for because their data planes cannot be told of it",
            Gauge::default(),
        );
        let Registrar { mut registry, names } = add;
        let since = Arc::clone(&oldest);
        registry.register_collector(Observed::boxed(move |page| {
            let age = since.lock().map_or(Duration::ZERO, |due| due.elapsed());
            page.fraction(
                "queue_age_seconds",
                "For how long the one that waits longest is due",
                age.as_secs_f64(),
            )
        }));
        Self {
            registry: Mutex::new(registry),
            names,
            events,
            event_owners,
            event_to_live,
            reconcile_duration,
            reconciliations,
            queue,
            oldest,
            turn_wait,
            translations,
            publications,
            publication_failures,
            trials,
            plan_steps,
            published_revision,
            confirmed_revision,
            data_planes,
            problems,
            known_problems: Mutex::default(),
            leader,
            feed_authority_waits_for,
        }
    }

    /// All of them in the text format of `OpenMetrics`, which Prometheus reads.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = text::encode(&mut text, &self.registry.lock());
        text
    }

    /// A watch saw a change, and so many Gateways and IngressClasses have to be reconsidered for it.
    pub fn event(&self, kind: Kind, owners: usize) {
        self.events.get_or_create(&OfKind { kind: kind.as_str() }).inc();
        self.event_owners.observe(number(owners));
    }

    /// A publication takes an event into account that came so long ago.
    pub fn live(&self, after: Duration) {
        self.event_to_live.observe(after.as_secs_f64());
    }

    /// An owner was reconsidered. The kind is that of the owner.
    pub fn reconciled(&self, kind: Kind, outcome: Outcome, took: Duration) {
        let kind = kind.as_str();
        self.reconcile_duration.get_or_create(&OfKind { kind }).observe(took.as_secs_f64());
        self.reconciliations.get_or_create(&OfReconciliation { kind, outcome: outcome.as_str() }).inc();
    }

    /// So many owners wait, and the first of them is or was due at a time.
    pub fn queue(&self, depth: usize, due: Option<Instant>) {
        self.queue.set(whole(depth));
        *self.oldest.lock() = due;
    }

    /// An owner has its turn, after so long a wait.
    pub fn turn(&self, after: Duration) {
        self.turn_wait.observe(after.as_secs_f64());
    }

    /// So many translations run.
    pub fn translations(&self, running: usize) {
        self.translations.set(whole(running));
    }

    /// A publication was made, whether or not it changed anything.
    pub fn published(&self, sink: &'static str, published: &Published) {
        self.publications.get_or_create(&OfSink { sink }).inc();
        let Published { revision, changed } = published;
        let steps =
            [("created", changed.created), ("updated", changed.updated), ("deleted", changed.deleted)];
        for (step, count) in steps {
            self.plan_steps.get_or_create(&OfStep { sink, step }).inc_by(count as u64);
        }
        highest(&self.published_revision.get_or_create(&OfSink { sink }), *revision);
    }

    /// Part of what there is was published, to find out what PingSIX refuses.
    pub fn trial(&self) {
        self.trials.inc();
    }

    /// A publication could not be made; the category is that of the error.
    pub fn publication_failed(&self, sink: &'static str, category: &'static str) {
        self.publication_failures.get_or_create(&OfFailure { sink, category }).inc();
    }

    /// All instances of a data plane have confirmed a revision.
    pub fn confirmed(&self, revision: Revision) {
        highest(&self.confirmed_revision, revision);
    }

    /// The delivery of all data planes.
    pub fn deliveries<'a>(&self, deliveries: impl IntoIterator<Item = &'a Delivery>) {
        let mut counts = [("confirmed", 0), ("delivered", 0), ("pending", 0), ("refused", 0)];
        for delivery in deliveries {
            let [confirmed, delivered, pending, refused] = &mut counts;
            let (_, count) = match delivery {
                Delivery::Confirmed => confirmed,
                Delivery::Delivered => delivered,
                Delivery::Offline | Delivery::Pending(_) => pending,
                Delivery::Refused(_) => refused,
            };
            *count += 1;
        }
        for (delivery, count) in counts {
            self.data_planes.get_or_create(&OfDelivery { delivery }).set(count);
        }
    }

    /// The current problems of objects.
    pub fn problems<'a>(&self, problems: impl IntoIterator<Item = &'a Problem>) {
        let mut counts = std::collections::BTreeMap::<OfProblem, i64>::new();
        let mut known = self.known_problems.lock();
        for gone in known.iter() {
            counts.insert(gone.clone(), 0);
        }
        for problem in problems {
            let label = OfProblem { severity: problem.severity.as_str(), reason: problem.reason.as_str() };
            *counts.entry(label).or_default() += 1;
        }
        for (label, count) in counts {
            self.problems.get_or_create(&label).set(count);
            known.insert(label);
        }
    }

    /// Whether this replica leads.
    pub fn leader(&self, leads: bool) {
        self.leader.set(leads.into());
    }

    /// A rotation of the feed's authority waits for so many owners whose data planes cannot be told of it.
    pub fn feed_authority_waits_for(&self, owners: usize) {
        self.feed_authority_waits_for.set(whole(owners));
    }

    /// Has something written whenever somebody asks.
    fn observe(&self, write: impl Fn(&mut Page<'_>) -> fmt::Result + Send + Sync + 'static) {
        self.registry.lock().register_collector(Observed::boxed(write));
    }
}

/// Revisions only grow, but data planes do not get theirs in order.
fn highest(gauge: &Gauge, revision: Revision) {
    gauge.inner().fetch_max(revision.get(), std::sync::atomic::Ordering::Relaxed);
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "no count comes near 2^53")]
fn number(count: usize) -> f64 {
    count as f64
}
