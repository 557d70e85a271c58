//! Merges part of a Pod template into another, as `kubectl patch --type strategic` does, as far as that goes:
//!
//! - mappings are merged field by field, and null takes a field out;
//! - lists whose elements have keys are merged element by element, those of the patch that are new at the end. They are
//!   `containers`, `initContainers`, `volumes`, `env`, `imagePullSecrets` (by `name`), `volumeMounts` (by `mountPath`),
//!   `volumeDevices` (by `devicePath`), `ports` (by `containerPort` and `protocol`), `hostAliases` (by `ip`) and
//!   `topologySpreadConstraints` (by `topologyKey` and `whenUnsatisfiable`);
//! - an element with `$patch: delete` takes that element out;
//! - every other list takes the place of the one before, and so does every other value.

use serde_json::{Map, Value};

/// The field that deletes an element of a list.
const DIRECTIVE: &str = "$patch";

/// Merges a patch into a value.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    merge_field("", target, patch);
}

fn merge_field(field: &str, target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_map(target, patch),
        (Value::Array(target), Value::Array(patch)) if !keys(field).is_empty() => {
            merge_list(keys(field), target, patch);
        }
        (target, patch) => *target = pruned(field, patch),
    }
}

fn merge_map(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (field, value) in patch {
        if value.is_null() {
            target.remove(field);
        } else if let Some(known) = target.get_mut(field) {
            merge_field(field, known, value);
        } else {
            target.insert(field.clone(), pruned(field, value));
        }
    }
}

fn merge_list(keys: &[&str], target: &mut Vec<Value>, patch: &[Value]) {
    for element in patch {
        let known = target.iter().position(|known| is_same(keys, known, element));
        match (known, element.get(DIRECTIVE).and_then(Value::as_str) == Some("delete")) {
            (Some(index), true) => {
                target.remove(index);
            }
            (None, true) => {}
            (Some(index), false) => {
                if let Some(known) = target.get_mut(index) {
                    merge_field("", known, element);
                }
            }
            (None, false) => target.push(pruned("", element)),
        }
    }
}

fn is_same(keys: &[&str], one: &Value, other: &Value) -> bool {
    // A port without a protocol carries TCP; nothing else here has a key with a default.
    let key = |value: &Value, key: &str| match value.get(key) {
        None if key == "protocol" => Value::from("TCP"),
        found => found.cloned().unwrap_or_default(),
    };
    let has_first = keys.first().is_some_and(|first| one.get(first).is_some());
    has_first && keys.iter().all(|name| key(one, name) == key(other, name))
}

/// The value for a missing target, without deletions.
fn pruned(field: &str, value: &Value) -> Value {
    match value {
        Value::Object(_) => {
            let mut made = Value::Object(Map::new());
            merge_field(field, &mut made, value);
            made
        }
        Value::Array(elements) if !keys(field).is_empty() => {
            let mut made = Vec::new();
            merge_list(keys(field), &mut made, elements);
            Value::Array(made)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => value.clone(),
    }
}

/// The merge keys of a list; none for a list that is replaced as a whole.
fn keys(field: &str) -> &'static [&'static str] {
    match field {
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" => &["name"],
        "volumeMounts" => &["mountPath"],
        "volumeDevices" => &["devicePath"],
        "ports" => &["containerPort", "protocol"],
        "hostAliases" => &["ip"],
        "topologySpreadConstraints" => &["topologyKey", "whenUnsatisfiable"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(mut target: Value, patch: &Value) -> Value {
        merge(&mut target, patch);
        target
    }

    #[test]
    fn mappings_are_merged_and_null_takes_out() {
        let target = json!({"a": {"b": 1, "c": 2}, "d": 3});
        assert_eq!(
            merged(target, &json!({"a": {"b": null, "e": 4}, "f": {"g": null}})),
            json!({"a": {"c": 2, "e": 4}, "d": 3, "f": {}})
        );
    }

    #[test]
    fn containers_are_merged_by_their_names() {
        let target = json!({"containers": [{"name": "a", "image": "one", "args": ["x", "y"]}, {"name": "b"}, {"name": "c"}]});
        let patch = json!({"containers": [
            {"name": "b", "image": "two"}, {"name": "a", "args": ["z"], "env": [{"name": "E", "value": "1"}]},
            {"name": "c", "$patch": "delete"}, {"name": "d"}, {"name": "e", "$patch": "delete"},
        ]});
        let expected = json!({"containers": [
            {"name": "a", "image": "one", "args": ["z"], "env": [{"name": "E", "value": "1"}]},
            {"name": "b", "image": "two"}, {"name": "d"},
        ]});
        assert_eq!(merged(target, &patch), expected);
    }

    #[test]
    fn keys_have_defaults_and_other_lists_are_replaced() {
        let target = json!({"ports": [{"containerPort": 80, "name": "a"}], "tolerations": [{"key": "a"}]});
        let patch =
            json!({"ports": [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}], "tolerations": []});
        let expected = json!({"ports": [{"containerPort": 80, "name": "a", "protocol": "TCP", "hostPort": 80}], "tolerations": []});
        assert_eq!(merged(target, &patch), expected);
    }

    #[test]
    fn a_patch_of_another_shape_does_no_harm() {
        let target = json!({"containers": [{"name": "a"}], "spec": {"a": 1}});
        assert_eq!(
            merged(target.clone(), &json!({"containers": "none", "spec": 7})),
            json!({"containers": "none", "spec": 7})
        );
        assert_eq!(
            merged(target.clone(), &json!({"containers": [7, {}]})),
            json!({"containers": [{"name": "a"}, 7, {}], "spec": {"a": 1}})
        );
        assert_eq!(merged(target.clone(), &json!({})), target);
        assert_eq!(merged(target, &json!(null)), json!(null));
    }
}
