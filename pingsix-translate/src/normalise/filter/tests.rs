//! Accepted filters, and the places where others are refused.

use serde_json::{Value, json};

use super::cors::Origins;
use super::*;
use crate::normalise::{Conditions, Path, PathKind};
use crate::responder::{RedirectPath, RedirectScheme, RedirectStatus};
use crate::shared_map::SharedMap;

fn matches(kind: PathKind, paths: &[&str]) -> Vec<Match> {
    let matched = |(index, text): (usize, &&str)| Match {
        index,
        path: Path::parse(kind, text).0.unwrap(),
        method: None,
        conditions: Conditions::default(),
    };
    paths.iter().enumerate().map(matched).collect()
}

/// The HTTPRouteFilters `rewrite`, `respond` and `broken` of namespace `shop`.
fn extensions() -> Extensions {
    let path = json!({"type": "ReplaceRegexMatch", "pattern": "^/a/(.*)$", "substitution": "/$1"});
    let specs = [
        ("rewrite", json!({"urlRewrite": {"path": path}})),
        ("respond", json!({"directResponse": {"statusCode": 503}})),
        ("broken", json!({})),
    ];
    let filters = specs.map(|(name, spec)| {
        let filter = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
        (ObjectName::new("shop", name), Arc::new(serde_json::from_value(filter).unwrap()))
    });
    Extensions::new(&filters.into_iter().collect::<SharedMap<_, _>>())
}

fn read(matches: &[Match], filters: Value) -> (ReadFilters, Vec<String>) {
    let mut refusals = Vec::new();
    let (namespace, extensions) = (Arc::from("shop"), extensions());
    let scope = FilterScope { namespace: &namespace, extensions: Some(&extensions) };
    let mut reader = FilterReader::new(scope, matches, &mut refusals);
    let list: Vec<api::HttpRouteRulesFilters> = serde_json::from_value(filters).unwrap();
    reader.read(&list, &FieldPath::new("filters"));
    let read = reader.finish();
    (read, refusals.iter().map(|refusal| refusal.at.to_string()).collect())
}

fn rewrite(path: &Value) -> Value {
    json!([{"type": "URLRewrite", "urlRewrite": {"path": path}}])
}

#[test]
fn no_filters_are_none() {
    assert!(read(&[], json!([])).0.filters.is_none());
    let empty = json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": {}}]);
    assert!(read(&[], empty).0.filters.is_none());
}

#[test]
fn a_prefix_is_replaced_where_one_prefix_is_matched() {
    let prefix = json!({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"});
    let (found, refused) = read(&matches(PathKind::Prefix, &["/old/"]), rewrite(&prefix));
    let expected = PathRewrite::Prefix { matched: "/old".to_owned(), replacement: "/new".to_owned() };
    assert_eq!(found.filters.unwrap().path, Some(expected));
    assert!(refused.is_empty());
    for matches in [matches(PathKind::Exact, &["/old"]), matches(PathKind::Prefix, &["/a", "/b"]), Vec::new()]
    {
        assert_eq!(read(&matches, rewrite(&prefix)).1, ["filters[0].urlRewrite.path.type"]);
    }
}

#[test]
fn filters_that_pingsix_lacks_are_refused_by_name() {
    let backend = json!({"name": "a", "port": 80});
    let filters = json!([
        {"type": "RequestMirror", "requestMirror": {"backendRef": backend}},
        {"type": "RequestMirror", "requestMirror": {"backendRef": backend}},
        {"type": "ExternalAuth", "externalAuth": {"protocol": "HTTP", "backendRef": backend}},
        {"type": "CORS"},
    ]);
    assert_eq!(read(&[], filters).1, ["filters[0].type", "filters[1].type", "filters[2].type", "filters[3]"]);
}

#[test]
fn a_filter_twice_is_refused() {
    let filter = json!({"type": "CORS", "cors": {"allowOrigins": ["*"]}});
    assert_eq!(read(&[], json!([filter, filter])).1, ["filters[1].type"]);
}

#[test]
fn a_redirect_keeps_what_it_does_not_name() {
    let filter =
        json!([{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}]);
    let (found, refused) = read(&[], filter);
    let expected = Redirect {
        status: RedirectStatus::MovedPermanently,
        scheme: Some(RedirectScheme::Https),
        hostname: None,
        port: None,
        path: RedirectPath::Keep,
    };
    assert_eq!(found.filters.unwrap().redirect, Some(expected));
    assert!(refused.is_empty());
}

#[test]
fn impossible_redirects_are_refused_at_their_fields() {
    let redirect = json!({"hostname": "a b", "port": 70000, "statusCode": 304});
    let filter = json!([{"type": "RequestRedirect", "requestRedirect": redirect}]);
    assert_eq!(
        read(&[], filter).1,
        [
            "filters[0].requestRedirect.statusCode",
            "filters[0].requestRedirect.hostname",
            "filters[0].requestRedirect.port"
        ]
    );
}

#[test]
fn the_filters_of_the_only_backend_come_after_the_rules_own() {
    let mut refusals = Vec::new();
    let namespace = Arc::from("shop");
    let scope = FilterScope { namespace: &namespace, extensions: None };
    let mut reader = FilterReader::new(scope, &[], &mut refusals);
    let modifier = |name: &str| json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": name, "value": "1"}]}}]);
    let list =
        |name: &str| -> Vec<api::HttpRouteRulesFilters> { serde_json::from_value(modifier(name)).unwrap() };
    reader.read(&list("X-A"), &FieldPath::new("filters"));
    reader.read_as_http(&list("X-B"), &FieldPath::new("backend"));
    reader.read_as_http(&list("x-a"), &FieldPath::new("again"));
    let set = reader.finish().filters.unwrap().request_headers.set.clone();
    assert_eq!(set.len(), 2);
    let refused: Vec<String> = refusals.iter().map(|refusal| refusal.at.to_string()).collect();
    assert_eq!(refused, ["again[0].requestHeaderModifier"]);
}

#[test]
fn a_backend_does_not_say_again_what_other_origins_may_do() {
    let mut refusals = Vec::new();
    let namespace = Arc::from("shop");
    let scope = FilterScope { namespace: &namespace, extensions: None };
    let mut reader = FilterReader::new(scope, &[], &mut refusals);
    for (origin, at) in [("https://a.example", "filters"), ("*", "backend")] {
        let filters = json!([{"type": "CORS", "cors": {"allowOrigins": [origin]}}]);
        let list: Vec<api::HttpRouteRulesFilters> = serde_json::from_value(filters).unwrap();
        reader.read(&list, &FieldPath::new(at));
    }
    let cors = reader.finish().filters.unwrap().cors.clone().unwrap();
    assert_ne!(cors.origins, Origins::Any);
    let refused: Vec<String> = refusals.iter().map(|refusal| refusal.at.to_string()).collect();
    assert_eq!(refused, ["backend[0].cors"]);
}

fn extension(name: &str) -> Value {
    let reference = json!({"group": "pingsix.io", "kind": "HTTPRouteFilter", "name": name});
    json!({"type": "ExtensionRef", "extensionRef": reference})
}

#[test]
fn a_reference_to_a_filter_does_what_the_filter_says() {
    let (found, refused) = read(&[], json!([extension("rewrite")]));
    assert!(matches!(found.filters.unwrap().path, Some(PathRewrite::Regex(_))));
    assert!(refused.is_empty() && found.unresolved.is_empty());
    let (found, refused) = read(&[], json!([extension("respond")]));
    assert_eq!(found.filters.unwrap().response.as_ref().unwrap().status, 503);
    assert!(refused.is_empty() && found.unresolved.is_empty());
}

#[test]
fn missing_filters_are_unresolved_and_others_that_cannot_be_used_refused() {
    let other = json!({"group": "a", "kind": "B", "name": "c"});
    let other = json!({"type": "ExtensionRef", "extensionRef": other});
    let (found, refused) = read(&[], json!([extension("missing"), other, extension("broken")]));
    let unresolved: Vec<(String, Reason)> =
        found.unresolved.iter().map(|refusal| (refusal.at.to_string(), refusal.reason)).collect();
    assert_eq!(unresolved, [("filters[0].extensionRef".to_owned(), Reason::BackendNotFound)]);
    assert_eq!(refused, ["filters[1].extensionRef", "filters[2].extensionRef"]);
}

#[test]
fn filters_that_cannot_be_together_are_refused_in_any_order() {
    let rewrite = || json!({"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplaceFullPath", "replaceFullPath": "/b"}}});
    let redirect = || json!({"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}});
    let cors = || json!({"type": "CORS", "cors": {"allowOrigins": ["*"]}});
    let host = || json!({"type": "URLRewrite", "urlRewrite": {"hostname": "a.test"}});
    for (one, other) in [
        (rewrite(), extension("rewrite")),
        (extension("rewrite"), extension("rewrite")),
        (extension("respond"), extension("respond")),
        (redirect(), extension("rewrite")),
        (redirect(), extension("respond")),
        (cors(), extension("respond")),
        (host(), extension("respond")),
        (extension("rewrite"), extension("respond")),
    ] {
        assert_eq!(read(&[], json!([one, other])).1.len(), 1, "{one} {other}");
        assert_eq!(read(&[], json!([other, one])).1.len(), 1, "{other} {one}");
    }
    // Only the path is rewritten twice.
    assert!(read(&[], json!([host(), extension("rewrite")])).1.is_empty());
}

#[test]
fn routes_of_other_kinds_refer_to_no_filters() {
    let mut refusals = Vec::new();
    let namespace = Arc::from("shop");
    let scope = FilterScope { namespace: &namespace, extensions: None };
    let mut reader = FilterReader::new(scope, &[], &mut refusals);
    reader.read_as_http(&[extension("rewrite")], &FieldPath::new("filters"));
    assert!(reader.finish().filters.is_none());
    assert_eq!(refusals[0].at.to_string(), "filters[0].extensionRef");
}
