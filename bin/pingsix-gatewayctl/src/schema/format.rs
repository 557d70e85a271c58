//! The forms of texts in Gateway API and Kubernetes.

use pingsix_translate::is_dns_label;

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
}

impl Format {
    /// Whether a text has the form. The length is a limit of its own.
    pub(super) fn holds(self, text: &str) -> bool {
        match self {
            Self::Label => is_dns_label(text),
            Self::Subdomain => is_subdomain(text),
            Self::Hostname => is_hostname(text),
            Self::GroupName => text.is_empty() || is_subdomain(text),
            Self::KindName => {
                text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && text.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            }
            Self::Token => !text.is_empty() && text.bytes().all(is_token),
            Self::HeaderValue => is_header_value(text),
            Self::Duration => milliseconds(text).is_some(),
            Self::UriPath => is_uri_path(text),
            Self::Origin => is_origin(text),
            Self::ControllerName => {
                let is_byte = |byte| byte == b'%' || (byte != b'@' && is_path_byte(byte));
                is_domain_prefixed(text, |path| path.bytes().all(is_byte))
            }
            Self::Protocol => {
                // The published pattern leaves the begin of a domain open.
                let is_name =
                    |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
                let is_domain =
                    |domain: &str| domain.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
                let parts = text.rsplit_once('/');
                is_dns_label(&text.to_ascii_lowercase())
                    || parts.is_some_and(|(domain, name)| is_domain(domain) && is_name(name))
            }
            Self::WellKnownAuthorities => text == "System" || is_domain_prefixed(text, is_qualified_name),
            Self::Uri => {
                let (scheme, rest) = text.split_once(':').unwrap_or_default();
                !scheme.is_empty() && !scheme.contains(['/', '?', '#']) && rest.starts_with("//")
            }
            Self::LabelValue => text.is_empty() || is_qualified_name(text),
        }
    }

    /// The form in words, after "has to be".
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Label => "lower-case letters, digits and '-', with a letter or digit at both ends",
            Self::Subdomain => {
                "a DNS name of lower-case letters, digits and '-', whose parts between points begin and end with a letter or digit"
            }
            Self::Hostname => "a DNS name of lower-case letters, digits and '-', which may begin with '*.'",
            Self::GroupName => "a DNS name, or empty for the core group",
            Self::KindName => "letters, digits and '-', with a letter first",
            Self::Token => "a token of HTTP: letters, digits and !#$%&'*+-.^_`|~",
            Self::HeaderValue => "visible ASCII characters with single blanks between them",
            Self::Duration => "a duration such as 10s, 500ms or 1h30m",
            Self::UriPath => "the path of a URI",
            Self::Origin => {
                "'*', or a scheme and a host such as https://shop.example.com or https://*.example.com"
            }
            Self::ControllerName => "a domain and a path such as pingsix.io/gateway-controller",
            Self::Protocol => "HTTP, HTTPS, TLS, TCP, UDP, or a domain and a name such as example.com/mine",
            Self::WellKnownAuthorities => "System, or a domain and a name such as example.com/mine",
            Self::Uri => "a URI with a scheme and a host",
            Self::LabelValue => "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        }
    }
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_dns_label)
}

fn is_hostname(text: &str) -> bool {
    is_subdomain(text.strip_prefix("*.").unwrap_or(text))
}

/// A name of an annotation or the value of a label.
fn is_qualified_name(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_end)
        && text.ends_with(is_end)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// A name of an annotation or a label, perhaps after a domain.
pub(super) fn is_annotation_name(text: &str) -> bool {
    let name = text.split_once('/').map_or(Some(text), |(domain, name)| is_subdomain(domain).then_some(name));
    name.is_some_and(|name| name.len() <= 63 && is_qualified_name(name))
}

fn is_domain_prefixed(text: &str, is_name: impl Fn(&str) -> bool) -> bool {
    text.split_once('/')
        .is_some_and(|(domain, name)| is_subdomain(domain) && !name.is_empty() && is_name(name))
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

fn is_header_value(text: &str) -> bool {
    let is_visible = |byte: u8| (b'!'..=b'~').contains(&byte);
    let bytes = text.as_bytes();
    let blanks_apart = bytes.windows(2).all(|pair| pair.iter().any(|byte| is_visible(*byte)));
    bytes.first().copied().is_some_and(is_visible)
        && bytes.last().copied().is_some_and(is_visible)
        && blanks_apart
        && bytes.iter().all(|byte| is_visible(*byte) || matches!(byte, b' ' | b'\t'))
}

/// A duration in milliseconds: one to four numbers of at most five digits, each with a unit.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    let (mut rest, mut sum) = (text, 0);
    for _ in 0..4 {
        let digits = rest.bytes().take(6).take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let (after, unit) =
            UNITS.into_iter().find_map(|(unit, scale)| Some((after.strip_prefix(unit)?, scale)))?;
        sum += number.parse::<u64>().ok().filter(|_| digits <= 5)? * unit;
        rest = after;
        if rest.is_empty() {
            return Some(sum);
        }
    }
    None
}

/// A byte that stands for itself in the path of a URI.
const fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b':'
                | b'@'
                | b'/'
        )
}

pub(super) fn is_uri_path(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_encoded = byte == b'%'
            && bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit())
            && bytes.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        if !is_encoded && !is_path_byte(byte) {
            return false;
        }
    }
    !text.is_empty()
}

fn is_origin(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else { return text == "*" };
    let (host, port) = rest.split_once(':').unwrap_or((rest, "0"));
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_number = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (host == "*" || host.strip_prefix("*.").unwrap_or(host).split('.').all(is_part))
}
