//! Managed data planes in a whole installation: the controller from the manifests of `deploy/`, Pods with the real
//! PingSIX, and clients that send requests to one Gateway continuously during operations on another one or on the
//! controller.
//!
//! Each test runs in a network of its own. Without `PINGSIX_BIN`, the test cluster or such a network, it prints that
//! it did not run.

mod encrypted;
mod env;
mod streams;
mod traffic;

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use pingsix_gateway_api::pki::ROTATE;
use pingsix_translate::Kind;
use serde_json::json;

use crate::test_env::{eventually, shop};
use encrypted::EncryptedGateway;
use env::{CONTROLLER, ManagedEnv, SYSTEM, UNDISTURBED, gateway, kill, plain, processes, route};
use traffic::{Target, Traffic};

/// The other Gateway.
const CHANGING: &str = "restless";

/// Words that only the process of the controller, and those of PingSIX, are started with.
const CONTROLLER_ARGUMENT: &str = "--feed-address=";
const PINGSIX_ARGUMENT: &str = "/etc/pingsix/";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recreated_gateway_is_served_and_others_are_not_affected() {
    let test = "a_recreated_gateway_is_served_and_others_are_not_affected";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    env.apply(&route("restless.example", CHANGING)).await;
    for _ in 0..2 {
        env.apply(&gateway(CHANGING, &format!("[{}]", plain(80)))).await;
        let target = Target::new(env.address(CHANGING).await, 80, "restless.example");
        env.is_served(&target).await;
        env.delete(Kind::Gateway, CHANGING).await;
        env.is_closed(&target).await;
        let is_gone = async || env.containers(CHANGING).await.is_empty();
        env.until("that no Pod is left", is_gone).await;
    }
    // While Pods of the one before are about to end.
    env.apply(&gateway(CHANGING, &format!("[{}]", plain(80)))).await;
    env.is_served(&Target::new(env.address(CHANGING).await, 80, "restless.example")).await;
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_come_and_go_while_those_that_stay_are_served() {
    let test = "ports_come_and_go_while_those_that_stay_are_served";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    env.apply(&route("restless.example", CHANGING)).await;
    let of = |ports: &[u16]| {
        let listeners: Vec<String> = ports.iter().copied().map(plain).collect();
        gateway(CHANGING, &format!("[{}]", listeners.join(", ")))
    };
    env.apply(&of(&[80, 8080])).await;
    let address = env.address(CHANGING).await;
    let target = |port: u16| Target::new(address, port, "restless.example");
    for port in [80, 8080] {
        env.is_served(&target(port)).await;
    }
    let stays = Traffic::start(&[target(80)]);
    // One is changed, one is added, and one removed.
    for (now, gone) in [(&[80, 8081][..], 8080), (&[80, 8081, 8082], 8080), (&[80, 8082], 8081)] {
        env.apply(&of(now)).await;
        for port in now {
            env.is_served(&target(*port)).await;
        }
        env.is_closed(&target(gone)).await;
        assert_eq!(env.address(CHANGING).await, address);
    }
    // Pods of before still end, and those who have connections to them are to notice nothing.
    let one = async || processes(PINGSIX_ARGUMENT).len() == 4;
    env.until("that only the last Pod is left", one).await;
    let retried = stays.was_served("port 80 of the Gateway that changes").await;
    eprintln!("kept connections that were closed: {retried}");
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scaling_the_controller_has_no_effect() {
    let test = "scaling_the_controller_has_no_effect";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    for (replicas, host) in [(2, "two.example"), (1, "one.example"), (2, "more.example")] {
        let scale = json!({"spec": {"replicas": replicas}});
        env.deployments().patch(CONTROLLER, &PatchParams::default(), &Patch::Merge(&scale)).await.unwrap();
        env.until(&format!("{replicas} replicas"), async || {
            let status = env.deployments().get(CONTROLLER).await.unwrap().status.unwrap_or_default();
            (status.replicas, status.ready_replicas) == (Some(replicas), Some(replicas))
                && processes(CONTROLLER_ARGUMENT).len() == usize::try_from(replicas).unwrap()
        })
        .await;
        env.a_change_arrives(host).await;
    }
    // The leader runs data planes.
    env.apply(&gateway(CHANGING, &format!("[{}]", plain(80)))).await;
    env.apply(&route("restless.example", CHANGING)).await;
    env.is_served(&Target::new(env.address(CHANGING).await, 80, "restless.example")).await;
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_controller_restarts_without_effect() {
    let test = "a_killed_controller_restarts_without_effect";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    for round in 0..3 {
        let host = format!("round-{round}.example");
        let before = processes(CONTROLLER_ARGUMENT);
        assert_eq!(before.len(), 1, "{before:?}");
        kill(before[0]).await;
        // The change comes while no controller runs.
        env.apply(&route(&host, UNDISTURBED)).await;
        let is_reverted =
            async || processes(CONTROLLER_ARGUMENT).iter().any(|process| !before.contains(process));
        env.until("another process", is_reverted).await;
        env.a_change_arrives(&host).await;
        let selector = format!("app.kubernetes.io/name={CONTROLLER}");
        let restarts = async || env.containers_of(SYSTEM, &selector).await[0].1[0].2;
        env.until("that it was started again", async || restarts().await == round + 1).await;
    }
    env.apply(&gateway(CHANGING, &format!("[{}]", plain(80)))).await;
    env.apply(&route("restless.example", CHANGING)).await;
    env.is_served(&Target::new(env.address(CHANGING).await, 80, "restless.example")).await;
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_authority_of_the_feed_restarts_nothing_and_changes_arrive() {
    let test = "another_authority_of_the_feed_restarts_nothing_and_changes_arrive";
    let settings = [
        ("FEED_AUTHORITY_OVERLAP", "2s"),
        ("FEED_AUTHORITY_CERTIFICATE_LIFETIME", "15s"),
        ("FEED_AUTHORITY_LIFETIME", "1h"),
    ];
    let Some(env) = ManagedEnv::start(test, &settings).await else { return };
    let watch = env.watch_undisturbed().await;
    let before = processes(PINGSIX_ARGUMENT);
    assert_eq!(before.len(), 2, "a process for each port");
    let secrets = Api::<Secret>::namespaced(env.cluster.admin(), SYSTEM);
    let data = async || {
        let secret = secrets.get("pingsix-gateway-feed-authority").await.unwrap();
        secret.data.unwrap_or_default()
    };
    for round in ["first", "second"] {
        let signing = data().await["tls.crt"].clone();
        let request = json!({"metadata": {"annotations": {ROTATE: round}}});
        let params = PatchParams::default();
        secrets.patch("pingsix-gateway-feed-authority", &params, &Patch::Merge(&request)).await.unwrap();
        env.until("the next authority", async || data().await.contains_key("next.crt")).await;
        env.a_change_arrives(&format!("{round}-introduced.example")).await;
        env.until("that it signs", async || data().await["tls.crt"] != signing).await;
        env.a_change_arrives(&format!("{round}-signs.example")).await;
        env.until("that the one before is over", async || !data().await.contains_key("previous.crt")).await;
        env.a_change_arrives(&format!("{round}-over.example")).await;
    }
    // Until certificates that were good at the end of the rotation are not any more.
    tokio::time::sleep(Duration::from_secs(16)).await;
    env.a_change_arrives("renewed.example").await;
    assert_eq!(processes(PINGSIX_ARGUMENT), before);
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ingress_class_has_data_planes_for_both_ports() {
    let test = "an_ingress_class_has_data_planes_for_both_ports";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    let (certificate, key) = shop::pair("ingress.example");
    env.apply(&shop::secret("ingress", &certificate, &key)).await;
    env.apply(
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
    env.until("an address of the Ingress", async || {
        let ingress = env.object(Kind::Ingress, "default", "shop").await;
        let ip = ingress.pointer("/status/loadBalancer/ingress/0/ip");
        address = ip.and_then(|ip| ip.as_str()?.parse().ok());
        address.is_some()
    })
    .await;
    let targets = [80, 443].map(|port| Target::new(address.unwrap(), port, "ingress.example"));
    for target in &targets {
        env.is_served(target).await;
    }
    let traffic = Traffic::start(&targets);
    env.a_change_arrives("other.example").await;
    eventually("four processes", || processes(PINGSIX_ARGUMENT).len() == 4).await;
    traffic.was_not_disturbed("the IngressClass").await;
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_of_the_longest_name_is_served() {
    let test = "a_gateway_of_the_longest_name_is_served";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    let name = "g".repeat(253);
    env.apply(&gateway(&name, &format!("[{}]", plain(80)))).await;
    env.apply(&route("long.example", &name)).await;
    env.is_served(&Target::new(env.address(&name).await, 80, "long.example")).await;
    watch.assert_undisturbed(&env).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encryption_keys_are_added_rotated_and_removed_without_downtime() {
    let test = "encryption_keys_are_added_rotated_and_removed_without_downtime";
    let Some(env) = ManagedEnv::start(test, &[]).await else { return };
    let watch = env.watch_undisturbed().await;
    let encrypted = EncryptedGateway::start(&env, CHANGING).await;
    let address = env.address(CHANGING).await;
    let target = |host: &str| Target::new(address, 443, host);
    env.apply(&route("restless.example", CHANGING)).await;
    env.is_served(&target("restless.example")).await;
    let traffic = Traffic::start(&[target("restless.example")]);
    assert_eq!(encrypted.seal(&env).await, "plaintext");

    encrypted.ask(&env, "old").await;
    encrypted.wait_for_keys(&env, "old", &["old"]).await;
    // The controller does not have to remember anything.
    encrypted.ask(&env, "new\nold").await;
    kill(processes(CONTROLLER_ARGUMENT)[0]).await;
    encrypted.wait_for_keys(&env, "new", &["new", "old"]).await;
    encrypted.ask(&env, "new").await;
    encrypted.wait_for_keys(&env, "new", &["new"]).await;
    // An atomic change, with another change in the middle of it.
    encrypted.ask(&env, "other").await;
    env.apply(&route("between.example", CHANGING)).await;
    env.is_served(&target("between.example")).await;
    encrypted.wait_for_keys(&env, "other", &["other"]).await;
    encrypted.switch_off(&env).await;
    encrypted.wait_for_keys(&env, "plaintext", &[]).await;

    env.apply(&route("after.example", CHANGING)).await;
    env.is_served(&target("after.example")).await;
    assert_eq!(env.address(CHANGING).await, address, "it is programmed, and where it was");
    traffic.was_served("the Gateway whose keys change").await;
    watch.assert_undisturbed(&env).await;
}
