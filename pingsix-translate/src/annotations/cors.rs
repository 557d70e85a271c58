//! Permissions for scripts of other origins.

use super::{CORS_CREDENTIALS, CORS_LISTS, Concern, IngressAnnotations, Support, Values, list, tunes};
use crate::crd::{Cors, OriginWildcards};

/// The defaults are those of ingress-nginx.
pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("enable-cors", Support::Exact),
        tunes("cors-allow-credentials", Support::Exact),
        list(tunes("cors-allow-headers", Support::Exact)),
        list(tunes("cors-allow-methods", Support::Exact)),
        list(tunes("cors-allow-origin", Support::Exact)),
        list(tunes("cors-expose-headers", Support::Exact)),
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
        list(tunes("cors-allow-headers", Support::Exact)),
        list(tunes("cors-allow-methods", Support::Exact)),
        list(tunes("cors-allow-origin", Support::Exact)),
    ],
    read: read_apisix,
};

fn read_apisix(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if !values.flag("enable-cors") {
        return;
    }
    // APISIX compares origins as they are written. Two stars are the one that counts for credentials, too.
    let is_known = |origin: &str| matches!(origin, "*" | "**") || !origin.contains('*');
    let Some(mut allow_origins) = origins(values, is_known) else { return };
    let mut allow_methods = names(values, "cors-allow-methods", &["*"]);
    let mut allow_headers = names(values, "cors-allow-headers", &["*"]);
    for list in [&mut allow_origins, &mut allow_methods, &mut allow_headers] {
        if list.iter().any(|entry| entry == "**") {
            *list = vec!["*".to_owned()];
        }
    }
    add(Cors { allow_origins, allow_methods, allow_headers, ..Cors::default() }, values, read);
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if !values.flag("enable-cors") {
        return;
    }
    // ingress-nginx has no wildcard for all hosts of a scheme.
    let Some(allow_origins) = origins(values, |origin| origin == "*" || !is_every_host(origin)) else {
        return;
    };
    let allow_methods = names(values, "cors-allow-methods", &METHODS);
    let allow_headers = names(values, "cors-allow-headers", &HEADERS);
    let expose_headers = names(values, "cors-expose-headers", &[]);
    let allow_credentials = values.flag_or("cors-allow-credentials", true);
    let max_age = values.number("cors-max-age", 1..=i32::MAX.unsigned_abs()).unwrap_or(MAX_AGE);
    // `[A-Za-z0-9\-]+` stands for the star before a domain (`internal/ingress/controller/template/template.go`).
    let has_wildcard = allow_origins.iter().any(|origin| origin.contains("*."));
    let cors = Cors {
        allow_origins,
        origin_wildcards: if has_wildcard { OriginWildcards::OneLabel } else { OriginWildcards::default() },
        allow_methods,
        allow_headers,
        expose_headers,
        allow_credentials,
        max_age: i32::try_from(max_age).ok(),
    };
    add(cors, values, read);
}

fn is_every_host(origin: &str) -> bool {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.split(':').next() == Some("*")
}

/// The origins that a dialect knows; any origin without the annotation. `None` if the annotation has no usable origin.
fn origins(values: &mut Values<'_>, is_known: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    const NAME: &str = "cors-allow-origin";
    let mut origins = match values.list(NAME) {
        Some(origins) => origins,
        // A value that cannot be read must not admit any origin.
        None if values.text(NAME).is_some() || values.has_problem(NAME) => return None,
        None => vec!["*"],
    };
    origins.retain(|origin| {
        let is_known = is_known(origin);
        if !is_known {
            values.refuse(NAME, format!("\"{origin}\" is no origin, and is left out."));
        }
        is_known
    });
    if origins.contains(&"*") {
        origins = vec!["*"];
    }
    (!origins.is_empty()).then(|| origins.into_iter().map(str::to_owned).collect())
}

/// The items of a list, or the default.
fn names(values: &mut Values<'_>, name: &str, default: &[&str]) -> Vec<String> {
    let entries = values.list(name).unwrap_or_else(|| default.to_vec());
    entries.into_iter().map(str::to_owned).collect()
}

fn add(cors: Cors, values: &Values<'_>, read: &mut IngressAnnotations) {
    for (field, name, _) in CORS_LISTS {
        read.sources.insert(field, values.whole_name(name));
    }
    let source = if values.text("cors-allow-credentials").is_some() {
        "cors-allow-credentials"
    } else {
        "enable-cors"
    };
    read.sources.insert("cors", values.whole_name("enable-cors"));
    read.sources.insert(CORS_CREDENTIALS, values.whole_name(source));
    read.security.cors = Some(cors);
}
