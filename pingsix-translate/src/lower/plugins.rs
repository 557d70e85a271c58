//! Filters to PingSIX plugins.

use crate::normalise::{Filters, HeaderChanges};
use crate::pingsix::Plugins;
use crate::pingsix::plugin::{self, Header, ProxyRewrite, ResponseHeaders, ResponseRewrite};
use crate::responder::{RedirectInstruction, RedirectPath, encode_path};

/// Adds the plugins that do what filters ask for. A redirect becomes an instruction to the responder, which must then
/// be the Route's upstream.
pub(super) fn add_filters(filters: &Filters, redirect: Option<&RedirectInstruction>, plugins: &mut Plugins) {
    let Filters { request_headers, response_headers, path, cors, redirect: _ } = filters;
    let headers = match redirect {
        // The request goes no further than to the responder.
        Some(instruction) => Some(instruct(instruction)),
        None => request_changes(request_headers),
    };
    let rewrite = ProxyRewrite { headers, ..rewrite_path(path.as_ref()) };
    if rewrite != ProxyRewrite::default() {
        plugins.insert(&rewrite);
    }
    if !response_headers.is_empty() {
        plugins.insert(&ResponseRewrite {
            headers: Some(response_changes(response_headers)),
            ..ResponseRewrite::default()
        });
    }
    if let Some(cors) = cors {
        plugins.insert(&cors.plugin());
    }
}

fn instruct(instruction: &RedirectInstruction) -> plugin::HeaderChanges {
    let header = |(name, value): (&str, String)| Header { name: name.to_owned(), value };
    plugin::HeaderChanges {
        set: instruction.to_headers().into_iter().map(header).collect(),
        ..plugin::HeaderChanges::default()
    }
}

fn request_changes(changes: &HeaderChanges) -> Option<plugin::HeaderChanges> {
    let header = |(name, value): &(String, String)| Header { name: name.clone(), value: value.clone() };
    (!changes.is_empty()).then(|| plugin::HeaderChanges {
        set: changes.set.iter().map(header).collect(),
        add: changes.add.iter().map(header).collect(),
        remove: changes.remove.clone(),
    })
}

fn response_changes(changes: &HeaderChanges) -> ResponseHeaders {
    ResponseHeaders::Structured {
        set: changes.set.iter().cloned().collect(),
        add: changes.add.iter().map(|(name, value)| format!("{name}: {value}")).collect(),
        remove: changes.remove.clone(),
    }
}

fn rewrite_path(path: Option<&RedirectPath>) -> ProxyRewrite {
    match path {
        None | Some(RedirectPath::Keep) => ProxyRewrite::default(),
        Some(RedirectPath::Full(value)) => {
            ProxyRewrite { uri: Some(rooted(&encode_path(value))), ..ProxyRewrite::default() }
        }
        Some(RedirectPath::Prefix { matched, replacement }) => {
            ProxyRewrite { regex_uri: replace_prefix(matched, replacement), ..ProxyRewrite::default() }
        }
    }
}

/// Pairs of pattern and template that replace a prefix in every path it matches (Gateway API, `HTTPPathModifier`).
/// They are anchored, since PingSIX searches in the path and leaves one that no pattern matches as it is.
pub(super) fn replace_prefix(matched: &str, replacement: &str) -> Vec<String> {
    let matched = regex::escape(matched.strip_suffix('/').unwrap_or(matched));
    let replacement = rooted(&encode_path(replacement));
    let pairs = match replacement.strip_suffix('/') {
        // `/old/a` becomes `/a`, and `/old` becomes `/`.
        Some("") => vec![(format!("^{matched}(?:/(.*))?$"), "/$1".to_owned())],
        Some(stem) => vec![
            (format!("^{matched}$"), replacement.clone()),
            (format!("^{matched}(/.*)$"), format!("{stem}$1")),
        ],
        None => vec![(format!("^{matched}(/.*)?$"), format!("{replacement}$1"))],
    };
    pairs.into_iter().flat_map(|(pattern, template)| [pattern, template]).collect()
}

/// A path starts with a slash, whether its author wrote one or not.
pub(super) fn rooted(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

#[cfg(test)]
mod tests;
