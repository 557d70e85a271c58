//! The input: objects of the predecessors, and objects of Kubernetes that stay as they are.

mod fields;
mod old_version;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pingsix_translate::manifest::{how_to_quote, metadata_problem, type_in_words};
use pingsix_translate::{Kind, ObjectKey, ObjectName, is_dns_subdomain};
use serde_json::{Map, Value, json};

pub(crate) use fields::{Field, Fields, Seconds};

use super::error::ManifestError;
use super::report::{Place, Reason, Report};
pub(crate) use crate::predecessor::SourceKind;
use crate::predecessor::{APISIX_GROUP, version_to_convert};

/// The most nested lists of objects.
const MAX_LIST_DEPTH: usize = 8;

/// An object of a predecessor.
pub(crate) struct Source {
    pub(crate) kind: SourceKind,
    pub(crate) name: ObjectName,
    /// The object in the report.
    pub(crate) place: Place,
    pub(crate) spec: Fields,
}

/// Objects by name.
pub(super) type Asked = Rc<RefCell<BTreeSet<ObjectKey>>>;

/// The objects of the predecessors, by their names.
#[derive(Default)]
pub(crate) struct Predecessors(BTreeMap<(SourceKind, ObjectName), Source>);

impl Predecessors {
    /// Removes the objects of a kind, in the order of their names.
    pub(crate) fn take(&mut self, kind: SourceKind) -> Vec<Source> {
        let keys: Vec<_> = self.0.keys().filter(|(known, _)| *known == kind).cloned().collect();
        keys.into_iter().filter_map(|key| self.0.remove(&key)).collect()
    }

    /// Whether there is an object of a kind.
    pub(crate) fn has(&self, kind: SourceKind) -> bool {
        self.0.keys().any(|(known, _)| *known == kind)
    }

    /// The namespaces of the objects of some kinds.
    pub(crate) fn namespaces(&self, kinds: &[SourceKind]) -> BTreeSet<String> {
        let keys = self.0.keys().filter(|(kind, _)| kinds.contains(kind));
        keys.map(|(_, name)| name.namespace.to_string()).collect()
    }

    /// The values of `spec.ingressClassName`.
    pub(crate) fn class_names(&self) -> BTreeSet<String> {
        let specs = self.0.values().map(|source| source.spec.clone());
        let mut ignored = Report::default();
        specs
            .filter_map(|mut spec| spec.text("ingressClassName", &mut ignored))
            .map(|(_, name)| name)
            .filter(|name| !name.is_empty())
            .collect()
    }
}

/// All objects of the input.
#[derive(Default)]
pub(crate) struct Sources {
    predecessors: Predecessors,
    /// Objects that stay as they are, without the fields that the API server writes.
    pub(crate) kept: BTreeMap<ObjectKey, Arc<Value>>,
    /// The times at which these were created, as far as the input has them.
    pub(crate) created: BTreeMap<ObjectKey, String>,
    /// The objects of the predecessors as the input has them. They hold secrets.
    written: Vec<(Place, Value)>,
    asked: Asked,
}

impl Sources {
    /// Takes an object, or a list of objects. Returns their number.
    ///
    /// # Errors
    ///
    /// When the value is no object.
    pub(crate) fn add(&mut self, value: Value, report: &mut Report) -> Result<usize, ManifestError> {
        self.add_below(value, MAX_LIST_DEPTH, report)
    }

    /// The objects that a conversion asks for by name, existing or not. A copy sees later questions, too.
    pub(crate) fn asked(&self) -> Asked {
        Rc::clone(&self.asked)
    }

    fn add_below(&mut self, value: Value, depth: usize, report: &mut Report) -> Result<usize, ManifestError> {
        let mut fields = match value {
            Value::Null => return Ok(0),
            Value::Object(fields) => fields,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(ManifestError::NotAnObject);
            }
        };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err(ManifestError::WithoutKind);
        }
        if kind.ends_with("List") && fields.get("items").is_some_and(Value::is_array) {
            let depth = depth.checked_sub(1).ok_or(ManifestError::TooDeep)?;
            let Some(Value::Array(items)) = fields.remove("items") else { return Ok(0) };
            for name in fields.keys().filter(|name| !STANDARD_FIELDS.contains(&name.as_str())) {
                let place = Place::object(kind.as_str()).at(name);
                let message = "A list has no such field, so its effect is unknown.";
                report.blocking(&place, Reason::UnknownField, message);
            }
            let item_kind = kind.strip_suffix("List").unwrap_or_default();
            let mut count = 0;
            for mut item in items {
                if let Value::Object(item) = &mut item
                    && !item_kind.is_empty()
                {
                    item.entry("apiVersion").or_insert_with(|| json!(api_version));
                    item.entry("kind").or_insert_with(|| json!(item_kind));
                }
                count += self.add_below(item, depth, report)?;
            }
            return Ok(count);
        }
        self.insert(&api_version, &kind, fields, report);
        Ok(1)
    }

    fn insert(&mut self, api_version: &str, kind: &str, mut fields: Map<String, Value>, report: &mut Report) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let old = old_version::kind(group, version, kind);
        let known = old.or_else(|| Kind::from_group_kind(group, kind));
        let place = Place::object(shown(kind, known, fields.get("metadata")));
        if group == APISIX_GROUP {
            self.insert_predecessor(api_version, kind, fields, (place, report));
            return;
        }
        let Some(known) = known else {
            let message = "The kind has no part in a migration, so the object is not written again.";
            return report.limited(&place, Reason::UnknownKind, message);
        };
        let name = match name(known.as_str(), known.is_namespaced(), fields.get("metadata")) {
            Ok(name) => name,
            Err(why) => {
                report.blocking(&place, Reason::InvalidName, format!("{why} The object is not written."));
                return;
            }
        };
        let key = ObjectKey { kind: known, name };
        if self.kept.contains_key(&key) {
            let message = "The input has the object twice; the first one counts.";
            return report.blocking(&place, Reason::Duplicate, message);
        }
        let created = fields.get("metadata").and_then(|metadata| metadata.get("creationTimestamp")?.as_str());
        if let Some(created) = created {
            self.created.insert(key.clone(), created.to_owned());
        }
        if old.is_some() {
            old_version::convert(known, &mut fields, &place, report);
        } else if !known.versions().contains(&version) {
            let message = format!(
                "The version of the object is not read, so it stays as it is. Write {}.",
                known.api_version()
            );
            report.impossible(&place.at("apiVersion"), Reason::UnknownKind, message);
        }
        check_metadata(&fields, &place, report);
        self.kept.insert(key, as_applied(known, fields).into());
    }

    fn insert_predecessor(
        &mut self,
        api_version: &str,
        kind: &str,
        mut fields: Map<String, Value>,
        (place, report): (Place, &mut Report),
    ) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let Some(kind) = SourceKind::of(version, kind) else {
            let message = match version_to_convert(group, kind) {
                Some(known) => format!("Of {kind}, {group}/{known} is converted, not {api_version}."),
                None => format!("{api_version} has no such kind, or its meaning is unknown."),
            };
            return report.blocking(&place, Reason::UnknownKind, message);
        };
        let name = match name(kind.as_str(), true, fields.get("metadata")) {
            Ok(name) => name,
            Err(why) => {
                report.blocking(&place, Reason::InvalidName, format!("{why} The object is not converted."));
                return;
            }
        };
        if self.predecessors.0.contains_key(&(kind, name.clone())) {
            let message = "The input has the object twice; the first one counts.";
            return report.blocking(&place, Reason::Duplicate, message);
        }
        check_metadata(&fields, &place, report);
        self.written.push((place.clone(), Value::Object(fields.clone())));
        let is_known = |name: &String| name == "spec" || STANDARD_FIELDS.contains(&name.as_str());
        for name in fields.keys().filter(|name| !is_known(name)) {
            let message = "The field is not understood, so its effect would be lost.";
            report.blocking(&place.at(name), Reason::UnknownField, message);
        }
        let spec = match fields.remove("spec") {
            Some(Value::Object(spec)) => Fields::new(place.at("spec"), spec),
            None | Some(Value::Null) => Fields::empty(place.at("spec")),
            Some(other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_))) => {
                let is = type_in_words(&other);
                let message = format!("The value is {is}, not an object, so the object is not converted.");
                return report.blocking(&place.at("spec"), Reason::InvalidValue, message);
            }
        };
        self.predecessors.0.insert((kind, name.clone()), Source { kind, name, place, spec });
    }

    /// Takes the objects of the predecessors as the input has them.
    pub(crate) fn take_written(&mut self) -> Vec<(Place, Value)> {
        std::mem::take(&mut self.written)
    }

    /// Takes the objects of the predecessors.
    pub(crate) fn take_predecessors(&mut self) -> Predecessors {
        std::mem::take(&mut self.predecessors)
    }

    /// The objects of a kind, in the order of their names.
    pub(crate) fn of_kind(&self, kind: SourceKind) -> impl Iterator<Item = &Source> {
        self.predecessors.0.values().filter(move |source| source.kind == kind)
    }

    /// The objects of a kind that stay as they are, in the order of their names.
    pub(crate) fn kept_of(&self, kind: Kind) -> impl Iterator<Item = (&ObjectKey, &Arc<Value>)> {
        let first = ObjectKey::new(kind, "", "");
        self.kept.range(first..).take_while(move |(key, _)| key.kind == kind)
    }

    /// All objects as the API server has them, with the times at which they were created.
    pub(super) fn as_created(&self) -> Vec<Value> {
        let kept = self.kept.iter().map(|(key, object)| {
            let mut object = Value::clone(object);
            if let Some(created) = self.created.get(key) {
                object["metadata"]["creationTimestamp"] = json!(created);
            }
            object
        });
        let predecessors = self.predecessors.0.values().map(|source| {
            let (version, kind) = source.kind.version_and_name();
            json!({
                "apiVersion": format!("{APISIX_GROUP}/{version}"), "kind": kind,
                "metadata": { "namespace": &*source.name.namespace, "name": &*source.name.name },
                "spec": source.spec.to_value(),
            })
        });
        kept.chain(predecessors).collect()
    }

    /// The port of a Service of the input: its name, by number or name.
    pub(crate) fn service_port(&self, service: &ObjectName, port: &str) -> ServicePort {
        self.find_port(service, |candidate| is_port(candidate, port))
    }

    /// The port of a Service of the input, by number, name or target port.
    pub(crate) fn service_or_target_port(&self, service: &ObjectName, port: &str) -> ServicePort {
        let is_target = |candidate: &Value| match candidate.get("targetPort") {
            Some(Value::String(name)) => name == port,
            Some(number) => number.as_u64().is_some_and(|number| port.parse() == Ok(number)),
            None => false,
        };
        self.find_port(service, |candidate| is_port(candidate, port) || is_target(candidate))
    }

    fn find_port(&self, service: &ObjectName, is_meant: impl Fn(&Value) -> bool) -> ServicePort {
        let key = ObjectKey { kind: Kind::Service, name: service.clone() };
        self.asked.borrow_mut().insert(key.clone());
        let Some(service) = self.kept.get(&key) else { return ServicePort::NoService };
        let ports = service.pointer("/spec/ports").and_then(Value::as_array);
        let found = ports.into_iter().flatten().find(|candidate| is_meant(candidate));
        let number = found.and_then(|found| found.get("port")?.as_u64());
        match (found, number.and_then(|number| u16::try_from(number).ok())) {
            (Some(found), Some(number)) => ServicePort::Known {
                number,
                name: found.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            },
            _ => ServicePort::NoPort,
        }
    }

    /// The entries of a Secret of the input.
    pub(crate) fn secret(&self, name: &ObjectName) -> Option<BTreeMap<String, Vec<u8>>> {
        let key = ObjectKey { kind: Kind::Secret, name: name.clone() };
        self.asked.borrow_mut().insert(key.clone());
        let secret = self.kept.get(&key)?;
        let mut entries = BTreeMap::new();
        for (entry, value) in secret.get("data").and_then(Value::as_object).into_iter().flatten() {
            let decoded = value.as_str().and_then(|text| STANDARD.decode(text).ok());
            entries.insert(entry.clone(), decoded.unwrap_or_default());
        }
        for (entry, value) in secret.get("stringData").and_then(Value::as_object).into_iter().flatten() {
            entries.insert(entry.clone(), value.as_str().unwrap_or_default().as_bytes().to_vec());
        }
        Some(entries)
    }
}

/// Whether a port of a Service has this number or name.
fn is_port(candidate: &Value, port: &str) -> bool {
    let number = candidate.get("port").and_then(Value::as_u64);
    candidate.get("name").and_then(Value::as_str) == Some(port)
        || number.is_some_and(|number| number.to_string() == port)
}

/// The result of a search for a port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServicePort {
    /// The input does not have the Service.
    NoService,
    /// The Service does not have the port.
    NoPort,
    Known {
        number: u16,
        /// Empty if the port has no name.
        name: String,
    },
}

/// The items of a list within a value; none if there is no list.
pub(super) fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The fields of an object beside its spec.
pub(crate) const STANDARD_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The annotation in which `kubectl` keeps the object as it was applied.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields of `metadata` that the API server writes.
pub(crate) const SERVER_FIELDS: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// The object in the report.
fn shown(kind: &str, known: Option<Kind>, metadata: Option<&Value>) -> String {
    let text = |field: &str| match metadata.and_then(|metadata| metadata.get(field)) {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => String::new(),
    };
    let (namespace, name) = (text("namespace"), text("name"));
    match namespace.as_str() {
        _ if known.is_some_and(|kind| !kind.is_namespaced()) => format!("{kind} {name}"),
        "" => format!("{kind} {DEFAULT_NAMESPACE}/{name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// The name of an object.
///
/// # Errors
///
/// A sentence, if the object has no name that Kubernetes admits.
fn name(kind: &str, is_namespaced: bool, metadata: Option<&Value>) -> Result<ObjectName, String> {
    if let Some((_, why)) = metadata_problem(kind, is_namespaced, metadata) {
        return Err(why);
    }
    let text = |field: &str| metadata.and_then(|metadata| metadata.get(field)?.as_str());
    let name = text("name").unwrap_or_default();
    let namespace = text("namespace").filter(|namespace| !namespace.is_empty()).unwrap_or(DEFAULT_NAMESPACE);
    let namespace = if is_namespaced { namespace } else { "" };
    if !is_dns_subdomain(name) {
        return Err("metadata.name is not a name of Kubernetes.".to_owned());
    }
    if is_namespaced && !is_dns_subdomain(namespace) {
        return Err("metadata.namespace is not a name of Kubernetes.".to_owned());
    }
    Ok(ObjectName::new(namespace, name))
}

/// Reports annotations and labels that are no texts. An API server takes null for the empty text, and refuses the object for
/// others.
fn check_metadata(fields: &Map<String, Value>, place: &Place, report: &mut Report) {
    for field in ["annotations", "labels"] {
        let at = place.at("metadata").at(field);
        let values = match fields.get("metadata").and_then(|metadata| metadata.get(field)) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(values)) => values,
            Some(other) => {
                let message = format!("The value is {}, not an object of texts.", type_in_words(other));
                report.blocking(&at, Reason::InvalidValue, message);
                continue;
            }
        };
        for (name, value) in values {
            let at = Place { field: format!("{}[{name}]", at.field), ..at.clone() };
            match value {
                Value::String(_) => {}
                Value::Null => {
                    let message = "The value is null, which an API server stores as an empty text.";
                    report.exact(&at, message);
                }
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    let message = format!(
                        "The value is {}, so an API server refuses the object. {}",
                        type_in_words(value),
                        how_to_quote(value)
                    );
                    report.blocking(&at, Reason::InvalidValue, message.trim_end());
                }
            }
        }
    }
}

/// The object as a user would apply it: without status and the fields that the API server writes.
fn as_applied(kind: Kind, mut fields: Map<String, Value>) -> Value {
    fields.remove("status");
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for name in SERVER_FIELDS {
            metadata.remove(name);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(LAST_APPLIED);
        }
        for field in ["annotations", "labels"] {
            let texts = metadata.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten();
            texts.filter(|(_, text)| text.is_null()).for_each(|(_, text)| *text = json!(""));
        }
        if kind.is_namespaced() {
            metadata.entry("namespace").or_insert_with(|| json!(DEFAULT_NAMESPACE));
        } else {
            metadata.remove("namespace");
        }
    }
    Value::Object(fields)
}
