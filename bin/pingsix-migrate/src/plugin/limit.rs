//! `limit-count`: requests in fixed windows.

use pingsix_translate::article;
use serde_json::{Value, json};

use super::Effects;
use crate::report::{Place, Reason, Report};
use crate::source::Fields;

/// The windows of a policy, in seconds.
const UNITS: [(u64, &str); 4] = [(1, "Second"), (60, "Minute"), (3_600, "Hour"), (86_400, "Day")];

/// The part of a request that a variable of nginx names, as type and name.
pub(crate) fn variable(name: &str) -> Option<(&'static str, String)> {
    let (kind, name) = if let Some(name) = name.strip_prefix("http_") {
        ("Header", name.replace('_', "-"))
    } else if let Some(name) = name.strip_prefix("arg_") {
        ("QueryParam", name.to_owned())
    } else {
        ("Cookie", name.strip_prefix("cookie_")?.to_owned())
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let good = !name.is_empty() && name.len() <= 256 && name.bytes().all(is_plain);
    good.then_some((kind, name))
}

/// The part of requests by which clients are told apart.
fn key(config: &mut Fields, report: &mut Report) -> Option<Value> {
    let key_type = config.text("key_type", report);
    let key = config.text("key", report);
    if let Some((place, key_type)) = key_type.as_ref().filter(|(_, name)| name != "var") {
        let _ = key_type;
        let message = "PingSIX counts by one address, header, cookie or query parameter.";
        report.blocking(place, Reason::UnsupportedField, message);
        return None;
    }
    let name = key.as_ref().map_or("remote_addr", |(_, name)| name.as_str());
    if name == "remote_addr" {
        if let Some((place, _)) = &key {
            report.exact(place, "Requests are counted by the address of the client.");
        }
        return Some(json!({ "type": "RemoteAddress" }));
    }
    let place = key.as_ref().map(|(place, _)| place.clone())?;
    let Some((kind, name)) = variable(name) else {
        let message = "PingSIX counts by one address, header, cookie or query parameter.";
        report.blocking(&place, Reason::UnsupportedField, message);
        return None;
    };
    let message = "Requests without the key share one count. The original counts them by their address.";
    report.limited(&place, Reason::DifferentCounts, message);
    Some(json!({ "type": kind, "name": name }))
}

/// The limit of a policy with the same mean: the window becomes the next longer unit.
fn limit(count: u64, window: u64) -> Option<(u64, &'static str)> {
    let (length, unit) = UNITS.into_iter().find(|(length, _)| *length >= window)?;
    // Rounded down, so that no more requests pass.
    let requests = count.checked_mul(length)? / window.max(1);
    (1..=1_000_000_000).contains(&requests).then_some((requests, unit))
}

pub(super) fn limit_count(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let count = config.number("count", report);
    let window = config.number("time_window", report);
    let key = key(&mut config, report);
    let code = config.number("rejected_code", report);
    config.drop(["rejected_msg"], report, "PingSIX has a message of its own.");
    let headers = config.truth("show_limit_quota_header", report);
    if let Some((place, policy)) = config.text("policy", report) {
        if policy == "local" {
            report.exact(&place, "Each process counts for itself.");
        } else {
            let message = "Each process of PingSIX counts for itself, so several let more requests pass.";
            report.limited(&place, Reason::DifferentCounts, message);
            // The address and the credentials of the shared counters.
            let names: Vec<String> = config.rest().into_iter().map(|(name, _)| name).collect();
            for name in &names {
                let message = "The field is for shared counters.";
                report.limited(&place_of(&place, name), Reason::DifferentCounts, message);
            }
        }
    }
    config.drop(["group"], report, "The rules of the group count for themselves.");
    config.drop(["allow_degradation"], report, "PingSIX counts in memory, which does not fail.");
    config.finish(report);
    let (Some((_, count)), Some((window_place, window))) = (count, window) else {
        return report.blocking(&place, Reason::MissingField, "The plugin has no count or no time_window.");
    };
    let Some(key) = key else { return };
    let Some((requests, unit)) = limit(count, window) else {
        let message = "A policy limits 1 to 1000000000 requests in a day at most.";
        return report.blocking(&window_place, Reason::InvalidValue, message);
    };
    if UNITS.iter().any(|(length, _)| *length == window) {
        report.exact(&window_place, format!("The window is {} {unit}.", article(unit)));
    } else {
        let message = format!(
            "The window becomes {} {unit} with the same mean, so more requests may pass at once.",
            article(unit)
        );
        report.limited(&window_place, Reason::DifferentCounts, message);
    }
    let code = match code {
        Some((place, code)) if !(400..=599).contains(&code) => {
            report.limited(&place, Reason::DifferentAnswer, "Rejected requests get 429.");
            429
        }
        Some((place, code)) => {
            report.exact(&place, "The field becomes rejectCode.");
            code
        }
        None => 503,
    };
    let mut local = json!({
        "limit": { "requests": requests, "unit": unit }, "key": key, "rejectCode": code,
    });
    if let Some((place, headers)) = headers {
        report.exact(&place, "The field becomes quotaHeaders.");
        local["quotaHeaders"] = json!(headers);
    }
    effects.treat("rateLimit", json!({ "local": local }), &place, report);
    let message = "PingSIX forgets its counts after a change of any endpoint or policy, and names the headers X-Rate-Limit-*.";
    report.limited(&place, Reason::DifferentCounts, message);
}

fn place_of(policy: &Place, name: &str) -> Place {
    let parent = policy.field.strip_suffix(".policy").unwrap_or(&policy.field);
    Place { object: policy.object.clone(), field: format!("{parent}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_keep_their_mean_and_never_admit_more() {
        assert_eq!(limit(5, 60), Some((5, "Minute")));
        assert_eq!(limit(5, 30), Some((10, "Minute")));
        assert_eq!(limit(1, 7), Some((8, "Minute")));
        assert_eq!(limit(1, 86_401), None);
        assert_eq!(limit(u64::MAX, 2), None);
        assert_eq!(limit(0, 60), None);
    }
}
