//! `proxy-rewrite`, `redirect` and `response-rewrite`.

use serde_json::Value;

use super::Plugin;
use crate::pingsix::plugin::{ProxyRewrite, Redirect, ResponseHeaders, ResponseRewrite};
use crate::pingsix::uri::path_and_query;
use crate::pingsix::validate::{Rule, Severity};

/// The message for a target without a slash, which PingSIX takes for an authority.
const NO_PATH: &str =
    "The value does not begin with a slash, and PingSIX closes the connection of every request.";

pub(super) fn check_request(plugin: &mut Plugin<'_>) {
    let Some(rewrite) = plugin.decode::<ProxyRewrite>() else { return };
    plugin.check_regex_pairs(&rewrite.regex_uri);
    if let Some(uri) = &rewrite.uri {
        if !uri.starts_with('/') && uri.parse::<http::Uri>().is_ok() {
            plugin.harm("uri", NO_PATH);
        } else if !uri.starts_with('/') || path_and_query(uri).is_none() {
            plugin.warn("uri", "The value is no path, so PingSIX leaves the path alone.");
        }
    }
    for (index, template) in rewrite.regex_uri.iter().enumerate().skip(1).step_by(2) {
        if template.is_empty() {
            let message = "An empty path is none, so PingSIX leaves the path alone.";
            plugin.warn(&format!("regex_uri[{index}]"), message);
        } else if !template.starts_with(['/', '$']) {
            plugin.harm(&format!("regex_uri[{index}]"), NO_PATH);
        }
    }
    if rewrite.method.as_ref().is_some_and(|method| method.parse::<http::Method>().is_err()) {
        plugin.harm("method", "The value is no HTTP method, so every request answers 500.");
    }
    let is_host = |host: &str| !host.contains(' ') && host.parse::<http::HeaderValue>().is_ok();
    if rewrite.host.as_ref().is_some_and(|host| !is_host(host)) {
        plugin.harm("host", "The value is no host, so every request answers 500.");
    }
    let Some(headers) = &rewrite.headers else { return };
    for (list, changes) in [("set", &headers.set), ("add", &headers.add)] {
        for (index, header) in changes.iter().enumerate() {
            plugin.check_header(&header.name, &header.value, &format!("headers.{list}[{index}]"));
        }
    }
    for (index, name) in headers.remove.iter().enumerate() {
        if matches!(name.to_ascii_lowercase().as_str(), "host" | "content-length" | "transfer-encoding") {
            let message = format!("Servers refuse requests without \"{name}\".");
            plugin.harm(&format!("headers.remove[{index}]"), message);
        }
    }
    // APISIX also accepts a flat form.
    check_changes(plugin);
}

pub(super) fn check_redirect(plugin: &mut Plugin<'_>) {
    let Some(redirect) = plugin.decode::<Redirect>() else { return };
    plugin.check_regex_pairs(&redirect.regex_uri);
    plugin.check_networks(&redirect.trusted_proxies, "trusted_proxies");
    let host = redirect.redirect_host.as_deref().map_or("", str::trim);
    if redirect.http_to_https && host.is_empty() {
        plugin.refuse("redirect_host", "`http_to_https` requires `redirect_host`.");
    }
    if redirect.http_to_https && host.parse::<http::uri::Authority>().is_err() {
        plugin.harm("redirect_host", "The value is no authority, so every redirect answers 500.");
    }
    match redirect.ret_code {
        300..=399 => {}
        100..=199 => plugin.harm("ret_code", "The status announces another answer, which never comes."),
        200..=999 => plugin.warn("ret_code", "PingSIX redirects with this status, which is no redirect."),
        _ => plugin.warn("ret_code", "The value is no HTTP status, so PingSIX redirects with 302."),
    }
}

pub(super) fn check_response(plugin: &mut Plugin<'_>) {
    let Some(rewrite) = plugin.decode::<ResponseRewrite>() else { return };
    if rewrite.status_code.is_some_and(|status| !(100..1000).contains(&status)) {
        plugin.warn("status_code", "The value is no HTTP status, so PingSIX ignores it.");
    }
    if rewrite.status_code.is_some_and(|status| (100..200).contains(&status)) {
        plugin.harm("status_code", "The status announces another answer, which never comes.");
    }
    plugin.check_conditions(rewrite.vars.as_deref().unwrap_or_default(), "vars");
    match &rewrite.headers {
        None => {}
        Some(ResponseHeaders::Simple(headers)) => {
            for (name, value) in headers {
                if matches!(name.as_str(), "add" | "set" | "remove") {
                    let message = format!("PingSIX takes \"{name}\" for the name of a header here.");
                    plugin.warn(&format!("headers.{name}"), message);
                }
                plugin.check_header(name, value, &format!("headers.{name}"));
            }
        }
        Some(ResponseHeaders::Structured { add, set, .. }) => {
            for (name, value) in set {
                plugin.check_header(name, value, &format!("headers.set.{name}"));
            }
            for (index, header) in add.iter().enumerate() {
                let field = format!("headers.add[{index}]");
                match header.split_once(':') {
                    Some((name, value)) => plugin.check_header(name.trim(), value.trim(), &field),
                    None => plugin.warn(&field, "The value is no `Name: value`, so PingSIX ignores it."),
                }
            }
            check_changes(plugin);
        }
    }
}

/// Reports ignored fields of an object of header changes.
fn check_changes(plugin: &mut Plugin<'_>) {
    let Some(Value::Object(fields)) = plugin.config.get("headers") else { return };
    for name in fields.keys().filter(|name| !matches!(name.as_str(), "add" | "set" | "remove")) {
        let message = format!("PingSIX ignores \"{name}\", which is none of `set`, `add` and `remove`.");
        plugin.report(Rule::IgnoredField, Severity::Misbehaves, &format!("headers.{name}"), message);
    }
}
