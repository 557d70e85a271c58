//! The forms of texts in Gateway API and Kubernetes, by the patterns of their definitions.

use std::sync::OnceLock;

use regex::Regex;

/// The form of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// A part of a DNS name.
    Label,
    /// A DNS name.
    Subdomain,
    /// A DNS name, perhaps with a wildcard before it.
    Hostname,
    /// An API group, empty for that of Kubernetes.
    GroupName,
    KindName,
    /// A name of a header, or of a query parameter.
    Token,
    HeaderValue,
    Duration,
    /// A path of a URI.
    UriPath,
    /// An origin of CORS.
    Origin,
    ControllerName,
    /// The protocol of a listener.
    Protocol,
    /// A set of well-known authorities.
    WellKnownAuthorities,
    /// A URI with a scheme and an authority.
    Uri,
    LabelValue,
    /// A name of an annotation or a label, perhaps after a domain.
    AnnotationName,
}

/// The number of forms.
const COUNT: usize = Format::AnnotationName as usize + 1;

impl Format {
    /// Whether a text has the form. The length is a limit of its own.
    pub(super) fn holds(self, text: &str) -> bool {
        static COMPILED: [OnceLock<Regex>; COUNT] = [const { OnceLock::new() }; COUNT];
        let compile = || Regex::new(self.row().0).expect("the patterns of the table are valid");
        COMPILED[self as usize].get_or_init(compile).is_match(text)
    }

    /// The form in words, after "has to be".
    pub(super) const fn in_words(self) -> &'static str {
        self.row().1
    }

    /// The pattern, and the form in words.
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Label => (
                r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
                "lower-case letters, digits and '-', with a letter or digit at both ends",
            ),
            Self::Subdomain => (
                r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
                "a DNS name of lower-case letters, digits and '-', whose parts between points begin and end with a letter or digit",
            ),
            Self::Hostname => (
                r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
                "a DNS name of lower-case letters, digits and '-', which may begin with '*.'",
            ),
            Self::GroupName => (
                r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
                "a DNS name, or empty for the core group",
            ),
            Self::KindName => {
                (r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", "letters, digits and '-', with a letter first")
            }
            Self::Token => {
                (r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$", "a token of HTTP: letters, digits and !#$%&'*+-.^_`|~")
            }
            Self::HeaderValue => {
                (r"^[!-~]+([\t ]?[!-~]+)*$", "visible ASCII characters with single blanks between them")
            }
            Self::Duration => (r"^([0-9]{1,5}(h|m|s|ms)){1,4}$", "a duration such as 10s, 500ms or 1h30m"),
            Self::UriPath => (r"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$", "the path of a URI"),
            Self::Origin => (
                r"(^\*$)|(^(http(s)?)://(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:([0-9]{1,5}))?)$)",
                "'*', or a scheme and a host such as https://shop.example.com or https://*.example.com",
            ),
            Self::ControllerName => (
                r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$",
                "a domain and a path such as pingsix.io/gateway-controller",
            ),
            // The published pattern leaves the begin of a domain open.
            Self::Protocol => (
                r"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]+$",
                "HTTP, HTTPS, TLS, TCP, UDP, or a domain and a name such as example.com/mine",
            ),
            Self::WellKnownAuthorities => (
                r"^(System|([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]))$",
                "System, or a domain and a name such as example.com/mine",
            ),
            Self::Uri => {
                (r"^(([^:/?#]+):)(//([^/?#]*))([^?#]*)(\?([^#]*))?(#(.*))?", "a URI with a scheme and a host")
            }
            Self::LabelValue => (
                r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
                "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
            ),
            Self::AnnotationName => (
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$",
                "at most 63 letters, digits, '-', '_' and '.', perhaps after a domain and '/'",
            ),
        }
    }
}
