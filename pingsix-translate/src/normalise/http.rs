//! HTTPRoute to the kind-neutral shape.

use gateway_api::experimental::httproutes as api;

use super::assemble::{RouteHeader, assemble, matches, rules};
use super::backend::WrittenBackends;
use super::condition::push_condition;
use super::{
    Condition, Extensions, FilterReader, FilterScope, Match, Path, PathKind, ReadFilters, Route, Rule,
    TimeoutsAndRetries, Variable, beginnings,
};
use crate::model::{Capability, FieldPath, Reason, Refusal, field};
use crate::snapshot::HttpRoute;

/// Normalises an HTTPRoute. Never fails: an unusable part becomes a refusal of its rule.
pub(super) fn normalise_http_route(route: &HttpRoute, extensions: &Extensions) -> Route {
    let spec = route.spec();
    let scope = FilterScope { namespace: &route.metadata.name.namespace, extensions: Some(extensions) };
    // The API server would have written the default rule: every path, no backend.
    let rules = rules(spec.rules.as_deref(), |index, rule| normalise_rule(scope, index, rule));
    let header = RouteHeader {
        hostnames: spec.hostnames.as_deref(),
        uses_default_gateways: spec.use_default_gateways == Some(api::HttpRouteUseDefaultGateways::All),
    };
    assemble(route, &header, rules)
}

fn normalise_rule(scope: FilterScope<'_>, index: usize, rule: &api::HttpRouteRules) -> Rule {
    let mut refusals = Vec::new();
    if rule.session_persistence.is_some() {
        let at = field::rule(index).child("sessionPersistence");
        refusals.push(Capability::SessionsOfRules.refuse(at));
    }
    let mut closing = Vec::new();
    let matches = matches(rule.matches.as_deref(), |(position, matched)| {
        normalise_match((index, position), matched, &mut refusals, &mut closing)
    });
    let of_rule = rule.filters.as_deref().unwrap_or_default();
    let read = |reader: &mut FilterReader<'_>, at: &FieldPath| reader.read(of_rule, at);
    let refs = rule.backend_refs.as_deref();
    let written = WrittenBackends { scope, rule: index, refs, has_filters: !of_rule.is_empty() };
    let (backends, ReadFilters { filters, host, unresolved }) =
        written.normalise(read, &matches, &mut refusals);
    let mut limitations = Vec::new();
    let timeouts = TimeoutsAndRetries::read(
        index,
        rule.timeouts.as_ref(),
        rule.retry.as_ref(),
        &mut limitations,
        &mut refusals,
    );
    let mirrors = written.mirrors(of_rule);
    Rule {
        index,
        name: rule.name.as_deref().map(Into::into),
        matches: matches.into(),
        closing: closing.into(),
        backends: backends.into(),
        mirrors: mirrors.into(),
        filters,
        host,
        timeouts,
        limitations: limitations.into(),
        refusals: refusals.into(),
        unresolved: unresolved.into(),
        ..Rule::default()
    }
}

/// Reads a match, which is several if its path is refused. What stands for an inexpressible match goes to `closing`.
fn normalise_match(
    (rule, index): (usize, usize),
    matched: &api::HttpRouteRulesMatches,
    refusals: &mut Vec<Refusal>,
    closing: &mut Vec<Match>,
) -> Vec<Match> {
    // Field paths are formatted only for refusals.
    let at = || field::rule_match(rule, index);
    let of_path = matched.path.as_ref().map(|path| normalise_path(path, || at().child("path"), refusals));
    let paths = of_path.unwrap_or_else(|| Ok(vec![Path::root()]));
    let conditions = if paths.is_ok() { read_conditions(matched, at, refusals) } else { Some(Vec::new()) };
    let method = matched.method.as_ref().map(method_name);
    Match::all(index, paths, method, conditions, closing)
}

/// Reads the conditions of a match; `None` if one is inexpressible.
fn read_conditions(
    matched: &api::HttpRouteRulesMatches,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Option<Vec<Condition>> {
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
    Some(conditions)
}

/// Reads a path. An inexpressible one is refused, and the error are the paths that stand for it, if some request has it.
fn normalise_path(
    path: &api::HttpRouteRulesMatchesPath,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Result<Vec<Path>, Vec<Path>> {
    let kind = match path.r#type.as_ref().unwrap_or(&api::HttpRouteRulesMatchesPathType::PathPrefix) {
        api::HttpRouteRulesMatchesPathType::Exact => PathKind::Exact,
        api::HttpRouteRulesMatchesPathType::PathPrefix => PathKind::Prefix,
        api::HttpRouteRulesMatchesPathType::RegularExpression => {
            refusals.push(Capability::RegexPath.refuse(at().child("type")));
            return Err(beginnings(path.value.as_deref().unwrap_or_default()));
        }
    };
    let text = path.value.as_deref().unwrap_or("/");
    let (path, problem) = Path::parse(kind, text);
    if let Some(problem) = problem {
        let message = problem.message(text, "Gateway API does not allow in paths");
        refusals.push(Refusal::new(at().child("value"), Reason::UnsupportedValue, message));
    }
    path.map(|path| path.with_spellings(text, problem)).ok_or_else(|| Path::in_place_of(text))
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
