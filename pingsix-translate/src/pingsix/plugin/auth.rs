//! `key-auth`, `basic-auth`, `jwt-auth` and `csrf`: plugins that hold secrets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PluginConfig;
use crate::pingsix::omit;
use crate::pingsix::secret::redact;

omit::defaults! {
    key_header: str = "apikey";
    jwt_header: str = "authorization";
    jwt_cookie: str = "jwt";
    csrf_expires: u64 = &7200;
    csrf_name: str = "pingsix-csrf-token";
}

/// Prints configurations without their secrets.
macro_rules! debug_without_secrets {
    ($($config:ident)+) => {$(
        impl fmt::Debug for $config {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let config = serde_json::to_value(self).unwrap_or_default();
                write!(f, "{} {}", Self::NAME, redact(Self::NAME, &config))
            }
        }
    )+};
}

debug_without_secrets! { KeyAuth BasicAuth JwtAuth Csrf }

/// API keys. PingSIX: `src/plugins/key_auth.rs`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAuth {
    /// The header that carries the key.
    #[serde(default = "key_header::value", skip_serializing_if = "key_header::is")]
    pub header: String,
    /// The query parameter that carries the key; none when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// The key, or an encryption envelope. Ignored when [`keys`](Self::keys) is not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The keys, or encryption envelopes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Whether the key is removed from the request to the backend.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub hide_credentials: bool,
}

impl Default for KeyAuth {
    fn default() -> Self {
        Self {
            header: key_header::value(),
            query: String::new(),
            key: None,
            keys: Vec::new(),
            hide_credentials: false,
        }
    }
}

/// One user and password. PingSIX: `src/plugins/basic_auth.rs`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct BasicAuth {
    /// The user; not empty.
    #[garde(length(min = 1))]
    pub username: String,
    /// The password, or an encryption envelope; not empty.
    #[garde(length(min = 1))]
    pub password: String,
    /// Whether the `Authorization` header is removed from the request to the backend.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub hide_credentials: bool,
}

/// One key that signs tokens. PingSIX: `src/plugins/jwt_auth.rs`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JwtAuth {
    /// The header that carries the token.
    #[serde(default = "jwt_header::value", skip_serializing_if = "jwt_header::is")]
    pub header: String,
    /// The query parameter that carries the token; none when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// The cookie that carries the token.
    #[serde(default = "jwt_cookie::value", skip_serializing_if = "jwt_cookie::is")]
    pub cookie: String,
    /// Whether the token is removed from the request to the backend.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub hide_credentials: bool,
    /// Whether the claims are kept for other plugins.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub store_in_ctx: bool,
    /// The secret of an HMAC algorithm, or an encryption envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The signature algorithm.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub algorithm: JwtAlgorithm,
    /// Whether the secret is in base64.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub base64_secret: bool,
    /// The tolerance of the expiry of tokens, in seconds.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub lifetime_grace_period: u64,
    /// The public key of an RSA or elliptic-curve algorithm, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// The required issuer of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iss: Option<String>,
    /// The required audience of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aud: Option<String>,
    /// The required claims of tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_claims: Vec<String>,
}

impl JwtAuth {
    /// The claims that PingSIX can require; it ignores others (`jsonwebtoken`, `required_spec_claims`).
    pub(crate) const CLAIMS: [&str; 5] = ["aud", "exp", "iss", "nbf", "sub"];
}

impl Default for JwtAuth {
    fn default() -> Self {
        Self {
            header: jwt_header::value(),
            query: String::new(),
            cookie: jwt_cookie::value(),
            hide_credentials: false,
            store_in_ctx: false,
            secret: None,
            algorithm: JwtAlgorithm::default(),
            base64_secret: false,
            lifetime_grace_period: 0,
            public_key: None,
            iss: None,
            aud: None,
            required_claims: Vec::new(),
        }
    }
}

/// The signature algorithms that PingSIX decodes. PingSIX refuses some of them after decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256.
    #[default]
    HS256,
    /// HMAC with SHA-384; refused.
    HS384,
    /// HMAC with SHA-512.
    HS512,
    /// ECDSA with P-256.
    ES256,
    /// ECDSA with P-384.
    ES384,
    /// RSA PKCS #1 with SHA-256.
    RS256,
    /// RSA PKCS #1 with SHA-384.
    RS384,
    /// RSA PKCS #1 with SHA-512.
    RS512,
    /// RSA PSS with SHA-256; refused.
    PS256,
    /// RSA PSS with SHA-384; refused.
    PS384,
    /// RSA PSS with SHA-512; refused.
    PS512,
    /// Edwards-curve signatures; refused.
    EdDSA,
}

/// A token that a form must send back. PingSIX: `src/plugins/csrf.rs`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Csrf {
    /// The signing key, or an encryption envelope; not empty.
    #[garde(length(min = 1))]
    pub key: String,
    /// The lifetime of a token in seconds; 0 for an unlimited lifetime.
    #[serde(default = "csrf_expires::value", skip_serializing_if = "csrf_expires::is")]
    pub expires: u64,
    /// The name of the cookie and of the header.
    #[serde(default = "csrf_name::value", skip_serializing_if = "csrf_name::is")]
    pub name: String,
}

impl Default for Csrf {
    fn default() -> Self {
        Self { key: String::new(), expires: csrf_expires::value(), name: csrf_name::value() }
    }
}
