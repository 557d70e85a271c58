//! `PingsixProxy` on a real API server: validation, printed columns, and effects on a controller.

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use pingsix_gateway_api::controller::PublishedAddresses;
use pingsix_translate::status::Address;
use pingsix_translate::{Kind, Layout};
use serde_json::{Value, json};

use crate::test_env::{TestEnv, eventually_async, fast_retries};

const OBJECTS: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: run}
spec:
  controllerName: pingsix.io/gateway-controller
  parametersRef: {group: pingsix.io, kind: PingsixProxy, namespace: default, name: run}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: run
  infrastructure: {parametersRef: {group: pingsix.io, kind: PingsixProxy, name: own}}
  listeners:
  - {name: plain, port: 80, protocol: HTTP}
  - {name: other, port: 8080, protocol: HTTP}
---
apiVersion: pingsix.io/v1alpha1
kind: PingsixProxy
metadata: {name: own, namespace: default}
spec: {attached: {addresses: [{value: 192.0.2.7}]}}
";

fn proxy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

async fn apply(test_env: &TestEnv, name: &str, spec: &Value) -> Result<DynamicObject, String> {
    let proxies = test_env.objects(Kind::PingsixProxy, "default");
    let params = PatchParams::apply("test").force();
    let applied = proxies.patch(name, &params, &Patch::Apply(proxy(name, spec))).await;
    applied.map_err(|error| error.to_string())
}

fn has_address(object: &Value, address: &str) -> bool {
    object["status"]["addresses"].to_string().contains(address)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_server_refuses_contradictory_parameters() {
    let Some(test_env) = TestEnv::start().await else { return };
    for (spec, output) in [
        (json!({}), "exactly one of attached and managed has to be set"),
        (json!({"attached": {}, "managed": {}}), "exactly one of attached and managed has to be set"),
        (json!({"attached": {"layout": "perPort"}}), "spec.attached.layout"),
        (json!({"attached": {"statusUrls": [{"url": "tcp://a"}]}}), "spec.attached.statusUrls[0].url"),
        (json!({"attached": {"sink": {"url": "etcd://me:secret@a:1"}}}), "spec.attached.sink.url"),
        (json!({"managed": {"replicas": -1}}), "spec.managed.replicas"),
        (json!({"managed": {"replicas": "two"}}), "spec.managed.replicas"),
        (json!({"managed": {"disruptionBudget": {}}}), "exactly one of minAvailable and maxUnavailable"),
        (
            json!({"managed": {"service": {"type": "ClusterIP", "loadBalancerClass": "a"}}}),
            "loadBalancerClass is for Services of type LoadBalancer",
        ),
        (json!({"managed": {"process": {"threads": 0}}}), "spec.managed.process.threads"),
        (json!({"managed": {"process": {"metrics": {"port": 80}}}}), "spec.managed.process.metrics.port"),
        (json!({"managed": {}, "allowOverrides": ["Everything"]}), "spec.allowOverrides[0]"),
        (json!({"managed": {}, "allowOverrides": ["Image", "Image"]}), "spec.allowOverrides"),
    ] {
        let refused = apply(&test_env, "odd", &spec).await.err();
        assert!(refused.as_ref().is_some_and(|refused| refused.contains(output)), "{spec}: {refused:?}");
    }
    // The resources of a Pod are valid for parameters.
    let spec = json!({"managed": {
        "resources": {"limits": {"cpu": 1, "memory": "256Mi"}},
        "disruptionBudget": {"minAvailable": "50%"},
        "scheduling": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
            ]}}},
            "tolerations": [{"key": "edge", "operator": "Exists"}],
        },
        "podTemplatePatch": {"spec": {"containers": [{"name": "sidecar", "env": [{"name": "A", "value": "b"}]}]}},
    }});
    let kept = serde_json::to_value(apply(&test_env, "free", &spec).await.unwrap()).unwrap();
    assert_eq!(kept["spec"], spec, "nothing is dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_are_judged_shown_and_followed() {
    let Some(test_env) = TestEnv::start().await else { return };
    test_env.apply(OBJECTS).await;
    let mut options = fast_retries();
    options.translation.layout = Layout::Shared;
    options.addresses = PublishedAddresses::Fixed(vec![Address::Ip([192, 0, 2, 1].into())]);
    let running = test_env.ready(options).await;

    // A class without its parameters has no Gateways, and takes them up when they come.
    test_env.wait_for_condition(Kind::GatewayClass, "", "run", "", "Accepted=False/InvalidParameters").await;
    apply(&test_env, "run", &json!({"attached": {"layout": "PerPort"}})).await.unwrap();
    test_env.wait_for_condition(Kind::PingsixProxy, "default", "run", "", "Accepted=True/Accepted").await;
    test_env.wait_for_condition(Kind::GatewayClass, "", "run", "", "Accepted=True/Accepted").await;
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Accepted=True/Accepted").await;
    test_env
        .until(Kind::Gateway, "default", "web", "its own address", |object| has_address(object, "192.0.2.7"))
        .await;
    assert!(test_env.etcd.scopes().iter().any(|(scope, _)| scope.as_str() == "/pingsix/default/web:8080"));

    // Another address, none, and another layout.
    apply(&test_env, "own", &json!({"attached": {"addresses": [{"value": "192.0.2.8"}]}})).await.unwrap();
    test_env
        .until(Kind::Gateway, "default", "web", "another address", |object| has_address(object, "192.0.2.8"))
        .await;
    apply(&test_env, "own", &json!({"attached": {"layout": "Shared"}})).await.unwrap();
    test_env
        .until(Kind::Gateway, "default", "web", "that of the options", |object| {
            has_address(object, "192.0.2.1")
        })
        .await;
    assert!(test_env.etcd.scopes().iter().any(|(scope, _)| scope.as_str() == "/pingsix/default/web"));

    // The controller judges fields that the schema leaves open.
    let broken = json!({"managed": {"scheduling": {"affinity": {"nodeAffinity": 7}}}});
    apply(&test_env, "broken", &broken).await.unwrap();
    test_env
        .until(Kind::PingsixProxy, "default", "broken", "the field at fault", |object| {
            let condition = &object["status"]["conditions"][0];
            condition["reason"] == "InvalidParameters"
                && condition["observedGeneration"] == object["metadata"]["generation"]
                && condition["message"]
                    .to_string()
                    .contains("spec.managed.scheduling.affinity.nodeAffinity: ")
        })
        .await;
    apply(&test_env, "broken", &json!({"managed": {"scheduling": {"affinity": {}}}})).await.unwrap();
    test_env.wait_for_condition(Kind::PingsixProxy, "default", "broken", "", "Accepted=True/Accepted").await;

    // An override that the class does not allow, and then does.
    let refused = "Accepted=False/InvalidParameters";
    apply(&test_env, "run", &json!({"managed": {}})).await.unwrap();
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", refused).await;
    apply(&test_env, "own", &json!({"managed": {"image": "example.com/pingsix:2"}})).await.unwrap();
    test_env
        .until(Kind::Gateway, "default", "web", "the field that is refused", |object| {
            object["status"]["conditions"]
                .to_string()
                .contains("sets spec.managed.image, which only the class may do")
        })
        .await;
    apply(&test_env, "run", &json!({"managed": {}, "allowOverrides": ["Image"]})).await.unwrap();
    test_env.wait_for_condition(Kind::Gateway, "default", "web", "", "Accepted=True/Accepted").await;

    shows_columns(&test_env).await;
    running.stop().await;
}

/// The columns of `kubectl get pxp -o wide` from the API server.
async fn shows_columns(test_env: &TestEnv) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("pingsix.io", "v1alpha1", "PingsixProxy"));
    let path = Api::<DynamicObject>::namespaced_with(test_env.cluster.admin(), "default", &resource);
    eventually_async("the columns of kubectl", async || {
        let request = http::Request::get(path.resource_url())
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(Vec::new())
            .unwrap();
        let table: Value = test_env.cluster.admin().request(request).await.unwrap();
        let names = table["columnDefinitions"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|column| column["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["Name", "Mode", "Accepted", "Age", "Reason"]);
        let rows = table["rows"].as_array().unwrap().iter();
        let row = rows.map(|row| &row["cells"]).find(|cells| cells[0] == "run").unwrap();
        row[1] == "Managed" && row[2] == "True" && row[4] == "Accepted"
    })
    .await;
}

/// With which a patch of Pods takes fields out, such as users that a cluster chooses itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_null_in_a_patch_of_pods_is_kept() {
    let Some(test_env) = TestEnv::start().await else { return };
    let patch = json!({"spec": {"securityContext": {"runAsUser": null}}});
    let spec = json!({"managed": {"podTemplatePatch": patch}});
    let applied = apply(&test_env, "applied", &spec).await.unwrap();
    assert_eq!(applied.data["spec"], spec);
    let proxies = test_env.objects(Kind::PingsixProxy, "default");
    let made: DynamicObject = serde_json::from_value(proxy("made", &spec)).unwrap();
    let made = proxies.create(&PostParams::default(), &made).await.unwrap();
    assert_eq!(made.data["spec"], spec);
}
