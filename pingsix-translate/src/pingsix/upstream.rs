//! Upstreams: the backends of requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::checks::HealthCheck;
use super::field_rules;
use super::omit;
use super::secret::Redacted;
use super::timeout::Timeout;

omit::defaults! {
    key: str = "uri";
}

/// A set of weighted backend nodes with their protocol; named by a key, or inline.
///
/// PingSIX: `src/config/mod.rs`, `Upstream`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Upstream {
    /// The id in the body: never written, because the key has the id, and empty after decoding.
    #[serde(default, skip_serializing)]
    pub id: String,
    /// A label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number of retries of a failed connect; absence counts as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The time in seconds after which no retry starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_timeout: Option<u64>,
    /// Timeouts towards the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub timeout: Option<Timeout>,
    /// Weight by `host` or `host:port`. At least one node; weights from 1; IPv6 addresses in brackets. The
    /// port defaults to 80, or 443 for [`Scheme::Https`] and [`Scheme::Grpcs`].
    #[garde(custom(field_rules::nodes))]
    pub nodes: BTreeMap<String, u32>,
    /// The selection of a node.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub r#type: SelectionType,
    /// Active health checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub checks: Option<Box<HealthCheck>>,
    /// The source of the hash key of a hashing [`SelectionType`].
    #[serde(default, skip_serializing_if = "omit::default")]
    pub hash_on: HashOn,
    /// The variable, header or cookie that is hashed.
    #[serde(default = "key::value", skip_serializing_if = "key::is")]
    pub key: String,
    /// The protocol spoken to the nodes.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub scheme: Scheme,
    /// The Host header and server name the nodes see.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub pass_host: PassHost,
    /// The host for [`PassHost::Rewrite`], which requires it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(custom(field_rules::rewrite_host(self.pass_host == PassHost::Rewrite)))]
    pub upstream_host: Option<String>,
    /// The client certificate shown to the nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub tls: Option<Box<UpstreamTls>>,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: None,
            retries: None,
            retry_timeout: None,
            timeout: None,
            nodes: BTreeMap::new(),
            r#type: SelectionType::default(),
            checks: None,
            hash_on: HashOn::default(),
            key: key::value(),
            scheme: Scheme::default(),
            pass_host: PassHost::default(),
            upstream_host: None,
            tls: None,
        }
    }
}

/// The selection of a node among the healthy ones. PingSIX: `src/config/mod.rs`, `SelectionType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SelectionType {
    /// In turn, by weight.
    #[default]
    RoundRobin,
    /// At random, by weight.
    Random,
    /// By FNV hash of the key.
    Fnv,
    /// By consistent hash of the key.
    Ketama,
}

/// The source of the key of a hashing selection, or of `limit-count`. PingSIX: `src/config/mod.rs`, `UpstreamHashOn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HashOn {
    /// A variable such as `uri` or `arg_<name>`.
    #[default]
    Vars,
    /// A request header.
    Head,
    /// A cookie.
    Cookie,
}

/// The protocol spoken to the nodes. PingSIX: `src/config/mod.rs`, `UpstreamScheme`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// HTTP/1.1 without TLS.
    #[default]
    Http,
    /// HTTP over TLS.
    Https,
    /// HTTP/2 without TLS, for any content type.
    Grpc,
    /// HTTP/2 over TLS.
    Grpcs,
}

/// The Host header and TLS server name the nodes see. PingSIX: `src/config/mod.rs`, `UpstreamPassHost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PassHost {
    /// The client's Host, unchanged.
    #[default]
    Pass,
    /// [`Upstream::upstream_host`].
    Rewrite,
    /// The host part of the node's key.
    Node,
}

/// The client certificate PingSIX shows to the nodes of an upstream. PingSIX: `src/config/mod.rs`,
/// `UpstreamTls`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct UpstreamTls {
    /// The certificate chain in PEM, leaf first.
    #[garde(length(min = 1))]
    pub client_cert: String,
    /// The private key of the leaf in PEM, or an encryption envelope.
    #[garde(length(min = 1))]
    pub client_key: String,
}

impl std::fmt::Debug for UpstreamTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamTls")
            .field("client_cert", &self.client_cert)
            .field("client_key", &Redacted)
            .finish()
    }
}
