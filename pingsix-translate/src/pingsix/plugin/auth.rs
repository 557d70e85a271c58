//! `key-auth`, `basic-auth`, `jwt-auth` and `csrf`: plugins that hold secrets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PluginConfig;
use crate::pingsix::omit;
use crate::pingsix::secret::Redacted;

/// API keys. PingSIX: `src/plugins/key_auth.rs`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyAuth {
    /// The header that carries the key.
    #[serde(default = "KeyAuth::default_header", skip_serializing_if = "KeyAuth::is_default_header")]
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

impl PluginConfig for KeyAuth {
    const NAME: &'static str = "key-auth";
}

impl Default for KeyAuth {
    fn default() -> Self {
        Self {
            header: Self::default_header(),
            query: String::new(),
            key: None,
            keys: Vec::new(),
            hide_credentials: false,
        }
    }
}

impl KeyAuth {
    fn default_header() -> String {
        "apikey".to_owned()
    }

    fn is_default_header(header: &str) -> bool {
        header == "apikey"
    }
}

impl fmt::Debug for KeyAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyAuth")
            .field("header", &self.header)
            .field("query", &self.query)
            .field("key", &self.key.as_ref().map(|_| Redacted))
            .field("keys", &self.keys.iter().map(|_| Redacted).collect::<Vec<_>>())
            .field("hide_credentials", &self.hide_credentials)
            .finish()
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

impl PluginConfig for BasicAuth {
    const NAME: &'static str = "basic-auth";
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth")
            .field("username", &self.username)
            .field("password", &Redacted)
            .field("hide_credentials", &self.hide_credentials)
            .finish()
    }
}

/// One key that signs tokens. PingSIX: `src/plugins/jwt_auth.rs`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JwtAuth {
    /// The header that carries the token.
    #[serde(default = "JwtAuth::default_header", skip_serializing_if = "JwtAuth::is_default_header")]
    pub header: String,
    /// The query parameter that carries the token; none when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// The cookie that carries the token.
    #[serde(default = "JwtAuth::default_cookie", skip_serializing_if = "JwtAuth::is_default_cookie")]
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

impl PluginConfig for JwtAuth {
    const NAME: &'static str = "jwt-auth";
}

impl Default for JwtAuth {
    fn default() -> Self {
        Self {
            header: Self::default_header(),
            query: String::new(),
            cookie: Self::default_cookie(),
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

impl JwtAuth {
    fn default_header() -> String {
        "authorization".to_owned()
    }

    fn is_default_header(header: &str) -> bool {
        header == "authorization"
    }

    fn default_cookie() -> String {
        "jwt".to_owned()
    }

    fn is_default_cookie(cookie: &str) -> bool {
        cookie == "jwt"
    }
}

impl fmt::Debug for JwtAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtAuth")
            .field("header", &self.header)
            .field("query", &self.query)
            .field("cookie", &self.cookie)
            .field("hide_credentials", &self.hide_credentials)
            .field("store_in_ctx", &self.store_in_ctx)
            .field("secret", &self.secret.as_ref().map(|_| Redacted))
            .field("algorithm", &self.algorithm)
            .field("base64_secret", &self.base64_secret)
            .field("lifetime_grace_period", &self.lifetime_grace_period)
            .field("public_key", &self.public_key)
            .field("iss", &self.iss)
            .field("aud", &self.aud)
            .field("required_claims", &self.required_claims)
            .finish()
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
    #[serde(default = "Csrf::default_expires", skip_serializing_if = "Csrf::is_default_expires")]
    pub expires: u64,
    /// The name of the cookie and of the header.
    #[serde(default = "Csrf::default_name", skip_serializing_if = "Csrf::is_default_name")]
    pub name: String,
}

impl PluginConfig for Csrf {
    const NAME: &'static str = "csrf";
}

impl Default for Csrf {
    fn default() -> Self {
        Self { key: String::new(), expires: Self::default_expires(), name: Self::default_name() }
    }
}

impl Csrf {
    fn default_expires() -> u64 {
        7200
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
    fn is_default_expires(seconds: &u64) -> bool {
        *seconds == Self::default_expires()
    }

    fn default_name() -> String {
        "pingsix-csrf-token".to_owned()
    }

    fn is_default_name(name: &str) -> bool {
        name == "pingsix-csrf-token"
    }
}

impl fmt::Debug for Csrf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Csrf")
            .field("key", &Redacted)
            .field("expires", &self.expires)
            .field("name", &self.name)
            .finish()
    }
}
