use std::sync::Arc;

use pingsix_translate::snapshot::{Object, Objects};
use pingsix_translate::{ObjectName, Translation, translate};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{objects, options, rule};

struct Fixture {
    translation: Translation,
}

impl Fixture {
    fn new(routes: &[(&str, Value)]) -> Self {
        Self::of(&objects(routes))
    }

    fn of(objects: &Objects) -> Self {
        let snapshot = objects.snapshot(&ObjectName::new("infra", "web")).unwrap();
        Self { translation: translate(&snapshot, &options()) }
    }

    fn explain(&self, request: &Request) -> Explanation {
        let (key, plane) = self.translation.data_planes.iter().next().unwrap();
        let plane = Plane {
            key,
            config: &plane.config,
            provenance: &plane.provenance,
            verdicts: &self.translation.verdicts,
        };
        explain(&plane, request, None).unwrap()
    }
}

fn shop() -> Fixture {
    let canary = json!({
        "matches": [{
            "path": { "type": "PathPrefix", "value": "/cart" },
            "headers": [{ "name": "X-Env", "value": "canary" }], "queryParams": [{ "name": "beta", "value": "1" }],
        }],
        "backendRefs": [{ "name": "b", "port": 80, "weight": 3 }, { "name": "missing", "port": 80, "weight": 1 }],
    });
    let post = json!({
        "matches": [
            { "path": { "type": "Exact", "value": "/orders" }, "method": "POST" },
            { "path": { "type": "PathPrefix", "value": "/orders" }, "method": "DELETE" },
        ],
        "backendRefs": [{ "name": "c", "port": 80 }],
    });
    let conditional = json!({
        "matches": [{ "path": { "type": "Exact", "value": "/beta" }, "headers": [{ "name": "X-Beta", "value": "yes" }] }],
        "backendRefs": [{ "name": "c", "port": 80 }],
    });
    Fixture::new(&[
        (
            "shop",
            json!({
                "parentRefs": [{ "name": "web", "sectionName": "example" }], "hostnames": ["shop.example.com"],
                "rules": [canary, rule("/cart", "a"), post, conditional],
            }),
        ),
        (
            "other",
            json!({
                "parentRefs": [{ "name": "web", "sectionName": "any" }], "hostnames": ["other.test"],
                "rules": [rule("/cart", "d"), rule("/empty", "empty")],
            }),
        ),
    ])
}

/// The source of the deciding step.
fn decides(explanation: &Explanation) -> &str {
    let step = explanation.steps.iter().find(|step| step.result == StepResult::Decides);
    step.and_then(|step| step.source.as_ref()).map_or("", |source| &source.field)
}

fn cause(explanation: &Explanation) -> NotFoundCause {
    let Answer::NotFound { cause, .. } = &explanation.answer else { panic!("{explanation}") };
    *cause
}

#[test]
fn the_deciding_match_is_named_with_its_backend() {
    let explanation = shop().explain(&Request::get("shop.example.com", "/cart/1"));
    assert!(explanation.is_answered());
    assert_eq!(decides(&explanation), "spec.rules[1].matches[0]");
    let Answer::Forward { backends } = &explanation.answer else { panic!("{explanation}") };
    let [backend] = backends.as_slice() else { panic!("{explanation}") };
    assert_eq!(backend.target, Target::Service { service: "infra/a".to_owned(), port: 80 });
    assert_eq!(backend.endpoints.keys().collect::<Vec<_>>(), ["10.0.0.1:8080"]);
    assert_eq!(explanation.listeners.iter().map(|listener| &*listener.name).collect::<Vec<_>>(), ["example"]);
    let route = explanation.route.as_ref().unwrap();
    assert_eq!((route.host.as_deref(), &*route.path), (Some("shop.example.com"), "prefix /cart"));
}

#[test]
fn a_failed_condition_says_what_was_expected_and_what_was_found() {
    let shop = shop();
    let request = Request::get("shop.example.com", "/cart?beta=1").header("X-Env", "prod");
    let explanation = shop.explain(&request);
    let StepResult::Fails { conditions } = &explanation.steps[0].result else { panic!("{explanation}") };
    let [failed] = conditions.as_slice() else { panic!("{explanation}") };
    assert_eq!((&*failed.expected, &*failed.found), ("header x-env is \"canary\"", "prod"));
    let request = Request::get("shop.example.com", "/cart").header("X-Env", "canary");
    let text = shop.explain(&request).to_string();
    assert!(text.contains("query parameter beta is \"1\" (absent)"), "{text}");
}

#[test]
fn shares_are_shown_with_the_status_of_what_is_missing() {
    let request = Request::get("shop.example.com", "/cart?beta=1").header("X-Env", "canary");
    let explanation = shop().explain(&request);
    assert_eq!(decides(&explanation), "spec.rules[0].matches[0]");
    assert!(explanation.is_answered());
    let text = explanation.to_string();
    assert!(text.contains("3 of 4: Service infra/b port 80"), "{text}");
    assert!(text.contains("1 of 4: 500, given by the responder"), "{text}");
    assert!(text.contains("missing"), "the problem of the rule is shown: {text}");
    assert_eq!(explanation.steps[1].result, StepResult::NotReached);
}

#[test]
fn the_first_mismatch_is_named() {
    let shop = shop();
    let get = |host: &str, path: &str| shop.explain(&Request::get(host, path));
    assert_eq!(cause(&get("shop.example.com", "/orders")), NotFoundCause::Method);
    let orders = get("shop.example.com", "/orders").to_string();
    assert!(orders.contains("The path is served for DELETE, POST only."), "{orders}");
    assert_eq!(cause(&get("shop.example.com", "/none")), NotFoundCause::Path);
    assert_eq!(cause(&get("shop.example.com", "/beta")), NotFoundCause::Conditions);
    assert_eq!(cause(&get("blog.example.com", "/cart")), NotFoundCause::Host);
    let over_tls = shop.explain(&Request::get("shop.example.com", "/cart").over_tls());
    assert_eq!(
        over_tls.answer,
        Answer::Closed {
            cause: ClosedCause::Listener,
            why: "No listener serves HTTPS. Served: any (HTTP port 80, any host); example (HTTP port 80, \
                  *.example.com)."
                .to_owned(),
            if_open: None,
        }
    );
    for path in ["/orders", "/none", "/beta"] {
        assert!(!get("shop.example.com", path).is_answered());
    }
}

#[test]
fn a_listener_that_gives_way_to_a_narrower_one_is_named() {
    let any =
        json!({ "parentRefs": [{ "name": "web", "sectionName": "any" }], "rules": [rule("/cart", "d")] });
    let fixture = Fixture::new(&[("any", any)]);
    let explanation = fixture.explain(&Request::get("shop.example.com", "/cart"));
    assert_eq!(cause(&explanation), NotFoundCause::Host);
    assert_eq!(explanation.rejected[0].reason, MissReason::Listener { hostname: "any host".to_owned() });
    assert!(fixture.explain(&Request::get("shop.test", "/cart")).is_answered());
}

#[test]
fn losers_say_why_nearest_first() {
    let fixture = Fixture::new(&[(
        "shop",
        json!({ "hostnames": ["shop.example.com"], "rules": [rule("/", "a"), rule("/cart", "b"), rule("/cart/x", "c")] }),
    )]);
    let explanation = fixture.explain(&Request::get("shop.example.com", "/cart"));
    let reasons: Vec<&MissReason> =
        explanation.rejected.iter().map(|rejected_match| &rejected_match.reason).collect();
    let outranked = MissReason::Outranked { by: "the more specific path, prefix /cart".to_owned() };
    assert_eq!(reasons, [&outranked, &MissReason::Path { path: "prefix /cart/x".to_owned() }]);
}

#[test]
fn a_rule_behind_an_equal_one_is_named() {
    let fixture = Fixture::new(&[(
        "shop",
        json!({ "hostnames": ["shop.example.com"], "rules": [rule("/cart", "a"), rule("/cart", "b")] }),
    )]);
    let explanation = fixture.explain(&Request::get("shop.example.com", "/cart"));
    assert_eq!(decides(&explanation), "spec.rules[0].matches[0]");
    let [RejectedMatch { source, reason }] = explanation.rejected.as_slice() else { panic!("{explanation}") };
    assert_eq!(source.field, "spec.rules[1].matches[0]");
    assert_eq!(
        *reason,
        MissReason::Outranked { by: "an equal match of an older route or an earlier rule".to_owned() }
    );
}

#[test]
fn a_rule_that_fails_closed_is_not_an_answer() {
    let explanation = shop().explain(&Request::get("other.test", "/empty"));
    assert!(!explanation.is_answered());
    let Answer::Status { status: 503, why, .. } = explanation.answer else { panic!("{explanation}") };
    assert_eq!(why, "HTTPRoute infra/other spec.rules[1].matches[0] has no endpoint that takes traffic.");
}

#[test]
fn json_has_what_the_text_has() {
    let request = Request::get("shop.example.com", "/cart?beta=1").header("X-Env", "canary");
    let value = serde_json::to_value(shop().explain(&request)).unwrap();
    assert_eq!(value["answer"]["kind"], "forward");
    assert_eq!(value["answer"]["backends"][0]["service"], "infra/b");
    assert_eq!(value["steps"][0]["source"]["rule"], 0);
    assert_eq!(value["steps"][0]["result"], "decides");
    assert_eq!(value["dataPlane"], "infra/web");
}

#[test]
fn an_injected_fault_names_its_policy_and_a_closed_rule_names_none() {
    let mut objects = objects(&[
        ("shop", json!({ "rules": [rule("/cart", "a")] })),
        ("pay", json!({ "rules": [rule("/pay", "b")] })),
    ]);
    let policy = |route: &str, fields: Value| {
        let mut spec = fields;
        spec["targetRefs"] =
            json!([{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": route }]);
        let policy = json!({
            "apiVersion": "pingsix.io/v1alpha1", "kind": "TrafficPolicy",
            "metadata": { "namespace": "infra", "name": route }, "spec": spec,
        });
        Object::TrafficPolicy(Arc::new(serde_json::from_value(policy).unwrap()))
    };
    objects.insert(policy("shop", json!({ "faultInjection": { "abort": { "httpStatus": 503 } } })));
    let no_limit = json!({ "limit": { "requests": 0, "unit": "Minute" } });
    objects.insert(policy("pay", json!({ "rateLimit": { "local": no_limit } })));
    let fixture = Fixture::of(&objects);
    let answered = |path: &str| {
        let explanation = fixture.explain(&Request::get("a.test", path));
        let Answer::Status { status, by, why } = explanation.answer else { panic!("{explanation}") };
        (status, by, why)
    };
    let why = "TrafficPolicy infra/shop injects this fault.".to_owned();
    assert_eq!(answered("/cart"), (503, "PingSIX", why));
    let (status, _, why) = answered("/pay");
    assert!(status == 500 && !why.contains("injects"), "{status}: {why}");
}

#[test]
fn a_url_in_a_path_or_query_is_no_scheme() {
    let url = |text: &str| {
        let inquiry = Inquiry::new("GET", text, RequestOptions::default(), None).unwrap();
        let Request { host, path, query, tls, .. } = inquiry.request;
        (host.unwrap_or_default(), path, query.unwrap_or_default(), tls)
    };
    let expected =
        |host: &str, path: &str, query: &str, tls| (host.to_owned(), path.to_owned(), query.to_owned(), tls);
    let login = expected("shop.test", "/login", "next=https://a.test/", false);
    assert_eq!(url("shop.test/login?next=https://a.test/"), login);
    assert_eq!(
        url("shop.test?next=https://a.test/"),
        expected("shop.test", "/", "next=https://a.test/", false)
    );
    assert_eq!(url("shop.test/https://a.test/"), expected("shop.test", "/https://a.test/", "", false));
    assert_eq!(url("https://shop.test/?next=http://a"), expected("shop.test", "/", "next=http://a", true));
    let other = Inquiry::new("GET", "ftp://shop.test/", RequestOptions::default(), None);
    assert!(matches!(other, Err(InquiryError::Scheme(_))), "{other:?}");
}
