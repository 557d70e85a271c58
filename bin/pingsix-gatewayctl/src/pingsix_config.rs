//! `pingsix-config`: the process configuration of the PingSIX that serves a data plane.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context as _, anyhow, bail};
use pingsix_gateway_api::explain::{Listener, listeners};
use pingsix_translate::DataPlaneKey;
use serde_json::{Value, json};

use crate::arguments::{EtcdArguments, PingsixConfigArguments, PortsArgument};
use crate::plane::Translated;
use crate::{Exit, Streams, manifest, yaml};

pub(crate) fn run(arguments: &PingsixConfigArguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let manifests = manifest::load(&arguments.paths, &arguments.translation.endpoints)?;
    let options = arguments.translation.options();
    let translated = Translated::new(&manifests, &options);
    let mut printed = 0;
    for (index, (key, plane)) in translated.output.planes.iter().enumerate() {
        if arguments.data_plane.as_ref().is_some_and(|wanted| *wanted != key.to_string()) {
            continue;
        }
        let listeners = listeners(&plane.to_explain(key));
        if listeners.is_empty() {
            writeln!(
                streams.err,
                "warning: no listener of data plane {key} is served, so it needs no PingSIX"
            )?;
            continue;
        }
        let (with_tls, without): (Vec<Listener>, Vec<Listener>) =
            listeners.into_iter().partition(|listener| listener.protocol == "HTTPS");
        let is_mixed = !with_tls.is_empty() && !without.is_empty();
        let listeners = match arguments.ports {
            PortsArgument::All => [with_tls, without].concat(),
            PortsArgument::Plaintext => without,
            PortsArgument::Tls => with_tls,
        };
        if listeners.is_empty() {
            continue;
        }
        let config = config(arguments, key, &key.prefix(&options.root), (&listeners, index))?;
        writeln!(streams.out, "---\n# PingSIX of data plane {key}")?;
        if is_mixed && arguments.ports == PortsArgument::All {
            writeln!(streams.out, "{NO_H2C}")?;
        }
        writeln!(streams.out, "{}", yaml::encode(&config)?.trim_end())?;
        printed += 1;
    }
    if printed == 0 {
        let known: Vec<String> = translated.output.planes.keys().map(DataPlaneKey::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        if let Some(wanted) = &arguments.data_plane {
            bail!("there is no data plane {wanted} that serves a listener; known: {known}");
        }
        writeln!(streams.err, "error: no data plane serves a listener; known: {known}")?;
        return Ok(Exit::Problems);
    }
    Ok(Exit::Success)
}

/// The comment on a process with ports of both kinds.
const NO_H2C: &str = "\
# Connections over HTTP/2 without TLS are closed, as gRPC without TLS needs them: PingSIX offers them (offer_h2c) for all
# ports of a process or for none, and then breaks HTTP/1.1 on ports with TLS. Two processes serve both: pingsix-config
# --ports plaintext and --ports tls print their configurations.";

fn config(
    arguments: &PingsixConfigArguments,
    key: &DataPlaneKey,
    prefix: &str,
    (listeners, index): (&[Listener], usize),
) -> anyhow::Result<Value> {
    let mut by_port: BTreeMap<u16, (&Listener, bool)> = BTreeMap::new();
    for listener in listeners {
        let own =
            u16::try_from(listener.port).with_context(|| format!("port of listener {}", listener.name))?;
        let port = if own < 1024 { own.checked_add(arguments.port_offset) } else { Some(own) };
        let port = port.ok_or_else(|| anyhow!("port {own} of {key} and the offset are more than 65535"))?;
        let tls = listener.protocol == "HTTPS";
        match by_port.insert(port, (listener, tls)) {
            Some((other, _)) if other.port != listener.port => {
                bail!("ports {} and {} of {key} would both become {port}", other.port, listener.port);
            }
            Some(_) | None => {}
        }
    }
    // The switch is for the whole process, and breaks HTTP/1.1 on TLS listeners.
    let plaintext_only = by_port.values().all(|(_, tls)| !tls);
    let listeners: Vec<Value> = by_port
        .iter()
        .map(|(port, (_, tls))| {
            let address = SocketAddr::new(arguments.bind, *port).to_string();
            if *tls {
                let files = json!({ "cert_path": arguments.cert, "key_path": arguments.key });
                json!({ "address": address, "tls": files, "offer_h2": true })
            } else if plaintext_only {
                json!({ "address": address, "offer_h2c": true })
            } else {
                json!({ "address": address })
            }
        })
        .collect();
    let etcd = etcd(&arguments.feed, prefix)?;
    let status_port = u16::try_from(index).ok().and_then(|index| arguments.status.port().checked_add(index));
    let status_port = status_port.ok_or_else(|| anyhow!("no port is left for the status of {key}"))?;
    Ok(json!({
        "pingora": { "threads": arguments.threads, "grace_period_seconds": 5, "graceful_shutdown_timeout_seconds": 5 },
        "pingsix": {
            "listeners": listeners,
            "etcd": etcd,
            "status": {
                "address": SocketAddr::new(arguments.status.ip(), status_port).to_string(),
                // PingSIX keeps serving its configuration. Otherwise all instances would turn unready, and lose their
                // traffic, five minutes after a failure of all feed servers.
                "fail_readiness_when_stale": false,
            },
            "defaults": { "dns_refresh_interval": arguments.dns_refresh },
        },
    }))
}

fn etcd(arguments: &EtcdArguments, prefix: &str) -> anyhow::Result<Value> {
    let EtcdArguments { etcd, etcd_ca, etcd_cert, etcd_key, etcd_name } = arguments;
    for host in etcd {
        match (host.split_once("://"), etcd_ca) {
            (Some(("https", _)), None) => {
                bail!("--etcd {host} needs --etcd-ca, to verify the etcd server with")
            }
            (Some(("http", _)), Some(_)) => bail!("--etcd {host} is plaintext, and --etcd-ca asks for TLS"),
            (Some(("http" | "https", _)) | None, _) => {}
            (Some((scheme, _)), _) => bail!("--etcd {host} is neither http nor https, but {scheme}"),
        }
    }
    let mut config = json!({ "host": etcd, "prefix": prefix, "timeout": 5, "connect_timeout": 3 });
    if let Some(ca) = etcd_ca {
        let mut tls = json!({ "ca_cert": ca });
        if let (Some(cert), Some(key)) = (etcd_cert, etcd_key) {
            tls["client_cert"] = json!(cert);
            tls["client_key"] = json!(key);
        }
        if let Some(name) = etcd_name {
            tls["domain"] = json!(name);
        }
        config["tls"] = tls;
    }
    Ok(config)
}
