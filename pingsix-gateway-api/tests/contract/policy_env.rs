//! PingSIX before one endpoint, with policies on two routes.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use pingsix_gateway_sidecar::responder::{Options as ResponderOptions, Reach, Responder};
use pingsix_translate::pingsix::Request;
use pingsix_translate::{Kind, Object, ObjectName, Objects, Options, Translation, translate};
use serde_json::{Value, json};

use crate::client::{Client, Protocol, Reply};
use crate::echo::{BACKEND, Echo};
use crate::etcd::Etcd;
use crate::expectations::{Expectation, KEY, keys_of};
use crate::objects::{gateway_and_service, object, with_nodes};
use crate::process::{Listener, PingSix, Verdict, WAIT_TIMEOUT};

/// Gateway, Service and HTTPRoutes `infra/orders` for `/orders` and `infra/help` for `/help`.
pub(crate) fn world() -> Objects {
    let mut objects = gateway_and_service(&json!({ "port": 80 }), 8080);
    for name in ["orders", "help"] {
        add_route(
            &mut objects,
            name,
            "2026-01-01T00:00:00Z",
            &json!({ "path": { "value": format!("/{name}") } }),
        );
    }
    objects
}

pub(crate) fn add_route(objects: &mut Objects, name: &str, created: &str, matched: &Value) {
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": { "namespace": "infra", "name": name, "creationTimestamp": created },
        "spec": {
            "parentRefs": [{ "name": "public" }],
            "rules": [{ "matches": [matched], "backendRefs": [{ "name": "shop", "port": 80 }] }],
        },
    }))));
}

pub(crate) fn add_secret(objects: &mut Objects, [namespace, name]: [&str; 2], entry: &str, value: &str) {
    objects.insert(Object::Secret(object(json!({
        "metadata": { "namespace": namespace, "name": name }, "stringData": { entry: value },
    }))));
}

/// Protects an HTTPRoute of namespace `infra` by API keys, of which [`KEY`] is one.
pub(crate) fn protect(objects: &mut Objects, route: &str) {
    add_secret(objects, ["infra", "keys"], "alice", KEY);
    let fields = keys_of(&json!({ "name": "keys" }));
    add_policy(objects, (Kind::SecurityPolicy, "keys"), &[["HTTPRoute", route]], &fields);
}

/// Adds policy `infra/<name>` of a kind for objects of namespace `infra`.
pub(crate) fn add_policy(
    objects: &mut Objects,
    (kind, name): (Kind, &str),
    targets: &[[&str; 2]],
    fields: &Value,
) {
    let target_ref = |[kind, name]: &[&str; 2]| json!({ "group": "gateway.networking.k8s.io", "kind": kind, "name": name });
    let mut spec = fields.clone();
    spec["targetRefs"] = targets.iter().map(target_ref).collect();
    let policy = json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": kind.as_str(),
        "metadata": { "namespace": "infra", "name": name },
        "spec": spec,
    });
    objects.insert(if kind == Kind::SecurityPolicy {
        Object::SecurityPolicy(object(policy))
    } else {
        Object::TrafficPolicy(object(policy))
    });
}

/// PingSIX before the endpoints of a Service, one at first.
pub(crate) struct PolicyEnv {
    pub(crate) pingsix: PingSix,
    endpoints: Vec<Echo>,
    etcd: Etcd,
    scope: String,
    editions: usize,
    responder: SocketAddr,
    /// The documents of the last publication, by key.
    published: BTreeMap<String, String>,
}

impl PolicyEnv {
    /// For the documents of a scope.
    pub(crate) async fn start(binary: &Path, scope: &str) -> Self {
        Self::start_with(Listener::Plaintext, binary, scope).await
    }

    /// As [`Self::start`], with another listener.
    pub(crate) async fn start_with(listener: Listener, binary: &Path, scope: &str) -> Self {
        let scope = scope.to_owned();
        let etcd = Etcd::start(std::slice::from_ref(&scope)).await;
        let pingsix = PingSix::start_with(listener, binary, etcd.address, &scope).await;
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let responder =
            Responder::bind(loopback, Reach::Loopback, ResponderOptions::default()).await.unwrap();
        let address = responder.local_addr().unwrap();
        tokio::spawn(responder.run(std::future::pending()));
        let endpoints = vec![Echo::start("shop").await];
        let published = BTreeMap::new();
        Self { pingsix, endpoints, etcd, scope, editions: 0, responder: address, published }
    }

    /// Publishes the objects and waits for PingSIX. Returns the translation, and the number of documents that changed.
    pub(crate) async fn publish(&mut self, objects: &Objects) -> (Translation, usize) {
        let snapshot = objects.snapshot(&ObjectName::new("infra", "public")).unwrap();
        let options = Options { responder: Some(self.responder), ..Options::default() };
        let translation = translate(&snapshot, &options);
        let config = &translation.data_planes.values().next().unwrap().config;
        let nodes: Vec<String> = self.endpoints.iter().map(|echo| echo.address.to_string()).collect();
        let config = with_nodes(config, &nodes).await;
        self.editions += 1;
        let revision = self.etcd.publish(&self.scope, &config, self.editions).await;
        assert_eq!(self.pingsix.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
        let documents: BTreeMap<String, String> = config.to_pairs("").collect();
        let changed = documents.iter().filter(|(key, text)| self.published.get(*key) != Some(*text)).count();
        self.published = documents;
        (translation, changed)
    }

    /// Gives the Service one more endpoint.
    pub(crate) async fn scale(&mut self) {
        self.endpoints.push(Echo::start("shop").await);
    }

    pub(crate) async fn ask(&self, request: &Request) -> Reply {
        Client::new(Protocol::Http1, self.pingsix.address, None).ask(request).await.unwrap()
    }

    /// Checks the status of an answer, and that the backend gives the answers of status 200 alone.
    pub(crate) async fn expect(&self, request: &Request, status: u16) -> Reply {
        let reply = self.ask(request).await;
        assert_eq!(reply.status, status, "{request:?}: {reply:?}");
        assert_eq!(reply.header(BACKEND).is_some(), status == 200, "{request:?}: {reply:?}");
        reply
    }

    pub(crate) async fn expect_all(&self, expected: &[Expectation]) {
        for (request, status) in expected {
            self.expect(request, *status).await;
        }
    }
}
