//! Targets to named upstreams, shared by all Routes that use them.
//!
//! Always named, never inline: whether a Service is used once or twice is not an attribute of a Route, and a
//! Route's document must not change because another Route came.

mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use super::id::{Ids, Name};
use super::named::SharedDocuments;
use crate::backends::{AppProtocol, Backend, BackendKey, Backends, ConnectionSettings, Target};
use crate::model::{Kind, ObjectKey, Provenance, Traffic};
use crate::normalise::{MAX_TIMEOUT, TimeoutsAndRetries};
use crate::pingsix::{PassHost, ResourceKind, Scheme, Timeout, Upstream};
use crate::responder::status_host;
use crate::small_set::SmallSet;

/// Node of an upstream that no request reaches: the discard port.
pub(super) const NOWHERE: &str = "127.0.0.1:9";

/// Seconds to connect; PingSIX's own default, which must be repeated when the others are set.
const CONNECT_SECONDS: u64 = 5;

/// The names of a data plane's upstreams, given when first asked for.
#[derive(Debug)]
pub(crate) struct Upstreams {
    pub(super) named: SharedDocuments<UpstreamKey>,
    /// The keys requested since this was last taken, successful or not.
    requested: BTreeSet<UpstreamKey>,
}

/// The upstreams that a Route uses.
pub(super) type Uses = SmallSet<UpstreamKey>;

/// The key of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UpstreamKey {
    Target(Target),
    Nowhere,
}

impl Default for Upstreams {
    fn default() -> Self {
        Self { named: SharedDocuments::new(ResourceKind::Upstream), requested: BTreeSet::new() }
    }
}

impl Upstreams {
    /// The id of a target's upstream; `None` for a status when there is no responder.
    pub(crate) fn target(
        &mut self,
        target: Target,
        responder: Option<SocketAddr>,
        backends: &Backends,
        ids: &mut Ids,
    ) -> Option<&str> {
        let key = UpstreamKey::Target(target);
        let id = self.named.id(&key, || match target {
            Target::Backend(index) => Some(id_of_backend(backends.get(index), ids)),
            Target::Status(status) => responder.map(|_| format!("status-{status}")),
            Target::Redirect => responder.map(|_| "redirect".to_owned()),
        })?;
        self.requested.insert(key);
        Some(id)
    }

    /// The id of the upstream of Routes that answer before they would reach one.
    pub(crate) fn nowhere(&mut self) -> &str {
        self.requested.insert(UpstreamKey::Nowhere);
        self.named.id(&UpstreamKey::Nowhere, || Some("nowhere".to_owned())).unwrap_or_default()
    }

    /// Takes the keys requested since the last call.
    pub(crate) fn take_requested(&mut self) -> Uses {
        std::mem::take(&mut self.requested).into_iter().collect()
    }
}

impl UpstreamKey {
    /// The document and its provenance; `None` for a target that needs a responder when there is none.
    pub(crate) fn write(
        self,
        responder: Option<SocketAddr>,
        backends: &Backends,
    ) -> Option<(Upstream, Provenance)> {
        match self {
            Self::Target(Target::Backend(index)) => Some(of_backend(backends.get(index))),
            Self::Target(Target::Status(status)) => Some(of_status(status, responder?)),
            Self::Target(Target::Redirect) => Some(of_redirect(responder?)),
            Self::Nowhere => {
                let nodes = BTreeMap::from([(NOWHERE.to_owned(), 1)]);
                Some((Upstream { nodes, ..Upstream::default() }, Provenance::Status { status: None }))
            }
        }
    }
}

fn id_of_backend(backend: &Backend, ids: &mut Ids) -> String {
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

fn of_backend(backend: &Backend) -> (Upstream, Provenance) {
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
fn of_redirect(responder: SocketAddr) -> (Upstream, Provenance) {
    let upstream = Upstream { nodes: BTreeMap::from([(responder.to_string(), 1)]), ..Upstream::default() };
    (upstream, Provenance::Redirect)
}

fn of_status(status: u16, responder: SocketAddr) -> (Upstream, Provenance) {
    let upstream = Upstream {
        nodes: BTreeMap::from([(responder.to_string(), 1)]),
        pass_host: PassHost::Rewrite,
        upstream_host: Some(status_host(status)),
        ..Upstream::default()
    };
    (upstream, Provenance::Status { status: Some(status) })
}
