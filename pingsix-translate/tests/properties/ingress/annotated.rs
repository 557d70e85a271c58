//! Random annotations of other controllers, with values that are valid, odd and hostile.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::generate;
use crate::generate::NAMESPACES;

pub(super) const NGINX: &str = "nginx.ingress.kubernetes.io";

pub(super) const APISIX: &str = "k8s.apisix.apache.org";

/// Annotations that protect an Ingress and that PingSIX cannot honour, as the documentation of their controllers describes
/// them.
pub(super) const CLOSING: [(&str, &str, &str); 15] = [
    (NGINX, "auth-url", "http://auth.example.com/check"),
    (NGINX, "auth-type", "digest"),
    (NGINX, "auth-tls-secret", "infra/ca"),
    (NGINX, "auth-tls-verify-client", "on"),
    (NGINX, "configuration-snippet", "more_set_headers \"a: b\"; deny all;"),
    (NGINX, "server-snippet", "return 200;"),
    (NGINX, "enable-modsecurity", "true"),
    (NGINX, "whitelist-source-range", "10.0.0.1/33"),
    (NGINX, "whitelist-source-range", ""),
    (NGINX, "denylist-source-range", " , "),
    (APISIX, "http-allow-methods", ""),
    (APISIX, "auth-uri", "http://auth.example.com/check"),
    (APISIX, "auth-type", "keyAuth"),
    (APISIX, "enable-csrf", "true"),
    (APISIX, "plugin-config-name", "limits"),
];

/// Other annotations, with values that are valid, odd and hostile.
const OTHERS: [(&str, &str, &[&str]); 52] = [
    (NGINX, "affinity", &["cookie"]),
    (NGINX, "allowlist-source-range", &["10.0.0.7/8", "127.0.0.1, ::1", "", "10.0.0.0/8,x"]),
    (NGINX, "app-root", &["/app", "app", "/$x", "/a b"]),
    (NGINX, "auth-secret", &["user", "user", "one", "absent", "infra/user"]),
    (NGINX, "auth-type", &["basic"]),
    (NGINX, "backend-protocol", &["HTTP", "HTTPS", "GRPC", "GRPCS", "FCGI", "\u{7f}"]),
    (NGINX, "canary", &["true", "false", "yes", "True"]),
    (NGINX, "canary-by-header", &["X-Canary", "host", "a b"]),
    (NGINX, "canary-by-header-value", &["eu", "\u{e9}", "a\"b"]),
    (NGINX, "canary-weight", &["0", "20", "100", "1000", "-1"]),
    (NGINX, "canary-weight-total", &["1", "200", "0"]),
    (NGINX, "cors-allow-headers", &["X-A, X-B", "*", "a b"]),
    (NGINX, "cors-allow-credentials", &["true", "false", "T"]),
    (
        NGINX,
        "cors-allow-origin",
        &[
            "*",
            "https://a.test",
            "https://*.b.test,x",
            "null",
            "a;b",
            "https://*",
            "https://a.test,\nhttp://*:81,\n",
        ],
    ),
    (NGINX, "custom-headers", &["infra/headers", "app/headers", "app-b/headers", "infra/absent", "headers"]),
    (NGINX, "default-backend", &["one", "idle", "missing", "outside", "x/y"]),
    (NGINX, "denylist-source-range", &["192.0.2.0/24"]),
    (NGINX, "enable-cors", &["true", "TRUE", "yes"]),
    (NGINX, "force-ssl-redirect", &["1", "true", "False"]),
    (NGINX, "from-to-www-redirect", &["true", "false"]),
    (NGINX, "limit-rpm", &["1", "600", "4294967296", "0"]),
    (NGINX, "limit-rps", &["5", "0", "x"]),
    (
        NGINX,
        "permanent-redirect",
        &[
            "https://www.example.com/a",
            "https://$host",
            "https://a.test$request_uri",
            "https://a.test/$arg_b",
            "/x",
            "//evil.test/",
            "http://a.test:99999/",
        ],
    ),
    (NGINX, "permanent-redirect-code", &["308", "200", "301"]),
    (NGINX, "proxy-next-upstream-tries", &["0", "3", "99"]),
    (NGINX, "proxy-read-timeout", &["60", "0", "86401", "1s"]),
    (
        NGINX,
        "rewrite-target",
        &[
            "/",
            "/$1",
            "/$2/x",
            "/$12",
            "/a?b",
            "/\u{e9}",
            "/${host}",
            "https://a.test/$1",
            "http://a.test/b/$2",
            "https://$1/",
        ],
    ),
    (
        NGINX,
        "server-alias",
        &["a.example.com,alias.test", "*.example.com", "alias.test", "~x", "www.example.com,b_"],
    ),
    (NGINX, "service-upstream", &["true", "false"]),
    (NGINX, "ssl-redirect", &["true", "false"]),
    (NGINX, "upstream-hash-by", &["$request_uri", "$http_x_user", "$cookie_a;b", "$host$uri"]),
    (NGINX, "upstream-vhost", &["internal.example.com", "*.example.com", "$host", "a b"]),
    (NGINX, "x-forwarded-prefix", &["/a", "$x", "a\r\nx: y"]),
    (APISIX, "blocklist-source-range", &["192.0.2.0/24", "x"]),
    (APISIX, "cors-allow-headers", &["X-A,X-B", "*"]),
    (APISIX, "cors-allow-methods", &["GET,PUT", "*", "a b"]),
    (APISIX, "cors-allow-origin", &["*", "https://a.test", "a;b"]),
    (APISIX, "enable-cors", &["true"]),
    (APISIX, "enable-response-rewrite", &["true"]),
    (APISIX, "enable-websocket", &["true", "false"]),
    (APISIX, "http-allow-methods", &["GET", "GET,POST", "GET,get"]),
    (APISIX, "http-block-methods", &["DELETE", "PUT,GET"]),
    (APISIX, "http-redirect", &["https://www.example.com/a", "/x$uri"]),
    (APISIX, "http-to-https", &["true", "false"]),
    (APISIX, "response-rewrite-add-header", &["X-A:b", "a b:c", "X-A", "X-A:$x"]),
    (APISIX, "response-rewrite-set-header", &["X-C:d,X-D:\u{e9}"]),
    (APISIX, "rewrite-target", &["/v1", "/$1", "/\u{e9}", "x"]),
    (APISIX, "rewrite-target-regex", &["^/foo/(.*)", "(", "(?=x)", ".*"]),
    (APISIX, "rewrite-target-regex-template", &["/$1", "/bar", "/$x", "/${1}"]),
    (APISIX, "upstream-read-timeout", &["5s", "60", "0", "1m"]),
    (APISIX, "upstream-retries", &["0", "16", "17"]),
    (APISIX, "use-regex", &["true"]),
];

const PATTERNS: [&str; 6] = ["/foo(/|$)(.*)", "/foo/(.*)", "/fo/?(.*)", "/(a|b)", "/foo/[0-9]+", "/(.*)"];

/// Switches the annotations of both controllers on.
pub(super) fn switch_on(objects: &mut Vec<Value>) {
    if !objects.iter().any(|object| object["kind"] == "PingsixProxy") {
        generate::own_hosts(objects);
        let proxy = objects.last_mut().unwrap();
        proxy["spec"]["ingress"] = json!({});
    }
    let proxy = objects.iter_mut().find(|object| object["kind"] == "PingsixProxy").unwrap();
    proxy["spec"]["ingress"]["annotations"] = json!([NGINX, APISIX]);
}

/// Gives an Ingress some annotations.
pub(super) fn annotate(rng: &mut SmallRng, ingress: &mut Value) {
    if rng.random_bool(0.3) {
        ingress["metadata"]["annotations"][format!("{NGINX}/auth-type")] = json!("basic");
        ingress["metadata"]["annotations"][format!("{NGINX}/auth-secret")] = json!("user");
    }
    for _ in 0..rng.random_range(1..5) {
        let (domain, name, values) = *OTHERS.choose(rng).unwrap();
        ingress["metadata"]["annotations"][format!("{domain}/{name}")] = json!(values.choose(rng).unwrap());
    }
    let rules = ingress["spec"]["rules"].as_array_mut().into_iter().flatten();
    for path in rules.filter_map(|rule| rule.pointer_mut("/http/paths")?.as_array_mut()).flatten() {
        if rng.random_bool(0.3) {
            path["path"] = json!(PATTERNS.choose(rng).unwrap());
            path["pathType"] = json!("ImplementationSpecific");
        }
    }
}

/// Annotates some Ingresses of a table.
pub(crate) fn add(rng: &mut SmallRng, objects: &mut Vec<Value>) {
    switch_on(objects);
    for namespace in NAMESPACES {
        let kind = if rng.random_bool(0.7) { "kubernetes.io/basic-auth" } else { "Opaque" };
        objects.push(json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": { "namespace": namespace, "name": "user" },
            "stringData": { "username": "alice", "password": "open-sesame" },
        }));
        let value = if rng.random() { "one" } else { "two" };
        objects.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": "headers" },
            "data": { "X-Of": value, "Content-Length": "1", "X-Bad": "a\nb" },
        }));
    }
    for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
        if rng.random_bool(0.7) {
            annotate(rng, ingress);
        }
        if rng.random_bool(0.1) {
            let (domain, name, value) = *CLOSING.choose(rng).unwrap();
            ingress["metadata"]["annotations"][format!("{domain}/{name}")] = json!(value);
        }
    }
}
