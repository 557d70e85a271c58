//! Where PingSIX differs from Gateway API: each test is a row of `docs/mapping.md`, and shows what happens.
//!
//! The request domain of the property tests leaves out exactly these.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::sync::Arc;

use pingsix_translate::pingsix::Config;
use pingsix_translate::pingsix::router::{Outcome, Request, Router};
use pingsix_translate::{Object, ObjectName, Objects, Options, translate, translate_ingress};
use serde_json::{Value, json};

fn object<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// The configuration for one HTTPRoute with one rule and a backend, on `*.example.com`.
fn config(matched: &Value) -> Config {
    let mut objects = Objects::default();
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"name": "gateway", "namespace": "shop"},
        "spec": {"gatewayClassName": "pingsix", "listeners": [
            {"name": "http", "port": 80, "protocol": "HTTP", "hostname": "*.example.com"},
        ]},
    }))));
    objects.insert(Object::Service(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"name": "cart", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
    objects.insert(Object::HttpRoute(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"parentRefs": [{"name": "gateway"}], "rules": [
            {"matches": [matched], "backendRefs": [{"name": "cart", "port": 80}]},
        ]},
    }))));
    let snapshot = objects.snapshot(&ObjectName::new("shop", "gateway")).unwrap();
    let options = Options { responder: Some("127.0.0.1:8089".parse().unwrap()), ..Options::default() };
    translate(&snapshot, &options).data_planes.into_values().next().unwrap().config
}

/// Whether the request reaches the backend.
fn is_served(config: &Config, request: &Request) -> bool {
    let router = Router::build(config, 0..config.routes().count()).unwrap();
    match router.outcome(request) {
        Outcome::Forward { candidates, .. } => {
            candidates.iter().any(|candidate| !format!("{:?}", candidate.upstream).contains("status-404"))
        }
        Outcome::NotFound | Outcome::Static { .. } | Outcome::Preflight { .. } | Outcome::Redirect { .. } => {
            false
        }
    }
}

fn get(target: &str) -> Request {
    Request::get("a.example.com", target)
}

#[test]
fn repeated_header_only_the_first_value_is_compared() {
    let config = config(&json!({"headers": [{"name": "X-Version", "value": "2"}]}));
    assert!(is_served(&config, &get("/").header("x-version", "2")));
    assert!(is_served(&config, &get("/").header("x-version", "2").header("x-version", "1")));
    assert!(!is_served(&config, &get("/").header("x-version", "1").header("x-version", "2")));
}

#[test]
fn query_value_is_compared_as_it_arrived() {
    let config = config(&json!({"queryParams": [{"name": "q", "value": "a b"}]}));
    assert!(is_served(&config, &get("/?q=a%20b")));
    assert!(is_served(&config, &get("/?q=a+b")));
    // Decodes to the same value, but is another text.
    assert!(!is_served(&config, &get("/?q=%61%20b")));
}

#[test]
fn absolute_form_target_is_not_found() {
    let config = config(&json!({}));
    assert!(is_served(&config, &get("/")));
    // PingSIX takes the whole target of HTTP/1.1 for the path.
    assert!(!is_served(&config, &get("http://a.example.com/")));
}

#[test]
fn host_with_a_trailing_dot_is_another_host() {
    let config = config(&json!({}));
    assert!(is_served(&config, &Request::get("a.example.com", "/")));
    assert!(!is_served(&config, &Request::get("a.example.com.", "/")));
}

#[test]
fn path_is_compared_without_normalisation() {
    let config = config(&json!({"path": {"type": "PathPrefix", "value": "/cart"}}));
    assert!(is_served(&config, &get("/cart/1")));
    assert!(!is_served(&config, &get("//cart/1")));
    assert!(!is_served(&config, &get("/%63art/1")));
    assert!(!is_served(&config, &get("/x/../cart/1")));
}

#[test]
fn ingress_wildcard_stands_for_several_labels() {
    let mut objects = Objects::default();
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controller": "pingsix.io/gateway-controller"},
    }))));
    objects.insert(Object::Service(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"name": "cart", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
    let backend = json!({"service": {"name": "cart", "port": {"number": 80}}});
    objects.insert(Object::Ingress(object(json!({
        "metadata": {"name": "cart", "namespace": "shop"},
        "spec": {"ingressClassName": "pingsix", "rules": [
            {"host": "*.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}},
        ]},
    }))));
    let snapshot = objects.ingress_snapshot("pingsix").unwrap();
    let translation = translate_ingress(&snapshot, &Options::default());
    let config = translation.data_planes.into_values().next().unwrap().config;
    assert!(is_served(&config, &Request::get("a.example.com", "/")));
    assert!(!is_served(&config, &Request::get("example.com", "/")));
    // `networking.k8s.io/v1` has a wildcard stand for one label.
    assert!(is_served(&config, &Request::get("a.b.example.com", "/")));
}
