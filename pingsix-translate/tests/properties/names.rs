//! The names of objects in messages.

use std::cell::Cell;
use std::collections::BTreeMap;

use pingsix_translate::status::Conditions;
use pingsix_translate::{Budget, ObjectKey, Options, Translation, translate};
use serde_json::Value;

use crate::case::{Setting, snapshot};

/// A message that names an object of another namespace than its own object, if that object does not refer to it. Gateways may
/// be named: they serve the object. Counts the messages about objects whose names they hide.
pub(crate) fn foreign(objects: &[Value], setting: Setting, hidden: &Cell<usize>) -> Option<String> {
    let small = Budget { bytes: 12_000, ..Budget::default() };
    for budget in [Budget::default(), small] {
        let translation = translate(&snapshot(objects), &Options { budget, ..setting.options() });
        let texts: BTreeMap<(String, String), String> =
            objects.iter().map(|object| (name_of(object), object.to_string())).collect();
        for (object, message) in messages(&translation) {
            hidden.set(hidden.get() + usize::from(message.contains("of another namespace")));
            let reader = (object.name.namespace.to_string(), object.name.name.to_string());
            let own = texts.get(&reader).map(String::as_str).unwrap_or_default();
            let foreign =
                objects.iter().filter(|object| object["kind"] != *"Gateway").map(name_of).find(|name| {
                    let is_other = name.0 != reader.0 && !name.0.is_empty() && !reader.0.is_empty();
                    is_other
                        && contains(&message, &format!("{}/{}", name.0, name.1))
                        && !own.contains(&format!("\"{}\"", name.1))
                });
            if let Some((namespace, name)) = foreign {
                return Some(format!("{object} is told of {namespace}/{name}: {message}"));
            }
        }
    }
    None
}

fn name_of(object: &Value) -> (String, String) {
    let field = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (field("namespace"), field("name"))
}

/// Whether a text has a name, and not as the beginning of a longer one.
fn contains(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(index, _)| {
        let next = text[index + name.len()..].chars().next();
        !next.is_some_and(|next| next.is_ascii_alphanumeric() || next == '-')
    })
}

/// Every message of a translation, with its object.
fn messages(translation: &Translation) -> Vec<(ObjectKey, String)> {
    let verdicts = &translation.verdicts;
    let mut messages: Vec<(ObjectKey, String)> = Vec::new();
    let mut add = |object: &ObjectKey, conditions: &Conditions| {
        messages.extend(conditions.iter().map(|condition| (object.clone(), condition.message.clone())));
    };
    for (key, verdict) in &verdicts.routes {
        for parent in &*verdict.parents {
            add(key, &parent.conditions);
        }
    }
    for (key, verdict) in &verdicts.policies {
        add(key, &verdict.conditions);
    }
    for (key, verdict) in &verdicts.listener_sets {
        add(key, &verdict.conditions);
        for listener in &verdict.listeners {
            add(key, &listener.conditions);
        }
    }
    if let Some(verdict) = &verdicts.gateway {
        add(&verdict.key, &verdict.conditions);
        for listener in &verdict.listeners {
            add(&verdict.key, &listener.conditions);
        }
    }
    messages.extend(
        verdicts.problems.iter().map(|problem| (ObjectKey::clone(&problem.object), problem.message.clone())),
    );
    messages
}
