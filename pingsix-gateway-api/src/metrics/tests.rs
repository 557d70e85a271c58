//! The values of the metrics, and the comparison with their documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pingsix_sink::{
    Changed, Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink as _,
};
use pingsix_translate::status::{Reason, Severity};
use pingsix_translate::{FieldPath, ObjectKey};

use super::*;
use crate::api_error::ApiErrorCategory;
use crate::fixture::api_server::ApiServer;
use crate::leader::LeaseOptions;
use crate::replicas::Replicas;
use crate::status::StatusCounts;
use crate::watch::WatchStats;
use crate::world::World;

fn problem(severity: Severity, reason: Reason) -> Problem {
    Problem {
        object: Arc::new(ObjectKey::new(Kind::HttpRoute, "shop", "cart")),
        field: FieldPath::new("spec"),
        severity,
        reason,
        message: "It is wrong.".to_owned(),
    }
}

fn revision(number: i64) -> Revision {
    Revision::new(number).unwrap()
}

async fn feed_with_one_document() -> EmbeddedEtcd {
    let etcd = EmbeddedEtcd::builder().start().await.unwrap();
    let document = Document {
        key: Key::new("routes/1").unwrap(),
        value: "{}".into(),
        order: OrderHint(0),
        owner: Owner::new("HTTPRoute shop/cart"),
    };
    let documents = DocumentSet::new([document]).unwrap();
    etcd.publish(&Desired::new(Scope::new("/pingsix/infra/web").unwrap(), documents)).await.unwrap();
    etcd
}

/// Metrics after one event of each sort.
async fn eventful() -> Metrics {
    let metrics = Metrics::new("1.2.3");
    metrics.event(Kind::HttpRoute, 2);
    metrics.live(Duration::from_millis(7));
    metrics.reconciled(Kind::Gateway, Outcome::Current, Duration::from_millis(3));
    metrics.queue(3, Some(Instant::now()));
    metrics.turn(Duration::from_millis(2));
    metrics.translations(2);
    let changed = Changed { created: 1, updated: 2, deleted: 3 };
    metrics.published("embedded", &Published { revision: revision(7), changed });
    metrics.publication_failed("embedded", "revisions");
    metrics.trial(TrialCause::Search);
    metrics.confirmed(revision(6));
    metrics.deliveries([&Delivery::Confirmed, &Delivery::Pending(String::new()), &Delivery::Confirmed]);
    metrics.budget_charged(0.75);
    metrics.problems([&problem(Severity::Error, Reason::Quarantined)]);
    metrics.leader(true);
    let watches = WatchStats::default();
    watches.listing(Kind::Gateway);
    (0..4).for_each(|_| watches.opened(Kind::Gateway));
    (0..2).for_each(|_| watches.failed(Kind::Gateway, ApiErrorCategory::Expired));
    watches.watching_referenced(6, 2, 700);
    metrics.observe_watches(&watches);
    metrics.observe_world(&World::default());
    metrics.observe_status(|| StatusCounts { written: 5, suppressed: 4, conflicts: 1, failures: 2 });
    metrics.observe_feed(feed_with_one_document().await);
    let lease = LeaseOptions::new("home", "example.com/controller", "pod");
    metrics.observe_replicas(Replicas::new(ApiServer::default().client(), &lease));
    metrics
}

#[tokio::test(start_paused = true)]
async fn everything_is_counted_where_it_belongs() {
    let metrics = eventful().await;
    tokio::time::advance(Duration::from_secs(2)).await;
    let text = metrics.encode();
    for line in [
        "build_info{version=\"1.2.3\"} 1",
        "events_total{kind=\"HTTPRoute\"} 1",
        "event_owners_bucket{le=\"1.0\"} 0",
        "event_owners_bucket{le=\"2.0\"} 1",
        "event_to_live_seconds_bucket{le=\"0.005\"} 0",
        "event_to_live_seconds_bucket{le=\"0.01\"} 1",
        "reconcile_duration_seconds_count{kind=\"Gateway\"} 1",
        "reconciliations_total{kind=\"Gateway\",outcome=\"current\"} 1",
        "queue_depth 3",
        "queue_age_seconds 2.0",
        "turn_wait_seconds_bucket{le=\"0.0025\"} 1",
        "translations_running 2",
        "publications_total{sink=\"embedded\"} 1",
        "publication_failures_total{sink=\"embedded\",category=\"revisions\"} 1",
        "trials_total{cause=\"search\"} 1",
        "trials_total{cause=\"retry\"} 0",
        "plan_steps_total{sink=\"embedded\",step=\"created\"} 1",
        "plan_steps_total{sink=\"embedded\",step=\"updated\"} 2",
        "plan_steps_total{sink=\"embedded\",step=\"deleted\"} 3",
        "published_revision{sink=\"embedded\"} 7",
        "confirmed_revision 6",
        "data_planes{delivery=\"confirmed\"} 2",
        "data_planes{delivery=\"pending\"} 1",
        "data_planes{delivery=\"refused\"} 0",
        "budget_charged_ratio 0.75",
        "problems{severity=\"error\",reason=\"Quarantined\"} 1",
        "leader 1",
        "watch_lists_total{kind=\"Gateway\"} 1",
        "watches_total{kind=\"Gateway\"} 4",
        "watch_errors_total{kind=\"Gateway\",category=\"expired\"} 2",
        "watches_by_name 6",
        "watches_wide 2",
        "watches_wide_versions 700",
        "objects{kind=\"Secret\"} 0",
        "status_updates_total{result=\"written\"} 5",
        "status_updates_total{result=\"conflict\"} 1",
        "feed_open 0",
        "feed_scopes 1",
        "feed_documents 1",
        "feed_publications_total 1",
    ] {
        let line = format!("pingsix_gateway_{line}\n");
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[test]
fn counters_with_an_alert_on_their_first_increase_begin_at_zero() {
    let text = Metrics::new("1.2.3").encode();
    for series in [
        "reconciliations_total{kind=\"Gateway\",outcome=\"panicked\"}",
        "reconciliations_total{kind=\"IngressClass\",outcome=\"panicked\"}",
        "reconciliations_total{kind=\"IngressClass\",outcome=\"current\"}",
        "trials_total{cause=\"search\"}",
        "trials_total{cause=\"retry\"}",
    ] {
        assert!(text.contains(&format!("pingsix_gateway_{series} 0\n")), "{series} is not in\n{text}");
    }
}

#[test]
fn revisions_do_not_go_back_and_problems_go_away() {
    let metrics = Metrics::new("1.2.3");
    metrics.confirmed(revision(9));
    metrics.confirmed(revision(8));
    let problems = [
        problem(Severity::Error, Reason::Quarantined),
        problem(Severity::Error, Reason::Quarantined),
        problem(Severity::Warning, Reason::Limited),
    ];
    metrics.problems(&problems);
    metrics.problems(&problems[2..]);
    let text = metrics.encode();
    let limited = format!("severity=\"warning\",reason=\"{}\"", Reason::Limited);
    for line in [
        "confirmed_revision 9",
        "problems{severity=\"error\",reason=\"Quarantined\"} 0",
        &format!("problems{{{limited}}} 1"),
        // An empty queue has the age 0.
        "queue_age_seconds 0.0",
    ] {
        assert!(text.contains(&format!("pingsix_gateway_{line}\n")), "{line} is not in\n{text}");
    }
}

/// A row of the table: name, type, labels, meaning.
type Row = (String, String, String, String);

/// The text without values.
fn described(text: &str) -> BTreeSet<Row> {
    let mut kinds = BTreeMap::new();
    let mut helps = BTreeMap::new();
    let mut labels = BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            kinds.insert(name, kind);
        } else if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
        {
            helps.insert(name, help);
        }
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (sample, list) = series.split_once('{').unwrap_or((series, ""));
        let suffixes = ["", "_total", "_info", "_bucket", "_count", "_sum"];
        let name = suffixes.iter().filter_map(|suffix| sample.strip_suffix(suffix));
        let (name, _) =
            name.filter_map(|name| kinds.get_key_value(name)).max_by_key(|(name, _)| name.len()).unwrap();
        let names = list.trim_end_matches('}').split("\",").filter_map(|label| label.split_once('='));
        labels.entry(name).or_default().extend(names.map(|(name, _)| name).filter(|name| *name != "le"));
    }
    let row = |(name, kind): (&&str, &&str)| {
        let asked_for = match *kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => (*name).to_owned(),
        };
        let labels = labels
            .get(name)
            .map(|labels| labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>());
        (
            asked_for,
            (*kind).to_owned(),
            labels.unwrap_or_default().join(", "),
            helps[name].trim_end_matches('.').to_owned(),
        )
    };
    kinds.iter().map(row).collect()
}

#[tokio::test]
async fn the_documentation_lists_every_metric() {
    let metrics = eventful().await;
    let described = described(&metrics.encode());
    for name in Metrics::NAMES {
        let name = format!("pingsix_gateway_{name}");
        assert!(described.iter().any(|(known, ..)| known.starts_with(&name)), "{name} is not exercised here");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/operations.md");
    let document = std::fs::read_to_string(path).unwrap();
    let documented: BTreeSet<Row> = document
        .lines()
        .filter(|line| line.starts_with("| `pingsix_gateway_"))
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [name, kind, labels, meaning] = cells[..] else { panic!("not four columns: {line}") };
            (name.trim_matches('`').to_owned(), kind.to_owned(), labels.to_owned(), meaning.to_owned())
        })
        .collect();
    let table: Vec<String> = described
        .iter()
        .map(|(name, kind, labels, meaning)| format!("| `{name}` | {kind} | {labels} | {meaning} |"))
        .collect();
    assert_eq!(
        documented,
        described,
        "docs/reference/operations.md should have these rows:\n{}",
        table.join("\n")
    );
    // Names in expressions are included.
    for text in document.split("pingsix_gateway_").skip(1) {
        let end = text.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).unwrap();
        let name = format!("pingsix_gateway_{}", &text[..end]);
        assert!(described.iter().any(|(known, ..)| *known == name), "there is no metric {name}");
    }
}

#[tokio::test]
async fn names_and_labels_are_as_prometheus_wants_them() {
    let allowed = [
        "version", "kind", "outcome", "sink", "category", "cause", "step", "delivery", "severity", "reason",
        "result",
    ];
    for (name, kind, labels, meaning) in described(&eventful().await.encode()) {
        assert!(name.starts_with("pingsix_gateway_"), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        assert!(!name.contains("milli") && !name.contains("percent"), "{name} is not in a base unit");
        for label in labels.split(", ").filter(|labels| !labels.is_empty()) {
            assert!(allowed.contains(&label.trim_matches('`')), "label {label} of {name} may be unbounded");
        }
        assert!(!meaning.is_empty() && !meaning.ends_with('.'), "{name}: {meaning}");
    }
}

#[tokio::test]
async fn no_label_has_the_name_of_an_object() {
    // The names of all objects and scopes of the events.
    let text = eventful().await.encode();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        for name in ["shop", "cart", "infra", "web", "home", "pod", "routes/1", "/pingsix"] {
            assert!(!line.contains(name), "{name} is in {line}");
        }
    }
}
