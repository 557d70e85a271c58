//! Encoding, decoding and redaction of documents.

use serde_json::{Value, json};

use super::plugin::{Cors, FaultInjection, KeyAuth, Redirect, SplitRule, TrafficSplit, WeightedUpstream};
use super::*;

fn upstream() -> Upstream {
    Upstream { nodes: [("10.0.0.1:80".to_owned(), 1)].into(), ..Upstream::default() }
}

fn route() -> Route {
    Route { uri: Some("/".to_owned()), upstream_id: Some("u".to_owned()), ..Route::default() }
}

#[test]
fn defaults_are_left_out() {
    assert_eq!(Document::from(route()).to_json(), r#"{"uri":"/","upstream_id":"u"}"#);
    assert_eq!(Document::from(upstream()).to_json(), r#"{"nodes":{"10.0.0.1:80":1}}"#);
    assert_eq!(Document::from(GlobalRule::default()).to_json(), "{}");
}

#[test]
fn json_len_is_the_length_of_to_json() {
    for document in [Document::from(route()), upstream().into(), GlobalRule::default().into()] {
        assert_eq!(document.json_len(), document.to_json().len());
    }
}

#[test]
fn keys_order_by_dependency() {
    let config: Config = [
        ("r".to_owned(), Document::from(route())),
        ("u".to_owned(), upstream().into()),
        ("g".to_owned(), GlobalRule::default().into()),
    ]
    .into_iter()
    .collect();
    let keys: Vec<String> = config.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, ["upstreams/u", "routes/r", "global_rules/g"]);
    assert_eq!(config.routes().count(), 1);
    assert!(config.upstream("u").is_some() && config.route("r").is_some() && config.service("u").is_none());
}

#[test]
fn a_key_lies_under_its_canonical_prefix() {
    let key = DocumentKey::new(ResourceKind::Route, "r1");
    assert_eq!(key.under("/apisix"), "/apisix/routes/r1");
    assert_eq!(key.under("/apisix/"), "/apisix/routes/r1");
    assert_eq!(key.under(""), "/routes/r1");
}

#[test]
fn keys_are_read_as_pingsix_reads_them() {
    assert_eq!(DocumentKey::parse("routes/a b"), Ok(Some(DocumentKey::new(ResourceKind::Route, "a b"))));
    for ignored in [".meta", "routes/.x", "consumers/.x", "a/b/.c", "routes/a/.b"] {
        assert_eq!(DocumentKey::parse(ignored), Ok(None), "{ignored}");
    }
    for fatal in ["consumers/x", "stream_routes/1", "routes", "routes/", "routes/a/b", "foo", ""] {
        assert!(DocumentKey::parse(fatal).is_err(), "{fatal}");
    }
}

#[test]
fn pairs_and_static_form_round_trip() {
    let mut config = Config::new();
    config.insert("u", upstream());
    config.insert("r", Route { plugins: Plugins::new().with(&Redirect::default()), ..route() });
    config.insert("s", Service { upstream_id: Some("u".to_owned()), ..Service::default() });
    config
        .insert("g", GlobalRule { plugins: Plugins::new().with(&Cors::default()), ..GlobalRule::default() });
    config.insert("c", Ssl { cert: "c".into(), key: "k".into(), snis: vec!["a".into()], ..Ssl::default() });

    let pairs: Vec<_> = config.to_pairs("/p").collect();
    assert_eq!(Config::from_pairs("/p/", pairs.clone()).expect("own output decodes"), config);
    let size: usize = pairs.iter().map(|(key, value)| key.len() + value.len() + 25).sum();
    assert_eq!(config.size_in_bytes("/p"), size);

    let text = config.to_static();
    assert_eq!(text["routes"][0]["id"], "r");
    assert_eq!(Config::from_static(&text).expect("own output decodes"), config);
}

#[test]
fn the_body_id_must_be_text_and_is_dropped() {
    let with_id = json!({"id": "other", "uri": "/", "upstream_id": "u"});
    assert_eq!(Document::decode(ResourceKind::Route, &with_id).expect("decodes"), route().into());
    let numeric = json!({"id": 7, "uri": "/", "upstream_id": "u"});
    assert!(Document::decode(ResourceKind::Route, &numeric).is_err());
}

#[test]
fn a_static_form_with_a_repeated_or_missing_id_is_refused() {
    let twice = json!({"upstreams": [{"id": "u", "nodes": {}}, {"id": "u", "nodes": {}}]});
    assert!(matches!(Config::from_static(&twice), Err(StaticConfigError::DuplicateId { .. })));
    let missing = json!({"upstreams": [{"nodes": {}}]});
    assert!(matches!(Config::from_static(&missing), Err(StaticConfigError::NoId { index: 0, .. })));
    assert!(matches!(Config::from_static(&json!({"routes": {}})), Err(StaticConfigError::NotAList { .. })));
}

#[test]
fn secrets_are_never_shown() {
    let tls = UpstreamTls { client_cert: "cert".into(), client_key: "s3cret".into() };
    let auth = KeyAuth { key: Some("s3cret".into()), keys: vec!["s3cret".into()], ..KeyAuth::default() };
    let split = TrafficSplit {
        rules: vec![SplitRule {
            vars: vec![],
            weighted_upstreams: vec![WeightedUpstream {
                upstream: Some(Upstream { tls: Some(tls.clone().into()), ..upstream() }),
                weight: 1,
                ..WeightedUpstream::default()
            }],
        }],
    };
    let mut config = Config::new();
    let mut plugins = Plugins::new().with(&auth).with(&split);
    plugins.insert_raw("basic-auth", json!({"username": "u", "password": "s3cret"}));
    plugins.insert_raw("jwt-auth", json!({"secret": "s3cret"}));
    plugins.insert_raw("csrf", json!({"key": "s3cret"}));
    config.insert("r", Route { plugins, ..route() });
    config.insert("u", Upstream { tls: Some(tls.into()), ..upstream() });
    config.insert("c", Ssl { cert: "c".into(), key: "s3cret".into(), ..Ssl::default() });
    let values: Vec<Value> = config.iter().map(|(_, document)| document.to_shown_value()).collect();
    let shown = format!("{config:?} {auth:?} {values:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("<redacted>"));
}

#[test]
fn a_typed_plugin_reads_back_what_was_written() {
    let redirect = Redirect { ret_code: 301, ..Redirect::default() };
    let plugins = Plugins::new().with(&redirect);
    assert_eq!(plugins.raw("redirect"), Some(&json!({"regex_uri": [], "ret_code": 301})));
    assert_eq!(plugins.get::<Redirect>().expect("present").expect("decodes"), redirect);
    assert!(plugins.get::<FaultInjection>().is_none());
}

#[test]
fn plugin_defaults_are_those_pingsix_assumes() {
    fn minimal<C: PluginConfig + Default + PartialEq + std::fmt::Debug>(config: &Value) {
        let decoded = C::deserialize(config).expect("the minimal configuration decodes");
        assert_eq!(decoded, C::default(), "{}", C::NAME);
    }
    minimal::<plugin::Cors>(&json!({}));
    minimal::<plugin::Redirect>(&json!({"regex_uri": []}));
    minimal::<plugin::LimitCount>(&json!({"time_window": 1, "count": 1}));
    minimal::<plugin::Cache>(&json!({"ttl": 1}));
    minimal::<plugin::RequestId>(&json!({}));
    minimal::<plugin::Prometheus>(&json!({}));
    minimal::<plugin::FileLogger>(&json!({}));
    minimal::<plugin::JwtAuth>(&json!({}));
    minimal::<plugin::IpRestriction>(&json!({}));
    minimal::<plugin::GrpcWeb>(&Value::Null);
}

#[test]
fn fields_that_apisix_has_and_pingsix_ignores_decode() {
    let foreign =
        json!({"uri": "/", "upstream_id": "u", "status": 1, "labels": {}, "vars": [["a", "==", "b"]]});
    assert_eq!(Document::decode(ResourceKind::Route, &foreign).expect("decodes"), route().into());
}
