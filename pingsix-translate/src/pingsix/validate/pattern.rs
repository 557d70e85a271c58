//! The rules of path and host patterns.

use std::collections::BTreeMap;

use super::context::Context;
use super::{Rule, Severity, Violation};
use crate::pingsix::router::{inspect_pattern, reverse_host};
use crate::pingsix::{Config, Document, DocumentKey, Route};

/// The largest number of compared pairs of patterns. Only tables full of parameters have more pairs, and such tables
/// have other violations, too.
const MAX_PAIRS: usize = 1_000_000;

/// The patterns of a route, each by itself.
pub(super) fn check_route(route: &Route, context: &Context<'_>, out: &mut Vec<Violation>) {
    let field = |list: &str, one: bool, index: usize| {
        if one { list.trim_end_matches('s').to_owned() } else { format!("{list}[{index}]") }
    };
    let paths = route.path_patterns();
    for (index, pattern) in paths.iter().enumerate() {
        let field = || field("uris", route.uri.is_some(), index);
        match inspect_pattern(pattern) {
            Err(error) => {
                let earlier = paths.iter().take(index).cloned();
                let taken_in = is_taken_in(pattern, earlier, all_paths(context.config));
                out.push(malformed(pattern, &error.to_string(), taken_in, field(), context));
            }
            Ok(_) => check_path_meaning(pattern, field, context, out),
        }
    }
    let own = route.host_patterns();
    for (index, host) in own.iter().enumerate() {
        let field = || field("hosts", route.host.is_some(), index);
        check_host_syntax(own, index, field, context, out);
        check_host_meaning(host, field, context, out);
    }
    if own.is_empty() {
        let of_service = context.config.hosts_of(route);
        for index in 0..of_service.len() {
            check_host_syntax(of_service, index, || "service_id".to_owned(), context, out);
        }
    }
}

/// The violation of a malformed pattern. PingSIX does not insert a pattern that an earlier one covers.
fn malformed(pattern: &str, cause: &str, taken_in: bool, field: String, context: &Context<'_>) -> Violation {
    if taken_in {
        let message = format!(
            "Pattern \"{pattern}\" does nothing: {cause}, and an earlier pattern of the route takes it in."
        );
        return context.violation(Rule::PatternMeaning, Severity::Misbehaves, field, message);
    }
    let message = format!("Pattern \"{pattern}\" cannot be inserted: {cause}.");
    context.violation(Rule::Pattern, Severity::RejectedLate, field, message)
}

/// Whether PingSIX never inserts a pattern, because its look-up as a request finds an earlier pattern of its own
/// route. This must hold in all orders of insertion: a pattern of any route with parameters or doubled braces may
/// cover the earlier pattern, and must cover this one, too, then.
fn is_taken_in(
    pattern: &str,
    earlier: impl Iterator<Item = String>,
    all: impl Iterator<Item = String>,
) -> bool {
    let takers: Vec<String> = earlier.filter(|earlier| takes_in(earlier, pattern)).collect();
    if takers.is_empty() {
        return false;
    }
    // A catch-all of another route that covers the earlier pattern covers this one, too.
    let narrow: Vec<String> =
        all.filter(|other| is_peculiar(other)).filter(|narrow| !takes_in(narrow, pattern)).collect();
    takers.iter().any(|taker| !narrow.iter().any(|narrow| takes_in(narrow, taker)))
}

/// Whether a pattern matches another one that is looked up as a request.
pub(super) fn takes_in(pattern: &str, text: &str) -> bool {
    let mut tree = matchit::Router::new();
    inspect_pattern(pattern).is_ok() && tree.insert(pattern, ()).is_ok() && tree.at(text).is_ok()
}

/// Whether a pattern has parameters or doubled braces. Other patterns never conflict: the look-up before the insertion
/// finds an entry, or the pattern is free.
pub(super) fn is_peculiar(pattern: &str) -> bool {
    pattern.contains(['{', '}'])
        && inspect_pattern(pattern).is_ok_and(|shape| shape.escapes || shape.params > 0)
}

fn all_paths(config: &Config) -> impl Iterator<Item = String> {
    of_all(config, |document| match document {
        Document::Route(route) => route.path_patterns(),
        Document::Upstream(_) | Document::Service(_) | Document::GlobalRule(_) | Document::Ssl(_) => &[],
    })
}

fn all_hosts(config: &Config) -> impl Iterator<Item = String> {
    let hosts = of_all(config, |document| match document {
        Document::Route(route) => route.host_patterns(),
        Document::Service(service) => &service.hosts,
        Document::Upstream(_) | Document::GlobalRule(_) | Document::Ssl(_) => &[],
    });
    hosts.map(|host| reverse_host(&host))
}

/// Texts of all documents. The documents do not stay decoded, because the configuration may be stored for long.
fn of_all(config: &Config, texts: impl Fn(&Document) -> &[String]) -> impl Iterator<Item = String> {
    config.documents().values().flat_map(move |held| texts(&held.look()).to_vec())
}

fn check_host_syntax(
    hosts: &[String],
    index: usize,
    field: impl Fn() -> String,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) {
    let Some(host) = hosts.get(index) else { return };
    let pattern = reverse_host(host);
    let cause = match inspect_pattern(&pattern) {
        Err(error) => error.to_string(),
        Ok(shape) if shape.escapes => "it has doubled braces, at which PingSIX's worker dies".to_owned(),
        Ok(_) => return,
    };
    let earlier = hosts.iter().take(index).map(|host| reverse_host(host));
    let taken_in = is_taken_in(&pattern, earlier, all_hosts(context.config));
    out.push(malformed(host, &cause, taken_in, field(), context));
}

fn check_path_meaning(
    pattern: &str,
    field: impl Fn() -> String,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) {
    let foreign = |segment: &str| segment == "*" || (segment.len() > 1 && segment.starts_with(':'));
    let (rule, message) = if pattern.is_empty() || !pattern.starts_with(['/', '{']) {
        let message = format!("Path \"{pattern}\" does not start with a slash, so no request matches it.");
        (Rule::PatternMeaning, message)
    } else if pattern.split('/').any(foreign) {
        let message = format!("Path \"{pattern}\" is literal: `*` and `:name` are no wildcards.");
        (Rule::LiteralWildcard, message)
    } else {
        return;
    };
    out.push(context.violation(rule, Severity::Misbehaves, field(), message));
}

/// Reports a host pattern that PingSIX stores although no request's host can match.
pub(super) fn check_host_meaning(
    host: &str,
    field: impl Fn() -> String,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) {
    let rest = host.strip_prefix('*').unwrap_or(host);
    let message = if host.is_empty() {
        "An empty host matches no request.".to_owned()
    } else if rest.contains('*') {
        format!("Host \"{host}\" is literal: `*` is a wildcard in front only.")
    } else if !rest.contains('[') && rest.contains(':') {
        format!("Host \"{host}\" matches no request, because PingSIX drops the port of a request's host.")
    } else {
        return;
    };
    out.push(context.violation(Rule::PatternMeaning, Severity::Misbehaves, field(), message));
}

/// A pattern of a route.
struct Located<'c> {
    key: &'c DocumentKey,
    position: usize,
    pattern: &'c str,
}

/// Reports pairs of patterns that matchit refuses in at least one order of insertion.
pub(super) fn check_conflicts(config: &Config, out: &mut Vec<Violation>) {
    let has_any = config.routes().any(|(_, route)| route.path_patterns().iter().any(|uri| is_peculiar(uri)));
    if !has_any {
        return;
    }
    // Routes meet in a router when they share a host pattern, or when neither has one.
    let mut routers: BTreeMap<Option<&str>, Vec<Located<'_>>> = BTreeMap::new();
    for (key, route) in config.routes() {
        let hosts = config.hosts_of(route);
        let hosts = hosts.iter().map(|host| Some(host.as_str())).chain(hosts.is_empty().then_some(None));
        for host in hosts {
            let patterns =
                route.path_patterns().iter().enumerate().filter(|(_, uri)| inspect_pattern(uri).is_ok());
            routers.entry(host).or_default().extend(patterns.map(|(position, pattern)| Located {
                key,
                position,
                pattern,
            }));
        }
    }
    let mut pairs = 0;
    for patterns in routers.values() {
        for one in patterns.iter().filter(|one| is_peculiar(one.pattern)) {
            let clash =
                patterns.iter().take(MAX_PAIRS.saturating_sub(pairs)).find(|other| clashes(one, other));
            pairs += patterns.len();
            if let Some(other) = clash {
                let message = format!(
                    "Pattern \"{}\" conflicts with \"{}\" of {}, in some orders of insertion or in all.",
                    one.pattern, other.pattern, other.key
                );
                let field = format!("uris[{}]", one.position);
                out.push(Violation::of(
                    one.key,
                    Rule::PatternConflict,
                    Severity::RejectedLate,
                    field,
                    message,
                ));
            }
        }
    }
}

fn clashes(one: &Located<'_>, other: &Located<'_>) -> bool {
    if one.key == other.key {
        // A route inserts its patterns in its own order.
        return match one.position.cmp(&other.position) {
            std::cmp::Ordering::Less => refuses(one.pattern, other.pattern),
            std::cmp::Ordering::Equal => false,
            std::cmp::Ordering::Greater => refuses(other.pattern, one.pattern),
        };
    }
    refuses(one.pattern, other.pattern) || refuses(other.pattern, one.pattern)
}

fn refuses(first: &str, second: &str) -> bool {
    let mut tree = matchit::Router::new();
    tree.insert(first, ()).is_ok() && tree.at(second).is_err() && tree.insert(second, ()).is_err()
}
