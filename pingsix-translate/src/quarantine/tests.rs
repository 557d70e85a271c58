use serde_json::{Value, json};

use super::*;
use crate::fixture::{
    add_certificate, add_grpc_route, add_route, add_service, gateway, https, object, pem, snapshot,
};
use crate::lower::DataPlane;
use crate::model::{ConditionType, Options};
use crate::pingsix::validate::{Severity, ValidateOptions, validate};
use crate::pingsix::{Outcome, Request, Router};
use crate::pipeline::{Translation, TranslationMode, Translator, translate, translate_ingress};
use crate::snapshot::{Object, Objects, Snapshot};
use crate::status::{ConditionStatus, RouteVerdict};

const SAID: &str = "unknown plugin";

fn put(quarantine: &mut Quarantine, kind: Kind, name: &str, section: Section) {
    let object = Arc::new(ObjectKey::new(kind, "infra", name));
    quarantine.insert(Origin { object, section }, SAID.into());
}

fn world() -> Objects {
    let mut objects = gateway(&json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    add_service(&mut objects, "web");
    let rule = |path: &str| {
        json!({
            "matches": [{"path": {"value": path}}], "backendRefs": [{"name": "web", "port": 80}],
        })
    };
    let spec = |hostname: &str, rules: &[Value]| json!({"parentRefs": [{"name": "public"}], "hostnames": [hostname], "rules": rules});
    add_route(&mut objects, "shop", &spec("shop.test", &[rule("/"), rule("/cart")]));
    add_route(&mut objects, "help", &spec("help.test", &[rule("/")]));
    let call = json!({
        "matches": [{"method": {"service": "a.B"}}], "backendRefs": [{"name": "web", "port": 80}],
    });
    add_grpc_route(&mut objects, "calls", &spec("calls.test", &[call]));
    objects
}

/// Translates twice: incrementally after the same without quarantine, and from scratch.
fn quarantined(snapshot: &Snapshot, quarantine: &Quarantine) -> Translation {
    let mut held = snapshot.clone();
    held.referents.quarantine = quarantine.clone();
    let fresh = translate(&held, &Options::default());
    let mut translator = Translator::new(Options::default());
    translator.translate(snapshot);
    for turn in [&held, snapshot, &held] {
        let again = translator.translate(turn);
        let fresh = translate(turn, &Options::default());
        assert_eq!(again.verdicts, fresh.verdicts);
        for (key, plane) in &fresh.data_planes {
            assert_eq!(again.data_planes[key].config, plane.config);
            assert_eq!(again.data_planes[key].provenance, plane.provenance);
            let rules = ValidateOptions { prefix: key.prefix("/pingsix"), ..ValidateOptions::default() };
            let violations = validate(&plane.config, &rules);
            assert!(violations.iter().all(|violation| violation.severity <= Severity::Misbehaves));
        }
    }
    fresh
}

fn plane(translation: &Translation) -> &DataPlane {
    translation.data_planes.values().next().unwrap()
}

/// The status that answers a request without a backend, or 200.
fn ask(translation: &Translation, host: &str, path: &str) -> u16 {
    let plane = plane(translation);
    let router = Router::build(&plane.config, 0..plane.config.routes().count()).unwrap();
    match router.outcome(&Request::get(host, path)) {
        Outcome::NotFound => 404,
        Outcome::Static { status, .. } => status,
        Outcome::Forward { .. } => 200,
        Outcome::Preflight { .. } | Outcome::Redirect { .. } => panic!("nobody asks for it"),
    }
}

fn verdict<'t>(translation: &'t Translation, kind: Kind, name: &str) -> &'t RouteVerdict {
    &translation.verdicts.routes[&ObjectKey::new(kind, "infra", name)]
}

fn reason(verdict: &RouteVerdict, kind: ConditionType) -> Option<(ConditionStatus, Reason)> {
    let condition = verdict.parents[0].conditions.get(kind)?;
    Some((condition.status, condition.reason))
}

#[test]
fn a_rule_in_quarantine_keeps_its_matches_and_answers_an_error() {
    let snapshot = snapshot(&world());
    let mut quarantine = Quarantine::new();
    put(&mut quarantine, Kind::HttpRoute, "shop", Section::Rule(1));
    let translation = quarantined(&snapshot, &quarantine);
    let asked = ["/cart/1", "/other"].map(|path| ask(&translation, "shop.test", path));
    assert_eq!(asked, [500, 200]);
    assert_eq!(ask(&translation, "help.test", "/"), 200);
    let shop = verdict(&translation, Kind::HttpRoute, "shop");
    assert_eq!(reason(shop, ConditionType::Accepted), Some((ConditionStatus::True, Reason::Accepted)));
    let partial = reason(shop, ConditionType::PartiallyInvalid);
    assert_eq!(partial, Some((ConditionStatus::True, Reason::Quarantined)));
    let [problem] = &*translation.verdicts.problems.to_vec() else {
        panic!("{:?}", translation.verdicts.problems)
    };
    assert_eq!((problem.field.as_str(), problem.reason), ("spec.rules[1]", Reason::Quarantined));
    assert_eq!(
        problem.message,
        "PingSIX refuses the documents of this rule. Its requests get 500 until the rule changes. \
         PingSIX: unknown \
         plugin"
    );
}

#[test]
fn a_route_with_all_its_rules_in_quarantine_is_not_accepted() {
    let snapshot = snapshot(&world());
    let mut quarantine = Quarantine::new();
    put(&mut quarantine, Kind::HttpRoute, "shop", Section::Rule(0));
    put(&mut quarantine, Kind::HttpRoute, "shop", Section::Rule(1));
    put(&mut quarantine, Kind::GrpcRoute, "calls", Section::Rule(0));
    let translation = quarantined(&snapshot, &quarantine);
    assert_eq!(["/cart/1", "/other"].map(|path| ask(&translation, "shop.test", path)), [500, 500]);
    assert_eq!(ask(&translation, "calls.test", "/a.B/C"), 503);
    for (kind, name) in [(Kind::HttpRoute, "shop"), (Kind::GrpcRoute, "calls")] {
        let accepted = reason(verdict(&translation, kind, name), ConditionType::Accepted);
        assert_eq!(accepted, Some((ConditionStatus::False, Reason::Quarantined)));
    }
    assert_eq!(ask(&translation, "help.test", "/"), 200);
}

#[test]
fn a_service_in_quarantine_answers_an_error_for_its_share() {
    let snapshot = snapshot(&world());
    let mut quarantine = Quarantine::new();
    put(&mut quarantine, Kind::Service, "web", Section::Whole);
    let translation = quarantined(&snapshot, &quarantine);
    assert_eq!(ask(&translation, "shop.test", "/cart"), 500);
    assert_eq!(ask(&translation, "calls.test", "/a.B/C"), 503);
    let resolved = reason(verdict(&translation, Kind::HttpRoute, "help"), ConditionType::ResolvedRefs);
    assert_eq!(resolved, Some((ConditionStatus::False, Reason::Quarantined)));
}

#[test]
fn a_secret_in_quarantine_is_not_shown_and_its_listener_says_so() {
    let mut objects =
        gateway(&json!([https("a", 443, Some("a.test"), &["a"]), https("b", 443, Some("b.test"), &["b"])]));
    for name in ["a", "b"] {
        add_certificate(&mut objects, name, &pem::pair(&[&format!("{name}.test")]));
    }
    let mut quarantine = Quarantine::new();
    put(&mut quarantine, Kind::Secret, "a", Section::Whole);
    let translation = quarantined(&snapshot(&objects), &quarantine);
    let gateway = translation.verdicts.gateway.as_ref().unwrap();
    let resolved = |index: usize| {
        let condition = gateway.listeners[index].conditions.get(ConditionType::ResolvedRefs).unwrap();
        (condition.status, condition.reason)
    };
    assert_eq!(resolved(0), (ConditionStatus::False, Reason::Quarantined));
    assert_eq!(resolved(1), (ConditionStatus::True, Reason::ResolvedRefs));
    let shown: Vec<&String> = plane(&translation).config.ssls().flat_map(|(_, ssl)| &ssl.snis).collect();
    assert_eq!(shown, ["b.test"]);
}

#[test]
fn every_part_of_an_ingress_can_be_in_quarantine() {
    let mut objects = Objects::default();
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controller": "pingsix.io/gateway-controller"},
    }))));
    add_service(&mut objects, "web");
    for name in ["a", "b"] {
        add_certificate(&mut objects, name, &pem::pair(&[&format!("{name}.test")]));
    }
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let path = |path: &str| json!({"pathType": "Prefix", "path": path, "backend": backend});
    objects.insert(Object::Ingress(object(json!({
        "metadata": {"namespace": "infra", "name": "web", "generation": 1},
        "spec": {
            "ingressClassName": "pingsix", "defaultBackend": backend,
            "rules": [{"host": "a.test", "http": {"paths": [path("/"), path("/cart")]}}, {"host": "b.test"}],
            "tls": [{"secretName": "a", "hosts": ["a.test"]}, {"secretName": "b", "hosts": ["b.test"]}],
        },
    }))));
    let mut snapshot = objects.ingress_snapshot("pingsix").unwrap();
    let asked = |translation: &Translation| {
        [("a.test", "/cart"), ("a.test", "/"), ("b.test", "/"), ("c.test", "/")]
            .map(|(host, path)| ask(translation, host, path))
    };
    assert_eq!(asked(&translate_ingress(&snapshot, &Options::default())), [200; 4]);
    for (section, answers, field) in [
        (Section::Match { rule: 0, index: 1 }, [500, 200, 200, 200], "spec.rules[0].http.paths[1]"),
        (Section::Rule(1), [200, 200, 500, 200], "spec.rules[1]"),
        (Section::DefaultBackend, [200, 200, 200, 500], "spec.defaultBackend"),
        (Section::Tls(0), [200; 4], "spec.tls[0]"),
    ] {
        let quarantine = &mut snapshot.referents.quarantine;
        *quarantine = Quarantine::new();
        put(quarantine, Kind::Ingress, "web", section);
        let translation = translate_ingress(&snapshot, &Options::default());
        assert_eq!(asked(&translation), answers, "{section:?}");
        let problems = translation.verdicts.problems.iter();
        let told: Vec<&str> = problems
            .filter(|problem| problem.reason == Reason::Quarantined)
            .map(|problem| problem.field.as_str())
            .collect();
        assert_eq!(told, [field]);
        let is_shown = plane(&translation).config.ssls().any(|(_, ssl)| ssl.snis == ["a.test"]);
        assert_eq!(is_shown, section != Section::Tls(0));
    }
}

#[test]
fn quarantine_causes_only_its_own_work() {
    let mut objects = world();
    for index in 0..100 {
        let spec = json!({
            "parentRefs": [{"name": "public"}], "hostnames": [format!("h{index}.test")],
            "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
        });
        add_route(&mut objects, &format!("route-{index}"), &spec);
    }
    let mut snapshot = snapshot(&objects);
    let mut translator = Translator::new(Options::default());
    let before = translator.translate(&snapshot);
    put(&mut snapshot.referents.quarantine, Kind::HttpRoute, "route-7", Section::Rule(0));
    let after = translator.translate(&snapshot);
    assert_eq!(translator.last_mode(), TranslationMode::Incremental { routes: 1 });
    let changes = plane(&after).config.documents().changes(plane(&before).config.documents()).len();
    // The Route, and the upstream of rules without backends.
    assert_eq!(changes, 2);
    snapshot.referents.quarantine = Quarantine::new();
    translator.translate(&snapshot);
    assert_eq!(translator.last_mode(), TranslationMode::Incremental { routes: 1 });
}
