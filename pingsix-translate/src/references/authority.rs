//! References to CA certificates.

use super::References;
use super::cache::not_read_yet;
use crate::model::{FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal};
use crate::pingsix::validate::check_authorities;
use crate::snapshot::AuthorityRef;

/// The entry of a ConfigMap that holds CA certificates (Gateway API, `caCertificateRefs`).
const ENTRY: &str = "ca.crt";

/// Refuses a reference to another kind than ConfigMap.
fn refuse_kind(reference: &AuthorityRef<'_>, reason: Reason, at: &FieldPath) -> Result<(), Refusal> {
    if reference.is_config_map() {
        return Ok(());
    }
    let group = if reference.group.is_empty() { "the core group" } else { reference.group };
    let field = if reference.kind == Kind::ConfigMap.as_str() { "group" } else { "kind" };
    let message =
        format!("CA certificates are read from a ConfigMap, not from a {} of {group}.", reference.kind);
    Err(Refusal::new(at.child(field), reason, message))
}

impl References<'_> {
    /// Checks that a caCertificateRef of a policy in this namespace leads to CA certificates. The reference has no field for
    /// another namespace.
    pub(crate) fn certificate_authorities(
        &self,
        namespace: &str,
        reference: &AuthorityRef<'_>,
        at: &FieldPath,
    ) -> Result<(), Refusal> {
        refuse_kind(reference, Reason::InvalidKind, at)?;
        self.check_authorities_of(&reference.target(namespace), at)
    }

    /// Checks that a caCertificateRef of a Gateway leads to CA certificates, in any namespace.
    pub(crate) fn frontend_authorities(
        &self,
        referrer: &ObjectKey,
        reference: &AuthorityRef<'_>,
        at: &FieldPath,
    ) -> Result<(), Refusal> {
        refuse_kind(reference, Reason::InvalidCaCertificateKind, at)?;
        let name = reference.target(&referrer.name.namespace);
        // Permission comes before existence, so authors cannot find out the objects of another namespace.
        if !self.permit(referrer, Kind::ConfigMap, &name) {
            return Err(Refusal::new(
                at.child("namespace"),
                Reason::RefNotPermitted,
                format!(
                    "No ReferenceGrant in namespace {} lets {referrer} use ConfigMap {name}.",
                    name.namespace
                ),
            ));
        }
        self.check_authorities_of(&name, at)
    }

    fn check_authorities_of(&self, name: &ObjectName, at: &FieldPath) -> Result<(), Refusal> {
        let invalid =
            |message: String| Refusal::new(at.child("name"), Reason::InvalidCaCertificateRef, message);
        let config_map = self.referents.config_maps.get(name).ok_or_else(|| {
            let key = ObjectKey { kind: Kind::ConfigMap, name: name.clone() };
            match not_read_yet(&self.referents.pending, &key) {
                Some(message) => Refusal::new(at.child("name"), Reason::Pending, message),
                None => invalid(format!("ConfigMap {name} does not exist.")),
            }
        })?;
        let text = config_map
            .data
            .as_ref()
            .and_then(|data| data.get(ENTRY))
            .ok_or_else(|| invalid(format!("ConfigMap {name} has no entry {ENTRY}.")))?;
        check_authorities(text)
            .map_err(|fault| invalid(format!("Entry {ENTRY} of ConfigMap {name} cannot be used: {fault}.")))
    }
}
