//! Path modifiers (Gateway API `HTTPPathModifier`), and the paths that backends see.

use std::sync::Arc;

use gateway_api::experimental::httproutes as api;

use super::pattern::memory_of_prefix;
use crate::model::{Capability, FieldPath, Reason, Refusal};
use crate::normalise::{Match, PathKind};
use crate::pingsix::plugin::ProxyRewrite;
use crate::responder::{RedirectPath, encode_path};

/// The path of requests on the way to a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathRewrite {
    /// `ReplaceFullPath`
    Full(String),
    /// `ReplacePrefixMatch`
    Prefix { matched: String, replacement: String },
    /// `ReplaceRegexMatch` of an HTTPRouteFilter
    Regex(Arc<RegexRewrite>),
}

/// A pattern that matches whole paths, and the template of the new path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RegexRewrite {
    pub(super) pattern: String,
    pub(super) template: String,
    /// The memory that PingSIX may need for the pattern.
    pub(super) memory: usize,
}

/// A path modifier as it is written, of any generated type.
pub(super) struct WrittenPath<'w> {
    pub(super) is_full: bool,
    pub(super) full: Option<&'w str>,
    pub(super) prefix: Option<&'w str>,
}

impl WrittenPath<'_> {
    /// Reads the modifier in a rule with some matches. `None` if it is refused.
    pub(super) fn read(
        &self,
        matches: &[Match],
        at: &FieldPath,
        refusals: &mut Vec<Refusal>,
    ) -> Option<RedirectPath> {
        let mut refuse = |field: &str, message: &str| {
            refusals.push(Refusal::new(at.child(field), Reason::UnsupportedValue, message));
        };
        if self.is_full {
            let Some(value) = self.full else {
                refuse("replaceFullPath", "A modifier of type ReplaceFullPath needs it.");
                return None;
            };
            return Some(RedirectPath::Full(value.to_owned()));
        }
        let Some(replacement) = self.prefix else {
            refuse("replacePrefixMatch", "A modifier of type ReplacePrefixMatch needs it.");
            return None;
        };
        // Several matches with one prefix would do, but the API does not take them either.
        let [Match { path, .. }] = matches else {
            refuse("type", "ReplacePrefixMatch needs a rule with exactly one match.");
            return None;
        };
        if path.kind != PathKind::Prefix {
            refuse("type", "ReplacePrefixMatch needs a match of type PathPrefix.");
            return None;
        }
        Some(RedirectPath::Prefix { matched: path.stem().to_owned(), replacement: replacement.to_owned() })
    }
}

impl PathRewrite {
    /// Reads the path of a `URLRewrite` filter in a rule with some matches. `None` if it is refused.
    pub(super) fn read(
        path: &api::HttpRouteRulesFiltersUrlRewritePath,
        matches: &[Match],
        at: &FieldPath,
        refusals: &mut Vec<Refusal>,
    ) -> Option<Self> {
        let written = WrittenPath {
            is_full: path.r#type == api::HttpRouteRulesFiltersUrlRewritePathType::ReplaceFullPath,
            full: path.replace_full_path.as_deref(),
            prefix: path.replace_prefix_match.as_deref(),
        };
        match written.read(matches, at, refusals)? {
            RedirectPath::Keep => None,
            RedirectPath::Full(value) => Some(Self::Full(value)),
            RedirectPath::Prefix { matched, replacement } => {
                if replacement.contains('$') {
                    // A template has no way to write a dollar sign before a digit (`src/core/plugin.rs`).
                    refusals.push(Capability::DollarInPrefix.refuse(at.child("replacePrefixMatch")));
                }
                Some(Self::Prefix { matched, replacement })
            }
        }
    }

    /// The memory that PingSIX may need for the patterns.
    pub(super) fn pattern_memory(&self) -> usize {
        match self {
            Self::Full(_) => 0,
            Self::Prefix { matched, .. } => memory_of_prefix(matched.len()),
            Self::Regex(rewrite) => rewrite.memory,
        }
    }

    /// The plugin of PingSIX, without its headers.
    pub(super) fn lower(&self) -> ProxyRewrite {
        match self {
            Self::Full(value) => {
                ProxyRewrite { uri: Some(rooted(&encode_path(value))), ..ProxyRewrite::default() }
            }
            Self::Prefix { matched, replacement } => {
                ProxyRewrite { regex_uri: replace_prefix(matched, replacement), ..ProxyRewrite::default() }
            }
            Self::Regex(rewrite) => {
                let RegexRewrite { pattern, template, memory: _ } = &**rewrite;
                ProxyRewrite { regex_uri: vec![pattern.clone(), template.clone()], ..ProxyRewrite::default() }
            }
        }
    }
}

/// Pairs of pattern and template that replace a prefix in every path it matches (Gateway API, `HTTPPathModifier`).
/// They are anchored, because PingSIX searches in the path and leaves a path without a match unchanged.
pub(crate) fn replace_prefix(matched: &str, replacement: &str) -> Vec<String> {
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
pub(crate) fn rooted(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    /// Applies pairs as PingSIX does: the first pattern found in the path gives the whole new path
    /// (`src/core/plugin.rs`).
    fn apply(pairs: &[String], path: &str) -> String {
        for pair in pairs.chunks(2) {
            let [pattern, template] = pair else { panic!("pairs come in twos: {pairs:?}") };
            if let Some(found) = Regex::new(pattern).unwrap().captures(path) {
                return template.replace("$1", found.get(1).map_or("", |group| group.as_str()));
            }
        }
        path.to_owned()
    }

    #[test]
    fn prefixes_are_replaced_as_the_table_of_the_specification_says() {
        let cases = [
            ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
            ("/foo/", "/xyz", "/foo/bar", "/xyz/bar"),
            ("/foo", "/xyz/", "/foo/bar", "/xyz/bar"),
            ("/foo", "/xyz", "/foo", "/xyz"),
            ("/foo", "/xyz", "/foo/", "/xyz/"),
            ("/foo", "/xyz/", "/foo", "/xyz/"),
            ("/foo", "/xyz/", "/foo/", "/xyz/"),
            ("/foo", "", "/foo/bar", "/bar"),
            ("/foo", "/", "/foo/bar", "/bar"),
            ("/foo", "", "/foo", "/"),
            ("/foo", "/", "/foo/", "/"),
            ("/", "/xyz", "/bar", "/xyz/bar"),
            ("/", "/xyz", "/", "/xyz/"),
            ("/a.b", "/x y", "/a.b/c%2Fd", "/x%20y/c%2Fd"),
            ("/a", "b", "/a/c", "/b/c"),
        ];
        for (matched, replacement, path, expected) in cases {
            let pairs = replace_prefix(matched, replacement);
            assert_eq!(apply(&pairs, path), expected, "{matched} by {replacement:?} in {path}: {pairs:?}");
        }
    }

    #[test]
    fn a_dot_in_a_prefix_is_a_dot() {
        let pairs = replace_prefix("/a.b", "/x");
        assert_eq!(apply(&pairs, "/a-b"), "/a-b");
    }
}
