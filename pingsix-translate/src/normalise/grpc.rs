//! Normalisation of GRPCRoutes.
//!
//! A call of method `M` of service `S` is a request to the path `/S/M`, so method matches become path matches. Their
//! precedence is that of paths. The matches for one call that name a service all name the same one, and a method
//! makes the path exact. So the order of service characters, then method characters, equals exact before prefix
//! before nothing.

use std::sync::Arc;

use gateway_api::experimental::grpcroutes as api;

use super::assemble::{RouteHeader, assemble, matches, rules};
use super::backend::WrittenBackends;
use super::condition::push_condition;
use super::path::MAX_PATH;
use super::{
    Condition, FilterReader, FilterScope, Match, Path, PathKind, ReadFilters, Route, Rule, Variable,
    beginnings,
};
use crate::model::{Capability, FieldPath, Reason, Refusal, field};
use crate::snapshot::GrpcRoute;

/// Normalises a GRPCRoute. Never fails: an unusable part becomes a refusal of its rule.
pub(super) fn normalise_grpc_route(route: &GrpcRoute) -> Route {
    let spec = route.spec();
    let namespace = &route.metadata.name.namespace;
    // The default rule: every call, no backend.
    let rules = rules(spec.rules.as_deref(), |index, rule| normalise_rule(namespace, index, rule));
    let header = RouteHeader {
        hostnames: spec.hostnames.as_deref(),
        uses_default_gateways: spec.use_default_gateways == Some(api::GrpcRouteUseDefaultGateways::All),
    };
    assemble(route, &header, rules)
}

fn normalise_rule(namespace: &Arc<str>, index: usize, rule: &api::GrpcRouteRules) -> Rule {
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
    let read = |reader: &mut FilterReader<'_>, at: &FieldPath| reader.read_as_http(of_rule, at);
    let refs = rule.backend_refs.as_deref();
    let scope = FilterScope { namespace, extensions: None };
    let written = WrittenBackends { scope, rule: index, refs, has_filters: !of_rule.is_empty() };
    let (backends, ReadFilters { filters, host, unresolved }) =
        written.normalise(read, &matches, &mut refusals);
    Rule {
        index,
        name: rule.name.as_deref().map(Into::into),
        matches: matches.into(),
        closing: closing.into(),
        backends: backends.into(),
        mirrors: written.mirrors(of_rule).into(),
        filters,
        host,
        refusals: refusals.into(),
        unresolved: unresolved.into(),
        // GRPCRoutes have neither timeouts nor retries.
        ..Rule::default()
    }
}

/// Reads a match, which is several if its path is refused. What stands for an inexpressible match goes to `closing`.
fn normalise_match(
    (rule, index): (usize, usize),
    matched: &api::GrpcRouteRulesMatches,
    refusals: &mut Vec<Refusal>,
    closing: &mut Vec<Match>,
) -> Vec<Match> {
    // Field paths are formatted only for refusals.
    let at = || field::rule_match(rule, index);
    let of_method = matched.method.as_ref().map(|method| {
        let read = normalise_method(method, || at().child("method"), refusals);
        read.ok_or_else(|| paths_in_place(method))
    });
    let paths = of_method.unwrap_or_else(|| Ok(vec![Path::root()]));
    let conditions = if paths.is_ok() { read_conditions(matched, at, refusals) } else { Some(Vec::new()) };
    // Every call is a POST, so there is no need to ask for it.
    Match::all(index, paths, None, conditions, closing)
}

/// The paths that stand for all calls of an inexpressible method match.
fn paths_in_place(written: &api::GrpcRouteRulesMatchesMethod) -> Vec<Path> {
    let service = written.service.as_deref().unwrap_or_default();
    if written.r#type != Some(api::GrpcRouteRulesMatchesMethodType::RegularExpression) {
        return vec![Path::root()];
    }
    beginnings(&["/", service.strip_prefix('^').unwrap_or(service)].concat())
}

/// Reads the conditions of a match; `None` if one is inexpressible.
fn read_conditions(
    matched: &api::GrpcRouteRulesMatches,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Option<Vec<Condition>> {
    let mut conditions: Vec<Condition> = Vec::new();
    for (position, header) in matched.headers.iter().flatten().enumerate() {
        let regex = header.r#type == Some(api::GrpcRouteRulesMatchesHeadersType::RegularExpression);
        let variable = Variable::Header(header.name.to_ascii_lowercase());
        let at = || at().child("headers").index(position);
        push_condition(&mut conditions, variable, &header.value, regex, at, refusals)?;
    }
    Some(conditions)
}

fn normalise_method(
    written: &api::GrpcRouteRulesMatchesMethod,
    at: impl Fn() -> FieldPath,
    refusals: &mut Vec<Refusal>,
) -> Option<Vec<Path>> {
    if written.r#type == Some(api::GrpcRouteRulesMatchesMethodType::RegularExpression) {
        refusals.push(Capability::RegexGrpcMethod.refuse(at().child("type")));
        return None;
    }
    let invalid = |field, message: String| Refusal::new(field, Reason::UnsupportedValue, message);
    let service = written.service.as_deref().unwrap_or_default();
    let method = written.method.as_deref().unwrap_or_default();
    if service.is_empty() {
        let at = at().child("service");
        refusals.push(if method.is_empty() {
            let message =
                "A method match needs a service, a method, or both; to match every call, leave the method match out.";
            invalid(at, message.to_owned())
        } else {
            Capability::GrpcMethodOfAnyService.refuse(at)
        });
        return None;
    }
    if !is_service_name(service) {
        let message = format!("\"{service}\" is not the name of a gRPC service.");
        refusals.push(invalid(at().child("service"), message));
    }
    let (kind, text) = if method.is_empty() {
        (PathKind::Prefix, format!("/{service}"))
    } else {
        if !is_identifier(method) {
            let message = format!("\"{method}\" is not the name of a gRPC method.");
            refusals.push(invalid(at().child("method"), message));
        }
        (PathKind::Exact, format!("/{service}/{method}"))
    };
    // A name that is none has been refused; where its path can be matched all the same, it is.
    let (path, problem) = Path::parse(kind, &text);
    if path.is_none() && text.len() > MAX_PATH {
        let message = format!("The path of the call, /service/method, is longer than {MAX_PATH} characters.");
        refusals.push(invalid(at(), message));
    }
    path.map(|path| path.with_spellings(&text, problem))
}

/// Identifiers joined by dots, with one in front for a name that is fully qualified (Gateway API,
/// `GRPCMethodMatch.service`).
fn is_service_name(text: &str) -> bool {
    text.strip_prefix('.').unwrap_or(text).split('.').all(is_identifier)
}

/// Letters, digits and underscores, no digit first (Gateway API, `GRPCMethodMatch.method`).
fn is_identifier(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_part) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests;
