//! The configuration of a PingSIX process, which it reads at its start (`src/config/mod.rs` of PingSIX).

use pingsix_translate::infrastructure::PortProtocol;
use pingsix_translate::stream::{FRONT_SLOTS, front_address};
use serde_json::{Value, json};

use super::{Plan, PlaneSecrets, Process};

/// The parent folder of a container's configuration.
pub(super) const FOLDER: &str = "/etc/pingsix";
/// The folder of the client certificate for the feed.
pub(super) const FEED: &str = "/etc/pingsix/feed";
/// The folder of the certificate for clients without a server name, or with an unknown one.
pub(super) const CERTIFICATE: &str = "/etc/pingsix/certificate";

/// The time limit of connections after the listeners have closed, and the limit of the remaining shutdown, in seconds.
pub(super) const GRACE_PERIOD_SECONDS: u32 = 5;

/// The default number of threads of a process.
const DEFAULT_THREADS: u16 = 2;

/// The interval of upstream resolution, in seconds. The nodes are addresses, so resolution has no effect; the default
/// of PingSIX is one second, with lines in its log (`src/proxy/upstream/load_balancer.rs` of PingSIX).
const DNS_REFRESH_SECONDS: u32 = 30;

/// The configuration file of a process: YAML in the notation of JSON.
pub(super) fn config(plan: &Plan<'_>, process: &Process, material: &PlaneSecrets) -> String {
    let parameters = &plan.infrastructure.parameters.process;
    let everywhere = |port: u16| format!("0.0.0.0:{port}");
    // `offer_h2c` would break HTTP/1.1 on listeners with TLS, which no process has beside plaintext.
    let plaintext = |address: String| json!({ "address": address, "offer_h2c": true });
    let listeners: Vec<Value> = match process.ports.traffic {
        // Behind the sidecar.
        None => {
            let addresses = (1..=FRONT_SLOTS).map(|slot| front_address(process.listener, slot));
            addresses.map(|address| plaintext(address.to_string())).collect()
        }
        Some(port) if process.protocol == PortProtocol::Tls => vec![json!({
            "address": everywhere(port),
            "tls": {
                "cert_path": format!("{CERTIFICATE}/tls.crt"),
                "key_path": format!("{CERTIFICATE}/tls.key"),
            },
            "offer_h2": true,
        })],
        Some(port) => vec![plaintext(everywhere(port))],
    };
    let mut status = json!({
        "address": everywhere(process.ports.status),
        "fail_readiness_when_stale": parameters.fail_readiness_when_stale,
        // The controller requests the page from outside, and has the key.
        "allow_insecure_remote": true,
        "diagnostics_api_key": material.diagnostics.as_str(),
    });
    if let Some(seconds) = parameters.stale_after_seconds {
        status["config_stale_after"] = json!(seconds);
    }
    let mut pingsix = json!({
        "listeners": listeners,
        "etcd": etcd(plan, process, material),
        "status": status,
        "defaults": { "dns_refresh_interval": DNS_REFRESH_SECONDS },
    });
    if let Some(port) = process.ports.metrics {
        pingsix["prometheus"] = json!({ "address": everywhere(port) });
    }
    if !material.keys.keyring.0.is_empty() {
        pingsix["data_encryption"] = json!({ "enable": true, "keyring": material.keys.keyring.0 });
    }
    let config = json!({
        "pingora": {
            "threads": parameters.threads.unwrap_or(DEFAULT_THREADS),
            "grace_period_seconds": GRACE_PERIOD_SECONDS,
            "graceful_shutdown_timeout_seconds": GRACE_PERIOD_SECONDS,
        },
        "pingsix": pingsix,
    });
    format!("{config:#}\n")
}

fn etcd(plan: &Plan<'_>, process: &Process, material: &PlaneSecrets) -> Value {
    let mut etcd = json!({
        "host": plan.installation.feed,
        "prefix": process.prefix,
        "timeout": 5,
        "connect_timeout": 3,
    });
    if material.identity.is_some() {
        etcd["tls"] = json!({
            "ca_cert": format!("{FEED}/ca.crt"),
            "client_cert": format!("{FEED}/tls.crt"),
            "client_key": format!("{FEED}/tls.key"),
        });
    }
    etcd
}
