//! Usable HTTPRouteFilters, and the faulty field of others.

use regex::Regex;
use serde_json::{Value, json};

use super::*;

fn filter(spec: &Value) -> HttpRouteFilter {
    serde_json::from_value(json!({"metadata": {"name": "f", "namespace": "shop"}, "spec": spec})).unwrap()
}

fn rewrite(pattern: &str, substitution: &str) -> Result<Extension, String> {
    let path = json!({"type": "ReplaceRegexMatch", "pattern": pattern, "substitution": substitution});
    Extension::read(&filter(&json!({"urlRewrite": {"path": path}})))
}

#[track_caller]
fn refuses(read: Result<Extension, String>, beginning: &str) {
    let message = read.expect_err("it cannot be used");
    assert!(message.starts_with(beginning), "{message}");
}

#[test]
fn patterns_of_whole_paths_with_captures_are_taken() {
    for (pattern, substitution) in [
        ("^/service/([^/]+)(/.*)$", "/$2/instance/$1"),
        ("(?i)^/cart/([a-z0-9-]+)(?:/(.*))?$", "/$1/$2"),
        ("^(?:/a|/b)$", "/c"),
        ("^/a$|^/b$", "/c"),
        (r"^/(\d+)$", "/$1"),
        ("^/x$", "/cost%24"),
        (r"\A/x\z", "/y"),
    ] {
        let Ok(Extension::Rewrite(read)) = rewrite(pattern, substitution) else { panic!("{pattern}") };
        assert_eq!((read.pattern.as_str(), read.template.as_str()), (pattern, substitution));
    }
}

#[test]
fn a_substitution_is_written_as_a_path() {
    let Ok(Extension::Rewrite(read)) = rewrite("^/(.*)$", "/a b?c=$1#é") else { panic!() };
    assert_eq!(read.template, "/a%20b%3Fc=$1%23%C3%A9");
}

#[test]
fn a_pattern_that_may_match_a_part_of_a_path_is_refused() {
    for pattern in ["/old/(.*)", "^/old/(.*)", "/old/(.*)$", "^/a|/b$", "(?m)^/a$", "^/a$|/b$", r"\b/a$"] {
        refuses(rewrite(pattern, "/x"), "spec.urlRewrite.path.pattern: PingSIX replaces whole paths");
    }
}

#[test]
fn patterns_that_pingsix_cannot_compile_are_refused_with_the_reason() {
    for pattern in ["^/(a$", "^/a{2,1}$", "^/(?=a)$", r"^/(a)\1$", "^/[z-a]$", r"^/\p{Nothing}$"] {
        refuses(rewrite(pattern, "/x"), "spec.urlRewrite.path.pattern: PingSIX cannot compile it: ");
    }
    // Deep, but short.
    let deep = format!("^/{}a{}$", "(".repeat(500), ")".repeat(500));
    refuses(rewrite(&deep, "/x"), "spec.urlRewrite.path.pattern: PingSIX cannot compile it: ");
}

#[test]
fn a_pattern_that_compiles_to_too_much_is_refused() {
    for pattern in [r"^/(\w{50}){50}$", "^/((((a{99}){99}){99}){99})$", r"^/\pL{1000}$"] {
        refuses(rewrite(pattern, "/x"), "spec.urlRewrite.path.pattern: The compiled pattern takes more than");
    }
}

#[test]
fn accepted_patterns_compile_in_pingsix() {
    for pattern in ["^/service/([^/]+)(/.*)$", r"^/(\d+)$", "^/a$|^/b$"] {
        assert!(rewrite(pattern, "/x").is_ok() && Regex::new(pattern).is_ok());
    }
}

#[test]
fn references_are_to_groups_that_exist() {
    for (substitution, beginning) in [
        ("/$2", "spec.urlRewrite.path.substitution: $2 is no group of the pattern, which has 1."),
        ("/$0", "spec.urlRewrite.path.substitution: $0 is no group"),
        ("/$10", "spec.urlRewrite.path.substitution: $10 is no group"),
        ("/$99999999999999999999999", "spec.urlRewrite.path.substitution: $9999"),
        ("/$", "spec.urlRewrite.path.substitution: A dollar sign"),
        ("/$name", "spec.urlRewrite.path.substitution: A dollar sign"),
        ("/${1}", "spec.urlRewrite.path.substitution: A dollar sign"),
        ("/$$1", "spec.urlRewrite.path.substitution: A dollar sign"),
        ("/$1$1$1$1$1$1$1$1$1$1", "spec.urlRewrite.path.substitution: There are 10 references"),
        ("$1", "spec.urlRewrite.path.substitution: The value cannot be used"),
        ("", "spec.urlRewrite.path.substitution: The value cannot be used"),
    ] {
        refuses(rewrite("^/(.*)$", substitution), beginning);
    }
    assert!(rewrite("^/(.*)$", "/$1$1$1$1$1$1$1$1$1").is_ok());
    assert!(rewrite("^/(?P<name>.*)$", "/$1").is_ok());
}

#[test]
fn long_texts_are_refused_before_they_are_read() {
    let long = "a".repeat(1024);
    refuses(rewrite(&format!("^/{long}$"), "/x"), "spec.urlRewrite.path.pattern: The value cannot be used");
    refuses(
        rewrite("^/x$", &format!("/{long}")),
        "spec.urlRewrite.path.substitution: The value cannot be used",
    );
    let body = "é".repeat(2049);
    let response = json!({"directResponse": {"statusCode": 503, "body": body}});
    refuses(Extension::read(&filter(&response)), "spec.directResponse.body: The value cannot be used");
}

#[test]
fn direct_responses_have_a_final_status_and_a_body_where_there_can_be_one() {
    let read = |response: &Value| Extension::read(&filter(&json!({ "directResponse": response })));
    let Ok(Extension::Response(found)) = read(&json!({"statusCode": 503, "body": "soon"})) else { panic!() };
    assert_eq!(*found, DirectResponse { status: 503, body: Some("soon".to_owned()) });
    let Ok(Extension::Response(found)) = read(&json!({"statusCode": 204, "body": ""})) else { panic!() };
    assert_eq!(*found, DirectResponse { status: 204, body: None });
    for status in [0, 100, 199, 600, 999] {
        refuses(
            read(&json!({ "statusCode": status })),
            "spec.directResponse.statusCode: The value cannot be used",
        );
    }
    for status in [204, 205, 304] {
        refuses(read(&json!({"statusCode": status, "body": "x"})), "spec.directResponse.body: ");
    }
}

#[test]
fn a_filter_does_exactly_one_thing() {
    let path = json!({"type": "ReplaceRegexMatch", "pattern": "^/x$", "substitution": "/y"});
    let both = json!({"urlRewrite": {"path": path}, "directResponse": {"statusCode": 200}});
    for spec in [json!({}), both] {
        refuses(Extension::read(&filter(&spec)), "spec: Exactly one of urlRewrite and directResponse");
    }
}
