//! Plans between any two sets of documents.

use std::collections::BTreeMap;

use bytes::Bytes;
use pingsix_sink::{Document, DocumentSet, Key, OrderHint, Owner, Step, plan};

use super::input::Input;

/// An order and a number.
type Name = (u8, u8);

/// Documents of four orders; each may refer to one of a lower order, which its value names.
fn documents(input: &mut Input<'_>) -> DocumentSet {
    let mut all: BTreeMap<Name, (Option<Name>, u8)> = BTreeMap::new();
    for order in 0..4 {
        for _ in 0..input.below(5) {
            let id = input.below(4);
            let wanted = (input.below(4), input.below(4));
            let target = Some(wanted).filter(|wanted| wanted.0 < order && all.contains_key(wanted));
            all.insert((order, id), (target, input.below(3)));
        }
    }
    let documents = all.iter().map(|((order, id), (target, salt))| Document {
        key: key(*order, *id),
        value: Bytes::from(
            target.map_or_else(|| format!("{salt}"), |(kind, id)| format!("{salt}>{}", key(kind, id))),
        ),
        order: OrderHint(u32::from(*order)),
        owner: Owner::new("test"),
    });
    DocumentSet::new(documents).expect("keys are unique")
}

/// Keys do not sort by order.
fn key(order: u8, id: u8) -> Key {
    let kind = ["upstreams", "services", "routes", "globals"][usize::from(order)];
    Key::new(format!("{kind}/{id}")).expect("a valid key")
}

fn target(value: &[u8]) -> Option<Key> {
    let text = std::str::from_utf8(value).expect("values are text");
    text.split_once('>').map(|(_, key)| Key::new(key).expect("a valid key"))
}

/// Faults of the plan between two sets that these bytes describe.
pub(crate) fn run(bytes: &[u8]) -> Vec<String> {
    let mut input = Input(bytes);
    let (current, desired) = (documents(&mut input), documents(&mut input));
    let mut errors = Vec::new();
    let mut held: BTreeMap<Key, Bytes> =
        current.iter().map(|document| (document.key.clone(), document.value.clone())).collect();
    let steps = plan(&current, &desired);
    for step in &steps {
        let changed = match step {
            Step::Create(document) => held.insert(document.key.clone(), document.value.clone()).is_none(),
            Step::Update(document) => held
                .insert(document.key.clone(), document.value.clone())
                .is_some_and(|old| old != document.value),
            Step::Delete { key, .. } => held.remove(key).is_some(),
        };
        if !changed {
            errors.push(format!("{step:?} does not match its documents"));
        }
        let dangling =
            held.values().filter_map(|value| target(value)).find(|target| !held.contains_key(target));
        if let Some(target) = dangling {
            errors.push(format!("after {step:?} nothing is at {target}"));
        }
    }
    let wanted: BTreeMap<Key, Bytes> =
        desired.iter().map(|document| (document.key.clone(), document.value.clone())).collect();
    if held != wanted {
        errors.push(format!("the steps lead to {held:?} instead of {wanted:?}"));
    }
    if !plan(&desired, &desired).is_empty() {
        errors.push("a set differs from itself".to_owned());
    }
    errors
}
