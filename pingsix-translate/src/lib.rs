#![doc = include_str!("../README.md")]

mod attach;
mod bounds;
pub mod crd;
mod feature;
mod few;
#[cfg(test)]
mod fixture;
pub mod infrastructure;
mod lower;
mod model;
mod packed;
mod parameters;
pub mod pingsix;
mod policy;
mod quarantine;
mod rare;
mod resolve;
pub mod responder;
mod route;
mod shared_map;
pub mod snapshot;
pub mod stream;
mod translate;
mod translation;
pub mod verdict;

pub use feature::{FEATURES, Feature, Need, supported_features};
pub use lower::{DataPlane, Size, StreamPlane};
pub use model::{
    Budget, CertificateReference, DEFAULT_CONTROLLER_NAME, DataPlaneKey, Decision, FieldPath, GATEWAY_GROUP,
    Hostname, HostnameFlaw, INGRESS_GROUP, Kind, Layout, NameParts, ObjectKey, ObjectName, Options, Origin,
    PINGSIX_GROUP, ParentRef, Provenance, Reference, Section, StreamProvenance,
};
pub use quarantine::Quarantine;
pub use resolve::certificate_validity;
pub use shared_map::{Change, SharedMap};
pub use snapshot::{IngressSnapshot, Object, Objects, Snapshot};
pub use translate::{Effort, Translator, translate, translate_ingress};
pub use translation::Translation;
