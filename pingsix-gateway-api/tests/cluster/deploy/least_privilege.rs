//! A controller with the rights of the manifests, through everything it does; and no right that it does not use.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use pingsix_gateway_api::pki::ROTATE;
use pingsix_gateway_api::provision::ChildKind;
use pingsix_translate::Kind;
use serde_json::{Value, json};

use super::installation::{Installation, is_judged};
use super::manifests::Manifests;
use super::requests::Requests;
use super::rights::{Right, granted, without};
use crate::test_env::eventually_async;

/// One object of every kind that is watched, and a problem for an Event in `shop` and one in `default`.
const OBJECTS: &str = include_str!("one_of_each.yaml");

/// A Gateway whose data planes the controller runs.
const MANAGED: &str = "
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: {name: own, namespace: shop}
spec: {managed: {}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: managed, namespace: shop}
spec:
  gatewayClassName: pingsix
  infrastructure: {parametersRef: {group: pingsix.io, kind: PingsixProxy, name: own}}
  listeners: [{name: plain, port: 80, protocol: HTTP}]
";

/// Kinds in whose statuses each controller has entries of its own.
fn kinds_with_entries() -> impl Iterator<Item = Kind> {
    Kind::routes().chain([
        Kind::BackendTlsPolicy,
        Kind::BackendTrafficPolicy,
        Kind::SecurityPolicy,
        Kind::TrafficPolicy,
    ])
}

/// Whether a route or a policy has our entry.
fn has_our_entry(object: &Value) -> bool {
    let entries = ["parents", "ancestors"].into_iter().filter_map(|list| object["status"][list].as_array());
    entries.flatten().any(|entry| entry["controllerName"] == "pingsix.io/gateway-controller")
}

/// Waits until an Event of an object has this count.
async fn wait_for_event(installation: &Installation, namespace: &str, name: &str, times: i32) {
    let events = Api::<Event>::namespaced(installation.test_env.cluster.admin(), namespace);
    eventually_async(&format!("an Event on {name}, {times} times"), async || {
        let listed = events.list(&ListParams::default()).await.unwrap();
        listed.iter().any(|event| {
            let count = event.series.as_ref().map_or(1, |series| series.count);
            let regarding = event.regarding.as_ref().and_then(|regarding| regarding.name.as_deref());
            regarding == Some(name) && count >= times
        })
    })
    .await;
}

/// Requests a new CA of the feed, and waits until the controller has written it.
async fn rotate_the_authority(installation: &Installation) {
    let name = &installation.options.feed_authority.as_ref().unwrap().secret;
    let secrets = Api::<Secret>::namespaced(installation.test_env.cluster.admin(), &name.namespace);
    eventually_async("an authority", async || secrets.get_opt(&name.name).await.unwrap().is_some()).await;
    let request = Patch::Merge(json!({"metadata": {"annotations": {ROTATE: "now"}}}));
    secrets.patch(&name.name, &PatchParams::default(), &request).await.unwrap();
    eventually_async("the next authority", async || {
        let data = secrets.get(&name.name).await.unwrap().data.unwrap();
        data.contains_key("next.crt")
    })
    .await;
}

async fn use_everything(installation: &Installation) {
    let running = installation.run().await;
    let test_env = &installation.test_env;
    test_env.apply(OBJECTS).await;
    let address = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}});
    let services = test_env.objects(Kind::Service, "shop");
    services.patch_status("pingsix", &PatchParams::default(), &Patch::Merge(&address)).await.unwrap();

    for (kind, namespace, name) in [
        (Kind::GatewayClass, "", "pingsix"),
        (Kind::GatewayClass, "", "odd"),
        (Kind::Gateway, "shop", "web"),
        (Kind::ListenerSet, "shop", "more"),
        (Kind::PingsixProxy, "shop", "small"),
    ] {
        test_env.until(kind, namespace, name, "a verdict", is_judged).await;
    }
    for kind in kinds_with_entries() {
        test_env.until(kind, "shop", "cart", "our entry", has_our_entry).await;
    }
    let has_address = |object: &Value| object.to_string().contains("192.0.2.7");
    test_env.until(Kind::Ingress, "shop", "cart", "an address", has_address).await;
    test_env.until(Kind::Gateway, "shop", "web", "an address", has_address).await;
    // The certificate was read.
    let resolved = |object: &Value| {
        let listeners = object["status"]["listeners"].as_array().into_iter().flatten();
        let conditions = listeners.filter(|listener| listener["name"] == "https");
        let mut conditions = conditions.filter_map(|listener| listener["conditions"].as_array()).flatten();
        conditions.any(|one| one["type"] == "ResolvedRefs" && one["status"] == "True")
    };
    test_env.until(Kind::Gateway, "shop", "web", "its certificate", resolved).await;
    wait_for_event(installation, "shop", "broken", 1).await;
    wait_for_event(installation, "default", "odd", 1).await;
    run_a_data_plane(installation).await;
    rotate_the_authority(installation).await;
    running.stop().await;

    // The next process finds the Lease and the Events.
    let running = installation.run().await;
    wait_for_event(installation, "shop", "broken", 2).await;
    wait_for_event(installation, "default", "odd", 2).await;
    running.stop().await;
}

/// Lets the controller run a data plane with all its objects, and ends it.
async fn run_a_data_plane(installation: &Installation) {
    let test_env = &installation.test_env;
    test_env.apply(MANAGED).await;
    let deployments = Api::<Deployment>::namespaced(test_env.cluster.admin(), "shop");
    let is_there = async || deployments.get_opt("managed-pingsix").await.unwrap().is_some();
    eventually_async("a Deployment", is_there).await;
    let budgets = Api::<PodDisruptionBudget>::namespaced(test_env.cluster.admin(), "shop");
    let all = async || budgets.get_opt("managed-pingsix").await.unwrap().is_some();
    eventually_async("a PodDisruptionBudget", all).await;
    test_env.apply(&MANAGED.replace("managed: {}", "attached: {}")).await;
    let accounts = Api::<ServiceAccount>::namespaced(test_env.cluster.admin(), "shop");
    let is_gone = async || accounts.get_opt("managed-pingsix").await.unwrap().is_none();
    eventually_async("the end of its ServiceAccount", is_gone).await;
}

/// The request, as far as rules of roles distinguish it.
fn used(requests: &Requests) -> BTreeSet<Right> {
    // Referenced Secrets are read in all namespaces; those of the controller itself are named.
    let is_named = |right: &Right| {
        let is_own = right.namespace.as_deref() == Some("pingsix-system");
        right.resource == "leases" || right.resource == "secrets" && is_own
    };
    let rights = requests.rights().into_iter();
    let rights = rights.map(|right| if is_named(&right) { right } else { Right { name: None, ..right } });
    rights.flat_map(applied).map(without_name_of_create).collect()
}

/// For the authorizer, the apply of an absent object is a create.
fn applied(right: Right) -> Vec<Right> {
    let is_applied =
        right.verb == "patch" && ChildKind::ALL.iter().any(|kind| kind.resource() == right.resource);
    let created = is_applied.then(|| Right { verb: "create".to_owned(), ..right.clone() });
    created.into_iter().chain([right]).collect()
}

/// A request to create has no name for the authorizer.
fn without_name_of_create(right: Right) -> Right {
    if right.verb == "create" { Right { name: None, ..right } } else { right }
}

fn only_discovery_beside(requests: &Requests) {
    for path in requests.paths() {
        let is_discovery = path.starts_with("/api/") || path.starts_with("/apis");
        assert!(is_discovery && path.split('/').count() <= 4, "{path}");
    }
}

fn by_name_alone(requests: &Requests) {
    let mut kinds = BTreeSet::new();
    for right in requests.rights() {
        // The objects of the controller are listed by label, and created.
        let is_ours = right.resource == "secrets"
            && matches!(right.verb.as_str(), "list" | "watch" | "create")
            && right.name.is_none();
        if !is_ours && (right.resource == "secrets" || right.resource == "configmaps") {
            assert!(right.name.is_some() && right.namespace.is_some(), "{right}");
            kinds.insert(right.resource);
        }
    }
    assert_eq!(kinds.len(), 2, "{kinds:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_of_the_whole_cluster_uses_exactly_the_rights_it_has() {
    let manifests = Manifests::cluster_wide();
    let Some(installation) = Installation::of(&manifests).await else { return };
    use_everything(&installation).await;
    assert_eq!(installation.requests.forbidden(), [""; 0]);
    // Requests about objects of one namespace are covered by rights everywhere.
    let used: BTreeSet<Right> = used(&installation.requests).iter().map(Right::anywhere).collect();
    let granted: BTreeSet<Right> = granted(&manifests).iter().map(Right::anywhere).collect();
    assert_eq!(without(&used, &granted), [""; 0], "is used and not granted");
    assert_eq!(without(&granted, &used), [""; 0], "is granted and never used");
    only_discovery_beside(&installation.requests);
    by_name_alone(&installation.requests);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_of_one_namespace_uses_exactly_the_rights_it_has() {
    let manifests = Manifests::namespaced();
    let Some(installation) = Installation::of(&manifests).await else { return };
    use_everything(&installation).await;
    assert_eq!(installation.requests.forbidden(), [""; 0]);
    let (used, granted) = (used(&installation.requests), granted(&manifests));
    assert_eq!(without(&used, &granted), [""; 0], "is used and not granted");
    assert_eq!(without(&granted, &used), [""; 0], "is granted and never used");
    only_discovery_beside(&installation.requests);
    by_name_alone(&installation.requests);
}
