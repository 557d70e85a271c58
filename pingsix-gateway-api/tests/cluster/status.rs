//! Statuses and Events at a real API server, with the behaviour that no script has: validation, defaults, no-op writes.

mod writers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use pingsix_gateway_api::status::{EventOptions, Wanted};
use pingsix_gateway_api::watch::DecodedObject;
use pingsix_test_cluster::TestCluster;
use pingsix_translate::selection::ObjectSource as _;
use pingsix_translate::snapshot::{Gateway, GatewayClass, HttpRoute, Ingress, Proxies};
use pingsix_translate::status::{Address, Delivery, Problem, Verdicts, judge_gateway_class, with_delivery};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Options, translate};
use serde_json::{Value, json};

use crate::test_env::eventually_async;
use writers::{CONTROLLER_NAME, Writers, namespaced, write_status};

const MANIFESTS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: ours }
spec: { controllerName: example.com/ours }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: web, namespace: default }
spec:
  gatewayClassName: ours
  listeners: [{ name: http, port: 80, protocol: HTTP }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: cart, namespace: default, labels: { team: shop } }
spec:
  parentRefs: [{ name: web }]
  rules: [{ backendRefs: [{ name: nowhere, port: 80 }] }]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: shop, namespace: default, labels: { team: shop }, annotations: { a: b } }
spec:
  defaultBackend: { service: { name: nowhere, port: { number: 80 } } }
";

fn options() -> Options {
    Options {
        controller_name: CONTROLLER_NAME.to_owned(),
        responder: Some(([127, 0, 0, 1], 8089).into()),
        ..Options::default()
    }
}

fn condition(kind: &str) -> Value {
    json!({
        "type": kind, "status": "True", "reason": "Reason", "message": "Another controller's.",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// The Gateway's and its route's verdicts, as if everything was delivered.
fn checker(writers: &Writers) -> Verdicts {
    let snapshot = writers.world.to_objects().snapshot(&ObjectName::new("default", "web")).unwrap();
    let translation = translate(&snapshot, &options());
    let delivery: BTreeMap<_, _> =
        translation.data_planes.keys().map(|key| (key.clone(), Delivery::Confirmed)).collect();
    with_delivery(translation.verdicts, &delivery)
}

#[tokio::test]
async fn statuses_are_taken_beside_those_of_others() {
    let Some(cluster) = TestCluster::builder().start_or_skip().await else { return };
    cluster.apply(MANIFESTS).await.unwrap();
    let mut writers = Writers::new(cluster.admin());
    let classes: Api<DecodedObject<GatewayClass>> = Api::all(writers.client.clone());
    let gateways = namespaced::<Gateway>(&writers.client);
    let routes = namespaced::<HttpRoute>(&writers.client);
    let ingresses = namespaced::<Ingress>(&writers.client);
    let theirs = json!({
        "parentRef": { "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "elsewhere" },
        "controllerName": "example.com/theirs", "conditions": [condition("Accepted"), condition("example.com/Odd")],
    });
    write_status(&routes, "cart", json!({ "parents": [theirs] })).await;
    writers.see(classes.clone(), "ours").await;
    writers.see(gateways.clone(), "web").await;
    writers.see(routes.clone(), "cart").await;
    writers.see(ingresses.clone(), "shop").await;
    // The Gateway has more in it by now than the picture knows.
    write_status(&gateways, "web", json!({ "conditions": [condition("example.com/Checked")] })).await;

    let class = writers.world.get::<GatewayClass>(&ObjectName::new("", "ours")).unwrap();
    let bundles = BTreeMap::from([("gateways".to_owned(), Some("v1.6.3".to_owned()))]);
    let class =
        judge_gateway_class(&class, &Proxies::new(), &options()).unwrap().with_bundles(Some(&bundles));
    let verdicts = checker(&writers);
    let (gateway, cart) = (ObjectKey::new(Kind::Gateway, "default", "web"), cart());
    let address = Address::Ip([192, 0, 2, 1].into());
    let ingress = ObjectKey::new(Kind::Ingress, "default", "shop");
    writers.board.set(ObjectKey::clone(&class.key), Wanted::GatewayClass(Box::new(class)));
    writers.board.set(
        gateway.clone(),
        Wanted::Gateway {
            verdict: Box::new(verdicts.gateway.unwrap()),
            addresses: Some(vec![address.clone()]),
        },
    );
    writers.board.set(cart.clone(), Wanted::Route(verdicts.routes[&Arc::new(cart.clone())].clone()));
    writers.board.set(ingress, Wanted::Ingress { addresses: vec![address] });
    eventually_async("four statuses", async || writers.status.counts().written == 4).await;
    assert_eq!(writers.status.counts().failures, 0);
    assert_eq!(writers.status.counts().conflicts, 1);

    let status = classes.get("ours").await.unwrap().status();
    assert_eq!(status["conditions"].as_array().unwrap().len(), 2);
    assert!(status["supportedFeatures"].as_array().unwrap().contains(&json!({ "name": "HTTPRoute" })));
    let status = gateways.get("web").await.unwrap().status();
    assert_eq!(status["addresses"], json!([{ "type": "IPAddress", "value": "192.0.2.1" }]));
    assert!(status["conditions"].as_array().unwrap().contains(&condition("example.com/Checked")));
    assert_eq!(status["listeners"][0]["attachedRoutes"], 1);
    let stored = routes.get("cart").await.unwrap();
    assert_eq!(stored.status()["parents"][0], theirs);
    assert_eq!(stored.status()["parents"][1]["controllerName"], CONTROLLER_NAME);
    let stored =
        Api::<k8s_openapi::api::networking::v1::Ingress>::namespaced(writers.client.clone(), "default");
    let stored = stored.get("shop").await.unwrap();
    assert_eq!((stored.labels()["team"].as_str(), stored.annotations()["a"].as_str()), ("shop", "b"));
    assert_eq!(
        ingresses.get("shop").await.unwrap().status()["loadBalancer"]["ingress"][0]["ip"],
        "192.0.2.1"
    );

    // Our own writes come back, and lead to nothing.
    writers.see(classes, "ours").await;
    writers.see(gateways, "web").await;
    writers.see(routes.clone(), "cart").await;
    writers.see(ingresses, "shop").await;
    eventually_async("four looks", async || writers.status.counts().suppressed >= 4).await;
    assert_eq!(writers.status.counts().written, 4);

    // A version that the picture does not have: a conflict, and the newest is merged into.
    let label = Patch::Merge(json!({ "metadata": { "labels": { "team": "other" } } }));
    routes.patch("cart", &PatchParams::default(), &label).await.unwrap();
    writers.board.set(cart.clone(), Wanted::Released);
    eventually_async("a release", async || writers.status.counts().written == 5).await;
    assert_eq!(writers.status.counts().conflicts, 2);
    assert_eq!(routes.get("cart").await.unwrap().status(), json!({ "parents": [theirs] }));
}

#[tokio::test]
async fn events_are_taken_and_counted() {
    let Some(cluster) = TestCluster::builder().start_or_skip().await else { return };
    cluster.apply(MANIFESTS).await.unwrap();
    let mut writers = Writers::new(cluster.admin());
    writers.see(Api::<DecodedObject<GatewayClass>>::all(writers.client.clone()), "ours").await;
    writers.see(namespaced::<Gateway>(&writers.client), "web").await;
    writers.see(namespaced::<HttpRoute>(&writers.client), "cart").await;
    let problems: Vec<Problem> =
        checker(&writers).problems.iter().filter(|problem| *problem.object == cart()).cloned().collect();
    assert_eq!(problems.len(), 1);
    let gateway = ObjectKey::new(Kind::Gateway, "default", "web");
    let class = ObjectKey::new(Kind::GatewayClass, "", "ours");
    let of_class = Problem { object: Arc::new(class.clone()), ..problems[0].clone() };
    writers.events.set(&class, vec![of_class]);
    writers.events.set(&gateway, problems.clone());
    let events = Api::<Event>::namespaced(writers.client.clone(), "default");
    let events_of = || events_of(&events);
    eventually_async("two Events", async || events_of().await.len() == 2).await;
    let event = events_of().await.into_iter().find(|event| event.name_any().starts_with("cart.")).unwrap();
    assert_eq!(event.reason.as_deref(), Some("BackendNotFound"));
    assert!(event.note.unwrap().starts_with("spec.rules[0].backendRefs[0]"));
    assert!(event.regarding.unwrap().uid.is_some());

    // The object is deleted and created again.
    writers.events.set(&gateway, Vec::new());
    writers.events.set(&gateway, problems);
    eventually_async("a series", async || {
        events_of().await.iter().any(|event| event.series.as_ref().is_some_and(|series| series.count == 2))
    })
    .await;
    assert_eq!(events_of().await.len(), 2);
}

/// An API server that forgets Events does not forget those of problems that stand.
#[tokio::test]
async fn events_outlive_the_memory_of_the_api_server_while_problems_stand() {
    const EVENT_TTL: Duration = Duration::from_secs(10);
    let argument = format!("--event-ttl={}s", EVENT_TTL.as_secs());
    let cluster = TestCluster::builder().api_server_argument(argument);
    let Some(cluster) = cluster.start_or_skip().await else { return };
    cluster.apply(MANIFESTS).await.unwrap();
    let mut options = EventOptions::new(CONTROLLER_NAME, "pod-1");
    options.renewal = EVENT_TTL / 4;
    options.interval = options.renewal / 2;
    let mut writers = Writers::with_events(cluster.admin(), options);
    writers.see(namespaced::<Gateway>(&writers.client), "web").await;
    writers.see(namespaced::<HttpRoute>(&writers.client), "cart").await;
    let problems: Vec<Problem> =
        checker(&writers).problems.iter().filter(|problem| *problem.object == cart()).cloned().collect();
    let gateway = ObjectKey::new(Kind::Gateway, "default", "web");
    writers.events.set(&gateway, problems);
    let events = Api::<Event>::namespaced(writers.client.clone(), "default");
    eventually_async("an Event", async || events_of(&events).await.len() == 1).await;
    let first = events_of(&events).await.remove(0);
    let start = Instant::now();
    while start.elapsed() < EVENT_TTL * 2 {
        tokio::time::sleep(EVENT_TTL / 10).await;
        let events_of = events_of(&events).await;
        assert_eq!(events_of.len(), 1, "after {:?}", start.elapsed());
        assert_eq!(
            events_of[0].metadata.uid,
            first.metadata.uid,
            "it was forgotten after {:?}",
            start.elapsed()
        );
    }
    let series = events_of(&events).await.remove(0).series.unwrap();
    assert!(series.count >= 6, "{series:?}");
    writers.events.set(&gateway, Vec::new());
    eventually_async("its end", async || events_of(&events).await.is_empty()).await;
}

/// The Events of ours.
async fn events_of(events: &Api<Event>) -> Vec<Event> {
    let listed = events.list(&ListParams::default()).await.unwrap().items;
    listed
        .into_iter()
        .filter(|event| event.reporting_controller.as_deref() == Some(CONTROLLER_NAME))
        .collect()
}

fn cart() -> ObjectKey {
    ObjectKey::new(Kind::HttpRoute, "default", "cart")
}
