//! The URL of a redirect of nginx, as parts that a redirect of Gateway API has.
//!
//! A URL may have variables. Those for the scheme, the host, the path and the query of the request are what a redirect keeps
//! by itself. Any other variable is refused.

use std::borrow::Cow;

use gateway_api::experimental::httproutes as api;

use crate::responder::{RedirectHostname, RedirectStatus};

use api::HttpRouteRulesFiltersRequestRedirectScheme as Scheme;

/// The place to which a redirect leads, without the path.
#[derive(Debug, PartialEq)]
pub(super) struct Destination {
    /// `None` for the scheme of the request.
    scheme: Option<Scheme>,
    /// `None` for the host of the request.
    hostname: Option<String>,
    port: Option<u16>,
}

/// The path of a redirect. The query is kept with each of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NewPath {
    /// The one of the request.
    Keep,
    /// This one.
    Full(String),
    /// This one in place of the path of the rule.
    Prefix(String),
}

/// A text with each variable in braces, so that `$a` and `${a}` are equal. A group is the variable of its digit.
pub(super) fn with_braces(text: &str) -> Result<String, &'static str> {
    let mut parts = text.split('$');
    let mut braced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{') {
            Some(inner) => inner.split_once('}').ok_or(NO_VARIABLE)?,
            None if part.starts_with(|letter: char| letter.is_ascii_digit()) => part.split_at(1),
            None => part.split_at(part.find(|letter| !is_of_name(letter)).unwrap_or(part.len())),
        };
        if name.is_empty() || !name.chars().all(is_of_name) {
            return Err(NO_VARIABLE);
        }
        braced.push_str("${");
        braced.push_str(name);
        braced.push('}');
        braced.push_str(rest);
    }
    Ok(braced)
}

/// Whether nginx redirects to the target of a rewrite, whatever its flag is.
pub(super) fn is_url(target: &str) -> bool {
    ["http://", "https://", "$scheme"].iter().any(|scheme| target.starts_with(scheme))
}

const fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

const NO_VARIABLE: &str = "a dollar sign has no name of a variable behind it";

const OTHER_VARIABLES: &str = "a redirect of Gateway API has no such variable at this place";

impl Destination {
    /// Reads a URL, or a path of the same host, with variables in braces. Returns the rest behind the host, too.
    pub(super) fn read(url: &str) -> Result<(Self, &str), &'static str> {
        let schemes =
            [("https://", Some(Scheme::Https)), ("http://", Some(Scheme::Http)), ("${scheme}://", None)];
        let found = schemes.into_iter().find_map(|(begin, scheme)| Some((scheme, url.strip_prefix(begin)?)));
        let Some((scheme, authority)) = found else {
            let same = Self { scheme: None, hostname: None, port: None };
            return if url.starts_with('/') {
                Ok((same, url))
            } else {
                Err("it needs the scheme http or https")
            };
        };
        let of_request =
            ["${host}", "${http_host}"].into_iter().find_map(|host| authority.strip_prefix(host));
        let (hostname, rest) = if let Some(rest) = of_request {
            (None, rest)
        } else {
            let end = authority.find([':', '/', '?', '#', '$']).unwrap_or(authority.len());
            let (host, rest) = authority.split_at(end);
            let host = host.to_ascii_lowercase();
            if authority.split('/').next().is_some_and(|authority| authority.contains('@')) {
                return Err("it has a user");
            }
            if RedirectHostname::new(&host).is_none() {
                return Err("its host is no hostname");
            }
            (Some(host), rest)
        };
        let (port, rest) = match rest.strip_prefix(':') {
            Some(after) => {
                let end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
                let (port, rest) = after.split_at(end);
                let port = port.parse().ok().filter(|port| *port > 0).ok_or("its port is no number")?;
                (Some(port), rest)
            }
            None => (None, rest),
        };
        if rest.is_empty() || rest.starts_with(['/', '?', '#', '$']) {
            Ok((Self { scheme, hostname, port }, rest))
        } else {
            Err("its host is no hostname")
        }
    }

    /// The filter that redirects to a path of this place.
    pub(super) fn filter(self, path: NewPath, status: RedirectStatus) -> api::HttpRouteRulesFilters {
        use api::HttpRouteRulesFiltersRequestRedirectPath as Path;
        use api::HttpRouteRulesFiltersRequestRedirectPathType as Type;
        let path = match path {
            NewPath::Keep => None,
            NewPath::Full(path) => Some(Path {
                r#type: Type::ReplaceFullPath,
                replace_full_path: Some(path),
                replace_prefix_match: None,
            }),
            NewPath::Prefix(path) => Some(Path {
                r#type: Type::ReplacePrefixMatch,
                replace_full_path: None,
                replace_prefix_match: Some(path),
            }),
        };
        let Self { scheme, hostname, port } = self;
        api::HttpRouteRulesFilters {
            r#type: api::HttpRouteRulesFiltersType::RequestRedirect,
            request_redirect: Some(api::HttpRouteRulesFiltersRequestRedirect {
                scheme,
                hostname,
                port: port.map(i32::from),
                path,
                status_code: Some(i64::from(status.code().as_u16())),
            }),
            ..api::HttpRouteRulesFilters::default()
        }
    }
}

/// The path behind the host of a URL that is sent as it is written, and whether the redirect of the original keeps the query.
pub(super) fn path_as_written(rest: &str) -> Result<(NewPath, bool), &'static str> {
    let (path, keeps_query) = match rest.strip_suffix("${is_args}${args}") {
        Some(path) => (path, true),
        None => match rest.strip_suffix("?${args}").or_else(|| rest.strip_suffix("?${query_string}")) {
            Some(path) => (path, true),
            None => (rest, false),
        },
    };
    match path {
        "${request_uri}" if !keeps_query => Ok((NewPath::Keep, true)),
        "${uri}" | "${document_uri}" => Ok((NewPath::Keep, keeps_query)),
        path => Ok((NewPath::Full(plain_path(path)?.into_owned()), keeps_query)),
    }
}

/// A path without variables, query and fragment.
pub(super) fn plain_path(path: &str) -> Result<Cow<'_, str>, &'static str> {
    if path.contains('$') {
        Err(OTHER_VARIABLES)
    } else if path.contains(['?', '#']) {
        Err("it has more than a path")
    } else if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        Err("its path has characters that a URL lacks")
    } else if path.is_empty() {
        Ok("/".into())
    } else {
        Ok(path.into())
    }
}

/// The path behind the host of a URL to which a rewrite leads, which keeps the query. `whole` are the references to groups that
/// stand for the rest of the path behind `stem`.
pub(super) fn path_of_rewrite(rest: &str, whole: &[&str], stem: &str) -> Result<NewPath, &'static str> {
    if let "${request_uri}" | "${uri}" | "${document_uri}" = rest {
        return Ok(NewPath::Keep);
    }
    match whole.iter().find_map(|whole| rest.strip_suffix(whole)) {
        Some(base) if base == stem => Ok(NewPath::Keep),
        Some(base) => Ok(NewPath::Prefix(plain_path(base)?.into_owned())),
        None => Ok(NewPath::Full(plain_path(rest)?.into_owned())),
    }
}
