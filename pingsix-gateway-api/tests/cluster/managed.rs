//! Managed data planes in a whole installation: the controller from the manifests of `deploy/`, Pods with the real
//! PingSIX, and clients that send requests to one Gateway continuously during operations on another one or on the
//! controller.
//!
//! Each test runs in a network of its own. Without `PINGSIX_BIN`, the test cluster or such a network, it prints that
//! it did not run.

mod sealed;
mod stage;
mod traffic;

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use pingsix_gateway_api::pki::ROTATE;
use pingsix_translate::Kind;
use serde_json::json;

use crate::lab::{eventually, shop};
use sealed::Sealed;
use stage::{CALM, CONTROLLER, SYSTEM, Stage, gateway, kill, plain, processes, route};
use traffic::{Target, Traffic};

/// The other Gateway.
const RESTLESS: &str = "restless";

/// Words that only the process of the controller, and those of PingSIX, are started with.
const OF_CONTROLLER: &str = "--feed-address=";
const OF_PINGSIX: &str = "/etc/pingsix/";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_goes_and_comes_again_is_served_and_nobody_else_notices() {
    let test = "a_gateway_that_goes_and_comes_again_is_served_and_nobody_else_notices";
    let Some(stage) = Stage::start(test, &[]).await else { return };
    let watch = stage.watch_the_calm().await;
    stage.apply(&route("restless.example", RESTLESS)).await;
    for _ in 0..2 {
        stage.apply(&gateway(RESTLESS, &format!("[{}]", plain(80)))).await;
        let target = Target::new(stage.address(RESTLESS).await, 80, "restless.example");
        stage.is_served(&target).await;
        stage.delete(Kind::Gateway, RESTLESS).await;
        stage.is_closed(&target).await;
        let is_gone = async || stage.containers(RESTLESS).await.is_empty();
        stage.until("that no Pod is left", is_gone).await;
    }
    // While Pods of the one before are about to end.
    stage.apply(&gateway(RESTLESS, &format!("[{}]", plain(80)))).await;
    stage.is_served(&Target::new(stage.address(RESTLESS).await, 80, "restless.example")).await;
    watch.saw_nothing(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_come_and_go_while_those_that_stay_are_served() {
    let test = "ports_come_and_go_while_those_that_stay_are_served";
    let Some(stage) = Stage::start(test, &[]).await else { return };
    let watch = stage.watch_the_calm().await;
    stage.apply(&route("restless.example", RESTLESS)).await;
    let of = |ports: &[u16]| {
        let listeners: Vec<String> = ports.iter().copied().map(plain).collect();
        gateway(RESTLESS, &format!("[{}]", listeners.join(", ")))
    };
    stage.apply(&of(&[80, 8080])).await;
    let address = stage.address(RESTLESS).await;
    let target = |port: u16| Target::new(address, port, "restless.example");
    for port in [80, 8080] {
        stage.is_served(&target(port)).await;
    }
    let stays = Traffic::start(&[target(80)]);
    // One is changed, one is added, and one removed.
    for (now, gone) in [(&[80, 8081][..], 8080), (&[80, 8081, 8082], 8080), (&[80, 8082], 8081)] {
        stage.apply(&of(now)).await;
        for port in now {
            stage.is_served(&target(*port)).await;
        }
        stage.is_closed(&target(gone)).await;
        assert_eq!(stage.address(RESTLESS).await, address);
    }
    // Pods of before still end, and those who have connections to them are to notice nothing.
    let one = async || processes(OF_PINGSIX).len() == 4;
    stage.until("that only the last Pod is left", one).await;
    let again = stays.was_served("port 80 of the Gateway that changes").await;
    eprintln!("kept connections that were closed: {again}");
    watch.saw_nothing(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_of_the_controller_come_and_go_and_nobody_notices() {
    let test = "replicas_of_the_controller_come_and_go_and_nobody_notices";
    let Some(stage) = Stage::start(test, &[]).await else { return };
    let watch = stage.watch_the_calm().await;
    for (replicas, host) in [(2, "two.example"), (1, "one.example"), (2, "more.example")] {
        let scale = json!({"spec": {"replicas": replicas}});
        stage.deployments().patch(CONTROLLER, &PatchParams::default(), &Patch::Merge(&scale)).await.unwrap();
        stage
            .until(&format!("{replicas} replicas"), async || {
                let status = stage.deployments().get(CONTROLLER).await.unwrap().status.unwrap_or_default();
                (status.replicas, status.ready_replicas) == (Some(replicas), Some(replicas))
                    && processes(OF_CONTROLLER).len() == usize::try_from(replicas).unwrap()
            })
            .await;
        stage.a_change_arrives(host).await;
    }
    // The leader runs data planes.
    stage.apply(&gateway(RESTLESS, &format!("[{}]", plain(80)))).await;
    stage.apply(&route("restless.example", RESTLESS)).await;
    stage.is_served(&Target::new(stage.address(RESTLESS).await, 80, "restless.example")).await;
    watch.saw_nothing(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_comes_back_and_nobody_notices() {
    let test = "a_controller_that_is_killed_comes_back_and_nobody_notices";
    let Some(stage) = Stage::start(test, &[]).await else { return };
    let watch = stage.watch_the_calm().await;
    for round in 0..3 {
        let host = format!("round-{round}.example");
        let before = processes(OF_CONTROLLER);
        assert_eq!(before.len(), 1, "{before:?}");
        kill(before[0]).await;
        // The change comes while no controller runs.
        stage.apply(&route(&host, CALM)).await;
        let is_back = async || processes(OF_CONTROLLER).iter().any(|process| !before.contains(process));
        stage.until("another process", is_back).await;
        stage.a_change_arrives(&host).await;
        let selector = format!("app.kubernetes.io/name={CONTROLLER}");
        let restarts = async || stage.containers_of(SYSTEM, &selector).await[0].1[0].2;
        stage.until("that it was started again", async || restarts().await == round + 1).await;
    }
    stage.apply(&gateway(RESTLESS, &format!("[{}]", plain(80)))).await;
    stage.apply(&route("restless.example", RESTLESS)).await;
    stage.is_served(&Target::new(stage.address(RESTLESS).await, 80, "restless.example")).await;
    watch.saw_nothing(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_authority_of_the_feed_restarts_nothing_and_changes_arrive() {
    let test = "another_authority_of_the_feed_restarts_nothing_and_changes_arrive";
    let settings = [
        ("FEED_AUTHORITY_OVERLAP", "2s"),
        ("FEED_AUTHORITY_CERTIFICATE_LIFETIME", "15s"),
        ("FEED_AUTHORITY_LIFETIME", "1h"),
    ];
    let Some(stage) = Stage::start(test, &settings).await else { return };
    let watch = stage.watch_the_calm().await;
    let before = processes(OF_PINGSIX);
    assert_eq!(before.len(), 2, "a process for each port");
    let secrets = Api::<Secret>::namespaced(stage.cluster.admin(), SYSTEM);
    let data = async || {
        let secret = secrets.get("pingsix-gateway-feed-authority").await.unwrap();
        secret.data.unwrap_or_default()
    };
    for round in ["first", "second"] {
        let signing = data().await["tls.crt"].clone();
        let request = json!({"metadata": {"annotations": {ROTATE: round}}});
        let params = PatchParams::default();
        secrets.patch("pingsix-gateway-feed-authority", &params, &Patch::Merge(&request)).await.unwrap();
        stage.until("the next authority", async || data().await.contains_key("next.crt")).await;
        stage.a_change_arrives(&format!("{round}-introduced.example")).await;
        stage.until("that it signs", async || data().await["tls.crt"] != signing).await;
        stage.a_change_arrives(&format!("{round}-signs.example")).await;
        stage.until("that the one before is over", async || !data().await.contains_key("previous.crt")).await;
        stage.a_change_arrives(&format!("{round}-over.example")).await;
    }
    // Until certificates that were good at the end of the rotation are not any more.
    tokio::time::sleep(Duration::from_secs(16)).await;
    stage.a_change_arrives("renewed.example").await;
    assert_eq!(processes(OF_PINGSIX), before);
    watch.saw_nothing(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ingress_class_has_data_planes_for_both_ports() {
    let test = "an_ingress_class_has_data_planes_for_both_ports";
    let Some(stage) = Stage::start(test, &[]).await else { return };
    let watch = stage.watch_the_calm().await;
    let (certificate, key) = shop::pair("ingress.example");
    stage.apply(&shop::secret("ingress", &certificate, &key)).await;
    stage
        .apply(
            "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: managed}
spec:
  controller: pingsix.io/gateway-controller
  parameters: {apiGroup: pingsix.io, kind: PingsixProxy, scope: Namespace, namespace: default, name: managed}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: default}
spec:
  ingressClassName: managed
  tls: [{hosts: [ingress.example], secretName: ingress}]
  rules:
  - host: ingress.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: backend, port: {number: 80}}}}]}
",
        )
        .await;
    let mut address = None;
    stage
        .until("an address of the Ingress", async || {
            let ingress = stage.object(Kind::Ingress, "default", "shop").await;
            let ip = ingress.pointer("/status/loadBalancer/ingress/0/ip");
            address = ip.and_then(|ip| ip.as_str()?.parse().ok());
            address.is_some()
        })
        .await;
    let targets = [80, 443].map(|port| Target::new(address.unwrap(), port, "ingress.example"));
    for target in &targets {
        stage.is_served(target).await;
    }
    let traffic = Traffic::start(&targets);
    stage.a_change_arrives("other.example").await;
    eventually("four processes", || processes(OF_PINGSIX).len() == 4).await;
    traffic.was_not_disturbed("the IngressClass").await;
    watch.saw_nothing(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_of_the_longest_name_is_served() {
    let test = "a_gateway_of_the_longest_name_is_served";
    let Some(stage) = Stage::start(test, &[]).await else { return };
    let watch = stage.watch_the_calm().await;
    let name = "g".repeat(253);
    stage.apply(&gateway(&name, &format!("[{}]", plain(80)))).await;
    stage.apply(&route("long.example", &name)).await;
    stage.is_served(&Target::new(stage.address(&name).await, 80, "long.example")).await;
    watch.saw_nothing(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_come_follow_one_another_and_go_while_everybody_is_served() {
    let test = "keys_come_follow_one_another_and_go_while_everybody_is_served";
    let Some(stage) = Stage::start(test, &[]).await else { return };
    let watch = stage.watch_the_calm().await;
    let sealed = Sealed::start(&stage, RESTLESS).await;
    let address = stage.address(RESTLESS).await;
    let target = |host: &str| Target::new(address, 443, host);
    stage.apply(&route("restless.example", RESTLESS)).await;
    stage.is_served(&target("restless.example")).await;
    let traffic = Traffic::start(&[target("restless.example")]);
    assert_eq!(sealed.seal(&stage).await, "plaintext");

    sealed.ask(&stage, "old").await;
    sealed.comes_to(&stage, "old", &["old"]).await;
    // The controller does not have to remember anything.
    sealed.ask(&stage, "new\nold").await;
    kill(processes(OF_CONTROLLER)[0]).await;
    sealed.comes_to(&stage, "new", &["new", "old"]).await;
    sealed.ask(&stage, "new").await;
    sealed.comes_to(&stage, "new", &["new"]).await;
    // An atomic change, with another change in the middle of it.
    sealed.ask(&stage, "other").await;
    stage.apply(&route("between.example", RESTLESS)).await;
    stage.is_served(&target("between.example")).await;
    sealed.comes_to(&stage, "other", &["other"]).await;
    sealed.switch_off(&stage).await;
    sealed.comes_to(&stage, "plaintext", &[]).await;

    stage.apply(&route("after.example", RESTLESS)).await;
    stage.is_served(&target("after.example")).await;
    assert_eq!(stage.address(RESTLESS).await, address, "it is programmed, and where it was");
    traffic.was_served("the Gateway whose keys change").await;
    watch.saw_nothing(&stage).await;
}
