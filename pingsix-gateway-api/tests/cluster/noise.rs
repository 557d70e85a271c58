//! Changes without an effect cause no publication, and no write.

use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use pingsix_translate::snapshot::wire::{EndpointSlice, HttpRoute, Service};
use pingsix_translate::snapshot::{Gateway, Namespace};
use pingsix_translate::{Kind, ObjectKey, Options};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::test_env::expected_state::{Dump, ExpectedState};
use crate::test_env::{TestEnv, eventually, options, shop};

/// The time in which an effect would show.
const SETTLE_TIME: Duration = Duration::from_secs(2);

async fn patch<K: kube::Resource<DynamicType = ()>>(
    test_env: &TestEnv,
    namespace: &str,
    name: &str,
    patch: Value,
) -> DynamicObject {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = if namespace.is_empty() {
        Api::all_with(test_env.cluster.admin(), &resource)
    } else {
        Api::namespaced_with(test_env.cluster.admin(), namespace, &resource)
    };
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

async fn annotate<K: kube::Resource<DynamicType = ()>>(
    test_env: &TestEnv,
    namespace: &str,
    name: &str,
    round: usize,
) {
    let metadata = json!({
        "annotations": {"example.com/round": round.to_string()}, "labels": {"example.com/round": round.to_string()},
    });
    patch::<K>(test_env, namespace, name, json!({ "metadata": metadata })).await;
}

/// A status entry of another controller, and a condition of another domain.
async fn change_unused_fields(test_env: &TestEnv, round: usize) {
    let condition = json!({
        "type": "another.example/Round", "status": "True", "reason": "Round", "message": round.to_string(),
        "lastTransitionTime": "2020-02-02T02:02:02Z",
    });
    let entry = json!({
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "elsewhere"},
        "controllerName": "another.example/one", "conditions": [condition],
    });
    for (resource, name, list, output) in [
        (ApiResource::erase::<HttpRoute>(&()), "cart", "parents", entry),
        (ApiResource::erase::<Gateway>(&()), "web", "conditions", condition),
    ] {
        let api: Api<DynamicObject> = Api::namespaced_with(test_env.cluster.admin(), "default", &resource);
        let mut object = api.get(name).await.unwrap();
        let entries = object.data["status"][list].as_array_mut().unwrap();
        entries.retain(|entry| !entry.to_string().contains("another.example"));
        entries.push(output);
        api.replace_status(name, &PostParams::default(), &object).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn irrelevant_changes_cause_no_write() {
    let Some(test_env) = TestEnv::start().await else { return };
    test_env.apply(shop::GATEWAY).await;
    test_env.apply(shop::SERVICE).await;
    test_env.apply(shop::ROUTE).await;
    test_env.apply(&shop::slice("cart-2", &["10.1.2.5", "10.1.2.4"])).await;
    let running = test_env.ready(options()).await;
    test_env.wait_for_route("ResolvedRefs=True/ResolvedRefs").await;
    eventually("all endpoints", || test_env.mentions(shop::PLANE, "10.1.2.5:8080")).await;
    sleep(SETTLE_TIME).await;
    let published = test_env.etcd.stats().publications;
    let held = test_env.documents(shop::PLANE);

    for round in 0..5 {
        annotate::<Gateway>(&test_env, "default", "web", round).await;
        annotate::<HttpRoute>(&test_env, "default", "cart", round).await;
        annotate::<Service>(&test_env, "default", "cart", round).await;
        annotate::<EndpointSlice>(&test_env, "default", "cart-1", round).await;
        annotate::<Namespace>(&test_env, "", "default", round).await;
        change_unused_fields(&test_env, round).await;
        // Objects without a reference.
        test_env.apply(&shop::SERVICE.replace("cart", &format!("other-{round}"))).await;
        let (certificate, key) = shop::pair("other.example");
        test_env.apply(&shop::secret(&format!("other-{round}"), &certificate, &key)).await;
        // The same endpoints, in another order.
        let addresses = if round % 2 == 0 { ["10.1.2.4", "10.1.2.5"] } else { ["10.1.2.5", "10.1.2.4"] };
        test_env.apply(&shop::slice("cart-2", &addresses)).await;
        // A route of another controller.
        test_env
            .apply(&shop::ROUTE.replace("cart", &format!("r{round}")).replace("name: web", "name: elsewhere"))
            .await;
    }
    let before = Dump::of(&test_env.cluster.admin()).await;
    sleep(SETTLE_TIME).await;
    assert_eq!(test_env.etcd.stats().publications, published, "something was published");
    assert_eq!(test_env.documents(shop::PLANE), held);
    let after = Dump::of(&test_env.cluster.admin()).await;
    assert_eq!(after.versions(), before.versions(), "something was written");
    for (key, raw) in &after.raw {
        let writers = raw["metadata"]["managedFields"].to_string();
        let is_ours = [Kind::Gateway, Kind::HttpRoute, Kind::GatewayClass].contains(&key.kind)
            && !key.name.name.starts_with('r');
        assert_eq!(writers.contains("pingsix.io-gateway-controller"), is_ours, "{key}: {writers}");
    }
    let expected_state = ExpectedState::of(&after, &Options::default(), &[]);
    assert_eq!(expected_state.wrong_documents(&test_env.etcd), Vec::<String>::new());
    assert_eq!(expected_state.wrong_statuses(&after), Vec::<String>::new());
    let route = &after.raw[&ObjectKey::new(Kind::HttpRoute, "default", "cart")];
    assert!(route["status"]["parents"].to_string().contains("another.example/one"), "{:#}", route["status"]);

    // The test can detect this: an effective change causes a publication.
    test_env.apply(&shop::slice("cart-2", &["10.1.2.6"])).await;
    eventually("a publication", || test_env.etcd.stats().publications > published).await;
    running.stop().await;
}
