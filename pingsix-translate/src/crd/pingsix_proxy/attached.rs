//! Processes that somebody else runs.

use garde::Validate;
use http::uri::Authority;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SecretReference;
use crate::model::Layout;

/// PingSIX processes that somebody else runs.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct Attached {
    /// How listeners are spread over processes; the default is the controller's (`--layout`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,

    /// Where the processes are reached; published in `Gateway.status.addresses`, in place of the controller's
    /// (`--publish-address`, `--publish-service`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 16), dive)]
    pub addresses: Vec<AttachedAddress>,

    /// The status pages of the processes, which confirm that a configuration is in force; they are asked in place of the
    /// controller's (`--status-url`), with its key (`--status-api-key-file`) if the class names them, and without if a
    /// Gateway does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(length(max = 64), dive)]
    pub status_urls: Vec<StatusUrl>,

    /// Where the configuration is published, in place of the controller's (`--sink`). What was published elsewhere before
    /// stays there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub sink: Option<AttachedSink>,
}

/// Where processes are reached.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct AttachedAddress {
    /// What the value is.
    #[serde(default, rename = "type")]
    pub kind: AttachedAddressType,

    /// An IP address, or a hostname.
    #[garde(length(min = 1, max = 253))]
    pub value: String,
}

/// What an address is.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttachedAddressType {
    /// An IPv4 or IPv6 address.
    #[default]
    IPAddress,
    /// A name in DNS.
    Hostname,
}

/// A status page of a PingSIX process.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct StatusUrl {
    /// `http://HOST:PORT`: PingSIX shows its status without TLS, and under a path of its own.
    #[schemars(pattern(r"^http://[^/?#@\s]+/?$"))]
    #[garde(length(min = 1, max = 2048), custom(status_url))]
    pub url: String,

    /// The listener port whose process this is, with layout `PerPort`; with layout `Shared`, or for an IngressClass, there
    /// is one process for all ports, and none is written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(range(min = 1))]
    pub port: Option<u16>,
}

/// Where configuration is published.
#[derive(KubeSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct AttachedSink {
    /// `etcd://HOST:PORT` or `etcds://HOST:PORT` (with TLS), several separated by commas, or `admin+http://HOST:PORT` or
    /// `admin+https://HOST:PORT`: the Admin API of PingSIX.
    #[schemars(length(min = 1, max = 2048), pattern(r"^(etcds?|admin\+https?)://[^/?#@\s]+/?$"))]
    #[garde(length(min = 1, max = 2048), custom(sink_url))]
    pub url: String,

    /// Without TLS, sends what is secret, such as passwords and private keys, to other machines in plaintext: for networks
    /// that encrypt by themselves. Not needed for this machine (`localhost`, `127.0.0.1`, `[::1]`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[garde(skip)]
    pub allow_plaintext: bool,

    /// A Secret with `username` and `password` for an etcd that asks for them, or with `apiKey`, which the Admin API needs.
    /// TLS needs `ca.crt`, which the server's certificate is verified with; `tls.crt` and `tls.key` are shown to the server
    /// when they are there. While it is missing or cannot be used, nothing is published, and the sink keeps what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub credentials_secret_ref: Option<SecretReference>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde passes its context by reference")]
fn status_url(url: &str, (): &()) -> garde::Result {
    check_url(url, &["http"])
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde passes its context by reference")]
fn sink_url(url: &str, (): &()) -> garde::Result {
    check_url(url, &["etcd", "etcds", "admin+http", "admin+https"])
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
