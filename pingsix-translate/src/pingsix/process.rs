//! The configuration of a PingSIX process, which it reads at its start (`src/config/mod.rs` of PingSIX).

use serde::Serialize;
use serde_json::{Value, json};

/// The default number of threads of a process.
pub const DEFAULT_THREADS: u32 = 2;

/// The default interval of upstream resolution, in seconds. The nodes are addresses, so resolution has no effect; the
/// default of PingSIX is one second, with lines in its log (`src/proxy/upstream/load_balancer.rs` of PingSIX).
pub const DNS_REFRESH_SECONDS: u32 = 30;

/// The time limit of connections after the listeners have closed, and the limit of the remaining shutdown, in seconds.
pub const GRACE_PERIOD_SECONDS: u32 = 5;

/// The settings of a process that each of them has.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// The number of threads.
    pub threads: u32,
    /// The listeners.
    pub listeners: Vec<ProcessListener>,
    /// The feed.
    pub feed: ProcessFeed,
    /// The address of the status page.
    pub status: String,
    /// The interval of upstream resolution, in seconds.
    pub dns_refresh_seconds: u32,
}

/// A listener of a process.
#[derive(Clone, Debug)]
pub struct ProcessListener {
    /// The address with its port.
    pub address: String,
    /// The default certificate of a listener with TLS.
    pub tls: Option<CertificateFiles>,
}

/// The files of a certificate, in PEM.
#[derive(Clone, Debug, Serialize)]
pub struct CertificateFiles {
    /// The certificate.
    #[serde(rename = "cert_path")]
    pub certificate: String,
    /// Its private key.
    #[serde(rename = "key_path")]
    pub key: String,
}

/// The etcd servers with the documents of a process.
#[derive(Clone, Debug)]
pub struct ProcessFeed {
    /// The hosts with their ports.
    pub hosts: Vec<String>,
    /// The prefix of the keys.
    pub prefix: String,
    /// TLS for the connections to the hosts.
    pub tls: Option<FeedTls>,
}

/// The TLS of a [`ProcessFeed`].
#[derive(Clone, Debug, Serialize)]
pub struct FeedTls {
    /// The file of the authorities.
    pub ca_cert: String,
    /// The file of the client's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cert: Option<String>,
    /// The file of the client's private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<String>,
    /// The name of the servers, if that is not their host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

impl ProcessConfig {
    /// The content of the file.
    pub fn to_value(&self) -> Value {
        let offers_h2c = h2c_obstacle(&self.listeners, |listener| listener.tls.is_some()).is_none();
        let listeners = self.listeners.iter().map(|ProcessListener { address, tls }| match tls {
            Some(files) => json!({ "address": address, "tls": files, "offer_h2": true }),
            None if offers_h2c => json!({ "address": address, "offer_h2c": true }),
            None => json!({ "address": address }),
        });
        let mut feed = json!({
            "host": self.feed.hosts,
            "prefix": self.feed.prefix,
            "timeout": 5,
            "connect_timeout": 3,
        });
        if let Some(tls) = &self.feed.tls {
            feed["tls"] = json!(tls);
        }
        json!({
            "pingora": {
                "threads": self.threads,
                "grace_period_seconds": GRACE_PERIOD_SECONDS,
                "graceful_shutdown_timeout_seconds": GRACE_PERIOD_SECONDS,
            },
            "pingsix": {
                "listeners": listeners.collect::<Vec<Value>>(),
                "etcd": feed,
                "status": {
                    "address": self.status,
                    // PingSIX keeps serving its configuration. Otherwise all instances would turn unready, and lose their
                    // traffic, five minutes after a failure of all feed servers.
                    "fail_readiness_when_stale": false,
                },
                "defaults": { "dns_refresh_interval": self.dns_refresh_seconds },
            },
        })
    }
}

/// The first listener of a process because of which PingSIX closes connections over HTTP/2 without TLS; `None` if the
/// process accepts them. PingSIX offers HTTP/2 without TLS for all listeners of a process or for none, and breaks HTTP/1.1 on
/// listeners with TLS if it does (`offer_h2c`).
pub fn h2c_obstacle<L>(listeners: impl IntoIterator<Item = L>, has_tls: impl Fn(&L) -> bool) -> Option<L> {
    listeners.into_iter().find(has_tls)
}
