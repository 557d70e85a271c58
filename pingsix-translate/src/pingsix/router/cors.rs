//! The answers of the `cors` plugin to preflights.

use super::request::Request;
use crate::pingsix::plugin::Cors;

/// Whether the plugin allows the preflight; `None` for a request that is no preflight.
pub(super) fn preflight(cors: &Cors, request: &Request) -> Option<bool> {
    if request.method != "OPTIONS" {
        return None;
    }
    let method = request.first_header("access-control-request-method")?;
    let origin = request.first_header("origin").is_some_and(|origin| allows_origin(cors, origin));
    let headers = request
        .first_header("access-control-request-headers")
        .is_none_or(|headers| headers.split(',').all(|header| allows_header(cors, header.trim())));
    Some(origin && allows_method(cors, method) && headers)
}

fn allows_origin(cors: &Cors, origin: &str) -> bool {
    let any = matches!(cors.allow_origins.as_str(), "*" | "**");
    let listed = cors.allow_origins.split(',').map(str::trim).any(|held| !held.is_empty() && held == origin);
    let by_pattern = cors
        .allow_origins_by_regex
        .iter()
        .flatten()
        .any(|pattern| regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(origin)));
    !cors.allow_origins.is_empty() && (any || listed || by_pattern)
}

fn allows_method(cors: &Cors, method: &str) -> bool {
    Cors::METHODS.iter().any(|known| known.eq_ignore_ascii_case(method)) && lists(&cors.allow_methods, method)
}

fn allows_header(cors: &Cors, header: &str) -> bool {
    matches!(cors.allow_headers.as_str(), "*" | "**")
        || (!header.is_empty() && lists(&cors.allow_headers, header))
}

fn lists(list: &str, item: &str) -> bool {
    matches!(list, "*" | "**") || list.split(',').any(|held| held.trim().eq_ignore_ascii_case(item))
}
