//! From the first object to the last.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::api::{Api, DeleteParams};
use pingsix_gateway_api::reconcile::Pace;
use pingsix_sink::EmbeddedEtcd;
use pingsix_translate::Kind;
use pingsix_translate::snapshot::HttpRoute;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::lab::shop::{GATEWAY, PLANE, ROUTE, SERVICE};
use crate::lab::{Lab, Running, eventually, options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_become_documents_and_statuses_and_go_with_them() {
    let Some(lab) = Lab::start().await else { return };
    let running = lab.ready(options()).await;
    lab.says(Kind::GatewayClass, "", "pingsix", "", "Accepted=True/Accepted").await;
    lab.says(Kind::GatewayClass, "", "pingsix", "", "SupportedVersion=True/SupportedVersion").await;

    lab.apply(GATEWAY).await;
    lab.says(Kind::Gateway, "default", "web", "", "Accepted=True/Accepted").await;
    lab.says(Kind::Gateway, "default", "web", "", "Programmed=False/Pending").await;
    lab.apply(ROUTE).await;
    lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "ResolvedRefs=False/BackendNotFound").await;
    lab.apply(SERVICE).await;
    lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "ResolvedRefs=True/ResolvedRefs").await;
    lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "Accepted=True/Accepted").await;
    eventually("the endpoint", || lab.mentions(PLANE, "10.1.2.3:8080")).await;
    let gateway = lab.object(Kind::Gateway, "default", "web").await;
    assert_eq!(gateway["status"]["listeners"][0]["attachedRoutes"], 1);
    assert_eq!(gateway["status"]["conditions"][0]["observedGeneration"], gateway["metadata"]["generation"]);

    let api: Api<HttpRoute> = Api::namespaced(lab.cluster.admin(), "default");
    api.delete("cart", &DeleteParams::default()).await.unwrap();
    eventually("the end of the route", || lab.routes(PLANE) == 0).await;
    running.stop().await;
}

/// An owner that was reconsidered rests for a second, however little that took.
const SLEEPY: Pace = Pace {
    rest_factor: 1_000_000,
    longest_rest: Duration::from_secs(1),
    first_retry: Duration::from_millis(100),
    longest_retry: Duration::from_secs(1),
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_replaced_by_another_of_its_name_before_anybody_looks_gets_a_status() {
    let Some(lab) = Lab::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        lab.apply(manifests).await;
    }
    let mut options = options();
    options.pace = SLEEPY;
    let running = lab.ready(options).await;
    let api: Api<HttpRoute> = Api::namespaced(lab.cluster.admin(), "default");
    for _ in 0..3 {
        lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "Accepted=True/Accepted").await;
        api.delete("cart", &DeleteParams::default()).await.unwrap();
        lab.apply(ROUTE).await;
    }
    lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "Accepted=True/Accepted").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_in_which_something_changes_all_the_time_is_served_too() {
    // So many that the first is changed again before all have been looked at for the first time.
    const GATEWAYS: usize = 20;
    let Some(lab) = Lab::start().await else { return };
    lab.apply(SERVICE).await;
    let gateways = (0..GATEWAYS).map(|index| GATEWAY.replace("name: web", &format!("name: web-{index}")));
    lab.apply(&gateways.collect::<Vec<_>>().join("---")).await;
    let parents: Vec<String> = (0..GATEWAYS).map(|index| format!("{{name: web-{index}}}")).collect();
    let route = ROUTE.replace("{name: web}", &parents.join(", "));
    let is_over = AtomicBool::new(false);
    let changes = async {
        for round in 0.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            lab.apply(&route.replace("cart.example", &format!("r{round}.example"))).await;
        }
    };
    let served = async {
        let mut options = options();
        options.pace = SLEEPY;
        let running = lab.ready(options).await;
        is_over.store(true, Ordering::Relaxed);
        running
    };
    let ((), running) = tokio::join!(changes, served);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_that_was_killed_has_left_behind_is_taken_back_by_the_next() {
    let Some(lab) = Lab::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        lab.apply(manifests).await;
    }
    let running = lab.ready(options()).await;
    lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "Accepted=True/Accepted").await;
    running.kill().await;
    lab.apply(&ROUTE.replace("name: web", "name: elsewhere")).await;
    let route = lab.object(Kind::HttpRoute, "default", "cart").await;
    assert_eq!(route["status"]["parents"][0]["parentRef"]["name"], "web");

    let etcd = EmbeddedEtcd::builder().start().await.unwrap();
    let mut running = Running::start(lab.cluster.admin(), &etcd, options());
    running.is_ready().await;
    let has_no_entry = |route: &Value| route["status"]["parents"] == json!([]);
    lab.until(Kind::HttpRoute, "default", "cart", "no entry of ours", has_no_entry).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_stopped_ends_well_at_any_moment() {
    let Some(lab) = Lab::start().await else { return };
    for manifests in [GATEWAY, SERVICE, ROUTE] {
        lab.apply(manifests).await;
    }
    for round in 0..60 {
        let etcd = EmbeddedEtcd::builder().start().await.unwrap();
        let running = Running::start(lab.cluster.admin(), &etcd, options());
        sleep(Duration::from_millis(round * 3)).await;
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_selector_leaves_out_is_not_served() {
    let Some(lab) = Lab::start().await else { return };
    let labelled =
        |manifest: &str| manifest.replace("namespace: default}", "namespace: default, labels: {team: a}}");
    for manifests in [&labelled(GATEWAY), SERVICE, ROUTE] {
        lab.apply(manifests).await;
    }
    let mut options = options();
    options.watch.labels = Some("team=a".to_owned());
    let running = lab.ready(options).await;
    lab.says(Kind::Gateway, "default", "web", "", "Accepted=True/Accepted").await;
    assert_eq!(lab.routes(PLANE), 0);
    assert!(lab.object(Kind::HttpRoute, "default", "cart").await["status"].is_null());

    lab.apply(&labelled(ROUTE)).await;
    // Services need no labels.
    eventually("the route", || lab.mentions(PLANE, "10.1.2.3:8080")).await;
    lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "Accepted=True/Accepted").await;
    lab.apply(ROUTE).await;
    eventually("the end of the route", || lab.routes(PLANE) == 0).await;
    running.stop().await;
}
