//! Rules of single fields, for the `garde` attributes on the types.
//!
//! A `garde` error is a text, so each text starts with the ident of its [`Rule`] and [`SEPARATOR`]. Texts without them
//! come from `garde`'s own rules. `garde` determines the signatures of these functions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::rule::Rule;

/// The separator between the ident of a rule and its sentence.
pub(super) const SEPARATOR: char = '\u{1f}';

fn refuse(rule: Rule, sentence: impl std::fmt::Display) -> garde::Result {
    Err(garde::Error::new(format!("{}{SEPARATOR}{sentence}", rule.ident())))
}

/// PingSIX's pattern of node keys: the form of an IPv4 address, brackets around hexadecimal digits and colons, or
/// labels of letters, digits and inner dashes; then an optional port. PingSIX uses `regex`, whose digits and letters
/// go beyond ASCII, so the check uses `regex`, too.
static NODE_KEY: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?";
    let host = format!(r"(?:\d{{1,3}}\.){{3}}\d{{1,3}}|\[[0-9a-f:]+\]|{label}(?:\.{label})*");
    Regex::new(&format!(r"(?i)^(?:{host})(?::\d+)?$"))
        .expect("the pattern is constant and a test compiles it")
});

/// The nodes of a validated upstream: at least one, each with a valid key, a port of 1 to 65535 and a weight.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde fixes the shape")]
pub(super) fn nodes(nodes: &BTreeMap<String, u32>, (): &()) -> garde::Result {
    if nodes.is_empty() {
        return refuse(Rule::Empty, "There must be at least one node.");
    }
    for (node, weight) in nodes {
        if !is_address_with_port(node) && !NODE_KEY.is_match(node) {
            return refuse(Rule::NodeKey, format_args!("Node \"{node}\" is no host with an optional port."));
        }
        if *weight == 0 {
            return refuse(
                Rule::NodeWeight,
                format_args!("Node \"{node}\" has weight 0; weights start at 1."),
            );
        }
        let port = port_of(node);
        if port.is_some_and(|port| !matches!(port.parse::<u32>(), Ok(1..=65535))) {
            return refuse(Rule::NodeKey, format_args!("Node \"{node}\" has no port between 1 and 65535."));
        }
    }
    Ok(())
}

/// The common case without the regular expression: an IPv4 address with a port.
fn is_address_with_port(node: &str) -> bool {
    node.parse::<std::net::SocketAddrV4>().is_ok()
}

/// The port behind the colon of a valid node key.
fn port_of(node: &str) -> Option<&str> {
    match node.split_once(']') {
        Some((_, rest)) => rest.strip_prefix(':'),
        None => node.rsplit_once(':').map(|(_, port)| port),
    }
}

/// Checks that a rewritten host has a host, which may be empty.
pub(super) fn rewrite_host(is_rewritten: bool) -> impl FnOnce(&Option<String>, &()) -> garde::Result {
    move |host, ()| match (is_rewritten, host) {
        (true, None) => refuse(Rule::RewriteHost, "`pass_host: rewrite` requires `upstream_host`."),
        (false, _) | (true, Some(_)) => Ok(()),
    }
}

/// Checks that a route has exactly one form of paths.
pub(super) fn route_uri(uris: &[String]) -> impl FnOnce(&Option<String>, &()) -> garde::Result {
    move |uri, ()| match (uri, uris.is_empty()) {
        (None, true) => refuse(Rule::RouteUri, "A route must have `uri` or `uris`."),
        (Some(_), false) => refuse(Rule::RouteUri, "A route cannot have both `uri` and `uris`."),
        (None, false) | (Some(_), true) => Ok(()),
    }
}

/// Checks that a route has at most one form of hosts.
pub(super) fn route_host(hosts: &[String]) -> impl FnOnce(&Option<String>, &()) -> garde::Result {
    move |host, ()| match (host, hosts.is_empty()) {
        (Some(_), false) => refuse(Rule::RouteHost, "A route cannot have both `host` and `hosts`."),
        (None, _) | (Some(_), true) => Ok(()),
    }
}

/// Checks the upstream of a route or service: one form at least, and not both an inline upstream and an id. The
/// service of a route suffices.
pub(super) fn upstream_choice(
    inline: bool,
    service: Option<bool>,
) -> impl FnOnce(&Option<String>, &()) -> garde::Result {
    move |id, ()| match (inline, id.is_some(), service) {
        (true, true, _) => refuse(Rule::UpstreamChoice, "There cannot be both `upstream` and `upstream_id`."),
        (false, false, Some(false)) => {
            refuse(Rule::UpstreamChoice, "There must be one of `upstream`, `upstream_id` and `service_id`.")
        }
        (false, false, None) => {
            refuse(Rule::UpstreamChoice, "There must be one of `upstream` and `upstream_id`.")
        }
        _ => Ok(()),
    }
}

/// Checks that a method is an HTTP token.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde fixes the shape")]
pub(super) fn method(method: &str, (): &()) -> garde::Result {
    match http::Method::from_bytes(method.as_bytes()) {
        Ok(_) => Ok(()),
        Err(_) => refuse(Rule::Method, format_args!("\"{method}\" is no HTTP method.")),
    }
}
