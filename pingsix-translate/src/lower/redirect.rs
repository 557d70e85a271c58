//! Redirects: by PingSIX itself if its answer is right on HTTP/1.1 and HTTP/2, by the responder otherwise.
//!
//! PingSIX's `redirect` writes a relative `Location` on HTTP/1.1 and one with the request's scheme and authority on
//! HTTP/2 (`src/plugins/redirect.rs`). Both are right when only the path changes, unless the new path could start
//! with two slashes, which a client parses as a host. With `http_to_https` the URL is absolute on both.

use std::num::NonZeroU16;

use crate::attach::Protocol;
use crate::model::Hostname;
use crate::normalise::{Redirect, replace_prefix, rooted};
use crate::pingsix::plugin::{self, Header, HeaderChanges};
use crate::responder::{RedirectInstruction, RedirectListener, RedirectPath, RedirectScheme, encode_path};

/// A port that requests may come in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryPort {
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    /// Whether PingSIX gets requests of HTTPS in plaintext.
    pub(crate) is_fronted: bool,
}

/// The plugin that redirects by itself, if there is one that is right for every request; for a host, and the
/// entrances its requests may come in by.
pub(super) fn native(
    redirect: &Redirect,
    host: Option<&Hostname>,
    entrances: &[EntryPort],
) -> Option<plugin::Redirect> {
    // PingSIX takes the requests for plaintext.
    if entrances.iter().any(|entry_port| entry_port.is_fronted) {
        return None;
    }
    let ret_code = redirect.status.code().as_u16();
    let in_place = plugin::Redirect { ret_code, append_query_string: true, ..plugin::Redirect::default() };
    match redirect {
        Redirect { scheme: None, hostname: None, port: None, path, .. } => match path {
            RedirectPath::Keep => None,
            RedirectPath::Full(value) => {
                let uri = rooted(&encode_path(value));
                Some(uri)
                    .filter(|uri| is_plain(uri))
                    .map(|uri| plugin::Redirect { uri: Some(uri), ..in_place })
            }
            RedirectPath::Prefix { matched, replacement } => {
                let to = rooted(&encode_path(replacement));
                let is_root = to.trim_end_matches('/').is_empty();
                (is_plain(&to) && !is_root)
                    .then(|| plugin::Redirect { regex_uri: replace_prefix(matched, replacement), ..in_place })
            }
        },
        Redirect { scheme: Some(RedirectScheme::Https), path: RedirectPath::Keep, .. } => {
            let plaintext_only = entrances.iter().all(|entry_port| entry_port.protocol == Protocol::Http);
            plaintext_only.then(|| to_https(redirect, host)).flatten()
        }
        _ => None,
    }
}

/// Whether a redirect leads to HTTPS and changes no path, so that [`to_https`] has it for single hosts.
pub(super) const fn is_to_https(redirect: &Redirect) -> bool {
    matches!(redirect, Redirect { scheme: Some(RedirectScheme::Https), path: RedirectPath::Keep, .. })
}

/// The plugin that sends requests without TLS to HTTPS and lets others pass; `None` when the redirect is another one,
/// or the host of its target is not one name.
pub(super) fn to_https(redirect: &Redirect, host: Option<&Hostname>) -> Option<plugin::Redirect> {
    let Redirect { status, scheme: Some(RedirectScheme::Https), hostname, port, path: RedirectPath::Keep } =
        redirect
    else {
        return None;
    };
    let name = match hostname {
        Some(hostname) => hostname.as_str(),
        None => host.filter(|host| !host.is_wildcard())?.as_str(),
    };
    let redirect_host = match port {
        Some(port) if port.get() != RedirectScheme::Https.well_known_port() => format!("{name}:{port}"),
        Some(_) | None => name.to_owned(),
    };
    Some(plugin::Redirect {
        http_to_https: true,
        redirect_host: Some(redirect_host),
        ret_code: status.code().as_u16(),
        ..plugin::Redirect::default()
    })
}

/// Not taken for a host by clients, and not for a reference to a group by PingSIX's templates.
fn is_plain(path: &str) -> bool {
    !path.starts_with("//") && !path.contains('$')
}

/// The instruction to the responder; `None` when it depends on the port of a request, and there are several.
pub(super) fn instruction(redirect: &Redirect, entrances: &[EntryPort]) -> Option<RedirectInstruction> {
    let Redirect { status, scheme, hostname, port, path } = redirect.clone();
    let mut listeners = entrances.iter().filter_map(|entry_port| {
        Some(RedirectListener {
            scheme: match entry_port.protocol {
                Protocol::Https => RedirectScheme::Https,
                Protocol::Http | Protocol::Tls | Protocol::Tcp | Protocol::Udp => RedirectScheme::Http,
            },
            port: NonZeroU16::new(entry_port.port)?,
        })
    });
    let listener = listeners.next()?;
    let alike = |other: RedirectListener| {
        let same_scheme = scheme.is_some() || other.scheme == listener.scheme;
        let same_port = scheme.is_some() || port.is_some() || other.port == listener.port;
        same_scheme && same_port
    };
    listeners.all(alike).then_some(RedirectInstruction { status, listener, scheme, hostname, port, path })
}

/// The headers that instruct the responder, in place of changes for a backend: the request goes no further.
pub(super) fn headers(instruction: &RedirectInstruction) -> HeaderChanges {
    let header = |(name, value): (&str, String)| Header { name: name.to_owned(), value };
    HeaderChanges {
        set: instruction.to_headers().into_iter().map(header).collect(),
        ..HeaderChanges::default()
    }
}

#[cfg(test)]
mod tests;
