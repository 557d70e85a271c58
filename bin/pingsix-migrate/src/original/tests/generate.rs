//! Random Ingresses of both dialects, with vocabularies so small that hosts and paths collide.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use super::ingresses::{self, Ingress};
use crate::answer::Request;

/// A dialect: the class, its controller and the domain of its annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Nginx,
    Apisix,
}

impl Dialect {
    pub(super) const ALL: [Self; 2] = [Self::Nginx, Self::Apisix];

    pub(super) fn domain(self) -> &'static str {
        match self {
            Self::Nginx => "nginx.ingress.kubernetes.io",
            Self::Apisix => "k8s.apisix.apache.org",
        }
    }

    fn class(self) -> (&'static str, &'static str) {
        match self {
            Self::Nginx => ("nginx", "k8s.io/ingress-nginx"),
            Self::Apisix => ("apisix", "apisix.apache.org/apisix-ingress-controller"),
        }
    }

    fn annotations(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::Nginx => NGINX,
            Self::Apisix => APISIX,
        }
    }
}

const HOSTS: [&str; 5] = ["a.example.com", "b.example.com", "*.example.com", "", "www.c.example"];
const PATHS: [&str; 8] = ["/", "/foo", "/foo/", "/foo/bar", "/bar", "/fo", "/foo/bar/baz", "/app"];
const PATTERNS: [&str; 6] = ["/foo(/|$)(.*)", "/foo/(.*)", "/fo/?(.*)", "/(.*)", "/foo/bar(/.*)?", "/bar"];
const TYPES: [&str; 4] = ["Prefix", "Prefix", "Exact", "ImplementationSpecific"];
const SERVICES: [&str; 4] = ["one", "two", "three", "idle"];

/// Annotations with values. Those of APISIX with an equals sign set two annotations.
const NGINX: &[(&str, &[&str])] = &[
    ("rewrite-target", &["/", "/new", "/$1", "/$2", "/x/$2"]),
    ("use-regex", &["true", "false"]),
    ("app-root", &["/app"]),
    ("ssl-redirect", &["false", "true"]),
    ("force-ssl-redirect", &["true"]),
    ("permanent-redirect", &["https://new.example/x", "https://new.example$request_uri"]),
    ("temporal-redirect", &["https://new.example/y"]),
    ("permanent-redirect-code", &["308"]),
    ("whitelist-source-range", &["192.0.2.0/24", "192.0.2.7/24, 198.51.100.1", "2001:db8::/32", "nonsense"]),
    ("denylist-source-range", &["198.51.100.0/24"]),
    ("upstream-vhost", &["inner.example"]),
    ("from-to-www-redirect", &["true"]),
    ("server-alias", &["alias.example", "b.example.com, other.example"]),
    ("default-backend", &["three"]),
    ("canary", &["true"]),
    ("limit-rps", &["10"]),
    ("auth-type", &["basic"]),
    ("proxy-read-timeout", &["7"]),
    ("enable-cors", &["true"]),
    ("proxy-body-size", &["8m", "0"]),
];

const APISIX: &[(&str, &[&str])] = &[
    ("rewrite-target", &["/new", "/"]),
    ("rewrite-target-regex", &["^/foo/(.*)", "/(.*)", "^/fo(.*)$"]),
    ("http-to-https", &["true", "false"]),
    ("http-redirect", &["https://new.example/x"]),
    ("http-redirect-code", &["308", "302"]),
    ("allowlist-source-range", &["192.0.2.0/24", "192.0.2.7/24,198.51.100.1"]),
    ("blocklist-source-range", &["198.51.100.0/24"]),
    ("http-allow-methods", &["GET", "GET,POST"]),
    ("http-block-methods", &["POST"]),
    ("use-regex", &["true"]),
    ("upstream-retries", &["2"]),
    ("enable-websocket", &["true"]),
    ("svc-namespace", &["shop"]),
];

fn pick<'a>(rng: &mut SmallRng, list: &[&'a str]) -> &'a str {
    list.choose(rng).copied().unwrap_or_default()
}

fn one_in(rng: &mut SmallRng, count: u32) -> bool {
    rng.random_range(0..count) == 0
}

/// The objects of a case, without Ingresses.
fn surroundings(dialect: Dialect) -> Vec<Value> {
    let (class, controller) = dialect.class();
    let mut objects = vec![json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": { "name": class }, "spec": { "controller": controller },
    })];
    for name in SERVICES {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "shop", "name": name },
            "spec": { "ports": [{ "name": "http", "port": 80 }] },
        }));
        let addresses = if name == "idle" { json!([]) } else { json!([{ "addresses": ["10.0.0.1"] }]) };
        objects.push(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": { "namespace": "shop", "name": name, "labels": { "kubernetes.io/service-name": name } },
            "ports": [{ "name": "http", "port": 8080 }], "endpoints": addresses,
        }));
    }
    objects.push(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
        "metadata": { "namespace": "shop", "name": "user" },
        "stringData": { "username": "alice", "password": "open-sesame", "auth": "alice:hash" },
    }));
    objects
}

/// The objects of a case.
pub(super) fn case(rng: &mut SmallRng, dialect: Dialect, count: usize) -> Vec<Value> {
    let mut objects = surroundings(dialect);
    let mut ingresses: Vec<Value> = Vec::new();
    for index in 0..count {
        let mut ingress = ingress(rng, dialect, index);
        let canaries =
            ingresses.iter().filter(|other| !other["metadata"]["annotations"].to_string().contains("canary"));
        let mains: Vec<&Value> = canaries.collect();
        if let Some(main) = mains.choose(rng)
            && dialect == Dialect::Nginx
            && one_in(rng, 4)
        {
            make_canary(rng, &mut ingress, main);
        }
        ingresses.push(ingress);
    }
    objects.extend(ingresses);
    objects
}

fn backend(rng: &mut SmallRng) -> Value {
    let port = if one_in(rng, 3) { json!({ "name": "http" }) } else { json!({ "number": 80 }) };
    json!({ "service": { "name": pick(rng, &SERVICES), "port": port } })
}

fn ingress(rng: &mut SmallRng, dialect: Dialect, index: usize) -> Value {
    let mut annotations = Map::new();
    for _ in 0..rng.random_range(0..4) {
        if let Some((name, values)) = dialect.annotations().choose(rng) {
            annotate(rng, dialect, (name, values), &mut annotations);
        }
    }
    let is_regular = |name: &str| annotations.contains_key(&format!("{}/{name}", dialect.domain()));
    let has_patterns = is_regular("use-regex") || is_regular("rewrite-target") && dialect == Dialect::Nginx;
    let rules: Vec<Value> = (0..rng.random_range(1..3))
        .map(|_| {
            let paths: Vec<Value> = (0..rng.random_range(1..3))
                .map(|_| {
                    let (path, kind) = if has_patterns && !one_in(rng, 3) {
                        (pick(rng, &PATTERNS), "ImplementationSpecific")
                    } else {
                        (pick(rng, &PATHS), pick(rng, &TYPES))
                    };
                    json!({ "path": path, "pathType": kind, "backend": backend(rng) })
                })
                .collect();
            let mut rule = json!({ "http": { "paths": paths } });
            match pick(rng, &HOSTS) {
                "" => {}
                host => rule["host"] = json!(host),
            }
            rule
        })
        .collect();
    let (class, _) = dialect.class();
    let mut spec = json!({ "ingressClassName": class, "rules": rules });
    if one_in(rng, 4) {
        let host = pick(rng, &HOSTS[..3]);
        spec["tls"] = json!([{ "hosts": [host], "secretName": "certificate" }]);
    }
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {
            "namespace": "shop", "name": format!("ingress-{index}"), "annotations": annotations,
            "creationTimestamp": format!("2026-01-0{}T00:00:00Z", rng.random_range(1..5)),
        },
        "spec": spec,
    })
}

fn annotate(
    rng: &mut SmallRng,
    dialect: Dialect,
    (name, values): (&str, &[&str]),
    annotations: &mut Map<String, Value>,
) {
    let mut set = |name: &str, value: &str| {
        annotations.insert(format!("{}/{name}", dialect.domain()), json!(value));
    };
    match (dialect, name) {
        // A canary is made of an Ingress like it.
        (Dialect::Nginx, "canary") => {}
        (Dialect::Nginx, "auth-type") => {
            set("auth-type", "basic");
            set("auth-secret", "user");
        }
        (Dialect::Nginx, "enable-cors") => set("enable-cors", "true"),
        (Dialect::Apisix, "rewrite-target-regex") => {
            set(name, pick(rng, values));
            set("rewrite-target-regex-template", pick(rng, &["/$1", "/v2/$1"]));
        }
        _ => set(name, pick(rng, values)),
    }
}

fn make_canary(rng: &mut SmallRng, ingress: &mut Value, main: &Value) {
    let domain = Dialect::Nginx.domain();
    let mut annotations = Map::new();
    annotations.insert(format!("{domain}/canary"), json!("true"));
    match rng.random_range(0..3) {
        0 => annotations.insert(format!("{domain}/canary-weight"), json!("25")),
        1 => annotations.insert(format!("{domain}/canary-by-header"), json!("X-Canary")),
        _ => {
            annotations.insert(format!("{domain}/canary-by-header"), json!("X-Canary"));
            annotations.insert(format!("{domain}/canary-by-header-value"), json!("yes"))
        }
    };
    ingress["metadata"]["annotations"] = Value::Object(annotations);
    ingress["spec"]["rules"] = main["spec"]["rules"].clone();
    if let Some(spec) = ingress["spec"].as_object_mut() {
        spec.remove("tls");
    }
    for rule in ingress["spec"]["rules"].as_array_mut().into_iter().flatten() {
        for path in rule["http"]["paths"].as_array_mut().into_iter().flatten() {
            path["backend"] = json!({ "service": { "name": "three", "port": { "number": 80 } } });
        }
    }
}

const REQUESTED_HOSTS: [&str; 9] = [
    "a.example.com",
    "b.example.com",
    "c.example.com",
    "x.y.example.com",
    "other.example",
    "www.a.example.com",
    "www.c.example",
    "c.example",
    "alias.example",
];

const REQUESTED_PATHS: [&str; 13] = [
    "/",
    "/foo",
    "/foo/",
    "/foo/x",
    "/foo/bar",
    "/foo/bar/baz",
    "/fo",
    "/fooo",
    "/FOO",
    "/bar",
    "/bar/x",
    "/app",
    "/other",
];

/// A random request. Those over TLS are mostly for hosts with a certificate, because the models know no other one.
pub(super) fn request(rng: &mut SmallRng, objects: &[Value]) -> Request {
    let host = pick(rng, &REQUESTED_HOSTS);
    let around = host.split_once('.').map(|(_, domain)| format!("*.{domain}")).unwrap_or_default();
    let has_certificate =
        ingresses::of(objects).flat_map(Ingress::tls_hosts).any(|name| name == host || name == around);
    let mut headers = Vec::new();
    if one_in(rng, 4) {
        headers.push(("X-Canary".to_owned(), pick(rng, &["always", "never", "yes", "no"]).to_owned()));
    }
    Request {
        method: if one_in(rng, 6) { "POST" } else { "GET" }.to_owned(),
        https: one_in(rng, if has_certificate { 2 } else { 12 }),
        headers,
        query: one_in(rng, 4).then(|| "a=1".to_owned()),
        client: pick(rng, &["192.0.2.9", "198.51.100.1", "203.0.113.5"]).parse().ok(),
        ..Request::get(host, pick(rng, &REQUESTED_PATHS))
    }
}
