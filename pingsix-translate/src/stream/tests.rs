//! Valid and invalid stream documents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::fixture::pem::{self, Pair};

fn pair() -> (String, String) {
    let Pair { cert, key } = pem::pair(&["a.test"]);
    (cert, key)
}

fn document(key: &str, value: &Value) -> (StreamKey, StreamDocument) {
    let key = StreamKey::parse(key).unwrap().unwrap();
    let document = StreamDocument::decode(&key, value.to_string().as_bytes()).unwrap();
    (key, document)
}

fn config(documents: &[(&str, Value)]) -> StreamConfig {
    let mut config = StreamConfig::new();
    for (key, value) in documents {
        let (key, document) = document(key, value);
        config.insert(key.id, document);
    }
    config
}

fn upstream() -> (&'static str, Value) {
    ("upstreams/u", json!({"nodes": {"10.0.0.1:80": 1, "[fd00::1]:80": 2}}))
}

fn to(port: u16, protocol: &str) -> Value {
    json!({"server_port": port, "protocol": protocol, "targets": [{"upstream_id": "u", "weight": 1}]})
}

fn tls(port: u16, snis: &[&str]) -> Value {
    let mut route = to(port, "tls");
    route["snis"] = json!(snis);
    route["tls"] = json!("passthrough");
    route
}

/// The violations, without their sentences.
fn violations(documents: &[(&str, Value)]) -> Vec<String> {
    let found = validate(&config(documents));
    assert!(
        found.iter().all(|violation| violation.message.ends_with('.') && violation.message.len() > 12),
        "{found:?}"
    );
    found
        .iter()
        .map(|violation| format!("{} {}", violation.key, violation.field).trim_end().to_owned())
        .collect()
}

#[test]
fn documents_are_written_in_one_way_and_read_back() {
    let (cert, key) = pair();
    let written = [
        ("cas/c", json!({ "certs": cert })),
        ("ssls/s", json!({"cert": cert, "key": key})),
        (
            "stream_routes/a",
            json!({"server_port": 53, "protocol": "udp", "targets": [
            {"upstream_id": "u", "weight": 3}, {"reject": "no_endpoints", "weight": 1}, {"reject": "invalid", "weight": 1}]}),
        ),
        ("stream_routes/b", tls(443, &["a.test", "*.b.test"])),
        (
            "stream_routes/c",
            json!({"server_port": 444, "protocol": "tls", "snis": ["a.test"], "tls": "terminate",
            "ssl_ids": ["s"], "targets": [{"reject": "no_route", "weight": 1}]}),
        ),
        (
            "stream_routes/d",
            json!({"server_port": 444, "protocol": "tls", "snis": ["b.test", "*"], "tls": "terminate",
            "alpn": ["h2", "http/1.1"], "client_auth": {"mode": "require_and_verify", "ca_ids": ["c"]},
            "ssl_ids": ["s"], "targets": [{"upstream_id": "v", "weight": 1}]}),
        ),
        (
            "stream_routes/e",
            json!({"server_port": 445, "protocol": "tls", "snis": ["*"], "tls": "terminate",
            "client_auth": {"mode": "request"}, "ssl_ids": ["s"], "targets": [{"upstream_id": "v", "weight": 1}]}),
        ),
        upstream(),
        ("upstreams/v", json!({"nodes": {"127.1.187.7:7087": 1}, "local": true})),
    ];
    let config = config(&written);
    assert_eq!(validate(&config), []);
    let pairs: Vec<(String, String)> = config.to_pairs("/x/").collect();
    assert_eq!(StreamConfig::from_pairs("/x", pairs.clone()).unwrap(), config);
    let size: usize = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert_eq!(config.size_in_bytes("/x"), size + pairs.len() * crate::pingsix::listed_len(0, 0));
    let values: BTreeMap<String, Value> =
        pairs.iter().map(|(key, text)| (key.clone(), serde_json::from_str(text).unwrap())).collect();
    let expected =
        written.into_iter().map(|(key, value)| (format!("/x/{key}"), value)).collect::<BTreeMap<_, _>>();
    assert_eq!(values, expected);
    let first: Vec<&str> = pairs.iter().take(4).map(|(key, _)| key.as_str()).collect();
    assert_eq!(first, ["/x/upstreams/u", "/x/upstreams/v", "/x/ssls/s", "/x/cas/c"], "referents come first");
    assert_eq!(config.to_static()["stream_routes"][1]["id"], "b");
}

#[test]
fn the_examples_of_the_documentation_are_documents() {
    let text = include_str!("../../../docs/reference/stream-documents.md");
    let mut examples = 0;
    for section in text.split("\n## ").skip(1) {
        let Some(kind) = StreamKind::from_segment(section.lines().next().unwrap()) else { continue };
        let block = section.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
        for line in block.lines() {
            let document = StreamDocument::decode(&StreamKey::new(kind, "x"), line.as_bytes()).unwrap();
            assert_eq!(document.to_json(), line);
            examples += 1;
        }
    }
    assert_eq!(examples, 7);
}

#[test]
fn a_stream_document_of_unknown_or_ambiguous_meaning_is_not_decoded() {
    let decode = |key: &str, value: &Value| {
        StreamDocument::decode(&StreamKey::parse(key).unwrap().unwrap(), value.to_string().as_bytes()).is_ok()
    };
    assert!(decode("stream_routes/a", &to(1, "tcp")));
    let with = |field: &str, value: Value| {
        let mut route = to(1, "tcp");
        route[field] = value;
        route
    };
    for wrong in [
        with("plugins", json!({})),
        with("protocol", json!("sctp")),
        with("server_port", json!(65536)),
        with("targets", json!([{"weight": 1}])),
        with("targets", json!([{"upstream_id": "u", "reject": "invalid", "weight": 1}])),
        with("targets", json!([{"reject": "whim", "weight": 1}])),
        with("targets", json!([{"upstream_id": "u"}])),
        with("tls", json!("maybe")),
        with("alpn", json!("h2")),
        with("client_auth", json!({})),
        with("client_auth", json!({"mode": "require", "ca_ids": ["c"]})),
        with("client_auth", json!({"mode": "request", "crl_ids": []})),
    ] {
        assert!(!decode("stream_routes/a", &wrong), "{wrong}");
    }
    assert!(!decode("upstreams/u", &json!({"nodes": {}, "type": "roundrobin"})));
    assert!(!decode("upstreams/u", &json!({"nodes": {}, "local": "true"})));
    assert!(!decode("ssls/s", &json!({"cert": ""})));
    assert!(!decode("cas/c", &json!({"certs": "", "key": ""})));
}

#[test]
fn keys_name_a_kind_and_an_id() {
    let read = |key: &str| {
        StreamConfig::from_pairs("/x", [(key, upstream().1.to_string())]).map(|config| config.len())
    };
    assert_eq!(read("/x/upstreams/u").unwrap(), 1);
    assert_eq!(read("/x/upstreams/.guard").unwrap(), 0);
    for wrong in ["/y/upstreams/u", "/x/routes/u", "/x/upstreams", "/x/upstreams/", "/x/upstreams/u/v"] {
        assert!(matches!(read(wrong), Err(StreamDecodeError::Key { .. })), "{wrong}");
    }
    let config: StreamConfig = {
        let mut config = StreamConfig::new();
        config.insert("a/b", document("upstreams/u", &upstream().1).1);
        config
    };
    assert_eq!(validate(&config)[0].field, "id");
}

#[test]
fn every_field_has_its_rule() {
    let with = |base: Value, field: &str, value: Value| {
        let mut route = base;
        route[field] = value;
        route
    };
    let terminate = |field: &str, value: Value| {
        let mut route = with(tls(1, &["a.test"]), "tls", json!("terminate"));
        route["ssl_ids"] = json!(["s"]);
        with(route, field, value)
    };
    let required = |ids: &[&str]| json!({"mode": "require_and_verify", "ca_ids": ids});
    let target = |weight: u32| json!({"upstream_id": "u", "weight": weight});
    for (route, field) in [
        (to(0, "tcp"), "server_port"),
        (with(to(1, "tcp"), "snis", json!(["a.test"])), "snis"),
        (with(to(1, "udp"), "tls", json!("passthrough")), "tls"),
        (with(to(1, "tcp"), "ssl_ids", json!(["s"])), "ssl_ids"),
        (with(to(1, "tcp"), "targets", json!([])), "targets"),
        (with(to(1, "tcp"), "targets", json!([target(0)])), "targets"),
        (with(to(1, "tcp"), "targets", json!([target(1), target(2)])), "targets"),
        (
            with(to(1, "tcp"), "targets", json!([{"upstream_id": "none", "weight": 1}])),
            "targets[0].upstream_id",
        ),
        (tls(1, &[]), "snis"),
        (tls(1, &["A.test"]), "snis"),
        (tls(1, &["*"]), "snis"),
        (tls(1, &["10.0.0.1"]), "snis"),
        (tls(1, &["a.test", "a.test"]), "snis"),
        (with(tls(1, &["a.test"]), "tls", Value::Null), "tls"),
        (with(tls(1, &["a.test"]), "tls", json!("terminate")), "ssl_ids"),
        (with(tls(1, &["a.test"]), "ssl_ids", json!(["s"])), "ssl_ids"),
        (with(tls(1, &["a.test"]), "alpn", json!(["h2"])), "alpn"),
        (with(to(1, "tcp"), "alpn", json!(["h2"])), "alpn"),
        (terminate("alpn", json!(["h3"])), "alpn"),
        (terminate("alpn", json!(["h2", "h2"])), "alpn"),
        (with(tls(1, &["a.test"]), "client_auth", required(&["c"])), "client_auth"),
        (with(to(1, "udp"), "client_auth", json!({"mode": "request"})), "client_auth"),
        (terminate("client_auth", required(&[])), "client_auth"),
        (terminate("client_auth", required(&["c", "c"])), "client_auth"),
        (terminate("client_auth", required(&["c", "none"])), "client_auth.ca_ids[1]"),
        (terminate("snis", json!(["*", "*"])), "snis"),
    ] {
        let (cert, key) = pair();
        let documents = [
            upstream(),
            ("ssls/s", json!({"cert": cert, "key": key})),
            ("cas/c", json!({ "certs": cert })),
            ("stream_routes/r", route.clone()),
        ];
        assert_eq!(violations(&documents), [format!("stream_routes/r {field}")], "{route}");
    }
    for nodes in [
        json!({}),
        json!({"10.0.0.1": 1}),
        json!({"10.0.0.1:0": 1}),
        json!({"a.test:80": 1}),
        json!({"10.0.0.1:80": 0}),
        json!({"fd00::1:80": 1}),
    ] {
        assert_eq!(
            violations(&[("upstreams/u", json!({ "nodes": nodes }))]),
            ["upstreams/u nodes"],
            "{nodes}"
        );
    }
}

#[test]
fn a_certificate_has_a_whole_chain_and_its_own_key() {
    let (cert, key) = pair();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let check = |cert: &str, key: &str| violations(&[("ssls/s", json!({"cert": cert, "key": key}))]);
    assert!(check(&format!("{cert}{}", pair().0), &key).is_empty());
    for (cert, key) in [
        (cert.as_str(), pair().1.as_str()),
        (cert.as_str(), ""),
        ("", key.as_str()),
        (&format!("{cert}{broken}"), &key),
    ] {
        assert_eq!(check(cert, key), ["ssls/s key"]);
    }
    let ssl = StreamSsl { cert, key: key.clone() };
    assert!(!format!("{ssl:?}").contains(key.lines().nth(1).unwrap()));
}

#[test]
fn authorities_are_certificates() {
    let (cert, key) = pair();
    let check = |certs: &str| violations(&[("cas/c", json!({ "certs": certs }))]);
    assert!(check(&cert).is_empty() && check(&format!("{cert}{}", pair().0)).is_empty());
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for certs in ["", &key, broken, &format!("{cert}{broken}")] {
        assert_eq!(check(certs), ["cas/c certs"]);
    }
}

#[test]
fn no_two_routes_take_the_same_connection() {
    let check = |one: Value, other: Value| {
        violations(&[upstream(), ("stream_routes/a", one), ("stream_routes/b", other)])
    };
    for (one, other) in [
        (to(1, "tcp"), to(2, "tcp")),
        (to(1, "tcp"), to(1, "udp")),
        (tls(1, &["a.test"]), to(1, "udp")),
        (tls(1, &["a.test"]), tls(1, &["*.a.test", "b.test"])),
        (tls(1, &["a.test"]), tls(2, &["a.test"])),
    ] {
        assert!(check(one.clone(), other.clone()).is_empty(), "{one} {other}");
    }
    for (one, other, field) in [
        (to(1, "tcp"), to(1, "tcp"), "server_port"),
        (to(1, "udp"), to(1, "udp"), "server_port"),
        (tls(1, &["a.test"]), to(1, "tcp"), "server_port"),
        (to(1, "tcp"), tls(1, &["a.test"]), "server_port"),
        (tls(1, &["a.test"]), tls(1, &["b.test", "a.test"]), "snis"),
    ] {
        assert_eq!(check(one.clone(), other.clone()), [format!("stream_routes/b {field}")], "{one} {other}");
    }
}

#[test]
fn the_most_specific_server_name_takes_a_connection() {
    let mut any = tls(4, &["a.test", "*"]);
    any["tls"] = json!("terminate");
    let config = config(&[
        upstream(),
        ("stream_routes/g", any),
        ("stream_routes/h", tls(4, &["*.a.test", "a"])),
        ("stream_routes/d", tls(1, &["*.test", "other"])),
        ("stream_routes/c", tls(1, &["*.b.a.test"])),
        ("stream_routes/b", tls(1, &["*.a.test", "c.b.a.test"])),
        ("stream_routes/a", tls(2, &["b.a.test"])),
        ("stream_routes/e", to(3, "tcp")),
        ("stream_routes/f", to(3, "udp")),
    ]);
    let taken = |port, arrival| config.route_for(port, arrival).map(|(key, _)| key.id.as_str());
    for (name, expected) in [
        ("c.b.a.test", Some("b")),
        ("D.b.A.test", Some("c")),
        ("b.a.test", Some("b")),
        ("a.test", Some("d")),
        ("test", None),
        ("other", Some("d")),
        ("", None),
    ] {
        assert_eq!(taken(1, Arrival::Tls(name)), expected, "{name}");
    }
    for (name, expected) in [("x.a.test", "h"), ("a", "h"), ("a.test", "g"), ("b", "g"), ("x.test", "g")] {
        assert_eq!(taken(4, Arrival::Tls(name)), Some(expected), "{name}");
    }
    assert_eq!((taken(4, Arrival::TlsUnnamed), taken(1, Arrival::TlsUnnamed)), (Some("g"), None));
    assert_eq!((taken(3, Arrival::Tcp), taken(3, Arrival::Udp)), (Some("e"), Some("f")));
    assert_eq!(
        (taken(1, Arrival::Tcp), taken(3, Arrival::Tls("a")), taken(9, Arrival::Udp)),
        (None, None, None)
    );
}

#[test]
fn private_keys_are_not_shown() {
    let (cert, key) = pair();
    let value = json!({"cert": cert, "key": key});
    let (_, ssl) = document("ssls/s", &value);
    assert_eq!(ssl.to_shown_value(), json!({"cert": cert, "key": "<redacted>"}));
    let (_, upstream) = document("upstreams/u", &upstream().1);
    assert_eq!(upstream.to_shown_value(), upstream.to_value());
}
