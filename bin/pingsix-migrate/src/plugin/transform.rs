//! Plugins that compress, cache and mark responses.

use serde_json::{Value, json};

use super::Effects;
use crate::report::{Place, Reason, Report};
use crate::source::Fields;

/// Adds a coding to the TrafficPolicy.
fn compress(coding: &str, level: u64, place: &Place, effects: &mut Effects, report: &mut Report) {
    let one = json!({ "type": coding, "level": level });
    match effects.traffic.get_mut("compression") {
        Some(Value::Array(codings)) => codings.push(one),
        _ => {
            effects.traffic.insert("compression".to_owned(), json!([one]));
        }
    }
    let message = "The plugin becomes compression of a TrafficPolicy. PingSIX chooses the types of responses, and considers the first \
         coding alone that a client accepts.";
    report.limited(place, Reason::DifferentAnswer, message);
}

fn level(config: &mut Fields, default: u64, most: u64, report: &mut Report) -> u64 {
    match config.number("comp_level", report) {
        Some((place, level)) if (1..=most).contains(&level) => {
            report.exact(&place, "The field becomes level.");
            level
        }
        Some((place, _)) => {
            report.limited(&place, Reason::DifferentAnswer, format!("The level becomes {default}."));
            default
        }
        None => default,
    }
}

const TUNING: &str = "PingSIX chooses this itself.";

pub(super) fn gzip(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    let level = level(&mut config, 1, 9, report);
    config.drop(["types", "min_length", "http_version", "buffers", "vary"], report, TUNING);
    config.finish(report);
    compress("Gzip", level, &place, effects, report);
}

pub(super) fn brotli(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    let level = level(&mut config, 6, 11, report);
    config.drop(["types", "min_length", "http_version", "mode", "lgwin", "lgblock", "vary"], report, TUNING);
    config.finish(report);
    compress("Brotli", level, &place, effects, report);
}

pub(super) fn request_id(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    let mut value = serde_json::Map::new();
    if let Some((place, name)) = config.text("header_name", report) {
        report.exact(&place, "The field becomes headerName.");
        value.insert("headerName".to_owned(), json!(name));
    }
    if let Some((place, shown)) = config.truth("include_in_response", report) {
        report.exact(&place, "The field becomes inResponse.");
        value.insert("inResponse".to_owned(), json!(shown));
    }
    config.drop(["algorithm", "range_id", "nanoid"], report, "Ids are UUIDs.");
    config.finish(report);
    effects.treat("requestID", Value::Object(value), &place, report);
    report.exact(&place, "The plugin becomes requestID of a TrafficPolicy.");
}

pub(super) fn grpc_web(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    config.drop(["cors_allow_headers"], report, "The headers of CORS are those of the field cors.");
    config.finish(report);
    effects.treat("grpcWeb", json!({}), &place, report);
    report.exact(&place, "The plugin becomes grpcWeb of a TrafficPolicy.");
}

pub(super) fn proxy_cache(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    let mut value = json!({});
    let ttl = match config.number("cache_ttl", report) {
        Some((place, ttl)) if (1..=86_400).contains(&ttl) => {
            report.exact(&place, "The field becomes ttl.");
            ttl
        }
        Some((place, _)) => {
            report.limited(&place, Reason::DifferentAnswer, "Responses are fresh for 300 seconds.");
            300
        }
        None => 300,
    };
    value["ttl"] = json!(format!("{ttl}s"));
    let methods = config.texts("cache_method", report);
    let known: Vec<&str> = methods
        .iter()
        .map(|(_, name)| name.as_str())
        .filter(|name| matches!(*name, "GET" | "HEAD"))
        .collect();
    if !known.is_empty() {
        value["methods"] = json!(known);
    }
    for (place, name) in &methods {
        if known.contains(&name.as_str()) {
            report.exact(place, "Responses to the method are kept.");
        } else {
            report.limited(place, Reason::DifferentAnswer, "Responses to the method are not kept.");
        }
    }
    let mut statuses = Vec::new();
    let given = config.list("cache_http_status", report);
    let by_default = if given.is_empty() { vec![200, 301, 404] } else { Vec::new() };
    for item in given {
        if let Some((place, status)) = item.number(report) {
            if (200..=599).contains(&status) && !matches!(status, 206 | 304) && statuses.len() < 32 {
                report.exact(&place, "Responses with the status are kept.");
                statuses.push(status);
            } else {
                report.limited(&place, Reason::DifferentAnswer, "Responses with the status are not kept.");
            }
        }
    }
    statuses.extend(by_default);
    if !statuses.is_empty() {
        value["statuses"] = json!(statuses);
    }
    if let Some(key) = config.take("cache_key") {
        report.limited(&key.place, Reason::DifferentAnswer, "Responses are kept by the whole URL.");
    }
    let message = "The cache is in the memory of each process and obeys Cache-Control.";
    config.drop(
        ["cache_zone", "cache_strategy", "hide_cache_headers", "cache_control", "cache_set_cookie"],
        report,
        message,
    );
    let message = "Requests with Authorization, cookies or the credentials of a policy are never cached; other requests are.";
    config.drop(["cache_bypass", "no_cache", "consumer_isolation"], report, message);
    config.finish(report);
    effects.treat("cache", value, &place, report);
    let message = "Any client can go past the cache. Responses are cached for exact hostnames alone and, where namespaces share a Gateway, if the class allows it (spec.sharedCache).";
    report.limited(&place, Reason::DifferentAnswer, message);
}
