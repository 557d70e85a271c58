//! Hostnames: what a pattern matches, and which of two is more specific.
//!
//! `None` stands for "any host", also for a request without one.

/// How specific a pattern is: an exact name before any wildcard before none, more characters first.
pub(crate) fn specificity(pattern: Option<&str>) -> (u8, usize) {
    match pattern {
        None => (0, 0),
        Some(wildcard) if wildcard.starts_with("*.") => (1, wildcard.len()),
        Some(exact) => (2, exact.len()),
    }
}

/// Whether a host, in lower case, is one the pattern stands for. A wildcard stands for one or more labels.
pub(crate) fn matches(pattern: Option<&str>, host: Option<&str>) -> bool {
    match (pattern, host) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(pattern), Some(host)) => match pattern.strip_prefix('*') {
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            None => host == pattern,
        },
    }
}

/// The hostname a route with this hostname is served under on a listener; `None` when there is none.
pub(crate) fn intersection<'h>(listener: Option<&'h str>, route: Option<&'h str>) -> Option<Option<&'h str>> {
    let (wide, narrow) =
        if specificity(listener) <= specificity(route) { (listener, route) } else { (route, listener) };
    let covered = match (wide, narrow) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => {
            wide == narrow || wide.strip_prefix('*').is_some_and(|suffix| narrow.ends_with(suffix))
        }
        (Some(_), None) => unreachable!("nothing is wider than any host"),
    };
    covered.then_some(narrow)
}

/// A host that a pattern matches and that no longer one does, unless it is the same exact name.
pub(crate) fn representative(pattern: Option<&str>) -> String {
    match pattern {
        None => "nobody.invalid".to_owned(),
        Some(pattern) => {
            pattern.strip_prefix('*').map_or(pattern.to_owned(), |suffix| format!("zz-fresh{suffix}"))
        }
    }
}
