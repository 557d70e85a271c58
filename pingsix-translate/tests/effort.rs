//! The cost of one change of a table with three hundred routes, and the documents that change.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

#[path = "effort/hostile.rs"]
mod hostile;
#[path = "effort/ingress.rs"]
mod ingress;
#[path = "effort/ingress_policies.rs"]
mod ingress_policies;
#[path = "effort/over_budget.rs"]
mod over_budget;
#[path = "effort/security.rs"]
mod security;

use std::sync::Arc;

use pingsix_translate::snapshot::{
    AnyPolicy, AnyRoute, BackendTlsPolicy, BackendTrafficPolicy, HttpRoute, Namespace, Referents,
    TrafficPolicy,
};
use pingsix_translate::{
    Kind, Layout, Object, ObjectKey, ObjectName, Objects, Options, SharedMap, Snapshot, Translation,
    TranslationMode, Translator, translate,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const TEAMS: usize = 10;
/// Routes of each team.
const ROUTES_PER_TEAM: usize = 30;

fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// The same object, but for a value.
fn with<T: DeserializeOwned + Serialize>(of: &T, pointer: &str, value: Value) -> Arc<T> {
    let mut written = serde_json::to_value(of).unwrap();
    *written.pointer_mut(pointer).unwrap() = value;
    object(written)
}

fn add_service(objects: &mut Objects, namespace: &str, name: &str) {
    objects.insert(Object::Service(object(json!({
        "metadata": {"namespace": namespace, "name": name}, "spec": {"ports": [{"port": 80}]},
    }))));
    objects.insert(Object::EndpointSlice(object(json!({
        "metadata": {"namespace": namespace, "name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    }))));
}

fn add_secret(objects: &mut Objects, name: &str, hostname: &str) {
    add_secret_of(objects, "infra", name, hostname);
}

fn add_secret_of(objects: &mut Objects, namespace: &str, name: &str, hostname: &str) {
    let pair = rcgen::generate_simple_self_signed([hostname.to_owned()]).unwrap();
    objects.insert(Object::Secret(object(json!({
        "metadata": {"namespace": namespace, "name": name},
        "stringData": {"tls.crt": pair.cert.pem(), "tls.key": pair.signing_key.serialize_pem()},
    }))));
}

fn route(namespace: &str, name: &str, hostname: &str) -> Arc<HttpRoute> {
    object(json!({
        "metadata": {"namespace": namespace, "name": name, "generation": 1},
        "spec": {
            "parentRefs": [{"name": "public", "namespace": "infra"}],
            "hostnames": [hostname],
            "rules": [
                {"backendRefs": [{"name": "shared", "namespace": "infra", "port": 80}]},
                {"matches": [{"path": {"value": "/own"}}], "backendRefs": [{"name": "own", "port": 80}]},
            ],
        },
    }))
}

/// Ten teams with a namespace each that a selector lets in. Every route refers to one Service of all teams, which takes a
/// grant, and to the one of its team. Besides, there is a listener with a certificate for each team.
fn world() -> Snapshot {
    let mut objects = Objects::default();
    let selector = json!({"matchLabels": {"team": "yes"}});
    let mut listeners = vec![json!({
        "name": "http", "port": 80, "protocol": "HTTP",
        "allowedRoutes": {"namespaces": {"from": "Selector", "selector": selector}},
    })];
    add_service(&mut objects, "infra", "shared");
    for team in 0..TEAMS {
        let namespace = format!("team-{team}");
        listeners.push(json!({
            "name": format!("tls-{team}"), "port": 443, "protocol": "HTTPS",
            "hostname": format!("{namespace}.test"), "tls": {"certificateRefs": [{"name": namespace}]},
        }));
        add_secret(&mut objects, &namespace, &format!("{namespace}.test"));
        add_service(&mut objects, &namespace, "own");
        objects.insert(Object::Namespace(object(json!({
            "metadata": {"name": namespace, "labels": {"team": "yes", "tier": "one"}},
        }))));
        objects.insert(Object::ReferenceGrant(object(json!({
            "metadata": {"namespace": "infra", "name": namespace},
            "spec": {
                "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": namespace}],
                "to": [{"group": "", "kind": "Service"}],
            },
        }))));
        for number in 0..ROUTES_PER_TEAM {
            let name = format!("route-{number}");
            let hostname = format!("{name}.{namespace}.example.com");
            objects.insert(Object::HttpRoute(route(&namespace, &name, &hostname)));
        }
    }
    objects.insert(Object::Gateway(object(json!({
        "metadata": {"namespace": "infra", "name": "public", "generation": 1},
        "spec": {"gatewayClassName": "pingsix", "listeners": listeners},
    }))));
    objects.snapshot(&ObjectName::new("infra", "public")).unwrap()
}

fn options() -> Options {
    Options { layout: Layout::PerPort, ..Options::default() }
}

/// The number of different documents.
fn difference(one: &Translation, other: &Translation) -> usize {
    let planes = one.data_planes.iter();
    planes
        .map(|(key, plane)| {
            let before = other.data_planes[key].config.documents();
            plane.config.documents().changes(before).len()
        })
        .sum()
}

fn assert_same(got: &Translation, fresh: &Translation) {
    assert!(got.data_planes.keys().eq(fresh.data_planes.keys()));
    for (one, other) in got.data_planes.values().zip(fresh.data_planes.values()) {
        assert_eq!(one.config, other.config);
        assert_eq!((&one.provenance, one.size), (&other.provenance, other.size));
    }
    assert_eq!(got.verdicts, fresh.verdicts);
}

/// A translator that has seen the world.
struct WarmTranslator {
    world: Snapshot,
    before: Translation,
    translator: Translator,
}

impl WarmTranslator {
    fn new() -> Self {
        let (world, mut translator) = (world(), Translator::new(options()));
        let before = translator.translate(&world);
        assert_eq!(translator.last_mode(), TranslationMode::Full);
        Self { world, before, translator }
    }

    /// Changes the world, and back: what the change took, and how many documents came out different.
    fn change(&mut self, change: impl FnOnce(&mut Snapshot)) -> (TranslationMode, usize) {
        let mut world = self.world.clone();
        change(&mut world);
        let got = self.translator.translate(&world);
        let last_mode = self.translator.last_mode();
        let fresh = translate(&world, &options());
        assert_same(&got, &fresh);
        let different = difference(&got, &self.before);
        self.before = self.translator.translate(&self.world);
        let fresh = translate(&self.world, &options());
        assert_same(&self.before, &fresh);
        (last_mode, different)
    }
}

const fn part(routes: usize) -> TranslationMode {
    TranslationMode::Incremental { routes }
}

fn slices(snapshot: &mut Snapshot, service: &ObjectName, endpoints: Value) {
    change_slices(&mut snapshot.referents, service, endpoints);
}

fn change_slices(referents: &mut Referents, service: &ObjectName, endpoints: Value) {
    let slices = &mut referents.endpoint_slices;
    let changed = with(&*slices[service][0], "/endpoints", endpoints);
    slices.insert(service.clone(), vec![changed]);
}

#[test]
fn another_endpoint_of_a_service_that_all_routes_refer_to_is_one_document() {
    let other = json!([{"addresses": ["10.0.0.9"]}]);
    let shared = ObjectName::new("infra", "shared");
    assert_eq!(WarmTranslator::new().change(|world| slices(world, &shared, other)), (part(0), 1));
}

#[test]
fn a_service_without_endpoints_concerns_the_routes_that_refer_to_it() {
    let own = ObjectName::new("team-3", "own");
    // A Route each, the upstream that goes, and the one that nobody reaches.
    assert_eq!(
        WarmTranslator::new().change(|world| slices(world, &own, json!([]))),
        (part(ROUTES_PER_TEAM), ROUTES_PER_TEAM + 2)
    );
}

#[test]
fn a_route_that_changes_comes_or_goes_is_what_is_done_again() {
    let mut warm = WarmTranslator::new();
    let key = ObjectKey::new(Kind::HttpRoute, "team-3", "route-3");
    let AnyRoute::HttpRoute(before) = &warm.world.routes[&key] else { panic!("an HTTPRoute") };
    let changed = with(&**before, "/spec/rules/1/matches/0/path/value", json!("/other"));
    let replaced = warm.change(|world| {
        world.routes.insert(key.clone(), AnyRoute::HttpRoute(changed));
    });
    assert_eq!(replaced, (part(1), 3), "a Route that goes, one that comes, one that lists their patterns");
    let gone = warm.change(|world| assert!(world.routes.remove(&key)));
    assert_eq!(gone, (part(0), 2));
    let came = warm.change(|world| {
        let new = AnyRoute::HttpRoute(route("team-3", "new", "new.example.com"));
        world.routes.insert(new.key(), new);
    });
    assert_eq!(came, (part(1), 2));
}

#[test]
fn a_route_for_every_host_does_not_concern_routes_whose_lists_end() {
    let mut warm = WarmTranslator::new();
    let everywhere = with(&*route("team-3", "catch-all", "a.test"), "/spec/hostnames", json!([]));
    let came = warm.change(|world| {
        let everywhere = AnyRoute::HttpRoute(everywhere);
        world.routes.insert(everywhere.key(), everywhere);
    });
    assert_eq!(came, (part(1), 2));
}

#[test]
fn a_certificate_that_is_rotated_is_one_document() {
    let mut objects = Objects::default();
    add_secret(&mut objects, "team-3", "team-3.test");
    let rotated = objects.secrets().next().unwrap().1.clone();
    let change = WarmTranslator::new().change(|world| {
        world.referents.secrets.insert(ObjectName::new("infra", "team-3"), rotated);
    });
    assert_eq!(change, (part(0), 1));
}

#[test]
fn a_certificate_that_cannot_be_used_any_more_takes_its_listener_with_it() {
    let change = WarmTranslator::new().change(|world| {
        assert!(world.referents.secrets.remove(&ObjectName::new("infra", "team-3")));
    });
    assert_eq!(change.0, TranslationMode::Full);
}

fn relabel(world: &mut Snapshot, label: &str) {
    let name: Arc<str> = Arc::from("team-3");
    let pointer = format!("/metadata/labels/{label}");
    let changed: Arc<Namespace> = with(&*world.referents.namespaces[&name], &pointer, json!("other"));
    world.referents.namespaces.insert(name, changed);
}

#[test]
fn labels_of_a_namespace_concern_its_routes_only_through_a_selector() {
    let mut warm = WarmTranslator::new();
    assert_eq!(warm.change(|world| relabel(world, "tier")), (part(0), 0));
    // Two Routes each, and the upstream of their own Service.
    assert_eq!(warm.change(|world| relabel(world, "team")), (part(ROUTES_PER_TEAM), 2 * ROUTES_PER_TEAM + 1));
}

#[test]
fn a_namespace_without_references_costs_no_work() {
    let change = WarmTranslator::new().change(|world| {
        let new = object(json!({"metadata": {"name": "new", "labels": {"tier": "one"}}}));
        world.referents.namespaces.insert(Arc::from("new"), new);
    });
    assert_eq!(change, (part(0), 0));
}

#[test]
fn a_grant_concerns_the_routes_that_it_is_for() {
    let mut warm = WarmTranslator::new();
    let grant = ObjectName::new("infra", "team-3");
    let gone = warm.change(|world| assert!(world.referents.reference_grants.remove(&grant)));
    assert_eq!(gone, (part(ROUTES_PER_TEAM), ROUTES_PER_TEAM + 1));
    let other = object(json!({
        "metadata": {"namespace": "team-3", "name": "other"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "team-4"}],
            "to": [{"group": "", "kind": "Service"}],
        },
    }));
    let nobody = warm.change(|world| {
        world.referents.reference_grants.insert(ObjectName::new("team-3", "other"), other);
    });
    assert_eq!(nobody, (part(0), 0));
}

fn put_policy(policies: &mut SharedMap<ObjectKey, AnyPolicy>, policy: impl Into<AnyPolicy>) {
    let policy = policy.into();
    policies.insert(policy.key(), policy);
}

#[test]
fn a_policy_concerns_the_routes_that_refer_to_its_service() {
    let policy: Arc<BackendTlsPolicy> = object(json!({
        "metadata": {"namespace": "team-3", "name": "tls", "generation": 1},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "own"}],
            "validation": {"wellKnownCACertificates": "System", "hostname": "own.test"},
        },
    }));
    let change = WarmTranslator::new().change(|world| {
        put_policy(&mut world.policies, policy);
    });
    assert_eq!(change, (part(ROUTES_PER_TEAM), ROUTES_PER_TEAM + 2));
}

#[test]
fn settings_concern_the_routes_that_refer_to_the_service() {
    let policy = |retries: u32| -> Arc<BackendTrafficPolicy> {
        object(json!({
            "metadata": {"namespace": "team-3", "name": "traffic", "generation": 1},
            "spec": {
                "targetRefs": [{"group": "", "kind": "Service", "name": "own"}],
                "retry": {"numRetries": retries},
            },
        }))
    };
    let mut warm = WarmTranslator::new();
    for retries in [2, 3] {
        let change = warm.change(|world| {
            put_policy(&mut world.policies, policy(retries));
        });
        assert_eq!(change.0, part(ROUTES_PER_TEAM));
    }
}

#[test]
fn a_new_limit_touches_its_route_and_a_changed_one_its_service_alone() {
    let limit = |requests: u32| -> Arc<TrafficPolicy> {
        object(json!({
            "apiVersion": "pingsix.io/v1alpha1", "kind": "TrafficPolicy",
            "metadata": {"namespace": "team-3", "name": "limit", "generation": 1},
            "spec": {
                "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "route-3"}],
                "rateLimit": {"local": {"limit": {"requests": requests, "unit": "Minute"}}},
            },
        }))
    };
    let key = ObjectKey::new(Kind::TrafficPolicy, "team-3", "limit");
    let mut warm = WarmTranslator::new();
    let came = warm.change(|world| {
        put_policy(&mut world.policies, limit(3));
    });
    // Two Routes, and the service.
    assert_eq!(came, (part(1), 3));
    put_policy(&mut warm.world.policies, limit(3));
    warm.change(|_| {});
    let changed = warm.change(|world| {
        put_policy(&mut world.policies, limit(4));
    });
    assert_eq!(changed, (part(0), 1));
    let gone = warm.change(|world| assert!(world.policies.remove(&key)));
    assert_eq!(gone, (part(1), 3));
}

#[test]
fn a_gateway_change_concerns_routes_only_if_they_see_it() {
    let mut warm = WarmTranslator::new();
    let newer = with(&*warm.world.gateway, "/metadata/generation", json!(2));
    assert_eq!(warm.change(|world| world.gateway = newer), (part(0), 0));
    let other = with(&*warm.world.gateway, "/spec/listeners/1/hostname", json!("other.test"));
    assert_eq!(warm.change(|world| world.gateway = other).0, TranslationMode::Full);
    assert_eq!(warm.change(|_| {}), (part(0), 0));
}
