//! References: grants, certificates and authorities. Each reference is resolved, or refused with the field at fault.

mod authority;
mod cache;
mod certificate;
mod credential;
mod grant;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use authority::Authority;
pub(crate) use cache::ReferenceCache;
pub use certificate::certificate_validity;
pub(crate) use certificate::{Certificate, CertificateRef};
pub(crate) use credential::entry;
pub(crate) use grant::Grants;

use crate::model::{FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal};
use crate::snapshot::{Namespace, Referents, Service};

/// The label of every namespace, also of one whose object is not in the snapshot.
const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The referents of a snapshot with a cache of their contents.
#[derive(Debug)]
pub(crate) struct References<'a> {
    referents: &'a Referents,
    reference_cache: Arc<ReferenceCache>,
}

impl<'a> References<'a> {
    pub(crate) fn new(referents: &'a Referents) -> Self {
        Self::with(referents, Arc::new(ReferenceCache::new(referents)))
    }

    /// The same with a cache from an earlier translation.
    pub(crate) const fn with(referents: &'a Referents, reference_cache: Arc<ReferenceCache>) -> Self {
        Self { referents, reference_cache }
    }

    /// The cache.
    pub(crate) const fn reference_cache(&self) -> &Arc<ReferenceCache> {
        &self.reference_cache
    }

    /// The referents.
    pub(crate) const fn referents(&self) -> &'a Referents {
        self.referents
    }

    /// Whether an object may refer to one of this kind and name.
    pub(crate) fn permit(&self, referrer: &ObjectKey, kind: Kind, target: &ObjectName) -> bool {
        self.reference_cache.grants.permit(referrer, kind, target)
    }

    /// Refuses a reference to a forbidden object. Permission comes before existence, so authors cannot find out the objects of
    /// another namespace.
    pub(crate) fn check_permission(
        &self,
        referrer: &ObjectKey,
        target: &ObjectKey,
        at: &FieldPath,
    ) -> Result<(), Refusal> {
        if self.permit(referrer, target.kind, &target.name) {
            return Ok(());
        }
        let namespace = &target.name.namespace;
        let message = format!("No ReferenceGrant in namespace {namespace} lets {referrer} use {target}.");
        Err(Refusal::new(at.child("namespace"), Reason::RefNotPermitted, message))
    }

    /// A Service that a route refers to, if it exists.
    pub(crate) fn service(&self, name: &ObjectName) -> Option<&'a Service> {
        self.referents.services.get(name).map(|service| &**service)
    }

    /// The labels of a namespace.
    pub(crate) fn namespace_labels(&self, name: &Arc<str>) -> BTreeMap<String, String> {
        labels_of(name, self.referents.namespaces.get(name).map(AsRef::as_ref))
    }
}

/// The labels of a namespace, whose object may be absent from the snapshot.
pub(crate) fn labels_of(name: &str, namespace: Option<&Namespace>) -> BTreeMap<String, String> {
    let written = namespace.and_then(|namespace| namespace.metadata.labels.clone());
    let mut labels = written.unwrap_or_default();
    labels.insert(NAMESPACE_NAME_LABEL.to_owned(), name.to_owned());
    labels
}
