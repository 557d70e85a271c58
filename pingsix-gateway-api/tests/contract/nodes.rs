//! Backends that stand for the nodes of a translated configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use pingsix_translate::pingsix::{Config, Document, Upstream};

use crate::echo::Echo;

/// The backends, each standing for one node of some table, by the node's address there.
#[derive(Default)]
pub(crate) struct Nodes(BTreeMap<String, Echo>);

impl Nodes {
    /// A configuration whose nodes are the backends that stand for them; the responder stands for itself.
    pub(crate) async fn stand_in(&mut self, config: &Config, responder: Option<SocketAddr>) -> Config {
        with_upstreams(config, async |upstream| self.replace(upstream, responder).await).await
    }

    async fn replace(&mut self, upstream: &mut Upstream, responder: Option<SocketAddr>) {
        let mut nodes = BTreeMap::new();
        for (node, weight) in &upstream.nodes {
            let node = if responder.is_some_and(|responder| *node == responder.to_string()) {
                node.clone()
            } else {
                if !self.0.contains_key(node) {
                    self.0.insert(node.clone(), Echo::start(node).await);
                }
                self.0[node].address.to_string()
            };
            nodes.insert(node, *weight);
        }
        upstream.nodes = nodes;
    }
}

/// A configuration with another upstream in the place of each, be it a document or written into a Route.
pub(crate) async fn with_upstreams(config: &Config, mut replace: impl AsyncFnMut(&mut Upstream)) -> Config {
    let mut changed = config.clone();
    for (key, document) in config.iter() {
        let mut document = document.clone();
        match &mut document {
            Document::Upstream(upstream) => replace(upstream).await,
            Document::Route(route) => {
                if let Some(upstream) = &mut route.upstream {
                    replace(upstream).await;
                }
                let split = route.plugins.raw("traffic-split").map(ToString::to_string).unwrap_or_default();
                assert!(!split.contains("nodes"), "an inline upstream in a list: {split}");
            }
            Document::Service(_) | Document::GlobalRule(_) | Document::Ssl(_) => {}
        }
        changed.insert(&*key.id, document);
    }
    changed
}
