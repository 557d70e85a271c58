//! References to objects that the input lacks, and the names that their authors may have meant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::snapshot::{Object, Objects};
use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::Value;

use crate::schema::similar;

/// The value at a path such as `spec.rules[0].name`.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut steps = path.split(['.', '[']).filter(|step| !step.is_empty());
    steps.try_fold(value, |value, step| match step.strip_suffix(']') {
        Some(index) => value.get(index.parse::<usize>().ok()?),
        None => value.get(step),
    })
}

/// The last step of a path.
fn last_step(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default()
}

/// The protocols of listeners.
const PROTOCOLS: [&str; 5] = ["HTTP", "HTTPS", "TLS", "TCP", "UDP"];

/// A reference of an object.
struct Reference {
    kind: Kind,
    namespace: String,
    name: String,
    section: Option<String>,
}

/// Whether a field may be part of a reference.
pub(super) fn may_name(field: &str) -> bool {
    last_step(field) == "protocol" || innermost(field).is_some()
}

/// The path of the reference of which a field is a part, and the kind that it names by default.
///
/// The references of `pingsix_translate::selection` are those of whole objects that decode. A finding has a field, and its object
/// may not decode, so its reference is read from the manifest.
fn innermost(field: &str) -> Option<(&str, Option<Kind>)> {
    const FIELDS: [(&str, Option<Kind>); 11] = [
        ("parentRefs", Some(Kind::Gateway)),
        ("parentRef", Some(Kind::Gateway)),
        ("backendRefs", Some(Kind::Service)),
        ("backendRef", Some(Kind::Service)),
        ("service", Some(Kind::Service)),
        ("certificateRefs", Some(Kind::Secret)),
        ("caCertificateRefs", Some(Kind::ConfigMap)),
        ("extensionRef", None),
        ("targetRefs", None),
        ("gatewayClassName", Some(Kind::GatewayClass)),
        ("ingressClassName", Some(Kind::IngressClass)),
    ];
    let (mut found, mut end, mut before) = (None, 0, "");
    for step in field.split('.') {
        end += step.len() + usize::from(end > 0);
        let name = step.split('[').next().unwrap_or_default();
        // A gRPC method has a field of this name, too.
        let is_reference = name != "service" || matches!(before, "backend" | "defaultBackend");
        if let Some((_, kind)) = FIELDS.iter().find(|(known, _)| *known == name && is_reference) {
            found = Some((&field[..end], *kind));
        }
        before = name;
    }
    found
}

/// The reference in a field of an object.
fn reference(object: &Value, field: &str) -> Option<Reference> {
    let (path, kind) = innermost(field)?;
    let value = at(object, path)?;
    let namespace =
        object["metadata"]["namespace"].as_str().filter(|name| !name.is_empty()).unwrap_or("default");
    let text = |field: &str| value[field].as_str();
    let kind = match text("kind") {
        Some(written) => Kind::ALL.iter().copied().find(|kind| kind.as_str() == written)?,
        None => kind?,
    };
    Some(Reference {
        kind,
        namespace: if kind.is_namespaced() {
            text("namespace").unwrap_or(namespace).to_owned()
        } else {
            String::new()
        },
        name: text("name").or(value.as_str())?.to_owned(),
        section: text("sectionName").map(str::to_owned),
    })
}

/// The names of the objects of a kind.
#[derive(Default)]
struct Names {
    by_namespace: BTreeMap<Arc<str>, Vec<ObjectName>>,
    /// The namespaces by name.
    namespaces: BTreeMap<String, Vec<Arc<str>>>,
}

impl Names {
    fn of(kind: Kind, objects: &Objects) -> Self {
        let mut names = Self::default();
        for ObjectKey { name, .. } in objects.of_kind(kind).map(|object| object.key()) {
            names.namespaces.entry(name.name.to_string()).or_default().push(name.namespace.clone());
            names.by_namespace.entry(name.namespace.clone()).or_default().push(name);
        }
        names
    }
}

/// The names that the authors of references may have meant. All of them are names of the input.
pub(super) struct Advice<'o> {
    objects: &'o Objects,
    names: BTreeMap<Kind, Names>,
    /// The number of names that references were compared with.
    compared: usize,
}

impl<'o> Advice<'o> {
    pub(super) const fn of(objects: &'o Objects) -> Self {
        Self { objects, names: BTreeMap::new(), compared: 0 }
    }

    /// A sentence with the name that the author of a reference may have meant, if the input lacks the object, listener or port
    /// that the reference names.
    pub(super) fn about(&mut self, object: &Value, field: &str) -> Option<String> {
        if last_step(field) == "protocol" {
            let written = at(object, field)?.as_str().filter(|written| !PROTOCOLS.contains(written))?;
            let meant = similar(written, PROTOCOLS)?;
            return Some(format!("Did you mean {meant}?"));
        }
        let objects = self.objects;
        let Reference { kind, namespace, name, section } = reference(object, field)?;
        let key = ObjectKey::new(kind, &*namespace, &*name);
        if let Some(Object::Service(service)) = objects.get(&key).filter(|_| last_step(field) == "port") {
            let ports: Vec<String> = service.ports.iter().map(|port| port.port.to_string()).collect();
            let is_one = at(object, field).is_some_and(|port| ports.contains(&port.to_string()));
            return (!is_one && !ports.is_empty()).then(|| format!("Its ports: {}.", ports.join(", ")));
        }
        if objects.contains(&key) {
            if self.compared > MAX_COMPARED_NAMES {
                return None;
            }
            let listeners = listeners(objects, &key);
            self.compared += listeners.len();
            let listener = section.filter(|section| !listeners.contains(section))?;
            let meant = similar(&listener, listeners.iter().map(String::as_str))?;
            return Some(format!("Did you mean {meant}?"));
        }
        let names = self.names.entry(kind).or_insert_with(|| Names::of(kind, objects));
        let beside = names.by_namespace.get(&*namespace).map(Vec::as_slice).unwrap_or_default();
        self.compared += beside.len();
        if self.compared <= MAX_COMPARED_NAMES
            && let Some(meant) = similar(&name, beside.iter().map(|other| &*other.name))
        {
            return Some(format!("Did you mean {meant}?"));
        }
        let [other] = names.namespaces.get(&name)?.as_slice() else { return None };
        Some(format!("Namespace {other} has one of this name."))
    }
}

/// The most names that the references of an input are compared with. Later references get no advice about similar names.
const MAX_COMPARED_NAMES: usize = 1 << 17;

/// The names of the listeners of a Gateway or ListenerSet.
fn listeners(objects: &Objects, key: &ObjectKey) -> BTreeSet<String> {
    let listeners = match objects.get(key) {
        Some(Object::Gateway(gateway)) => gateway.spec.listeners.clone(),
        Some(Object::ListenerSet(set)) => set.spec.listeners.clone(),
        Some(_) | None => Vec::new(),
    };
    listeners.into_iter().map(|listener| listener.name).collect()
}
