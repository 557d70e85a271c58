//! The comparison of a world with a fresh one after every event.

mod security;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use kube_runtime::watcher;
use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::selection::{Changed, Extract, ObjectSource as _};
use pingsix_translate::snapshot::{
    EndpointSlice, Gateway, GatewayClass, HttpRoute, Ingress, IngressClass, ListenerSet, Namespace,
    OwnerSnapshot, ReferenceGrant, Secret, Service,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Options, Translation, translate, translate_ingress};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use regex::Regex;
use serde_json::{Value, json};

use super::{Effects, Event, World};
use crate::fixture::generate::{event_of, merge, object};
use crate::watch::Watched;

fn gateway_event(event: watcher::Event<Watched<Gateway>>) -> Event {
    event.into()
}

fn applied<K: super::Stored>(value: Value) -> Event
where
    Event: From<watcher::Event<Watched<K>>>,
{
    watcher::Event::Apply(serde_json::from_value::<Watched<K>>(value).unwrap()).into()
}

fn owners(effects: &Effects) -> Vec<String> {
    effects.owners.iter().map(ToString::to_string).collect()
}

fn gateway(name: &str, class: &str, version: u32) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "infra", "resourceVersion": version.to_string()},
        "spec": {"gatewayClassName": class, "listeners": [{"name": "a", "port": 80, "protocol": "HTTP",
            "allowedRoutes": {"namespaces": {"from": "All"}}}]},
    })
}

fn route(gateway: &str, service: &str, version: u32) -> Value {
    json!({
        "metadata": {"name": "cart", "namespace": "shop", "resourceVersion": version.to_string()},
        "spec": {
            "parentRefs": [{"name": gateway, "namespace": "infra"}],
            "rules": [{"backendRefs": [{"name": service, "port": 80}]}],
        },
    })
}

fn service(name: &str, version: u32) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": version.to_string()},
        "spec": {"ports": [{"port": i32::try_from(version).unwrap()}]},
    })
}

fn slice(name: &str, service: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": service},
            "resourceVersion": service,
        },
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}],
    })
}

#[test]
fn a_route_that_moves_concerns_its_old_gateway_and_its_new_one() {
    let mut world = World::default();
    world.apply(applied::<Gateway>(gateway("one", "pingsix", 1)));
    world.apply(applied::<Gateway>(gateway("two", "pingsix", 1)));
    assert_eq!(owners(&world.apply(applied::<HttpRoute>(route("one", "cart", 1)))), ["Gateway infra/one"]);
    let effects = world.apply(applied::<HttpRoute>(route("two", "cart", 2)));
    assert_eq!(owners(&effects), ["Gateway infra/one", "Gateway infra/two"]);
}

#[test]
fn a_service_that_was_looked_for_concerns_those_who_missed_it() {
    let mut world = World::default();
    world.apply(applied::<Gateway>(gateway("one", "pingsix", 1)));
    world.apply(applied::<HttpRoute>(route("one", "cart", 1)));
    assert_eq!(owners(&world.apply(applied::<Service>(service("cart", 1)))), ["Gateway infra/one"]);
    assert!(owners(&world.apply(applied::<Service>(service("other", 1)))).is_empty());
}

#[test]
fn a_status_by_whomever_concerns_only_the_writer_of_statuses() {
    let mut world = World::default();
    world.apply(applied::<Gateway>(gateway("one", "pingsix", 1)));
    let mut written = gateway("one", "pingsix", 2);
    written["status"] = json!({"conditions": []});
    written["metadata"]["managedFields"] = json!([{"manager": "someone"}]);
    let effects = world.apply(applied::<Gateway>(written));
    let key = ObjectKey::new(Kind::Gateway, "infra", "one");
    assert_eq!(effects, Effects { touched: [key].into(), ..Effects::default() });
}

#[test]
fn an_event_costs_what_it_concerns_however_large_the_cluster_is() {
    let cost = |routes: u32| {
        let mut world = World::default();
        world.apply(applied::<Gateway>(gateway("one", "pingsix", 1)));
        for index in 0..routes {
            let mut route = route("one", &format!("s{index}"), 1);
            route["metadata"]["name"] = json!(format!("r{index}"));
            world.apply(applied::<HttpRoute>(route));
        }
        let before = world.work();
        world.apply(applied::<Service>(service("s0", 1)));
        let mut changed = route("one", "s1", 2);
        changed["metadata"]["name"] = json!("r0");
        world.apply(applied::<HttpRoute>(changed));
        (world.work().objects - before.objects, world.work().entries - before.entries)
    };
    assert_eq!(cost(2), (3, 2));
    assert_eq!(cost(2), cost(1_000));
}

#[test]
fn an_event_of_any_kind_costs_the_same_beside_any_unconcerned_objects() {
    let cost = |kind: Kind, others: u32| {
        let mut world = World::default();
        let mut apply = |kind: Kind, mut object: Value, index: u32| {
            object["metadata"]["namespace"] = json!(format!("tenant-{index}"));
            world.apply(event_of(kind, watcher::Event::Apply(object)));
        };
        for index in 0..=others {
            for (kind, object) in of_tenant(1) {
                apply(kind, object, index);
            }
        }
        let changed = of_tenant(2).into_iter().find(|(other, _)| *other == kind);
        let (_, mut changed) = changed.expect("a tenant has one of every kind");
        changed["metadata"]["namespace"] = json!("tenant-0");
        let before = (world.work(), world.steps());
        world.apply(event_of(kind, watcher::Event::Apply(changed)));
        let after = (world.work(), world.steps());
        (after.0.objects - before.0.objects, after.0.entries - before.0.entries, after.1 - before.1)
    };
    for (kind, _) in of_tenant(1) {
        assert_eq!(cost(kind, 1), cost(kind, 30), "{kind}");
    }
}

/// The objects of a tenant with its own Gateway: one of each namespaced kind.
fn of_tenant(version: u32) -> Vec<(Kind, Value)> {
    let versioned = |name: &str, spec: Value| json!({"metadata": {"name": name, "resourceVersion": version.to_string(), "generation": version}, "spec": spec});
    let parent = json!([{"name": "own"}]);
    let rules = json!([{"backendRefs": [{"name": "cart", "port": 80 + version}]}]);
    let mut gateway = gateway("own", "pingsix", version);
    gateway["spec"]["listeners"][0]["protocol"] = json!("HTTPS");
    gateway["spec"]["listeners"][0]["tls"] = json!({"certificateRefs": [{"name": "tls"}]});
    gateway["spec"]["allowedListeners"] = json!({"namespaces": {"from": "Same"}});
    let mut slice = slice("cart-1", "cart");
    slice["metadata"]["resourceVersion"] = json!(version.to_string());
    slice["endpoints"][0]["addresses"] = json!([format!("10.0.0.{version}")]);
    let data = json!({"tls.crt": "AAAA", "tls.key": if version == 1 { "AAAA" } else { "BBBB" }});
    let listener =
        json!([{"name": "b", "port": 80, "protocol": "HTTP", "hostname": format!("h{version}.test")}]);
    vec![
        (Kind::Gateway, gateway),
        (Kind::ListenerSet, versioned("set", json!({"parentRef": {"name": "own"}, "listeners": listener}))),
        (Kind::HttpRoute, versioned("http", json!({"parentRefs": parent, "rules": rules}))),
        (Kind::GrpcRoute, versioned("grpc", json!({"parentRefs": parent, "rules": rules}))),
        (
            Kind::TlsRoute,
            versioned("tls", json!({"parentRefs": parent, "hostnames": ["a.test"], "rules": rules})),
        ),
        (Kind::TcpRoute, versioned("tcp", json!({"parentRefs": parent, "rules": rules}))),
        (Kind::UdpRoute, versioned("udp", json!({"parentRefs": parent, "rules": rules}))),
        (
            Kind::ReferenceGrant,
            versioned(
                "grant",
                json!({
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": format!("n{version}")}],
            "to": [{"group": "", "kind": "Service"}]}),
            ),
        ),
        (
            Kind::BackendTrafficPolicy,
            versioned(
                "traffic",
                json!({
            "targetRefs": [{"group": "", "kind": "Service", "name": "cart"}],
            "retry": {"numRetries": version}}),
            ),
        ),
        (
            Kind::BackendTlsPolicy,
            versioned(
                "policy",
                json!({
            "targetRefs": [{"group": "", "kind": "Service", "name": "cart"}],
            "validation": {"wellKnownCACertificates": "System", "hostname": format!("h{version}.test")}}),
            ),
        ),
        (
            Kind::SecurityPolicy,
            versioned(
                "security",
                json!({
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "http"}],
            "authorization": {"allow": [format!("10.{version}.0.0/16")]}}),
            ),
        ),
        (
            Kind::TrafficPolicy,
            versioned(
                "traffic",
                json!({
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "http"}],
            "rateLimit": {"local": {"limit": {"requests": version, "unit": "Minute"}}}}),
            ),
        ),
        (
            Kind::Ingress,
            versioned(
                "ingress",
                json!({"ingressClassName": "pingsix",
            "defaultBackend": {"service": {"name": "cart", "port": {"number": 80 + version}}}}),
            ),
        ),
        (Kind::Service, service("cart", version)),
        (Kind::EndpointSlice, slice),
        (
            Kind::Secret,
            json!({"metadata": {"name": "tls", "resourceVersion": version.to_string()}, "data": data}),
        ),
    ]
}

#[test]
fn a_service_costs_its_owners_however_many_routes_share_it() {
    let cost = |routes: u32| {
        let mut world = World::default();
        for gateway_name in ["one", "two"] {
            world.apply(applied::<Gateway>(gateway(gateway_name, "pingsix", 1)));
        }
        for index in 0..routes {
            let mut route = route(["one", "two"][index as usize % 2], "cart", 1);
            route["metadata"]["name"] = json!(format!("r{index}"));
            world.apply(applied::<HttpRoute>(route));
        }
        let before = world.steps();
        let effects = world.apply(applied::<EndpointSlice>(slice("cart-1", "cart")));
        assert_eq!(owners(&effects), ["Gateway infra/one", "Gateway infra/two"]);
        let of_a_slice = world.steps() - before;
        // The last route of a Gateway is deleted, so the Service no longer affects the Gateway.
        for index in (1..routes).step_by(2) {
            let key = ObjectKey::new(Kind::HttpRoute, "shop", &*format!("r{index}"));
            assert_eq!(owners(&world.remove(&key)), ["Gateway infra/two"]);
        }
        assert_eq!(owners(&world.apply(applied::<Service>(service("cart", 1)))), ["Gateway infra/one"]);
        of_a_slice
    };
    assert_eq!(cost(4), 5);
    assert_eq!(cost(4), cost(1_000));
}

#[test]
fn an_undecodable_object_exists_and_has_no_effect() {
    let mut world = World::default();
    let mut broken = gateway("one", "pingsix", 1);
    broken["spec"]["listeners"] = json!("none");
    world.apply(applied::<Gateway>(broken));
    let key = ObjectKey::new(Kind::Gateway, "infra", "one");
    assert!(world.contains(&key) && Extract::new(&world, &key).is_none());
    assert_eq!(world.undecodable().len(), 1);
}

#[test]
fn secrets_to_be_watched_are_those_a_snapshot_refers_to() {
    let mut world = World::default();
    let mut with_tls = gateway("one", "pingsix", 1);
    with_tls["spec"]["listeners"][0]["tls"] = json!({"certificateRefs": [
        {"name": "here"}, {"name": "there", "namespace": "shop"}, {"name": "elsewhere", "namespace": "pay"},
        {"name": "vault", "group": "example.com", "kind": "Certificate"},
    ]});
    world.apply(applied::<Gateway>(with_tls));
    world.apply(applied::<ReferenceGrant>(grant("shop", "Gateway", "there")));
    assert_eq!(referenced(&world), ["Secret infra/here", "Secret shop/there"]);
    let secret = json!({"metadata": {"name": "there", "namespace": "shop", "resourceVersion": "1"}});
    assert_eq!(owners(&world.apply(applied::<Secret>(secret))), ["Gateway infra/one"]);
}

/// Lets objects of a kind in namespace `infra` and `team` refer to a Secret of a namespace.
fn grant(namespace: &str, from: &str, secret: &str) -> Value {
    let from =
        |namespace: &str| json!({"group": "gateway.networking.k8s.io", "kind": from, "namespace": namespace});
    json!({
        "metadata": {"name": "grant", "namespace": namespace, "resourceVersion": format!("{secret}")},
        "spec": {"from": [from("infra"), from("team")], "to": [{"group": "", "kind": "Secret", "name": secret}]},
    })
}

/// The references to watch for Gateway `infra/one`.
fn referenced(world: &World) -> Vec<String> {
    let extract = Extract::new(world, &ObjectKey::new(Kind::Gateway, "infra", "one")).unwrap();
    extract.referenced.iter().map(ToString::to_string).collect()
}

#[test]
fn a_secret_that_may_not_be_used_is_not_watched() {
    let key = ObjectKey::new(Kind::Gateway, "infra", "one");
    let mut world = World::default();
    let mut with_tls = gateway("one", "pingsix", 1);
    with_tls["spec"]["listeners"][0]["tls"] =
        json!({"certificateRefs": [{"name": "there", "namespace": "shop"}]});
    with_tls["spec"]["allowedListeners"] =
        json!({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"edge": "yes"}}}});
    with_tls["spec"]["tls"] = json!({"frontend": {"default": {"validation": {"caCertificateRefs": [
        {"group": "", "kind": "ConfigMap", "name": "ca", "namespace": "shop"},
        {"group": "", "kind": "ConfigMap", "name": "ca"},
    ]}}}});
    world.apply(applied::<Gateway>(with_tls));
    let listeners = json!([{"name": "l", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [
        {"name": "own"}, {"name": "there", "namespace": "shop"},
    ]}}]);
    world.apply(applied::<ListenerSet>(json!({
        "metadata": {"name": "set", "namespace": "team", "resourceVersion": "1"},
        "spec": {"parentRef": {"name": "one", "namespace": "infra"}, "listeners": listeners},
    })));
    // There is no grant, and the ListenerSet is not allowed.
    assert_eq!(referenced(&world), ["ConfigMap infra/ca"]);
    let mut extract = Extract::new(&world, &key).unwrap();
    let labelled = |edge: &str, version: &str| json!({"metadata": {"name": "team", "labels": {"edge": edge}, "resourceVersion": version}});
    let effects = world.apply(applied::<Namespace>(labelled("yes", "1")));
    assert_eq!(owners(&effects), ["Gateway infra/one"]);
    // An extract that is kept would not tell.
    assert!(!extract.refresh(&world, &Changed { objects: effects.touched, ..Changed::default() }));
    assert_eq!(referenced(&world), ["Secret team/own", "ConfigMap infra/ca"]);
    // A grant counts for the kind and the name it is for.
    world.apply(applied::<ReferenceGrant>(grant("shop", "Gateway", "other")));
    world.apply(applied::<ReferenceGrant>(grant("shop", "HTTPRoute", "there")));
    assert_eq!(referenced(&world), ["Secret team/own", "ConfigMap infra/ca"]);
    let effects = world.apply(applied::<ReferenceGrant>(grant("shop", "ListenerSet", "there")));
    assert_eq!(owners(&effects), ["Gateway infra/one"]);
    assert_eq!(referenced(&world), ["Secret shop/there", "Secret team/own", "ConfigMap infra/ca"]);
    // A snapshot without the permission lacks even a known object.
    world.apply(applied::<Namespace>(labelled("no", "2")));
    world.apply(applied::<Secret>(
        json!({"metadata": {"name": "own", "namespace": "team", "resourceVersion": "1"}}),
    ));
    assert_eq!(referenced(&world), ["ConfigMap infra/ca"]);
    let OwnerSnapshot::Gateway(snapshot) = Extract::new(&world, &key).unwrap().snapshot else {
        panic!("a Gateway's")
    };
    assert_eq!(snapshot.referents.secrets.len(), 0);
}

#[test]
fn secrets_of_parameters_are_watched_and_concern_users_of_the_parameters() {
    let key = ObjectKey::new(Kind::Gateway, "infra", "one");
    let named = |secret: &str| {
        let managed = json!({"process": {"dataEncryption": {"keyringSecretRef": {"name": secret}}}});
        json!({
            "metadata": {"name": "edge", "namespace": "system", "resourceVersion": secret},
            "spec": {"managed": managed},
        })
    };
    let secret =
        |name: &str| json!({"metadata": {"name": name, "namespace": "system", "resourceVersion": "1"}});
    let mut world = World::default();
    let parameters =
        json!({"group": "pingsix.io", "kind": "PingsixProxy", "name": "edge", "namespace": "system"});
    world.apply(applied::<GatewayClass>(json!({
        "metadata": {"name": "pingsix", "resourceVersion": "1"},
        "spec": {"controllerName": "pingsix.io/gateway-controller", "parametersRef": parameters},
    })));
    world.apply(applied::<Gateway>(gateway("one", "pingsix", 1)));
    world.apply(applied::<PingsixProxy>(named("old")));
    let mut extract = Extract::new(&world, &key).unwrap();
    let referenced =
        |extract: &Extract| extract.referenced.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(referenced(&extract), ["Secret system/old"]);
    assert_eq!(owners(&world.apply(applied::<Secret>(secret("old")))), ["Gateway infra/one"]);
    // An extract that is kept would not tell.
    let proxy = ObjectKey::new(Kind::PingsixProxy, "system", "edge");
    let changed = Changed { objects: [proxy].into(), ..Changed::default() };
    assert!(extract.refresh(&world, &changed));
    assert_eq!(owners(&world.apply(applied::<PingsixProxy>(named("new")))), ["Gateway infra/one"]);
    assert!(!extract.refresh(&world, &changed));
    assert_eq!(referenced(&Extract::new(&world, &key).unwrap()), ["Secret system/new"]);
    assert!(owners(&world.apply(applied::<Secret>(secret("old")))).is_empty());
}

/// A translation as text.
fn text(translation: &Translation) -> String {
    let mut text = format!("{:#?}\n", translation.verdicts);
    let _ = writeln!(text, "{:?}\n{:?}", translation.infrastructure, translation.attached);
    for (key, plane) in &translation.data_planes {
        for (document, content) in plane.config.iter() {
            let _ =
                writeln!(text, "{key} {document} {} {:?}", content.to_json(), plane.provenance.get(document));
        }
    }
    for (key, plane) in &translation.stream_planes {
        let _ = writeln!(text, "{key} {plane:?}");
    }
    text
}

fn translated(snapshot: &OwnerSnapshot, options: &Options) -> String {
    text(&match snapshot {
        OwnerSnapshot::Gateway(snapshot) => translate(snapshot, options),
        OwnerSnapshot::Ingress(snapshot) => translate_ingress(snapshot, options),
    })
}

/// The translation of every Gateway and IngressClass, from a plain collection of the objects.
fn rebuilt(world: &World, options: &Options) -> BTreeMap<ObjectKey, String> {
    let objects = world.to_objects();
    let gateways = objects.gateways().filter_map(|(name, _)| {
        let snapshot = OwnerSnapshot::Gateway(Box::new(objects.snapshot(name)?));
        Some((ObjectKey { kind: Kind::Gateway, name: name.clone() }, translated(&snapshot, options)))
    });
    let classes = objects.ingress_classes().filter_map(|(name, _)| {
        let snapshot = OwnerSnapshot::Ingress(Box::new(objects.ingress_snapshot(&name.name)?));
        Some((ObjectKey { kind: Kind::IngressClass, name: name.clone() }, translated(&snapshot, options)))
    });
    gateways.chain(classes).collect()
}

#[test]
fn after_any_history_what_was_reconsidered_is_all_that_changed() {
    let options = Options { stream: true, responder: Some(([127, 0, 0, 1], 1).into()), ..Options::default() };
    let histories: u64 =
        std::env::var("PROPERTY_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(6);
    let mut changes = 0;
    for seed in 0..histories {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::default();
        let mut held: BTreeMap<ObjectKey, String> = BTreeMap::new();
        for version in 1..=120 {
            let (what, effects) = step(&mut world, version, &mut random);
            for owner in &effects.owners {
                match Extract::new(&world, owner) {
                    Some(extract) => held.insert(owner.clone(), translated(&extract.snapshot, &options)),
                    None => held.remove(owner),
                };
            }
            let expected = rebuilt(&world, &options);
            changes += effects.owners.len();
            for (owner, expected) in &expected {
                let held = held.get(owner).map_or("nothing", String::as_str);
                assert!(
                    held == expected,
                    "seed {seed}, event {version} ({what}): {owner}\n{}",
                    difference(held, expected)
                );
            }
            assert_eq!(held.len(), expected.len(), "seed {seed}, event {version} ({what})");
        }
    }
    assert!(changes > 100, "the histories change next to nothing");
}

fn difference(held: &str, expected: &str) -> String {
    let (mut old, mut new) = (held.lines(), expected.lines());
    loop {
        match (old.next(), new.next()) {
            (None, None) => return String::new(),
            (old, new) if old == new => {}
            (old, new) => return format!("held:     {old:?}\nexpected: {new:?}"),
        }
    }
}

fn step(world: &mut World, version: u32, random: &mut StdRng) -> (String, Effects) {
    let kind = *Kind::ALL.choose(random).unwrap();
    match random.random_range(0..20) {
        0..15 => {
            let value = object(kind, version, random);
            let what = format!("{kind} {} applied", value["metadata"]["name"]);
            (what, world.apply(event_of(kind, watcher::Event::Apply(value))))
        }
        15..19 => {
            let value = object(kind, version, random);
            let what = format!("{kind} {} deleted", value["metadata"]["name"]);
            (what, world.apply(event_of(kind, watcher::Event::Delete(value))))
        }
        _ => {
            let mut effects = world.apply(event_of(kind, watcher::Event::Init));
            for _ in 0..random.random_range(0..4) {
                let value = object(kind, version, random);
                merge(&mut effects, world.apply(event_of(kind, watcher::Event::InitApply(value))));
            }
            merge(&mut effects, world.apply(event_of(kind, watcher::Event::InitDone)));
            (format!("{kind} relisted"), effects)
        }
    }
}

/// The content of an extract, without the versions of objects with equal content.
fn shown(extract: &Extract) -> String {
    static VERSION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#"resource_version: Some\(\s*"\d+",\s*\)"#).unwrap());
    VERSION.replace_all(&format!("{extract:#?}"), "").into_owned()
}

/// Several changes precede each update, as while an owner rests.
#[test]
fn an_extract_that_is_brought_up_to_date_is_as_a_new_one() {
    let mut kept: BTreeMap<Kind, usize> = BTreeMap::new();
    for seed in 0..30 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut world = World::default();
        let mut held: BTreeMap<ObjectKey, (Extract, Changed)> = BTreeMap::new();
        for version in 1..=300 {
            let (what, effects) = step(&mut world, version, &mut random);
            for owner in &effects.owners {
                let Some((_, changed)) = held.get_mut(owner) else { continue };
                changed.objects.extend(effects.touched.iter().chain(&effects.removed).cloned());
                changed.sliced.extend(effects.sliced.iter().cloned());
            }
            for owner in effects.owners.iter().filter(|_| random.random_bool(0.7)) {
                let (before, new) = (held.remove(owner), Extract::new(&world, owner));
                let Some(new) = new else { continue };
                if let Some((mut extract, changed)) = before
                    && extract.refresh(&world, &changed)
                {
                    let (extract, new) = (shown(&extract), shown(&new));
                    assert!(
                        extract == new,
                        "seed {seed}, event {version} ({what}): {owner}\n{}",
                        difference(&extract, &new)
                    );
                    for key in changed.objects {
                        *kept.entry(key.kind).or_default() += 1;
                    }
                }
                held.insert(owner.clone(), (new, Changed::default()));
            }
        }
    }
    let others = [
        Kind::Ingress,
        Kind::Service,
        Kind::EndpointSlice,
        Kind::Secret,
        Kind::ConfigMap,
        Kind::Namespace,
        Kind::PingsixProxy,
        Kind::HttpRouteFilter,
    ];
    for kind in Kind::routes().chain(others) {
        assert!(kept.get(&kind).is_some_and(|kept| *kept > 20), "{kind}: {kept:?}");
    }
}

#[test]
fn a_route_with_its_service_comes_and_goes_without_a_new_extract() {
    let mut world = World::default();
    world.apply(applied::<Gateway>(gateway("one", "pingsix", 1)));
    let owner = ObjectKey::new(Kind::Gateway, "infra", "one");
    let mut extract = Extract::new(&world, &owner).unwrap();
    let mut take = |world: &World, effects: &Effects| {
        let mut changed = Changed::default();
        changed.objects.extend(effects.touched.iter().chain(&effects.removed).cloned());
        changed.sliced.extend(effects.sliced.iter().cloned());
        assert!(extract.refresh(world, &changed));
        let OwnerSnapshot::Gateway(snapshot) = &extract.snapshot else { panic!("a Gateway's") };
        (
            snapshot.routes.len(),
            snapshot.referents.services.len(),
            snapshot.referents.endpoint_slices.values().map(Vec::len).sum::<usize>(),
        )
    };
    let effects = world.apply(applied::<HttpRoute>(route("one", "cart", 1)));
    assert_eq!(take(&world, &effects), (1, 0, 0));
    let effects = world.apply(applied::<Service>(service("cart", 1)));
    assert_eq!(take(&world, &effects), (1, 1, 0));
    let effects = world.apply(applied::<EndpointSlice>(slice("cart-1", "cart")));
    assert_eq!(take(&world, &effects), (1, 1, 1));
    // The slice moves to another Service, and the route follows.
    let effects = world.apply(applied::<EndpointSlice>(slice("cart-1", "pay")));
    assert_eq!(take(&world, &effects), (1, 1, 0));
    let effects = world.apply(applied::<HttpRoute>(route("one", "pay", 2)));
    assert_eq!(take(&world, &effects), (1, 0, 1));
    let effects = world.apply(applied::<HttpRoute>(route("two", "pay", 3)));
    assert_eq!(take(&world, &effects), (0, 0, 0));
}

#[test]
fn an_ingress_with_its_referents_comes_and_goes_without_a_new_extract() {
    let class = |name: &str| {
        json!({
            "metadata": {"name": name, "resourceVersion": "1"},
            "spec": {"controller": "pingsix.io/gateway-controller"},
        })
    };
    let ingress = |class: &str, service: &str, secret: &str| {
        let backend = json!({"service": {"name": service, "port": {"number": 80}}});
        json!({
            "metadata": {
                "name": "cart", "namespace": "shop", "resourceVersion": format!("{class}{service}{secret}"),
            },
            "spec": {"ingressClassName": class, "defaultBackend": backend, "tls": [{"secretName": secret}]},
        })
    };
    let mut world = World::default();
    world.apply(applied::<IngressClass>(class("one")));
    world.apply(applied::<IngressClass>(class("two")));
    let mut extract = Extract::new(&world, &ObjectKey::new(Kind::IngressClass, "", "one")).unwrap();
    let mut take = |world: &World, effects: &Effects| {
        let mut changed = Changed::default();
        changed.objects.extend(effects.touched.iter().chain(&effects.removed).cloned());
        changed.sliced.extend(effects.sliced.iter().cloned());
        assert!(extract.refresh(world, &changed));
        let OwnerSnapshot::Ingress(snapshot) = &extract.snapshot else { panic!("an IngressClass's") };
        let referents = &snapshot.referents;
        (
            snapshot.ingresses.len(),
            [referents.services.len(), referents.endpoint_slices.len(), referents.secrets.len()],
            extract.referenced.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        )
    };
    let effects = world.apply(applied::<Ingress>(ingress("one", "cart", "tls")));
    assert_eq!(take(&world, &effects), (1, [0, 0, 0], "Secret shop/tls".to_owned()));
    let effects = world.apply(applied::<Service>(service("cart", 1)));
    assert_eq!(take(&world, &effects), (1, [1, 0, 0], "Secret shop/tls".to_owned()));
    let effects = world.apply(applied::<EndpointSlice>(slice("cart-1", "cart")));
    assert_eq!(take(&world, &effects), (1, [1, 1, 0], "Secret shop/tls".to_owned()));
    let secret = json!({"metadata": {"name": "tls", "namespace": "shop", "resourceVersion": "1"}});
    let effects = world.apply(applied::<Secret>(secret));
    assert_eq!(take(&world, &effects), (1, [1, 1, 1], "Secret shop/tls".to_owned()));
    let effects = world.apply(applied::<Ingress>(ingress("one", "pay", "other")));
    assert_eq!(take(&world, &effects), (1, [0, 0, 0], "Secret shop/other".to_owned()));
    let effects = world.apply(applied::<Ingress>(ingress("two", "cart", "tls")));
    assert_eq!(owners(&effects), ["IngressClass one", "IngressClass two"]);
    assert_eq!(take(&world, &effects), (0, [0, 0, 0], String::new()));
}

#[test]
fn an_unfinished_list_reconsiders_nothing() {
    let mut world = World::default();
    assert_eq!(world.apply(gateway_event(watcher::Event::Init)), Effects::default());
    let listed = serde_json::from_value(gateway("one", "pingsix", 1)).unwrap();
    assert_eq!(world.apply(gateway_event(watcher::Event::InitApply(listed))), Effects::default());
    assert!(!world.is_complete(Kind::Gateway));
    assert_eq!(owners(&world.apply(gateway_event(watcher::Event::InitDone))), ["Gateway infra/one"]);
    assert!(world.is_complete(Kind::Gateway));
    assert!(world.get::<Gateway>(&ObjectName::new("infra", "one")).is_some());
}
