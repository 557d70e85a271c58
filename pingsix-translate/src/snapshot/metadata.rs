//! The metadata of objects that translation keeps, and the identity of objects of every kind.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::pool::Pool;
use crate::model::{Age, Kind, ObjectKey, ObjectName};

/// The metadata that translation keeps for each object: a tenth of the size of the generated type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Namespace and name.
    pub name: ObjectName,
    /// `metadata.generation`; 0 when it has none.
    pub generation: i64,
    pub(crate) age: Age,
}

impl Metadata {
    /// The time of creation, to the second; `None` if no API server has stored the object.
    pub fn created(&self) -> Option<Time> {
        self.age.created()
    }
}

impl From<&ObjectMeta> for Metadata {
    fn from(metadata: &ObjectMeta) -> Self {
        Self {
            name: name_in(metadata),
            generation: metadata.generation.unwrap_or_default(),
            age: Age::of(metadata),
        }
    }
}

impl From<&Metadata> for ObjectMeta {
    fn from(metadata: &Metadata) -> Self {
        let generation = Some(metadata.generation).filter(|generation| *generation != 0);
        Self { generation, creation_timestamp: metadata.created(), ..metadata_of(&metadata.name) }
    }
}

/// Metadata with a name alone.
pub(super) fn metadata_of(name: &ObjectName) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.name.as_ref().to_owned()),
        namespace: Some(name.namespace.as_ref().to_owned()).filter(|namespace| !namespace.is_empty()),
        ..ObjectMeta::default()
    }
}

/// The namespace and name in metadata. The namespace is empty if absent.
pub(super) fn name_in(metadata: &ObjectMeta) -> ObjectName {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    ObjectName::new(namespace, metadata.name.as_deref().unwrap_or_default())
}

/// The identity of an object with this metadata.
pub(crate) fn key_of(kind: Kind, metadata: &ObjectMeta) -> ObjectKey {
    let namespace = if kind.is_namespaced() { metadata.namespace.as_deref().unwrap_or_default() } else { "" };
    ObjectKey::new(kind, namespace, metadata.name.as_deref().unwrap_or_default())
}

/// A type of objects of one kind.
pub trait OfKind {
    /// The kind.
    const KIND: Kind;
}

/// An object of a kind that translation reads.
pub trait Identified: OfKind + Sized {
    /// The type with all fields of the API, which also has the names of the kind. It is `Self` if no field is left out.
    type Wire: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Into<Self>;

    /// Namespace and name; the namespace is empty for cluster-scoped kinds.
    fn name(&self) -> ObjectName;

    /// `metadata.generation`; 0 if it is absent or not kept.
    fn generation(&self) -> i64;

    /// Interns values that other objects have, too.
    fn share(&mut self, _pool: &mut Pool) {}

    /// Whether two versions of an object differ at most in fields that the API server maintains.
    fn has_equal_content(&self, other: &Self) -> bool;

    /// The content of the object as a text, which is equal for all versions with the same content. It may be secret.
    fn text(&self) -> String;
}

/// Objects with all fields of the API.
impl<K: OfKind + Resource<DynamicType = ()> + Serialize + DeserializeOwned> Identified for K {
    type Wire = Self;

    fn name(&self) -> ObjectName {
        key_of(K::KIND, self.meta()).name
    }

    fn generation(&self) -> i64 {
        self.meta().generation.unwrap_or_default()
    }

    fn has_equal_content(&self, other: &Self) -> bool {
        essence(self.meta()) == essence(other.meta())
            && (has_generation(self.meta()) || without_metadata(self) == without_metadata(other))
    }

    fn text(&self) -> String {
        let rest = if has_generation(self.meta()) { Value::Null } else { without_metadata(self) };
        format!("{:?} {rest}", essence(self.meta()))
    }
}

/// The metadata that translation uses.
fn essence(metadata: &ObjectMeta) -> impl PartialEq + Debug + use<> {
    let ObjectMeta { uid, generation, labels, annotations, .. } = metadata.clone();
    (uid, generation, labels, annotations)
}

/// Whether the generation stands for the rest of the object.
fn has_generation(metadata: &ObjectMeta) -> bool {
    metadata.generation.is_some_and(|generation| generation > 0)
}

fn without_metadata(object: &impl Serialize) -> Value {
    let mut object = serde_json::to_value(object).unwrap_or_default();
    object.as_object_mut().map(|object| object.remove("metadata"));
    object
}

/// Interns the namespace of a name without other references.
pub(super) fn share_namespace(name: &mut ObjectName, pool: &mut Pool) {
    if let Some(name) = name.get_mut() {
        pool.text(&mut name.namespace);
    }
}
