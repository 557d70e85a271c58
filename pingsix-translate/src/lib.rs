#![doc = include_str!("../README.md")]

mod attach;
mod bounds;
pub mod crd;
mod feature;
mod few;
mod field;
#[cfg(test)]
mod fixture;
pub mod infrastructure;
mod lower;
mod object;
mod options;
mod packed;
mod parameters;
pub mod pingsix;
mod policy;
mod provenance;
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

pub use attach::{Hostname, HostnameFlaw};
pub use feature::{FEATURES, Feature, Need, supported_features};
pub use field::FieldPath;
pub use object::{GATEWAY_GROUP, INGRESS_GROUP, Kind, NameParts, ObjectKey, ObjectName, PINGSIX_GROUP};
pub use options::{Budget, DEFAULT_CONTROLLER_NAME, Layout, Options};
pub use provenance::{
    CertificateReference, Decision, Origin, Provenance, Reference, Section, StreamProvenance,
};
pub use quarantine::Quarantine;
pub use resolve::certificate_validity;
pub use route::ParentRef;
pub use shared_map::{Change, SharedMap};
pub use snapshot::{IngressSnapshot, Object, Objects, Snapshot};
pub use translate::{Effort, Translator, translate, translate_ingress};
pub use translation::{DataPlane, DataPlaneKey, Size, StreamPlane, Translation};
