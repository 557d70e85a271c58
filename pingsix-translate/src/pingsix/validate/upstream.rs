//! The rules of upstreams beyond their fields, which PingSIX applies at their compilation.

use std::net::IpAddr;

use super::context::Context;
use super::pem::{self, Envelope};
use super::{DnsNames, Rule, Severity, Violation};
use crate::pingsix::uri::path_and_query;
use crate::pingsix::{ActiveCheck, CheckType, PassHost, Scheme, SelectionType, Upstream};

/// The total weight that causes a warning. The table has two bytes per unit of weight, so the limit is 20 MB per
/// upstream.
const HEAVY_WEIGHT: u64 = 10_000_000;

/// Checks a named upstream: its fields, then its compilation.
pub(super) fn check_named(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    context.check_fields(upstream, at, Rule::Range, Severity::Rejected, out);
    check_late(upstream, at, context, out);
}

/// Checks an inline upstream of a service. PingSIX compiles it without a check of its fields.
pub(super) fn check_inline(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    check_unvalidated(upstream, at, context, out);
    check_late(upstream, at, context, out);
}

/// Checks an inline upstream of a traffic split, whose key PingSIX never decrypts.
pub(super) fn check_split_target(
    upstream: &Upstream,
    at: &str,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) {
    check_unvalidated(upstream, at, context, out);
    check_compiled(upstream, at, context, out);
    if let Some(tls) = &upstream.tls {
        check_client_certificate(&tls.client_cert, &tls.client_key, at, context, out);
    }
}

fn check_unvalidated(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    let field = || format!("{at}.nodes");
    if upstream.nodes.is_empty() {
        let message = "An upstream without nodes cannot be compiled.";
        out.push(context.violation(Rule::NodeUsable, Severity::RejectedLate, field(), message));
    } else if upstream.nodes.values().all(|weight| *weight == 0) {
        let message = "All weights are 0, so every request fails without an answer.";
        out.push(context.violation(Rule::InlineWeight, Severity::Misbehaves, field(), message));
    }
    for node in upstream.nodes.keys().filter(|node| host_of(node).is_none()) {
        let message = format!("Node \"{node}\" is no host with an optional port.");
        out.push(context.violation(Rule::NodeUsable, Severity::RejectedLate, field(), message));
    }
}

/// Checks the compilation of an upstream with decrypted secrets.
pub(super) fn check_late(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    check_compiled(upstream, at, context, out);
    let Some(tls) = &upstream.tls else { return };
    let field = format!("{at}{}tls.client_key", dot(at));
    match pem::check_envelope(&tls.client_key, &field, context, out) {
        // PingSIX refuses an empty part earlier.
        Envelope::Plain if !tls.client_cert.is_empty() && !tls.client_key.is_empty() => {
            check_client_certificate(&tls.client_cert, &tls.client_key, at, context, out);
        }
        Envelope::Plain | Envelope::Sealed => {}
    }
}

fn check_client_certificate(
    cert: &str,
    key: &str,
    at: &str,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) {
    if let Err(error) = pem::check_chain_and_key(cert, key) {
        let part = if error.is_of_key() { "client_key" } else { "client_cert" };
        let message = format!("The client certificate cannot be used: {error}.");
        let field = format!("{at}{}tls.{part}", dot(at));
        out.push(context.violation(Rule::ClientCertificate, Severity::RejectedLate, field, message));
    }
}

fn check_compiled(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    check_nodes(upstream, at, context, out);
    if let Some(checks) = &upstream.checks {
        check_probe(&checks.active, at, context, out);
    }
    let total: u64 = upstream.nodes.values().map(|weight| u64::from(*weight)).sum();
    if total > HEAVY_WEIGHT && upstream.r#type != SelectionType::Ketama {
        let message =
            format!("PingSIX keeps a table of {total} entries for this upstream; smaller weights do.");
        let field = format!("{at}{}nodes", dot(at));
        out.push(context.violation(Rule::WeightTotal, Severity::Misbehaves, field, message));
    }
    check_server_name(upstream, at, context, out);
}

fn check_nodes(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    let encrypted = matches!(upstream.scheme, Scheme::Https | Scheme::Grpcs);
    let mut names = Vec::new();
    let mut addresses = 0_usize;
    for node in upstream.nodes.keys() {
        match host_of(node) {
            Some(host) if host.parse::<IpAddr>().is_ok() => addresses += 1,
            Some(host) => names.push((node, host)),
            None => {}
        }
    }
    if encrypted && addresses > 0 && upstream.pass_host != PassHost::Rewrite {
        let message = "TLS verifies a name and an address has none, so every request to it answers 502; \
                       `pass_host: rewrite` gives it one.";
        let field = format!("{at}{}nodes", dot(at));
        out.push(context.violation(Rule::TlsName, Severity::Misbehaves, field, message));
    }
    for (node, host) in names {
        let hopeless = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b':')
            || node.starts_with('[');
        let refused = context.options.dns_names == DnsNames::Refuse && host != "localhost";
        let severity = if addresses == 0 && (hopeless || refused) {
            Severity::RejectedLate
        } else {
            Severity::Misbehaves
        };
        let message = if hopeless {
            format!("Node \"{node}\" is no address, so PingSIX looks it up as a name, in vain.")
        } else {
            format!("Node \"{node}\" is a name; if it does not resolve, PingSIX refuses everything.")
        };
        out.push(context.violation(Rule::DnsName, severity, format!("{at}{}nodes", dot(at)), message));
    }
}

fn check_server_name(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    let (PassHost::Rewrite, Some(host)) = (upstream.pass_host, &upstream.upstream_host) else { return };
    let encrypted = matches!(upstream.scheme, Scheme::Https | Scheme::Grpcs);
    let message = if host.is_empty() {
        "An empty `upstream_host` sends an empty Host header, and TLS verifies nothing."
    } else if encrypted && host.contains(':') {
        "TLS verifies `upstream_host` with its port, which no certificate has, so every request answers 502."
    } else {
        return;
    };
    let field = format!("{at}{}upstream_host", dot(at));
    out.push(context.violation(Rule::TlsName, Severity::Misbehaves, field, message));
}

fn check_probe(check: &ActiveCheck, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    if check.r#type == CheckType::Tcp {
        return;
    }
    let mut refuse = |field: String, message: String| {
        let field = format!("{at}{}checks.active.{field}", dot(at));
        out.push(context.violation(Rule::HealthCheck, Severity::RejectedLate, field, message));
    };
    if path_and_query(&check.http_path).is_none() {
        refuse("http_path".to_owned(), format!("\"{}\" is no path.", check.http_path));
    }
    for (index, header) in check.req_headers.iter().enumerate() {
        let valid = header.split_once(':').is_some_and(|(name, value)| {
            name.trim().parse::<http::HeaderName>().is_ok()
                && value.trim().parse::<http::HeaderValue>().is_ok()
        });
        if !valid {
            refuse(format!("req_headers[{index}]"), format!("\"{header}\" is no `Name: value`."));
        }
    }
}

/// The host of a node at the compilation of an upstream: the part within brackets, or the part before the only colon.
/// `None` for an invalid node or a port out of range.
fn host_of(node: &str) -> Option<&str> {
    let (host, port) = match node.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, rest)) if !inner.is_empty() => {
            (inner, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        _ => match node.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (node, None),
        },
    };
    let valid = port.is_none_or(|port| !port.starts_with('+') && port.parse::<u16>().is_ok());
    (!host.is_empty() && valid).then_some(host)
}

fn dot(at: &str) -> &'static str {
    if at.is_empty() { "" } else { "." }
}
