//! Policies of Ingresses.

use serde_json::{Value, json};

use super::{add_policy_of, add_secret, services, status};
use crate::fixture::{add_service, object};
use crate::model::{ConditionType, Kind, Layout, ObjectKey, Options, Reason};
use crate::pingsix::Route;
use crate::pipeline::{Translation, translate_ingress};
use crate::snapshot::{Object, Objects};
use crate::status::{ConditionStatus, PolicyVerdict};

/// IngressClass `pingsix`, Service `infra/web`, and Ingress `infra/web` for `/web` with a default backend.
fn world() -> Objects {
    let mut objects = Objects::default();
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controller": "pingsix.io/gateway-controller"},
    }))));
    add_service(&mut objects, "web");
    add_ingress(&mut objects, "web", "2026-01-01T00:00:00Z", true);
    objects
}

fn add_ingress(objects: &mut Objects, name: &str, created: &str, has_default: bool) {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let paths = json!([{"path": format!("/{name}"), "pathType": "Prefix", "backend": backend}]);
    let mut spec =
        json!({"ingressClassName": "pingsix", "rules": [{"host": "a.test", "http": {"paths": paths}}]});
    if has_default {
        spec["defaultBackend"] = backend;
    }
    objects.insert(Object::Ingress(object(json!({
        "metadata": {"namespace": "infra", "name": name, "creationTimestamp": created}, "spec": spec,
    }))));
}

fn target(name: &str) -> Value {
    json!({"group": "networking.k8s.io", "kind": "Ingress", "name": name})
}

/// Adds SecurityPolicy `infra/<name>` with the keys of Secret `infra/keys`.
fn add_policy(objects: &mut Objects, name: &str, targets: &[Value]) {
    let keys = json!({"credentialRefs": [{"name": "keys"}]});
    add_policy_of(objects, (Kind::SecurityPolicy, name), &json!({"targetRefs": targets, "apiKeyAuth": keys}));
}

fn translated(objects: &Objects, layout: Layout) -> Translation {
    let options = Options { layout, ..Options::default() };
    translate_ingress(&objects.ingress_snapshot("pingsix").unwrap(), &options)
}

fn routes(translation: &Translation) -> Vec<&Route> {
    let planes = translation.data_planes.values();
    planes.flat_map(|plane| plane.config.routes().map(|(_, route)| route)).collect()
}

fn verdict<'t>(translation: &'t Translation, name: &str) -> &'t PolicyVerdict {
    &translation.verdicts.policies[&ObjectKey::new(Kind::SecurityPolicy, "infra", name)]
}

fn accepted(translation: &Translation, name: &str) -> (ConditionStatus, Reason) {
    let condition = verdict(translation, name).conditions.get(ConditionType::Accepted).unwrap();
    (condition.status, condition.reason)
}

#[test]
fn each_route_of_an_ingress_has_the_service_of_its_policy_on_each_port() {
    let mut objects = world();
    add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
    add_policy(&mut objects, "keys", &[target("web")]);
    for (layout, planes) in [(Layout::Shared, 1), (Layout::PerPort, 2)] {
        let translation = translated(&objects, layout);
        assert_eq!(translation.data_planes.len(), planes);
        for plane in translation.data_planes.values() {
            assert_eq!(plane.config.services().count(), 1);
        }
        assert_eq!(services(&translation).len(), 1);
        let routes = routes(&translation);
        assert!(routes.len() == 2 * planes && routes.iter().all(|route| route.service_id.is_some()));
        assert_eq!(accepted(&translation, "keys"), (ConditionStatus::True, Reason::Accepted));
        let verdict = verdict(&translation, "keys");
        assert_eq!(
            verdict.ancestor.to_value(),
            json!({"group": "networking.k8s.io", "kind": "IngressClass", "name": "pingsix"})
        );
        assert_eq!(translation.verdicts.problems.to_vec(), []);
    }
}

#[test]
fn an_ingress_whose_policy_cannot_be_honoured_answers_500_and_says_why() {
    let mut objects = world();
    add_ingress(&mut objects, "help", "2026-01-01T00:00:00Z", false);
    add_policy(&mut objects, "keys", &[target("web")]);
    let translation = translated(&objects, Layout::Shared);
    let closed = routes(&translation).iter().filter(|route| status(route) == Some(500)).count();
    assert_eq!((closed, routes(&translation).len()), (2, 3));
    assert!(services(&translation).is_empty());
    assert_eq!(accepted(&translation, "keys"), (ConditionStatus::False, Reason::Invalid));
    let problems: Vec<String> = translation.verdicts.problems.iter().map(ToString::to_string).collect();
    let of_ingress = |field: &str| {
        problems.iter().any(|problem| {
            problem.starts_with(&format!("Ingress infra/web: {field}"))
                && problem.contains("SecurityPolicy infra/keys applies to this rule and cannot be honoured")
        })
    };
    assert!(of_ingress("spec.rules[0].http.paths[0]") && of_ingress("spec.defaultBackend"), "{problems:?}");
}

#[test]
fn targets_of_an_ingress_and_of_another_class_of_kinds_close_the_ingress() {
    let mut objects = world();
    add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
    let route = json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"});
    let mut section = target("web");
    section["sectionName"] = json!("first");
    for targets in [vec![target("web"), route], vec![section]] {
        add_policy(&mut objects, "keys", &targets);
        let translation = translated(&objects, Layout::Shared);
        assert!(routes(&translation).iter().all(|route| status(route) == Some(500)), "{targets:?}");
        assert_eq!(accepted(&translation, "keys"), (ConditionStatus::False, Reason::Invalid));
    }
}

#[test]
fn of_two_ingresses_with_one_path_the_older_one_counts_with_its_policy() {
    let (old, young) = ("2025-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    for (created, is_open) in [(young, false), (old, true)] {
        let mut objects = world();
        add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
        add_ingress(&mut objects, "web-2", created, false);
        let mut other =
            objects.ingresses().find(|(name, _)| *name.name == *"web-2").unwrap().1.as_ref().clone();
        other.spec.as_mut().unwrap().rules.as_mut().unwrap()[0].http.as_mut().unwrap().paths[0].path =
            Some("/web".to_owned());
        objects.insert(Object::Ingress(other.into()));
        add_policy(&mut objects, "keys", &[target("web")]);
        let translation = translated(&objects, Layout::Shared);
        let of_path: Vec<&Route> = routes(&translation)
            .into_iter()
            .filter(|route| route.path_patterns().contains(&"/web".to_owned()))
            .collect();
        let served = of_path.iter().max_by_key(|route| route.priority).unwrap();
        assert_eq!(served.service_id.is_none(), is_open, "{created}");
        // The policy counts for the Ingress, although the Ingress has no path of its own then.
        assert_eq!(accepted(&translation, "keys"), (ConditionStatus::True, Reason::Accepted));
        let shadowed =
            translation.verdicts.problems.iter().filter(|problem| problem.reason == Reason::Shadowed);
        assert_eq!(shadowed.count(), 1);
    }
}

#[test]
fn a_policy_of_a_missing_ingress_and_of_a_gateway_has_no_verdict() {
    let mut objects = world();
    add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
    add_policy(&mut objects, "missing", &[target("other")]);
    let gateway = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"});
    add_policy(&mut objects, "gateway", &[gateway]);
    // The name alone does not make it an Ingress of Kubernetes.
    let foreign = json!({"group": "extensions", "kind": "Ingress", "name": "web"});
    add_policy(&mut objects, "foreign", &[foreign]);
    let translation = translated(&objects, Layout::Shared);
    assert!(translation.verdicts.policies.is_empty());
    assert!(routes(&translation).iter().all(|route| route.service_id.is_none() && status(route).is_none()));
}

#[test]
fn both_kinds_of_policy_share_a_service_and_a_bad_limit_closes_an_ingress() {
    let limit = |requests: u32| {
        let limit = json!({"limit": {"requests": requests, "unit": "Minute"}});
        json!({"targetRefs": [target("web")], "rateLimit": {"local": limit}})
    };
    let mut objects = world();
    add_ingress(&mut objects, "help", "2026-01-01T00:00:00Z", false);
    add_secret(&mut objects, "keys", &json!({"alice": "k1"}));
    add_policy(&mut objects, "keys", &[target("web")]);
    add_policy_of(&mut objects, (Kind::TrafficPolicy, "limit"), &limit(3));
    let translation = translated(&objects, Layout::Shared);
    let [plugins] = services(&translation)[..] else { panic!("one service") };
    assert_eq!(plugins.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["key-auth", "limit-count"]);
    let under = routes(&translation).iter().filter(|route| route.service_id.is_some()).count();
    assert_eq!((under, routes(&translation).len()), (2, 3));
    add_policy_of(&mut objects, (Kind::TrafficPolicy, "limit"), &limit(0));
    let translation = translated(&objects, Layout::Shared);
    let closed = routes(&translation).iter().filter(|route| status(route) == Some(500)).count();
    assert_eq!((closed, services(&translation).len()), (2, 0));
}
