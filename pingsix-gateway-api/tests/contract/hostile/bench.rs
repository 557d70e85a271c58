//! PingSIX before the backends of a site: both processes of all protocols, and one with mapped addresses.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use pingsix_gateway_sidecar::responder::{Options as ResponderOptions, Reach, Responder};
use pingsix_translate::{ObjectName, Objects, Options, translate, translate_ingress};

use super::attack::{Attack, Draft};
use super::backend::{Backend, Received};
use super::judge::{Violation, judge};
use super::manifests::{SERVICES, endpoint};
use super::reading::plain;
use super::site::{Dialect, Site, Visitor};
use super::wire::{Connections, Message, NUMBER};
use crate::client::Reply;
use crate::etcd::Etcd;
use crate::nodes::with_upstreams;
use crate::process::{Listener, Pair, PingSix, Verdict, WAIT_TIMEOUT};
use crate::properties::case::decode;

const SCOPE: &str = "/contract/hostile";

pub(super) struct Bench {
    pair: Pair,
    mapped: PingSix,
    etcd: Etcd,
    responder: SocketAddr,
    backends: BTreeMap<String, Backend>,
    connections: Connections,
    editions: usize,
    number: usize,
}

/// A request as it was sent, and its answer.
pub(super) struct Exchange {
    number: usize,
    pub(super) message: Message,
    pub(super) reply: Result<Reply, String>,
    pub(super) received: Option<Received>,
}

impl Exchange {
    /// Whether a cache answered with the response to an earlier request, and that one is at fault only for backends that
    /// believe its headers. It was judged in its turn.
    pub(super) fn is_violation_of_earlier(&self, site: &Site, visitor: &Visitor) -> bool {
        let Some(received) = &self.received else { return false };
        let is_own = received.header(NUMBER) == Some(&self.number.to_string());
        !is_own && judge(site, visitor, &plain(received)).is_none()
    }

    /// Whether a backend got another request than the one that was sent, although no cache answered.
    pub(super) fn is_mixed_up(&self, number: usize, cached: bool) -> bool {
        let seen = self.received.as_ref().and_then(|received| received.header(NUMBER));
        !cached && seen.is_some_and(|seen| seen != number.to_string())
    }
}

impl Bench {
    pub(super) async fn start(binary: &Path) -> Self {
        let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
        let pair = Pair::start(binary, etcd.address, SCOPE).await;
        let mapped = PingSix::start_with(Listener::MappedPlaintext, binary, etcd.address, SCOPE).await;
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let responder =
            Responder::bind(loopback, Reach::Loopback, ResponderOptions::default()).await.unwrap();
        let address = responder.local_addr().unwrap();
        tokio::spawn(responder.run(std::future::pending()));
        let mut backends = BTreeMap::new();
        for service in SERVICES {
            backends.insert(format!("{}:8080", endpoint(service)), Backend::start(service).await);
        }
        let connections = Connections::new(pair.addresses(), mapped.address);
        Self { pair, mapped, etcd, responder: address, backends, connections, editions: 0, number: 0 }
    }

    /// Publishes the translation of a site.
    pub(super) async fn publish(&mut self, site: &Site) {
        let mut objects = Objects::default();
        for manifest in site.manifests() {
            objects.insert(decode(&manifest));
        }
        let options = Options { responder: Some(self.responder), ..Options::default() };
        let translation = match site.dialect {
            Dialect::Gateway => {
                translate(&objects.snapshot(&ObjectName::new("infra", "public")).unwrap(), &options)
            }
            Dialect::Nginx | Dialect::Apisix => {
                translate_ingress(&objects.ingress_snapshot("pingsix").unwrap(), &options)
            }
        };
        let plane = translation.data_planes.values().next().unwrap();
        let config = with_upstreams(&plane.config, async |upstream| {
            let nodes = std::mem::take(&mut upstream.nodes);
            let stand_in =
                |node: String| self.backends.get(&node).map_or(node, |backend| backend.address.to_string());
            upstream.nodes = nodes.into_iter().map(|(node, weight)| (stand_in(node), weight)).collect();
        })
        .await;
        self.editions += 1;
        let revision = self.etcd.publish(SCOPE, &config, self.editions).await;
        for verdict in [
            self.pair.verdict(revision, WAIT_TIMEOUT).await,
            self.mapped.verdict(revision, WAIT_TIMEOUT).await,
        ] {
            assert_eq!(verdict, Verdict::Accepted, "{}", config.to_static());
        }
    }

    /// Sends a draft; `None` if its protocol cannot carry the draft.
    pub(super) async fn send(&mut self, draft: &Draft) -> Option<(usize, Exchange)> {
        self.number += 1;
        let message = Message::of(draft, self.number)?;
        let reply = self.connections.send(draft, &message).await;
        let received = reply.as_ref().ok().and_then(Received::of);
        Some((self.number, Exchange { number: self.number, message, reply, received }))
    }

    /// Sends an attack and judges the answer.
    pub(super) async fn attack(
        &mut self,
        site: &Site,
        attack: &Attack,
    ) -> Option<(Exchange, Option<Violation>, bool)> {
        let draft = attack.draft(site);
        let (number, exchange) = self.send(&draft).await?;
        let is_mixed_up = exchange.is_mixed_up(number, site.cached);
        let violation = exchange.received.as_ref().and_then(|received| judge(site, &draft.visitor, received));
        Some((exchange, violation, is_mixed_up))
    }
}
