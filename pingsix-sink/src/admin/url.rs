//! The address of an Admin API.

use std::fmt;
use std::str::FromStr;

use http::Uri;

use crate::loopback::is_loopback;

/// `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AdminUrl {
    plaintext: bool,
    authority: String,
}

/// Error of parsing an [`AdminUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdminUrlError {
    /// The text is no URL.
    #[error("it is not a URL")]
    NotAUrl,
    /// The scheme is neither http nor https.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// The host is absent.
    #[error("it names no host")]
    Host,
    /// The URL has a user or a password, which PingSIX does not use.
    #[error("it holds a user or a password")]
    UserInfo,
    /// The URL has a path or a query; PingSIX's paths are fixed.
    #[error("it has a path or a query")]
    Path,
}

impl AdminUrl {
    /// Whether requests are unencrypted.
    pub(crate) const fn is_plaintext(&self) -> bool {
        self.plaintext
    }

    /// Whether the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let Ok(authority) = self.authority.parse::<http::uri::Authority>() else { return false };
        is_loopback(authority.host())
    }
}

impl FromStr for AdminUrl {
    type Err = AdminUrlError;

    fn from_str(text: &str) -> Result<Self, AdminUrlError> {
        let uri: Uri = text.parse().map_err(|_| AdminUrlError::NotAUrl)?;
        let plaintext = match uri.scheme_str() {
            Some("http") => true,
            Some("https") => false,
            Some(_) | None => return Err(AdminUrlError::Scheme),
        };
        let authority = uri.authority().ok_or(AdminUrlError::Host)?;
        if authority.as_str().contains('@') {
            return Err(AdminUrlError::UserInfo);
        }
        if authority.host().is_empty() {
            return Err(AdminUrlError::Host);
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(AdminUrlError::Path);
        }
        Ok(Self { plaintext, authority: authority.to_string() })
    }
}

impl fmt::Display for AdminUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.plaintext { "http" } else { "https" }, self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_and_a_host() {
        for (text, plaintext, loopback) in [
            ("http://127.0.0.1:9181", true, true),
            ("http://[::1]:9181", true, true),
            ("http://localhost", true, true),
            ("http://10.0.0.1:9181", true, false),
            ("https://admin.test", false, false),
        ] {
            let url: AdminUrl = text.parse().unwrap();
            assert_eq!((url.is_plaintext(), url.is_loopback()), (plaintext, loopback), "{text}");
            assert_eq!(url.to_string(), text);
            assert_eq!(format!("{text}/").parse(), Ok(url));
        }
        for (text, error) in [
            ("http://", AdminUrlError::NotAUrl),
            ("ftp://a", AdminUrlError::Scheme),
            ("a:1", AdminUrlError::Scheme),
            ("http://me:sesame@a", AdminUrlError::UserInfo),
            ("http://a/apisix", AdminUrlError::Path),
            ("http://a?b", AdminUrlError::Path),
        ] {
            assert_eq!(text.parse::<AdminUrl>(), Err(error), "{text}");
        }
    }
}
