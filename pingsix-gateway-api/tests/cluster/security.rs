//! Statuses of SecurityPolicies for Ingresses, and of the targets of SecurityPolicies.

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use pingsix_translate::Kind;
use serde_json::{Value, json};

use crate::test_env::shop::{self, ROUTE, SERVICE};
use crate::test_env::{TestEnv, conditions, eventually_async, options};

const INGRESS: &str = "
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: web}
spec: {controller: pingsix.io/gateway-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: cart, namespace: default}
spec:
  ingressClassName: web
  rules:
  - host: cart.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: cart, port: {number: 80}}}}]}
";

const KEYS: &str = "
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: default}
stringData: {alice: open-sesame}
";

/// A policy with these targets and a key.
fn policy(name: &str, targets: &str) -> String {
    format!(
        "
apiVersion: pingsix.io/v1alpha1
kind: SecurityPolicy
metadata: {{name: {name}, namespace: default}}
spec:
  targetRefs: [{targets}]
  apiKeyAuth: {{credentialRefs: [{{name: keys}}]}}
"
    )
}

const OF_INGRESS: &str = "{group: networking.k8s.io, kind: Ingress, name: cart}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_of_an_ingress_has_its_class_as_ancestor_and_errors_as_events() {
    let Some(env) = TestEnv::start().await else { return };
    for manifests in [SERVICE, INGRESS, &policy("keys", OF_INGRESS)] {
        env.apply(manifests).await;
    }
    let running = env.ready(options()).await;
    let plane = "/pingsix-ingress/web";
    env.wait_for_condition(
        Kind::SecurityPolicy,
        "default",
        "keys",
        "/ancestors/0",
        "ResolvedRefs=False/RefNotFound",
    )
    .await;
    let events: Api<Event> = Api::namespaced(env.cluster.admin(), "default");
    eventually_async("an Event of the Ingress", async || {
        let listed = events.list(&ListParams::default()).await.unwrap();
        listed.items.iter().any(|event| {
            let of = event.regarding.clone().unwrap_or_default();
            let note = event.note.clone().unwrap_or_default();
            of.kind.as_deref() == Some("Ingress")
                && note.contains("spec.rules[0].http.paths[0]")
                && note.contains("SecurityPolicy default/keys applies to this rule and cannot be honoured")
        })
    })
    .await;
    env.apply(KEYS).await;
    env.wait_for_condition(Kind::SecurityPolicy, "default", "keys", "/ancestors/0", "Accepted=True/Accepted")
        .await;
    let policy_now = env.object(Kind::SecurityPolicy, "default", "keys").await;
    assert_eq!(
        policy_now["status"]["ancestors"][0]["ancestorRef"],
        json!({"group": "networking.k8s.io", "kind": "IngressClass", "name": "web"})
    );
    let is_protected = |is_protected: bool| {
        move |documents: &Value| documents.to_string().contains("key-auth") == is_protected
    };
    let documents = |env: &TestEnv| json!(env.documents(plane));
    eventually_async("a service", async || is_protected(true)(&documents(&env))).await;

    // The API server refuses the targets that the controller would refuse.
    for targets in [
        "{group: networking.k8s.io, kind: Ingress, name: cart, sectionName: first}",
        "{group: networking.k8s.io, kind: Ingress, name: cart}, \
         {group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}",
    ] {
        assert!(env.cluster.apply(&policy("refused", targets)).await.is_err(), "{targets}");
    }
    let policies = env.objects(Kind::SecurityPolicy, "default");
    policies.delete("keys", &DeleteParams::default()).await.unwrap();
    eventually_async("no service", async || is_protected(false)(&documents(&env))).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_whose_target_does_not_exist_says_so_until_the_target_comes() {
    const NOT_FOUND: &str = "Accepted=False/TargetNotFound";
    let Some(env) = TestEnv::start().await else { return };
    let target = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}";
    for manifests in [SERVICE, shop::GATEWAY, KEYS, &policy("keys", target)] {
        env.apply(manifests).await;
    }
    let running = env.ready(options()).await;
    let wait_for = async |condition: &str, kind: &str| {
        env.wait_for_condition(Kind::SecurityPolicy, "default", "keys", "/ancestors/0", condition).await;
        let policy = env.object(Kind::SecurityPolicy, "default", "keys").await;
        let ancestors = policy["status"]["ancestors"].as_array().unwrap().clone();
        assert_eq!((ancestors.len(), &ancestors[0]["ancestorRef"]["kind"]), (1, &json!(kind)), "{policy}");
    };
    wait_for(NOT_FOUND, "HTTPRoute").await;
    let events: Api<Event> = Api::namespaced(env.cluster.admin(), "default");
    eventually_async("an Event of the policy", async || {
        let listed = events.list(&ListParams::default()).await.unwrap();
        listed.items.iter().any(|event| {
            let of = event.regarding.clone().unwrap_or_default();
            of.kind.as_deref() == Some("SecurityPolicy") && event.reason.as_deref() == Some("TargetNotFound")
        })
    })
    .await;
    env.apply(ROUTE).await;
    wait_for("Accepted=True/Accepted", "Gateway").await;
    env.objects(Kind::HttpRoute, "default").delete("cart", &DeleteParams::default()).await.unwrap();
    wait_for(NOT_FOUND, "HTTPRoute").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_targets_of_a_policy_say_so_while_the_policy_is_there() {
    const AFFECTED: &str = "pingsix.io/PolicyAffected=True/PolicyAffected";
    let Some(env) = TestEnv::start().await else { return };
    let gateway = "{group: gateway.networking.k8s.io, kind: Gateway, name: web}";
    let listener = "{group: gateway.networking.k8s.io, kind: Gateway, name: web, sectionName: plain}";
    let route = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: cart}";
    for manifests in [SERVICE, shop::GATEWAY, ROUTE, KEYS] {
        env.apply(manifests).await;
    }
    let running = env.ready(options()).await;
    let targets = [
        (gateway, Kind::Gateway, "web", ""),
        (listener, Kind::Gateway, "web", "/listeners/0"),
        (route, Kind::HttpRoute, "cart", "/parents/0"),
    ];
    let policies = env.objects(Kind::SecurityPolicy, "default");
    for (target, kind, name, path) in targets {
        env.apply(&policy("keys", target)).await;
        env.wait_for_condition(kind, "default", name, path, AFFECTED).await;
        for (_, kind, name, other) in targets.into_iter().filter(|(_, _, _, other)| *other != path) {
            let object = env.object(kind, "default", name).await;
            let said = conditions(&object["status"], other);
            assert!(
                !said.is_empty() && !said.iter().any(|said| said == AFFECTED),
                "{target}: {name} {other}"
            );
        }
        policies.delete("keys", &DeleteParams::default()).await.unwrap();
        let is_unaffected =
            |object: &Value| !conditions(&object["status"], path).iter().any(|said| said == AFFECTED);
        env.until(kind, "default", name, "no such condition", is_unaffected).await;
    }
    running.stop().await;
}
