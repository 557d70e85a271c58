//! `pingsix-config`: the process configuration of the PingSIX that serves a data plane.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use pingsix_gateway_api::explain::{Listener, listeners};
use pingsix_translate::DataPlaneKey;
use pingsix_translate::pingsix::process::{
    CertificateFiles, FeedTls, ProcessConfig, ProcessFeed, ProcessListener, h2c_obstacle,
};
use serde_json::Value;

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
            listeners.into_iter().partition(Listener::has_tls);
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
        if !listeners.iter().all(Listener::has_tls) && h2c_obstacle(&listeners, |one| one.has_tls()).is_some()
        {
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
    let mut by_port: BTreeMap<u16, &Listener> = BTreeMap::new();
    for listener in listeners {
        let own =
            u16::try_from(listener.port).with_context(|| format!("port of listener {}", listener.name))?;
        let port = if own < 1024 { own.checked_add(arguments.port_offset) } else { Some(own) };
        let port = port.ok_or_else(|| anyhow!("port {own} of {key} and the offset are more than 65535"))?;
        match by_port.insert(port, listener) {
            Some(other) if other.port != listener.port => {
                bail!("ports {} and {} of {key} would both become {port}", other.port, listener.port);
            }
            Some(_) | None => {}
        }
    }
    let files = CertificateFiles {
        certificate: arguments.cert.display().to_string(),
        key: arguments.key.display().to_string(),
    };
    let listeners = by_port.into_iter().map(|(port, listener)| ProcessListener {
        address: SocketAddr::new(arguments.bind, port).to_string(),
        tls: listener.has_tls().then(|| files.clone()),
    });
    let status_port = u16::try_from(index).ok().and_then(|index| arguments.status.port().checked_add(index));
    let status_port = status_port.ok_or_else(|| anyhow!("no port is left for the status of {key}"))?;
    let config = ProcessConfig {
        threads: arguments.threads,
        listeners: listeners.collect(),
        feed: feed(&arguments.feed, prefix)?,
        status: SocketAddr::new(arguments.status.ip(), status_port).to_string(),
        dns_refresh_seconds: arguments.dns_refresh,
    };
    Ok(config.to_value())
}

fn feed(arguments: &EtcdArguments, prefix: &str) -> anyhow::Result<ProcessFeed> {
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
    let file = |file: &PathBuf| file.display().to_string();
    let tls = etcd_ca.as_ref().map(|ca| FeedTls {
        ca_cert: file(ca),
        client_cert: etcd_cert.as_ref().map(file),
        client_key: etcd_key.as_ref().map(file),
        domain: etcd_name.clone(),
    });
    Ok(ProcessFeed { hosts: etcd.clone(), prefix: prefix.to_owned(), tls })
}
