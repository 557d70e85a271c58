//! Processes that somebody else runs.

use garde::Validate;
use http::uri::Authority;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretReference;
use crate::model::Layout;

/// Attached PingSIX processes, which you run.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct Attached {
    /// The PingSIX fleets of a Gateway or an IngressClass. Default: the option `--layout` of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) layout: Option<Layout>,

    /// The addresses at which clients reach the processes, for `Gateway.status.addresses`. Default: the options
    /// `--publish-address` and `--publish-service` of the controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 16), dive)]
    pub(crate) addresses: Vec<AttachedAddress>,

    /// The status pages of the processes, which confirm publications. Default: the option `--status-url` of the
    /// controller. Requests to status pages of a class carry the key of `--status-api-key-file`. Requests to status
    /// pages of a Gateway carry no key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 64), dive)]
    pub(crate) status_urls: Vec<StatusUrl>,

    /// The sink of the configuration. Default: the option `--sink` of the controller. An earlier sink keeps its
    /// documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) sink: Option<AttachedSink>,
}

/// An address at which clients reach the processes.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub(crate) struct AttachedAddress {
    /// The type of the value.
    #[serde(default, rename = "type")]
    pub(crate) kind: AttachedAddressType,

    /// An IP address or a hostname.
    #[garde(length(min = 1, max = 253))]
    pub(crate) value: String,
}

/// The type of an address.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AttachedAddressType {
    /// An IPv4 or IPv6 address.
    #[default]
    IPAddress,
    /// A name in DNS.
    Hostname,
}

/// A status page of a PingSIX process.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusUrl {
    /// `http://HOST:PORT`. PingSIX serves its status page without TLS, under a fixed path.
    #[schemars(pattern(r"^http://[^/?#@\s]+/?$"))]
    #[garde(length(min = 1, max = 2048), custom(status_url))]
    pub(crate) url: String,

    /// The listener port of the process, with layout `PerPort`: 80 or 443 for an IngressClass. With layout `Shared`,
    /// one process serves all ports, and the field has to be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1))]
    pub(crate) port: Option<u16>,
}

/// A sink of configuration.
#[derive(KubeSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttachedSink {
    /// An etcd, `etcd://HOST:PORT` or `etcds://HOST:PORT` with TLS, several hosts separated by commas; or the Admin API
    /// of PingSIX, `admin+http://HOST:PORT` or `admin+https://HOST:PORT`.
    #[schemars(length(min = 1, max = 2048), pattern(r"^(etcds?|admin\+https?)://[^/?#@\s]+/?$"))]
    #[garde(length(min = 1, max = 2048), custom(sink_url))]
    pub(crate) url: String,

    /// Allows a URL without TLS beyond loopback (`localhost`, `127.0.0.1`, `[::1]`). Passwords and private keys then
    /// cross the network in plaintext, so the network has to encrypt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[garde(skip)]
    pub(crate) allow_plaintext: bool,

    /// A Secret with credentials: `username` and `password` for an etcd with authentication, or `apiKey` for the Admin
    /// API, which needs one. TLS needs the authorities of the server's certificate, `ca.crt`. A client certificate is
    /// optional, `tls.crt` and `tls.key`. While the Secret is missing or unusable, publications stop, and the sink
    /// keeps its documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) credentials_secret_ref: Option<SecretReference>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde passes its context by reference")]
fn status_url(url: &str, (): &()) -> garde::Result {
    check_url(url, &["http"])
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde passes its context by reference")]
fn sink_url(url: &str, (): &()) -> garde::Result {
    check_url(url, &SinkScheme::ALL.map(|scheme| scheme.text))
}

/// A scheme of the URL of a sink. The pattern of [`AttachedSink::url`] and the registry of `pingsix-sink` have the same ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinkScheme {
    text: &'static str,
    /// Whether the sink is an Admin API, which holds one data plane.
    pub(crate) is_admin: bool,
    pub(crate) is_tls: bool,
}

impl SinkScheme {
    const ALL: [Self; 4] = [
        Self { text: "etcd", is_admin: false, is_tls: false },
        Self { text: "etcds", is_admin: false, is_tls: true },
        Self { text: "admin+http", is_admin: true, is_tls: false },
        Self { text: "admin+https", is_admin: true, is_tls: true },
    ];

    /// The scheme of a URL, and the rest behind it.
    pub(crate) fn split(url: &str) -> Option<(Self, &str)> {
        let (text, rest) = url.split_once("://")?;
        Some((Self::ALL.into_iter().find(|scheme| scheme.text == text)?, rest))
    }
}

/// Scheme, hosts and ports, and nothing else: what is secret does not belong into a URL.
fn check_url(url: &str, schemes: &[&str]) -> garde::Result {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let hosts = rest.strip_suffix('/').unwrap_or(rest);
    let is_host = |host: &str| {
        !host.contains('@')
            && host.parse::<Authority>().is_ok_and(|read| !read.host().is_empty() && (!host.ends_with(':')))
    };
    if schemes.contains(&scheme) && hosts.split(',').all(is_host) {
        return Ok(());
    }
    Err(garde::Error::new(format!(
        "it is not one of {} with \"://\", host and port, without user or path",
        schemes.join(", ")
    )))
}
