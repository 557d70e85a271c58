//! Plugins about the origin of requests: addresses, scripts of other sites, forged requests.

use pingsix_translate::Network;
use serde_json::{Value, json};

use super::{Effects, Scope};
use crate::objects::NewSecret;
use crate::report::{Place, Reason, Report};
use crate::source::{Field, Fields};

/// Networks in CIDR notation: addresses become networks of one address, and bits behind the length of a prefix are dropped.
pub(crate) fn networks(texts: Vec<(Place, String)>, report: &mut Report) -> Vec<String> {
    let mut networks = Vec::new();
    for (place, text) in texts {
        match Network::parse_masked(&text) {
            Ok(network) => {
                let kept = if Network::parse(&text).is_ok() {
                    "The network stays."
                } else {
                    "The network stays. APISIX ignores the bits behind the length of its prefix, and a policy has none."
                };
                report.exact(&place, kept);
                networks.push(format!("{}/{}", network.address(), network.length()));
            }
            Err(why) => report.blocking(&place, Reason::InvalidValue, format!("The value {why}.")),
        }
    }
    networks
}

pub(super) fn ip_restriction(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let allow = config.texts("whitelist", report);
    let allow = networks(allow, report);
    let deny = config.texts("blacklist", report);
    let deny = networks(deny, report);
    config.drop(["message"], report, "PingSIX has a message of its own.");
    if let Some((place, code)) = config.number("response_code", report) {
        if code == 403 {
            report.exact(&place, "Refused requests get 403.");
        } else {
            report.limited(&place, Reason::DifferentAnswer, "Refused requests get 403.");
        }
    }
    config.finish(report);
    if allow.len() > 256 || deny.len() > 256 {
        let message = "The list has more than 256 networks, and a policy has 256 at most.";
        return report.blocking(&place, Reason::TooMany, message);
    }
    let mut value = serde_json::Map::new();
    for (name, networks) in [("allow", allow), ("deny", deny)] {
        if !networks.is_empty() {
            value.insert(name.to_owned(), json!(networks));
        }
    }
    if value.is_empty() {
        report.blocking(&place, Reason::MissingField, "The plugin has neither whitelist nor blacklist.");
        return;
    }
    effects.secure("authorization", Value::Object(value), &place, report);
    report.exact(&place, "The lists become authorization of a SecurityPolicy.");
}

pub(super) fn real_ip(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    if let Some((place, source)) = config.text("source", report) {
        if source == "http_x_forwarded_for" {
            report.exact(&place, "PingSIX reads X-Forwarded-For.");
        } else {
            let message = "PingSIX reads the addresses of clients from X-Forwarded-For alone.";
            report.blocking(&place, Reason::UnsupportedField, message);
        }
    }
    let trusted = config.texts("trusted_addresses", report);
    let trusted = networks(trusted, report);
    config.drop(["recursive"], report, "PingSIX skips all trusted proxies at the end of the header.");
    config.finish(report);
    if trusted.is_empty() || trusted.len() > 256 {
        let message =
            "A policy needs 1 to 256 trusted proxies. Otherwise every client could choose its address.";
        return report.blocking(&place.at("trusted_addresses"), Reason::UnsupportedField, message);
    }
    effects.secure("clientIP", json!({ "trustedProxies": trusted }), &place, report);
    let message = "The address counts for authorization alone. The proxies have to set X-Forwarded-For and keep it in one line.";
    report.limited(&place, Reason::DifferentScope, message);
}

/// The items of a list with commas.
fn items(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// The methods for which PingSIX answers preflights.
const CORS_METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

pub(super) fn cors(mut config: Fields, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    let mut list = |name: &str, default: &str, report: &mut Report| {
        let given = config.text(name, report);
        let place = given.as_ref().map(|(place, _)| place.clone());
        (place, items(given.as_ref().map_or(default, |(_, text)| text.as_str())))
    };
    let (origins_place, origins) = list("allow_origins", "*", report);
    let (methods_place, methods) = list("allow_methods", "*", report);
    let (headers_place, headers) = list("allow_headers", "*", report);
    let (exposed_place, exposed) = list("expose_headers", "", report);
    let with_credentials = config.truth("allow_credential", report);
    let max_age = config.take("max_age");
    let mut is_without = |name: &str, report: &mut Report| {
        let others = config.take(name);
        if let Some(Field { place, .. }) = &others {
            let message = "Origins are listed one by one; these origins are not allowed any more.";
            report.impossible(place, Reason::DifferentCors, message);
        }
        others.is_some()
    };
    let by_pattern = is_without("allow_origins_by_regex", report);
    let by_metadata = is_without("allow_origins_by_metadata", report);
    let message = "PingSIX does not set Timing-Allow-Origin.";
    config.drop(["timing_allow_origins", "timing_allow_origins_by_regex"], report, message);
    config.finish(report);
    let is_any = |list: &[String]| list.iter().any(|item| item == "*" || item == "**");
    let star = |list: Vec<String>| if is_any(&list) { vec!["*".to_owned()] } else { list };
    let credentials = with_credentials.as_ref().is_some_and(|(_, with)| *with);
    if credentials && is_any(&origins) {
        let place = origins_place.unwrap_or(place);
        let message = "PingSIX does not allow credentials for every origin, so scripts of other origins are not allowed any more.";
        return report.impossible(&place, Reason::DifferentCors, message);
    }
    // APISIX takes patterns in place of the list, and metadata in place of a star.
    if by_pattern || (by_metadata && is_any(&origins)) {
        let message = "No origin is left, so scripts of other origins are not allowed any more.";
        return report.impossible(&place, Reason::DifferentCors, message);
    }
    let (mut origins, headers, exposed) = (star(origins), star(headers), star(exposed));
    // APISIX compares origins as they are written, and a SecurityPolicy has wildcards.
    let before = origins.len();
    origins.retain(|origin| origin == "*" || !origin.contains('*'));
    if origins.len() < before {
        let place = origins_place.as_ref().unwrap_or(&place);
        let message = "Origins with a star match none in APISIX, and are left out.";
        report.limited(place, Reason::DifferentCors, message);
        if origins.is_empty() {
            return;
        }
    }
    let (methods, unknown): (Vec<_>, Vec<_>) =
        star(methods).into_iter().partition(|name| name == "*" || CORS_METHODS.contains(&name.as_str()));
    if let Some(place) = methods_place.filter(|_| !unknown.is_empty()) {
        let message = "PingSIX answers preflights of GET, HEAD, POST, PUT, DELETE, PATCH and OPTIONS.";
        report.limited(&place, Reason::DifferentCors, message);
    }
    for place in [origins_place, headers_place, exposed_place].into_iter().flatten() {
        report.exact(&place, "The list stays.");
    }
    if origins.len() > 64 || headers.len() > 64 || exposed.len() > 64 {
        let message = "A list has more than 64 items, so scripts of other origins are not allowed any more.";
        return report.impossible(&place, Reason::DifferentCors, message);
    }
    let mut value = json!({ "allowOrigins": origins, "allowMethods": methods, "allowHeaders": headers });
    if !exposed.is_empty() {
        value["exposeHeaders"] = json!(exposed);
    }
    if credentials {
        value["allowCredentials"] = json!(true);
    }
    if let Some(age) = preflight_age(max_age, report) {
        value["maxAge"] = json!(age);
    }
    effects.secure("cors", value, &place, report);
    let message = "The plugin becomes cors of a SecurityPolicy. Answers of PingSIX itself, such as 401, have no headers of CORS.";
    report.limited(&place, Reason::DifferentCors, message);
}

/// The seconds for which browsers keep the answer to a preflight, as far as a policy can have them.
fn preflight_age(max_age: Option<Field>, report: &mut Report) -> Option<i64> {
    let age = max_age.as_ref().map_or(Some(5), |field| field.value.as_i64());
    let age = age.filter(|age| (1..=i64::from(i32::MAX)).contains(age));
    if let Some(Field { place, .. }) = max_age {
        match age {
            Some(_) => report.exact(&place, "The field becomes maxAge."),
            None => {
                report.limited(&place, Reason::DifferentCors, "Browsers keep the answer for 5 seconds.");
            }
        }
    }
    age
}

pub(super) fn csrf(mut config: Fields, scope: Scope<'_>, effects: &mut Effects, report: &mut Report) {
    effects.protects = true;
    let place = config.place.clone();
    let key = config.filled("key", report);
    config.drop(["expires"], report, "Tokens are valid for the time that PingSIX has.");
    config.drop(["name"], report, "The cookie and the header have the name that PingSIX has.");
    config.finish(report);
    let Some((key_place, key)) = key else {
        return report.blocking(&place.at("key"), Reason::MissingField, "The plugin has no key.");
    };
    let secret = NewSecret::key((scope.namespace, format!("{}-csrf", scope.name)), key);
    effects.secrets.push(("csrf", secret));
    report.exact(&key_place, "The key moves into a Secret.");
    effects.secure("csrf", json!({}), &place, report);
    let message = "The cookie is always Secure. Tokens of the original are not valid any more.";
    report.limited(&place, Reason::DifferentAnswer, message);
}
