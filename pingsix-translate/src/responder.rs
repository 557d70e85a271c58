//! The protocol between translation and the responder, a role of `pingsix-gateway-sidecar`: the instructions in translated
//! documents, which PingSIX sends to the responder, and their parser.
//!
//! The responder is an ordinary PingSIX upstream that gives the answers PingSIX cannot give itself.
//! The responder has no state, so a request carries the complete instruction:
//!
//! | asked for | carried by | why it can be believed |
//! |---|---|---|
//! | a status | the Host: [`status_host`] as `upstream_host` with `pass_host: rewrite` | PingSIX replaces the client's Host |
//! | a redirect | one header, [`REDIRECT_HEADER`], set by the route's `proxy-rewrite` | `set` replaces every value of the client |
//!
//! A status is a property of the upstream because one decision list (`traffic-split`) chooses among upstreams only:
//! the plugins of its route are the same for every entry. A redirect needs the Host the client sent, so its upstream
//! has `pass_host: pass` and the instruction travels in a header instead.
//!
//! # Trust
//!
//! - **The Host is read first.** A request for a status name is answered with that status whatever its headers say.
//!   On a status upstream the Host is PingSIX's and a client cannot change it; the instruction header would be the
//!   client's, and is not read.
//! - **An instruction is one header, complete in itself.** Every field is written out, absent ones as `-`, so there is
//!   nothing a client could add to what the route set. A repeated header is refused: `set` leaves exactly one value,
//!   hence a second one means that the route did not set it. There is one spelling per instruction; others are refused.
//! - **An upstream with `pass_host: pass` may be used only by routes that set the header.** Otherwise a client could
//!   write the instruction. It would redirect nobody but itself, to an address it already knows; the responder reveals
//!   nothing and reaches nothing. The reverse also holds: on a redirect route without fixed hostnames a client may send
//!   a status name as its Host, and gets that status, for its own request only.
//! - An instruction that cannot be read is an error of the sender, never a redirect to somewhere else.

use std::fmt::{self, Write as _};
use std::num::NonZeroU16;

use http::uri::PathAndQuery;
use http::{HeaderMap, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::model::is_dns_subdomain;

/// The domain of all names the responder answers to.
///
/// `.internal` is reserved for private use, so no public name can be meant.
pub const RESPONDER_DOMAIN: &str = "responder.pingsix.internal";

/// The one request header that carries a [`RedirectInstruction`].
pub const REDIRECT_HEADER: &str = "x-pingsix-redirect";

const STATUS_PREFIX: &str = "status-";
const VERSION: &str = "v1";
const ABSENT: &str = "-";

/// The reserved `upstream_host` that makes the responder answer with `status`.
///
/// Only final statuses, 200 to 599, can be asked for.
/// Any other number names 500, so that a mistake fails closed.
///
/// ```
/// assert_eq!(pingsix_translate::responder::status_host(404), "status-404.responder.pingsix.internal");
/// ```
pub fn status_host(status: u16) -> String {
    let status = if (200..=599).contains(&status) { status } else { 500 };
    format!("{STATUS_PREFIX}{status}.{RESPONDER_DOMAIN}")
}

/// The status that `host`, a Host or `:authority` value, asks for; `None` if it is not a name of [`status_host`].
///
/// Upper and lower case are equal and a port is ignored, as in every comparison of hosts.
pub fn parse_status_host(host: &str) -> Option<StatusCode> {
    let host = host_without_port(host)?.to_ascii_lowercase();
    let digits = host.strip_prefix(STATUS_PREFIX)?.strip_suffix(RESPONDER_DOMAIN)?.strip_suffix('.')?;
    // `StatusCode` takes exactly three digits, so there is one spelling per status.
    StatusCode::from_bytes(digits.as_bytes()).ok().filter(|status| (200..=599).contains(&status.as_u16()))
}

/// The host of a Host or `:authority` value without its port; `None` if the value is no host.
///
/// An IPv6 address keeps its brackets. User information, which some clients send and which is not trustworthy, is
/// refused.
pub fn host_without_port(authority: &str) -> Option<&str> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => {
            let inner = &rest[..rest.find(']')?];
            if inner.is_empty() || !inner.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')) {
                return None;
            }
            inner.len() + 2
        }
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if host.is_empty() || !(host.starts_with('[') || host.bytes().all(name)) {
        return None;
    }
    match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(digits) => digits.len() <= 5 && digits.bytes().all(|b| b.is_ascii_digit()),
    }
    .then_some(host)
}

/// The scheme of a URL that a client can be redirected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectScheme {
    /// `http`, port 80 unless stated.
    Http,
    /// `https`, port 443 unless stated.
    Https,
}

impl RedirectScheme {
    /// The scheme as it is written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The well-known port, which a URL of this scheme does not print.
    pub fn well_known_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| scheme.as_str() == text)
    }
}

/// The statuses a `RequestRedirect` filter can ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectStatus {
    /// 301.
    MovedPermanently,
    /// 302, the default of a filter without `statusCode`.
    #[default]
    Found,
    /// 303.
    SeeOther,
    /// 307.
    TemporaryRedirect,
    /// 308.
    PermanentRedirect,
}

impl RedirectStatus {
    const ALL: [Self; 5] = [
        Self::MovedPermanently,
        Self::Found,
        Self::SeeOther,
        Self::TemporaryRedirect,
        Self::PermanentRedirect,
    ];

    /// The status with this number; `None` if it is not one of the five.
    pub fn from_u16(status: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code().as_u16() == status)
    }

    /// The status to answer with.
    pub fn code(self) -> StatusCode {
        match self {
            Self::MovedPermanently => StatusCode::MOVED_PERMANENTLY,
            Self::Found => StatusCode::FOUND,
            Self::SeeOther => StatusCode::SEE_OTHER,
            Self::TemporaryRedirect => StatusCode::TEMPORARY_REDIRECT,
            Self::PermanentRedirect => StatusCode::PERMANENT_REDIRECT,
        }
    }
}

/// A hostname a client can be redirected to: lower case letters, digits, `-` and `.`, at most 253 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectHostname(String);

impl RedirectHostname {
    /// `None` if `name` is not such a hostname; a wildcard is not one.
    pub fn new(name: &str) -> Option<Self> {
        is_dns_subdomain(name).then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The listener of a redirect rule, which the client connected to. The responder cannot observe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedirectListener {
    /// The scheme of its requests; the target's unless the filter names another.
    pub scheme: RedirectScheme,
    /// The port; the target's unless the filter names a port or a scheme.
    pub port: NonZeroU16,
}

/// The change of the request's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectPath {
    /// The path is unchanged.
    Keep,
    /// The whole path is replaced (`ReplaceFullPath`).
    Full(String),
    /// The prefix that matched is replaced (`ReplacePrefixMatch`).
    Prefix {
        /// The value of the path match of the rule.
        matched: String,
        /// The replacement; may be empty.
        replacement: String,
    },
}

impl RedirectPath {
    /// The path of the target, or `None` if `path` is not below the matched prefix.
    fn apply(&self, path: &str) -> Option<String> {
        match self {
            Self::Keep => Some(encode(path, INVISIBLE)),
            Self::Full(value) => Some(rooted(encode(value, PATH))),
            Self::Prefix { matched, replacement } => {
                // `/foo` and `/foo/` are the same prefix.
                let rest = path.strip_prefix(matched.strip_suffix('/').unwrap_or(matched))?;
                let replacement = encode(replacement, PATH);
                match rest.bytes().next() {
                    None => Some(rooted(replacement)),
                    Some(b'/') => {
                        let stem = replacement.strip_suffix('/').unwrap_or(&replacement);
                        Some(rooted(format!("{stem}{}", encode(rest, INVISIBLE))))
                    }
                    Some(_) => None,
                }
            }
        }
    }
}

/// A `RequestRedirect` filter together with the listener it is used on.
///
/// See the [Gateway API reference](https://gateway-api.sigs.k8s.io/reference/spec/#httprequestredirectfilter).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectInstruction {
    /// The status of the answer.
    pub status: RedirectStatus,
    /// The source of the defaults of `scheme` and `port`.
    pub listener: RedirectListener,
    /// The scheme of the target; of the listener if absent.
    pub scheme: Option<RedirectScheme>,
    /// The host of the target; the one the client asked for if absent.
    pub hostname: Option<RedirectHostname>,
    /// The port of the target; if absent, the well-known one of `scheme`, or the listener's if that is absent too.
    pub port: Option<NonZeroU16>,
    /// The path of the target. The query is always kept.
    pub path: RedirectPath,
}

/// Reason why a request with the header has no redirect instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstructionError {
    /// The header is repeated: at least one is not the route's.
    #[error("more than one redirect instruction")]
    Repeated,
    /// The value is none that [`RedirectInstruction::to_headers`] writes.
    #[error("not a redirect instruction of this version")]
    Malformed,
}

/// Reason why an instruction has no target for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// The instruction keeps the host of the request, which has none that could be used.
    #[error("the request has no valid host")]
    Host,
    /// The path of the request is not below the matched prefix of the instruction.
    #[error("the path is not below the matched prefix")]
    Prefix,
}

impl RedirectInstruction {
    /// The headers for the route: entries of `proxy-rewrite.headers.set`, all of them.
    ///
    /// The value is visible ASCII and one space between fields: `v1 STATUS LISTENER-SCHEME:PORT SCHEME HOSTNAME PORT
    /// PATH`, with `-` for an absent one, and `keep`, `full:VALUE` or `prefix:MATCHED:REPLACEMENT` as the last.
    pub fn to_headers(&self) -> [(&'static str, String); 1] {
        [(REDIRECT_HEADER, self.to_string())]
    }

    /// The instruction among the headers of a request; `Ok(None)` if there is none.
    ///
    /// # Errors
    /// If there are several values, or the value is not exactly one that [`to_headers`](Self::to_headers) writes.
    pub fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, InstructionError> {
        let mut values = headers.get_all(REDIRECT_HEADER).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(InstructionError::Repeated);
        }
        let text = value.to_str().map_err(|_| InstructionError::Malformed)?;
        let instruction = Self::parse(text).ok_or(InstructionError::Malformed)?;
        // `+301`, `0443` or `%2f` could be read but are not ours: one spelling means one author.
        if instruction.to_string() == text { Ok(Some(instruction)) } else { Err(InstructionError::Malformed) }
    }

    /// The absolute URL to redirect a request to.
    ///
    /// `host` is the Host or `:authority` of the request; its port plays no part.
    /// The result is ASCII and always has scheme and host, so that a path like `//other.example` stays a path.
    ///
    /// # Errors
    /// If the instruction and the request do not fit each other; see [`LocationError`].
    pub fn location(&self, host: &str, target: &PathAndQuery) -> Result<String, LocationError> {
        let scheme = self.scheme.unwrap_or(self.listener.scheme);
        let host = match &self.hostname {
            Some(hostname) => hostname.as_str(),
            None => host_without_port(host).ok_or(LocationError::Host)?,
        };
        let port = match (self.port, self.scheme) {
            (Some(port), _) => port.get(),
            (None, Some(scheme)) => scheme.well_known_port(),
            (None, None) => self.listener.port.get(),
        };
        // `OPTIONS *` has no path.
        let path = if target.path().starts_with('/') { target.path() } else { "/" };
        let path = self.path.apply(path).ok_or(LocationError::Prefix)?;

        let mut location = format!("{}://{host}", scheme.as_str());
        if port != scheme.well_known_port() {
            let _ = write!(location, ":{port}");
        }
        location.push_str(&path);
        if let Some(query) = target.query() {
            location.push('?');
            location.push_str(&encode(query, INVISIBLE));
        }
        Ok(location)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(' ');
        let mut field = || fields.next();
        if field()? != VERSION {
            return None;
        }
        let status = RedirectStatus::from_u16(field()?.parse().ok()?)?;
        let (scheme, port) = field()?.split_once(':')?;
        let listener = RedirectListener { scheme: RedirectScheme::parse(scheme)?, port: port.parse().ok()? };
        let scheme = optional(field()?, RedirectScheme::parse).ok()?;
        let hostname = optional(field()?, RedirectHostname::new).ok()?;
        let port = optional(field()?, |port| port.parse().ok()).ok()?;
        let path = field()?;
        let path = match path.split_once(':') {
            None => (path == "keep").then_some(RedirectPath::Keep)?,
            Some(("full", value)) => RedirectPath::Full(unescape(value)?),
            Some(("prefix", values)) => {
                let (matched, replacement) = values.split_once(':')?;
                RedirectPath::Prefix { matched: unescape(matched)?, replacement: unescape(replacement)? }
            }
            Some(_) => return None,
        };
        field().is_none().then_some(Self { status, listener, scheme, hostname, port, path })
    }
}

/// The value of [`REDIRECT_HEADER`].
impl fmt::Display for RedirectInstruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RedirectListener { scheme, port } = self.listener;
        write!(f, "{VERSION} {} {}:{port}", self.status.code().as_u16(), scheme.as_str())?;
        write!(f, " {}", self.scheme.map_or(ABSENT, RedirectScheme::as_str))?;
        write!(f, " {}", self.hostname.as_ref().map_or(ABSENT, RedirectHostname::as_str))?;
        match self.port {
            Some(port) => write!(f, " {port}")?,
            None => write!(f, " {ABSENT}")?,
        }
        match &self.path {
            RedirectPath::Keep => f.write_str(" keep"),
            RedirectPath::Full(value) => write!(f, " full:{}", encode(value, FIELD)),
            RedirectPath::Prefix { matched, replacement } => {
                write!(f, " prefix:{}:{}", encode(matched, FIELD), encode(replacement, FIELD))
            }
        }
    }
}

/// A field that may be [`ABSENT`].
fn optional<'t, T>(
    field: &'t str,
    read: impl FnOnce(&'t str) -> Option<T>,
) -> Result<Option<T>, InstructionError> {
    if field == ABSENT { Ok(None) } else { read(field).map(Some).ok_or(InstructionError::Malformed) }
}

fn rooted(path: String) -> String {
    if path.starts_with('/') { path } else { format!("/{path}") }
}

/// A path in a form for a request line: existing percent-encoding stays, and `?` starts no query.
pub(crate) fn encode_path(text: &str) -> String {
    encode(text, PATH)
}

/// Percent-encodes characters of a text.
fn encode(text: &str, escaped: &'static AsciiSet) -> String {
    utf8_percent_encode(text, escaped).to_string()
}

/// Undoes [`encode`].
fn unescape(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

/// Everything in a field but letters, digits and characters that are neither `%` nor a separator of the format.
const FIELD: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// As [`FIELD`] in a path: existing percent-encoding stays, and `?` starts no query.
const PATH: &AsciiSet = &FIELD.remove(b':').remove(b'%');

/// Everything in a request but the visible characters of ASCII, which are given back as they came.
const INVISIBLE: &AsciiSet = &CONTROLS.add(b' ');

#[cfg(test)]
mod tests;
