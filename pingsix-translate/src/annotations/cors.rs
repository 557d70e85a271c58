//! Permissions for scripts of other origins.

use super::{Concern, IngressAnnotations, Support, Values, tunes};
use crate::crd::Cors;

/// The defaults are those of ingress-nginx.
pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("enable-cors", Support::Exact),
        tunes("cors-allow-credentials", Support::Exact),
        tunes("cors-allow-headers", Support::Exact),
        tunes("cors-allow-methods", Support::Exact),
        tunes("cors-allow-origin", Support::Exact),
        tunes("cors-expose-headers", Support::Exact),
        tunes("cors-max-age", Support::Exact),
    ],
    read,
};

const METHODS: [&str; 6] = ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"];

const HEADERS: [&str; 9] = [
    "DNT",
    "Keep-Alive",
    "User-Agent",
    "X-Requested-With",
    "If-Modified-Since",
    "Cache-Control",
    "Content-Type",
    "Range",
    "Authorization",
];

const MAX_AGE: u32 = 1_728_000;

/// The defaults are those of the plugin `cors` of APISIX.
pub(super) const APISIX: Concern = Concern {
    annotations: &[
        tunes("enable-cors", Support::Exact),
        tunes("cors-allow-headers", Support::Exact),
        tunes("cors-allow-methods", Support::Exact),
        tunes("cors-allow-origin", Support::Exact),
    ],
    read: read_apisix,
};

fn read_apisix(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if !values.flag("enable-cors") {
        return;
    }
    let mut list = |name: &str| -> Vec<String> {
        let entries = values.list(name).unwrap_or_else(|| vec!["*"]);
        entries.into_iter().map(str::to_owned).collect()
    };
    let [allow_origins, allow_methods, allow_headers] =
        ["cors-allow-origin", "cors-allow-methods", "cors-allow-headers"].map(&mut list);
    read.sources.insert("cors", values.whole_name("enable-cors"));
    read.security.cors = Some(Cors { allow_origins, allow_methods, allow_headers, ..Cors::default() });
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if !values.flag("enable-cors") {
        return;
    }
    let mut list = |name: &str, default: &[&str]| -> Vec<String> {
        let entries = values.list(name).unwrap_or_else(|| default.to_vec());
        entries.into_iter().map(str::to_owned).collect()
    };
    let allow_origins = list("cors-allow-origin", &["*"]);
    let allow_methods = list("cors-allow-methods", &METHODS);
    let allow_headers = list("cors-allow-headers", &HEADERS);
    let expose_headers = list("cors-expose-headers", &[]);
    let allow_credentials =
        values.text("cors-allow-credentials").is_none() || values.flag("cors-allow-credentials");
    let max_age = values.number("cors-max-age", 1..=i32::MAX.unsigned_abs()).unwrap_or(MAX_AGE);
    read.sources.insert("cors", values.whole_name("enable-cors"));
    read.security.cors = Some(Cors {
        allow_origins,
        allow_methods,
        allow_headers,
        expose_headers,
        allow_credentials,
        max_age: i32::try_from(max_age).ok(),
    });
}
