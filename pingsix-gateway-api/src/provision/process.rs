//! The configuration of a managed PingSIX process.

use pingsix_translate::infrastructure::PortProtocol;
use pingsix_translate::pingsix::process::{
    CertificateFiles, DEFAULT_THREADS, DNS_REFRESH_SECONDS, FeedTls, ProcessConfig, ProcessFeed,
    ProcessListener,
};
use pingsix_translate::stream::{FRONT_SLOTS, front_address};
use serde_json::json;

use super::{Plan, PlaneSecrets, Process};

/// The parent folder of a container's configuration.
pub(super) const FOLDER: &str = "/etc/pingsix";
/// The folder of the client certificate for the feed.
pub(super) const FEED: &str = "/etc/pingsix/feed";
/// The folder of the certificate for clients without a server name, or with an unknown one.
pub(super) const CERTIFICATE: &str = "/etc/pingsix/certificate";

/// The configuration file of a process: YAML in the notation of JSON.
pub(super) fn config(plan: &Plan<'_>, process: &Process, material: &PlaneSecrets) -> String {
    let parameters = &plan.infrastructure.parameters.process;
    let everywhere = |port: u16| format!("0.0.0.0:{port}");
    let listener = |address: String, tls| ProcessListener { address, tls };
    let listeners: Vec<ProcessListener> = match process.ports.traffic {
        // Behind the sidecar.
        None => {
            let addresses = (1..=FRONT_SLOTS).map(|slot| front_address(process.listener, slot));
            addresses.map(|address| listener(address.to_string(), None)).collect()
        }
        Some(port) => {
            let files = CertificateFiles {
                certificate: format!("{CERTIFICATE}/tls.crt"),
                key: format!("{CERTIFICATE}/tls.key"),
            };
            vec![listener(everywhere(port), Some(files).filter(|_| process.protocol == PortProtocol::Tls))]
        }
    };
    let tls = material.identity.is_some().then(|| FeedTls {
        ca_cert: format!("{FEED}/ca.crt"),
        client_cert: Some(format!("{FEED}/tls.crt")),
        client_key: Some(format!("{FEED}/tls.key")),
        domain: None,
    });
    let config = ProcessConfig {
        threads: parameters.threads.map_or(DEFAULT_THREADS, u32::from),
        listeners,
        feed: ProcessFeed { hosts: plan.installation.feed.clone(), prefix: process.prefix.clone(), tls },
        status: everywhere(process.ports.status),
        dns_refresh_seconds: DNS_REFRESH_SECONDS,
    };
    let mut config = config.to_value();
    let pingsix = &mut config["pingsix"];
    let status = &mut pingsix["status"];
    status["fail_readiness_when_stale"] = json!(parameters.fail_readiness_when_stale);
    // The controller requests the page from outside, and has the key.
    status["allow_insecure_remote"] = json!(true);
    status["diagnostics_api_key"] = json!(material.diagnostics.as_str());
    if let Some(seconds) = parameters.stale_after_seconds {
        status["config_stale_after"] = json!(seconds);
    }
    if let Some(port) = process.ports.metrics {
        pingsix["prometheus"] = json!({ "address": everywhere(port) });
    }
    if !material.keys.keyring.0.is_empty() {
        pingsix["data_encryption"] = json!({ "enable": true, "keyring": material.keys.keyring.0 });
    }
    format!("{config:#}\n")
}
