//! What is kept of an object's metadata, and what objects of every kind are known by.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::ObjectMeta;

use super::kinds::{
    BackendTlsPolicy, ConfigMap, Gateway, GatewayClass, Ingress, IngressClass, ListenerSet, Namespace,
    ReferenceGrant, Secret,
};
use super::objects::key_of;
use super::pool::Pool;
use crate::crd::PingsixProxy;
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

/// An object of a kind translation reads.
pub trait Identified {
    /// Where it is, and its name; the namespace is empty for cluster-scoped kinds.
    fn name(&self) -> ObjectName;

    /// `metadata.generation`; 0 when it has none, or when it is not kept.
    fn generation(&self) -> i64;

    /// Holds what other objects say as well together with them.
    fn share(&mut self, _pool: &mut Pool) {}
}

/// Shares the namespace of a name that nobody holds yet.
pub(super) fn share_namespace(name: &mut ObjectName, pool: &mut Pool) {
    if let Some(name) = name.get_mut() {
        pool.text(&mut name.namespace);
    }
}

/// Kinds held in the generated type.
macro_rules! generated {
    ($($kind:ident)+) => {$(
        impl Identified for $kind {
            fn name(&self) -> ObjectName {
                key_of(Kind::$kind, &self.metadata).name
            }

            fn generation(&self) -> i64 {
                self.metadata.generation.unwrap_or_default()
            }
        }
    )+};
}

generated! {
    GatewayClass Gateway ListenerSet BackendTlsPolicy ReferenceGrant IngressClass Ingress Secret ConfigMap Namespace
    PingsixProxy
}
