//! A site as its authors mean it: which requests are protected, and by what. The judge reads this, and nothing that
//! translation computes.

use std::net::IpAddr;

use regex::Regex;

use super::reading::{normal_path, percent_decoded};

/// The kind of objects of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    /// HTTPRoutes of a Gateway, with policies.
    Gateway,
    /// Ingresses with annotations of ingress-nginx, and with policies.
    Nginx,
    /// Ingresses with annotations of the APISIX controller, and with policies.
    Apisix,
}

/// The objects of one data plane.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) dialect: Dialect,
    pub(super) parts: Vec<Part>,
    /// Whether responses are cached.
    pub(super) cached: bool,
}

/// The requests that one rule stands for, and what its author demands of them.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: String,
    /// Exact names, or wildcards such as `*.a.example`; none for every host.
    pub(super) hosts: Vec<&'static str>,
    pub(super) path: PathMatch,
    /// The one method that the rule names.
    pub(super) method: Option<&'static str>,
    pub(super) service: &'static str,
    /// All of them have to be met; none for an open rule.
    pub(super) demands: Vec<Demand>,
    pub(super) written: Written,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathMatch {
    Exact(&'static str),
    Prefix(&'static str),
    /// An expression, and paths that it matches.
    Regex {
        pattern: &'static str,
        samples: &'static [&'static str],
        /// The prefix that is served instead.
        prefix: Option<&'static str>,
    },
    /// A prefix, without which the path goes to the backend.
    Stripped {
        prefix: &'static str,
    },
}

/// The place where an author writes a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// In a policy for the route or the Ingress.
    Policy,
    /// In a policy for the rule of a route.
    RulePolicy,
    /// In annotations.
    Annotations,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    /// An API key in this header, or in this parameter of the query.
    Key { header: Option<&'static str>, parameter: Option<&'static str> },
    /// A user and a password.
    User,
    /// A signed token.
    Token,
    /// An address of the client, which trusted proxies forward.
    Addresses {
        allow: &'static [&'static str],
        deny: &'static [&'static str],
        proxies: &'static [&'static str],
    },
    /// One of these methods.
    Methods(&'static [&'static str]),
    /// A demand that PingSIX cannot check.
    Impossible,
}

/// The client of a request, as it is in truth.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) address: IpAddr,
    /// The index of the part whose credential the request has.
    pub(super) credential_of: Option<usize>,
}

impl PathMatch {
    /// Whether a path in its normal form is matched.
    fn matches(&self, dialect: Dialect, path: &str) -> bool {
        match self {
            Self::Exact(literal) => path == normal_path(literal),
            Self::Prefix(literal) => is_below(&normal_path(literal), path),
            Self::Stripped { prefix } => is_below(prefix, path),
            Self::Regex { pattern, .. } => {
                // ingress-nginx and APISIX leave the end open; an HTTPRoute's expression is for the whole path.
                let end = if dialect == Dialect::Gateway { "$" } else { "" };
                Regex::new(&format!("^(?:{pattern}){end}")).unwrap().is_match(path)
            }
        }
    }

    /// The longer, the more specific; an exact path is the most specific one.
    fn rank(&self) -> (bool, usize) {
        match self {
            Self::Exact(literal) => (true, literal.len()),
            Self::Prefix(literal) => (false, literal.trim_end_matches('/').len()),
            Self::Stripped { prefix } => (false, prefix.len()),
            Self::Regex { pattern, .. } => (false, pattern.len()),
        }
    }

    /// Paths that clients request, as browsers write them.
    pub(super) fn samples(&self) -> Vec<String> {
        match self {
            Self::Exact(literal) => vec![written_by_browsers(literal)],
            Self::Prefix("/") => vec!["/".to_owned(), "/x".to_owned(), "/x/y".to_owned()],
            Self::Prefix(literal) => {
                let literal = written_by_browsers(literal);
                vec![literal.clone(), format!("{literal}/x"), format!("{literal}/x/y")]
            }
            Self::Stripped { prefix } => vec![format!("{prefix}/x"), format!("{prefix}/x/y")],
            Self::Regex { samples, .. } => samples.iter().map(|&path| path.to_owned()).collect(),
        }
    }

    /// Whether clients send the path as its author writes it.
    pub(super) fn is_written_as_sent(&self) -> bool {
        match self {
            Self::Exact(literal) | Self::Prefix(literal) => written_by_browsers(literal) == *literal,
            Self::Regex { .. } | Self::Stripped { .. } => true,
        }
    }

    /// The path without what follows a prefix or stands for an expression.
    pub(super) fn literal(&self) -> String {
        match self {
            Self::Exact(literal)
            | Self::Prefix(literal)
            | Self::Stripped { prefix: literal }
            | Self::Regex { prefix: Some(literal), .. } => written_by_browsers(literal),
            Self::Regex { samples, .. } => samples[0].to_owned(),
        }
    }

    /// The prefix that is closed in place of an expression or of a path with braces, if it ends with a whole element.
    fn closes(&self) -> Option<&'static str> {
        let (text, end) = match self {
            Self::Regex { pattern, .. } if pattern.contains('|') => return Some("/"),
            Self::Regex { pattern, .. } => (*pattern, pattern.find(['[', '(', '.'])?),
            Self::Exact(literal) | Self::Prefix(literal) => (*literal, literal.find('{')?),
            Self::Stripped { .. } => return None,
        };
        match text[..end].strip_suffix('/') {
            Some("") => Some("/"),
            closed => closed,
        }
    }

    /// Whether the part is all of its host.
    pub(super) fn is_whole(&self) -> bool {
        *self == Self::Prefix("/")
    }
}

/// Whether a path begins with the elements of a prefix.
fn is_below(prefix: &str, path: &str) -> bool {
    let rest = path.strip_prefix(prefix.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Percent-encodes the bytes that RFC 3986 forbids in a path.
pub(super) fn written_by_browsers(path: &str) -> String {
    let mut written = String::new();
    for byte in percent_decoded(path.as_bytes()) {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            written.push(char::from(byte));
        } else {
            written += &format!("%{byte:02X}");
        }
    }
    written
}

impl Part {
    /// The rank of its best match for a host; `None` without one.
    fn host_rank(&self, host: &str) -> Option<(u8, usize)> {
        if self.hosts.is_empty() {
            return Some((0, 0));
        }
        let ranks = self.hosts.iter().filter_map(|own| match own.strip_prefix('*') {
            Some(suffix) => (host.len() > suffix.len() && host.ends_with(suffix)).then_some((1, own.len())),
            None => (*own == host).then_some((2, own.len())),
        });
        ranks.max()
    }

    /// Whether a demand trusts proxies.
    pub(super) fn has_proxies(&self) -> bool {
        let trusts =
            |demand: &Demand| matches!(demand, Demand::Addresses { proxies, .. } if !proxies.is_empty());
        self.demands.iter().any(trusts)
    }

    pub(super) fn is_open(&self) -> bool {
        self.demands.is_empty()
    }

    /// A name that it serves.
    pub(super) fn sample_host(&self, roll: usize) -> String {
        let Some(host) = self.hosts.get(roll % self.hosts.len().max(1)) else {
            return "unnamed.example".to_owned();
        };
        let label = ["one", "three"][roll / self.hosts.len() % 2];
        host.strip_prefix('*').map_or_else(|| (*host).to_owned(), |suffix| format!("{label}{suffix}"))
    }

    /// Whether a visitor meets all demands.
    pub(super) fn admits(&self, index: usize, visitor: &Visitor, method: &str) -> bool {
        self.demands.iter().all(|demand| match demand {
            Demand::Key { .. } | Demand::User | Demand::Token => visitor.credential_of == Some(index),
            Demand::Addresses { allow, deny, .. } => {
                let is_in =
                    |networks: &[&str]| networks.iter().any(|network| contains(network, visitor.address));
                (allow.is_empty() || is_in(allow)) && !is_in(deny)
            }
            Demand::Methods(methods) => methods.contains(&method),
            Demand::Impossible => false,
        })
    }
}

impl Site {
    /// The index of the part that a request is for, by the rules of precedence: host, path, method.
    pub(super) fn part_of(&self, host: &str, path: &str, method: &str) -> Option<usize> {
        let matches = self.parts.iter().enumerate().filter_map(|(index, part)| {
            let of_method = part.method.is_none_or(|own| own == method);
            let rank = part.host_rank(host).filter(|_| of_method && part.path.matches(self.dialect, path))?;
            Some((rank, part.path.rank(), part.method.is_some(), index))
        });
        matches.max().map(|(.., index)| index)
    }

    /// Whether a prefix with other demands is below a part.
    pub(super) fn has_other_prefix(&self, part: usize) -> bool {
        let protected = &self.parts[part];
        let is_below = |other: &&Part| matches!(other.path, PathMatch::Prefix(prefix) | PathMatch::Stripped { prefix } if prefix != "/");
        self.parts.iter().filter(|other| other.demands != protected.demands).filter(is_below).any(|other| {
            other
                .hosts
                .iter()
                .any(|host| protected.hosts.contains(host) || protected.host_rank(host).is_some())
        })
    }

    /// Whether another part may close a part for a host, which is the prefix in place of its path.
    pub(super) fn is_closed(&self, part: usize, host: &str) -> bool {
        self.parts.iter().any(|other| {
            let is_same =
                other.path.closes().is_some_and(|closed| self.parts[part].path == PathMatch::Prefix(closed));
            is_same && other.host_rank(host).is_some()
        })
    }

    /// Whether an older part has the path that is closed in place of the expression of a part.
    pub(super) fn is_closed_too_late(&self, part: usize) -> bool {
        let closed = self.parts[part].path.closes().map(PathMatch::Prefix);
        let older = &self.parts[..part];
        older.iter().any(|other| {
            let mut hosts = other.hosts.iter();
            closed.as_ref() == Some(&other.path) && hosts.any(|host| self.parts[part].hosts.contains(host))
        })
    }

    /// Whether a Service has a part for a wildcard or for every host.
    pub(super) fn is_wide(&self, service: &str) -> bool {
        let wide = |part: &Part| part.hosts.iter().all(|host| host.starts_with('*'));
        self.parts.iter().any(|part| part.service == service && wide(part))
    }

    /// Whether a Service has a part that names the host.
    pub(super) fn serves_host(&self, service: &str, host: &str) -> bool {
        let mut parts = self.parts.iter().filter(|part| part.service == service);
        parts.any(|part| part.host_rank(host).is_some_and(|(kind, _)| kind > 0))
    }
}

/// Whether an address is in a network, both as IPv4 where they are mapped.
pub(super) fn contains(network: &str, address: IpAddr) -> bool {
    let (base, length) = network.split_once('/').unwrap();
    let (base, length) = (base.parse::<IpAddr>().unwrap(), length.parse::<u32>().unwrap());
    match (base, address.to_canonical()) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            base.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            base.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}
