//! References to CA certificates.

use std::sync::Arc;

use gateway_api::backendtlspolicies::BackendTlsPolicyValidationCaCertificateRefs as AuthorityRef;

use super::References;
use crate::field::FieldPath;
use crate::object::{Kind, ObjectName};
use crate::pingsix::validate::check_authorities;
use crate::route::Refusal;
use crate::verdict::Reason;

/// The entry of a ConfigMap that holds CA certificates (Gateway API, `caCertificateRefs`).
const ENTRY: &str = "ca.crt";

impl References<'_> {
    /// Checks that a caCertificateRef of an object in this namespace leads to CA certificates. There is no field for
    /// another namespace.
    pub(crate) fn certificate_authorities(
        &self,
        namespace: &Arc<str>,
        reference: &AuthorityRef,
        at: &FieldPath,
    ) -> Result<(), Refusal> {
        if !reference.group.is_empty() || reference.kind != Kind::ConfigMap.as_str() {
            let group = if reference.group.is_empty() { "the core group" } else { &reference.group };
            let field = if reference.kind == Kind::ConfigMap.as_str() { "group" } else { "kind" };
            return Err(Refusal::new(
                at.child(field),
                Reason::InvalidKind,
                format!(
                    "CA certificates are read from a ConfigMap, not from a {} of {group}.",
                    reference.kind
                ),
            ));
        }
        let name = ObjectName::new(namespace.clone(), reference.name.as_str());
        let invalid =
            |message: String| Refusal::new(at.child("name"), Reason::InvalidCaCertificateRef, message);
        let config_map = self
            .referents
            .config_maps
            .get(&name)
            .ok_or_else(|| invalid(format!("ConfigMap {name} does not exist.")))?;
        let text = config_map
            .data
            .as_ref()
            .and_then(|data| data.get(ENTRY))
            .ok_or_else(|| invalid(format!("ConfigMap {name} has no entry {ENTRY}.")))?;
        check_authorities(text)
            .map_err(|fault| invalid(format!("Entry {ENTRY} of ConfigMap {name} cannot be used: {fault}.")))
    }
}
