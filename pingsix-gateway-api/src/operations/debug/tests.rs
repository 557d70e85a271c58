//! The content of dumps, and the secrets that never appear.

use std::time::Duration;

use jiff::Timestamp;
use kube_runtime::watcher::Event as WatcherEvent;
use pingsix_sink::Sink as _;
use pingsix_translate::snapshot::{
    ConfigMap, EndpointSlice, Gateway, GatewayClass, HttpRoute, Ingress, IngressClass, PingsixProxy, Secret,
    Service, TlsRoute,
};
use pingsix_translate::{DEFAULT_CONTROLLER_NAME, Kind, Options};
use serde_json::json;

use super::*;
use crate::delivery::Instances;
use crate::reconcile::{Pace, ReconcileOutcome};
use crate::watch::Watched;
use crate::world::Event;

/// The secret that must not appear: as it is, and in the encoding of a Secret.
const CANARY: &str = "canary-in-a-secret";
const ENCODED_CANARY: &str = "Y2FuYXJ5LWluLWEtc2VjcmV0";

struct Rig {
    reconciler: Reconciler,
    queue: Queue,
    deliveries: Deliveries,
    etcd: EmbeddedEtcd,
    now: Instant,
}

impl Rig {
    fn apply<K: crate::world::Stored>(&mut self, mut object: Value)
    where
        Event: From<WatcherEvent<Watched<K>>>,
    {
        object["metadata"]["resourceVersion"] = "1".into();
        let watched: Watched<K> = serde_json::from_value(object).unwrap();
        self.reconciler.apply(WatcherEvent::Apply(watched).into());
    }

    /// Translates and publishes everything.
    async fn publish(&mut self) {
        self.reconciler.answered(ObjectKey::new(Kind::Secret, "infra", "shop"));
        self.reconciler.answered(ObjectKey::new(Kind::ConfigMap, "infra", "odd"));
        for owner in self.reconciler.ours() {
            let ReconcileOutcome::Current(reconciled) =
                self.reconciler.reconcile(&owner, Timestamp::UNIX_EPOCH)
            else {
                panic!("{owner} is not reconciled");
            };
            for publication in reconciled.publications {
                let published = self.etcd.publish(&publication.desired).await.unwrap();
                self.deliveries.published(&publication.data_plane, published.revision);
            }
            self.queue.retry(owner, self.now);
        }
        self.etcd.open();
    }

    fn dump(&self, dump: Dump, about: Option<&str>) -> Value {
        let about = about.map(|about| about.parse::<About>().unwrap().0);
        let Self { reconciler, queue, deliveries, etcd, now } = self;
        DebugState { reconciler, queue, deliveries, etcd: Some(etcd), replicas: None, now: *now }
            .dump(dump, about.as_ref())
    }
}

/// Gateway `infra/web` with a route and a certificate, an IngressClass, Secrets of every kind, and one of each that
/// cannot be decoded.
async fn held() -> Rig {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["shop.example.com".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let base64 = |text: String| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    let mut held = Rig {
        reconciler: Reconciler::new(Options { stream: true, ..Options::default() }),
        queue: Queue::new(Pace::default()),
        deliveries: Deliveries::default(),
        etcd: EmbeddedEtcd::builder().start().await.unwrap(),
        now: Instant::now(),
    };
    held.apply::<GatewayClass>(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controllerName": DEFAULT_CONTROLLER_NAME},
    }));
    held.apply::<IngressClass>(json!({
        "metadata": {"name": "public"},
        "spec": {"controller": DEFAULT_CONTROLLER_NAME, "parameters": {
            "apiGroup": "pingsix.io", "kind": "PingsixProxy", "scope": "Namespace", "namespace": "infra", "name": "nginx",
        }},
    }));
    held.apply::<PingsixProxy>(json!({
        "metadata": {"namespace": "infra", "name": "nginx"},
        "spec": {"attached": {}, "ingress": {"annotations": ["nginx.ingress.kubernetes.io"]}},
    }));
    held.apply::<Gateway>(json!({
        "metadata": {"namespace": "infra", "name": "web"},
        "spec": {"gatewayClassName": "pingsix", "listeners": [
            {"name": "http", "port": 80, "protocol": "HTTP"},
            {"name": "https", "port": 443, "protocol": "HTTPS", "hostname": "shop.example.com",
                "tls": {"certificateRefs": [{"name": "shop"}]}},
            {"name": "db", "port": 5432, "protocol": "TLS", "hostname": "shop.example.com",
                "tls": {"mode": "Terminate", "certificateRefs": [{"name": "shop"}]}},
        ]},
    }));
    held.apply::<HttpRoute>(json!({
        "metadata": {"namespace": "infra", "name": "cart"},
        "spec": {"parentRefs": [{"name": "web"}], "rules": [
            {"backendRefs": [{"name": "cart", "port": 80}]},
            {"matches": [{"path": {"value": "/lost"}}], "backendRefs": [{"name": "lost", "port": 80}]},
        ]},
    }));
    held.apply::<HttpRoute>(json!({
        "metadata": {"namespace": "infra", "name": "broken"}, "spec": {"rules": [{"matches": "everything"}]},
    }));
    held.apply::<TlsRoute>(json!({
        "metadata": {"namespace": "infra", "name": "db"},
        "spec": {"parentRefs": [{"name": "web", "sectionName": "db"}], "hostnames": ["shop.example.com"], "rules": [
            {"backendRefs": [{"name": "cart", "port": 80}]},
        ]},
    }));
    held.apply::<Service>(json!({
        "metadata": {"namespace": "infra", "name": "cart"}, "spec": {"ports": [{"port": 80}]},
    }));
    held.apply::<EndpointSlice>(json!({
        "metadata": {"namespace": "infra", "name": "cart", "labels": {"kubernetes.io/service-name": "cart"}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    }));
    held.apply::<Ingress>(json!({
        "metadata": {"namespace": "infra", "name": "headers", "annotations": {
            "nginx.ingress.kubernetes.io/custom-headers": "infra/odd",
        }},
        "spec": {"ingressClassName": "public", "defaultBackend": {"service": {"name": "cart", "port": {"number": 80}}}},
    }));
    held.apply::<Ingress>(json!({
        "metadata": {"namespace": "infra", "name": "shop"},
        "spec": {"ingressClassName": "public", "tls": [{"hosts": ["shop.example.com"], "secretName": "shop"}]},
    }));
    held.apply::<Secret>(json!({
        "metadata": {"namespace": "infra", "name": "shop"}, "type": "kubernetes.io/tls",
        "data": {"tls.crt": base64(certificate.pem()), "tls.key": base64(key.serialize_pem()), "other": ENCODED_CANARY},
    }));
    held.apply::<Secret>(json!({
        "metadata": {"namespace": "infra", "name": "spare", "annotations": {"was": CANARY}},
        "stringData": {"password": CANARY},
    }));
    held.apply::<Secret>(json!({"metadata": {"namespace": "infra", "name": "broken"}, "data": CANARY}));
    held.apply::<ConfigMap>(json!({
        "metadata": {"namespace": "infra", "name": "odd"}, "data": {"X-Token": CANARY},
    }));
    held.apply::<ConfigMap>(json!({
        "metadata": {"namespace": "infra", "name": "broken"}, "data": {"token": [CANARY]}, "binaryData": CANARY,
    }));
    held.publish().await;
    held
}

#[tokio::test]
async fn no_dump_shows_a_secret() {
    let held = held().await;
    let private_key = "PRIVATE KEY";
    let in_the_feed = held.etcd.scopes().into_iter().any(|(scope, _)| {
        held.etcd
            .documents(&scope)
            .unwrap()
            .iter()
            .any(|document| String::from_utf8_lossy(&document.value).contains(private_key))
    });
    assert!(in_the_feed, "a private key is published, so that dumps could show it");
    let ingresses = held.dump(Dump::Translation, Some("IngressClass/public")).to_string();
    assert!(ingresses.contains("x-token"), "a value of a ConfigMap is published: {ingresses}");
    let objects = [
        "Secret/infra/shop",
        "Secret/infra/spare",
        "Secret/infra/broken",
        "ConfigMap/infra/odd",
        "ConfigMap/infra/broken",
        "Gateway/infra/web",
        "IngressClass/public",
        "Ingress/infra/shop",
        "HTTPRoute/infra/broken",
    ];
    for dump in Dump::ALL {
        for about in objects.into_iter().map(Some).chain([None]) {
            let text = held.dump(*dump, about).to_string();
            // The Base64 of what a private key begins with.
            for secret in [CANARY, ENCODED_CANARY, private_key, "LS0tLS1CRUdJTi"] {
                assert!(
                    !text.contains(secret),
                    "/debug/{} of {about:?} shows {secret}: {text}",
                    dump.as_str()
                );
            }
        }
    }
}

/// The page at an address.
fn page(held: &Rig, address: &str) -> http::Response<String> {
    let request = http::Request::get(address).body(()).unwrap();
    let Rig { reconciler, queue, deliveries, etcd, now } = held;
    let state = DebugState { reconciler, queue, deliveries, etcd: Some(etcd), replicas: None, now: *now };
    match crate::view::question(&request) {
        Ok(question) => question.answer(&state.model()),
        Err(answer) => *answer,
    }
}

#[tokio::test]
async fn no_page_shows_a_secret() {
    let held = held().await;
    let objects = [
        "Secret/infra/shop",
        "ConfigMap/infra/odd",
        "Gateway/infra/web",
        "IngressClass/public",
        "Ingress/infra/shop",
        "HTTPRoute/infra/broken",
        "HTTPRoute/infra/cart",
    ];
    let pages = ["/view", "/view/routes", "/view/data-planes", "/view/findings"].map(str::to_owned);
    let explained =
        ["http://shop.example.com/", "https://shop.example.com/", "https://shop.example.com:5432/"]
            .map(|url| format!("/view/explain?url={url}"));
    let of_objects = objects.map(|about| format!("/view/object?about={about}"));
    for address in pages.into_iter().chain(explained).chain(of_objects) {
        let text = page(&held, &address).into_body();
        for secret in [CANARY, ENCODED_CANARY, "PRIVATE KEY", "LS0tLS1CRUdJTi"] {
            assert!(!text.contains(secret), "{address} shows {secret}: {text}");
        }
    }
}

#[tokio::test]
async fn pages_show_the_state_of_the_controller() {
    let mut held = held().await;
    let answer = |held: &Rig, address: &str| {
        let answer = page(held, address);
        assert_eq!(answer.status(), 200, "{address}");
        answer.into_body()
    };
    let gateway = answer(&held, "/view/object?about=Gateway/infra/web");
    assert!(
        gateway.contains("HTTPRoute infra/cart") && gateway.contains("No PingSIX instance is connected."),
        "{gateway}"
    );
    let findings = answer(&held, "/view/findings");
    assert!(
        findings.contains("The object does not match the schema of its kind: spec.rules[0].matches"),
        "{findings}"
    );
    assert!(findings.contains("&lt;redacted&gt;"), "the faults of Secrets quote no input: {findings}");
    let explained = answer(&held, "/view/explain?url=http://a.test/x");
    assert!(explained.contains("Service infra/cart port 80"), "{explained}");
    assert!(
        explained
            .contains("pingsix-gatewayctl explain --cluster --responder off --stream GET http://a.test/x"),
        "{explained}"
    );
    let connection = answer(&held, "/view/explain?url=https://shop.example.com:5432/");
    assert!(connection.contains("TLSRoute infra/db"), "{connection}");
    assert!(connection.contains("Service infra/cart port 80"), "{connection}");

    let data_plane = held.reconciler.data_planes(&"Gateway/infra/web".parse::<About>().unwrap().0).remove(0);
    let revision = held.deliveries.revision(&data_plane).unwrap().get();
    let status = |published_revision| {
        serde_json::from_value(json!({ "published_revision": published_revision })).unwrap()
    };
    let pages = [("http://127.0.0.1:1", revision), ("http://127.0.0.1:2", revision - 1)]
        .map(|(url, published)| (url.parse().unwrap(), Ok(status(published))));
    held.deliveries.observe(&data_plane, Instances::Pages(pages.into()));
    let planes = answer(&held, "/view/data-planes");
    for expected in [
        "1 of 2 PingSIX instances have published it.".to_owned(),
        format!("revision {revision}</span> http://127.0.0.1:1/status/config"),
        format!("revision {}</span> http://127.0.0.1:2/status/config", revision - 1),
    ] {
        assert!(planes.contains(&expected), "{expected}: {planes}");
    }
}

#[tokio::test]
async fn the_world_is_a_list_of_names_and_an_object_is_shown_when_asked_for() {
    let held = held().await;
    let world = held.dump(Dump::World, None);
    assert_eq!(world["HTTPRoute"]["objects"], json!(["infra/broken", "infra/cart"]));
    assert_eq!(world["HTTPRoute"]["complete"], false, "no list was read to its end");
    let error = world["HTTPRoute"]["undecodable"]["infra/broken"].as_str().unwrap();
    assert!(error.starts_with("spec.rules[0].matches: "), "{error}");
    assert_eq!(world["Secret"]["undecodable"]["infra/broken"], "<redacted>");
    let route = held.dump(Dump::World, Some("HTTPRoute/infra/cart"));
    assert_eq!(route["object"]["spec"]["parentRefs"][0]["name"], "web");
    let secret = held.dump(Dump::World, Some("Secret/infra/shop"));
    assert_eq!(secret["object"]["type"], "kubernetes.io/tls");
    assert_eq!(
        secret["object"]["data"],
        json!({"other": "<redacted>", "tls.crt": "<redacted>", "tls.key": "<redacted>"})
    );
    assert_eq!(held.dump(Dump::World, Some("HTTPRoute/infra/none")), Value::Null);
}

#[tokio::test]
async fn the_index_says_who_refers_to_whom() {
    let held = held().await;
    let index = held.dump(Dump::Index, Some("Secret/infra/shop"));
    assert_eq!(index["owners"], json!(["Gateway infra/web", "IngressClass public"]));
    let dependents = index["dependents"].to_string();
    assert!(dependents.contains("Gateway infra/web"), "{dependents}");
    let route = held.dump(Dump::Index, Some("HTTPRoute/infra/cart"));
    assert_eq!(route["concerns"], json!(["Gateway infra/web"]));
    assert!(route["dependsOn"].to_string().contains("Service infra/lost"), "{route}");
    assert!(held.dump(Dump::Index, None)["HTTPRoute"]["entries"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn queue_translation_and_sink_say_how_far_a_gateway_has_come() {
    let mut held = held().await;
    held.now += Duration::from_secs(2);
    let queue = held.dump(Dump::Queue, None);
    assert_eq!(queue[0]["owner"], "Gateway infra/web");
    assert_eq!(queue[0]["failures"], 1);
    let due = queue[0]["dueInSeconds"].as_f64().unwrap();
    assert!((-1.95..=-1.85).contains(&due), "{due}");

    let all = held.dump(Dump::Translation, None);
    let documents = all["Gateway infra/web"]["dataPlanes"]["infra/web"]["documents"].as_u64().unwrap();
    let one = held.dump(Dump::Translation, Some("Gateway/infra/web"));
    let listed = one["dataPlanes"]["infra/web"]["documents"].as_object().unwrap();
    assert_eq!(listed.len() as u64, documents);
    let ssl = listed.iter().find(|(key, _)| key.starts_with("ssls/")).unwrap().1;
    assert_eq!(ssl["document"]["key"], "<redacted>");
    assert!(one.to_string().contains("HTTPRoute infra/cart: spec.rules[0]"), "{one}");
    assert!(one["problems"].to_string().contains("infra/lost"), "{one}");
    let streams = &one["dataPlanes"]["stream/infra/web"]["documents"];
    let ssl = streams.as_object().unwrap().iter().find(|(key, _)| key.starts_with("ssls/")).unwrap().1;
    assert_eq!(ssl["document"]["key"], "<redacted>");
    assert!(streams.to_string().contains("TLSRoute infra/db: spec.rules[0]"), "{streams}");

    let sink = held.dump(Dump::Sink, None);
    assert_eq!(sink["open"], true);
    assert_eq!(sink["scopes"]["/pingsix/infra/web"]["documents"].as_u64().unwrap(), documents);
    assert_eq!(sink["dataPlanes"]["infra/web"]["delivery"], "pending");
    let served = held.dump(Dump::Sink, Some("Gateway/infra/web"));
    assert_eq!(served["infra/web"]["documents"].as_object().unwrap().len() as u64, documents);
    assert_eq!(served["infra/web"]["revision"], sink["dataPlanes"]["infra/web"]["revision"]);
}
