//! The objects of the output.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pingsix_translate::{Kind, ObjectKey, ObjectName, is_dns_subdomain};
use serde_json::{Map, Value, json};

use super::origins::Origins;

/// The longest name that has room for a suffix.
const MAX_NAME_CHARS: usize = 240;

/// The objects by their names. They hold secrets, so the type has no `Debug`.
#[derive(Default)]
pub(crate) struct Objects {
    by_key: BTreeMap<ObjectKey, Arc<Value>>,
    /// The next number for a name that is taken.
    numbers: BTreeMap<ObjectKey, usize>,
    /// Names of objects that are added later.
    reserved: BTreeSet<ObjectKey>,
    /// Where the objects come from.
    pub(crate) origins: Origins,
    /// Namespaces and kinds of referrers, by the namespace and kind of their targets; with the names.
    grants: BTreeMap<GrantKey, BTreeSet<String>>,
}

/// A Secret that is to be written, perhaps under another name than the wanted one.
#[derive(Clone)]
pub(crate) struct NewSecret {
    namespace: String,
    wanted: String,
    type_name: &'static str,
    /// In base64.
    data: BTreeMap<String, String>,
}

impl NewSecret {
    pub(crate) fn new<N: Into<String>, V: AsRef<[u8]>>(
        type_name: &'static str,
        (namespace, wanted): (&str, String),
        entries: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let data = entries.into_iter().map(|(name, value)| (name.into(), STANDARD.encode(value))).collect();
        Self { namespace: namespace.to_owned(), wanted, type_name, data }
    }

    /// A Secret with the entry `key`.
    pub(crate) fn key(name: (&str, String), key: impl AsRef<[u8]>) -> Self {
        Self::new("Opaque", name, [("key", key)])
    }

    /// A Secret with a user and a password.
    pub(crate) fn user(name: (&str, String), user: &str, password: &str) -> Self {
        Self::new("kubernetes.io/basic-auth", name, [("username", user), ("password", password)])
    }
}

/// The two ends of references from one namespace into another one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct GrantKey {
    to_namespace: String,
    to: Kind,
    from: Kind,
    from_namespace: String,
}

impl Objects {
    /// Adds an object of the input.
    pub(crate) fn keep(&mut self, key: ObjectKey, value: impl Into<Arc<Value>>) {
        self.by_key.insert(key, value.into());
    }

    pub(crate) fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut Value> {
        self.by_key.get_mut(key).map(Arc::make_mut)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&ObjectKey, &mut Value)> {
        self.by_key.iter_mut().map(|(key, value)| (key, Arc::make_mut(value)))
    }

    pub(crate) fn contains(&self, key: &ObjectKey) -> bool {
        self.by_key.contains_key(key)
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.by_key.remove(key);
    }

    /// The wanted name, or a name like it with a number.
    fn name(&mut self, wanted: &ObjectKey, is_taken: impl Fn(&Self, &ObjectKey) -> bool) -> ObjectKey {
        let mut key = wanted.clone();
        // Many objects may want one name, so the search begins where the last one ended.
        let mut number = self.numbers.get(wanted).copied().unwrap_or(2);
        while is_taken(self, &key) {
            let name = format!("{}-{number}", wanted.name.name);
            key = ObjectKey::new(wanted.kind, wanted.name.namespace.clone(), name);
            number += 1;
        }
        self.numbers.insert(wanted.clone(), number);
        key
    }

    /// A name that no object of the kind has.
    pub(crate) fn free_name(&mut self, kind: Kind, namespace: &str, wanted: &str) -> String {
        let wanted = ObjectKey::new(kind, namespace, short(wanted));
        self.name(&wanted, Self::contains).name.name.to_string()
    }

    /// A name for an object that is added later, which neither an object nor another one of these has.
    pub(crate) fn reserve(&mut self, kind: Kind, namespace: &str, wanted: &str) -> String {
        let wanted = ObjectKey::new(kind, namespace, short(wanted));
        let key = self.name(&wanted, |objects, key| objects.contains(key) || objects.reserved.contains(key));
        let name = key.name.name.to_string();
        self.reserved.insert(key);
        name
    }

    /// Adds an object under the wanted name, or a name like it if that is taken. Returns the name.
    pub(crate) fn add(&mut self, kind: Kind, namespace: &str, wanted: &str, spec: Value) -> String {
        let fields = Map::from_iter([("spec".to_owned(), spec)]);
        self.add_with(kind, namespace, wanted, fields.into())
    }

    /// The same for an object with other fields than `spec`.
    pub(crate) fn add_with(&mut self, kind: Kind, namespace: &str, wanted: &str, fields: Value) -> String {
        let wanted = ObjectKey::new(kind, namespace, short(wanted));
        let key = self.name(&wanted, Self::contains);
        let name = key.name.name.to_string();
        let mut metadata = json!({ "name": name });
        if kind.is_namespaced() {
            metadata["namespace"] = json!(namespace);
        }
        let mut value =
            json!({ "apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": metadata });
        if let (Value::Object(value), Value::Object(fields)) = (&mut value, fields) {
            value.extend(fields);
        }
        self.keep(key, value);
        name
    }

    /// Adds a Secret. Returns its name.
    pub(crate) fn add_secret(&mut self, secret: NewSecret) -> ObjectName {
        let NewSecret { namespace, wanted, type_name, data } = secret;
        let fields = json!({ "data": data, "type": type_name });
        let name = self.add_with(Kind::Secret, &namespace, &wanted, fields);
        ObjectName::new(namespace, name)
    }

    /// Permits a reference. References within a namespace need no grant.
    pub(crate) fn grant(&mut self, from: (Kind, &str), to: Kind, target: &ObjectName) {
        let (from, from_namespace) = from;
        if from_namespace == &*target.namespace {
            return;
        }
        let key = GrantKey {
            to_namespace: target.namespace.to_string(),
            to,
            from,
            from_namespace: from_namespace.to_owned(),
        };
        self.grants.entry(key).or_default().insert(target.name.to_string());
    }

    /// The objects in the order in which they are applied: referents before those that refer to them.
    pub(crate) fn finish(mut self) -> (Vec<(ObjectKey, Arc<Value>)>, Origins) {
        for (key, names) in std::mem::take(&mut self.grants) {
            let GrantKey { to_namespace, to, from, from_namespace } = key;
            let to: Vec<Value> = names
                .iter()
                .map(|name| json!({ "group": to.group(), "kind": to.as_str(), "name": name }))
                .collect();
            let name = format!("{}-of-{from_namespace}", from.as_str().to_ascii_lowercase());
            // A grant names at most 16 objects.
            for to in to.chunks(16) {
                let spec = json!({
                    "from": [{ "group": from.group(), "kind": from.as_str(), "namespace": from_namespace }],
                    "to": to,
                });
                self.add(Kind::ReferenceGrant, &to_namespace, &name, spec);
            }
        }
        let mut objects: Vec<_> = self.by_key.into_iter().collect();
        objects.sort_by_key(|(key, _)| (place_of(key.kind), key.clone()));
        (objects, self.origins)
    }
}

/// The place of a kind in the output.
fn place_of(kind: Kind) -> usize {
    let first = [
        Kind::Namespace,
        Kind::PingsixProxy,
        Kind::GatewayClass,
        Kind::IngressClass,
        Kind::Secret,
        Kind::ConfigMap,
        Kind::ReferenceGrant,
        Kind::Service,
        Kind::EndpointSlice,
        // Policies come before the routes that they protect, so that no route is open for a moment.
        Kind::SecurityPolicy,
        Kind::TrafficPolicy,
        Kind::BackendTrafficPolicy,
        Kind::BackendTlsPolicy,
        Kind::HttpRouteFilter,
        Kind::Gateway,
        Kind::ListenerSet,
    ];
    first.iter().position(|known| *known == kind).unwrap_or(first.len())
}

/// A name of Kubernetes with room for a suffix.
fn short(name: &str) -> String {
    let mut kept: String = name.chars().take(MAX_NAME_CHARS).collect();
    kept.truncate(kept.trim_end_matches(['-', '.']).len());
    kept
}

/// A text of the input as part of a name.
pub(crate) fn label(text: &str, otherwise: &str) -> String {
    let mut label = String::new();
    for letter in text.chars().take(48) {
        if letter.is_ascii_alphanumeric() {
            label.push(letter.to_ascii_lowercase());
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    let label = label.trim_end_matches('-');
    if label.is_empty() { otherwise.to_owned() } else { label.to_owned() }
}

/// The name of a file for an object. Names come from the input, and the name of the file leads out of no directory.
pub fn file_name(key: &ObjectKey) -> String {
    let names =
        [key.kind.as_str().to_ascii_lowercase(), key.name.namespace.to_string(), key.name.name.to_string()];
    let parts = names.into_iter().filter(|part| !part.is_empty());
    let parts: Vec<String> = parts.filter(|part| is_dns_subdomain(part)).collect();
    format!("{}.yaml", parts.join("_"))
}
