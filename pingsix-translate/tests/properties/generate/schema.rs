//! Random specs of our own kinds, from the schemas in their definitions.
//!
//! A field is drawn by its type, its names and its bounds, so a new field of a policy occurs in tables at once. A schema does
//! not say what a text means: a field with free texts, or with references to objects, has a function of its own.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pingsix_translate::crd::definitions;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use super::one_in;

/// A field by its path, such as `cache.ttl` or `authorization.allow[]`, with the function for its values. Null leaves the
/// field out.
pub(crate) type OwnField = (&'static str, fn(&mut SmallRng) -> Value);

/// The name of a field that no schema has, and a name that no list of names has.
pub(crate) const UNKNOWN: &str = "Unknown";

/// The schema of `spec` by kind.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let of_definition = |definition| {
        let definition = serde_json::to_value(definition).unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        (kind.to_owned(), schema["properties"]["spec"].clone())
    };
    definitions().into_iter().map(of_definition).collect()
});

/// The specs of a kind.
pub(crate) struct Specs {
    pub(crate) kind: &'static str,
    pub(crate) own: &'static [OwnField],
    /// One value in so many is a mistake: beyond a bound, of no known name, or with a field that the schema lacks. `None` for
    /// a kind whose objects do not decode with mistakes.
    pub(crate) mistakes: Option<u32>,
}

impl Specs {
    pub(crate) fn draw(&self, rng: &mut SmallRng) -> Value {
        self.value(rng, &SCHEMAS[self.kind], "")
    }

    fn is_mistaken(&self, rng: &mut SmallRng) -> bool {
        self.mistakes.is_some_and(|mistakes| one_in(rng, mistakes))
    }

    fn value(&self, rng: &mut SmallRng, schema: &Value, path: &str) -> Value {
        if let Some((_, own)) = self.own.iter().find(|(own, _)| *own == path) {
            return own(rng);
        }
        if let Some(names) = schema["enum"].as_array() {
            return if self.is_mistaken(rng) { json!(UNKNOWN) } else { names.choose(rng).unwrap().clone() };
        }
        match schema["type"].as_str() {
            Some("object") => self.object(rng, schema, path),
            Some("array") => self.list(rng, schema, path),
            Some("integer") => self.integer(rng, schema),
            Some("boolean") => json!(rng.random::<bool>()),
            other => panic!("{} {path} needs a function of its own: it has the type {other:?}", self.kind),
        }
    }

    fn object(&self, rng: &mut SmallRng, schema: &Value, path: &str) -> Value {
        let (dot, rarity) = if path.is_empty() { ("", 3) } else { (".", 2) };
        let required = schema["required"].as_array();
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let mut object = Map::new();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            if is_required(name) || one_in(rng, rarity) {
                let value = self.value(rng, schema, &format!("{path}{dot}{name}"));
                if !value.is_null() {
                    object.insert(name.clone(), value);
                }
            }
        }
        if self.is_mistaken(rng) {
            object.insert(UNKNOWN.to_owned(), json!(true));
        }
        Value::Object(object)
    }

    /// One item or two. A list is empty by mistake alone, and only where its schema demands an item.
    fn list(&self, rng: &mut SmallRng, schema: &Value, path: &str) -> Value {
        if schema["minItems"].is_number() && self.is_mistaken(rng) {
            return json!([]);
        }
        let most = schema["maxItems"].as_u64().unwrap_or(2).min(2);
        let count = rng.random_range(1..=most);
        (0..count).map(|_| self.value(rng, &schema["items"], &format!("{path}[]"))).collect()
    }

    /// A bound, or a number near the lower one.
    fn integer(&self, rng: &mut SmallRng, schema: &Value) -> Value {
        let bound = |name: &str, default: i64| {
            schema[name].as_f64().map_or(default, |bound| bound.to_string().parse().unwrap())
        };
        let (low, high) = (bound("minimum", 0), bound("maximum", i64::from(u16::MAX)));
        let numbers = if self.is_mistaken(rng) {
            vec![low - 1, high + 1]
        } else {
            vec![low, high, rng.random_range(low..=high.min(low + 8))]
        };
        json!(numbers.choose(rng))
    }
}

/// Whether a value has a mistake by its names or by an empty list. Mistakes in numbers depend on the field.
pub(crate) fn has_mistake(value: &Value) -> bool {
    match value {
        Value::String(text) => text == UNKNOWN,
        Value::Array(items) => items.is_empty() || items.iter().any(has_mistake),
        Value::Object(fields) => fields.contains_key(UNKNOWN) || fields.values().any(has_mistake),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::super::{backend_traffic, security, traffic};
    use super::*;

    /// Fields that tables never set: the oracle models no keys in ConfigMaps, no sessions, wildcards of any depth alone, and
    /// certificates of clients in the namespace of their policy alone.
    const LEFT_OUT: [&str; 9] = [
        "targetRefs",
        "jwt.publicKeyRef",
        "cors.originWildcards",
        "tls.clientCertificateRef.namespace",
        "sessionPersistence",
        "healthCheck.passive",
        "retry.statusCodes",
        "group",
        "kind",
    ];

    fn paths_of_schema(schema: &Value, path: &str, paths: &mut BTreeSet<String>) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if LEFT_OUT.iter().any(|left_out| path == *left_out || name == left_out) {
                continue;
            }
            paths.insert(path.clone());
            paths_of_schema(schema, &path, paths);
            paths_of_schema(&schema["items"], &path, paths);
        }
    }

    fn count_paths(value: &Value, path: &str, counts: &mut BTreeMap<String, u32>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    *counts.entry(path.clone()).or_default() += 1;
                    count_paths(value, &path, counts);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| count_paths(item, path, counts)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_field_of_a_policy_is_drawn() {
        type Draw = fn(&mut SmallRng) -> Value;
        let kinds: [(&str, Draw); 3] = [
            ("SecurityPolicy", |rng| security::settings(rng, true)),
            ("TrafficPolicy", |rng| traffic::settings(rng, true)),
            ("BackendTrafficPolicy", backend_traffic::settings),
        ];
        for (kind, draw) in kinds {
            let mut rng = SmallRng::seed_from_u64(7);
            let mut counts = BTreeMap::new();
            for _ in 0..4000 {
                count_paths(&draw(&mut rng), "", &mut counts);
            }
            let mut paths = BTreeSet::new();
            paths_of_schema(&SCHEMAS[kind], "", &mut paths);
            let rare: Vec<&String> =
                paths.iter().filter(|path| counts.get(*path).is_none_or(|count| *count < 20)).collect();
            assert!(paths.len() > 10 && rare.is_empty(), "{kind} hardly ever has {rare:?}");
            assert!(
                kind == "BackendTrafficPolicy" || counts.keys().any(|path| path.ends_with(UNKNOWN)),
                "{kind} has no mistakes"
            );
        }
    }
}
