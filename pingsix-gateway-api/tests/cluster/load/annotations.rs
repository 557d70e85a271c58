//! Annotations of ingress-nginx on a real API server and the real PingSIX.

use std::net::Ipv4Addr;
use std::time::Instant;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use pingsix_test_cluster::Process;
use pingsix_translate::Kind;
use pingsix_translate::pingsix::Request;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::backends::Backends;
use super::expectations::{HOST, get};
use super::namespace;
use super::objects::{service, slice};
use super::security::client::{Answer, HERE, ask_from};
use super::traffic::Addresses;
use crate::test_env::pingsix::{self, Ports};
use crate::test_env::{TestEnv, WAIT_TIMEOUT, eventually_async, options};

/// A client that no list of addresses has.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A class that reads the annotations.
const CLASS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: web}
spec:
  controller: pingsix.io/gateway-controller
  parameters: {apiGroup: pingsix.io, kind: PingsixProxy, name: nginx, scope: Namespace, namespace: default}
---
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: {name: nginx, namespace: default}
spec: {attached: {}, ingress: {annotations: [nginx.ingress.kubernetes.io]}}
";

const PATTERN: &str = "/api(/|$)(.*)";

/// An Ingress of the class for a path, with these annotations of ingress-nginx.
fn ingress((name, service): (&str, &str), path: &str, annotations: &[(&str, &str)]) -> Value {
    let annotations = annotations
        .iter()
        .map(|(name, value)| (format!("nginx.ingress.kubernetes.io/{name}"), json!(value)))
        .collect::<serde_json::Map<_, _>>();
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"ingressClassName": "web", "rules": [{"host": HOST, "http": {"paths": [
            {"path": path, "pathType": "ImplementationSpecific", "backend": backend},
        ]}}]},
    })
}

async fn apply(env: &TestEnv, kind: Kind, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let name = object.metadata.name.clone().unwrap();
    let params = PatchParams::apply("test").force();
    env.objects(kind, "default").patch(&name, &params, &Patch::Apply(&object)).await.unwrap();
}

/// A PingSIX, and its log.
pub(super) struct Proxy {
    addresses: Addresses,
    log: std::path::PathBuf,
}

impl Proxy {
    pub(super) fn new(ports: &Ports, process: &Process) -> Self {
        let traffic = (Ipv4Addr::LOCALHOST, ports.traffic).into();
        Self { addresses: Addresses { plain: traffic, behind_tls: traffic }, log: process.log() }
    }

    pub(super) async fn ask(&self, client: Ipv4Addr, request: &Request) -> Answer {
        ask_from(client, &self.addresses, request).await.unwrap()
    }

    /// Waits until a request has this status, and returns the answer.
    pub(super) async fn until(&self, client: Ipv4Addr, path: &str, status: u16) -> Answer {
        let started = Instant::now();
        loop {
            if let Ok(answer) = ask_from(client, &self.addresses, &get(path)).await {
                if answer.status == status {
                    return answer;
                }
                let log = || std::fs::read_to_string(&self.log).unwrap_or_default();
                assert!(started.elapsed() < WAIT_TIMEOUT, "{path}: {answer:?}\n{}", log());
            }
            assert!(started.elapsed() < WAIT_TIMEOUT, "{path} is not answered");
            sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

/// Waits for an Event of an Ingress with these texts.
async fn wait_for_event(env: &TestEnv, name: &str, texts: &[&str]) {
    let events: Api<Event> = Api::namespaced(env.cluster.admin(), "default");
    eventually_async(&format!("an Event of {name} with {texts:?}"), async || {
        events.list(&ListParams::default()).await.unwrap().items.iter().any(|event| {
            let of = event.regarding.clone().unwrap_or_default();
            let note = event.note.clone().unwrap_or_default();
            (of.kind.as_deref(), of.name.as_deref()) == (Some("Ingress"), Some(name))
                && texts.iter().all(|text| note.contains(text))
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn annotations_of_ingress_nginx_are_honoured_or_close_their_ingress() {
    const TEST: &str = "annotations::annotations_of_ingress_nginx_are_honoured_or_close_their_ingress";
    if !namespace::is_inside(TEST).await {
        return;
    }
    let Some(binary) = pingsix::binary(TEST) else { return };
    let Some(env) = TestEnv::start().await else { return };
    let backends = Backends::start().await;
    for name in ["a", "b"] {
        apply(&env, Kind::Service, &service("default", name, name)).await;
        apply(&env, Kind::EndpointSlice, &slice("default", name, &backends, &[(name, name)])).await;
    }
    env.apply(CLASS).await;
    let rewrite = ("rewrite-target", "/$2");
    let sources = ("whitelist-source-range", "127.0.0.1/32");
    apply(&env, Kind::Ingress, &ingress(("api", "a"), PATTERN, &[rewrite, sources])).await;
    let canary = [("canary", "true"), ("canary-weight", "20")];
    apply(&env, Kind::Ingress, &ingress(("canary", "b"), PATTERN, &canary)).await;
    apply(&env, Kind::Ingress, &ingress(("help", "a"), "/help", &[])).await;

    let (feed, _stop) = env.serve_feed().await;
    let ports = Ports::of_plane(&env.cluster, feed, "/pingsix-ingress/web");
    let running = env.ready(options()).await;
    let process = ports.run(&env.cluster, binary).await;
    let proxy = Proxy::new(&ports, &process);

    let answer = proxy.until(HERE, "/api/v", 200).await;
    assert!(["a /v", "b /v"].contains(&&*answer.body), "{answer:?}");
    let root = proxy.ask(HERE, &get("/api")).await;
    assert!(["a /", "b /"].contains(&&*root.body), "{root:?}");
    assert_eq!(proxy.ask(HERE, &get("/apix")).await.status, 404);
    assert_eq!(proxy.ask(ELSEWHERE, &get("/api/v")).await.status, 403);
    assert_eq!(proxy.ask(ELSEWHERE, &get("/help")).await.body, "a /help");
    let mut of_canary = 0;
    for _ in 0..1000 {
        of_canary += u32::from(proxy.ask(HERE, &get("/api/v")).await.body == "b /v");
    }
    assert!((150..=250).contains(&of_canary), "{of_canary} of 1,000 requests went to the canary");

    let closing = ("auth-url", "http://auth.example.com/check");
    apply(&env, Kind::Ingress, &ingress(("api", "a"), PATTERN, &[rewrite, sources, closing])).await;
    proxy.until(HERE, "/api/v", 503).await;
    wait_for_event(&env, "api", &["auth-url", "answer 503"]).await;
    assert_eq!(proxy.ask(HERE, &get("/help")).await.body, "a /help");

    // Without the dialect, annotations have no effect, and the path is a prefix as it is written.
    let off = json!({"spec": {"ingress": {"annotations": null}}});
    let proxies = env.objects(Kind::PingsixProxy, "default");
    proxies.patch("nginx", &PatchParams::default(), &Patch::Merge(&off)).await.unwrap();
    proxy.until(HERE, "/api/v", 404).await;
    wait_for_event(&env, "api", &["nginx.ingress.kubernetes.io/auth-url", "have no effect"]).await;
    assert_eq!(proxy.ask(ELSEWHERE, &get("/help")).await.body, "a /help");
    running.stop().await;
    process.kill().await.unwrap();
}
