//! HTTPRoute to the kind-neutral shape.

use std::collections::BTreeSet;
use std::sync::Arc;

use gateway_api::experimental::httproutes as api;

use super::path::{MAX_PATH, PathFlaw};
use super::{
    BackendRef, Condition, Exchange, Expectation, FilterReader, Hostnames, Match, Path, PathKind,
    ReadFilters, Refusal, Route, Rule, Variable,
};
use crate::attach::Hostname;
use crate::field::{self, FieldPath};
use crate::object::{Age, Kind};
use crate::snapshot::{HttpRoute, RouteReferences as _, key_of};
use crate::verdict::Reason;

/// Largest weight of a backend (Gateway API, `BackendRef.weight`).
pub(super) const MAX_WEIGHT: u32 = 1_000_000;

/// Reads an HTTPRoute. Never fails: what cannot be honoured becomes a refusal of its rule.
pub(crate) fn normalise_http_route(route: &HttpRoute) -> Route {
    let key = Arc::new(key_of(Kind::HttpRoute, &route.metadata));
    let mut refusals = Vec::new();
    let hostnames = normalise_hostnames(route.spec.hostnames.as_deref(), |refusal| refusals.push(refusal));
    let rules = match route.spec.rules.as_deref() {
        // The API server would have written the default rule: every path, no backend.
        None | Some([]) => vec![normalise_rule(0, &api::HttpRouteRules::default())],
        Some(rules) => rules.iter().enumerate().map(|(index, rule)| normalise_rule(index, rule)).collect(),
    };
    Route {
        generation: route.metadata.generation.unwrap_or_default(),
        age: Age::of(&route.metadata),
        parent_refs: route.parent_refs(),
        hostnames,
        rules,
        refusals,
        key,
    }
}

pub(super) fn normalise_hostnames(names: Option<&[String]>, mut refuse: impl FnMut(Refusal)) -> Hostnames {
    let names = names.unwrap_or_default();
    if names.is_empty() {
        return Hostnames::Any;
    }
    let mut usable = BTreeSet::new();
    for (index, name) in names.iter().enumerate() {
        match Hostname::parse(name) {
            Ok(hostname) => {
                usable.insert(hostname);
            }
            Err(flaw) => refuse(Refusal::new(
                FieldPath::new("spec").child("hostnames").index(index),
                Reason::UnsupportedValue,
                format!("\"{name}\" is not a hostname a request could have: {flaw}."),
            )),
        }
    }
    Hostnames::Named(usable.into_iter().collect())
}

fn normalise_rule(index: usize, rule: &api::HttpRouteRules) -> Rule {
    let mut refusals = Vec::new();
    refuse_unsupported_fields(index, rule, &mut refusals);
    let matches = match rule.matches.as_deref() {
        None | Some([]) => {
            vec![Match { index: 0, path: Path::root(), method: None, conditions: Vec::new() }]
        }
        Some(matches) => matches
            .iter()
            .enumerate()
            .filter_map(|(position, matched)| normalise_match((index, position), matched, &mut refusals))
            .collect(),
    };
    let (backends, ReadFilters { filters, host }) = normalise_backends(index, rule, &matches, &mut refusals);
    let mut limits = Vec::new();
    let exchange =
        Exchange::read(index, rule.timeouts.as_ref(), rule.retry.as_ref(), &mut limits, &mut refusals);
    Rule { index, matches, backends, filters, host, exchange, limits, refusals }
}

/// The backends, and the filters of the rule and of its only backend.
fn normalise_backends(
    index: usize,
    rule: &api::HttpRouteRules,
    matches: &[Match],
    refusals: &mut Vec<Refusal>,
) -> (Vec<BackendRef>, ReadFilters) {
    let at = |name: &str| field::rule(index).child(name);
    let refs = rule.backend_refs.as_deref().unwrap_or_default();
    let backends: Vec<BackendRef> = refs
        .iter()
        .enumerate()
        .map(|(position, backend)| normalise_backend((index, position), backend, refusals))
        .collect();
    let mut of_backends = Vec::new();
    for (position, backend) in refs.iter().enumerate() {
        let filters = backend.filters.as_deref().unwrap_or_default();
        if !filters.is_empty() {
            of_backends.push((at("backendRefs").index(position).child("filters"), filters));
        }
    }
    if refs.len() > 1 {
        refusals.extend(of_backends.drain(..).map(|(at, _)| {
            Refusal::new(
                at,
                Reason::UnsupportedValue,
                "PingSIX runs filters per rule, so a backend can have its own only where it is the only one.",
            )
        }));
    }
    let of_rule = rule.filters.as_deref().unwrap_or_default();
    if of_rule.is_empty() && of_backends.is_empty() {
        return (backends, ReadFilters::default());
    }
    let mut reader = FilterReader::new(matches, refusals);
    reader.read(of_rule, &at("filters"));
    for (at, filters) in of_backends {
        reader.read_as_http(filters, &at);
    }
    let filters = reader.finish();
    if !backends.is_empty() && filters.filters.as_ref().is_some_and(|filters| filters.redirect.is_some()) {
        refusals.push(Refusal::new(
            at("backendRefs"),
            Reason::UnsupportedValue,
            "A rule that redirects sends nothing to a backend.",
        ));
    }
    (backends, filters)
}

/// Parts of a rule that are found and refused by name, never skipped.
fn refuse_unsupported_fields(index: usize, rule: &api::HttpRouteRules, refusals: &mut Vec<Refusal>) {
    let at = |name: &str| field::rule(index).child(name);
    if rule.session_persistence.is_some() {
        refusals.push(Refusal::new(
            at("sessionPersistence"),
            Reason::UnsupportedValue,
            "PingSIX issues no session cookies or headers.",
        ));
    }
}

fn normalise_backend(
    (rule, index): (usize, usize),
    backend: &api::HttpRouteRulesBackendRefs,
    refusals: &mut Vec<Refusal>,
) -> BackendRef {
    let at = |name: &str| field::rule(rule).child("backendRefs").index(index).child(name);
    let weight = backend.weight.unwrap_or(1);
    BackendRef {
        index,
        group: backend.group.clone().unwrap_or_default(),
        kind: backend.kind.clone().unwrap_or_else(|| Kind::Service.as_str().to_owned()),
        namespace: backend.namespace.clone(),
        name: backend.name.clone(),
        port: backend.port,
        weight: u32::try_from(weight).ok().filter(|weight| *weight <= MAX_WEIGHT).unwrap_or_else(|| {
            refusals.push(Refusal::new(
                at("weight"),
                Reason::UnsupportedValue,
                format!("Weight {weight} is not between 0 and {MAX_WEIGHT}."),
            ));
            0
        }),
    }
}

/// Reads a match. `None` means that no request can be told to match it, which is refused.
fn normalise_match(
    (rule, index): (usize, usize),
    matched: &api::HttpRouteRulesMatches,
    refusals: &mut Vec<Refusal>,
) -> Option<Match> {
    // Paths are written only for what is refused.
    let at = || field::rule_match(rule, index);
    let path = match &matched.path {
        None => Path::root(),
        Some(path) => normalise_path(path, || at().child("path"), refusals)?,
    };
    let mut conditions: Vec<Condition> = Vec::new();
    for (position, header) in matched.headers.iter().flatten().enumerate() {
        let regex = header.r#type == Some(api::HttpRouteRulesMatchesHeadersType::RegularExpression);
        let variable = Variable::Header(header.name.to_ascii_lowercase());
        let at = || at().child("headers").index(position);
        push_condition(&mut conditions, variable, &header.value, regex, at, refusals)?;
    }
    for (position, query) in matched.query_params.iter().flatten().enumerate() {
        let regex = query.r#type == Some(api::HttpRouteRulesMatchesQueryParamsType::RegularExpression);
        let variable = Variable::Query(query.name.clone());
        let at = || at().child("queryParams").index(position);
        push_condition(&mut conditions, variable, &query.value, regex, at, refusals)?;
    }
    conditions.sort_unstable();
    Some(Match { index, path, method: matched.method.as_ref().map(method_name), conditions })
}

fn normalise_path(
    path: &api::HttpRouteRulesMatchesPath,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Option<Path> {
    let kind = match path.r#type.as_ref().unwrap_or(&api::HttpRouteRulesMatchesPathType::PathPrefix) {
        api::HttpRouteRulesMatchesPathType::Exact => PathKind::Exact,
        api::HttpRouteRulesMatchesPathType::PathPrefix => PathKind::Prefix,
        api::HttpRouteRulesMatchesPathType::RegularExpression => {
            refusals.push(Refusal::new(
                at().child("type"),
                Reason::UnsupportedValue,
                "PingSIX has no regular expressions for paths; requests this match stands for are not served by \
                 this rule.",
            ));
            return None;
        }
    };
    let text = path.value.as_deref().unwrap_or("/");
    let (path, flaw) = Path::parse(kind, text);
    if let Some(flaw) = flaw {
        let message = match flaw {
            PathFlaw::NotAbsolute => {
                format!("Path \"{text}\" does not start with a slash; no request can match.")
            }
            PathFlaw::TooLong => format!("The path is longer than {MAX_PATH} characters."),
            PathFlaw::Forbidden(what) => {
                format!("Path \"{text}\" contains {what}, which Gateway API does not allow in paths.")
            }
        };
        refusals.push(Refusal::new(at().child("value"), Reason::UnsupportedValue, message));
    }
    path
}

/// Adds a condition; `None` when it can be neither evaluated nor approximated by the presence of a value.
fn push_condition(
    conditions: &mut Vec<Condition>,
    variable: Variable,
    value: &str,
    regex: bool,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Option<()> {
    // Gateway API: of equivalent names, only the first entry counts.
    if conditions.iter().any(|earlier| earlier.variable == variable) {
        return Some(());
    }
    let mut refuse = |field: &str, message: String| {
        refusals.push(Refusal::new(at().child(field), Reason::UnsupportedValue, message));
    };
    match &variable {
        Variable::Header(name) => {
            if name == "host" {
                refuse("name", "PingSIX cannot see the Host header on HTTP/2; use hostnames.".to_owned());
                return None;
            }
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                refuse("name", format!("\"{name}\" is not a header name."));
                return None;
            }
        }
        Variable::Query(name) if name.is_empty() => {
            refuse("name", "The name of a query parameter is empty.".to_owned());
            return None;
        }
        Variable::Query(_) => {}
    }
    let expectation = if regex {
        refuse("type", "PingSIX has no regular expressions for headers and query parameters.".to_owned());
        Expectation::Present
    } else if value.is_empty() {
        refuse("value", "PingSIX cannot tell an empty value from a missing one.".to_owned());
        return None;
    } else if matches!(variable, Variable::Header(_)) && !is_visible_ascii(value) {
        refuse("value", "PingSIX compares header values of visible ASCII characters only.".to_owned());
        return None;
    } else {
        Expectation::Equals(value.to_owned())
    };
    conditions.push(Condition { variable, expectation });
    Some(())
}

/// What a header value consists of after parsing: no control characters, no surrounding blanks.
fn is_visible_ascii(value: &str) -> bool {
    value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim_matches(' ').len() == value.len()
}

const fn method_name(method: &api::HttpRouteRulesMatchesMethod) -> &'static str {
    match method {
        api::HttpRouteRulesMatchesMethod::Get => "GET",
        api::HttpRouteRulesMatchesMethod::Head => "HEAD",
        api::HttpRouteRulesMatchesMethod::Post => "POST",
        api::HttpRouteRulesMatchesMethod::Put => "PUT",
        api::HttpRouteRulesMatchesMethod::Delete => "DELETE",
        api::HttpRouteRulesMatchesMethod::Connect => "CONNECT",
        api::HttpRouteRulesMatchesMethod::Options => "OPTIONS",
        api::HttpRouteRulesMatchesMethod::Trace => "TRACE",
        api::HttpRouteRulesMatchesMethod::Patch => "PATCH",
    }
}
