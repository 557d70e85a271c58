//! Changes without an effect cause no publication, and no write.

use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use pingsix_translate::snapshot::wire::{EndpointSlice, HttpRoute, Service};
use pingsix_translate::snapshot::{Gateway, Namespace};
use pingsix_translate::{Kind, ObjectKey, Options};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::lab::truth::{Dump, Truth};
use crate::lab::{Lab, eventually, options, shop};

/// The time in which an effect would show.
const SHOWS: Duration = Duration::from_secs(2);

async fn patch<K: kube::Resource<DynamicType = ()>>(
    lab: &Lab,
    namespace: &str,
    name: &str,
    patch: Value,
) -> DynamicObject {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = if namespace.is_empty() {
        Api::all_with(lab.cluster.admin(), &resource)
    } else {
        Api::namespaced_with(lab.cluster.admin(), namespace, &resource)
    };
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
}

async fn annotate<K: kube::Resource<DynamicType = ()>>(lab: &Lab, namespace: &str, name: &str, round: usize) {
    let metadata = json!({
        "annotations": {"example.com/round": round.to_string()}, "labels": {"example.com/round": round.to_string()},
    });
    patch::<K>(lab, namespace, name, json!({ "metadata": metadata })).await;
}

/// A status entry of another controller, and a condition of another domain.
async fn speak_up(lab: &Lab, round: usize) {
    let condition = json!({
        "type": "another.example/Round", "status": "True", "reason": "Round", "message": round.to_string(),
        "lastTransitionTime": "2020-02-02T02:02:02Z",
    });
    let entry = json!({
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "elsewhere"},
        "controllerName": "another.example/one", "conditions": [condition],
    });
    for (resource, name, list, said) in [
        (ApiResource::erase::<HttpRoute>(&()), "cart", "parents", entry),
        (ApiResource::erase::<Gateway>(&()), "web", "conditions", condition),
    ] {
        let api: Api<DynamicObject> = Api::namespaced_with(lab.cluster.admin(), "default", &resource);
        let mut object = api.get(name).await.unwrap();
        let entries = object.data["status"][list].as_array_mut().unwrap();
        entries.retain(|entry| !entry.to_string().contains("another.example"));
        entries.push(said);
        api.replace_status(name, &PostParams::default(), &object).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_nothing_is_neither_published_nor_written() {
    let Some(lab) = Lab::start().await else { return };
    lab.apply(shop::GATEWAY).await;
    lab.apply(shop::SERVICE).await;
    lab.apply(shop::ROUTE).await;
    lab.apply(&shop::slice("cart-2", &["10.1.2.5", "10.1.2.4"])).await;
    let running = lab.ready(options()).await;
    lab.says(Kind::HttpRoute, "default", "cart", "/parents/0", "ResolvedRefs=True/ResolvedRefs").await;
    eventually("all endpoints", || lab.mentions(shop::PLANE, "10.1.2.5:8080")).await;
    sleep(SHOWS).await;
    let published = lab.etcd.stats().publications;
    let held = lab.documents(shop::PLANE);

    for round in 0..5 {
        annotate::<Gateway>(&lab, "default", "web", round).await;
        annotate::<HttpRoute>(&lab, "default", "cart", round).await;
        annotate::<Service>(&lab, "default", "cart", round).await;
        annotate::<EndpointSlice>(&lab, "default", "cart-1", round).await;
        annotate::<Namespace>(&lab, "", "default", round).await;
        speak_up(&lab, round).await;
        // Objects without a reference.
        lab.apply(&shop::SERVICE.replace("cart", &format!("other-{round}"))).await;
        let (certificate, key) = shop::pair("other.example");
        lab.apply(&shop::secret(&format!("other-{round}"), &certificate, &key)).await;
        // The same endpoints, in another order.
        let addresses = if round % 2 == 0 { ["10.1.2.4", "10.1.2.5"] } else { ["10.1.2.5", "10.1.2.4"] };
        lab.apply(&shop::slice("cart-2", &addresses)).await;
        // A route of another controller.
        lab.apply(&shop::ROUTE.replace("cart", &format!("r{round}")).replace("name: web", "name: elsewhere"))
            .await;
    }
    let before = Dump::of(&lab.cluster.admin()).await;
    sleep(SHOWS).await;
    assert_eq!(lab.etcd.stats().publications, published, "something was published");
    assert_eq!(lab.documents(shop::PLANE), held);
    let after = Dump::of(&lab.cluster.admin()).await;
    assert_eq!(after.versions(), before.versions(), "something was written");
    for (key, raw) in &after.raw {
        let writers = raw["metadata"]["managedFields"].to_string();
        let is_ours = [Kind::Gateway, Kind::HttpRoute, Kind::GatewayClass].contains(&key.kind)
            && !key.name.name.starts_with('r');
        assert_eq!(writers.contains("pingsix.io-gateway-controller"), is_ours, "{key}: {writers}");
    }
    let truth = Truth::of(&after, &Options::default(), &[]);
    assert_eq!(truth.unserved(&lab.etcd), Vec::<String>::new());
    assert_eq!(truth.unsaid(&after), Vec::<String>::new());
    let route = &after.raw[&ObjectKey::new(Kind::HttpRoute, "default", "cart")];
    assert!(route["status"]["parents"].to_string().contains("another.example/one"), "{:#}", route["status"]);

    // The test can detect this: an effective change causes a publication.
    lab.apply(&shop::slice("cart-2", &["10.1.2.6"])).await;
    eventually("a publication", || lab.etcd.stats().publications > published).await;
    running.stop().await;
}
