//! Demands of policies on requests, in words that neither Gateway API nor PingSIX has.

use std::collections::{BTreeMap, BTreeSet};

/// Everything that a request needs before it reaches a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Protection {
    pub(crate) credential: Option<Credential>,
    pub(crate) addresses: Option<Addresses>,
    /// The secret of the tokens against forged requests.
    pub(crate) csrf: Option<String>,
    pub(crate) treatment: Treatment,
}

impl Protection {
    /// The status that every request gets.
    pub(crate) fn certain_error(&self) -> Option<u16> {
        let error = self.treatment.error.filter(|(_, share)| *share == 100);
        error.map(|(status, _)| u16::try_from(status).unwrap())
    }
}

/// Treatment of requests and responses beside changes of headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Treatment {
    pub(crate) quota: Option<Quota>,
    /// Codings of responses with their effort.
    pub(crate) codings: BTreeMap<String, u64>,
    /// The header with an id, and whether responses have the header.
    pub(crate) id: Option<(String, bool)>,
    /// Milliseconds for a share of requests in per cent.
    pub(crate) delay: Option<(u64, u64)>,
    /// A status for a share of requests in per cent.
    pub(crate) error: Option<(u64, u64)>,
    pub(crate) is_web: bool,
    /// Seconds, methods and statuses.
    pub(crate) cache: Option<(u64, BTreeSet<String>, BTreeSet<u64>)>,
}

/// A number of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) requests: u64,
    pub(crate) seconds: u64,
    /// Kind and name of the part of a request that is counted; `None` is the address of the client.
    pub(crate) by: Option<(&'static str, String)>,
    /// Whether requests without this part share one count; otherwise they are refused.
    pub(crate) shares: bool,
    /// The status beyond the quota.
    pub(crate) status: u64,
    /// Whether clients are told.
    pub(crate) tells: bool,
}

/// A credential of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    Key { keys: BTreeSet<String>, place: Place },
    User { name: String, password: String, is_hidden: bool },
    Token { secret: String, algorithm: String, claims: Claims, place: Place },
}

/// The claims that a token needs beside `exp`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) issuer: Option<String>,
    pub(crate) audience: Option<String>,
    pub(crate) required: BTreeSet<String>,
    /// Seconds after `exp`.
    pub(crate) leeway: u64,
}

/// The part of a request with the credential. An empty name stands for nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) header: String,
    pub(crate) query: String,
    pub(crate) cookie: String,
    /// Whether backends get no credential.
    pub(crate) is_hidden: bool,
}

/// The addresses of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) allow: BTreeSet<String>,
    pub(crate) deny: BTreeSet<String>,
    /// Proxies whose `X-Forwarded-For` counts.
    pub(crate) proxies: BTreeSet<String>,
}

/// Networks, with the clients of those of IPv4 as a socket of IPv6 shows them.
pub(crate) fn in_both_notations(mut networks: BTreeSet<String>) -> BTreeSet<String> {
    let of_ipv4: Vec<String> = networks.iter().filter(|text| !text.contains(':')).cloned().collect();
    networks.extend(of_ipv4.iter().map(|text| match text.split_once('/') {
        None => format!("::ffff:{text}"),
        Some((address, length)) => format!("::ffff:{address}/{}", length.parse::<u8>().unwrap() + 96),
    }));
    networks
}
