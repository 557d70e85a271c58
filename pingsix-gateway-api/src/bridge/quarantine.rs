//! The measures against documents that PingSIX would refuse.

use std::collections::BTreeMap;

use pingsix_translate::pingsix::plugin::{Abort, FaultInjection};
use pingsix_translate::pingsix::validate::{Subject, Violation};
use pingsix_translate::pingsix::{
    Config, Document, DocumentKey, Plugins, ResourceKind, Route, Upstream, router::is_host_pattern,
    router::is_path_pattern,
};

/// The node of an upstream without requests: the discard port.
const NOWHERE: &str = "127.0.0.1:9";

/// A document that violates a rule, and the measure against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined<K = DocumentKey> {
    /// The document.
    pub key: K,
    /// The measure.
    pub measure: Measure,
    /// The violated rule and the consequence, in sentences without secrets.
    pub message: String,
}

/// The measure against a document in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// The route keeps its place and answers an error itself, or rejects connections.
    Closed,
    /// The route does so for its valid patterns; the other patterns are gone.
    Narrowed,
    /// The document is not published.
    LeftOut,
}

/// Takes measures against documents at fault until there are none. `faults` returns these documents with a violation
/// each, and `take` takes a measure if it is possible, as [`Measure::LeftOut`] always is. Each document is returned with
/// its last measure and its first violation, because later violations come from the measures.
///
/// The loop ends after at most three rounds per document, because each round takes the next measure against every
/// document at fault.
pub(super) fn take_measures<C, K: Ord + Clone, V>(
    config: &mut C,
    mut faults: impl FnMut(&C) -> BTreeMap<K, V>,
    take: impl Fn(&mut C, &K, Measure) -> bool,
) -> BTreeMap<K, (Measure, V)> {
    let mut taken: BTreeMap<K, (Measure, V)> = BTreeMap::new();
    loop {
        let faults = faults(config);
        if faults.is_empty() {
            return taken;
        }
        for (key, violation) in faults {
            let next: &[Measure] = match taken.get(&key).map(|(measure, _)| measure) {
                None => &[Measure::Closed, Measure::Narrowed, Measure::LeftOut],
                Some(Measure::Closed) => &[Measure::Narrowed, Measure::LeftOut],
                Some(Measure::Narrowed | Measure::LeftOut) => &[Measure::LeftOut],
            };
            let measure = next.iter().find(|measure| take(config, &key, **measure));
            let measure = *measure.unwrap_or(&Measure::LeftOut);
            taken.entry(key).or_insert((measure, violation)).0 = measure;
        }
    }
}

/// Applies the rules of [`mod@crate::bridge`] until `check` finds no violation of a document. `status` is the status
/// code of a Route at fault: 500, or 503 when all its rules are those of GRPCRoutes. The result has the violations of
/// the configuration after all measures.
pub(super) fn quarantine(
    given: &Config,
    status: impl Fn(&DocumentKey) -> u16,
    check: impl Fn(&Config) -> Vec<Violation>,
) -> (Config, Vec<Quarantined>, Vec<Violation>) {
    // The check decodes documents, so it reads a copy.
    let original = &given.detached();
    let mut after = original.clone();
    let mut violations = Vec::new();
    let faults = |config: &Config| {
        let mut by_document: BTreeMap<DocumentKey, Violation> = BTreeMap::new();
        violations = check(config);
        for violation in violations.iter().filter(|violation| violation.is_refusal()) {
            if let Subject::Document(key) = &violation.subject
                && key.kind != ResourceKind::GlobalRule
                && config.contains(key)
            {
                by_document.entry(key.clone()).or_insert_with(|| violation.clone());
            }
        }
        by_document
    };
    let take = |config: &mut Config, key: &DocumentKey, measure: Measure| {
        let route = match (measure, original.get(key)) {
            (Measure::Closed, Some(Document::Route(route))) => Some(closed(original, route, status(key))),
            (Measure::Narrowed, Some(Document::Route(route))) => {
                narrowed(closed(original, route, status(key)))
            }
            _ => None,
        };
        match route {
            Some(route) => config.insert(key.id.clone(), route),
            None if measure == Measure::LeftOut => config.remove(key),
            None => return false,
        };
        true
    };
    let taken = take_measures(&mut after, faults, take);
    // All other documents are shared with the given ones.
    let mut config = given.clone();
    for key in taken.keys() {
        match after.get(key) {
            Some(document) => config.insert(key.id.clone(), document.clone()),
            None => config.remove(key),
        };
    }
    let quarantined = taken.into_iter().map(|(key, (measure, Violation { field, message, .. }))| {
        let consequence = match measure {
            Measure::Closed => format!("the requests it decides are answered with {}", status(&key)),
            Measure::Narrowed => format!(
                "the requests it decides are answered with {}, except for patterns PingSIX cannot hold",
                status(&key)
            ),
            Measure::LeftOut => "it is left out".to_owned(),
        };
        let colon = if field.is_empty() { "" } else { ": " };
        let message = format!("PingSIX would refuse {key}{colon}{field}, so {consequence}. {message}");
        Quarantined { key, measure, message }
    });
    (config, quarantined.collect(), violations)
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
