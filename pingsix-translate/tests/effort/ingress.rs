//! The same of an IngressClass.

use std::sync::Arc;

use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::snapshot::Ingress;
use pingsix_translate::{
    IngressSnapshot, Object, ObjectName, Objects, Options, Translation, TranslationMode, Translator,
    translate_ingress,
};
use serde_json::{Value, json};

use super::{
    ROUTES_PER_TEAM, TEAMS, add_secret_of, add_service, assert_same, change_slices, difference, object, part,
    with,
};

pub(super) fn ingress(namespace: &str, name: &str, host: &str) -> Arc<Ingress> {
    let path = |path: &str| {
        let service = json!({"name": "own", "port": {"number": 80}});
        json!({"path": path, "pathType": "Prefix", "backend": {"service": service}})
    };
    object(json!({
        "metadata": {
            "namespace": namespace, "name": name, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "ingressClassName": "pingsix",
            "rules": [{"host": host, "http": {"paths": [path("/"), path("/own")]}}],
        },
    }))
}

/// Ten teams with a namespace each. Every Ingress has a host of its own and two paths to the Service of its team; one of each
/// team has a certificate.
fn world(parameters: &Value) -> IngressSnapshot {
    let mut objects = Objects::default();
    objects.insert(Object::PingsixProxy(object(json!({
        "metadata": {"namespace": "infra", "name": "edge"}, "spec": parameters,
    }))));
    objects.insert(Object::IngressClass(object(json!({
        "metadata": {"name": "pingsix"},
        "spec": {
            "controller": "pingsix.io/gateway-controller",
            "parameters": {
                "apiGroup": "pingsix.io", "kind": "PingsixProxy", "scope": "Namespace", "namespace": "infra",
                "name": "edge",
            },
        },
    }))));
    for team in 0..TEAMS {
        let namespace = format!("team-{team}");
        add_service(&mut objects, &namespace, "own");
        add_secret_of(&mut objects, &namespace, "tls", &format!("route-0.{namespace}.test"));
        for number in 0..ROUTES_PER_TEAM {
            let name = format!("route-{number}");
            let host = format!("{name}.{namespace}.test");
            let mut ingress = ingress(&namespace, &name, &host);
            if number == 0 {
                let mut written = serde_json::to_value(&*ingress).unwrap();
                written["spec"]["tls"] = json!([{"hosts": [host], "secretName": "tls"}]);
                ingress = object(written);
            }
            objects.insert(Object::Ingress(ingress));
        }
    }
    objects.ingress_snapshot("pingsix").unwrap()
}

/// A translator that has seen the world.
pub(super) struct WarmTranslator {
    pub(super) world: IngressSnapshot,
    before: Translation,
    translator: Translator,
}

impl WarmTranslator {
    pub(super) fn new() -> Self {
        Self::of(&json!({"attached": {}}))
    }

    /// Hosts belong to namespaces.
    pub(super) fn owned() -> Self {
        Self::of(&json!({"attached": {}, "ingress": {"hostOwnership": "OldestNamespace"}}))
    }

    /// Each port is a data plane.
    fn per_port() -> Self {
        Self::of(&json!({"attached": {"layout": "PerPort"}}))
    }

    fn of(parameters: &Value) -> Self {
        let (world, mut translator) = (world(parameters), Translator::new(Options::default()));
        let before = translator.translate_ingress(&world);
        assert_eq!(translator.last_mode(), TranslationMode::Full);
        assert!(before.verdicts.problems.is_empty(), "{:?}", before.verdicts.problems);
        Self { world, before, translator }
    }

    /// Changes the world, and back: what the change took, and how many documents came out different.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut IngressSnapshot)) -> (TranslationMode, usize) {
        let mut world = self.world.clone();
        change(&mut world);
        let got = self.translator.translate_ingress(&world);
        let last_mode = self.translator.last_mode();
        assert_same(&got, &translate_ingress(&world, &Options::default()));
        let different = difference(&got, &self.before);
        self.before = self.translator.translate_ingress(&self.world);
        assert_same(&self.before, &translate_ingress(&self.world, &Options::default()));
        (last_mode, different)
    }
}

pub(super) fn put(world: &mut IngressSnapshot, namespace: &str, name: &str, ingress: Arc<Ingress>) {
    world.ingresses.insert(ObjectName::new(namespace, name), ingress);
}

#[test]
fn another_endpoint_is_one_document() {
    let own = ObjectName::new("team-3", "own");
    let other = json!([{"addresses": ["10.0.0.9"]}]);
    let change = WarmTranslator::new().change(|world| change_slices(&mut world.referents, &own, other));
    assert_eq!(change, (part(0), 1));
}

#[test]
fn a_service_without_endpoints_concerns_the_ingresses_that_refer_to_it() {
    let own = ObjectName::new("team-3", "own");
    let change = WarmTranslator::new().change(|world| change_slices(&mut world.referents, &own, json!([])));
    // Two Routes each, the upstream that goes, and the one that nobody reaches.
    assert_eq!(change, (part(ROUTES_PER_TEAM), 2 * ROUTES_PER_TEAM + 2));
}

#[test]
fn an_ingress_that_changes_comes_or_goes_is_what_is_done_again() {
    for mut warm in [WarmTranslator::new(), WarmTranslator::owned()] {
        let name = ObjectName::new("team-3", "route-3");
        let pointer = "/spec/rules/0/http/paths/1/path";
        let changed = with(&*warm.world.ingresses[&name], pointer, json!("/other"));
        let replaced = warm.change(|world| put(world, "team-3", "route-3", changed));
        assert_eq!(
            replaced,
            (part(1), 3),
            "a Route that goes, one that comes, one that lists their patterns"
        );
        let gone = warm.change(|world| assert!(world.ingresses.remove(&name)));
        assert_eq!(gone, (part(0), 2));
        let new = ingress("team-3", "new", "new.team-3.test");
        assert_eq!(warm.change(|world| put(world, "team-3", "new", new)), (part(1), 2));
    }
}

#[test]
fn per_port_data_planes_take_equal_effort_and_twice_the_documents() {
    let mut warm = WarmTranslator::per_port();
    assert_eq!(warm.before.data_planes.len(), 2);
    let own = ObjectName::new("team-3", "own");
    let slices = json!([{"addresses": ["10.0.0.9"]}]);
    assert_eq!(warm.change(|world| change_slices(&mut world.referents, &own, slices)), (part(0), 2));
    let new = ingress("team-3", "new", "new.team-3.test");
    assert_eq!(warm.change(|world| put(world, "team-3", "new", new)), (part(1), 4));
    let tls = ObjectName::new("team-3", "tls");
    assert_eq!(warm.change(|world| assert!(world.referents.secrets.remove(&tls))), (part(0), 1));
}

#[test]
fn another_layout_is_a_full_translation() {
    let shared: Arc<PingsixProxy> = object(json!({
        "metadata": {"namespace": "infra", "name": "edge"}, "spec": {"attached": {"layout": "Shared"}},
    }));
    let mut warm = WarmTranslator::per_port();
    let mut world = warm.world.clone();
    world.referents.proxies.insert(ObjectName::new("infra", "edge"), shared);
    let got = warm.translator.translate_ingress(&world);
    assert_eq!((warm.translator.last_mode(), got.data_planes.len()), (TranslationMode::Full, 1));
    assert_same(&got, &translate_ingress(&world, &Options::default()));
}

#[test]
fn an_ingress_with_several_hosts_is_as_many_routes() {
    let mut warm = WarmTranslator::new();
    let mut written = serde_json::to_value(&*ingress("team-3", "new", "one.test")).unwrap();
    let mut rule = written["spec"]["rules"][0].clone();
    rule["host"] = json!("two.test");
    written["spec"]["rules"].as_array_mut().unwrap().push(rule);
    assert_eq!(warm.change(|world| put(world, "team-3", "new", object(written))), (part(2), 4));
}

#[test]
fn a_new_generation_or_a_status_address_changes_no_document() {
    let mut warm = WarmTranslator::new();
    let name = ObjectName::new("team-3", "route-3");
    let newer = with(&*warm.world.ingresses[&name], "/metadata/generation", json!(2));
    assert_eq!(warm.change(|world| put(world, "team-3", "route-3", newer)), (part(1), 0));
    assert_eq!(warm.change(|_| {}), (part(0), 0));
    let proxy: Arc<PingsixProxy> = object(json!({
        "metadata": {"namespace": "infra", "name": "edge"},
        "spec": {"attached": {"addresses": [{"value": "192.0.2.1"}]}},
    }));
    let parameters = warm.change(|world| {
        world.referents.proxies.insert(ObjectName::new("infra", "edge"), proxy);
    });
    assert_eq!(parameters, (part(0), 0));
}

#[test]
fn a_host_that_another_namespace_names_too_concerns_those_who_name_it() {
    let mut warm = WarmTranslator::new();
    let also = ingress("team-4", "also", "route-3.team-3.test");
    // The two Ingresses share their cells, and both are told of it.
    assert_eq!(warm.change(|world| put(world, "team-4", "also", also)).0, part(2));
    let mut warm = WarmTranslator::owned();
    let younger = with(
        &*ingress("team-4", "also", "route-3.team-3.test"),
        "/metadata/creationTimestamp",
        json!("2026-02-01T00:00:00Z"),
    );
    // Of the younger one nothing is served.
    assert_eq!(warm.change(|world| put(world, "team-4", "also", younger)), (part(1), 0));
    let older = with(
        &*ingress("team-4", "also", "route-3.team-3.test"),
        "/metadata/creationTimestamp",
        json!("2025-01-01T00:00:00Z"),
    );
    // The host changes hands: two Routes, with another upstream.
    assert_eq!(warm.change(|world| put(world, "team-4", "also", older)), (part(1), 2));
}

#[test]
fn a_wildcard_concerns_those_below_it_that_are_of_another_namespace() {
    let mut warm = WarmTranslator::new();
    let wildcard = ingress("team-4", "wildcard", "*.team-3.test");
    let (last_mode, documents) = warm.change(|world| put(world, "team-4", "wildcard", wildcard));
    assert_eq!((last_mode, documents), (part(ROUTES_PER_TEAM + 1), 2));
}

#[test]
fn a_certificate_that_is_rotated_is_one_document() {
    let mut objects = Objects::default();
    add_secret_of(&mut objects, "team-3", "tls", "route-0.team-3.test");
    let rotated = objects.secrets().next().unwrap().1.clone();
    let change = WarmTranslator::new().change(|world| {
        world.referents.secrets.insert(ObjectName::new("team-3", "tls"), rotated);
    });
    assert_eq!(change, (part(0), 1));
}

#[test]
fn a_certificate_that_cannot_be_used_any_more_is_one_document_less() {
    let change = WarmTranslator::new().change(|world| {
        assert!(world.referents.secrets.remove(&ObjectName::new("team-3", "tls")));
    });
    assert_eq!(change, (part(0), 1));
}
