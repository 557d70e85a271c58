//! The rules of plugins.

mod answer;
mod auth;
mod observe;
mod rewrite;
mod traffic;

use std::net::{Ipv4Addr, Ipv6Addr};

use regex::Regex;
use serde_json::Value;

use super::context::Context;
use super::{Rule, Severity, Violation};
use crate::pingsix::known_fields::known_fields;
use crate::pingsix::plugin::{
    BasicAuth, Brotli, Cache, Cors, Csrf, Echo, FaultInjection, FileLogger, GrpcWeb, Gzip, IpRestriction,
    JwtAuth, KeyAuth, LimitCount, PluginConfig, Prometheus, ProxyRewrite, Redirect, RequestId,
    ResponseRewrite, TrafficSplit,
};

/// A plugin of the checked document.
pub(super) struct Plugin<'a> {
    context: &'a Context<'a>,
    name: &'a str,
    config: &'a Value,
    /// The plugin's own rule.
    rule: Rule,
    out: &'a mut Vec<Violation>,
}

/// Checks a plugin of a route, a service or a global rule.
pub(super) fn check(name: &str, config: &Value, context: &Context<'_>, out: &mut Vec<Violation>) {
    let mut plugin = Plugin { context, name, config, rule: Rule::PluginDecode, out };
    if let Some((rule, check)) = registered(name) {
        plugin.rule = rule;
        check(&mut plugin);
    } else {
        let message = format!("PingSIX has no plugin \"{name}\".");
        plugin.report(Rule::PluginName, Severity::RejectedLate, "", message);
    }
}

/// Headers that frame a message or belong to one connection.
const FRAMING: [&str; 6] =
    ["connection", "content-length", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

type Check = fn(&mut Plugin<'_>);

/// The rule and the check of a plugin.
fn registered(name: &str) -> Option<(Rule, Check)> {
    Some(match name {
        TrafficSplit::NAME => (Rule::TrafficSplit, traffic::check_split),
        ProxyRewrite::NAME => (Rule::ProxyRewrite, rewrite::check_request),
        Redirect::NAME => (Rule::Redirect, rewrite::check_redirect),
        ResponseRewrite::NAME => (Rule::ResponseRewrite, rewrite::check_response),
        FaultInjection::NAME => (Rule::FaultInjection, answer::check_fault_injection),
        Echo::NAME => (Rule::Echo, answer::check_echo),
        Cors::NAME => (Rule::Cors, answer::check_cors),
        LimitCount::NAME => (Rule::LimitCount, traffic::check_limit),
        IpRestriction::NAME => (Rule::IpRestriction, auth::check_addresses),
        KeyAuth::NAME => (Rule::KeyAuth, auth::check_key),
        BasicAuth::NAME => (Rule::BasicAuth, auth::check_basic),
        JwtAuth::NAME => (Rule::JwtAuth, auth::check_jwt),
        Csrf::NAME => (Rule::Csrf, auth::check_csrf),
        Cache::NAME => (Rule::Cache, traffic::check_cache),
        Gzip::NAME => (Rule::Compression, answer::check_gzip),
        Brotli::NAME => (Rule::Compression, answer::check_brotli),
        RequestId::NAME => (Rule::RequestId, observe::check_request_id),
        Prometheus::NAME => (Rule::Prometheus, observe::check_prometheus),
        FileLogger::NAME => (Rule::FileLogger, observe::check_file_logger),
        // PingSIX accepts and ignores any configuration.
        GrpcWeb::NAME => {
            (Rule::PluginDecode, |plugin| plugin.check_ignored_fields(known_fields::<GrpcWeb>()))
        }
        _ => return None,
    })
}

impl Plugin<'_> {
    /// Decodes the configuration, or reports why it cannot be decoded. Reports ignored fields, too.
    fn decode<C: PluginConfig>(&mut self) -> Option<C> {
        self.check_ignored_fields(known_fields::<C>());
        if let Ok(config) = C::deserialize(self.config) {
            return Some(config);
        }
        let (field, reason) = super::raw::explain::<C>(self.config);
        // References of a traffic split are checked before anything is compiled.
        let split = self.name == TrafficSplit::NAME;
        let severity = if split { Severity::Rejected } else { Severity::RejectedLate };
        let message = format!("The configuration does not decode: {reason}.");
        self.report(Rule::PluginDecode, severity, &field, message);
        None
    }

    /// The path of a field of this plugin in its document.
    fn at(&self, field: &str) -> String {
        let dot = if field.is_empty() { "" } else { "." };
        format!("plugins.{}{dot}{field}", self.name)
    }

    fn report(&mut self, rule: Rule, severity: Severity, field: &str, message: impl Into<String>) {
        let violation = self.context.violation(rule, severity, self.at(field), message);
        self.out.push(violation);
    }

    /// Reports a violation for which PingSIX refuses the configuration at its compilation.
    fn refuse(&mut self, field: &str, message: impl Into<String>) {
        self.report(self.rule, Severity::RejectedLate, field, message);
    }

    /// Reports a violation with which PingSIX accepts and misinterprets the configuration.
    fn warn(&mut self, field: &str, message: impl Into<String>) {
        self.report(self.rule, Severity::Misbehaves, field, message);
    }

    /// Reports a violation with which PingSIX accepts the configuration, and then fails requests or omits a protection.
    fn harm(&mut self, field: &str, message: impl Into<String>) {
        self.report(self.rule, Severity::Harmful, field, message);
    }

    /// Reports the violations of a configuration by its `garde` attributes.
    fn check_fields<C: garde::Validate<Context = ()>>(&mut self, config: &C) {
        let at = self.at("");
        self.context.check_fields(config, &at, self.rule, Severity::RejectedLate, self.out);
    }

    fn check_ignored_fields(&mut self, known: &[&str]) {
        let Value::Object(fields) = self.config else { return };
        if fields.contains_key("_meta") {
            let message = "PingSIX ignores `_meta`, so the plugin is active whatever it says.";
            self.report(Rule::PluginMeta, Severity::Misbehaves, "_meta", message);
        }
        for name in fields.keys().filter(|name| !known.is_empty() && !known.contains(&name.as_str())) {
            if name != "_meta" {
                let message = format!("PingSIX ignores the field \"{name}\".");
                self.report(Rule::IgnoredField, Severity::Misbehaves, name, message);
            }
        }
    }

    fn check_regex(&mut self, pattern: &str, field: &str) {
        if Regex::new(pattern).is_err() {
            self.refuse(field, format!("\"{pattern}\" is no regular expression."));
        }
    }

    /// Checks pairs of pattern and template.
    fn check_regex_pairs(&mut self, regex_uri: &[String]) {
        if !regex_uri.len().is_multiple_of(2) {
            self.refuse("regex_uri", "The list must hold pairs of a pattern and a template.");
        }
        for (index, pattern) in regex_uri.iter().enumerate().step_by(2) {
            self.check_regex(pattern, &format!("regex_uri[{index}]"));
        }
    }

    /// Checks a header. With an invalid one, PingSIX answers 500 to every request.
    fn check_header(&mut self, name: &str, value: &str, field: &str) {
        self.check_header_name(name, field);
        self.check_header_value(value, field, || format!("The value of \"{name}\""));
    }

    /// Checks the name of a header that PingSIX sets.
    fn check_header_name(&mut self, name: &str, field: &str) {
        match name.parse::<http::HeaderName>() {
            Err(_) => {
                self.harm(field, format!("\"{name}\" is no header name, so every request answers 500."));
            }
            Ok(header) if FRAMING.contains(&header.as_str()) => {
                self.harm(field, format!("\"{name}\" belongs to the connection, so messages break."));
            }
            Ok(_) => {}
        }
    }

    /// Checks the value of a header that PingSIX sets.
    fn check_header_value(&mut self, value: &str, field: &str, subject: impl FnOnce() -> String) {
        if value.parse::<http::HeaderValue>().is_err() {
            self.harm(field, format!("{} is no header value, so requests answer 500.", subject()));
        }
    }

    /// Checks conditions on requests.
    fn check_conditions(&mut self, conditions: &[Vec<String>], field: &str) {
        for (index, condition) in conditions.iter().enumerate() {
            let at = format!("{field}[{index}]");
            match condition.as_slice() {
                [_, operator, _, ..] if !matches!(operator.as_str(), "==" | "!=") => {
                    self.warn(
                        &at,
                        format!("The operator \"{operator}\" never holds; PingSIX has `==` and `!=`."),
                    );
                }
                [_, _, _, ..] => {}
                _ => self.warn(&at, "A condition of fewer than three parts always holds."),
            }
        }
    }

    fn check_networks(&mut self, networks: &[String], field: &str) {
        for (index, network) in networks.iter().enumerate() {
            if !is_network(network) {
                self.refuse(&format!("{field}[{index}]"), format!("\"{network}\" is no address or network."));
            }
        }
    }
}

/// Whether a text is an address, or a network with a prefix length or, for IPv4, with a contiguous mask. PingSIX
/// parses the length with Rust, so `+8` and `08` are lengths, too.
fn is_network(text: &str) -> bool {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let at_most = |most: u8| move |length: &str| length.parse::<u8>().is_ok_and(|length| length <= most);
    let contiguous = |mask: Ipv4Addr| {
        let bits = u32::from(mask);
        bits.leading_ones() + bits.trailing_zeros() >= 32
    };
    if address.parse::<Ipv4Addr>().is_ok() {
        return length.is_none_or(|length| length.parse().map_or_else(|_| at_most(32)(length), contiguous));
    }
    address.parse::<Ipv6Addr>().is_ok() && length.is_none_or(at_most(128))
}
