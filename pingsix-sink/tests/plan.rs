//! Properties of plans.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use pingsix_sink::{Document, DocumentSet, Key, OrderHint, Owner, Step, plan};
use proptest::prelude::*;

const LAYERS: u32 = 3;
const IDS: u8 = 6;

/// Documents by (layer, id): the value names the documents of lower layers it refers to, and a salt.
type Graph = BTreeMap<(u32, u8), (BTreeSet<(u32, u8)>, u8)>;

/// A graph closed under reference: dangling references are cut.
fn graph() -> impl Strategy<Value = Graph> {
    let node = (0..LAYERS, 0..IDS);
    let references = prop::collection::btree_set(node.clone(), 0..4);
    prop::collection::btree_map(node, (references, 0u8..3), 0..14).prop_map(|mut graph| {
        let present: BTreeSet<_> = graph.keys().copied().collect();
        for (node, (references, _)) in &mut graph {
            references.retain(|target| target.0 < node.0 && present.contains(target));
        }
        graph
    })
}

fn documents(graph: &Graph) -> DocumentSet {
    DocumentSet::new(graph.iter().map(|(node, (references, salt))| Document {
        key: key(*node),
        value: Bytes::from(format!("{salt} {references:?}")),
        order: OrderHint(node.0),
        owner: Owner::new("test"),
    }))
    .unwrap()
}

fn key((layer, id): (u32, u8)) -> Key {
    // The layers in reverse, so that the order of keys is not by chance the order of hints.
    Key::new(format!("{}/{id}", ["z", "m", "a"][layer as usize])).unwrap()
}

fn apply(state: &mut BTreeMap<Key, Bytes>, step: &Step) {
    match step {
        Step::Create(document) => {
            assert!(state.insert(document.key.clone(), document.value.clone()).is_none());
        }
        Step::Update(document) => {
            assert!(state.insert(document.key.clone(), document.value.clone()).is_some());
        }
        Step::Delete { key, .. } => assert!(state.remove(key).is_some()),
    }
}

fn contents(set: &DocumentSet) -> BTreeMap<Key, Bytes> {
    set.iter().map(|document| (document.key.clone(), document.value.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn applying_the_steps_gives_what_is_desired(a in graph(), b in graph()) {
        let (a, b) = (documents(&a), documents(&b));
        let mut state = contents(&a);
        for step in &plan(&a, &b) {
            apply(&mut state, step);
        }
        prop_assert_eq!(state, contents(&b));
    }

    #[test]
    fn every_prefix_of_the_steps_is_closed_under_reference(a in graph(), b in graph()) {
        let mut references: BTreeMap<(Key, Bytes), BTreeSet<Key>> = BTreeMap::new();
        for graph in [&a, &b] {
            for (document, (targets, _)) in documents(graph).iter().map(|document| {
                let node = graph.keys().find(|node| key(**node) == document.key).unwrap();
                (document.clone(), &graph[node])
            }) {
                references.insert((document.key, document.value), targets.iter().map(|target| key(*target)).collect());
            }
        }
        let (a, b) = (documents(&a), documents(&b));
        let mut state = contents(&a);
        for step in &plan(&a, &b) {
            apply(&mut state, step);
            for held in &state {
                for target in &references[&(held.0.clone(), held.1.clone())] {
                    prop_assert!(state.contains_key(target), "{} refers to {} after {:?}", held.0, target, step);
                }
            }
        }
    }

    #[test]
    fn puts_rise_and_deletes_fall_and_puts_come_first(a in graph(), b in graph()) {
        let steps = plan(&documents(&a), &documents(&b));
        let place = |step: &Step| match step {
            Step::Create(_) | Step::Update(_) => i64::from(step.order().0),
            Step::Delete { .. } => i64::from(2 * LAYERS) - i64::from(step.order().0),
        };
        prop_assert!(steps.as_slice().windows(2).all(|pair| place(&pair[0]) <= place(&pair[1])), "{steps:?}");
    }

    #[test]
    fn equal_content_needs_no_step_whatever_hints_and_owners_say(a in graph(), order in 0u32..9) {
        let current = documents(&a);
        let renamed = DocumentSet::new(current.iter().map(|document| Document {
            order: OrderHint(order),
            owner: Owner::new("another"),
            ..document.clone()
        })).unwrap();
        prop_assert!(plan(&current, &renamed).is_empty());
        prop_assert!(current.same_content(&renamed));
    }

    #[test]
    fn the_steps_depend_on_the_content_alone(a in graph(), b in graph(), seed in any::<u64>()) {
        let shuffled = |set: &DocumentSet| {
            let mut list: Vec<Document> = set.iter().cloned().collect();
            let length = list.len().max(1);
            list.rotate_left(usize::try_from(seed % 1_000).unwrap() % length);
            list.reverse();
            DocumentSet::new(list).unwrap()
        };
        let (a, b) = (documents(&a), documents(&b));
        prop_assert_eq!(plan(&a, &b), plan(&shuffled(&a), &shuffled(&b)));
    }

    #[test]
    fn a_set_that_shares_with_the_one_before_is_like_one_made_anew(
        first in prop::collection::btree_map(0u16..900, 0u8..3, 0..900),
        rounds in prop::collection::vec(
            prop::collection::btree_map(0u16..900, prop::option::weighted(0.4, 0u8..3), 0..300), 1..6
        ),
    ) {
        let document = |number: u16, salt: u8| Document {
            key: Key::new(format!("routes/{number:03}")).unwrap(),
            value: Bytes::from(vec![salt]),
            order: OrderHint(u32::from(number % 3)),
            owner: Owner::new("test"),
        };
        let anew = |model: &BTreeMap<u16, u8>| {
            DocumentSet::new(model.iter().map(|(number, salt)| document(*number, *salt))).unwrap()
        };
        let mut model = first;
        let mut set = anew(&model);
        for round in rounds {
            let before = (set.clone(), anew(&model));
            let changes = round.iter().map(|(number, salt)| {
                let document = salt.map(|salt| document(*number, salt));
                (Key::new(format!("routes/{number:03}")).unwrap(), document)
            });
            set = set.with_changes(changes.collect());
            for (number, salt) in round {
                match salt {
                    Some(salt) => model.insert(number, salt),
                    None => model.remove(&number),
                };
            }
            let after = anew(&model);
            prop_assert_eq!(&set, &after);
            prop_assert_eq!(set.len(), model.len());
            prop_assert!(set.iter().eq(after.iter()));
            prop_assert_eq!(set == before.0, after == before.1);
            prop_assert_eq!(set.same_content(&before.0), after.same_content(&before.1));
            prop_assert_eq!(plan(&before.0, &set), plan(&before.1, &after));
            for number in (0u16..900).step_by(13) {
                let key = Key::new(format!("routes/{number:03}")).unwrap();
                prop_assert_eq!(set.get(&key), after.get(&key));
                prop_assert_eq!(set.get(&key).is_some(), model.contains_key(&number));
            }
        }
    }

    #[test]
    fn the_counts_say_what_the_steps_do(a in graph(), b in graph()) {
        let (a, b) = (documents(&a), documents(&b));
        let changed = plan(&a, &b).changed();
        let (old, new) = (contents(&a), contents(&b));
        prop_assert_eq!(changed.created, new.keys().filter(|key| !old.contains_key(*key)).count());
        prop_assert_eq!(changed.deleted, old.keys().filter(|key| !new.contains_key(*key)).count());
        prop_assert_eq!(changed.updated, new.iter().filter(|(k, v)| old.get(*k).is_some_and(|old| old != *v)).count());
    }
}
