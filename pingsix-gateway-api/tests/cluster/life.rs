//! From the first object to the last.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use pingsix_gateway_api::reconcile::Pace;
use pingsix_sink::EmbeddedEtcd;
use pingsix_translate::Kind;
use pingsix_translate::snapshot::wire::HttpRoute;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::test_env::shop::{self, GATEWAY, PLANE, ROUTE, SERVICE};
use crate::test_env::{Running, TestEnv, WAIT_TIMEOUT, eventually, options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_become_documents_and_statuses_and_are_withdrawn() {
    let Some(test_env) = TestEnv::start().await else { return };
    let running = test_env.ready(options()).await;
    test_env.wait_for_condition(Kind::GatewayClass, "", "pingsix", "", "Accepted=True/Accepted").await;
    test_env
        .wait_for_condition(Kind::GatewayClass, "", "pingsix", "", "SupportedVersion=True/SupportedVersion")
        .await;

    test_env.apply(GATEWAY).await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Accepted=True/Accepted").await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;
    test_env.apply(ROUTE).await;
    test_env.wait_for_route("ResolvedRefs=False/BackendNotFound").await;
    test_env.apply(SERVICE).await;
    test_env.wait_for_route("ResolvedRefs=True/ResolvedRefs").await;
    test_env.wait_for_route("Accepted=True/Accepted").await;
    eventually("the endpoint", || test_env.mentions(PLANE, "10.1.2.3:8080")).await;
    let gateway = test_env.object(Kind::Gateway, "default", "web").await;
    assert_eq!(gateway["status"]["listeners"][0]["attachedRoutes"], 1);
    assert_eq!(gateway["status"]["conditions"][0]["observedGeneration"], gateway["metadata"]["generation"]);

    let api: Api<HttpRoute> = Api::namespaced(test_env.cluster.admin(), "default");
    api.delete("cart", &DeleteParams::default()).await.unwrap();
    eventually("the end of the route", || test_env.routes(PLANE) == 0).await;
    running.stop().await;
}

/// An owner that was reconsidered rests for a second, however little that took.
const SLOW_PACE: Pace = Pace {
    rest_factor: 1_000_000,
    longest_rest: Duration::from_secs(1),
    first_retry: Duration::from_millis(100),
    longest_retry: Duration::from_secs(1),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_is_recreated_at_once_gets_a_status() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let mut options = options();
    options.pace = SLOW_PACE;
    let running = test_env.ready(options).await;
    let api: Api<HttpRoute> = Api::namespaced(test_env.cluster.admin(), "default");
    for _ in 0..3 {
        test_env.wait_for_route("Accepted=True/Accepted").await;
        api.delete("cart", &DeleteParams::default()).await.unwrap();
        test_env.apply(ROUTE).await;
    }
    test_env.wait_for_route("Accepted=True/Accepted").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_under_continuous_changes_is_served() {
    // So many that the first is changed again before all have been looked at for the first time.
    const GATEWAYS: usize = 20;
    let Some(test_env) = TestEnv::start().await else { return };
    test_env.apply(SERVICE).await;
    let gateways = (0..GATEWAYS).map(|index| GATEWAY.replace("name: web", &format!("name: web-{index}")));
    test_env.apply(&gateways.collect::<Vec<_>>().join("---")).await;
    let parents: Vec<String> = (0..GATEWAYS).map(|index| format!("{{name: web-{index}}}")).collect();
    let route = ROUTE.replace("{name: web}", &parents.join(", "));
    let is_over = AtomicBool::new(false);
    let changes = async {
        for round in 0.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            test_env.apply(&route.replace("cart.example", &format!("r{round}.example"))).await;
        }
    };
    let served = async {
        let mut options = options();
        options.pace = SLOW_PACE;
        let running = test_env.ready(options).await;
        is_over.store(true, Ordering::Relaxed);
        running
    };
    let ((), running) = tokio::join!(changes, served);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_of_a_killed_controller_are_withdrawn_by_the_next() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let running = test_env.ready(options()).await;
    test_env.wait_for_route("Accepted=True/Accepted").await;
    running.kill().await;
    test_env.apply(&ROUTE.replace("name: web", "name: elsewhere")).await;
    let route = test_env.object(Kind::HttpRoute, "default", "cart").await;
    assert_eq!(route["status"]["parents"][0]["parentRef"]["name"], "web");

    let etcd = EmbeddedEtcd::builder().start().await.unwrap();
    let mut running = Running::start(test_env.cluster.admin(), &etcd, options());
    running.wait_until_ready().await;
    let has_no_entry = |route: &Value| route["status"]["parents"] == json!([]);
    test_env.until(Kind::HttpRoute, "default", "cart", "no entry of ours", has_no_entry).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_can_be_stopped_at_any_moment() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    for round in 0..60 {
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        let running = Running::start(test_env.cluster.admin(), &etcd, options());
        sleep(Duration::from_millis(round * 3)).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_outside_of_the_selector_are_not_served() {
    let Some(test_env) = TestEnv::start().await else { return };
    let labelled =
        |manifest: &str| manifest.replace("namespace: default}", "namespace: default, labels: {team: a}}");
    for manifests in [&labelled(GATEWAY), SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let mut options = options();
    options.watch.labels = Some("team=a".to_owned());
    let running = test_env.ready(options).await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Accepted=True/Accepted").await;
    assert_eq!(test_env.routes(PLANE), 0);
    assert!(test_env.object(Kind::HttpRoute, "default", "cart").await["status"].is_null());

    test_env.apply(&labelled(ROUTE)).await;
    // Services need no labels.
    eventually("the route", || test_env.mentions(PLANE, "10.1.2.3:8080")).await;
    test_env.wait_for_route("Accepted=True/Accepted").await;
    test_env.apply(ROUTE).await;
    eventually("the end of the route", || test_env.routes(PLANE) == 0).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_author_of_an_undecodable_object_is_notified() {
    let Some(test_env) = TestEnv::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        test_env.apply(manifests).await;
    }
    let running = test_env.ready(options()).await;
    // A definition as lax as that of a release to come may be.
    let definitions: Api<CustomResourceDefinition> = Api::all(test_env.cluster.admin());
    let lax = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let name = "httproutes.gateway.networking.k8s.io";
    let mut definition = definitions.get(name).await.unwrap();
    for version in &mut definition.spec.versions {
        version.schema = Some(serde_json::from_value(lax.clone()).unwrap());
    }
    definitions.replace(name, &PostParams::default(), &definition).await.unwrap();

    let broken = shop::route("broken").replace("rules:", "rules: none\n  were:");
    let events: Api<Event> = Api::namespaced(test_env.cluster.admin(), "default");
    let deadline = Instant::now() + WAIT_TIMEOUT;
    let event = loop {
        // The API server needs a moment to take the definition over.
        let _ = test_env.cluster.apply(&broken).await;
        let listed = events.list(&ListParams::default()).await.unwrap();
        let is_about = |event: &Event| {
            event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some("broken"))
        };
        if let Some(event) = listed.items.into_iter().find(is_about) {
            break event;
        }
        assert!(Instant::now() < deadline, "no Event names the broken route");
        sleep(Duration::from_millis(100)).await;
    };
    let about = event.regarding.unwrap();
    assert_eq!((about.kind.as_deref(), about.namespace.as_deref()), (Some("HTTPRoute"), Some("default")));
    let route = test_env.object(Kind::HttpRoute, "default", "broken").await;
    assert_eq!(about.uid.as_deref(), route["metadata"]["uid"].as_str());
    assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Warning"), Some("Invalid")));
    let note = event.note.unwrap();
    assert!(note.starts_with("spec.rules: The HTTPRoute cannot be decoded"), "{note}");
    assert!(test_env.mentions(PLANE, "10.1.2.3:8080"), "others are served");
    running.stop().await;
}
