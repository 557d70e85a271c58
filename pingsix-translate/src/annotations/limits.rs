//! Limits of requests and bodies.

use super::{Concern, IngressAnnotations, Purpose, RATE_LIMIT, Support, Values, impossible, tunes};
use crate::crd::{LocalRateLimit, MissingKey, RateLimit, RateLimitKey, RateLimitUnit, RequestLimit};

/// PingSIX counts within windows of time, and ingress-nginx lets bursts pass.
const FIXED_WINDOW: &str =
    "PingSIX counts the requests of each address in each second or minute, without a burst.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("limit-rps", Support::Limited(FIXED_WINDOW)),
        tunes("limit-rpm", Support::Limited(FIXED_WINDOW)),
        tunes("limit-burst-multiplier", Support::NoEffect),
        impossible("limit-connections", Purpose::Tunes, &["", "0"], "PingSIX does not count connections."),
        impossible("limit-rate", Purpose::Tunes, &["", "0"], "PingSIX does not limit the rate of bytes."),
        impossible(
            "limit-rate-after",
            Purpose::Tunes,
            &["", "0"],
            "PingSIX does not limit the rate of bytes.",
        ),
        impossible("limit-whitelist", Purpose::Tunes, &[""], NO_EXCEPTIONS),
        impossible("limit-allowlist", Purpose::Tunes, &[""], NO_EXCEPTIONS),
        impossible("proxy-body-size", Purpose::Tunes, &["", "0"], "PingSIX does not limit bodies."),
        tunes("client-body-buffer-size", Support::NoEffect),
    ],
    read,
};

const NO_EXCEPTIONS: &str = "PingSIX limits the requests of all addresses.";

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
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
