#![doc = include_str!("../README.md")]

pub mod annotations;
mod attach;
mod backends;
mod bounds;
mod counts;
pub mod crd;
mod feature;
#[cfg(test)]
mod fixture;
pub mod infrastructure;
mod interner;
mod lower;
pub mod manifest;
mod model;
mod normalise;
mod packed;
mod parameters;
pub mod pingsix;
mod pipeline;
mod policy;
mod quarantine;
mod references;
pub mod responder;
pub mod selection;
mod shared_map;
mod small_set;
pub mod snapshot;
pub mod status;
pub mod stream;

pub use feature::{FEATURES, Feature, Need, supported_features};
pub use lower::{DataPlane, Size, StreamPlane};
pub use model::{
    BackendAddresses, Budget, Capability, CapabilityRow, CertificateReference, DEFAULT_CONTROLLER_NAME,
    DataPlaneKey, Decision, Executor, FieldPath, GATEWAY_GROUP, Hostname, HostnameError, INGRESS_GROUP, Kind,
    Layout, NameParts, Network, ObjectKey, ObjectName, Options, Origin, PINGSIX_GROUP, ParentRef,
    ParseDataPlaneKeyError, ParseObjectNameError, PolicyPlugins, Provenance, Reference, Section,
    StreamProvenance, article, is_backend_address, is_dns_label, is_dns_subdomain,
};
pub use pipeline::{
    Translation, TranslationMode, Translator, read_annotations, read_custom_headers, read_regex_uri,
    translate, translate_ingress,
};
pub use references::certificate_validity;
pub use shared_map::{Change, SharedMap};
pub use snapshot::{IngressSnapshot, Object, Objects, Quarantine, Snapshot};
