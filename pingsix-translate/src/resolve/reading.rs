//! What is read of referents once, however many refer to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::certificate::KeyPair;
use super::grant::Grants;
use crate::object::ObjectName;
use crate::snapshot::{Referents, Secret};

/// What ReferenceGrants permit, and what Secrets hold.
///
/// It is a function of the referents: whoever keeps it has to say what of them is different.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(super) grants: Grants,
    /// What a Secret holds for TLS, or why it cannot be used, in one sentence.
    pub(super) key_pairs: BTreeMap<ObjectName, Result<KeyPair, String>>,
}

impl Reading {
    pub(crate) fn new(referents: &Referents) -> Self {
        let mut reading = Self::default();
        reading.read_grants(referents);
        for (name, secret) in &referents.secrets {
            reading.read_secret(name, Some(secret));
        }
        reading
    }

    /// Reads all ReferenceGrants.
    pub(crate) fn read_grants(&mut self, referents: &Referents) {
        self.grants = Grants::new(referents.reference_grants.values());
    }

    /// Reads a Secret, or forgets one that is gone.
    pub(crate) fn read_secret(&mut self, name: &ObjectName, secret: Option<&Arc<Secret>>) {
        match secret {
            Some(secret) => {
                self.key_pairs.insert(name.clone(), KeyPair::read(name, secret));
            }
            None => {
                self.key_pairs.remove(name);
            }
        }
    }
}
