//! The `Location` of a redirect.

use regex::Regex;

use super::request::Request;
use crate::pingsix::plugin::{Redirect, has_address};
use crate::pingsix::uri::path_and_query;

/// The location of the redirect; `None` if the plugin passes the request.
pub(super) fn location(redirect: &Redirect, request: &Request) -> Option<String> {
    if redirect.http_to_https && needs_https(redirect, request) {
        let host = redirect.redirect_host.as_deref().unwrap_or_default().trim();
        return Some(format!("https://{host}{}", request.path_and_query()));
    }
    let query = request.query.as_deref().unwrap_or_default();
    let (path, target_query) = if let Some(uri) = &redirect.uri {
        // PingSIX takes the target's query from a parse of the whole target and drops it when that fails.
        let target_query = uri.parse::<http::Uri>().ok().and_then(|uri| uri.query().map(str::to_owned));
        (uri.split('?').next().unwrap_or(uri).to_owned(), target_query.unwrap_or_default())
    } else if redirect.regex_uri.is_empty() {
        return None;
    } else {
        let path = rewrite_path(&redirect.regex_uri, &request.path);
        match path.split_once('?') {
            Some((path, query)) => (path.to_owned(), query.to_owned()),
            None => (path, String::new()),
        }
    };
    let query = match (redirect.append_query_string, target_query.as_str(), query) {
        (true, "", original) => original.to_owned(),
        (true, target, original) if !original.is_empty() && target != original => {
            format!("{target}&{original}")
        }
        (_, target, _) => target.to_owned(),
    };
    let target = path_and_query(&if query.is_empty() { path } else { format!("{path}?{query}") })?;
    // A target may be a whole URL. On HTTP/2, the request's scheme and authority precede any target.
    Some(match (request.http2, &request.host) {
        (true, Some(authority)) => {
            format!("{}://{authority}{target}", if request.tls { "https" } else { "http" })
        }
        _ => target,
    })
}

fn needs_https(redirect: &Redirect, request: &Request) -> bool {
    let trusted = request.peer.is_some_and(|peer| has_address(&redirect.trusted_proxies, peer.ip()));
    let forwarded =
        request.first_header("x-forwarded-proto").is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
    // A plaintext HTTP/2 request carries the scheme `http`, and PingSIX ignores headers of proxies then.
    !request.tls && (request.http2 || !(trusted && forwarded))
}

/// The path after `regex_uri` (`src/core/plugin.rs`): the template of the first pattern that matches anywhere replaces
/// the whole path, with the groups `$1` and so on. Without a match, the path stays.
pub(super) fn rewrite_path(regex_uri: &[String], path: &str) -> String {
    let pairs = regex_uri.chunks_exact(2).filter_map(|pair| match pair {
        [pattern, template] => Some((Regex::new(pattern).ok()?, template)),
        _ => None,
    });
    for (pattern, template) in pairs {
        if let Some(captures) = pattern.captures(path) {
            return fill(template, |group| captures.get(group).map_or("", |group| group.as_str()));
        }
    }
    path.to_owned()
}

/// Replaces `$` and digits; `$0` and numbers too large to parse stay as they are.
fn fill<'p>(template: &str, group: impl Fn(usize) -> &'p str) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        let digits = after.len() - after.trim_start_matches(|letter: char| letter.is_numeric()).len();
        let (number, tail) = after.split_at(digits);
        match number.parse::<usize>() {
            Ok(index) if index > 0 => filled.push_str(group(index)),
            Ok(_) | Err(_) => {
                filled.push('$');
                filled.push_str(number);
            }
        }
        rest = tail;
    }
    filled.push_str(rest);
    filled
}
