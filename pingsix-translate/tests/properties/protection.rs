//! Demands of policies on requests, in words that neither Gateway API nor PingSIX has.

use std::collections::BTreeSet;

/// Everything that a request needs before it reaches a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Protection {
    pub(crate) credential: Option<Credential>,
    pub(crate) addresses: Option<Addresses>,
    /// The secret of the tokens against forged requests.
    pub(crate) csrf: Option<String>,
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
