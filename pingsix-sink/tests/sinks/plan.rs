//! Properties of plans.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use pingsix_sink::{Changed, Document, DocumentSet, Key, OrderHint, Owner, Step, plan, units};
use proptest::prelude::*;

const LAYERS: u32 = 3;
const IDS: u8 = 6;

/// Documents by (layer, id): the value names the documents of lower layers it refers to, and a salt.
type Graph = BTreeMap<(u32, u8), (BTreeSet<(u32, u8)>, u8)>;

/// A graph closed under reference: dangling references are removed.
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
    // The layers in reverse, so that the order of keys differs from the order of hints.
    Key::new(format!("{}/{id}", ["z", "m", "a"][layer as usize])).unwrap()
}

/// Routes by name, with their hosts and an upstream each.
type Routes = BTreeMap<u8, (BTreeSet<u8>, u8)>;

fn routes() -> impl Strategy<Value = Routes> {
    let hosts = prop_oneof![
        9 => prop::collection::btree_set(0u8..12, 1..3),
        1 => Just(BTreeSet::new()),
    ];
    prop::collection::btree_map(0u8..16, (hosts, 0u8..3), 0..12)
}

/// Two to a domain; the last ones are wildcards of one domain each.
fn name(host: u8) -> String {
    match host {
        9.. => format!("*.d{}", host - 9),
        _ => format!("h{host}.d{}", host / 2),
    }
}

/// The hosts that a host overlaps.
fn shared(host: u8) -> Vec<u8> {
    let domain = match host {
        9.. => host - 9,
        _ => host / 2,
    };
    match host {
        9.. => vec![host, 2 * domain, 2 * domain + 1],
        _ => vec![host],
    }
}

fn route_documents(routes: &Routes) -> DocumentSet {
    let document = |key: String, value: String, order| Document {
        key: Key::new(key).unwrap(),
        value: Bytes::from(value),
        order: OrderHint(order),
        owner: Owner::new("test"),
    };
    let upstreams: BTreeSet<u8> = routes.values().map(|(_, upstream)| *upstream).collect();
    let upstreams = upstreams
        .into_iter()
        .map(|id| document(format!("upstreams/{id}"), format!(r#"{{"name":"{id}"}}"#), 0));
    let routes = routes.iter().map(|(id, (hosts, upstream))| {
        let value = match hosts.iter().map(|host| name(*host)).collect::<Vec<_>>().as_slice() {
            [] => format!(r#"{{"uri":"/","upstream_id":"{upstream}"}}"#),
            [host] => format!(r#"{{"host":"{host}","uri":"/","upstream_id":"{upstream}"}}"#),
            hosts => format!(r#"{{"hosts":{hosts:?},"uri":"/","upstream_id":"{upstream}"}}"#),
        };
        document(format!("routes/{id:02}"), value, 1 + u32::from(*id % 4))
    });
    DocumentSet::new(upstreams.chain(routes)).unwrap()
}

/// Certificates by name: the certificate of each server name, and its number of renewals.
type Names = BTreeMap<u8, (u8, u8)>;

fn names() -> impl Strategy<Value = Names> {
    prop::collection::btree_map(0u8..8, (0u8..5, 0u8..2), 0..8)
}

fn certificates(names: &Names) -> DocumentSet {
    let mut by_certificate: BTreeMap<u8, (Vec<String>, u8)> = BTreeMap::new();
    for (name, (certificate, renewed)) in names {
        let (names, times) = by_certificate.entry(*certificate).or_default();
        names.push(format!("n{name}.test"));
        *times += renewed;
    }
    let ssls = by_certificate.into_iter().map(|(certificate, (names, renewed))| Document {
        key: Key::new(format!("ssls/{certificate}")).unwrap(),
        value: Bytes::from(format!(r#"{{"cert":"{certificate}.{renewed}","key":"","snis":{names:?}}}"#)),
        order: OrderHint(u32::MAX),
        owner: Owner::new("test"),
    });
    let beside = ["routes/r", "upstreams/u"].map(|key| Document {
        key: Key::new(key).unwrap(),
        value: Bytes::from(format!(r#"{{"host":"h{}"}}"#, names.len())),
        order: OrderHint(0),
        owner: Owner::new("test"),
    });
    DocumentSet::new(ssls.chain(beside)).unwrap()
}

/// The certificates of each server name.
fn certificates_by_name(state: &BTreeMap<Key, Bytes>) -> BTreeMap<String, Vec<Key>> {
    let mut certificates_by_name: BTreeMap<String, Vec<Key>> = BTreeMap::new();
    for (key, value) in state.iter().filter(|(key, _)| key.as_str().starts_with("ssls/")) {
        let value: serde_json::Value = serde_json::from_slice(value).unwrap();
        for name in value["snis"].as_array().unwrap() {
            certificates_by_name.entry(name.to_string()).or_default().push(key.clone());
        }
    }
    certificates_by_name
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

    /// Arbitrary exchanges of names between certificates.
    #[test]
    fn no_prefix_of_the_steps_has_a_server_name_twice(a in names(), b in names()) {
        let (a, b) = (certificates(&a), certificates(&b));
        let mut state = contents(&a);
        for step in &plan(&a, &b) {
            apply(&mut state, step);
            for (name, certificates) in certificates_by_name(&state) {
                prop_assert!(certificates.len() == 1, "{name} has {certificates:?} after {step:?}");
            }
        }
        prop_assert_eq!(state, contents(&b));
    }

    #[test]
    fn between_units_a_server_name_has_its_earlier_or_its_later_certificate(a in names(), b in names()) {
        let (a, b) = (certificates(&a), certificates(&b));
        let (before, after) = (certificates_by_name(&contents(&a)), certificates_by_name(&contents(&b)));
        let mut state = contents(&a);
        for unit in units(&plan(&a, &b), &a).iter() {
            for step in unit {
                apply(&mut state, step);
            }
            let now = certificates_by_name(&state);
            for name in before.keys().chain(after.keys()) {
                let now = now.get(name);
                prop_assert!(now == before.get(name) || now == after.get(name), "{name}: {now:?}");
            }
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
    fn routes_change_at_once_that_share_a_host_and_references_hold(a in routes(), b in routes()) {
        let (before, after) = (route_documents(&a), route_documents(&b));
        let steps = plan(&before, &after);
        let units = units(&steps, &before);
        let sorted = |steps: &[Step]| {
            let mut keys: Vec<Key> = steps.iter().map(|step| step.key().clone()).collect();
            keys.sort();
            keys
        };
        prop_assert_eq!(sorted(units.steps()), sorted(steps.as_slice()));
        prop_assert_eq!(units.iter().flatten().count(), steps.len());

        let mut state = contents(&before);
        let mut done: BTreeSet<Option<u8>> = BTreeSet::new();
        for unit in units.iter() {
            // The hosts of the unit's Routes, before and after; other units have none of them.
            let mut hosts: BTreeSet<Option<u8>> = BTreeSet::new();
            for step in unit {
                apply(&mut state, step);
                let Some(id) = step.key().as_str().strip_prefix("routes/") else { continue };
                for (of, _) in [&a, &b].iter().filter_map(|routes| routes.get(&id.parse::<u8>().unwrap())) {
                    hosts.extend(of.iter().copied().flat_map(shared).map(Some));
                    hosts.extend(of.is_empty().then_some(None));
                }
                for (key, value) in &state {
                    let value = String::from_utf8(value.to_vec()).unwrap();
                    let Some((_, id)) = value.split_once(r#""upstream_id":""#) else { continue };
                    let upstream = Key::new(format!("upstreams/{}", &id[..1])).unwrap();
                    prop_assert!(state.contains_key(&upstream), "{} refers to {} after {:?}", key, upstream, step);
                }
            }
            prop_assert!(hosts.is_disjoint(&done), "{hosts:?} and {done:?}");
            prop_assert!(hosts.is_empty() || !done.contains(&None), "one without hosts shares with all");
            prop_assert!(!hosts.contains(&None) || done.is_empty());
            done.extend(hosts);
        }
        prop_assert_eq!(state, contents(&after));

        // A target applies whole units, unless one is too large for it.
        let ends: BTreeSet<usize> = units.iter().scan(0, |end, unit| { *end += unit.len(); Some(*end) }).collect();
        for fitting in 1..=steps.len() {
            let mut taken = 0;
            while taken < steps.len() {
                let count = units.batch_len(taken, fitting.min(steps.len() - taken));
                prop_assert!((1..=fitting).contains(&count));
                let is_cut = !ends.contains(&(taken + count));
                prop_assert!(!is_cut || ends.range(taken + 1..=taken + count).next().is_none());
                taken += count;
            }
        }
    }

    #[test]
    fn the_counts_say_what_the_steps_do(a in graph(), b in graph()) {
        let (a, b) = (documents(&a), documents(&b));
        let changed = Changed::of(&plan(&a, &b));
        let (old, new) = (contents(&a), contents(&b));
        prop_assert_eq!(changed.created, new.keys().filter(|key| !old.contains_key(*key)).count());
        prop_assert_eq!(changed.deleted, old.keys().filter(|key| !new.contains_key(*key)).count());
        prop_assert_eq!(changed.updated, new.iter().filter(|(k, v)| old.get(*k).is_some_and(|old| old != *v)).count());
    }
}
