//! The cache of referents: each is read once for all referring objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::certificate::KeyPair;
use super::grant::Grants;
use crate::model::{Kind, ObjectKey, ObjectName, Reason};
use crate::quarantine::refuse_secret;
use crate::snapshot::{Pending, Referents, Secret};

/// The contents of ReferenceGrants and Secrets.
///
/// The cache is a function of the referents. Its owner has to read changed referents again.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReferenceCache {
    pub(super) grants: Grants,
    /// The key pair of each Secret, or one sentence on why it cannot be used.
    pub(super) key_pairs: BTreeMap<ObjectName, Result<Arc<KeyPair>, (Reason, String)>>,
}

impl ReferenceCache {
    pub(crate) fn new(referents: &Referents) -> Self {
        let mut reference_cache = Self::default();
        reference_cache.read_grants(referents);
        for (name, secret) in &referents.secrets {
            reference_cache.read_secret(name, Some(secret), referents);
        }
        for key in referents.pending.keys().filter(|key| key.kind == Kind::Secret) {
            reference_cache.read_secret(&key.name, referents.secrets.get(&key.name), referents);
        }
        reference_cache
    }

    /// Reads all ReferenceGrants.
    pub(crate) fn read_grants(&mut self, referents: &Referents) {
        self.grants = Grants::new(referents.reference_grants.values());
    }

    /// Reads a Secret, or removes it from the cache if it is gone.
    pub(crate) fn read_secret(
        &mut self,
        name: &ObjectName,
        secret: Option<&Arc<Secret>>,
        referents: &Referents,
    ) {
        let key = ObjectKey { kind: Kind::Secret, name: name.clone() };
        let read = match (secret, not_read_yet(&referents.pending, &key)) {
            (Some(secret), _) => match refuse_secret(&referents.quarantine, &key) {
                Some(refused) => Err((Reason::Quarantined, refused)),
                None => KeyPair::read(name, secret)
                    .map(Arc::new)
                    .map_err(|message| (Reason::InvalidCertificateRef, message)),
            },
            (None, Some(message)) => Err((Reason::Pending, message)),
            (None, None) => {
                self.key_pairs.remove(name);
                return;
            }
        };
        self.key_pairs.insert(name.clone(), read);
    }
}

/// The message about an object that has not been read yet.
pub(super) fn not_read_yet(pending: &Pending, key: &ObjectKey) -> Option<String> {
    // The common case.
    if pending.is_empty() || !pending.contains_key(key) {
        return None;
    }
    let ObjectKey { kind, name } = key;
    Some(format!("The API server has not answered whether {kind} {name} exists."))
}

#[cfg(test)]
mod tests;
