//! The rules of upstreams beyond their fields, which PingSIX applies at their compilation.

use std::net::IpAddr;

use super::context::Context;
use super::pem::{self, Envelope};
use super::{DnsNames, Rule, Severity, Violation};
use crate::pingsix::uri::path_and_query;
use crate::pingsix::{ActiveCheck, CheckType, PassHost, Scheme, SelectionType, Upstream, UpstreamTls};

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
    let mut checked = Checked { upstream, at, context, out };
    checked.check_unvalidated();
    checked.check_late();
}

/// Checks an inline upstream of a traffic split, whose key PingSIX never decrypts.
pub(super) fn check_split_target(
    upstream: &Upstream,
    at: &str,
    context: &Context<'_>,
    out: &mut Vec<Violation>,
) {
    let mut checked = Checked { upstream, at, context, out };
    checked.check_unvalidated();
    checked.check_compiled();
    if let Some(tls) = &upstream.tls {
        checked.check_client_certificate(tls);
    }
}

/// Checks the compilation of an upstream with decrypted secrets.
pub(super) fn check_late(upstream: &Upstream, at: &str, context: &Context<'_>, out: &mut Vec<Violation>) {
    Checked { upstream, at, context, out }.check_late();
}

/// An upstream at its place in a document.
struct Checked<'a> {
    upstream: &'a Upstream,
    at: &'a str,
    context: &'a Context<'a>,
    out: &'a mut Vec<Violation>,
}

impl Checked<'_> {
    /// The path of a field of the upstream.
    fn field(&self, name: &str) -> String {
        let dot = if self.at.is_empty() { "" } else { "." };
        format!("{}{dot}{name}", self.at)
    }

    fn report(&mut self, rule: Rule, severity: Severity, field: &str, message: impl Into<String>) {
        self.out.push(self.context.violation(rule, severity, self.field(field), message));
    }

    fn check_unvalidated(&mut self) {
        let nodes = &self.upstream.nodes;
        if nodes.is_empty() {
            let message = "An upstream without nodes cannot be compiled.";
            self.report(Rule::NodeUsable, Severity::RejectedLate, "nodes", message);
        } else if nodes.values().all(|weight| *weight == 0) {
            let message = "All weights are 0, so every request fails without an answer.";
            self.report(Rule::InlineWeight, Severity::Misbehaves, "nodes", message);
        }
        for node in nodes.keys().filter(|node| host_of(node).is_none()) {
            let message = format!("Node \"{node}\" is no host with an optional port.");
            self.report(Rule::NodeUsable, Severity::RejectedLate, "nodes", message);
        }
    }

    fn check_late(&mut self) {
        self.check_compiled();
        let Some(tls) = &self.upstream.tls else { return };
        let field = self.field("tls.client_key");
        match pem::check_envelope(&tls.client_key, &field, self.context, self.out) {
            // PingSIX refuses an empty part earlier.
            Envelope::Plain if !tls.client_cert.is_empty() && !tls.client_key.is_empty() => {
                self.check_client_certificate(tls);
            }
            Envelope::Plain | Envelope::Sealed => {}
        }
    }

    fn check_client_certificate(&mut self, tls: &UpstreamTls) {
        if let Err(error) = pem::check_chain_and_key(&tls.client_cert, &tls.client_key) {
            let field = if error.is_of_key() { "tls.client_key" } else { "tls.client_cert" };
            let message = format!("The client certificate cannot be used: {error}.");
            self.report(Rule::ClientCertificate, Severity::RejectedLate, field, message);
        }
    }

    fn check_compiled(&mut self) {
        self.check_nodes();
        if let Some(checks) = &self.upstream.checks {
            self.check_probe(&checks.active);
        }
        let total: u64 = self.upstream.nodes.values().map(|weight| u64::from(*weight)).sum();
        if total > HEAVY_WEIGHT && self.upstream.r#type != SelectionType::Ketama {
            let message =
                format!("PingSIX keeps a table of {total} entries for this upstream; smaller weights do.");
            self.report(Rule::WeightTotal, Severity::Misbehaves, "nodes", message);
        }
        self.check_server_name();
    }

    fn is_encrypted(&self) -> bool {
        matches!(self.upstream.scheme, Scheme::Https | Scheme::Grpcs)
    }

    fn check_nodes(&mut self) {
        let mut names = Vec::new();
        let mut addresses = 0_usize;
        for node in self.upstream.nodes.keys() {
            match host_of(node) {
                Some(host) if host.parse::<IpAddr>().is_ok() => addresses += 1,
                Some(host) => names.push((node, host)),
                None => {}
            }
        }
        if self.is_encrypted() && addresses > 0 && self.upstream.pass_host != PassHost::Rewrite {
            let message = "TLS verifies a name and an address has none, so every request to it answers 502; \
                           `pass_host: rewrite` gives it one.";
            self.report(Rule::TlsName, Severity::Misbehaves, "nodes", message);
        }
        for (node, host) in names {
            let hopeless = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b':')
                || node.starts_with('[');
            let refused = self.context.options.dns_names == DnsNames::Refuse && host != "localhost";
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
            self.report(Rule::DnsName, severity, "nodes", message);
        }
    }

    fn check_server_name(&mut self) {
        let (PassHost::Rewrite, Some(host)) = (self.upstream.pass_host, &self.upstream.upstream_host) else {
            return;
        };
        let message = if host.is_empty() {
            "An empty `upstream_host` sends an empty Host header, and TLS verifies nothing."
        } else if self.is_encrypted() && host.contains(':') {
            "TLS verifies `upstream_host` with its port, which no certificate has, so every request answers 502."
        } else {
            return;
        };
        self.report(Rule::TlsName, Severity::Misbehaves, "upstream_host", message);
    }

    fn check_probe(&mut self, check: &ActiveCheck) {
        if check.r#type == CheckType::Tcp {
            return;
        }
        let mut refuse = |field: &str, message: String| {
            let field = format!("checks.active.{field}");
            self.report(Rule::HealthCheck, Severity::RejectedLate, &field, message);
        };
        if path_and_query(&check.http_path).is_none() {
            refuse("http_path", format!("\"{}\" is no path.", check.http_path));
        }
        for (index, header) in check.req_headers.iter().enumerate() {
            let valid = header.split_once(':').is_some_and(|(name, value)| {
                name.trim().parse::<http::HeaderName>().is_ok()
                    && value.trim().parse::<http::HeaderValue>().is_ok()
            });
            if !valid {
                refuse(&format!("req_headers[{index}]"), format!("\"{header}\" is no `Name: value`."));
            }
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
