//! Vocabulary of every stage: identities of objects and their fields, hostnames, reasons, refusals, options.
//!
//! These modules know no stage, no object of Kubernetes and no document of PingSIX.

mod address;
mod article;
mod backend_address;
mod capability;
mod data_plane_key;
pub(crate) mod field;
mod hostname;
mod kind;
mod network;
mod object;
mod options;
mod parent_ref;
mod problem;
mod problems;
mod provenance;
mod reason;
mod refusal;
mod route_kind;
mod traffic;

pub use address::Address;
pub use article::article;
pub use backend_address::{BackendAddresses, is_backend_address};
pub(crate) use capability::Executors;
pub use capability::{Capability, CapabilityRow, Executor};
pub use data_plane_key::{DataPlaneKey, ParseDataPlaneKeyError};
pub use field::FieldPath;
pub use hostname::{Hostname, HostnameError};
pub(crate) use hostname::{
    and_wider as hostname_and_wider, covers as hostname_covers, precedence as hostname_precedence,
    wider as wider_hostnames,
};
pub use kind::{GATEWAY_GROUP, INGRESS_GROUP, Kind, PINGSIX_GROUP};
pub use network::Network;
pub(crate) use object::{Age, compare_age};
pub use object::{NameParts, ObjectKey, ObjectName, ParseObjectNameError, is_dns_label, is_dns_subdomain};
pub use options::{Budget, DEFAULT_CONTROLLER_NAME, Layout, Options};
pub use parent_ref::ParentRef;
pub use problem::{Problem, SHARE_OF_DEFAULT, Severity};
pub use problems::{ProblemChanges, Problems};
pub use provenance::{
    CertificateReference, Decision, Origin, PolicyPlugins, Provenance, Reference, Section, StreamProvenance,
};
pub use reason::{ConditionType, Reason};
pub(crate) use refusal::{Refusal, joined};
pub use route_kind::RouteKind;
pub(crate) use traffic::Traffic;
