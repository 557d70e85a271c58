//! References to CA certificates.

use std::fmt;
use std::sync::Arc;

use super::References;
use super::cache::not_read_yet;
use crate::bounds;
use crate::model::{FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal, article};
use crate::pingsix::validate::{CertificateError, check_authorities, read_authorities, write_section};
use crate::snapshot::AuthorityRef;

/// CA certificates of a ConfigMap. `Debug` shows the number of certificates alone.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) config_map: ObjectName,
    /// The reference that led here.
    pub(crate) at: FieldPath,
    /// The certificates as DER, at least one.
    certificates: Vec<Vec<u8>>,
}

impl Authority {
    /// The ConfigMap.
    pub(crate) fn key(&self) -> Arc<ObjectKey> {
        Arc::new(ObjectKey { kind: Kind::ConfigMap, name: self.config_map.clone() })
    }

    /// The certificates as canonical PEM.
    pub(crate) fn pem(&self) -> String {
        self.certificates.iter().map(|der| write_section("CERTIFICATE", der)).collect()
    }

    /// Refuses more certificates than a proxy takes.
    pub(crate) fn within_bounds(self) -> Result<Self, Refusal> {
        let bytes: usize = self.certificates.iter().map(Vec::len).sum();
        if self.certificates.len() <= bounds::AUTHORITIES && bytes <= bounds::AUTHORITY_BYTES {
            return Ok(self);
        }
        let message = format!(
            "Entry {ENTRY} of ConfigMap {} has {} certificates of {bytes} bytes in all, and {} of {} bytes are possible.",
            self.config_map,
            self.certificates.len(),
            bounds::AUTHORITIES,
            bounds::AUTHORITY_BYTES
        );
        Err(Refusal::new(self.at.child("name"), Reason::InvalidCaCertificateRef, message))
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config_map, at, certificates } = self;
        let count = certificates.len();
        f.debug_struct("Authority")
            .field("config_map", config_map)
            .field("at", at)
            .field("count", &count)
            .finish()
    }
}

/// The entry of a ConfigMap that holds CA certificates (Gateway API, `caCertificateRefs`).
const ENTRY: &str = "ca.crt";

/// Refuses a reference to another kind than ConfigMap.
fn refuse_kind(reference: &AuthorityRef<'_>, reason: Reason, at: &FieldPath) -> Result<(), Refusal> {
    if reference.is_config_map() {
        return Ok(());
    }
    let group = if reference.group.is_empty() { "the core group" } else { reference.group };
    let field = if reference.kind == Kind::ConfigMap.as_str() { "group" } else { "kind" };
    let message = format!(
        "CA certificates are read from a ConfigMap, not from {} {} of {group}.",
        article(reference.kind),
        reference.kind
    );
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
        self.read(&reference.target(namespace), at, check_authorities)
    }

    /// The CA certificates of a caCertificateRef of a Gateway, in any namespace.
    pub(crate) fn frontend_authorities(
        &self,
        referrer: &ObjectKey,
        reference: &AuthorityRef<'_>,
        at: &FieldPath,
    ) -> Result<Authority, Refusal> {
        refuse_kind(reference, Reason::InvalidCaCertificateKind, at)?;
        let name = reference.target(&referrer.name.namespace);
        let key = ObjectKey { kind: Kind::ConfigMap, name };
        self.check_permission(referrer, &key, at)?;
        let certificates = self.read(&key.name, at, read_authorities)?;
        Ok(Authority { config_map: key.name, at: at.clone(), certificates })
    }

    /// The contents of a ConfigMap, read by a function.
    fn read<A>(
        &self,
        name: &ObjectName,
        at: &FieldPath,
        read: impl FnOnce(&str) -> Result<A, CertificateError>,
    ) -> Result<A, Refusal> {
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
        read(text)
            .map_err(|error| invalid(format!("Entry {ENTRY} of ConfigMap {name} cannot be used: {error}.")))
    }
}
