//! Plugins that answer requests themselves.

use serde_json::{Value, json};

use pingsix_translate::is_dns_subdomain;

use super::Effects;
use crate::report::{Reason, Report};
use crate::source::Fields;

/// The statuses of a redirect of an HTTPRoute.
const REDIRECTS: [u64; 5] = [301, 302, 303, 307, 308];

pub(super) fn redirect(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    if let Some((place, https)) = config.truth("http_to_https", report) {
        if https {
            effects.https_only = true;
            let message = "The rule becomes two: one for HTTP that redirects, and one for HTTPS. If the rule authenticates, the data planes need the layout PerPort.";
            report.limited(&place, Reason::DifferentAnswer, message);
        } else {
            report.exact(&place, "Nothing is redirected.");
        }
    }
    let code = config.number("ret_code", report);
    let code = match code {
        Some((place, code)) if !REDIRECTS.contains(&code) => {
            let message = "A redirect has one of the statuses 301, 302, 303, 307 and 308.";
            return report.blocking(&place, Reason::UnsupportedRewrite, message);
        }
        Some((place, code)) => {
            report.exact(&place, "The field becomes statusCode.");
            code
        }
        None => 302,
    };
    let uri = config.text("uri", report);
    for (name, why) in [
        ("regex_uri", "A redirect has a constant path."),
        ("encode_uri", "A redirect has a constant path."),
        ("append_query_string", "Redirects of an HTTPRoute always keep the query."),
    ] {
        if let Some(field) = config.take(name) {
            if field.value.as_bool() == Some(false) || name == "append_query_string" {
                report.exact(&field.place, why);
            } else {
                report.blocking(&field.place, Reason::UnsupportedField, why);
            }
        }
    }
    config.finish(report);
    let Some((uri_place, uri)) = uri else {
        if !effects.https_only {
            report.blocking(&place, Reason::UnsupportedRewrite, "The redirect has no target. Set uri.");
        }
        return;
    };
    let Some(target) = target(&uri) else {
        let message = "The target has a variable or a query, and a redirect has a constant path.";
        return report.blocking(&uri_place, Reason::UnsupportedRewrite, message);
    };
    report.limited(&uri_place, Reason::DifferentAnswer, "The redirect keeps the query of the request.");
    let mut redirect = target;
    redirect["statusCode"] = json!(code);
    effects.redirect = Some(redirect);
}

/// `requestRedirect` for a URL or a path.
fn target(uri: &str) -> Option<Value> {
    if uri == "https://$host$request_uri" {
        return Some(json!({ "scheme": "https" }));
    }
    if uri.contains(['$', '?', '#']) {
        return None;
    }
    let mut redirect = json!({});
    let mut path = uri;
    if let Some((scheme, rest)) = uri.split_once("://") {
        if !matches!(scheme, "http" | "https") {
            return None;
        }
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        if host.is_empty() || !is_dns_subdomain(host) {
            return None;
        }
        redirect["scheme"] = json!(scheme);
        redirect["hostname"] = json!(host);
        if !port.is_empty() {
            redirect["port"] = json!(port.parse::<u16>().ok()?);
        }
        path = rest;
    }
    let path = if path.is_empty() { "/" } else { path };
    if !path.starts_with('/') {
        return None;
    }
    redirect["path"] = json!({ "type": "ReplaceFullPath", "replaceFullPath": path });
    Some(redirect)
}

pub(super) fn fault_injection(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    let mut injected = serde_json::Map::new();
    if let Some(mut delay) = config.object("delay", report) {
        let seconds = delay.take("duration");
        let share = percentage(&mut delay, report);
        conditions(&mut delay, report);
        delay.finish(report);
        let milliseconds =
            seconds.as_ref().and_then(|field| field.value.as_f64()).map(|value| value * 1000.0);
        if let Some(value) = milliseconds.filter(|value| (1.0..=60_000.0).contains(value)) {
            let value = format!("{value:.0}ms");
            injected.insert("delay".to_owned(), json!({ "duration": value, "percentage": share }));
            report.exact(&place.at("delay"), "The field becomes faultInjection.delay.");
        } else {
            let message = "A delay has a millisecond to a minute.";
            report.impossible(&place.at("delay.duration"), Reason::InvalidValue, message);
        }
    }
    if let Some(mut abort) = config.object("abort", report) {
        let status = abort.number("http_status", report);
        let body = abort.text("body", report);
        let share = percentage(&mut abort, report);
        conditions(&mut abort, report);
        if let Some(headers) = abort.take("headers") {
            report.limited(&headers.place, Reason::DifferentAnswer, "The answer has no such headers.");
        }
        abort.finish(report);
        match status {
            Some((place, status)) if (200..=599).contains(&status) => {
                if share == 100 && injected.is_empty() {
                    answer(status, body.map(|(_, body)| body), effects);
                    report.exact(&place, "The rule becomes a direct response.");
                } else {
                    if let Some((place, _)) = body {
                        report.limited(&place, Reason::DifferentAnswer, "The answer has no body.");
                    }
                    injected.insert("abort".to_owned(), json!({ "httpStatus": status, "percentage": share }));
                    report.exact(&place, "The field becomes faultInjection.abort.");
                }
            }
            _ => {
                let message = "An answer has a status from 200 to 599.";
                report.blocking(&place.at("abort.http_status"), Reason::InvalidValue, message);
            }
        }
    }
    config.finish(report);
    if !injected.is_empty() {
        effects.treat("faultInjection", Value::Object(injected), &place, report);
    }
}

fn percentage(fields: &mut Fields, report: &mut Report) -> u64 {
    match fields.number("percentage", report) {
        Some((place, share)) if share <= 100 => {
            report.exact(&place, "The share stays.");
            share
        }
        Some((place, _)) => {
            report.blocking(&place, Reason::InvalidValue, "A share has at most 100 per cent.");
            100
        }
        None => 100,
    }
}

fn conditions(fields: &mut Fields, report: &mut Report) {
    fields.refuse(["vars"], report, "PingSIX injects faults without conditions.");
}

/// Answers the requests of the rule.
fn answer(status: u64, body: Option<String>, effects: &mut Effects) {
    let mut response = json!({ "statusCode": status });
    let body = body.filter(|body| !body.is_empty() && !matches!(status, 204 | 205 | 304));
    if let Some(body) = body {
        response["body"] = json!(body);
    }
    effects.response = Some(response);
}

pub(super) fn mocking(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    let status = config.number("response_status", report).map_or(200, |(_, status)| status);
    let body = config.text("response_example", report);
    config.drop(["with_mock_header"], report, "Answers have no header about mocking.");
    config.drop(["content_type"], report, "Answers are text/plain.");
    let message = "A direct response has a status and a constant body.";
    config.refuse(["response_schema", "delay", "response_headers"], report, message);
    config.finish(report);
    let is_long = body.as_ref().is_some_and(|(_, body)| body.len() > 4096 || body.contains('$'));
    if !(200..=599).contains(&status) || is_long {
        let message = "A direct response has a status from 200 to 599 and at most 4096 bytes.";
        return report.blocking(&place, Reason::TooMany, message);
    }
    answer(status, body.map(|(_, body)| body), effects);
    report.limited(&place, Reason::DifferentAnswer, "The rule becomes a direct response.");
}
