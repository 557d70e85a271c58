//! `fault-injection`, `echo`, `cors`, `gzip`, `brotli` and `request-id`.

use super::Plugin;
use crate::pingsix::plugin::{Brotli, Cors, Echo, FaultInjection, Gzip, RangeId, RequestId};

pub(super) fn check_fault(plugin: &mut Plugin<'_>) {
    let Some(fault) = plugin.decode::<FaultInjection>() else { return };
    plugin.check_fields(&fault);
    if fault.delay.is_none() && fault.abort.is_none() {
        plugin.refuse("", "There must be a `delay` or an `abort`.");
    }
    // A duration beyond 64 bits of seconds cannot be represented.
    if fault.delay.is_some_and(|delay| delay.duration >= 18_446_744_073_709_551_616.0) {
        plugin.warn("delay.duration", "PingSIX panics on a delay this long.");
    }
    let Some(abort) = fault.abort else { return };
    if abort.http_status > 999 {
        plugin.warn("abort.http_status", "The value is no HTTP status, so PingSIX answers 500.");
    }
    for (name, value) in abort.headers.into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        plugin.check_header(&name, &value, &format!("abort.headers.{name}"));
    }
}

pub(super) fn check_echo(plugin: &mut Plugin<'_>) {
    let Some(echo) = plugin.decode::<Echo>() else { return };
    for (name, value) in &echo.headers {
        plugin.check_header(name, value, &format!("headers.{name}"));
    }
}

pub(super) fn check_cors(plugin: &mut Plugin<'_>) {
    const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"];
    let Some(cors) = plugin.decode::<Cors>() else { return };
    let any = |list: &str| matches!(list, "*" | "**");
    if cors.allow_credential && any(&cors.allow_origins) {
        plugin.refuse("allow_origins", "Credentials cannot be allowed for any origin.");
    }
    if cors.allow_credential && cors.allow_headers == "*" {
        plugin.refuse("allow_headers", "Credentials cannot be allowed with headers `*`; `**` reflects them.");
    }
    for (index, pattern) in cors.allow_origins_by_regex.iter().flatten().enumerate() {
        plugin.check_regex(pattern, &format!("allow_origins_by_regex[{index}]"));
    }
    // PingSIX has rules for the rest and never applies them.
    if !any(&cors.allow_methods) {
        let allowed = |method: &str| METHODS.iter().any(|known| known.eq_ignore_ascii_case(method));
        for method in cors.allow_methods.split(',').map(str::trim).filter(|method| !allowed(method)) {
            let message = format!("\"{method}\" is no method that PingSIX ever allows.");
            plugin.warn("allow_methods", message);
        }
    }
    if !any(&cors.allow_headers) {
        let known = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || letter == '-');
        for name in cors.allow_headers.split(',').map(str::trim).filter(|name| !known(name)) {
            let message = format!("\"{name}\" is no header name that PingSIX means to take, yet it does.");
            plugin.warn("allow_headers", message);
        }
    }
    if !any(&cors.allow_origins) && cors.allow_origins.split(',').any(|origin| origin.trim().is_empty()) {
        plugin.warn("allow_origins", "An empty origin matches none.");
    }
}

pub(super) fn check_gzip(plugin: &mut Plugin<'_>) {
    if let Some(gzip) = plugin.decode::<Gzip>() {
        check_level(plugin, gzip.comp_level, 9);
    }
}

pub(super) fn check_brotli(plugin: &mut Plugin<'_>) {
    if let Some(brotli) = plugin.decode::<Brotli>() {
        check_level(plugin, brotli.comp_level, 11);
    }
}

fn check_level(plugin: &mut Plugin<'_>, level: Option<u32>, most: u32) {
    if level.is_some_and(|level| level > most) {
        plugin.refuse("comp_level", format!("The level is at most {most}."));
    }
}

pub(super) fn check_request_id(plugin: &mut Plugin<'_>) {
    let Some(request_id) = plugin.decode::<RequestId>() else { return };
    match request_id.algorithm.as_str() {
        "range_id" if request_id.range_id == RangeId::default() => {
            plugin.warn("range_id", "Without this object, ids of the algorithm `range_id` are empty.");
        }
        "uuid" | "range_id" => {}
        _ => plugin.refuse("algorithm", "The algorithm is `uuid` or `range_id`."),
    }
    if request_id.header_name.parse::<http::HeaderName>().is_err() {
        plugin.warn("header_name", "The value is no header name, so every request answers 500.");
    }
}
