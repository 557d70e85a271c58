//! The objects: routes of one Gateway to one backend, Secrets, grants and policies.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use pingsix_translate::Kind;
use serde_json::{Value, json};

use super::super::backends::Backends;
use super::super::environment::Environment;
use super::super::fixtures::Fixtures;
use super::super::objects::{self as common, ABSENT, backend_ref, prefix, secret, service, slice};
use super::client::HOST;
use crate::test_env::{objects, shop};

/// The path of the protected route.
pub(super) const ORDERS: &str = "/orders";

/// The path of the routes with a redirect.
pub(super) const ACCOUNT: &str = "/account";

/// The credentials of [`user`] in a request.
pub(super) const USER: &str = "Basic YWxpY2U6b3Blbi1zZXNhbWU=";

/// A Gateway with ports 80 and 443, and the routes `orders` and `help` on both.
pub(in super::super) fn fixtures(backends: &Backends) -> Fixtures {
    let (certificate, key) = shop::pair(HOST);
    let objects = vec![
        (Kind::Service, service("default", "a", "a")),
        (Kind::EndpointSlice, slice("default", "a", backends, &[("a", "a")])),
        (Kind::Secret, secret("shop", &certificate, &key)),
        (Kind::Gateway, gateway("web", "pingsix")),
        (Kind::HttpRoute, route("orders", ORDERS)),
        (Kind::HttpRoute, route("help", "/help")),
    ];
    Fixtures { objects, subjects: Vec::new() }
}

fn gateway(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"gatewayClassName": class, "listeners": [
            {"name": "plain", "port": 80, "protocol": "HTTP"},
            {"name": "secure", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "shop"}]}},
        ]},
    })
}

/// A route of Gateway `web` for a path.
pub(in super::super) fn route(name: &str, path: &str) -> Value {
    let rules = json!([{"matches": [prefix(path)], "backendRefs": [backend_ref("a")]}]);
    common::route(name, HOST, &rules)
}

/// A Secret with one key.
pub(in super::super) fn keys(namespace: &str, name: &str, key: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace}, "stringData": {"alice": key},
    })
}

/// The Secret of a user.
pub(super) fn user() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
        "metadata": {"name": "user", "namespace": "default"},
        "stringData": {"username": "alice", "password": "open-sesame"},
    })
}

/// A policy with these fields.
pub(super) fn policy_of(name: &str, (kind, target): (&str, &str), fields: &Value) -> Value {
    let mut spec = fields.clone();
    spec["targetRefs"] = json!([{"group": "gateway.networking.k8s.io", "kind": kind, "name": target}]);
    json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "SecurityPolicy",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

/// A policy that asks for a key of a Secret.
pub(super) fn policy(name: &str, target: (&str, &str), (namespace, secret): (&str, &str)) -> Value {
    let reference = json!({"name": secret, "namespace": namespace});
    policy_of(name, target, &json!({"apiKeyAuth": {"credentialRefs": [reference], "sanitize": true}}))
}

/// A grant for policies to the Secrets of the other namespace.
pub(super) fn grant(name: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant",
        "metadata": {"name": name, "namespace": ABSENT},
        "spec": {
            "from": [{"group": "pingsix.io", "kind": "SecurityPolicy", "namespace": "default"}],
            "to": [{"group": "", "kind": "Secret"}],
        },
    })
}

/// A class with one data plane for both ports, and a Gateway of it.
pub(super) fn shared() -> Vec<(Kind, Value)> {
    let parameters =
        json!({"group": "pingsix.io", "kind": "PingsixProxy", "namespace": "default", "name": "shared"});
    vec![
        (
            Kind::PingsixProxy,
            json!({
                "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
                "metadata": {"name": "shared", "namespace": "default"}, "spec": {"attached": {"layout": "Shared"}},
            }),
        ),
        (
            Kind::GatewayClass,
            json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
                "metadata": {"name": "shared"},
                "spec": {"controllerName": "pingsix.io/gateway-controller", "parametersRef": parameters},
            }),
        ),
        (Kind::Gateway, gateway("shared", "shared")),
    ]
}

/// A route of a Gateway on port 443 with a policy that asks for a user, and one on port 80 that redirects to it.
pub(super) fn redirected(gateway: &str) -> Vec<(Kind, Value)> {
    let at = |name: &str, section: &str, rule: &Value| {
        let mut rule = rule.clone();
        rule["matches"] = json!([prefix(ACCOUNT)]);
        let mut route = common::route(name, HOST, &json!([rule]));
        route["spec"]["parentRefs"] = json!([{"name": gateway, "sectionName": section}]);
        route
    };
    let redirect = json!({"filters": [{
        "type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301},
    }]});
    let name = format!("account-{gateway}");
    let fields = json!({"basicAuth": {"secretRef": {"name": "user"}}});
    vec![
        (Kind::SecurityPolicy, policy_of(&name, ("HTTPRoute", &name), &fields)),
        (Kind::HttpRoute, at(&name, "secure", &json!({"backendRefs": [backend_ref("a")]}))),
        (Kind::HttpRoute, at(&format!("redirect-{gateway}"), "plain", &redirect)),
    ]
}

/// Applies an object in this form.
pub(in super::super) async fn apply(environment: &Environment, kind: Kind, object: &Value) {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let name = object.metadata.name.clone().unwrap();
    let params = PatchParams::apply("test").force();
    let objects = objects(&environment.cluster.admin(), kind, namespace);
    objects.patch(&name, &params, &Patch::Apply(&object)).await.unwrap();
}

/// Changes an object.
pub(in super::super) async fn patch(
    environment: &Environment,
    kind: Kind,
    (namespace, name): (&str, &str),
    change: &Value,
) {
    let objects = objects(&environment.cluster.admin(), kind, namespace);
    objects.patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

pub(in super::super) async fn delete(environment: &Environment, kind: Kind, namespace: &str, name: &str) {
    objects(&environment.cluster.admin(), kind, namespace)
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
}
