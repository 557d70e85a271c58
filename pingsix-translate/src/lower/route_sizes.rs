//! Bytes of the parts of Routes, measured on documents as they are written.
//!
//! A budget is charged before the documents exist ([`super::budget`]). The charge of a row is the sum of all parts that its
//! Route may need, so each part has its longest value here. [`super::room`] needs the shortest ones.

use std::sync::LazyLock;

use super::filters::of_filters;
use crate::model::Kind;
use crate::pingsix::plugin::{ProxyRewrite, SplitRule, TrafficSplit, WeightedUpstream};
use crate::pingsix::{Document, DocumentKey, Plugins, ResourceKind, Route, json_len, listed_bytes};

/// Bytes of `"",` around a host or a pattern in a list.
pub(super) const QUOTED: usize = 3;

/// The sizes of all parts.
pub(super) static ROUTE_SIZES: LazyLock<RouteSizes> = LazyLock::new(RouteSizes::measure);

/// The bytes that each part adds to a Route, without the texts that depend on objects.
#[derive(Debug)]
pub(super) struct RouteSizes {
    /// The document in a list response, without the prefix of its key, hosts and patterns.
    pub(super) route: usize,
    /// The list of a method.
    pub(super) method: usize,
    /// A name that [`name_of`](super::document) gives.
    pub(super) name: usize,
    pub(super) service_id: usize,
    /// The service of filters in a list response, without the prefix of its key and the filters.
    pub(super) service: usize,
    /// The plugins of a Route, if there are any.
    pub(super) plugins: usize,
    /// The plugin that fixes a host and its port, and the plugins around it.
    pub(super) fixed_host: usize,
    /// The plugin of a decision list without rules, and the plugins around it.
    pub(super) split: usize,
    /// A rule of a decision list, without conditions and targets.
    pub(super) split_rule: usize,
    /// The condition of a rule for requests that came in at another address.
    pub(super) address: usize,
    /// A target of a rule.
    pub(super) target: usize,
    /// The shortest document in a list response.
    pub(super) shortest_route: usize,
    /// The shortest rule with a condition.
    pub(super) shortest_split_rule: usize,
}

impl RouteSizes {
    fn measure() -> Self {
        // Ids have 13 characters, but 25 after a collision.
        let id = "i".repeat(25);
        let bare = Route {
            uris: vec![String::new(); 2],
            hosts: vec![String::new(); 2],
            // Priorities are below 2^31.
            priority: i32::MAX.unsigned_abs(),
            upstream_id: Some(id.clone()),
            ..Route::default()
        };
        let added = |changed: Route| json_len(&changed) - json_len(&bare);
        let with = |plugins: Plugins| added(Route { plugins, ..bare.clone() });
        let fixed_host = ProxyRewrite { host: Some(":65535".to_owned()), ..ProxyRewrite::default() };
        let fixed_host = Plugins::default().with(&fixed_host);
        let target = WeightedUpstream { upstream_id: Some(id.clone()), upstream: None, weight: u32::MAX };
        let address = vec![["server_addr", "!=", "127.255.255.64:7087"].map(str::to_owned).to_vec()];
        let rule =
            |targets| SplitRule { vars: address.clone(), weighted_upstreams: vec![target.clone(); targets] };
        let split = |rules| json_len(&TrafficSplit { rules });
        let key = DocumentKey { kind: ResourceKind::Route, id: id.clone() };
        let shortest = Route {
            uri: Some(String::new()),
            priority: 2,
            upstream_id: Some("nowhere".to_owned()),
            ..Route::default()
        };
        let shortest_key = DocumentKey { kind: ResourceKind::Route, id: "r".repeat(13) };
        let to_status =
            WeightedUpstream { upstream_id: Some("status-500".to_owned()), upstream: None, weight: 1 };
        let shortest_rule = SplitRule {
            vars: vec![["arg_a", "!=", ""].map(str::to_owned).to_vec()],
            weighted_upstreams: vec![to_status],
        };
        // Each host and pattern is charged by itself.
        let lists = 2 * (2 * QUOTED - 1);
        Self {
            route: listed_bytes(&key, &Document::Route(bare.clone()).into()) - lists,
            method: added(Route { methods: vec![String::new()], ..bare.clone() }),
            name: added(Route {
                name: Some(format!("{}///{}", Kind::HttpRoute, usize::MAX)),
                ..bare.clone()
            }),
            service_id: added(Route { service_id: Some(id.clone()), ..bare.clone() }),
            service: listed_bytes(
                &DocumentKey { kind: ResourceKind::Service, id },
                &of_filters("{}").0.into(),
            ),
            plugins: with(fixed_host.clone()) - json_len(&fixed_host),
            fixed_host: with(fixed_host),
            split: with(Plugins::default().with(&TrafficSplit::default())),
            split_rule: split(vec![rule(0), rule(0)]) - split(vec![rule(0)]) - json_len(&address),
            address: json_len(&address),
            target: split(vec![rule(2)]) - split(vec![rule(1)]),
            shortest_route: listed_bytes(&shortest_key, &Document::Route(shortest).into()),
            shortest_split_rule: json_len(&shortest_rule),
        }
    }
}
