use std::collections::BTreeSet;

use serde_json::json;

use crate::fixture::{
    add_certificate, add_listener_set, allow_listener_sets, gateway, https, object, pem, snapshot,
};
use crate::model::{ConditionType, Kind, ObjectKey, Options, Problem, Reason};
use crate::pipeline::{Translation, Translator, translate, translate_ingress};
use crate::snapshot::{BackendTlsPolicy, Object, Objects, Pending};
use crate::status::{Condition, ConditionStatus};

fn pending(kind: Kind, name: &str) -> Pending {
    [(ObjectKey::new(kind, "infra", name), ())].into_iter().collect()
}

/// The names that certificates are shown for.
fn shown(translation: &Translation) -> BTreeSet<&str> {
    let planes = translation.data_planes.values();
    planes.flat_map(|plane| plane.config.ssls()).flat_map(|(_, ssl)| &ssl.snis).map(String::as_str).collect()
}

fn content(condition: Option<&Condition>) -> (ConditionStatus, Reason, &str) {
    let Condition { status, reason, message, .. } = condition.unwrap();
    (*status, *reason, message)
}

#[test]
fn a_pending_certificate_is_missed_by_its_own_listener_alone() {
    let mut objects = gateway(&json!([https("a", 443, Some("a.test"), &["a"])]));
    allow_listener_sets(&mut objects);
    add_listener_set(&mut objects, ("infra", "b"), 1, &json!([https("b", 443, Some("b.test"), &["b"])]));
    add_certificate(&mut objects, "a", &pem::pair(&["a.test"]));
    let mut snapshot = snapshot(&objects);
    let absent = translate(&snapshot, &Options::default());
    snapshot.referents.pending = pending(Kind::Secret, "b");
    let mut translator = Translator::new(Options::default());
    let awaited = translator.translate(&snapshot);
    for (key, plane) in &absent.data_planes {
        let config = &awaited.data_planes[key].config;
        assert_eq!(config, &plane.config, "it fails closed as one that is not there");
    }
    assert_eq!(shown(&awaited), BTreeSet::from(["a.test"]));
    let ours = &awaited.verdicts.gateway.as_ref().unwrap().listeners[0];
    assert_eq!(content(ours.conditions.get(ConditionType::ResolvedRefs)).0, ConditionStatus::True);
    let set = awaited.verdicts.listener_sets.values().next().unwrap();
    assert_eq!(
        content(set.listeners[0].conditions.get(ConditionType::ResolvedRefs)),
        (
            ConditionStatus::False,
            Reason::Pending,
            "spec.listeners[0].tls.certificateRefs[0]: The API server has not answered whether \
             Secret infra/b exists."
        )
    );

    // The answer comes, and is that there is none.
    snapshot.referents.pending = Pending::new();
    let answered = translator.translate(&snapshot);
    let set = answered.verdicts.listener_sets.values().next().unwrap();
    let resolved = content(set.listeners[0].conditions.get(ConditionType::ResolvedRefs));
    assert_eq!(resolved.1, Reason::InvalidCertificateRef);
    assert_eq!(answered.verdicts, absent.verdicts);

    // An object in the snapshot counts as read.
    add_certificate(&mut objects, "b", &pem::pair(&["b.test"]));
    let mut snapshot = crate::fixture::snapshot(&objects);
    let there = translate(&snapshot, &Options::default());
    snapshot.referents.pending = pending(Kind::Secret, "b");
    assert_eq!(translator.translate(&snapshot).verdicts, there.verdicts);
    assert_eq!(shown(&there), BTreeSet::from(["a.test", "b.test"]));
}

#[test]
fn an_authority_of_which_nothing_is_known_is_told_to_its_policy() {
    let mut objects = gateway(&json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    crate::fixture::add_service(&mut objects, "web");
    let spec = json!({
        "parentRefs": [{"name": "public"}], "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
    });
    crate::fixture::add_route(&mut objects, "shop", &spec);
    let policy: std::sync::Arc<BackendTlsPolicy> = object(json!({
        "metadata": {"namespace": "infra", "name": "web", "generation": 1},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "web"}],
            "validation": {
                "hostname": "web.test", "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca"}],
            },
        },
    }));
    objects.insert(Object::BackendTlsPolicy(policy));
    let mut snapshot = snapshot(&objects);
    let mut translator = Translator::new(Options::default());
    for (pending, reason) in [
        (Pending::new(), Reason::InvalidCaCertificateRef),
        (pending(Kind::ConfigMap, "ca"), Reason::Pending),
        (Pending::new(), Reason::InvalidCaCertificateRef),
    ] {
        snapshot.referents.pending = pending;
        let translation = translator.translate(&snapshot);
        let policy = translation.verdicts.policies.values().next().unwrap();
        let resolved = policy.conditions.get(ConditionType::ResolvedRefs);
        assert_eq!(content(resolved).1, reason);
        assert_eq!(translation.verdicts, translate(&snapshot, &Options::default()).verdicts);
    }
}

#[test]
fn a_pending_certificate_of_an_ingress_is_missed_by_that_ingress_alone() {
    let mut objects = Objects::default();
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"}, "spec": {"controller": "pingsix.io/gateway-controller"},
    }))));
    for name in ["a", "b"] {
        objects.insert(Object::Ingress(object(json!({
            "metadata": {"namespace": "infra", "name": name, "generation": 1},
            "spec": {
                "ingressClassName": "pingsix", "tls": [{"secretName": name, "hosts": [format!("{name}.test")]}],
            },
        }))));
    }
    add_certificate(&mut objects, "a", &pem::pair(&["a.test"]));
    let mut snapshot = objects.ingress_snapshot("pingsix").unwrap();
    snapshot.referents.pending = pending(Kind::Secret, "b");
    let translation = translate_ingress(&snapshot, &Options::default());
    assert_eq!(shown(&translation), BTreeSet::from(["a.test"]));
    let awaited = |problem: &&Problem| problem.reason == Reason::Pending;
    let problems: Vec<&Problem> = translation.verdicts.problems.iter().filter(awaited).collect();
    let [problem] = problems[..] else { panic!("{problems:?}") };
    assert_eq!(&*problem.object.name.name, "b");
    assert_eq!(problem.field.as_str(), "spec.tls[0].secretName");
}
