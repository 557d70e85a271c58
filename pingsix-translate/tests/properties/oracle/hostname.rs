//! Hostnames: what a pattern matches, and which of two is more specific.
//!
//! `None` stands for "any host", also for a request without one.

/// The specificity of a pattern: an exact name before any wildcard before none, more characters first.
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

/// Whether a route with this hostname has any host in common with a listener: the narrower of two hostnames is
/// what is served, if the wider one covers it.
pub(crate) fn intersect(listener: Option<&str>, route: Option<&str>) -> bool {
    match (narrower(listener, route), wider(listener, route)) {
        (_, None) => true,
        (Some(narrow), Some(wide)) => {
            wide == narrow || wide.strip_prefix('*').is_some_and(|suffix| narrow.ends_with(suffix))
        }
        (None, Some(_)) => unreachable!("nothing is wider than any host"),
    }
}

/// The more specific of two hostnames.
pub(crate) fn narrower<'h>(one: Option<&'h str>, other: Option<&'h str>) -> Option<&'h str> {
    if specificity(one) > specificity(other) { one } else { other }
}

fn wider<'h>(one: Option<&'h str>, other: Option<&'h str>) -> Option<&'h str> {
    if specificity(one) > specificity(other) { other } else { one }
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
