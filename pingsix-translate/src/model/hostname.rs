//! Hostnames with an optional leading wildcard label, and their algebra.

use std::fmt;
use std::sync::Arc;

/// A lower-case DNS name, or `*.` followed by one. A wildcard stands for one or more labels.
///
/// Gateway API `Hostname`; PingSIX's host matching agrees on the meaning (`src/proxy/route.rs`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hostname(Arc<str>);

/// Reason why a text is no hostname.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostnameError {
    /// Empty, or longer than 253 characters.
    Length,
    /// A label is empty, too long, or starts or ends with a hyphen.
    Label,
    /// A character other than letters, digits, hyphen and dot.
    Character,
    /// A wildcard anywhere else than as the whole first label, or alone.
    Wildcard,
    /// An IP address.
    IpAddress,
}

impl fmt::Display for HostnameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "it is empty or longer than 253 characters",
            Self::Label => "a label is empty, longer than 63 characters, or starts or ends with a hyphen",
            Self::Character => "it contains a character other than letters, digits, hyphens and dots",
            Self::Wildcard => "a wildcard must be the whole first label and have a name behind it",
            Self::IpAddress => "it is an IP address",
        })
    }
}

impl std::error::Error for HostnameError {}

impl Hostname {
    /// Parses a hostname; upper case is accepted and lowered.
    ///
    /// # Errors
    /// Why the text is no hostname.
    pub fn parse(text: &str) -> Result<Self, HostnameError> {
        if text.is_empty() || text.len() > 253 {
            return Err(HostnameError::Length);
        }
        let domain = text.strip_prefix("*.").unwrap_or(text);
        if domain.contains('*') || domain.is_empty() {
            return Err(HostnameError::Wildcard);
        }
        if domain.parse::<std::net::IpAddr>().is_ok() {
            return Err(HostnameError::IpAddress);
        }
        for label in domain.split('.') {
            if label.bytes().any(|byte| !byte.is_ascii_alphanumeric() && byte != b'-') {
                return Err(HostnameError::Character);
            }
            if label.is_empty() || label.len() > 63 || label.starts_with('-') || label.ends_with('-') {
                return Err(HostnameError::Label);
            }
        }
        Ok(Self(Arc::from(text.to_ascii_lowercase())))
    }

    /// The text, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it starts with `*.`.
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with('*')
    }

    /// For a wildcard, the common end of the names that it matches, with its dot.
    fn suffix(&self) -> Option<&str> {
        self.0.strip_prefix('*')
    }

    /// Whether this pattern matches every name that `other` matches.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || self.covers_strictly(other)
    }

    /// Whether this pattern matches every name that `other` matches, and further names.
    pub fn covers_strictly(&self, other: &Self) -> bool {
        self.suffix().is_some_and(|suffix| {
            // `*.a.com` is covered by `*.com`, and so is `a.com`; the leading star counts as a character.
            other.0.len() > suffix.len() && other.0.ends_with(suffix) && self != other
        })
    }

    /// The wildcards that cover this hostname strictly, longest first.
    pub(crate) fn wider(&self) -> impl Iterator<Item = Self> + '_ {
        fn parent(name: &str) -> Option<&str> {
            name.split_once('.').map(|(_, parent)| parent)
        }
        let domain = self.0.strip_prefix("*.").unwrap_or(&self.0);
        std::iter::successors(parent(domain), |name| parent(name))
            .map(|parent| Self(Arc::from(format!("*.{parent}"))))
    }

    /// The names that both match. Two patterns are disjoint, or one covers the other.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        if self.covers(other) {
            Some(other.clone())
        } else if other.covers(self) {
            Some(self.clone())
        } else {
            None
        }
    }

    /// Whether the pattern matches the host of a request, which has no port.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        match self.suffix() {
            None => *self.0 == *host,
            Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        }
    }

    /// Rank among the patterns that match one host: exact before wildcard, then by length. At least 3, at most
    /// 511, so it fits 9 bits beside 0 for "any host".
    pub fn precedence(&self) -> u32 {
        // `parse` bounds the length by 253.
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX).min(255);
        if self.is_wildcard() { length } else { 256 + length }
    }
}

impl fmt::Display for Hostname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Rank of an optional hostname; `None` matches every host and ranks lowest.
pub(crate) fn precedence(hostname: Option<&Hostname>) -> u32 {
    hostname.map_or(0, Hostname::precedence)
}

/// The hostnames that stand for every host of another one and for more, longest first; none stands for every host.
pub(crate) fn wider(hostname: Option<&Hostname>) -> impl Iterator<Item = Option<Hostname>> + '_ {
    hostname.into_iter().flat_map(|hostname| hostname.wider().map(Some).chain([None]))
}

/// A hostname and those that stand for its hosts and for more, longest first.
pub(crate) fn and_wider(hostname: Option<&Hostname>) -> impl Iterator<Item = Option<Hostname>> + '_ {
    std::iter::once(hostname.cloned()).chain(wider(hostname))
}

/// Whether `wider` matches every name that `narrower` matches; `None` matches every host.
pub(crate) fn covers(wider: Option<&Hostname>, narrower: Option<&Hostname>) -> bool {
    match (wider, narrower) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wider), Some(narrower)) => wider.covers(narrower),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Hostname {
        Hostname::parse(text).unwrap()
    }

    #[test]
    fn a_wildcard_covers_any_number_of_labels_but_not_the_apex() {
        assert!(host("*.example.com").covers(&host("a.example.com")));
        assert!(host("*.example.com").covers(&host("a.b.example.com")));
        assert!(host("*.example.com").covers(&host("*.b.example.com")));
        assert!(!host("*.example.com").covers(&host("example.com")));
        assert!(!host("*.example.com").covers(&host("aexample.com")));
        assert!(!host("a.example.com").covers(&host("*.example.com")));
        assert!(!host("*.example.com").covers_strictly(&host("*.example.com")));
    }

    #[test]
    fn intersections_follow_the_table_of_the_specification() {
        let cases = [
            ("a.example.com", "*.example.com", Some("a.example.com")),
            ("*.example.com", "a.b.example.com", Some("a.b.example.com")),
            ("*.example.com", "*.example.com", Some("*.example.com")),
            ("*.example.com", "*.b.example.com", Some("*.b.example.com")),
            ("*.example.com", "example.com", None),
            ("a.example.com", "b.example.com", None),
        ];
        for (listener, route, served) in cases {
            assert_eq!(
                host(listener).intersection(&host(route)),
                served.map(host),
                "{listener} with {route}"
            );
        }
    }

    #[test]
    fn hosts_are_matched_without_regard_to_case() {
        assert!(host("Example.COM").matches("eXample.com"));
        assert!(host("*.example.com").matches("a.b.EXAMPLE.com"));
        assert!(!host("*.example.com").matches(".example.com"));
    }

    #[test]
    fn exact_names_precede_wildcards_of_any_length() {
        assert!(host("a.b").precedence() > host("*.some.very.long.example.com").precedence());
        assert!(host("*.b.example.com").precedence() > host("*.example.com").precedence());
        assert!(precedence(None) < host("*.a").precedence());
    }

    #[test]
    fn impossible_conditions_are_refused() {
        for (text, error) in [
            ("", HostnameError::Length),
            ("*", HostnameError::Wildcard),
            ("*.", HostnameError::Wildcard),
            ("a.*.com", HostnameError::Wildcard),
            ("*a.com", HostnameError::Wildcard),
            ("10.0.0.1", HostnameError::IpAddress),
            ("::1", HostnameError::IpAddress),
            ("a_b.com", HostnameError::Character),
            ("a.com:80", HostnameError::Character),
            ("a.com.", HostnameError::Label),
            ("-a.com", HostnameError::Label),
            ("a..com", HostnameError::Label),
        ] {
            assert_eq!(Hostname::parse(text), Err(error), "{text}");
        }
    }
}
