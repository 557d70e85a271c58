//! Stage 2: resolve references. Each ends resolved, or refused with the field at fault.

mod action;
mod authority;
mod backend;
mod certificate;
mod endpoint;
mod grant;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use action::{Action, Target};
pub(crate) use authority::AuthorityRef;
pub(crate) use backend::{Backend, BackendKey, Backends, ResolvedRule, Usage};
pub use certificate::certificate_validity;
pub(crate) use certificate::{Certificate, CertificateRef};
pub(crate) use endpoint::Endpoints;
use grant::Grants;
pub(crate) use service::AppProtocol;

use crate::object::ObjectName;
use crate::snapshot::{Referents, Service};

/// The label every namespace carries, also one whose object we do not have.
const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Answers questions about objects that others refer to.
#[derive(Debug)]
pub(crate) struct References<'a> {
    referents: &'a Referents,
    grants: Grants,
}

impl<'a> References<'a> {
    pub(crate) fn new(referents: &'a Referents) -> Self {
        Self { referents, grants: Grants::new(referents.reference_grants.values()) }
    }

    /// A Service that a route refers to, if it exists.
    pub(crate) fn service(&self, name: &ObjectName) -> Option<&'a Service> {
        self.referents.services.get(name).map(|service| &**service)
    }

    /// The labels of a namespace.
    pub(crate) fn namespace_labels(&self, name: &Arc<str>) -> BTreeMap<String, String> {
        let mut labels = self
            .referents
            .namespaces
            .get(name)
            .and_then(|namespace| namespace.metadata.labels.clone())
            .unwrap_or_default();
        labels.insert(NAMESPACE_NAME_LABEL.to_owned(), name.to_string());
        labels
    }
}
