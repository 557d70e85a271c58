//! The matches of a rule: paths times methods times values of conditions.

use serde_json::{Map, Value, json};

use pingsix_translate::Hostname;

use super::conditions::{self, Condition};
use crate::plugin::networks;
use crate::report::{Place, Reason, Report};
use crate::source::Fields;

/// The most matches of a rule. More of them are a sign of hostile input rather than of a rule.
const MAX_MATCHES: usize = 1_024;

/// The methods of an HTTPRoute.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/// Which requests a rule takes.
#[derive(Default)]
pub(super) struct Matching {
    /// Sorted; empty for all hosts.
    pub(super) hosts: Vec<String>,
    /// Items of `rules[].matches`.
    pub(super) matches: Vec<Value>,
    /// Networks of clients.
    pub(super) networks: Vec<String>,
}

/// Whether an HTTPRoute can have the path, and PingSIX takes it for no pattern.
pub(super) fn is_path(value: &str) -> bool {
    value.starts_with('/')
        && value.len() <= 1024
        && !["//", "/./", "/../", "%2f", "%2F", "#", "?"].iter().any(|part| value.contains(part))
        && !value.ends_with("/..")
        && !value.ends_with("/.")
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-/._~!$&'()+,;=:@%".contains(&byte))
        && !value.split('/').any(|element| element.starts_with(':'))
}

/// The path of an HTTPRoute for one of APISIX.
pub(super) fn path(place: &Place, path: &str, report: &mut Report) -> Option<Value> {
    let (value, is_prefix) = match path.strip_suffix("/*") {
        Some(prefix) => (if prefix.is_empty() { "/" } else { prefix }, true),
        None => (path, false),
    };
    if value.contains('*') {
        let message = "An asterisk stands for whole elements at the end of a path in an HTTPRoute, and here it does not.";
        report.blocking(place, Reason::UnsupportedPath, message);
        return None;
    }
    if !is_path(value) {
        let message = "An HTTPRoute cannot have the path, or PingSIX would take it for a pattern.";
        report.blocking(place, Reason::UnsupportedPath, message);
        return None;
    }
    if !is_prefix {
        report.exact(place, format!("The path becomes Exact {value}."));
        return Some(json!({ "type": "Exact", "value": value }));
    }
    if value == "/" {
        report.exact(place, "The path becomes PathPrefix /.");
    } else {
        let message = format!("The path becomes PathPrefix {value}, which takes {value} itself, too.");
        report.limited(place, Reason::DifferentMatch, message);
    }
    Some(json!({ "type": "PathPrefix", "value": value }))
}

fn host(place: &Place, host: &str, report: &mut Report) -> Option<String> {
    let host = host.to_ascii_lowercase();
    if Hostname::parse(&host).is_err() {
        let message = "An HTTPRoute cannot have the host. Give a name, or *. and a name.";
        report.blocking(place, Reason::UnsupportedHost, message);
        return None;
    }
    report.exact(place, format!("The host becomes hostname {host}."));
    Some(host)
}

/// Reads `match` of an ApisixRoute.
pub(super) fn of_rule(mut fields: Fields, report: &mut Report) -> Matching {
    let place = fields.place.clone();
    let paths = fields.texts("paths", report);
    if paths.is_empty() {
        report.blocking(&place.at("paths"), Reason::MissingField, "The rule has no path. Add one to paths.");
    }
    let paths: Vec<Value> =
        paths.into_iter().filter_map(|(place, text)| path(&place, &text, report)).collect();
    let mut methods = Vec::new();
    let given = fields.texts("methods", report);
    for (place, method) in &given {
        let known = METHODS.iter().find(|known| known.eq_ignore_ascii_case(method));
        match known {
            Some(known) if !methods.contains(known) => {
                report.exact(place, format!("The method becomes {known}."));
                methods.push(*known);
            }
            Some(_) => report.exact(place, "The list has the method already."),
            // Fewer requests match, and others are refused as before: no rule had taken them.
            None => report.blocking(place, Reason::UnsupportedMatch, "An HTTPRoute cannot have the method."),
        }
    }
    let lacks_methods = methods.is_empty() && !given.is_empty();
    let given = fields.texts("hosts", report);
    let has_hosts = !given.is_empty();
    let mut hosts: Vec<String> =
        given.into_iter().filter_map(|(place, text)| host(&place, &text, report)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let addresses = fields.texts("remoteAddrs", report);
    let at_addresses = place.at("remoteAddrs");
    let networks = networks(addresses, report);
    if !networks.is_empty() {
        let message = "The networks become authorization of a SecurityPolicy: other clients get 403, and no other rule takes them.";
        report.limited(&at_addresses, Reason::DifferentMatch, message);
    }
    let conditions: Vec<Condition> = fields
        .list("exprs", report)
        .into_iter()
        .filter_map(|item| conditions::of_expression(item, report))
        .collect();
    if let Some((place, _)) = fields.filled("filter_func", report) {
        report.blocking(&place, Reason::UnsupportedField, "PingSIX runs no code that chooses rules.");
    }
    fields.finish(report);
    // Without hosts or methods, a match would have all of them.
    let lacks_hosts = has_hosts && hosts.is_empty();
    let paths = if lacks_methods || lacks_hosts { Vec::new() } else { paths };
    let matches = expand(&paths, &methods, &conditions, &place, report);
    Matching { hosts, matches, networks }
}

/// All combinations, unless they are too many.
fn expand(
    paths: &[Value],
    methods: &[&str],
    conditions: &[Condition],
    place: &Place,
    report: &mut Report,
) -> Vec<Value> {
    if paths.len() > MAX_MATCHES / methods.len().max(1) {
        let message = format!("The rule would have more than {MAX_MATCHES} matches.");
        report.blocking(place, Reason::TooMany, message);
        return Vec::new();
    }
    let base: Vec<Map<String, Value>> = paths
        .iter()
        .flat_map(|path| {
            let one = Map::from_iter([("path".to_owned(), path.clone())]);
            if methods.is_empty() {
                return vec![one];
            }
            let with = |method: &&str| {
                let mut one = one.clone();
                one.insert("method".to_owned(), json!(method));
                one
            };
            methods.iter().map(with).collect()
        })
        .collect();
    add(base, conditions, place, report).into_iter().map(Value::Object).collect()
}

/// Adds conditions to matches. Too many combinations are a loss.
pub(super) fn add(
    mut matches: Vec<Map<String, Value>>,
    conditions: &[Condition],
    place: &Place,
    report: &mut Report,
) -> Vec<Map<String, Value>> {
    for (index, condition) in conditions.iter().enumerate() {
        let is_twice = conditions.iter().take(index).any(|earlier| {
            earlier.field == condition.field && earlier.name.eq_ignore_ascii_case(&condition.name)
        });
        if is_twice {
            let message = format!("Two conditions are about {} {}.", condition.field, condition.name);
            report.blocking(place, Reason::UnsupportedMatch, message);
            return Vec::new();
        }
    }
    let factor = conditions.iter().try_fold(1_usize, |all, one| all.checked_mul(one.values.len()));
    let count = factor.and_then(|factor| factor.checked_mul(matches.len()));
    if count.is_none_or(|count| count > MAX_MATCHES) {
        let message = format!("The rule would have more than {MAX_MATCHES} matches.");
        report.blocking(place, Reason::TooMany, message);
        return Vec::new();
    }
    if conditions.len() > 16 {
        report.blocking(place, Reason::TooMany, "A match has at most 16 conditions.");
        return Vec::new();
    }
    for condition in conditions {
        let mut more = Vec::with_capacity(matches.len() * condition.values.len());
        for one in &matches {
            for value in &condition.values {
                let mut one = one.clone();
                match one.entry(condition.field).or_insert_with(|| json!([])) {
                    Value::Array(items) => items.push(condition.item(value)),
                    other @ (Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Object(_)) => *other = json!([condition.item(value)]),
                }
                more.push(one);
            }
        }
        matches = more;
    }
    matches
}
