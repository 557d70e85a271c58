//! Handwritten routes, each on a host of its own, before a backend that reports the received request.

use std::path::Path;

use bytes::Bytes;
use pingsix_translate::pingsix::{Config, Outcome, Request, RouteTable};
use serde_json::{Value, json};

use crate::client::{Client, Protocol, Reply, ask_all};
use crate::etcd::Etcd;
use crate::mirror::Mirror;
use crate::process::{Pair, Verdict, WAIT_TIMEOUT};

/// PingSIX with the routes, over every protocol.
pub(crate) struct Harness {
    pair: Pair,
    config: Config,
    _etcd: Etcd,
    _mirror: Mirror,
}

impl Harness {
    /// Serves routes with these plugins, and with these fields in their upstreams.
    pub(crate) async fn start<'r>(
        binary: &Path,
        scope: &str,
        routes: impl IntoIterator<Item = (&'r Value, &'r Value)>,
    ) -> Self {
        let etcd = Etcd::start(&[scope.to_owned()]).await;
        let pair = Pair::start(binary, etcd.address, scope).await;
        let mirror = Mirror::start().await;
        let mut pairs = Vec::new();
        for (index, (plugins, fields)) in routes.into_iter().enumerate() {
            let mut upstream = fields.clone();
            upstream["nodes"] = json!({ mirror.address.to_string(): 1 });
            let route = json!({
                "uris": ["/", "/{*p}"],
                "host": host(index),
                "plugins": plugins,
                "upstream": upstream,
            });
            pairs.push((format!("routes/{index}"), Bytes::from(route.to_string())));
        }
        let revision = etcd.publish_raw(scope, &pairs).await;
        assert_eq!(pair.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
        let pairs = pairs.into_iter().map(|(key, value)| (format!("{scope}/{key}"), value));
        let config = Config::from_pairs(scope, pairs).unwrap();
        Self { pair, config, _etcd: etcd, _mirror: mirror }
    }

    /// The answers of routes, in their order. The host of a request is appended to the host of the route, as a port would
    /// be.
    pub(crate) async fn ask_all(&self, requests: &[(Protocol, usize, Request)]) -> Vec<Reply> {
        let carry =
            |(protocol, route, request): &(Protocol, usize, Request)| protocol.carry(&on(*route, request));
        let requests: Vec<Request> = requests.iter().map(carry).collect();
        ask_all(self.pair.addresses(), &requests).await
    }

    /// The answer of a route, over a connection of its own.
    pub(crate) async fn ask(&self, protocol: Protocol, route: usize, request: &Request) -> Reply {
        self.try_ask(protocol, route, request).await.unwrap_or_else(|error| {
            panic!("route {route}, {protocol:?}, {request:?}: {error}");
        })
    }

    /// As [`Self::ask`], or why there is no answer.
    pub(crate) async fn try_ask(
        &self,
        protocol: Protocol,
        route: usize,
        request: &Request,
    ) -> Result<Reply, String> {
        Client::new(protocol, self.pair.addresses().of(protocol), None).ask(&on(route, request)).await
    }

    /// The answer of the model to a request.
    pub(crate) fn outcome(&self, protocol: Protocol, route: usize, request: &Request) -> Outcome<'_> {
        let table = RouteTable::new(&self.config);
        let router = table.insert_in(0..table.len()).unwrap();
        router.outcome(&protocol.carry(&on(route, request)))
    }

    /// As [`Self::ask`], over h2c with another `:scheme` than that of the connection.
    pub(crate) async fn ask_with_claimed_scheme(
        &self,
        scheme: &'static str,
        route: usize,
        request: &Request,
    ) -> Reply {
        let mut client = Client::with_claimed_scheme(scheme, self.pair.addresses().of(Protocol::H2c));
        client.ask(&on(route, request)).await.unwrap()
    }
}

/// The host of a route.
pub(crate) fn host(route: usize) -> String {
    format!("route-{route}.test")
}

/// The request with the host of a route before its own.
fn on(route: usize, request: &Request) -> Request {
    let suffix = request.host.as_deref().unwrap_or_default();
    Request { host: Some(format!("{}{suffix}", host(route))), ..request.clone() }
}

/// A GET of the route's host.
pub(crate) fn get(target: &str) -> Request {
    Request::get("", target)
}
