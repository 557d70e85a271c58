//! Canaries: Ingresses that take a part of the requests of another one.

use super::{BLANK, Concern, IngressAnnotations, Support, Values, lacking, tunes};

/// The reason why a choice by a cookie or a pattern cannot be honoured.
const NOT_CHOSEN: &str = "PingSIX does not choose by it, so the canary gets no requests by it.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("canary", Support::Exact),
        tunes("canary-by-header", Support::Exact),
        tunes("canary-by-header-value", Support::Exact),
        lacking("canary-by-cookie", BLANK, NOT_CHOSEN),
        lacking("canary-by-header-pattern", BLANK, NOT_CHOSEN),
        tunes("canary-weight", Support::Exact),
        tunes("canary-weight-total", Support::Exact),
    ],
    read,
};

/// The part of the requests that a canary takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CanaryShare {
    /// The name of a header in lower case, and the value with which all requests are the canary's. Without a value,
    /// `always` and `never` decide.
    pub header: Option<(String, Option<String>)>,
    /// The share of all other requests.
    pub weight: u32,
    /// The whole of which `weight` is a part, at least 1.
    pub total: u32,
}

const DEFAULT_TOTAL: u32 = 100;

/// The largest whole, so that weights stay in the range of Gateway API.
const MAX_TOTAL: u32 = 1_000_000;

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if !values.flag("canary") {
        return;
    }
    let value = values.text("canary-by-header-value").map(str::to_owned);
    let header = values.text("canary-by-header").and_then(|name| {
        let is_name =
            http::HeaderName::from_bytes(name.as_bytes()).is_ok() && !name.eq_ignore_ascii_case("host");
        let is_visible =
            value.as_deref().is_none_or(|value| value.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
        if is_name && is_visible {
            return Some((name.to_ascii_lowercase(), value));
        }
        values.refuse("canary-by-header", "PingSIX cannot compare the header.");
        None
    });
    let total = values.number("canary-weight-total", 1..=MAX_TOTAL).unwrap_or(DEFAULT_TOTAL);
    let weight = values.number("canary-weight", 0..=MAX_TOTAL).unwrap_or_default().min(total);
    read.canary = Some(CanaryShare { header, weight, total });
}
