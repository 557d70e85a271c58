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
use crate::resolve::{AppProtocol, Backend, Backends, Target};
use crate::responder::status_host;

/// Node of an upstream that no request reaches: the discard port.
const NOWHERE: &str = "127.0.0.1:9";

/// Seconds without traffic after which PingSIX closes a stream that is meant to stay open; its maximum.
const STREAM_IDLE_SECONDS: u64 = 86_400;

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
    let service = &backend.key.service;
    let port = backend.key.port.to_string();
    let plaintext = [&*service.namespace, &*service.name, &*port];
    let id = match &backend.tls {
        None => ids.assign('u', &plaintext),
        Some(hostname) => ids.assign('u', &[&plaintext[..], &["tls", hostname.as_str()]].concat()),
    };
    let streams = Timeout { connect: CONNECT_SECONDS, send: STREAM_IDLE_SECONDS, read: STREAM_IDLE_SECONDS };
    let upstream = Upstream {
        nodes: backend.endpoints.iter().map(|endpoint| (endpoint.to_string(), 1)).collect(),
        scheme: match (backend.protocol, &backend.tls) {
            (AppProtocol::Http | AppProtocol::WebSocket, None) => Scheme::Http,
            (AppProtocol::Http | AppProtocol::WebSocket, Some(_)) => Scheme::Https,
            (AppProtocol::H2c, None) => Scheme::Grpc,
            (AppProtocol::H2c, Some(_)) => Scheme::Grpcs,
        },
        // With addresses for nodes, PingSIX takes the server name it sends and verifies from nowhere else; it would
        // refuse every connection (`src/proxy/upstream`).
        pass_host: if backend.tls.is_some() { PassHost::Rewrite } else { PassHost::Pass },
        upstream_host: backend.tls.as_ref().map(ToString::to_string),
        timeout: match backend.protocol {
            AppProtocol::Http => None,
            AppProtocol::WebSocket | AppProtocol::H2c => Some(streams),
        },
        // Connect failures only: one dead endpoint of two would otherwise fail half of the requests.
        retries: Some(1),
        ..Upstream::default()
    };
    let provenance = Provenance::Backend {
        service: Arc::new(ObjectKey { kind: Kind::Service, name: service.clone() }),
        port: backend.key.port,
    };
    (id, upstream, provenance)
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
