//! Paths of Ingresses as their controllers read them.

use std::collections::BTreeSet;

use pingsix_translate::annotations::{PathChange, Rewriting};
use serde::Serialize;
use serde_json::{Value, json};

use super::annotated::{Annotated, Entry, PathEntry};
use crate::convert::matches::{self, is_path};
use crate::plugin::Effects;
use crate::report::{Reason, Report};

/// A path of an HTTPRoute.
pub(super) struct Matched {
    /// `matches[].path`.
    pub(super) path: Value,
    /// The change of the path, or a redirect.
    pub(super) change: Change,
}

/// The change of a request.
#[derive(Default)]
pub(super) struct Change {
    /// `urlRewrite.path` of an HTTPRoute.
    pub(super) full: Option<Value>,
    /// `urlRewrite` of an HTTPRouteFilter.
    pub(super) regex: Option<Value>,
    /// `requestRedirect` of an HTTPRoute.
    pub(super) redirect: Option<Value>,
}

impl Change {
    /// Has the effect on a rule, unless there is none.
    pub(super) fn apply(self, effects: &mut Effects) {
        let Self { full, regex, redirect } = self;
        if full.is_some() || regex.is_some() {
            (effects.path, effects.regex) = (full, regex);
        }
        effects.redirect = redirect.or(effects.redirect.take());
    }
}

/// The difference of regular expressions with letters.
pub(super) const LETTERS: &str = "ingress-nginx ignores the case of letters in regular expressions";

/// Whether a path has letters.
pub(super) fn has_letters(path: &str) -> bool {
    path.contains(|letter: char| letter.is_ascii_alphabetic())
}

pub(super) const ALL_REGULAR: &str = "ingress-nginx reads all paths of the host as regular expressions, because an Ingress of the host asks for it";

/// The hosts all of whose paths ingress-nginx reads as regular expressions, because a path of an Ingress asks for it. Each host
/// has the path `/`, with the annotations of an Ingress.
pub(super) fn regular_hosts<'a>(ingresses: impl Iterator<Item = &'a Annotated>) -> BTreeSet<&'a str> {
    let mut hosts = BTreeSet::new();
    for ingress in ingresses.filter(|one| one.is_of_nginx() && one.read.canary.is_none()) {
        let Some(rewriting) = &ingress.read.rewriting else { continue };
        let asks = |entry: &&Entry| {
            let mut paths = entry.paths.iter().map(|path| path.path.as_str()).chain(["/"]);
            paths.any(|path| rewriting.makes_regular(path))
        };
        hosts.extend(ingress.entries.iter().filter(asks).map(|entry| entry.host.as_str()));
    }
    hosts
}

/// Reads a path of ingress-nginx. `is_regular` says whether the paths of the host are regular expressions. The error is the
/// beginning of the path that can be matched.
pub(super) fn read(
    entry: &PathEntry,
    rewriting: Option<&Rewriting>,
    is_regular: bool,
    report: &mut Report,
) -> Result<Matched, Value> {
    let at = entry.place.at("path");
    let mut differences: Vec<&str> = Vec::new();
    let (kind, value, change) = if let Some(rewriting) = rewriting.filter(|_| is_regular) {
        match rewriting.read(&entry.path) {
            Ok(pattern) => {
                differences.extend(pattern.limitation);
                differences.extend(has_letters(&pattern.path).then_some(LETTERS));
                ("PathPrefix", pattern.path, pattern.rewrite)
            }
            Err(why) => {
                let (verb, reason) = if rewriting.is_redirect() {
                    ("redirect", Reason::UnsupportedRewrite)
                } else {
                    ("match", Reason::UnsupportedPath)
                };
                report.impossible(&at, reason, format!("PingSIX cannot {verb} it: {why}."));
                return Err(prefix(&stem(&entry.path)));
            }
        }
    } else {
        differences.extend((is_regular && (entry.path != "/" || entry.is_exact())).then_some(ALL_REGULAR));
        let kind = match entry.kind.as_str() {
            "Exact" => "Exact",
            // ingress-nginx reads paths without another type as prefixes.
            "Prefix" | "ImplementationSpecific" | "" => "PathPrefix",
            _ => {
                let message = "The type of the path is unknown.";
                report.impossible(&entry.place.at("pathType"), Reason::InvalidValue, message);
                return Err(prefix(&stem(&entry.path)));
            }
        };
        (kind, entry.path.clone(), None)
    };
    if !is_path(&value) {
        let message = "An HTTPRoute cannot have the path, or PingSIX would take it for a pattern.";
        report.impossible(&at, Reason::UnsupportedPath, message);
        return Err(prefix(&stem(&value)));
    }
    if differences.is_empty() {
        report.exact(&at, format!("The path becomes {kind} {value}."));
    }
    // Without the path, so that a summary has the paths with one difference together.
    for difference in differences {
        report.limited(&at, Reason::DifferentPath, format!("{}.", sentence(difference)));
    }
    let path = json!({ "type": kind, "value": value });
    Ok(Matched { path, change: change.as_ref().map(self::change).unwrap_or_default() })
}

/// Reads a path of APISIX. Paths that are no prefixes of elements may end with an asterisk, and with `use-regex` those of
/// the type `ImplementationSpecific` are regular expressions.
pub(super) fn read_apisix(
    entry: &PathEntry,
    rewriting: Option<&Rewriting>,
    report: &mut Report,
) -> Result<Matched, Value> {
    let at = entry.place.at("path");
    let matched = |path: Value| Matched { path, change: Change::default() };
    if entry.kind == "Prefix" && is_path(&entry.path) {
        report.exact(&at, format!("The path becomes PathPrefix {}.", entry.path));
        return Ok(matched(json!({ "type": "PathPrefix", "value": entry.path })));
    }
    let Some(rewriting) = rewriting.filter(|_| is_implementation_specific(&entry.kind)) else {
        let path = matches::path(&at, &entry.path, report);
        return path.map(matched).ok_or_else(|| prefix(&stem(&entry.path)));
    };
    match rewriting.read(&entry.path) {
        Ok(pattern) if is_path(&pattern.path) => {
            let anywhere = (!entry.path.starts_with('^')).then_some(ANYWHERE);
            for difference in pattern.limitation.into_iter().chain(anywhere).chain([LAST]) {
                report.limited(&at, Reason::DifferentPath, format!("{}.", sentence(difference)));
            }
            Ok(matched(json!({ "type": "PathPrefix", "value": pattern.path })))
        }
        Ok(_) => {
            let message = "An HTTPRoute cannot have the path, or PingSIX would take it for a pattern.";
            report.impossible(&at, Reason::UnsupportedPath, message);
            Err(prefix(&stem(&entry.path)))
        }
        Err(why) => {
            report.impossible(&at, Reason::UnsupportedPath, format!("PingSIX cannot match it: {why}."));
            Err(prefix(&stem(&entry.path)))
        }
    }
}

const ANYWHERE: &str = "APISIX finds the expression anywhere in a path";

const LAST: &str = "APISIX prefers paths that are no expressions";

/// Whether the controller decides about the meaning of a path of this type.
pub(super) fn is_implementation_specific(kind: &str) -> bool {
    matches!(kind, "" | "ImplementationSpecific")
}

/// The change of requests that an annotation asks for.
pub(super) fn change(change: &PathChange) -> Change {
    let none = Change::default();
    match change {
        PathChange::Full(full) => {
            Change { full: Some(json!({ "type": "ReplaceFullPath", "replaceFullPath": full })), ..none }
        }
        PathChange::Regex(filter) => Change { regex: Some(json!({ "path": filter })), ..none },
        PathChange::Redirect(filter) => Change { redirect: redirect(filter), ..none },
    }
}

/// `requestRedirect` of a filter.
pub(super) fn redirect(filter: &impl Serialize) -> Option<Value> {
    serde_json::to_value(filter).ok()?.get("requestRedirect").cloned()
}

fn prefix(path: &str) -> Value {
    json!({ "type": "PathPrefix", "value": path })
}

/// The whole elements at the beginning of a path that have no meaning as a regular expression.
pub(super) fn stem(path: &str) -> String {
    let mut stem = String::new();
    let elements = path.trim_start_matches('^').split('/').skip(1);
    let is_plain = |element: &&str| {
        !element.is_empty()
            && !element.contains(['(', ')', '[', ']', '{', '}', '*', '+', '?', '|', '^', '$', '\\'])
    };
    let elements: Vec<&str> = elements.collect();
    // The last element may go on, as `/v` in `/v[0-9]`.
    for element in elements.iter().take_while(|element| is_plain(element)) {
        stem.push('/');
        stem.push_str(element);
    }
    if is_path(&stem) { stem } else { "/".to_owned() }
}

/// A clause as a sentence, without the full stop. The name of ingress-nginx keeps its letters.
fn sentence(clause: &str) -> String {
    if clause.starts_with("ingress-nginx") {
        return clause.to_owned();
    }
    let (first, rest) = clause.split_at_checked(1).unwrap_or((clause, ""));
    format!("{}{rest}", first.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn the_beginning_of_a_regular_expression_has_whole_elements() {
        for (path, expected) in [
            ("/api/v[0-9]+/x", "/api"),
            ("/(a|b)", "/"),
            ("^/shop/items/(.*)", "/shop/items"),
            ("api", "/"),
            ("/a/%2f/b", "/"),
        ] {
            assert_eq!(stem(path), expected, "{path}");
        }
    }
}
