//! `fault-injection`, `echo`, `cors`, `gzip` and `brotli`.

use serde_json::Value;

use super::Plugin;
use crate::pingsix::plugin::{Brotli, Cors, Echo, FaultInjection, Gzip};

/// The longest delay in seconds: a day, as for PingSIX's timeouts. PingSIX holds the request for the delay, and panics
/// on 2^64 seconds.
const MAX_DELAY_SECONDS: f64 = 86_400.0;

pub(super) fn check_fault_injection(plugin: &mut Plugin<'_>) {
    let Some(fault) = plugin.decode::<FaultInjection>() else { return };
    plugin.check_fields(&fault);
    if fault.delay.is_none() && fault.abort.is_none() {
        plugin.refuse("", "There must be a `delay` or an `abort`.");
    }
    if fault.delay.is_some_and(|delay| delay.duration > MAX_DELAY_SECONDS) {
        plugin.harm("delay.duration", "PingSIX holds requests for longer than a day, or panics.");
    }
    let Some(abort) = fault.abort else { return };
    if abort.http_status > 999 {
        plugin.harm("abort.http_status", "The value is no HTTP status, so PingSIX answers 500.");
    }
    for (name, value) in abort.headers.into_iter().flatten() {
        let field = format!("abort.headers.{name}");
        match value {
            Value::Null | Value::Array(_) | Value::Object(_) => {
                plugin.warn(&field, "PingSIX leaves out a header that is no text, number or boolean.");
            }
            Value::String(value) => plugin.check_header(&name, &value, &field),
            Value::Bool(_) | Value::Number(_) => plugin.check_header_name(&name, &field),
        }
    }
    if matches!(abort.http_status, 204 | 205 | 304) && abort.body.is_some_and(|body| !body.is_empty()) {
        plugin.harm("abort.body", "An answer of this status has no body, so messages break.");
    }
}

pub(super) fn check_echo(plugin: &mut Plugin<'_>) {
    let Some(echo) = plugin.decode::<Echo>() else { return };
    for (name, value) in &echo.headers {
        plugin.check_header(name, value, &format!("headers.{name}"));
    }
}

pub(super) fn check_cors(plugin: &mut Plugin<'_>) {
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
    let expose_headers = cors.expose_headers.as_deref().unwrap_or_default();
    for (field, value) in [
        ("allow_methods", cors.allow_methods.as_str()),
        ("allow_headers", &cors.allow_headers),
        ("expose_headers", expose_headers),
    ] {
        plugin.check_header_value(value, field, || "The list".to_owned());
    }
    // PingSIX never applies its rules for the other fields.
    if !any(&cors.allow_methods) {
        let allowed = |method: &str| Cors::METHODS.iter().any(|known| known.eq_ignore_ascii_case(method));
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
