//! Addresses of clients.

use super::{AUTHORIZATION, AllowedMethods, Concern, IngressAnnotations, Support, Values, list, protects};
use crate::crd::Authorization;
use crate::model::Network;

/// ingress-nginx: `whitelist-source-range` has the newer name `allowlist-source-range`.
pub(super) const NGINX: Concern = Concern {
    annotations: &[
        list(protects("allowlist-source-range", Support::Exact)),
        list(protects("denylist-source-range", Support::Exact)),
        list(protects("whitelist-source-range", Support::Exact)),
        // ingress-nginx demands all for any other value.
        protects("satisfy", Support::Limited(ANY)),
    ],
    read,
};

/// The difference of `satisfy`.
const ANY: &str = "PingSIX demands addresses and credentials together, so `any` closes an Ingress with both.";

/// The APISIX Ingress controller.
pub(super) const APISIX: Concern = Concern {
    annotations: &[
        list(protects("allowlist-source-range", Support::Exact)),
        list(protects("blocklist-source-range", Support::Exact)),
        list(protects("http-allow-methods", Support::Exact)),
        list(protects("http-block-methods", Support::Exact)),
    ],
    read: read_apisix,
};

/// The methods that Routes of PingSIX may have.
const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

fn read_apisix(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let allow = networks(values, "allowlist-source-range");
    let deny = networks(values, "blocklist-source-range");
    let source = if allow.is_some() { "allowlist-source-range" } else { "blocklist-source-range" };
    add_authorization(allow, deny, source, values, read);
    // APISIX looks at the blocked methods only if none are allowed.
    let allowed = methods(values, "http-allow-methods");
    read.methods = match allowed {
        Some(allowed) => Some(AllowedMethods::Only(allowed)),
        None => methods(values, "http-block-methods").map(AllowedMethods::AllBut),
    };
}

/// The methods of a list.
fn methods(values: &mut Values<'_>, name: &str) -> Option<Vec<&'static str>> {
    let mut methods = Vec::new();
    for entry in values.list(name)? {
        let Some(method) = METHODS.into_iter().find(|method| *method == entry) else {
            values.refuse(name, format!("\"{entry}\" is no method that PingSIX can tell apart."));
            continue;
        };
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    (!methods.is_empty()).then_some(methods)
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let mut names = ["whitelist-source-range", "allowlist-source-range"].map(Some);
    // ingress-nginx ignores a blank one beside the other.
    if names.iter().flatten().any(|name| values.text(name).is_some()) {
        names = names.map(|name| name.filter(|name| values.text(name).is_some()));
    }
    let [old, new] = names.map(|name| networks(values, name?));
    let (allow, source) = match (old, new) {
        (Some(old), Some(new)) if old != new => {
            values.refuse("whitelist-source-range", "allowlist-source-range has another value.");
            return;
        }
        (_, Some(new)) => (Some(new), "allowlist-source-range"),
        (Some(old), None) => (Some(old), "whitelist-source-range"),
        (None, None) => (None, "denylist-source-range"),
    };
    let deny = networks(values, "denylist-source-range");
    let has_both = (allow.is_some() || deny.is_some()) && values.text("auth-type").is_some();
    if has_both && values.text("satisfy") == Some("any") {
        values.refuse("satisfy", "PingSIX demands all of the addresses and credentials that are set.");
    }
    add_authorization(allow, deny, source, values, read);
}

/// Adds the clients by address. `source` is the annotation that sets them.
fn add_authorization(
    allow: Option<Vec<String>>,
    deny: Option<Vec<String>>,
    source: &str,
    values: &mut Values<'_>,
    read: &mut IngressAnnotations,
) {
    if allow.is_none() && deny.is_none() {
        return;
    }
    if read.security.authorization.is_some() {
        values.refuse(source, "An annotation of another controller lists addresses, too.");
        return;
    }
    let [allow, deny] = [allow, deny].map(Option::unwrap_or_default);
    read.sources.insert(AUTHORIZATION, values.whole_name(source));
    read.security.authorization = Some(Authorization { allow, deny });
}

/// The readable networks of a list. Both controllers drop the bits behind the length of a prefix.
fn networks(values: &mut Values<'_>, name: &str) -> Option<Vec<String>> {
    let mut networks = Vec::new();
    for entry in values.list(name)? {
        match Network::parse_masked(entry) {
            Ok(network) => networks.push(network.to_string()),
            Err(why) => values.refuse(name, format!("\"{entry}\" {why}.")),
        }
    }
    (!networks.is_empty()).then_some(networks)
}
