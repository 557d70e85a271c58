//! Encryption of secrets as PingSIX's `data_encryption` has it, for parameters with a keyring.
//!
//! The requested keys and the keys of the running processes determine the encrypting key and the keys of new processes
//! ([`plan_keys`]). The module keeps no state, so the result is the same after a restart, and in every replica.

use std::collections::BTreeMap;

use pingsix_sink::resource::{self, KeyringError, Sealer};
use pingsix_translate::{DataPlaneKey, ObjectKey};
use thiserror::Error;

use super::provisioning::{Managed, keyring_of};
use crate::provision::{DeployedKeys, KeyPlan, Keyring, MissingKeysError, plan_keys};
use crate::reconcile::{Publication, Reconciler};

/// The state of encrypted secrets, by owner.
#[derive(Debug, Default)]
pub(super) struct SecretEncryptions(BTreeMap<ObjectKey, SecretEncryption>);

/// The form in which a data plane receives secrets.
#[derive(Debug)]
enum SecretEncryption {
    /// The keys of the processes are still unknown. Publication waits, usually for a moment.
    Unknown,
    /// No instance reads the secrets yet, and no key is known.
    Refused(EncryptionError),
    Key(Key),
}

/// The error of an encryption. The documents of the owner are not published.
#[derive(Clone, Debug, Error)]
pub(super) enum EncryptionError {
    #[error(transparent)]
    Keyring(#[from] MissingKeysError),
    /// A named key is invalid.
    #[error("Secrets cannot be encrypted: {0}.")]
    Unusable(#[from] KeyringError),
}

/// The encryption of a data plane.
#[derive(Debug)]
struct Key {
    /// The only entry with encrypted secrets.
    entry: Keyring,
    keyring: resource::Keyring,
    sealers: BTreeMap<DataPlaneKey, Sealer>,
}

impl SecretEncryptions {
    /// The id of the key that encrypts an owner's secrets from now on; `None` without encryption.
    fn set(&mut self, owner: &ObjectKey, seal: Result<Option<String>, MissingKeysError>) {
        let before = self.0.remove(owner);
        let seal = match seal {
            Ok(None) => return,
            Ok(Some(entry)) => match before {
                Some(SecretEncryption::Key(key)) if key.entry.0 == [entry.as_str()] => {
                    SecretEncryption::Key(key)
                }
                _ => Key::new(entry).map_or_else(SecretEncryption::Refused, SecretEncryption::Key),
            },
            Err(why) => SecretEncryption::Refused(why.into()),
        };
        self.0.insert(owner.clone(), seal);
    }

    /// Determines the key that encrypts an owner's secrets before its publication.
    pub(super) fn update_owner(&mut self, reconciler: &Reconciler, managed: &Managed, owner: &ObjectKey) {
        match managed.plan_keys(reconciler, owner) {
            Some(plan) => self.set(owner, plan.seal),
            None => {
                self.0.insert(owner.clone(), SecretEncryption::Unknown);
            }
        }
        if let Some(SecretEncryption::Key(key)) = self.0.get_mut(owner) {
            let planes = reconciler.data_planes(owner);
            key.sealers.retain(|data_plane, _| planes.contains(data_plane));
        }
    }

    /// Whether publication waits for the keys of processes.
    pub(super) fn is_unknown(&self, owner: &ObjectKey) -> bool {
        matches!(self.0.get(owner), Some(SecretEncryption::Unknown))
    }

    /// The documents with encrypted secrets.
    ///
    /// # Errors
    ///
    /// [`EncryptionError`]: the documents must not be published.
    pub(super) fn seal(
        &mut self,
        owner: &ObjectKey,
        publication: Publication,
    ) -> Result<Publication, EncryptionError> {
        // Documents of streams are not for PingSIX.
        if matches!(publication.data_plane, DataPlaneKey::Stream { .. }) {
            return Ok(publication);
        }
        match self.0.get_mut(owner) {
            None => Ok(publication),
            Some(SecretEncryption::Key(key)) => Ok(key.seal(publication)),
            Some(SecretEncryption::Refused(why)) => Err(why.clone()),
            Some(SecretEncryption::Unknown) => Err(MissingKeysError::Unknown.into()),
        }
    }
}

impl Key {
    fn new(entry: String) -> Result<Self, EncryptionError> {
        let keyring = resource::Keyring::new([entry.as_str()])?;
        Ok(Self { entry: Keyring(vec![entry]), keyring, sealers: BTreeMap::new() })
    }

    fn seal(&mut self, publication: Publication) -> Publication {
        let Publication { data_plane, desired } = publication;
        let sealer = self.sealers.entry(data_plane.clone());
        let sealer = sealer.or_insert_with(|| Sealer::new(self.keyring.clone()));
        Publication { desired: sealer.seal(&desired), data_plane }
    }
}

impl Managed {
    /// The keys for the processes of an owner, or the reason for which they keep theirs.
    pub(super) fn keys_of_processes(
        &self,
        reconciler: &Reconciler,
        owner: &ObjectKey,
    ) -> Result<Keyring, MissingKeysError> {
        self.plan_keys(reconciler, owner).map_or(Err(MissingKeysError::Unknown), |plan| plan.processes)
    }

    /// The plan for the keys of an owner; `None` while the keys of its processes are unknown.
    fn plan_keys(&self, reconciler: &Reconciler, owner: &ObjectKey) -> Option<KeyPlan> {
        let infrastructure = reconciler.infrastructure(owner);
        let asked = infrastructure.and_then(|infrastructure| keyring_of(reconciler.world(), infrastructure));
        // An owner without a keyring needs no keys.
        let deployed = if asked.is_some() { self.deployed_keys(owner)? } else { DeployedKeys::NoProcess };
        Some(plan_keys(asked.as_ref(), &deployed))
    }

    fn deployed_keys(&self, owner: &ObjectKey) -> Option<DeployedKeys> {
        if self.provisioning.is_none() {
            return Some(DeployedKeys::NoProcess);
        }
        Some(self.provisioned.get(owner)?.keys.clone())
    }

    /// Whether the keys of processes are being replaced. A process may be unable to read its documents for a moment
    /// if replicas of the controller see different states. No object is at fault for that.
    pub(super) fn is_rotating_keys(&self, reconciler: &Reconciler, owner: &ObjectKey) -> bool {
        let plan = self.plan_keys(reconciler, owner);
        plan.zip(self.deployed_keys(owner)).is_none_or(|(plan, deployed)| plan.is_under_way(&deployed))
    }
}
