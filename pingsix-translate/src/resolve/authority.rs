//! References to certificate authorities.

use super::References;
use crate::field::FieldPath;
use crate::object::{Kind, ObjectKey, ObjectName};
use crate::pingsix::validate::check_certificates;
use crate::route::Refusal;
use crate::verdict::Reason;

/// The entry of a ConfigMap that holds certificates of authorities (Gateway API, `FrontendTLSValidation`).
const ENTRY: &str = "ca.crt";

/// A caCertificateRef of a Gateway, of whichever generated type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthorityRef<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

impl AuthorityRef<'_> {
    pub(crate) fn is_of(&self, kind: Kind) -> bool {
        self.group == kind.group() && self.kind == kind.as_str()
    }

    /// What it names, written in an object of `namespace`.
    pub(crate) fn target(&self, namespace: &str) -> ObjectName {
        ObjectName::new(self.namespace.unwrap_or(namespace), self.name)
    }
}

impl References<'_> {
    /// Resolves a caCertificateRef to a ConfigMap with certificates.
    pub(crate) fn authority(
        &self,
        referrer: &ObjectKey,
        reference: &AuthorityRef<'_>,
        at: &FieldPath,
    ) -> Result<(), Refusal> {
        if !reference.is_of(Kind::ConfigMap) {
            return Err(Refusal::new(
                at.child("kind"),
                Reason::InvalidCACertificateKind,
                format!(
                    "Authorities are read from a ConfigMap, not from {} of group \"{}\".",
                    reference.kind, reference.group
                ),
            ));
        }
        let name = reference.target(&referrer.name.namespace);
        // Judged before existence, so that nobody learns what another namespace holds.
        if !self.grants.permit(referrer, Kind::ConfigMap, &name) {
            return Err(Refusal::new(
                at.child("namespace"),
                Reason::RefNotPermitted,
                format!(
                    "No ReferenceGrant in namespace {} lets {referrer} use ConfigMap {name}.",
                    name.namespace
                ),
            ));
        }
        let invalid =
            |message: String| Err(Refusal::new(at.child("name"), Reason::InvalidCACertificateRef, message));
        let Some(config_map) = self.referents.config_maps.get(&name) else {
            return invalid(format!("ConfigMap {name} does not exist."));
        };
        let Some(text) = config_map.data.as_ref().and_then(|data| data.get(ENTRY)) else {
            return invalid(format!("ConfigMap {name} has no entry {ENTRY}."));
        };
        match check_certificates(text) {
            Ok(()) => Ok(()),
            Err(fault) => invalid(format!("Entry {ENTRY} of ConfigMap {name} cannot be used: {fault}.")),
        }
    }
}
