//! Sound documents of every kind and with every plugin.

use rcgen::{CertifiedKey, KeyPair};
use serde_json::{Value, json};

use super::Documents;
use super::mutation::{Case, mutate, text};
use crate::dice::Dice;

/// Documents that stand in a prefix together, and others that may join them one at a time.
pub(super) struct Corpus {
    healthy: Documents,
    subjects: Vec<(String, Value)>,
    material: Material,
}

/// Certificates and keys.
struct Material {
    cert: String,
    key: String,
    other_cert: String,
    other_key: String,
    public_key: String,
}

impl Material {
    fn new() -> Self {
        let certified = |name: &str| -> CertifiedKey<KeyPair> {
            rcgen::generate_simple_self_signed([name.to_owned()]).unwrap()
        };
        let (one, other) = (certified("one.t"), certified("other.t"));
        Self {
            cert: one.cert.pem(),
            key: one.signing_key.serialize_pem(),
            public_key: one.signing_key.public_key_pem(),
            other_cert: other.cert.pem(),
            other_key: other.signing_key.serialize_pem(),
        }
    }

    /// Texts that hold certificates and keys, and some that no longer do.
    fn texts(&self) -> Vec<String> {
        let Self { cert, key, other_cert, other_key, public_key } = self;
        let mut texts: Vec<String> =
            [cert, key, other_cert, other_key, public_key].into_iter().cloned().collect();
        for pem in [cert, key] {
            texts.extend([
                pem.replace('\n', "\r\n"),
                pem.replace('\n', ""),
                pem.trim_end().to_owned(),
                format!("text before\n{pem}"),
                format!("{pem}text behind"),
                format!("{pem}{other_cert}"),
                format!("{other_cert}{pem}"),
                format!("{pem}{pem}"),
                format!("{key}{cert}"),
                pem.replacen("MI", "!I", 1),
                pem.replace("-----END", "----END"),
                pem.replace("BEGIN ", "BEGIN TRUSTED "),
                pem.chars().take(pem.len() / 2).collect(),
                pem.lines().map(|line| format!(" {line}\n")).collect(),
            ]);
        }
        texts.push("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned());
        texts.push("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned());
        texts.push("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned());
        texts
    }
}

impl Corpus {
    pub(super) fn new() -> Self {
        let material = Material::new();
        let healthy = [
            ("upstreams/u", json!({ "nodes": { "127.0.0.1:9": 1 } })),
            ("services/s", json!({ "upstream_id": "u", "hosts": ["s.t"] })),
            ("routes/r", json!({ "uri": "/r", "host": "r.t", "upstream_id": "u" })),
            ("routes/q", json!({ "uris": ["/", "/q"], "service_id": "s" })),
            ("global_rules/g", json!({ "plugins": { "request-id": {} } })),
            ("ssls/t", json!({ "cert": material.cert, "key": material.key, "snis": ["t.t", "*.t.t"] })),
        ];
        let healthy = healthy.into_iter().map(|(key, value)| (key.to_owned(), text(&value).into())).collect();
        let mut subjects = documents(&material);
        for (name, config) in plugins(&material) {
            let mut route = json!({ "uri": "/x", "host": "x.t", "upstream_id": "u" });
            route["plugins"] = json!({ name: config });
            subjects.push((format!("routes/{name}"), route));
        }
        let split = json!({ "traffic-split": split() });
        subjects.push(("services/split".to_owned(), json!({ "upstream_id": "u", "plugins": split })));
        subjects.push(("global_rules/split".to_owned(), json!({ "plugins": split })));
        Self { healthy, subjects, material }
    }

    pub(super) fn healthy(&self) -> &Documents {
        &self.healthy
    }

    /// The subjects themselves.
    pub(super) fn sound_cases(&self) -> Vec<Case> {
        self.subjects.iter().map(|(key, value)| Case::put("sound", key, value)).collect()
    }

    /// A subject, changed once, or twice now and then.
    pub(super) fn mutate(&self, dice: &mut Dice) -> Case {
        let (key, value) = &self.subjects[dice.below(self.subjects.len())];
        let mut value = value.clone();
        let holds_pem = value.get("cert").is_some() || value.get("tls").is_some();
        if holds_pem && dice.percent(50) {
            let texts = self.material.texts();
            let pem = &texts[dice.below(texts.len())];
            let places: &[&str] = if value.get("tls").is_some() {
                &["/tls/client_cert", "/tls/client_key"]
            } else {
                &["/cert", "/key"]
            };
            let place = dice.one(places);
            *value.pointer_mut(place).unwrap() = json!(pem);
            return Case::put(format!("{place} becomes another text"), key, &value);
        }
        let mut what = mutate(dice, &mut value);
        if dice.percent(10) && value.is_object() {
            what += &format!(" and {}", mutate(dice, &mut value));
        }
        Case::put(what, key, &value)
    }

    /// Faults that no change of one value makes: of keys, of texts that are no JSON, and between documents.
    pub(super) fn fixed_cases(&self) -> Vec<Case> {
        let route = text(&json!({ "uri": "/x", "host": "x.t", "upstream_id": "u" }));
        let keys = [
            "routes/a b",
            "routes/ä",
            "routes/{a}",
            "routes/a:b",
            "routes/a/b",
            "routes",
            "route/x",
            "consumers/x",
            "foo",
            "stream_routes/x",
            "plugin_metadata/x",
            "plugin_configs/x",
            "protos/x",
            "Routes/x",
            "routes /x",
            "a/b/c",
            ".foo",
            "routes/.x",
            "consumers/.x",
            "a/b/.c",
            "routes/.",
            "routes/..",
            "routes/a.b",
            ".pingsix_graph_revision",
            "routes/.pingsix_graph_revision",
            "secrets/x",
            "upstreams/a/",
            "ssl/x",
        ];
        let mut cases = Vec::new();
        for key in keys.into_iter().filter(|key| !key.ends_with('/')) {
            cases.push(Case::raw("key", key, route.as_bytes()));
        }
        for guard in ["1", "pingsix-graph-v1", "2", "", "pingsix-graph-v1\n"] {
            cases.push(Case::raw("guard", ".pingsix_graph_revision", guard.as_bytes()));
        }
        for value in [
            "",
            " ",
            "null",
            "true",
            "0",
            "\"\"",
            "[]",
            "{}",
            "not json",
            "{",
            "}",
            "{\"uri\":\"/x\"",
            "\u{feff}{}",
            "nul",
            "[{}]",
            "{'uri':'/x'}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":\"\\u0000\"}",
            "{\"a\":1e999}",
            "{\"a\":\"\t\"}",
            "{} {}",
            "{},",
            "{/**/}",
            "{\"plugins\":{}}",
            "{\"id\":1}",
            "{\"id\":\"x\"}",
            "{\"id\":null}",
        ] {
            for key in ["routes/x", "upstreams/x", "services/x", "global_rules/x", "ssls/x"] {
                cases.push(Case::raw("text", key, value.as_bytes()));
            }
        }
        for suffix in [" ", "\n", ",", "x", "\0", "}"] {
            cases.push(Case::raw("trailing text", "routes/x", format!("{route}{suffix}").as_bytes()));
        }
        cases.push(Case::raw(
            "no UTF-8",
            "routes/x",
            &[b"{\"uri\":\"/", &[0xff][..], b"\",\"upstream_id\":\"u\"}"].concat(),
        ));
        for depth in [100, 126, 127, 128, 129, 200] {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let value = format!(r#"{{"uri":"/x","host":"x.t","upstream_id":"u","deep":{deep}}}"#);
            cases.push(Case::raw("nesting", "routes/x", value.as_bytes()));
        }
        for key in ["upstreams/u", "services/s", "routes/r", "ssls/t", "global_rules/g"] {
            cases.push(Case::new("a dangling reference", vec![(key.to_owned(), None)]));
        }
        cases.extend(self.between_documents());
        cases
    }

    fn between_documents(&self) -> Vec<Case> {
        let Material { cert, key, .. } = &self.material;
        let mut cases = Vec::new();
        for snis in [
            json!(["t.t"]),
            json!(["T.T"]),
            json!(["*.t.t"]),
            json!(["*.T.t"]),
            json!(["a.t.t"]),
            json!(["*.a.t.t"]),
            json!(["*"]),
            json!(["x.t", "x.t"]),
            json!(["x.t", "X.T"]),
            json!(["*.x.t", "*.x.t"]),
            json!(["*.t"]),
            json!(["*t.t"]),
            json!(["t.t."]),
        ] {
            let ssl = json!({ "cert": cert, "key": key, "snis": snis });
            cases.push(Case::put("two certificates", "ssls/x", &ssl));
        }
        for (one, other) in [
            ("/x/{{a}}", "/x/{{a}}"),
            ("/{a}/b", "/{*p}"),
            ("/{a}", "/{*p}"),
            ("/{a}", "/{b}"),
            ("/{*a}", "/{*b}"),
            ("/{a}/x", "/{b}/y"),
            ("/x{a}", "/x{b}"),
            ("/x{a}", "/{b}"),
            ("/x/{a}", "/x/y"),
            ("/x", "/x"),
            ("/x{a}", "/x{*b}"),
            ("/{{", "/{{"),
            ("/}}", "/}}"),
            ("/{{a}}", "/{a}"),
            ("/{{a}}", "/{*p}"),
            ("/x/{a}/y", "/x/{b}"),
            ("/{a}/b/c", "/{b}/{*c}"),
        ] {
            for uris in [[one, other], [other, one]] {
                let route = json!({ "uris": uris, "host": "x.t", "upstream_id": "u" });
                cases.push(Case::put("patterns of one route", "routes/x", &route));
            }
            let route = |uri: &str| text(&json!({ "uri": uri, "host": "x.t", "upstream_id": "u" })).into();
            let changes =
                vec![("routes/x".to_owned(), Some(route(one))), ("routes/y".to_owned(), Some(route(other)))];
            cases.push(Case::new("patterns of two routes", changes));
        }
        for count in [24, 25, 26, 27] {
            let route = json!({ "uri": "/{p}".repeat(count), "host": "x.t", "upstream_id": "u" });
            cases.push(Case::put("parameters", "routes/x", &route));
        }
        cases
    }
}

fn documents(material: &Material) -> Vec<(String, Value)> {
    let Material { cert, key, other_cert, .. } = material;
    let timeout = json!({ "connect": 1, "send": 2, "read": 86400 });
    let inline =
        json!({ "nodes": { "127.0.0.1:9": 1, "127.0.0.2:9": 2 }, "type": "random", "timeout": timeout });
    let active = json!({
        "type": "http", "timeout": 1, "http_path": "/health", "host": "x.t", "port": 9, "https_verify_certificate": false,
        "req_headers": ["X-A: b"], "healthy": { "interval": 3600, "http_statuses": [200, 204], "successes": 1 },
        "unhealthy": { "http_failures": 3, "tcp_failures": 2 },
    });
    let subjects = [
        (
            "upstreams/x",
            json!({
                "id": "x", "name": "n", "retries": 2, "retry_timeout": 3, "timeout": timeout, "nodes": { "127.0.0.1:9": 1, "[::1]:9": 3 },
                "type": "ketama", "hash_on": "head", "key": "x-a", "scheme": "grpc", "pass_host": "rewrite", "upstream_host": "x.t",
            }),
        ),
        ("upstreams/nodes", json!({ "nodes": { "127.0.0.1:9": 1 } })),
        (
            "upstreams/several",
            json!({ "nodes": { "127.0.0.1:9": 1, "127.0.0.2": 2, "localhost:9": 1 }, "type": "fnv" }),
        ),
        ("upstreams/checks", json!({ "nodes": { "127.0.0.1:9": 1 }, "checks": { "active": active } })),
        (
            "upstreams/tcp",
            json!({ "nodes": { "127.0.0.1:9": 1 }, "checks": { "active": { "type": "tcp", "healthy": { "interval": 3600 } } } }),
        ),
        (
            "upstreams/tls",
            json!({
                "nodes": { "127.0.0.1:9": 1 }, "scheme": "https", "pass_host": "rewrite", "upstream_host": "x.t",
                "tls": { "client_cert": cert, "client_key": key },
            }),
        ),
        (
            "services/x",
            json!({ "name": "n", "upstream_id": "u", "hosts": ["x.t", "*.x.t"], "plugins": { "cors": {} } }),
        ),
        ("services/inline", json!({ "upstream": inline, "hosts": ["x.t"] })),
        (
            "routes/x",
            json!({
                "id": "x", "name": "n", "uris": ["/x", "/x/{*p}"], "methods": ["GET", "POST"], "hosts": ["x.t", "*.x.t"], "priority": 7,
                "plugins": {}, "upstream_id": "u", "timeout": timeout,
            }),
        ),
        ("routes/uri", json!({ "uri": "/x/{a}", "host": "x.t", "service_id": "s", "upstream_id": "u" })),
        ("routes/inline", json!({ "uri": "/x", "host": "x.t", "upstream": inline })),
        ("routes/service", json!({ "uri": "/x", "service_id": "s" })),
        ("ssls/x", json!({ "cert": cert, "key": key, "snis": ["x.t", "*.x.t"] })),
        ("ssls/chain", json!({ "cert": format!("{cert}{other_cert}"), "key": key, "snis": ["x.t"] })),
        (
            "global_rules/x",
            json!({ "id": "x", "plugins": { "cors": { "allow_origins": "http://a.t" }, "prometheus": {} } }),
        ),
    ];
    subjects.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn split() -> Value {
    json!({ "rules": [
        { "vars": [["http_x-a", "==", "b"], ["arg_c", "!=", ""]], "weighted_upstreams": [{ "upstream_id": "u", "weight": 3 }, { "weight": 1 }] },
        { "weighted_upstreams": [{ "upstream": { "nodes": { "127.0.0.1:9": 1 }, "scheme": "http" }, "weight": 1 }] },
    ] })
}

/// A rich configuration of every plugin.
fn plugins(material: &Material) -> Vec<(&'static str, Value)> {
    vec![
        ("basic-auth", json!({ "username": "u", "password": "p", "hide_credentials": true })),
        ("brotli", json!({ "comp_level": 11, "decompression": true })),
        (
            "cache",
            json!({
                "ttl": 60, "cache_http_methods": ["GET"], "cache_http_statuses": [200, 404], "no_cache_str": ["^/private"], "vary": ["Accept"],
                "hide_cache_headers": true, "max_file_size_bytes": 1024, "stale_while_revalidate_secs": 5, "respect_s_maxage": false,
                "cache_authenticated_requests": false, "cache_set_cookie_responses": false, "scope": "local",
            }),
        ),
        (
            "cors",
            json!({
                "allow_origins": "http://a.t,http://b.t", "allow_methods": "GET,POST", "allow_headers": "X-A,X-B", "expose_headers": "X-C",
                "max_age": 60, "allow_credential": true, "allow_origins_by_regex": ["^https?://.*\\.t$"],
            }),
        ),
        ("csrf", json!({ "key": "k", "expires": 60, "name": "n" })),
        ("echo", json!({ "body": "b", "headers": { "X-A": "b" } })),
        (
            "fault-injection",
            json!({
                "delay": { "duration": 0.5, "percentage": 10 },
                "abort": { "http_status": 503, "body": "b", "headers": { "X-A": "b", "X-B": 1 }, "percentage": 50 },
            }),
        ),
        ("file-logger", json!({ "log_format": "$host", "redact_query_params": ["token"] })),
        ("grpc-web", json!({ "a": 1 })),
        ("gzip", json!({ "comp_level": 9, "decompression": false })),
        (
            "ip-restriction",
            json!({
                "whitelist": ["10.0.0.0/8", "::1"], "blacklist": ["10.1.0.0/16"], "trusted_proxies": ["127.0.0.1"], "message": "m",
                "use_forwarded_headers": true, "forwarded_header_error_policy": "deny",
            }),
        ),
        (
            "jwt-auth",
            json!({
                "secret": "c2VjcmV0", "base64_secret": true, "algorithm": "HS512", "header": "authorization", "query": "q", "cookie": "c",
                "lifetime_grace_period": 5, "iss": "i", "aud": "a", "required_claims": ["sub"], "hide_credentials": true, "store_in_ctx": true,
            }),
        ),
        ("jwt-auth", json!({ "public_key": material.public_key, "algorithm": "ES256" })),
        (
            "key-auth",
            json!({ "key": "k", "keys": ["a", "b"], "header": "x-key", "query": "q", "hide_credentials": true }),
        ),
        (
            "limit-count",
            json!({
                "time_window": 60, "count": 10, "key_type": "head", "key": "x-a", "rejected_code": 429, "rejected_msg": "m",
                "show_limit_quota_header": false, "key_missing_policy": "default", "scope": "local",
            }),
        ),
        (
            "prometheus",
            json!({ "max_label_length": 10, "max_unique_paths": 5, "max_unique_hosts": 5, "prefer_name": true }),
        ),
        (
            "proxy-rewrite",
            json!({
                "uri": "/y", "method": "POST", "regex_uri": ["^/x(.*)$", "/y$1"], "host": "y.t",
                "headers": { "set": [{ "name": "X-A", "value": "b" }], "add": [{ "name": "X-B", "value": "c" }], "remove": ["X-C"] },
            }),
        ),
        (
            "redirect",
            json!({
                "http_to_https": true, "redirect_host": "x.t:8443", "uri": "/y", "regex_uri": ["^/x(.*)$", "/y$1"], "ret_code": 301,
                "append_query_string": true, "trusted_proxies": ["10.0.0.0/8"],
            }),
        ),
        (
            "request-id",
            json!({
                "header_name": "X-Id", "include_in_response": false, "algorithm": "range_id", "range_id": { "char_set": "abc", "length": 8 },
            }),
        ),
        (
            "response-rewrite",
            json!({
                "status_code": 201, "headers": { "set": { "X-A": "b" }, "add": ["X-B: c"], "remove": ["X-C"] }, "vars": [["http_x-a", "==", "b"]],
            }),
        ),
        ("response-rewrite", json!({ "headers": { "X-A": "b" } })),
        ("traffic-split", split()),
    ]
}
