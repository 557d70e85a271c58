//! The picture against one that is made anew after every event.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kube_runtime::watcher;
use pingsix_translate::snapshot::{Gateway, HttpRoute, Secret, Service};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Options, Translation, translate, translate_ingress};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use super::generate::{event_of, object};
use super::{Effects, Event, OwnerSnapshot, World};
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
fn what_cannot_be_decoded_is_there_and_serves_nothing() {
    let mut world = World::default();
    let mut broken = gateway("one", "pingsix", 1);
    broken["spec"]["listeners"] = json!("none");
    world.apply(applied::<Gateway>(broken));
    let key = ObjectKey::new(Kind::Gateway, "infra", "one");
    assert!(world.contains(&key) && world.cut(&key).is_none());
    assert_eq!(world.undecodable().len(), 1);
}

#[test]
fn secrets_to_be_watched_are_those_a_snapshot_refers_to() {
    let mut world = World::default();
    let mut with_tls = gateway("one", "pingsix", 1);
    with_tls["spec"]["listeners"][0]["tls"] =
        json!({"certificateRefs": [{"name": "here"}, {"name": "there", "namespace": "shop"}]});
    world.apply(applied::<Gateway>(with_tls));
    let cut = world.cut(&ObjectKey::new(Kind::Gateway, "infra", "one")).unwrap();
    let names: Vec<String> = cut.referenced.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["Secret infra/here", "Secret shop/there"]);
    let secret = json!({"metadata": {"name": "there", "namespace": "shop", "resourceVersion": "1"}});
    assert_eq!(owners(&world.apply(applied::<Secret>(secret))), ["Gateway infra/one"]);
}

/// Everything a translation says, as text.
fn text(translation: &Translation) -> String {
    let mut text = format!("{:#?}\n", translation.verdicts);
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

/// What every Gateway and IngressClass comes to, from a plain collection of the objects.
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
                match world.cut(owner) {
                    Some(cut) => held.insert(owner.clone(), translated(&cut.snapshot, &options)),
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
                effects.merge(world.apply(event_of(kind, watcher::Event::InitApply(value))));
            }
            effects.merge(world.apply(event_of(kind, watcher::Event::InitDone)));
            (format!("{kind} relisted"), effects)
        }
    }
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
