//! Where the objects of the output come from.

use std::collections::BTreeMap;
use std::sync::Arc;

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use super::report::Place;
use super::source::list;

/// The most rules with a Service that a policy of the Service concerns here. Requests find the others.
const MAX_SERVICE_RULES: usize = 64;

/// The places of the input from which parts of the output come. All other objects have the names and fields of the input.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The place of each rule of a route.
    rules: BTreeMap<ObjectKey, Vec<Place>>,
    /// The listeners of Gateways, by name.
    listeners: BTreeMap<(ObjectKey, String), Place>,
    /// Copies have the fields of these objects.
    copies: BTreeMap<ObjectKey, Arc<str>>,
}

impl Origins {
    /// Notes the places of all rules of a route.
    pub(crate) fn note_rules(&mut self, route: ObjectKey, places: Vec<Place>) {
        self.rules.insert(route, places);
    }

    pub(crate) fn note_listener(&mut self, gateway: &ObjectKey, name: &str, place: &Place) {
        self.listeners.insert((gateway.clone(), name.to_owned()), place.clone());
    }

    pub(crate) fn note_copy(&mut self, copy: ObjectKey, of: &ObjectKey) {
        self.copies.insert(copy, of.to_string().into());
    }
}

/// The objects of the output with their origins.
pub(super) struct Traced<'o> {
    origins: &'o Origins,
    objects: BTreeMap<&'o ObjectKey, &'o Value>,
    /// The rules with a Service among their backends.
    users: BTreeMap<ObjectName, Vec<(&'o ObjectKey, usize)>>,
}

impl<'o> Traced<'o> {
    pub(super) fn new(origins: &'o Origins, written: &'o [(ObjectKey, Arc<Value>)]) -> Self {
        let mut users: BTreeMap<ObjectName, Vec<(&ObjectKey, usize)>> = BTreeMap::new();
        for (key, route) in written.iter().filter(|(key, _)| key.kind.is_route()) {
            for (index, rule) in list(route, "/spec/rules").enumerate() {
                for backend in list(rule, "/backendRefs") {
                    let name = ObjectName::new(
                        text(backend, "namespace").unwrap_or(&key.name.namespace),
                        text(backend, "name").unwrap_or_default(),
                    );
                    users.entry(name).or_default().push((key, index));
                }
            }
        }
        Self { origins, objects: written.iter().map(|(key, value)| (key, &**value)).collect(), users }
    }

    /// An object of the output.
    pub(super) fn object(&self, key: &ObjectKey) -> Option<&'o Value> {
        self.objects.get(key).copied()
    }

    /// The places of the input for a field of an object of the output.
    pub(super) fn places(&self, key: &ObjectKey, field: &str) -> Vec<Place> {
        let part = part(key.kind, field);
        let own = || vec![Place { object: key.to_string().into(), field: part.to_owned() }];
        if let Some(object) = self.origins.copies.get(key) {
            return vec![Place { object: object.clone(), field: part.to_owned() }];
        }
        // An Ingress that stays as it is belongs to its controller.
        if key.kind == Kind::Ingress {
            return Vec::new();
        }
        if key.kind.is_policy() {
            return self.targets(key).unwrap_or_else(own);
        }
        if let Some(rules) = self.origins.rules.get(key) {
            return match index_in(field, "spec.rules[").and_then(|index| rules.get(index)) {
                Some(place) => vec![place.clone()],
                None => rules.clone(),
            };
        }
        let listener = index_in(field, "spec.listeners[").and_then(|index| {
            let listener = self.object(key)?.pointer(&format!("/spec/listeners/{index}"))?;
            self.origins.listeners.get(&(key.clone(), text(listener, "name")?.to_owned()))
        });
        listener.map_or_else(own, |place| vec![place.clone()])
    }

    /// The places of the rules that a policy is for; `None` for a policy of the input that stays as it is.
    fn targets(&self, policy: &ObjectKey) -> Option<Vec<Place>> {
        let namespace = &policy.name.namespace;
        let mut places = Vec::new();
        for target in list(self.object(policy)?, "/spec/targetRefs") {
            let name = ObjectName::new(namespace.clone(), text(target, "name").unwrap_or_default());
            let kind = Kind::ALL.iter().find(|kind| Some(kind.as_str()) == text(target, "kind"))?;
            let section = text(target, "sectionName");
            if *kind == Kind::Service {
                let users = self.users.get(&name).into_iter().flatten().take(MAX_SERVICE_RULES);
                places.extend(
                    users.flat_map(|(route, index)| self.places(route, &format!("spec.rules[{index}]"))),
                );
                continue;
            }
            let key = ObjectKey { kind: *kind, name };
            let rules = self.object(&key).into_iter().flat_map(|route| list(route, "/spec/rules"));
            match section
                .and_then(|section| rules.into_iter().position(|rule| text(rule, "name") == Some(section)))
            {
                Some(index) => places.extend(self.places(&key, &format!("spec.rules[{index}]"))),
                None => places.extend(self.places(&key, "")),
            }
        }
        Some(places)
    }
}

/// The part of an object that decides about requests: a path of an Ingress, or a rule of a route.
fn part(kind: Kind, field: &str) -> &str {
    let list = if kind == Kind::Ingress { ".http.paths[" } else { "spec.rules[" };
    if kind != Kind::Ingress && !kind.is_route() {
        return field;
    }
    let start = field.find(list).map(|start| start + list.len());
    let end = start.and_then(|start| Some(start + field.get(start..)?.find(']')?));
    end.and_then(|end| field.get(..=end)).unwrap_or(field)
}

/// The number behind the beginning of a field.
fn index_in(field: &str, list: &str) -> Option<usize> {
    field.strip_prefix(list)?.split_once(']')?.0.parse().ok()
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}
