//! The redirect filter (Gateway API `HTTPRequestRedirectFilter`).

use std::num::NonZeroU16;

use gateway_api::experimental::httproutes as api;

use super::pattern::memory_of_prefix;
use super::rewrite::WrittenPath;
use crate::model::{FieldPath, Hostname, Reason, Refusal};
use crate::normalise::Match;
use crate::responder::{RedirectHostname, RedirectPath, RedirectScheme, RedirectStatus};

/// A `RequestRedirect` filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) status: RedirectStatus,
    pub(crate) scheme: Option<RedirectScheme>,
    pub(crate) hostname: Option<RedirectHostname>,
    pub(crate) port: Option<NonZeroU16>,
    pub(crate) path: RedirectPath,
}

impl Redirect {
    /// A redirect to another path of the same host.
    pub(crate) const fn to_path(status: RedirectStatus, path: String) -> Self {
        Self { status, scheme: None, hostname: None, port: None, path: RedirectPath::Full(path) }
    }

    /// The memory that PingSIX may need for the patterns.
    pub(super) fn pattern_memory(&self) -> usize {
        match &self.path {
            RedirectPath::Prefix { matched, .. } => memory_of_prefix(matched.len()),
            RedirectPath::Keep | RedirectPath::Full(_) => 0,
        }
    }

    /// A redirect to the same URL with HTTPS.
    pub(crate) const fn to_https(status: RedirectStatus) -> Self {
        let scheme = Some(RedirectScheme::Https);
        Self { status, scheme, hostname: None, port: None, path: RedirectPath::Keep }
    }

    /// A redirect to the same path of another host, with the port of the scheme or of the listener; `None` if the host is a
    /// wildcard.
    pub(crate) fn to_host(
        status: RedirectStatus,
        scheme: Option<RedirectScheme>,
        host: &Hostname,
    ) -> Option<Self> {
        let hostname = Some(RedirectHostname::new(host.as_str())?);
        Some(Self { status, scheme, hostname, port: None, path: RedirectPath::Keep })
    }

    /// Reads a filter in a rule with some matches; parts that cannot be honoured are refused.
    pub(super) fn read(
        redirect: &api::HttpRouteRulesFiltersRequestRedirect,
        matches: &[Match],
        at: &FieldPath,
        refusals: &mut Vec<Refusal>,
    ) -> Self {
        let mut refuse = |field: &str, message: String| {
            refusals.push(Refusal::new(at.child(field), Reason::UnsupportedValue, message));
        };
        let status = match redirect.status_code {
            None => Some(RedirectStatus::default()),
            Some(code) => u16::try_from(code).ok().and_then(RedirectStatus::from_u16),
        };
        let status = status.unwrap_or_else(|| {
            refuse("statusCode", "A redirect has status 301, 302, 303, 307 or 308.".to_owned());
            RedirectStatus::default()
        });
        let scheme = redirect.scheme.as_ref().map(|scheme| match scheme {
            api::HttpRouteRulesFiltersRequestRedirectScheme::Http => RedirectScheme::Http,
            api::HttpRouteRulesFiltersRequestRedirectScheme::Https => RedirectScheme::Https,
        });
        let hostname = redirect.hostname.as_deref().and_then(|name| {
            let hostname = RedirectHostname::new(&name.to_ascii_lowercase());
            if hostname.is_none() {
                refuse("hostname", format!("\"{name}\" is not a hostname."));
            }
            hostname
        });
        let port = redirect.port.and_then(|port| {
            let number = u16::try_from(port).ok().and_then(NonZeroU16::new);
            if number.is_none() {
                refuse("port", format!("{port} is not a port number."));
            }
            number
        });
        let path = redirect.path.as_ref().and_then(|path| {
            let written = WrittenPath {
                is_full: path.r#type == api::HttpRouteRulesFiltersRequestRedirectPathType::ReplaceFullPath,
                full: path.replace_full_path.as_deref(),
                prefix: path.replace_prefix_match.as_deref(),
            };
            written.read(matches, &at.child("path"), refusals)
        });
        Self { status, scheme, hostname, port, path: path.unwrap_or(RedirectPath::Keep) }
    }
}
