//! Limits of requests and bodies.

use super::{
    BLANK, Concern, IngressAnnotations, RATE_LIMIT, Support, Unless, Values, lacking, no_effect, tunes,
};
use crate::crd::{LocalRateLimit, MissingKey, RateLimit, RateLimitKey, RateLimitUnit, RequestLimit};

/// PingSIX counts within windows of time, and ingress-nginx lets bursts pass.
const FIXED_WINDOW: &str =
    "PingSIX counts the requests of each address in each second or minute, without a burst.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("limit-rps", Support::Limited(FIXED_WINDOW)),
        tunes("limit-rpm", Support::Limited(FIXED_WINDOW)),
        no_effect("limit-burst-multiplier"),
        lacking("limit-connections", Unless::Values(&["", "0"]), "PingSIX does not count connections."),
        lacking("limit-rate", Unless::Values(&["", "0"]), "PingSIX does not limit the rate of bytes."),
        lacking("limit-rate-after", Unless::Values(&["", "0"]), "PingSIX does not limit the rate of bytes."),
        lacking("limit-whitelist", BLANK, NO_EXCEPTIONS),
        lacking("limit-allowlist", BLANK, NO_EXCEPTIONS),
        tunes(BODY_SIZE, Support::Limited(NO_LIMIT)),
        no_effect("client-body-buffer-size"),
    ],
    read,
};

/// The annotation with the most bytes of a body.
const BODY_SIZE: &str = "proxy-body-size";

const NO_LIMIT: &str =
    "PingSIX does not limit bodies; a value below 1m, the default of ingress-nginx, is not honoured.";

/// The default of ingress-nginx (`internal/ingress/controller/config/config.go`), in bytes.
const DEFAULT_BODY: u64 = 1024 * 1024;

const NO_EXCEPTIONS: &str = "PingSIX limits the requests of all addresses.";

/// A size as ingress-nginx reads it (`nginxOffsetRegex` of `internal/ingress/controller/template/template.go`), in bytes.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX)).map(|number: u64| number.saturating_mul(unit))
}

/// PingSIX has no limit of bodies, so a raised one asks for nothing.
fn read_body_size(values: &mut Values<'_>) {
    let Some(text) = values.text(BODY_SIZE) else { return };
    match size(text) {
        Some(0) => {}
        Some(bytes) if bytes >= DEFAULT_BODY => {
            values.differ(BODY_SIZE, "PingSIX does not limit bodies, so larger ones pass, too.");
        }
        Some(_) => {
            let message = "PingSIX does not limit bodies. The value is below the default of ingress-nginx, so a backend may rely \
                           on it.";
            values.refuse(BODY_SIZE, message);
        }
        None => values.differ(BODY_SIZE, "ingress-nginx ignores the value, which is no size of nginx."),
    }
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    read_body_size(values);
    let most = 1_000_000_000;
    // Zero is no limit.
    let mut limit = |name, unit| {
        let requests = values.number(name, 0..=most).filter(|requests| *requests > 0)?;
        values.limit(name);
        read.sources.entry(RATE_LIMIT).or_insert_with(|| values.whole_name(name));
        Some(RequestLimit { requests, unit })
    };
    let [by_second, by_minute] =
        [limit("limit-rps", RateLimitUnit::Second), limit("limit-rpm", RateLimitUnit::Minute)];
    if by_second.is_some() && by_minute.is_some() {
        values.refuse("limit-rpm", "PingSIX has one limit for an Ingress, which is limit-rps.");
    }
    read.traffic.rate_limit = by_second.or(by_minute).map(|limit| RateLimit {
        local: LocalRateLimit {
            limit,
            key: RateLimitKey::default(),
            on_missing_key: MissingKey::default(),
            reject_code: 503,
            quota_headers: false,
        },
    });
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn a_size_has_the_units_of_nginx() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("512", Some(512)),
            ("8k", Some(8192)),
            ("1M", Some(1 << 20)),
            ("2g", Some(2 << 30)),
            ("99999999999999999999g", Some(u64::MAX)),
            ("1 m", None),
            ("1mb", None),
            ("10b", None),
            ("-1", None),
            ("m", None),
            ("é", None),
        ] {
            assert_eq!(size(text), bytes, "{text}");
        }
    }
}
