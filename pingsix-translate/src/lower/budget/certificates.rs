//! What the certificates of a data plane cost, and who is charged.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attach::ServerName;
use crate::field::FieldPath;
use crate::lower::document::Lowering;
use crate::lower::ssl::ServedCertificate;
use crate::object::{Age, ObjectKey, ObjectName, compare_age};
use crate::pingsix::{FRAMING, canonical_prefix, json_len};

/// `ssls/s234567234567`, with an id that collided, and `{"cert":,"key":,"snis":[""]}`.
const DOCUMENT: usize = 60;

/// The certificate that an owner refers to in one place, with all names that it is shown for there.
pub(super) struct CertificateItem<'a> {
    pub(super) owner: &'a Arc<ObjectKey>,
    pub(super) age: Age,
    pub(super) at: FieldPath,
    pub(super) secret: &'a ObjectName,
    pub(super) names: Vec<&'a ServerName>,
    /// Bytes of its documents.
    pub(super) bytes: usize,
}

/// The certificates of a data plane, oldest owner first; those of one owner in the order of their fields.
pub(super) fn certificate_items<'a>(lowering: &Lowering<'a>) -> Vec<CertificateItem<'a>> {
    let prefix = canonical_prefix(&lowering.plane.key.prefix(&lowering.options.root)).len();
    let mut by_reference: BTreeMap<(&Arc<ObjectKey>, String), Vec<&ServedCertificate>> = BTreeMap::new();
    for served in &lowering.plane.certificates.served {
        let at = served.certificate.at.to_string();
        let Some(owner) = served.owner() else { continue };
        by_reference.entry((owner, at)).or_default().push(served);
    }
    let item = |((owner, _), served): ((&'a Arc<ObjectKey>, String), Vec<&'a ServedCertificate>)| {
        let first = *served.first()?;
        let certificate = &first.certificate;
        let material = json_len(&&*certificate.chain) + json_len(&&*certificate.key);
        let names: Vec<&ServerName> = served.iter().map(|served| &served.name).collect();
        let of_name = |name: &&ServerName| prefix + FRAMING + DOCUMENT + material + name.to_string().len();
        Some(CertificateItem {
            owner,
            age: first.age,
            at: certificate.at.clone(),
            secret: &certificate.secret,
            bytes: names.iter().map(of_name).fold(0, usize::saturating_add),
            names,
        })
    };
    let mut items: Vec<CertificateItem<'a>> = by_reference.into_iter().filter_map(item).collect();
    items.sort_by(|left, right| compare_age((left.age, left.owner), (right.age, right.owner)));
    items
}
