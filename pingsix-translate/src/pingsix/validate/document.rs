//! The rules of one document: its fields, its references, its patterns.

use std::collections::BTreeSet;

use garde::Validate;

use super::rules::SEPARATOR;
use super::{Rule, Severity, Subject, ValidateOptions, Violation, pattern, plugin, ssl, upstream};
use crate::pingsix::{Config, Document, DocumentKey, Plugins, ResourceKind, Route, Service};

/// The checked document and its configuration.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) config: &'a Config,
    pub(super) undecodable: &'a BTreeSet<DocumentKey>,
    pub(super) options: &'a ValidateOptions,
    pub(super) key: &'a DocumentKey,
}

impl Context<'_> {
    /// A fault of this document.
    pub(super) fn fault(
        &self,
        rule: Rule,
        severity: Severity,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Violation {
        Violation {
            subject: Subject::Document(self.key.clone()),
            field: field.into(),
            severity,
            rule,
            message: message.into(),
        }
    }

    /// Reports a reference to a document that does not exist.
    pub(super) fn check_reference(
        &self,
        kind: ResourceKind,
        id: &str,
        field: impl FnOnce() -> String,
        violations: &mut Vec<Violation>,
    ) {
        let target = DocumentKey::new(kind, id);
        if !self.config.contains(&target) && !self.undecodable.contains(&target) {
            let message = format!("There is no document {target}.");
            violations.push(self.fault(Rule::Reference, Severity::Rejected, field(), message));
        }
    }

    /// Reports the faults of a value by its `garde` attributes, below a field of this document.
    pub(super) fn check_fields<T: Validate<Context = ()>>(
        &self,
        value: &T,
        at: &str,
        built_in: Rule,
        severity: Severity,
        violations: &mut Vec<Violation>,
    ) {
        let Err(report) = value.validate() else { return };
        for (path, error) in report.iter() {
            let path = path.to_string();
            let dot = if at.is_empty() || path.is_empty() { "" } else { "." };
            let (rule, message) = match error.message().split_once(SEPARATOR) {
                Some((ident, sentence)) => (Rule::from_ident(ident).unwrap_or(built_in), sentence.to_owned()),
                None => (built_in, format!("The value is refused: {}.", error.message())),
            };
            violations.push(self.fault(rule, severity, format!("{at}{dot}{path}"), message));
        }
    }
}

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
        violations.push(context.fault(Rule::Key, Severity::Misbehaves, "id", message));
    } else if id.is_empty() || id.contains('/') {
        let message = "An id cannot be empty and cannot contain a slash.";
        violations.push(context.fault(Rule::Key, Severity::Fatal, "id", message));
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
            violations.push(context.fault(Rule::MethodCase, Severity::Misbehaves, "methods", message));
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
