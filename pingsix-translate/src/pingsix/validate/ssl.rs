//! The rules of certificates and of their server names.

use std::collections::BTreeMap;

use super::context::Context;
use super::pem::{self, Envelope};
use super::{Rule, Severity, Violation};
use crate::pingsix::router::{inspect_pattern, reverse_host};
use crate::pingsix::{Config, DocumentKey, Ssl};

pub(super) fn check(ssl: &Ssl, context: &Context<'_>, out: &mut Vec<Violation>) {
    context.check_fields(ssl, "", Rule::Empty, Severity::Rejected, out);
    match pem::check_envelope(&ssl.key, "key", context, out) {
        Envelope::Sealed => {}
        Envelope::Plain => {
            if let Err(error) = pem::check_leaf_and_key(&ssl.cert, &ssl.key) {
                let field = if error.is_of_key() { "key" } else { "cert" };
                let message = format!("The certificate cannot be used: {error}.");
                out.push(context.violation(Rule::Certificate, Severity::RejectedLate, field, message));
            }
        }
    }
    for (index, name) in ssl.snis.iter().enumerate() {
        if inspect_pattern(&reverse_host(name)).is_err() {
            let message = format!("Server name \"{name}\" has braces that PingSIX cannot take.");
            out.push(context.violation(
                Rule::ServerName,
                Severity::RejectedLate,
                format!("snis[{index}]"),
                message,
            ));
        }
    }
}

/// The server names in the form of PingSIX's tree of names.
pub(super) fn server_names(ssl: &Ssl) -> impl Iterator<Item = String> {
    ssl.snis.iter().map(|name| reverse_host(name))
}

/// Reports repeated server names, in one document or in several, without regard to case.
pub(super) fn check_server_names(config: &Config, out: &mut Vec<Violation>) {
    let mut owners: BTreeMap<String, &DocumentKey> = BTreeMap::new();
    let mut tree = matchit::Router::new();
    for (key, ssl) in config.ssls() {
        for (index, name) in ssl.snis.iter().enumerate() {
            let pattern = reverse_host(name);
            let owner = owners.get(&pattern).copied();
            let inserted = inspect_pattern(&pattern).is_err() || tree.insert(pattern.as_str(), ()).is_ok();
            if inserted {
                owners.entry(pattern).or_insert(key);
                continue;
            }
            let message = match owner {
                Some(owner) => format!("Server name \"{name}\" stands in {owner} already."),
                None => format!("Server name \"{name}\" conflicts with another one."),
            };
            let field = format!("snis[{index}]");
            out.push(Violation::of(key, Rule::ServerName, Severity::RejectedLate, field, message));
        }
    }
}
