//! The measures against documents that PingSIX would refuse.

use std::collections::BTreeMap;
use std::fmt;

use pingsix_translate::pingsix::plugin::{Abort, FaultInjection};
use pingsix_translate::pingsix::validate::{Subject, Violation};
use pingsix_translate::pingsix::{
    Config, Document, DocumentKey, Plugins, ResourceKind, Route, Upstream, router::is_host_pattern,
    router::is_path_pattern,
};

/// The node of an upstream without requests: the discard port.
const NOWHERE: &str = "127.0.0.1:9";

/// A document that PingSIX would have refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The document.
    pub key: DocumentKey,
    /// The measure.
    pub measure: Measure,
    /// The status code of a Route in quarantine: 500, or 503 when all its rules are those of GRPCRoutes.
    pub status: u16,
    /// The field at fault, empty for the document itself.
    pub field: String,
    /// The violated rule, in one sentence without secrets.
    pub because: String,
}

/// The measure against a document in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// The Route keeps its place and answers an error itself.
    Closed,
    /// The Route answers an error for its valid patterns; the other patterns are gone.
    Narrowed,
    /// The document is not published.
    LeftOut,
}

impl fmt::Display for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, measure, status, field, because } = self;
        let consequence = match measure {
            Measure::Closed => format!("the requests it decides are answered with {status}"),
            Measure::Narrowed => format!(
                "the requests it decides are answered with {status}, except for patterns PingSIX cannot hold"
            ),
            Measure::LeftOut => "it is left out".to_owned(),
        };
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, "PingSIX would refuse {key}{colon}{field}, so {consequence}. {because}")
    }
}

/// The result of the check.
#[derive(Debug)]
pub(super) struct QuarantineResult {
    pub(super) config: Config,
    pub(super) quarantined: Vec<Quarantined>,
    /// The violations of the configuration after all measures; publishable only without.
    pub(super) refused: Vec<Violation>,
    /// Remarks on documents that PingSIX accepts and handles in another way than their text suggests.
    pub(super) remarks: Vec<(Option<DocumentKey>, String)>,
}

impl QuarantineResult {
    /// The result for a configuration without violations.
    pub(super) fn unchanged(config: &Config) -> Self {
        Self { config: config.clone(), quarantined: Vec::new(), refused: Vec::new(), remarks: Vec::new() }
    }
}

/// Applies the rules of [`mod@crate::bridge`] until `check` finds no violation of a document. `status` is the status
/// code of a Route at fault.
///
/// The loop ends after at most three rounds per document, because each round takes the next measure against every
/// document at fault.
pub(super) fn quarantine(
    given: &Config,
    status: impl Fn(&DocumentKey) -> u16,
    check: impl Fn(&Config) -> Vec<Violation>,
) -> QuarantineResult {
    // The check decodes documents, so it reads a copy.
    let original = &given.detached();
    let mut config = original.clone();
    let mut taken: BTreeMap<DocumentKey, Quarantined> = BTreeMap::new();
    loop {
        let violations = check(&config);
        let mut by_document: BTreeMap<DocumentKey, &Violation> = BTreeMap::new();
        for violation in &violations {
            if let (Subject::Document(key), true) = (&violation.subject, violation.is_refusal())
                && key.kind != ResourceKind::GlobalRule
                && config.contains(key)
            {
                by_document.entry(key.clone()).or_insert(violation);
            }
        }
        if by_document.is_empty() {
            let (refused, remarks): (Vec<_>, Vec<_>) =
                violations.into_iter().partition(Violation::is_refusal);
            let remarks = remarks.into_iter().filter(|remark| !remark.is_intended()).map(remark).collect();
            let config = with_measures(given, &taken, &config);
            return QuarantineResult { config, quarantined: taken.into_values().collect(), refused, remarks };
        }
        for (key, violation) in by_document {
            let status = status(&key);
            let earlier = taken.get(&key).map(|entry| entry.measure);
            let (measure, replacement) = next_measure(original, &key, status, earlier);
            match replacement {
                Some(route) => config.insert(key.id.clone(), route),
                None => config.remove(&key),
            };
            // The first violation is the cause. Later ones come from the measures.
            let entry = taken.entry(key.clone()).or_insert_with(|| {
                let Violation { field, message, .. } = violation.clone();
                Quarantined { key, measure, status, field, because: message }
            });
            entry.measure = measure;
        }
    }
}

/// The documents after all measures. The others are shared with the given ones.
fn with_measures(given: &Config, taken: &BTreeMap<DocumentKey, Quarantined>, after: &Config) -> Config {
    let mut config = given.clone();
    for key in taken.keys() {
        match after.get(key) {
            Some(document) => config.insert(key.id.clone(), document.clone()),
            None => config.remove(key),
        };
    }
    config
}

fn remark(violation: Violation) -> (Option<DocumentKey>, String) {
    let Violation { subject, field, message, .. } = violation;
    match subject {
        Subject::Configuration | Subject::Key(_) => (None, message),
        Subject::Document(key) => {
            let colon = if field.is_empty() { "" } else { ": " };
            let message = format!("{key}{colon}{field}: {message}");
            (Some(key), message)
        }
    }
}

/// The next measure against a document, and its replacement.
fn next_measure(
    config: &Config,
    key: &DocumentKey,
    status: u16,
    earlier: Option<Measure>,
) -> (Measure, Option<Route>) {
    let route = match config.get(key) {
        Some(Document::Route(route)) => route,
        Some(Document::Upstream(_) | Document::Service(_) | Document::GlobalRule(_) | Document::Ssl(_))
        | None => {
            return (Measure::LeftOut, None);
        }
    };
    match earlier {
        None => (Measure::Closed, Some(closed(config, route, status))),
        Some(Measure::Closed) => match narrowed(closed(config, route, status)) {
            Some(route) => (Measure::Narrowed, Some(route)),
            None => (Measure::LeftOut, None),
        },
        Some(Measure::Narrowed | Measure::LeftOut) => (Measure::LeftOut, None),
    }
}

/// A Route with the matches of another that answers an error.
fn closed(config: &Config, route: &Route, status: u16) -> Route {
    let service = route.service_id.as_deref().and_then(|id| config.service(id));
    let own_hosts = !route.host_patterns().is_empty();
    let hosts = if own_hosts { &route.hosts } else { service.map_or(&route.hosts, |service| &service.hosts) };
    let abort = Abort { http_status: status, ..Abort::default() };
    Route {
        name: route.name.clone(),
        uri: route.uri.clone(),
        uris: if route.uri.is_some() { Vec::new() } else { route.uris.clone() },
        methods: route.methods.clone(),
        host: route.host.clone(),
        hosts: if route.host.is_some() { Vec::new() } else { hosts.clone() },
        priority: route.priority,
        plugins: Plugins::new().with(&FaultInjection { abort: Some(abort), ..FaultInjection::default() }),
        upstream: Some(Box::new(Upstream {
            nodes: BTreeMap::from([(NOWHERE.to_owned(), 1)]),
            ..Upstream::default()
        })),
        ..Route::default()
    }
}

/// The Route with its valid paths, hosts and methods; `None` if one of the lists has no valid entry, because an empty
/// list would match everything.
fn narrowed(route: Route) -> Option<Route> {
    let keep = |patterns: &[String], holds: &dyn Fn(&String) -> bool| -> Option<Vec<String>> {
        let kept: Vec<String> = patterns.iter().filter(|pattern| holds(pattern)).cloned().collect();
        (patterns.is_empty() || !kept.is_empty()).then_some(kept)
    };
    let is_path = |pattern: &String| is_path_pattern(pattern);
    let is_host = |host: &String| is_host_pattern(host);
    let is_method =
        |method: &String| !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let uris = keep(route.path_patterns(), &is_path)?;
    let hosts = keep(route.host_patterns(), &is_host)?;
    let methods = keep(&route.methods, &is_method)?;
    (!uris.is_empty()).then_some(Route { uri: None, uris, host: None, hosts, methods, ..route })
}
