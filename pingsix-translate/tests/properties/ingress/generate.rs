//! Random Ingresses of a few classes, with vocabularies so small that hosts and paths collide all the time.

use std::sync::LazyLock;

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::CLASS;
use crate::generate::{HOSTNAMES, NAMESPACES, SERVICES, one_in, pick, services};

const PATHS: [&str; 9] = ["/", "/", "/foo", "/foo/", "/foo/bar", "/foo/bar/", "/fo", "/foo/bar/baz", ""];
const AGES: [&str; 3] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-02-01T00:00:00Z"];
const SECRETS: [&str; 2] = ["one", "two"];

/// The names that the certificate in a Secret is for.
pub(super) const CERTIFIED: [(&str, [&str; 2]); 2] =
    [("one", ["*.example.com", "example.com"]), ("two", ["a.example.com", "example.com"])];

/// Certificate and key by Secret. The bytes never reach an assertion, so they may differ from run to run.
static CERTIFICATES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    CERTIFIED
        .into_iter()
        .map(|(_, names)| {
            let certified = rcgen::generate_simple_self_signed(names.map(str::to_owned)).unwrap();
            (certified.cert.pem(), certified.signing_key.serialize_pem())
        })
        .collect()
});

/// A random table: every object of one case.
pub(crate) fn table(rng: &mut SmallRng) -> Vec<Value> {
    let mut objects = vec![
        class(rng, CLASS, "pingsix.io/gateway-controller", 3),
        class(rng, "other", "example.com/controller", 8),
    ];
    objects.extend(services(rng));
    for namespace in NAMESPACES {
        for (name, (certificate, key)) in SECRETS.into_iter().zip(&*CERTIFICATES) {
            objects.push(json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "namespace": namespace, "name": name },
                "stringData": { "tls.crt": certificate, "tls.key": key },
            }));
        }
    }
    let mut ingresses: Vec<Value> = Vec::new();
    for index in 0..rng.random_range(1..=6) {
        let mut ingress = ingress(rng, index);
        if let Some(model) = ingresses.choose(rng).filter(|_| index % 2 == 1) {
            imitate(rng, &mut ingress, model);
        }
        ingresses.push(ingress);
    }
    objects.extend(ingresses);
    if one_in(rng, 2) {
        own_hosts(&mut objects);
    }
    objects
}

/// Has hosts belong to namespaces.
pub(super) fn own_hosts(objects: &mut Vec<Value>) {
    objects.push(json!({
        "apiVersion": "pingsix.io/v1alpha1", "kind": "PingsixProxy",
        "metadata": { "namespace": "infra", "name": "owners" },
        "spec": { "attached": {}, "ingress": { "hostOwnership": "OldestNamespace" } },
    }));
    let of_class =
        |object: &&mut Value| object["kind"] == "IngressClass" && object["metadata"]["name"] == CLASS;
    let class = objects.iter_mut().find(of_class).unwrap();
    class["spec"]["parameters"] = json!({
        "apiGroup": "pingsix.io", "kind": "PingsixProxy", "name": "owners",
        "scope": "Namespace", "namespace": "infra",
    });
}

/// An Ingress whose host nobody else has.
pub(super) fn alone() -> Value {
    json!({
        "kind": "Ingress",
        "metadata": { "namespace": "infra", "name": "alone" },
        "spec": { "ingressClassName": CLASS, "rules": [{ "host": "alone.test", "http": { "paths": [
            { "path": "/", "pathType": "Prefix", "backend": { "resource": { "kind": "None", "name": "none" } } },
        ] } }] },
    })
}

/// The hosts of a table in the shape of a route's.
pub(super) fn hostnames(objects: &[Value]) -> Vec<Value> {
    let rules = objects.iter().filter_map(|object| object["spec"]["rules"].as_array()).flatten();
    let hosts: Vec<&Value> = rules.filter_map(|rule| rule.get("host")).collect();
    vec![json!({ "spec": { "hostnames": hosts } })]
}

fn class(rng: &mut SmallRng, name: &str, controller: &str, default_in: u32) -> Value {
    let is_default = if one_in(rng, default_in) { "true" } else { "false" };
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": {
            "name": name,
            "creationTimestamp": pick(rng, &AGES),
            "annotations": { "ingressclass.kubernetes.io/is-default-class": is_default },
        },
        "spec": { "controller": controller },
    })
}

fn ingress(rng: &mut SmallRng, index: usize) -> Value {
    let mut metadata = json!({ "namespace": pick(rng, &NAMESPACES), "name": format!("i{index}") });
    if !one_in(rng, 12) {
        metadata["creationTimestamp"] = json!(pick(rng, &AGES));
    }
    let rules: Vec<Value> = (0..rng.random_range(0..=3)).map(|_| rule(rng)).collect();
    let mut spec = json!({ "rules": rules });
    match rng.random_range(0..16) {
        0 => {}
        1 => metadata["annotations"] = json!({ "kubernetes.io/ingress.class": CLASS }),
        2 => metadata["annotations"] = json!({ "kubernetes.io/ingress.class": "other" }),
        3 => spec["ingressClassName"] = json!("other"),
        _ => spec["ingressClassName"] = json!(CLASS),
    }
    if one_in(rng, 3) || rules.is_empty() {
        spec["defaultBackend"] = backend(rng);
    }
    if one_in(rng, 2) {
        spec["tls"] = (0..rng.random_range(1..=2)).map(|_| tls(rng)).collect();
    }
    json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec })
}

fn rule(rng: &mut SmallRng) -> Value {
    let mut rule = json!({});
    if !one_in(rng, 4) {
        rule["host"] = json!(pick(rng, &HOSTNAMES));
    }
    if !one_in(rng, 6) {
        let paths: Vec<Value> = (0..rng.random_range(1..=3)).map(|_| path(rng)).collect();
        rule["http"] = json!({ "paths": paths });
    }
    rule
}

fn path(rng: &mut SmallRng) -> Value {
    let kind = pick(rng, &["Exact", "Prefix", "Prefix", "ImplementationSpecific"]);
    json!({ "path": pick(rng, &PATHS), "pathType": kind, "backend": backend(rng) })
}

fn backend(rng: &mut SmallRng) -> Value {
    if one_in(rng, 30) {
        return json!({ "resource": { "apiGroup": "example.com", "kind": "Bucket", "name": "b" } });
    }
    let name = if one_in(rng, 5) { pick(rng, &SERVICES) } else { pick(rng, &["one", "two"]) };
    let port = match rng.random_range(0..12) {
        0 => json!({ "number": 9999 }),
        1 => json!({ "name": "absent" }),
        2 | 3 => json!({ "name": "admin" }),
        4 => json!({ "name": "http" }),
        5 => json!({ "number": 81 }),
        _ => json!({ "number": 80 }),
    };
    json!({ "service": { "name": name, "port": port } })
}

pub(super) fn tls(rng: &mut SmallRng) -> Value {
    let mut tls = json!({});
    if !one_in(rng, 4) {
        let hosts: Vec<Value> = (0..rng.random_range(1..=2)).map(|_| json!(pick(rng, &HOSTNAMES))).collect();
        tls["hosts"] = json!(hosts);
    }
    if !one_in(rng, 8) {
        tls["secretName"] = json!(if one_in(rng, 6) { "absent" } else { pick(rng, &SECRETS) });
    }
    tls
}

/// Gives an Ingress the hosts, age and paths of another, so that finer criteria have to decide.
fn imitate(rng: &mut SmallRng, ingress: &mut Value, model: &Value) {
    if let Some(age) = model["metadata"].get("creationTimestamp").filter(|_| !one_in(rng, 3)) {
        ingress["metadata"]["creationTimestamp"] = age.clone();
    }
    let models = model["spec"]["rules"].as_array().unwrap();
    for (rule, model) in ingress["spec"]["rules"].as_array_mut().unwrap().iter_mut().zip(models) {
        let Some(host) = model.get("host") else { continue };
        rule["host"] = host.clone();
        let model = model.pointer("/http/paths").and_then(Value::as_array).into_iter().flatten();
        let own = rule.pointer_mut("/http/paths").and_then(Value::as_array_mut).into_iter().flatten();
        for (path, model) in own.zip(model) {
            path["path"] = model["path"].clone();
            path["pathType"] = model["pathType"].clone();
        }
    }
}
