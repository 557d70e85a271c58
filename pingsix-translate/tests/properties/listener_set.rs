//! Whether it matters in whose spec a listener stands: a Gateway whose last listeners move to a ListenerSet, together with
//! the parentRefs that reach them, is served by the same documents.

use pingsix_translate::verdict::ConditionType;
use pingsix_translate::{Layout, Translation, translate};
use serde_json::{Value, json};

use crate::case::{Setting, snapshot};

/// What differs for any number of listeners moved; `None` when nothing does.
pub(crate) fn difference(objects: &[Value], setting: Setting) -> Option<String> {
    let translation = translate(&snapshot(objects), &setting.options());
    // Of listeners in one spec that cannot be told apart none is served, of those in two the first is.
    if translation.verdicts.listeners().any(|one| one.conditions.is_true(ConditionType::Conflicted)) {
        return None;
    }
    let count = translation.verdicts.listeners().count();
    (1..count).find_map(|kept| {
        let moved = translate(&snapshot(&split(objects, kept)), &setting.options());
        if documents(&translation) != documents(&moved) {
            return Some(format!("the documents depend on where listeners stand, from {kept} on"));
        }
        // A parentRef is refused as a whole when nothing is served through it, which a shared data plane may be for
        // reasons of one listener; two references are judged apart.
        if setting.layout == Layout::Shared {
            return None;
        }
        let counts = |translation: &Translation| -> Vec<i32> {
            translation.verdicts.listeners().map(|listener| listener.attached_routes).collect()
        };
        let (before, after) = (counts(&translation), counts(&moved));
        (before != after)
            .then(|| format!("attached routes were {before:?} and are {after:?}, from {kept} on"))
    })
}

/// Moves all listeners but the first to a ListenerSet.
fn split(objects: &[Value], kept: usize) -> Vec<Value> {
    let mut moved = Vec::new();
    let mut split: Vec<Value> = objects.to_vec();
    for gateway in split.iter_mut().filter(|object| object["kind"] == "Gateway") {
        moved = gateway["spec"]["listeners"].as_array_mut().unwrap().split_off(kept);
        gateway["spec"]["allowedListeners"] = json!({ "namespaces": { "from": "Same" } });
    }
    for object in &mut split {
        let Some(parents) = object["spec"].get_mut("parentRefs").and_then(Value::as_array_mut) else {
            continue;
        };
        *parents = parents.iter().flat_map(|parent| [parent.clone(), to_set(parent)]).collect();
    }
    split.push(json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ListenerSet",
        "metadata": { "namespace": "infra", "name": "public", "generation": 1 },
        "spec": { "parentRef": { "name": "public" }, "listeners": moved },
    }));
    split
}

/// The same reference to the ListenerSet, unless it is one to something else.
fn to_set(parent: &Value) -> Value {
    let mut parent = parent.clone();
    if parent.get("kind").is_none_or(|kind| kind == "Gateway") {
        parent["kind"] = json!("ListenerSet");
    }
    parent
}

fn documents(translation: &Translation) -> Vec<(String, String)> {
    let planes = translation.data_planes.iter();
    planes
        .flat_map(|(key, plane)| plane.config.to_pairs(&key.prefix("/pingsix")).collect::<Vec<_>>())
        .collect()
}
