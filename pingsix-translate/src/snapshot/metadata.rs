//! What is kept of an object's metadata, and what objects of every kind are known by.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::objects::key_of;
use super::pool::Pool;
use crate::model::{Age, Kind, ObjectName};

/// What is kept of an object's metadata: a tenth of what the generated type takes, of which there is one per object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Where it is, and its name.
    pub name: ObjectName,
    /// `metadata.generation`; 0 when it has none.
    pub generation: i64,
    pub(crate) age: Age,
}

impl Metadata {
    /// When it was created, to the second; `None` when it was never stored by an API server.
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

/// Metadata that says a name and nothing else.
pub(super) fn metadata_of(name: &ObjectName) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.name.as_ref().to_owned()),
        namespace: Some(name.namespace.as_ref().to_owned()).filter(|namespace| !namespace.is_empty()),
        ..ObjectMeta::default()
    }
}

/// The name that metadata say, whether the kind lives in a namespace or not.
pub(super) fn name_in(metadata: &ObjectMeta) -> ObjectName {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    ObjectName::new(namespace, metadata.name.as_deref().unwrap_or_default())
}

/// The kind of a type, as the table of kinds has it.
pub trait OfKind {
    /// Which kind.
    const KIND: Kind;
}

/// An object of a kind translation reads.
pub trait Identified: OfKind + Sized {
    /// The type with all fields of the API, with which its names of the kind go. It is the type itself if nothing is left out.
    type Wire: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Into<Self>;

    /// Where it is, and its name; the namespace is empty for cluster-scoped kinds.
    fn name(&self) -> ObjectName;

    /// `metadata.generation`; 0 when it has none, or when it is not kept.
    fn generation(&self) -> i64;

    /// Holds what other objects say as well together with them.
    fn share(&mut self, _pool: &mut Pool) {}

    /// Whether two versions of an object differ at most in bookkeeping of the API server.
    fn says_the_same(&self, other: &Self) -> bool;

    /// The content of the object, as a text that is the same for all versions that say the same. It may be secret.
    fn text(&self) -> String;
}

/// Objects that are kept as the API has them.
impl<K: OfKind + Resource<DynamicType = ()> + Serialize + DeserializeOwned> Identified for K {
    type Wire = Self;

    fn name(&self) -> ObjectName {
        key_of(K::KIND, self.meta()).name
    }

    fn generation(&self) -> i64 {
        self.meta().generation.unwrap_or_default()
    }

    fn says_the_same(&self, other: &Self) -> bool {
        essence(self.meta()) == essence(other.meta())
            && (has_generation(self.meta()) || without_metadata(self) == without_metadata(other))
    }

    fn text(&self) -> String {
        let rest = if has_generation(self.meta()) { Value::Null } else { without_metadata(self) };
        format!("{:?} {rest}", essence(self.meta()))
    }
}

/// The metadata that translation may look at.
fn essence(metadata: &ObjectMeta) -> impl PartialEq + Debug + use<> {
    let ObjectMeta { uid, generation, labels, annotations, .. } = metadata.clone();
    (uid, generation, labels, annotations)
}

/// Whether the rest of the object is told by its generation.
fn has_generation(metadata: &ObjectMeta) -> bool {
    metadata.generation.is_some_and(|generation| generation > 0)
}

fn without_metadata(object: &impl Serialize) -> Value {
    let mut object = serde_json::to_value(object).unwrap_or_default();
    object.as_object_mut().map(|object| object.remove("metadata"));
    object
}

/// Shares the namespace of a name that nobody holds yet.
pub(super) fn share_namespace(name: &mut ObjectName, pool: &mut Pool) {
    if let Some(name) = name.get_mut() {
        pool.text(&mut name.namespace);
    }
}
