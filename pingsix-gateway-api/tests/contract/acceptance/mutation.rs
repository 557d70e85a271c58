//! One change to a sound document.

use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::Documents;
use super::pools;
use crate::rng::SeededRng;

/// Texts with this mark in front are written as they are, without quotes.
pub(super) const RAW: &str = "@raw:";

/// A field whose name starts with this mark is written without it, so that an object has the field twice.
pub(super) const TWICE: &str = "@twice:";

/// The way of a case to PingSIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// While it runs.
    Watch,
    /// The start time.
    List,
}

/// The changes of a prefix: values to put, and keys to delete.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) what: String,
    pub(super) changes: Vec<(String, Option<Bytes>)>,
    pub(super) delivery: Delivery,
}

impl Case {
    /// A document put under a key.
    pub(super) fn put(what: impl Into<String>, key: &str, value: &Value) -> Self {
        Self::raw(what, key, text(value).as_bytes())
    }

    /// Bytes put under a key.
    pub(super) fn raw(what: impl Into<String>, key: &str, value: &[u8]) -> Self {
        Self::new(what, vec![(key.to_owned(), Some(value.to_vec().into()))])
    }

    pub(super) fn new(what: impl Into<String>, changes: Vec<(String, Option<Bytes>)>) -> Self {
        // PingSIX looks at its guard when it lists, and not when it watches.
        let guard = changes.iter().any(|(key, _)| key == ".pingsix_graph_revision");
        let delivery = if guard { Delivery::List } else { Delivery::Watch };
        Self { what: what.into(), changes, delivery }
    }

    pub(super) fn apply(&self, documents: &mut Documents) {
        for (key, value) in &self.changes {
            match value {
                Some(value) => documents.insert(key.clone(), value.clone()),
                None => documents.remove(key),
            };
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        for (key, value) in &self.changes {
            match value {
                Some(value) => {
                    let text: String = String::from_utf8_lossy(value).chars().take(1500).collect();
                    write!(f, "\n  {key} = {text}")?;
                }
                None => write!(f, "\n  {key} is taken away")?,
            }
        }
        Ok(())
    }
}

/// A value as JSON text, the marks acted upon.
pub(super) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    let list = |out: &mut String, index: usize| {
        if index > 0 {
            out.push(',');
        }
    };
    match value {
        Value::String(held) if held.starts_with(RAW) => out.push_str(&held[RAW.len()..]),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                list(out, index);
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                list(out, index);
                let name = name.strip_prefix(TWICE).unwrap_or(name);
                out.push_str(&Value::from(name).to_string());
                out.push(':');
                write(field, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

/// Changes one value or one name in a document, and returns a description.
pub(super) fn mutate(rng: &mut SeededRng, document: &mut Value) -> String {
    let mut places = Vec::new();
    collect(document, &mut String::new(), &mut places);
    // Deep places are many, and the fields of the document itself matter as much.
    let place = if rng.percent(20) {
        let shallow: Vec<&String> = places.iter().filter(|place| place.matches('/').count() <= 1).collect();
        shallow[rng.below(shallow.len())].clone()
    } else {
        places[rng.below(places.len())].clone()
    };
    let field = place.rsplit('/').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
    let old = document.pointer(&place).unwrap().clone();
    let parent = place.rfind('/').map(|at| place[..at].to_owned());
    let name = parent.as_ref().map(|parent| place[parent.len() + 1..].replace("~1", "/").replace("~0", "~"));
    let map = parent.as_ref().and_then(|parent| document.pointer_mut(parent)).and_then(Value::as_object_mut);
    match (map, name) {
        (Some(map), Some(name)) if rng.percent(45) => around(rng, map, &name, field, &place),
        _ => {
            let new = value(rng, &old, field, place.contains("/nodes"));
            let description = format!("{place} becomes {new}");
            *document.pointer_mut(&place).unwrap() = new;
            description
        }
    }
}

/// The places of a document, as JSON pointers.
fn collect(value: &Value, at: &mut String, places: &mut Vec<String>) {
    places.push(at.clone());
    let length = at.len();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                *at += &format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                collect(field, at, places);
                at.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                *at += &format!("/{index}");
                collect(item, at, places);
                at.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A change to an entry of an object: taken away, renamed, given twice, or joined by another.
fn around(rng: &mut SeededRng, map: &mut Map<String, Value>, name: &str, field: &str, place: &str) -> String {
    match rng.below(10) {
        0..4 => {
            map.remove(name);
            format!("{place} is taken away")
        }
        4..7 => {
            let held = map.remove(name).unwrap();
            let parent = place.rsplit('/').nth(1).unwrap_or_default();
            let renamed = pools::name(rng, parent, name);
            let description = format!("{place} is renamed {renamed:?}");
            map.insert(renamed, held);
            description
        }
        7 => {
            let twice = value(rng, &map[name], field, place.contains("/nodes"));
            let description = format!("{place} is given twice, first as {twice}");
            map.insert(format!("{TWICE}{name}"), twice);
            description
        }
        _ => {
            let parent = place.rsplit('/').nth(1).unwrap_or_default();
            let added = pools::name(rng, parent, name);
            let held = value(rng, &map[name], field, place.contains("/nodes"));
            let description = format!("{added:?} = {held} joins {place}");
            map.insert(added, held);
            description
        }
    }
}

/// Another value in the place of one.
fn value(rng: &mut SeededRng, old: &Value, field: &str, weight: bool) -> Value {
    if rng.percent(20) {
        return pools::any(rng, weight);
    }
    match old {
        Value::Number(_) => pools::number(rng, weight),
        Value::String(old) => json!(pools::string(rng, field, old)),
        Value::Bool(old) => json!(!old),
        Value::Null => pools::any(rng, weight),
        Value::Array(items) => {
            let mut items = items.clone();
            match rng.below(5) {
                0 => items.clear(),
                1 => items.extend(items.clone()),
                2 => items.push(pools::any(rng, weight)),
                3 => items.push(json!(pools::string(rng, field, ""))),
                _ => items.reverse(),
            }
            Value::Array(items)
        }
        Value::Object(fields) => {
            let mut fields = fields.clone();
            match rng.below(3) {
                0 => fields.clear(),
                1 => {
                    fields.insert("unknown".to_owned(), pools::any(rng, weight));
                }
                _ => return Value::Array(fields.into_iter().map(|(_, field)| field).collect()),
            }
            Value::Object(fields)
        }
    }
}
