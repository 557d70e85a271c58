//! The rules of one document: its fields, its references, its patterns.

use super::context::Context;
use super::{Rule, Severity, Violation, pattern, plugin, ssl, upstream};
use crate::pingsix::{Document, Plugins, ResourceKind, Route, Service};

pub(super) fn check(document: &Document, context: &Context<'_>, violations: &mut Vec<Violation>) {
    check_id(context, violations);
    match document {
        Document::Upstream(named) => upstream::check_named(named, "", context, violations),
        Document::Service(service) => check_service(service, context, violations),
        Document::Route(route) => check_route(route, context, violations),
        Document::GlobalRule(rule) => check_plugins(&rule.plugins, context, violations),
        Document::Ssl(certificate) => ssl::check(certificate, context, violations),
    }
}

/// Checks the id, which may be no valid key segment.
fn check_id(context: &Context<'_>, violations: &mut Vec<Violation>) {
    let id = &context.key.id;
    if id.starts_with('.') {
        let message = "PingSIX ignores a document whose id starts with a dot.";
        violations.push(context.violation(Rule::Key, Severity::Misbehaves, "id", message));
    } else if id.is_empty() || id.contains('/') {
        let message = "An id cannot be empty and cannot contain a slash.";
        violations.push(context.violation(Rule::Key, Severity::Fatal, "id", message));
    }
}

fn check_service(service: &Service, context: &Context<'_>, violations: &mut Vec<Violation>) {
    context.check_fields(service, "", Rule::Range, Severity::Rejected, violations);
    if let Some(inline) = &service.upstream {
        upstream::check_inline(inline, "upstream", context, violations);
    } else if let Some(id) = &service.upstream_id {
        context.check_reference(ResourceKind::Upstream, id, || "upstream_id".to_owned(), violations);
    }
    for (index, host) in service.hosts.iter().enumerate() {
        pattern::check_host_meaning(host, || format!("hosts[{index}]"), context, violations);
    }
    check_plugins(&service.plugins, context, violations);
}

fn check_route(route: &Route, context: &Context<'_>, violations: &mut Vec<Violation>) {
    context.check_fields(route, "", Rule::Range, Severity::Rejected, violations);
    if let Some(inline) = &route.upstream {
        upstream::check_late(inline, "upstream", context, violations);
    } else if let Some(id) = &route.upstream_id {
        context.check_reference(ResourceKind::Upstream, id, || "upstream_id".to_owned(), violations);
    }
    if let Some(id) = &route.service_id {
        context.check_reference(ResourceKind::Service, id, || "service_id".to_owned(), violations);
    }
    for method in &route.methods {
        let upper = method.to_ascii_uppercase();
        if *method != upper && upper.parse().is_ok_and(|known: http::Method| is_standard(&known)) {
            let message = format!("Method \"{method}\" never matches {upper}: PingSIX compares case.");
            violations.push(context.violation(Rule::MethodCase, Severity::Misbehaves, "methods", message));
        }
    }
    pattern::check_route(route, context, violations);
    check_plugins(&route.plugins, context, violations);
}

fn is_standard(method: &http::Method) -> bool {
    use http::Method;
    let standard = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    standard.contains(method)
}

fn check_plugins(plugins: &Plugins, context: &Context<'_>, violations: &mut Vec<Violation>) {
    for (name, config) in plugins.iter() {
        plugin::check(name, config, context, violations);
    }
}
