//! The charge of the certificates of a data plane.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attach::ServerName;
use crate::lower::lowering::Lowering;
use crate::lower::ssl::{PresentedCertificate, SslKey};
use crate::model::{CertificateReference, ObjectKey, compare_age};

/// The certificate that an object refers to in one place, with all names that it is shown for there.
pub(super) struct CertificateItem<'a> {
    pub(super) shown: &'a PresentedCertificate,
    pub(super) names: Vec<&'a ServerName>,
    pub(super) document: SslKey,
    /// Bytes of the document without names, which the first item of the document is charged.
    pub(super) document_bytes: usize,
    /// Bytes that the names add to it.
    pub(super) name_bytes: usize,
}

impl<'a> CertificateItem<'a> {
    /// The Gateway, ListenerSet or Ingress that is charged.
    pub(super) fn owner(&self) -> &'a Arc<ObjectKey> {
        self.shown.by.object()
    }
}

/// The certificates of a data plane, oldest owner first, then in the order of references.
pub(super) fn certificate_items<'a>(lowering: &Lowering<'a>) -> Vec<CertificateItem<'a>> {
    let prefix = lowering.prefix();
    let mut items: BTreeMap<&CertificateReference, CertificateItem<'a>> = BTreeMap::new();
    for served in &lowering.plane.certificates.served {
        let shown: &'a PresentedCertificate = &served.shown;
        let item = items.entry(&shown.by).or_insert_with(|| CertificateItem {
            shown,
            names: Vec::new(),
            document: shown.document(),
            document_bytes: prefix + shown.certificate.listed_bytes(),
            name_bytes: 0,
        });
        item.name_bytes = item.name_bytes.saturating_add(served.name.listed_bytes());
        item.names.push(&served.name);
    }
    let mut items: Vec<CertificateItem<'a>> = items.into_values().collect();
    items
        .sort_by(|left, right| compare_age((left.shown.age, left.owner()), (right.shown.age, right.owner())));
    items
}
