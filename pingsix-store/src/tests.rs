//! The comparison of a store with a fresh one after every event.

use std::collections::{BTreeMap, BTreeSet};

use futures::{TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_runtime::reflector::ObjectRef;
use kube_runtime::watcher::Event;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::{Change, Edge, ObjectName, ReflectorStore, SharedStore, object_ref};

/// Keys of `data` that start with `to-` concern their value, those with `on-` depend on it.
fn store() -> ReflectorStore<ConfigMap, String> {
    ReflectorStore::new([
        Edge::concerns("to", |object, out| extract(object, "to-", out)),
        Edge::depends_on("on", |object, out| extract(object, "on-", out)),
        Edge::depends_on("also", |object, out| extract(object, "also-", out)),
    ])
}

fn extract(object: &ConfigMap, prefix: &str, out: &mut Vec<String>) {
    let data = object.data.iter().flatten();
    out.extend(data.filter(|(key, _)| key.starts_with(prefix)).map(|(_, value)| value.clone()));
}

fn object(name: &str, version: u32, data: &[(&str, &str)]) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.namespace = Some("shop".to_owned());
    object.metadata.resource_version = Some(version.to_string());
    object.data = Some(data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
    object
}

fn names<'a>(names: impl Iterator<Item = &'a ObjectName>) -> Vec<&'a str> {
    names.map(|name| &*name.name).collect()
}

fn dependents(store: &ReflectorStore<ConfigMap, String>, target: &str) -> Vec<String> {
    names(store.dependents(&target.to_owned())).into_iter().map(ToOwned::to_owned).collect()
}

#[test]
fn a_change_names_what_the_old_and_the_new_version_concern() {
    let mut store = store();
    store.apply(Event::Apply(object("a", 1, &[("to-1", "x"), ("on-1", "p"), ("on-2", "q")])));
    let changes = store.apply(Event::Apply(object("a", 2, &[("to-1", "y"), ("on-2", "q")])));
    let [Change::Applied { concerned, released, before: Some(_), .. }] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!((concerned.join(" "), released.join(" ")), ("x y".to_owned(), "p".to_owned()));
    assert_eq!(names(store.members(&"x".to_owned())), [""; 0]);
    assert_eq!(names(store.members(&"y".to_owned())), ["a"]);
    assert_eq!((dependents(&store, "p").len(), dependents(&store, "q").len()), (0, 1));
}

#[test]
fn a_missing_target_finds_its_referrers_when_it_appears() {
    let mut store = store();
    store.apply(Event::Apply(object("a", 1, &[("on-1", "nowhere")])));
    assert_eq!(dependents(&store, "nowhere"), ["a"]);
}

#[test]
fn one_target_by_two_edges_stays_until_both_are_gone() {
    let mut store = store();
    store.apply(Event::Apply(object("a", 1, &[("on-1", "p"), ("also-1", "p")])));
    let changes = store.apply(Event::Apply(object("a", 2, &[("also-1", "p")])));
    assert_eq!(dependents(&store, "p"), ["a"]);
    assert!(matches!(&changes[..], [Change::Applied { released, .. }] if released.is_empty()));
    store.apply(Event::Apply(object("a", 3, &[])));
    assert_eq!((dependents(&store, "p").len(), store.entries()), (0, 0));
}

#[test]
fn a_deletion_takes_away_what_the_store_holds_not_what_the_event_carries() {
    let mut store = store();
    store.apply(Event::Apply(object("a", 1, &[("to-1", "x")])));
    let changes = store.apply(Event::Delete(object("a", 9, &[("to-1", "elsewhere")])));
    assert!(matches!(&changes[..], [Change::Removed { concerned, .. }] if *concerned == ["x"]));
    assert_eq!(store.entries(), 0);
    assert!(store.apply(Event::Delete(object("a", 9, &[]))).is_empty(), "it is gone already");
}

#[test]
fn a_list_changes_nothing_until_it_is_complete() {
    let mut store = store();
    assert!(store.apply(Event::Init).is_empty());
    assert!(store.apply(Event::InitApply(object("a", 1, &[("on-1", "p")]))).is_empty());
    assert!(!store.is_complete());
    assert_eq!(store.apply(Event::InitDone).len(), 1);
    assert!(store.is_complete());

    // An interrupted list restarts, and removes nothing.
    store.apply(Event::Init);
    store.apply(Event::Init);
    assert_eq!(dependents(&store, "p"), ["a"]);
    store.apply(Event::InitApply(object("b", 2, &[("on-1", "p")])));
    let changes = store.apply(Event::InitDone);
    assert_eq!(changes.iter().map(|change| &*change.name().name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(dependents(&store, "p"), ["b"]);
}

#[test]
fn a_relist_of_what_is_there_changes_nothing() {
    let mut store = store();
    store.apply(Event::Apply(object("a", 1, &[("on-1", "p")])));
    let work = store.work();
    store.apply(Event::Init);
    store.apply(Event::InitApply(object("a", 1, &[("on-1", "p")])));
    assert!(store.apply(Event::InitDone).is_empty());
    assert_eq!(store.work(), work);
}

#[test]
fn an_object_with_equal_content_is_only_touched() {
    let mut store = store().comparing(|before, after| before.data == after.data);
    store.apply(Event::Apply(object("a", 1, &[("on-1", "p")])));
    let work = store.work();
    let changes = store.apply(Event::Apply(object("a", 2, &[("on-1", "p")])));
    let [Change::Touched { after, .. }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(after.metadata.resource_version.as_deref(), Some("2"));
    assert_eq!(store.work(), work);
}

#[test]
fn an_event_costs_its_references_however_many_objects_there_are() {
    let cost = |objects: u32| {
        let mut store = store();
        for index in 0..objects {
            store.apply(Event::Apply(object(&format!("o{index}"), 1, &[("on-1", "p"), ("to-1", "x")])));
        }
        let before = store.work();
        store.apply(Event::Apply(object("o0", 2, &[("on-1", "q"), ("to-1", "x")])));
        let after = store.work();
        (after.objects - before.objects, after.entries - before.entries)
    };
    assert_eq!(cost(10), (2, 2));
    assert_eq!(cost(10), cost(2_000));
}

/// Objects by name, and the ends of their edges.
type Picture = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn after_any_history_the_maps_are_those_of_the_objects() {
    let mut random = StdRng::seed_from_u64(7);
    for _ in 0..60 {
        let mut store = store();
        let mut picture = Picture::new();
        for version in 0..40 {
            step(&mut store, &mut picture, version, &mut random);
            check(&store, &picture);
        }
    }
}

fn random_data(random: &mut StdRng) -> BTreeMap<String, String> {
    let kinds = ["to-", "on-", "also-"];
    (0..random.random_range(0..4))
        .map(|index| {
            (
                format!("{}{index}", kinds[random.random_range(0..3)]),
                format!("t{}", random.random_range(0..4)),
            )
        })
        .collect()
}

fn made(name: &str, version: u32, data: &BTreeMap<String, String>) -> ConfigMap {
    let data: Vec<(&str, &str)> = data.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    object(name, version, &data)
}

fn step(
    store: &mut ReflectorStore<ConfigMap, String>,
    picture: &mut Picture,
    version: u32,
    random: &mut StdRng,
) {
    let name = format!("o{}", random.random_range(0..5));
    match random.random_range(0..10) {
        0..6 => {
            let data = random_data(random);
            store.apply(Event::Apply(made(&name, version, &data)));
            picture.insert(name, data);
        }
        6..8 => {
            store.apply(Event::Delete(object(&name, version, &[])));
            picture.remove(&name);
        }
        relist => {
            store.apply(Event::Init);
            let listed: Picture = (0..random.random_range(0..5))
                .map(|index| (format!("o{index}"), random_data(random)))
                .collect();
            for (name, data) in &listed {
                store.apply(Event::InitApply(made(name, 1000 + version, data)));
            }
            // Every second list is interrupted.
            if relist == 8 {
                store.apply(Event::InitDone);
                *picture = listed;
            }
        }
    }
}

fn check(store: &ReflectorStore<ConfigMap, String>, picture: &Picture) {
    let mut entries = 0;
    for target in (0..4).map(|index| format!("t{index}")) {
        let referring = |prefix: &[&str]| -> BTreeSet<&str> {
            let refers = |data: &BTreeMap<String, String>| {
                data.iter().any(|(key, value)| {
                    *value == target && prefix.iter().any(|prefix| key.starts_with(prefix))
                })
            };
            picture.iter().filter(|(_, data)| refers(data)).map(|(name, _)| name.as_str()).collect()
        };
        assert_eq!(names(store.members(&target)).into_iter().collect::<BTreeSet<_>>(), referring(&["to-"]));
        assert_eq!(
            names(store.dependents(&target)).into_iter().collect::<BTreeSet<_>>(),
            referring(&["on-", "also-"])
        );
        let concerned =
            picture.iter().filter(|(name, _)| referring(&["on-", "also-"]).contains(name.as_str()));
        let concerned = concerned.flat_map(|(_, data)| data).filter(|(key, _)| key.starts_with("to-"));
        assert_eq!(
            store.concerned_through(&target),
            concerned.map(|(_, value)| value.clone()).collect::<BTreeSet<_>>()
        );
        entries += ["to-", "on-", "also-"].iter().map(|prefix| referring(&[prefix]).len()).sum::<usize>();
    }
    assert_eq!(store.entries(), entries);
    assert_eq!(store.objects().len(), picture.len());
}

#[tokio::test]
async fn clones_of_a_shared_store_see_the_events_that_pass() {
    let shared = SharedStore::from(store());
    let other = shared.clone();
    let events = [Event::Init, Event::InitApply(object("a", 1, &[("on-1", "p")])), Event::InitDone];
    let passed = shared.reflect(stream::iter(events.map(Ok))).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(passed.len(), 3);
    let reference = ObjectRef::<ConfigMap>::new("a").within("shop");
    assert!(other.is_complete() && other.get(&reference).is_some());
    assert_eq!(other.dependents(&"p".to_owned()), std::slice::from_ref(&reference));
    let map = other.mapper(|secret: &&str| (*secret).to_owned());
    assert_eq!((map("p"), map("q")), (vec![reference.clone()], vec![]));
    assert_eq!(other.objects().len(), 1);

    let moved = [object("a", 2, &[("to-1", "x")]), object("a", 3, &[("to-1", "y")])];
    let changes = shared.changes(stream::iter(moved.map(|object| Ok(Event::Apply(object)))));
    let changes: Vec<_> = changes.try_collect().await.unwrap();
    let [_, Change::Applied { name, concerned, .. }] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((object_ref::<ConfigMap>(name), concerned.join(" ")), (reference.clone(), "x y".to_owned()));
    assert_eq!(other.members(&"y".to_owned()), [reference]);
    assert!(other.dependents(&"p".to_owned()).is_empty());
}

#[test]
fn an_edge_is_a_closure_with_values_of_its_own() {
    let prefix = format!("{}-", "on");
    let edge = Edge::depends_on("on", move |object: &ConfigMap, out| extract(object, &prefix, out));
    let mut store = ReflectorStore::new([edge.clone(), edge]);
    store.apply(Event::Apply(object("a", 1, &[("on-1", "p")])));
    assert_eq!(dependents(&store, "p"), ["a"]);
    assert_eq!(object_ref::<ConfigMap>(&ObjectName::new("", "a")), ObjectRef::new("a"));
}
