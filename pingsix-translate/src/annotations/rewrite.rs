//! Paths that are regular expressions, and the paths that backends see.
//!
//! PingSIX matches paths exactly or as prefixes. Of the regular expressions that people write for ingress-nginx, most are
//! a prefix with groups for `rewrite-target`. These forms are read, and all others are refused.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{AssertionKind, Ast};
use regex_syntax::hir::{Dot, Hir, HirKind, Look};

use gateway_api::experimental::httproutes as api;

use super::destination::{Destination, NewPath, is_url, path_of_rewrite, with_braces};
use super::{Concern, IngressAnnotations, REWRITE_REGEX, Support, Values, tunes};
use crate::crd::{FilterPath, FilterPathType};
use crate::responder::RedirectStatus;

const LETTER_CASE: &str = "PingSIX distinguishes upper and lower case in paths.";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("rewrite-target", Support::Exact),
        tunes("use-regex", Support::Limited(LETTER_CASE)),
    ],
    read,
};

pub(super) const APISIX: Concern = Concern {
    annotations: &[
        tunes("rewrite-target", Support::Exact),
        tunes(REWRITE_REGEX, Support::Exact),
        tunes("rewrite-target-regex-template", Support::Exact),
        tunes("use-regex", Support::Limited("PingSIX matches regular expressions that stand for a prefix.")),
    ],
    read: read_apisix,
};

/// APISIX rewrites whatever path a request has, and prefers the target to the regular expression.
fn read_apisix(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    if values.flag("use-regex") {
        values.limit("use-regex");
        read.rewriting = Some(Rewriting { target: None, is_asked: true });
    }
    if let Some(target) = values.text("rewrite-target") {
        let why = match check_target(target) {
            Ok(()) if !target.contains('$') => {
                read.path_change = Some(PathChange::Full(target.to_owned()));
                return;
            }
            Ok(()) => "PingSIX has no variables for it",
            Err(why) => why,
        };
        refuse_target(values, "rewrite-target", target, why);
    }
    let [pattern, template] = [REWRITE_REGEX, "rewrite-target-regex-template"].map(|name| values.text(name));
    let (Some(pattern), Some(substitution)) = (pattern, template) else { return };
    if let Err(why) = check_target(substitution) {
        refuse_target(values, "rewrite-target-regex-template", substitution, why);
        return;
    }
    match replacing(pattern, substitution) {
        Ok(path) => {
            read.path_change = Some(PathChange::Regex(path));
            read.sources.insert(REWRITE_REGEX, values.whole_name(REWRITE_REGEX));
        }
        Err(why) => values.refuse(REWRITE_REGEX, format!("\"{pattern}\" {why}.")),
    }
}

/// The longest regular expression of APISIX, in bytes. With the groups around it, it is within the bounds of an
/// HTTPRouteFilter.
const MAX_PATTERN: usize = 1000;

/// The beginning of a regular expression.
enum Beginning<'p> {
    /// The beginning of paths, with the expression behind it.
    Start(&'p str),
    /// A character that stands for itself, with the expression behind it.
    Character(char, &'p str),
    Other,
}

impl<'p> Beginning<'p> {
    fn of(pattern: &'p str) -> Self {
        let Ok(parsed) = Parser::new().parse(pattern) else { return Self::Other };
        let first = if let Ast::Concat(parts) = &parsed { parts.asts.first() } else { Some(&parsed) };
        let behind = |end: usize| pattern.get(end..).unwrap_or_default();
        match first {
            Some(Ast::Assertion(look)) if look.kind == AssertionKind::StartLine => {
                Self::Start(behind(look.span.end.offset))
            }
            Some(Ast::Literal(literal)) => Self::Character(literal.c, behind(literal.span.end.offset)),
            Some(_) | None => Self::Other,
        }
    }
}

/// The replacement of the first match. APISIX keeps the parts of a path before and behind the match, and PingSIX replaces
/// whole paths, so both parts become groups, except behind an expression that takes in the rest of the path.
fn replacing(pattern: &str, template: &str) -> Result<FilterPath, &'static str> {
    if pattern.len() > MAX_PATTERN {
        return Err("is longer than 1000 bytes");
    }
    let parsed = regex_syntax::parse(pattern).map_err(|_| "is no regular expression that PingSIX knows")?;
    let properties = parsed.properties();
    let begins = properties.look_set_prefix().contains(Look::Start);
    let is_whole = begins && properties.look_set_suffix().contains(Look::End);
    let groups = properties.explicit_captures_len();
    // A path begins with a slash, and the path for backends has to, whatever is before the match.
    let (before, matched) = match Beginning::of(pattern) {
        _ if is_whole => (None, pattern),
        Beginning::Start(rest) => (None, rest),
        Beginning::Other if begins => (None, pattern),
        Beginning::Character('/', rest) => (Some("/((?:.*?/)??)"), rest),
        Beginning::Character(..) => (Some("/(.*?)"), pattern),
        Beginning::Other => {
            return Err("begins neither with ^ nor with a character that stands for itself");
        }
    };
    let template = match before {
        Some("/(.*?)") | None => template,
        // The slash of the match is one behind the part before it.
        Some(_) => template.strip_prefix('/').unwrap_or(template),
    };
    if before.is_some() && template.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Err("may match behind the beginning of a path, where PingSIX cannot insert a digit");
    }
    let first = usize::from(before.is_some());
    let mut parts = template.split('$');
    let mut substitution = if before.is_some() { "/$1".to_owned() } else { String::new() };
    substitution.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        match part[..part.len() - rest.len()].parse() {
            Ok(group) if (1..=groups).contains(&group) => {
                substitution.push('$');
                substitution.push_str(&(group + first).to_string());
                substitution.push_str(rest);
            }
            Ok(_) | Err(_) => return Err("lacks a group to which the template refers"),
        }
    }
    let before = before.unwrap_or_default();
    let pattern = if is_whole {
        pattern.to_owned()
    } else if takes_the_rest(&parsed) {
        format!("^{before}{matched}$")
    } else {
        substitution.push('$');
        substitution.push_str(&(groups + first + 1).to_string());
        format!("^{before}(?:{matched})(.*)$")
    };
    Ok(FilterPath { kind: FilterPathType::ReplaceRegexMatch, pattern, substitution })
}

/// The path for backends by `regex_uri` of APISIX: a pattern and the text in the place of its first match.
///
/// # Errors
///
/// The reason against it, as a sentence.
pub(crate) fn regex_uri(pattern: &str, template: &str) -> Result<FilterPath, String> {
    check_target(template)
        .map_err(|why| format!("\"{template}\" cannot be the path of a backend: {why}."))?;
    replacing(pattern, template).map_err(|why| format!("\"{pattern}\" {why}."))
}

/// Whether an expression ends with `.*`, perhaps in a group.
fn takes_the_rest(parsed: &Hir) -> bool {
    match parsed.kind() {
        HirKind::Concat(parts) => parts.last().is_some_and(takes_the_rest),
        HirKind::Capture(group) => takes_the_rest(&group.sub),
        HirKind::Repetition(repeated) => {
            repeated.greedy
                && repeated.min <= 1
                && repeated.max.is_none()
                && *repeated.sub == Hir::dot(Dot::AnyCharExceptLF)
        }
        HirKind::Empty
        | HirKind::Literal(_)
        | HirKind::Class(_)
        | HirKind::Look(_)
        | HirKind::Alternation(_) => false,
    }
}

fn refuse_target(values: &mut Values<'_>, name: &str, target: &str, why: &str) {
    values.refuse(name, format!("\"{target}\" cannot be the path of a backend: {why}."));
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let use_regex = values.flag("use-regex");
    if use_regex {
        values.limit("use-regex");
    }
    let written = values.text("rewrite-target");
    let target = written.and_then(|written| target(written, values, read));
    // Paths are regular expressions beside a target that cannot be honoured, too.
    let is_asked = use_regex || (target.is_none() && written.is_some());
    if is_asked || target.is_some() {
        read.rewriting = Some(Rewriting { target, is_asked });
    }
}

/// Reads a target. nginx redirects to a target that begins with a scheme. An Ingress never serves requests that it cannot
/// redirect.
fn target(written: &str, values: &mut Values<'_>, read: &mut IngressAnnotations) -> Option<Target> {
    if !is_url(written) {
        return match check_target(written) {
            Ok(()) => Some(Target::Path(written.to_owned())),
            Err(why) => {
                refuse_target(values, "rewrite-target", written, why);
                None
            }
        };
    }
    let read_url = || {
        let url = with_braces(written)?;
        Destination::read(&url)?;
        Ok::<_, &str>(url)
    };
    match read_url() {
        Ok(_) if read.redirects() => {
            values.differ("rewrite-target", "Another annotation redirects the requests before.");
            None
        }
        Ok(url) => {
            read.redirects_hosts = true;
            Some(Target::Url(url))
        }
        Err(why) => {
            values
                .close("rewrite-target", format!("\"{written}\" cannot be the target of a redirect: {why}."));
            None
        }
    }
}

/// Whether a target is a path with references to groups.
fn check_target(target: &str) -> Result<(), &'static str> {
    if !target.starts_with('/') {
        return Err("it has to begin with a slash");
    }
    if target.contains(['?', '#']) {
        return Err("it has more than a path");
    }
    // nginx reads what follows as another argument, and newer versions of ingress-nginx ignore the annotation.
    if target.contains(char::is_whitespace) {
        return Err("it has white space");
    }
    let is_reference = |after: &str| after.starts_with(|letter: char| letter.is_ascii_digit());
    if target.split('$').skip(1).any(|after| !is_reference(after)) {
        return Err("a dollar sign may only stand before the number of a group");
    }
    Ok(())
}

/// The meaning of the paths of an Ingress: regular expressions, with a new path for backends.
#[derive(Debug)]
pub struct Rewriting {
    target: Option<Target>,
    /// Whether all paths are regular expressions, with a target or without one.
    is_asked: bool,
}

/// The place of requests after a rewrite.
#[derive(Debug)]
enum Target {
    /// A path for backends, with references to groups.
    Path(String),
    /// A URL to which requests are redirected, with variables and references in braces.
    Url(String),
}

/// A path in the terms of PingSIX.
#[derive(Debug, PartialEq)]
pub struct PathPattern {
    /// The path without the groups at its end.
    pub path: String,
    /// Whether the regular expression matches every path that begins with this one, also inside an element.
    pub is_open: bool,
    /// The difference to the regular expression, if the path is matched by whole elements.
    pub limitation: Option<&'static str>,
    /// The path for backends, if it changes, or a redirect.
    pub rewrite: Option<PathChange>,
}

/// The path that a backend sees, or a redirect in its place.
#[derive(Debug, PartialEq)]
pub enum PathChange {
    /// This path.
    Full(String),
    /// A path with parts of the one that matched.
    Regex(FilterPath),
    /// No backend gets the request: this filter redirects it.
    Redirect(Box<api::HttpRouteRulesFilters>),
}

/// An end of a regular expression that stands for a prefix.
struct End {
    written: &'static str,
    /// The regular expression for the rest of the path. Each character leaves one way to go on, so PingSIX needs little memory
    /// for it.
    rest: &'static str,
    /// The references to groups of `rest`, by the groups as written.
    groups: &'static [&'static str],
    /// The references to groups as written that stand for the whole rest of the path, with a slash before it.
    whole: &'static [&'static str],
    /// Whether a longer name at this place matches. nginx asks for no match of the whole path.
    is_open: bool,
    limitation: Option<&'static str>,
}

const ENDS: [End; 9] = [
    End {
        written: "(/|$)(.*)",
        rest: "(?:(/)(.*))?",
        groups: &["$1", "$2"],
        whole: &["${1}${2}", "/${2}"],
        is_open: false,
        limitation: None,
    },
    open("(/.*)?", "(?:(/.*)|[^/].*)?", &["$1"], &["${1}"]),
    open("/?(.*)", "(?:/(.*)|([^/].*))?", &["$1$2"], &["/${1}"]),
    below("/(.*)", "(?:/(.*))?", &["$1"], &["/${1}"]),
    below("/.*", "(?:/.*)?", &[], &[]),
    open("(.*)", "(.*)", &["$1"], &["${1}"]),
    open(".*", ".*", &[], &[]),
    open("/?", "/?.*", &[], &[]),
    open("", ".*", &[], &[]),
];

/// Groups, or references to groups.
type Groups = &'static [&'static str];

const fn open(written: &'static str, rest: &'static str, groups: Groups, whole: Groups) -> End {
    End { written, rest, groups, whole, is_open: true, limitation: Some(WHOLE_ELEMENTS) }
}

const fn below(written: &'static str, rest: &'static str, groups: Groups, whole: Groups) -> End {
    End { written, rest, groups, whole, is_open: false, limitation: Some(WITHOUT_SLASH) }
}

const WHOLE_ELEMENTS: &str =
    "PingSIX matches whole elements of a path, so longer names at this place do not match";

const WITHOUT_SLASH: &str = "PingSIX matches the path without the last slash, too";

const OTHER_SLASH: &str =
    "redirects of the path may have another number of slashes where the rest of the path begins";

const PARTS: &str = "the target has parts of the path that a redirect cannot have, which keeps the path or replaces its beginning";

impl Rewriting {
    /// Reads a path.
    ///
    /// # Errors
    ///
    /// The reason why PingSIX cannot match the path, or not redirect its requests.
    pub fn read(&self, written: &str) -> Result<PathPattern, &'static str> {
        let anchored = written.strip_prefix('^').unwrap_or(written);
        let (stem, end) = ENDS
            .iter()
            .filter_map(|end| Some((anchored.strip_suffix(end.written)?, end)))
            .find(|(stem, _)| is_literal(stem))
            .ok_or("the path is a regular expression that stands for no prefix")?;
        let path = if stem.is_empty() { "/".to_owned() } else { stem.to_owned() };
        // The rest behind a slash is an element of its own. Below the root, every path matches.
        let is_below = path.ends_with('/');
        let limitation = if is_below { Some(WITHOUT_SLASH) } else { end.limitation };
        let limitation = limitation.filter(|_| path != "/");
        let mut pattern = PathPattern { path, is_open: end.is_open && !is_below, limitation, rewrite: None };
        match &self.target {
            Some(_) if self.leaves(written) => {}
            Some(Target::Path(target)) => pattern.rewrite = Some(change(target, stem, end)),
            Some(Target::Url(url)) => pattern.redirect(url, stem, end)?,
            None => {}
        }
        Ok(pattern)
    }

    /// Whether a path is the target as it is written. ingress-nginx rewrites none of its requests (`buildProxyPass` of
    /// `internal/ingress/controller/template/template.go`).
    fn leaves(&self, written: &str) -> bool {
        let written = if written.is_empty() { "/" } else { written };
        matches!(&self.target, Some(Target::Path(target)) if target == written)
    }

    /// Whether a path makes ingress-nginx read all paths of its host as regular expressions (`enforceRegexModifier`, also
    /// there).
    pub fn makes_regular(&self, written: &str) -> bool {
        self.is_asked || !self.leaves(written)
    }

    /// Whether all requests are redirected.
    pub const fn is_redirect(&self) -> bool {
        matches!(self.target, Some(Target::Url(_)))
    }
}

impl PathPattern {
    /// Redirects the requests of the path. nginx keeps their query, and has status 302.
    fn redirect(&mut self, url: &str, stem: &str, end: &End) -> Result<(), &'static str> {
        let (destination, rest) = Destination::read(url)?;
        let missing = (end.groups.len() + 1..=9).map(|group| format!("${{{group}}}"));
        let rest = missing.fold(rest.to_owned(), |rest, group| rest.replace(&group, ""));
        let path = path_of_rewrite(&rest, end.whole, stem).map_err(|_| PARTS)?;
        if matches!(path, NewPath::Prefix(_)) {
            // A filter replaces the beginning of a path by whole elements.
            self.is_open = false;
            let whole = end.whole.iter().find(|whole| rest.ends_with(**whole));
            let before = rest.split("${").next().unwrap_or_default();
            let has_own_slash = whole.is_some_and(|whole| whole.starts_with("${"));
            if before.ends_with('/') && (before != "/" || has_own_slash) {
                self.limitation.get_or_insert(OTHER_SLASH);
            }
        }
        let filter = destination.filter(path, RedirectStatus::Found);
        self.rewrite = Some(PathChange::Redirect(Box::new(filter)));
        Ok(())
    }
}

/// Whether a text has no other meaning as a regular expression. A dot is one in practice.
fn is_literal(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/'))
        && !text.contains(['(', ')', '[', ']', '{', '}', '*', '+', '?', '|', '^', '$', '\\'])
}

/// The change of a path to a target. nginx replaces a reference to a missing group by nothing.
fn change(target: &str, stem: &str, end: &End) -> PathChange {
    let mut substitution = String::with_capacity(target.len());
    let mut parts = target.split('$');
    substitution.push_str(parts.next().unwrap_or_default());
    let mut refers = false;
    for part in parts {
        // nginx has groups of one digit.
        let (digit, rest) = part.split_at_checked(1).unwrap_or((part, ""));
        let group = digit.parse::<usize>().ok().and_then(|group| end.groups.get(group.checked_sub(1)?));
        if let Some(group) = group {
            refers = true;
            substitution.push_str(group);
        }
        substitution.push_str(rest);
    }
    if !refers {
        return PathChange::Full(substitution);
    }
    PathChange::Regex(FilterPath {
        kind: FilterPathType::ReplaceRegexMatch,
        pattern: format!("^{}{}$", regex::escape(stem), end.rest),
        substitution,
    })
}
