//! What is read of referents once, however many refer to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::certificate::KeyPair;
use super::grant::Grants;
use crate::object::{Kind, ObjectKey, ObjectName};
use crate::quarantine::{Quarantine, refuse_secret};
use crate::snapshot::{Referents, Secret};
use crate::verdict::Reason;

/// What ReferenceGrants permit, and what Secrets hold.
///
/// It is a function of the referents: whoever keeps it has to say what of them is different.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(super) grants: Grants,
    /// What a Secret holds for TLS, or why it cannot be used, in one sentence.
    pub(super) key_pairs: BTreeMap<ObjectName, Result<Arc<KeyPair>, (Reason, String)>>,
}

impl Reading {
    pub(crate) fn new(referents: &Referents) -> Self {
        let mut reading = Self::default();
        reading.read_grants(referents);
        for (name, secret) in &referents.secrets {
            reading.read_secret(name, Some(secret), &referents.quarantine);
        }
        reading
    }

    /// Reads all ReferenceGrants.
    pub(crate) fn read_grants(&mut self, referents: &Referents) {
        self.grants = Grants::new(referents.reference_grants.values());
    }

    /// Reads a Secret, or forgets one that is gone.
    pub(crate) fn read_secret(
        &mut self,
        name: &ObjectName,
        secret: Option<&Arc<Secret>>,
        quarantine: &Quarantine,
    ) {
        match secret {
            Some(secret) => {
                let key = ObjectKey { kind: Kind::Secret, name: name.clone() };
                let read = match refuse_secret(quarantine, &key) {
                    Some(refused) => Err((Reason::Quarantined, refused)),
                    None => KeyPair::read(name, secret)
                        .map(Arc::new)
                        .map_err(|message| (Reason::InvalidCertificateRef, message)),
                };
                self.key_pairs.insert(name.clone(), read);
            }
            None => {
                self.key_pairs.remove(name);
            }
        }
    }
}
