//! Snippets: directives of nginx whose meaning is a redirect or a change of headers.
//!
//! A snippet is read by its directives. Each has a counterpart among the filters of a rule, or closes the Ingress: any other
//! directive may protect it.

mod directives;
mod headers;

use super::destination::{Destination, NewPath, is_url, path_as_written, path_of_rewrite, with_braces};
use super::{
    BackendProtocol, Concern, DirectiveOfSnippet, IngressAnnotations, SNIPPET, Support, Values, lines,
    protects,
};
use crate::responder::RedirectStatus;
use directives::{Directive, split};
use headers::Headers;

use gateway_api::experimental::httproutes as api;

const SIMPLE: &str =
    "Redirects and headers without variables are honoured. Any other directive closes the Ingress.";

const SIMPLE_FOR_PATHS: &str = "Redirects and headers of responses without variables are honoured for the paths of the Ingress, \
                                and not for those of other Ingresses with the same host. Any other directive closes the Ingress.";

/// The directives of a location.
const LOCATION: &str = "configuration-snippet";

/// The directives of a server.
const SERVER: &str = "server-snippet";

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        lines(protects(LOCATION, Support::Limited(SIMPLE))),
        lines(protects(SERVER, Support::Limited(SIMPLE_FOR_PATHS))),
    ],
    read,
};

/// The most directives of a snippet.
const MAX_DIRECTIVES: usize = 64;

/// A directive that is understood.
struct Understood {
    /// The effect, as the rest of a sentence.
    effect: &'static str,
    is_exact: bool,
}

/// A directive that is honoured as it is written.
const fn exact(effect: &'static str) -> Understood {
    Understood { effect, is_exact: true }
}

/// A directive that is honoured with a difference.
const fn limited(effect: &'static str) -> Understood {
    Understood { effect, is_exact: false }
}

/// The filters for directives.
#[derive(Default)]
struct Filters {
    redirect: Option<api::HttpRouteRulesFilters>,
    headers: Headers,
    /// Whether backends get gRPC, whose headers have a directive of their own.
    is_grpc: bool,
    /// Whether the requests are redirected, here or by another annotation.
    is_redirected: bool,
    /// The names of the directives of the location.
    of_location: Vec<String>,
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let is_grpc = matches!(read.backend_protocol, BackendProtocol::Grpc | BackendProtocol::Grpcs);
    let is_redirect = |name: &String| matches!(name.as_str(), "return" | "rewrite");
    let is_redirected = [SERVER, LOCATION]
        .into_iter()
        .any(|name| names(values, name).iter().any(is_redirect))
        || ["temporal-redirect", "permanent-redirect"].into_iter().any(|name| values.text(name).is_some())
        || values.text("rewrite-target").is_some_and(is_url);
    let of_location = names(values, LOCATION);
    let mut filters = Filters { is_grpc, is_redirected, of_location, ..Filters::default() };
    // nginx asks the server before a location.
    for name in [SERVER, LOCATION] {
        if let Err(problem) = read_snippet(name, values, read, &mut filters) {
            values.refuse(name, problem);
        }
    }
    let Filters { redirect, headers, .. } = filters;
    let of_headers = headers.filters();
    if !of_headers.is_empty() && !is_redirected {
        let name = if values.text(LOCATION).is_some() { LOCATION } else { SERVER };
        read.sources.insert(SNIPPET, values.whole_name(name));
        for filter in of_headers {
            read.add_filter(filter);
        }
    }
    if let Some(redirect) = redirect {
        read.redirects_hosts = true;
        read.filters.push(redirect);
    }
}

/// The names of the directives of a snippet.
fn names(values: &Values<'_>, name: &str) -> Vec<String> {
    let directives = values.text(name).and_then(|text| split(text).ok()).unwrap_or_default();
    directives.into_iter().filter_map(|directive| directive.words.into_iter().next()).collect()
}

/// Reads a snippet.
///
/// # Errors
///
/// A sentence about the first directive that is not understood.
fn read_snippet(
    name: &'static str,
    values: &mut Values<'_>,
    read: &mut IngressAnnotations,
    filters: &mut Filters,
) -> Result<(), String> {
    let Some(text) = values.text(name) else { return Ok(()) };
    let directives = split(text).map_err(|line| format!("Line {line} is no directive of nginx."))?;
    if directives.len() > MAX_DIRECTIVES {
        return Err(format!("The snippet has more than {MAX_DIRECTIVES} directives."));
    }
    for directive in &directives {
        let Understood { effect, is_exact } = filters.read(directive, name == SERVER).map_err(|why| {
            format!("Line {}: PingSIX has no counterpart of {}: {why}.", directive.line, directive.label())
        })?;
        let sentence = format!("Line {}: {} {effect}.", directive.line, directive.label());
        if !is_exact {
            values.differ(name, sentence.as_str());
        }
        read.directives.push(DirectiveOfSnippet { annotation: name, sentence, is_exact });
    }
    if name == SERVER && !directives.is_empty() {
        values.differ(name, "Paths of other Ingresses with the same host lack the effect.");
    }
    Ok(())
}

impl Filters {
    /// Reads a directive.
    fn read(&mut self, directive: &Directive, is_server: bool) -> Result<Understood, &'static str> {
        let words: Vec<&str> = directive.words.iter().map(String::as_str).collect();
        if directive.has_block {
            return Err("blocks are not read");
        }
        match words.as_slice() {
            ["return", rest @ ..] => self.answer(rest),
            ["rewrite", pattern, replacement] => self.rewrite(pattern, replacement, None),
            ["rewrite", pattern, replacement, flag] => self.rewrite(pattern, replacement, Some(flag)),
            words => {
                let understood = self.header(words, is_server)?;
                Ok(if self.is_redirected { limited("has no effect on a redirect") } else { understood })
            }
        }
    }

    /// Directives that change headers.
    fn header(&mut self, words: &[&str], is_server: bool) -> Result<Understood, &'static str> {
        let to_backends = if self.is_grpc { "grpc_set_header" } else { "proxy_set_header" };
        match words {
            ["proxy_set_header" | "grpc_set_header", _, _] if is_server => {
                // A list of a location takes the place of the list of its server.
                Ok(exact("has no effect, because all locations of ingress-nginx set headers of their own"))
            }
            [name @ ("add_header" | "proxy_hide_header"), ..]
                if is_server && self.of_location.iter().any(|own| own == name) =>
            {
                Ok(exact("has no effect, because the location has such directives of its own"))
            }
            [name @ ("proxy_set_header" | "grpc_set_header"), header, value] => {
                if *name == to_backends {
                    self.headers.send(header, value)
                } else {
                    Err("the protocol of the backends has another directive for their headers")
                }
            }
            ["add_header", header, value] => self.headers.add(header, value, false),
            ["add_header", header, value, "always"] => self.headers.add(header, value, true),
            ["proxy_hide_header", header] if !self.is_grpc => self.headers.hide(header),
            ["more_set_headers", headers @ ..] if !headers.is_empty() => self.headers.set(headers),
            ["more_clear_headers", headers @ ..] if !headers.is_empty() => self.headers.clear(headers),
            _ => Err("no filter has its meaning"),
        }
    }

    /// `return`.
    fn answer(&mut self, words: &[&str]) -> Result<Understood, &'static str> {
        let (status, url) = match words {
            [url] if is_url(url) => (RedirectStatus::Found, url),
            [status, url] => {
                let status = status.parse().ok().and_then(RedirectStatus::from_u16);
                (status.ok_or("it is no redirect")?, url)
            }
            _ => return Err("it is no redirect"),
        };
        let url = with_braces(url)?;
        let (destination, rest) = Destination::read(&url)?;
        let (path, keeps_query) = path_as_written(rest)?;
        self.redirect_to(destination, path, status)?;
        Ok(if keeps_query { exact(REDIRECT) } else { limited(REDIRECT_WITH_QUERY) })
    }

    /// `rewrite`.
    fn rewrite(
        &mut self,
        pattern: &str,
        replacement: &str,
        flag: Option<&str>,
    ) -> Result<Understood, &'static str> {
        let status = match flag {
            Some("permanent") => RedirectStatus::MovedPermanently,
            Some("redirect") => RedirectStatus::Found,
            Some("break" | "last") | None if is_url(replacement) => RedirectStatus::Found,
            _ => return Err("it is no redirect"),
        };
        let whole = every_path(pattern).ok_or("its pattern does not match every path")?;
        let url = with_braces(replacement)?;
        // A question mark at the end keeps nginx from adding the query.
        let (url, adds_query) = url.strip_suffix('?').map_or((url.as_str(), true), |url| (url, false));
        let (destination, rest) = Destination::read(url)?;
        let has_query = rest == "${request_uri}";
        let path = path_of_rewrite(rest, whole, "")?;
        if let NewPath::Prefix(_) = path {
            return Err("it puts a path before the one of the request");
        }
        self.redirect_to(destination, path, status)?;
        Ok(match (has_query, adds_query) {
            (true, false) | (false, true) => exact(REDIRECT),
            (true, true) => limited("becomes requestRedirect of the rules, and nginx repeats the query"),
            (false, false) => limited(REDIRECT_WITH_QUERY),
        })
    }

    fn redirect_to(
        &mut self,
        destination: Destination,
        path: NewPath,
        status: RedirectStatus,
    ) -> Result<(), &'static str> {
        if self.redirect.is_some() {
            return Err("another directive redirects the requests before");
        }
        self.redirect = Some(destination.filter(path, status));
        Ok(())
    }
}

const REDIRECT: &str = "becomes requestRedirect of the rules";

const REDIRECT_WITH_QUERY: &str = "becomes requestRedirect of the rules, which keeps the query of a request";

/// For a pattern that matches every path: the references to its groups that stand for the whole path.
fn every_path(pattern: &str) -> Option<&'static [&'static str]> {
    let begins = pattern.strip_prefix('^').unwrap_or(pattern);
    match begins.strip_suffix('$').unwrap_or(begins) {
        "(.*)" => Some(&["${1}"]),
        "/(.*)" | "/?(.*)" => Some(&["/${1}"]),
        ".*" | "/.*" => Some(&[]),
        // Only without an end does such a pattern match longer paths.
        "" | "/" if !pattern.ends_with('$') => Some(&[]),
        _ => None,
    }
}
