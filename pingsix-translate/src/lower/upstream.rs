//! Targets to named upstreams, shared by all Routes that use them.
//!
//! Always named, never inline: whether a Service is used once or twice is not an attribute of a Route, and a
//! Route's document must not change because another Route came.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use super::id::Ids;
use crate::object::{Kind, ObjectKey};
use crate::pingsix::{Config, DocumentKey, PassHost, ResourceKind, Scheme, Timeout, Upstream};
use crate::provenance::Provenance;
use crate::resolve::{AppProtocol, Backend, BackendKey, Backends, Target, Usage};
use crate::responder::status_host;
use crate::route::{Exchange, LONGEST_TIMEOUT, Traffic};

/// Node of an upstream that no request reaches: the discard port.
const NOWHERE: &str = "127.0.0.1:9";

/// Seconds to connect; PingSIX's own default, which must be repeated when the others are set.
const CONNECT_SECONDS: u64 = 5;

/// The named upstreams of a data plane, made when first asked for.
#[derive(Debug)]
pub(crate) struct Upstreams<'a> {
    backends: &'a Backends,
    responder: Option<SocketAddr>,
    ids: BTreeMap<UpstreamKey, String>,
    made: Vec<(String, Upstream, Provenance)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum UpstreamKey {
    Target(Target),
    Nowhere,
}

impl<'a> Upstreams<'a> {
    pub(crate) fn new(backends: &'a Backends, responder: Option<SocketAddr>) -> Self {
        Self { backends, responder, ids: BTreeMap::new(), made: Vec::new() }
    }

    /// The id of a target's upstream; `None` for a status when there is no responder.
    pub(crate) fn target(&mut self, target: Target, ids: &mut Ids) -> Option<&str> {
        let key = UpstreamKey::Target(target);
        if !self.ids.contains_key(&key) {
            let (id, upstream, provenance) = match target {
                Target::Backend(index) => of_backend(self.backends.get(index), ids),
                Target::Status(status) => of_status(status, self.responder?),
                Target::Redirect => of_redirect(self.responder?),
            };
            self.made.push((id.clone(), upstream, provenance));
            self.ids.insert(key, id);
        }
        self.ids.get(&key).map(String::as_str)
    }

    /// The id of the upstream of Routes that answer before they would reach one.
    pub(crate) fn nowhere(&mut self) -> &str {
        let made = &mut self.made;
        self.ids.entry(UpstreamKey::Nowhere).or_insert_with(|| {
            let upstream =
                Upstream { nodes: BTreeMap::from([(NOWHERE.to_owned(), 1)]), ..Upstream::default() };
            made.push(("nowhere".to_owned(), upstream, Provenance::Status { status: None }));
            "nowhere".to_owned()
        })
    }

    /// Writes the upstreams that were asked for.
    pub(crate) fn write(self, config: &mut Config, provenance: &mut BTreeMap<DocumentKey, Provenance>) {
        for (id, upstream, origin) in self.made {
            config.insert(id.clone(), upstream);
            provenance.insert(DocumentKey { kind: ResourceKind::Upstream, id }, origin);
        }
    }
}

fn of_backend(backend: &Backend, ids: &mut Ids) -> (String, Upstream, Provenance) {
    let BackendKey { service, port, usage } = &backend.key;
    let Usage { traffic, exchange: Exchange { timeout, retries }, host, tls } = usage;
    let port_text = port.to_string();
    let usages = [
        (*traffic == Traffic::Grpc).then(|| "grpc".to_owned()),
        timeout.map(|seconds| format!("timeout {seconds}")),
        retries.map(|retries| format!("retries {retries}")),
        host.as_ref().map(|host| format!("host {host}")),
        tls.as_ref().map(|name| format!("tls {name}")),
    ];
    let mut attributes: Vec<&str> = vec![&service.namespace, &service.name, &port_text];
    attributes.extend(usages.iter().flatten().map(String::as_str));
    let id = ids.assign('u', &attributes);
    let sent = tls.as_ref().or(host.as_ref());
    let upstream = Upstream {
        nodes: backend.endpoints.iter().map(|endpoint| (endpoint.to_string(), 1)).collect(),
        scheme: match (backend.protocol, tls) {
            (AppProtocol::Http | AppProtocol::WebSocket, None) => Scheme::Http,
            (AppProtocol::Http | AppProtocol::WebSocket, Some(_)) => Scheme::Https,
            (AppProtocol::H2c, None) => Scheme::Grpc,
            (AppProtocol::H2c, Some(_)) => Scheme::Grpcs,
        },
        timeout: match (timeout, backend.protocol) {
            (Some(seconds), _) => Some(idle_for(u64::from(*seconds))),
            (None, AppProtocol::WebSocket | AppProtocol::H2c) => Some(idle_for(u64::from(LONGEST_TIMEOUT))),
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
    let provenance = Provenance::Backend {
        service: Arc::new(ObjectKey { kind: Kind::Service, name: service.clone() }),
        port: *port,
    };
    (id, upstream, provenance)
}

/// PingSIX wants all three. To connect takes no longer than it would without.
fn idle_for(seconds: u64) -> Timeout {
    Timeout { connect: CONNECT_SECONDS.min(seconds), send: seconds, read: seconds }
}

/// The responder needs the Host that the client sent.
fn of_redirect(responder: SocketAddr) -> (String, Upstream, Provenance) {
    let upstream = Upstream { nodes: BTreeMap::from([(responder.to_string(), 1)]), ..Upstream::default() };
    ("redirect".to_owned(), upstream, Provenance::Redirect)
}

fn of_status(status: u16, responder: SocketAddr) -> (String, Upstream, Provenance) {
    let upstream = Upstream {
        nodes: BTreeMap::from([(responder.to_string(), 1)]),
        pass_host: PassHost::Rewrite,
        upstream_host: Some(status_host(status)),
        ..Upstream::default()
    };
    (format!("status-{status}"), upstream, Provenance::Status { status: Some(status) })
}
