//! Targets to named upstreams, shared by all Routes that use them.
//!
//! Always named, never inline: whether a Service is used once or twice is not an attribute of a Route, and a
//! Route's document must not change because another Route came.

mod settings;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use super::id::{Ids, Name};
use crate::backends::{AppProtocol, Backend, BackendKey, ConnectionSettings};
use crate::model::{Kind, ObjectKey, Provenance, Traffic};
use crate::normalise::{MAX_TIMEOUT, TimeoutsAndRetries};
use crate::pingsix::{PassHost, Scheme, Timeout, Upstream};
use crate::responder::status_host;

/// Node of an upstream that no request reaches: the discard port.
const NOWHERE: &str = "127.0.0.1:9";

/// Seconds to connect; PingSIX's own default, which must be repeated when the others are set.
const CONNECT_SECONDS: u64 = 5;

/// The upstream of Routes and services whose requests reach no upstream.
pub(super) fn nowhere() -> Upstream {
    Upstream { nodes: BTreeMap::from([(NOWHERE.to_owned(), 1)]), ..Upstream::default() }
}

/// The id of the upstream of a backend.
pub(super) fn id_of_backend(backend: &Backend, ids: &mut Ids) -> String {
    let BackendKey { service, port, usage } = &*backend.key;
    let ConnectionSettings {
        traffic,
        timeouts: TimeoutsAndRetries { timeout, retries },
        host,
        tls,
        settings,
        by_cluster_ip,
    } = &**usage;
    let port_text = port.to_string();
    let usages = [
        (*traffic == Traffic::Grpc).then(|| "grpc".to_owned()),
        timeout.map(|seconds| format!("timeout {seconds}")),
        retries.map(|retries| format!("retries {retries}")),
        host.as_ref().map(|host| format!("host {host}")),
        tls.as_ref().map(|name| format!("tls {name}")),
        settings.as_ref().map(|settings| format!("policy {settings}")),
        by_cluster_ip.then(|| "cluster IP".to_owned()),
    ];
    let mut attributes: Vec<&str> = vec![&service.namespace, &service.name, &port_text];
    attributes.extend(usages.iter().flatten().map(String::as_str));
    ids.assign(&Name::new('u', &attributes))
}

pub(super) fn of_backend(backend: &Backend) -> (Upstream, Provenance) {
    let BackendKey { service, port, usage } = &*backend.key;
    let ConnectionSettings { timeouts: TimeoutsAndRetries { timeout, retries }, host, tls, settings, .. } =
        &**usage;
    let sent = tls.as_ref().or(host.as_ref());
    let mut upstream = Upstream {
        nodes: backend.endpoints.iter().map(|endpoint| (endpoint.to_string(), 1)).collect(),
        scheme: match (backend.protocol, tls) {
            (AppProtocol::Http | AppProtocol::WebSocket, None) => Scheme::Http,
            (AppProtocol::Http | AppProtocol::WebSocket, Some(_)) => Scheme::Https,
            (AppProtocol::H2c, None) => Scheme::Grpc,
            (AppProtocol::H2c, Some(_)) => Scheme::Grpcs,
        },
        timeout: match (timeout, backend.protocol) {
            (Some(seconds), _) => Some(idle_for(u64::from(*seconds))),
            (None, AppProtocol::WebSocket | AppProtocol::H2c) => Some(idle_for(u64::from(MAX_TIMEOUT))),
            (None, AppProtocol::Http) => None,
        },
        // Connect failures only: one dead endpoint of two would otherwise fail half of the requests.
        retries: Some(retries.unwrap_or(1)).filter(|retries| *retries > 0),
        // PingSIX takes the name it sends and verifies over TLS from here too: with an address for a node it has no
        // other (`src/proxy/upstream`).
        pass_host: if sent.is_some() { PassHost::Rewrite } else { PassHost::Pass },
        upstream_host: sent.map(ToString::to_string),
        ..Upstream::default()
    };
    if let Some(settings) = settings {
        settings::apply(settings, usage, &mut upstream);
    }
    let provenance = Provenance::Backend {
        service: Arc::new(ObjectKey { kind: Kind::Service, name: service.clone() }),
        port: *port,
    };
    (upstream, provenance)
}

/// PingSIX wants all three. To connect takes no longer than it would without.
fn idle_for(seconds: u64) -> Timeout {
    Timeout { connect: CONNECT_SECONDS.min(seconds), send: seconds, read: seconds }
}

/// The responder needs the Host that the client sent.
pub(super) fn of_redirect(responder: SocketAddr) -> (Upstream, Provenance) {
    let upstream = Upstream { nodes: BTreeMap::from([(responder.to_string(), 1)]), ..Upstream::default() };
    (upstream, Provenance::Redirect)
}

pub(super) fn of_status(status: u16, responder: SocketAddr) -> (Upstream, Provenance) {
    let upstream = Upstream {
        nodes: BTreeMap::from([(responder.to_string(), 1)]),
        pass_host: PassHost::Rewrite,
        upstream_host: Some(status_host(status)),
        ..Upstream::default()
    };
    (upstream, Provenance::Status { status: Some(status) })
}
