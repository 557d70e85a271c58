//! Where parameters name a keyring, secrets are handed out as PingSIX's `data_encryption` has them.
//!
//! Which key encrypts, and which keys processes get, follows from those that are asked for and from those that processes
//! have ([`plan_keys`]); nothing of it is remembered here. So it is the same after a restart, and in every replica.

use std::collections::BTreeMap;

use pingsix_sink::resource::{self, KeyringError, Sealer};
use pingsix_translate::{DataPlaneKey, ObjectKey};
use thiserror::Error;

use super::Engine;
use super::provisioning::{Managed, keyring_of};
use crate::provision::{HeldKeys, KeyPlan, Keyring, KeyringFault, plan_keys};
use crate::reconcile::{Publication, Reconciler};

/// Of owners with secrets that are not handed out in plaintext, what becomes of these.
#[derive(Debug, Default)]
pub(super) struct Seals(BTreeMap<ObjectKey, Seal>);

/// How secrets are handed out.
#[derive(Debug)]
enum Seal {
    /// It is not known yet which keys processes have: nothing is handed out until then, which is a moment.
    Unknown,
    /// There is nobody yet who reads, and nothing to encrypt with.
    Refused(SealError),
    Key(Key),
}

/// Secrets cannot be encrypted as they should be, so that nothing of an owner is handed out.
#[derive(Clone, Debug, Error)]
pub(super) enum SealError {
    #[error(transparent)]
    Keyring(#[from] KeyringFault),
    /// What is named as a key is none.
    #[error("Secrets cannot be encrypted: {0}.")]
    Unusable(#[from] KeyringError),
}

/// What encrypts.
#[derive(Debug)]
struct Key {
    /// The one entry that does.
    entry: Keyring,
    keyring: resource::Keyring,
    sealers: BTreeMap<DataPlaneKey, Sealer>,
}

impl Seals {
    /// From now on, this key encrypts what an owner has; `None` for none.
    fn set(&mut self, owner: &ObjectKey, seal: Result<Option<String>, KeyringFault>) {
        let before = self.0.remove(owner);
        let seal = match seal {
            Ok(None) => return,
            Ok(Some(entry)) => match before {
                Some(Seal::Key(key)) if key.entry.0 == [entry.as_str()] => Seal::Key(key),
                _ => Key::new(entry).map_or_else(Seal::Refused, Seal::Key),
            },
            Err(why) => Seal::Refused(why.into()),
        };
        self.0.insert(owner.clone(), seal);
    }

    /// Sees which key encrypts what an owner has, before what was made of it is published.
    pub(super) fn look_at(&mut self, reconciler: &Reconciler, managed: &Managed, owner: &ObjectKey) {
        match managed.plan_keys(reconciler, owner) {
            Some(plan) => self.set(owner, plan.seal),
            None => {
                self.0.insert(owner.clone(), Seal::Unknown);
            }
        }
        if let Some(Seal::Key(key)) = self.0.get_mut(owner) {
            let planes = reconciler.data_planes(owner);
            key.sealers.retain(|data_plane, _| planes.contains(data_plane));
        }
    }

    /// Whether nothing of an owner is handed out for a moment.
    pub(super) fn is_unknown(&self, owner: &ObjectKey) -> bool {
        matches!(self.0.get(owner), Some(Seal::Unknown))
    }

    /// What is to be published in the place of something.
    ///
    /// # Errors
    ///
    /// [`SealError`]: nothing is.
    pub(super) fn seal(
        &mut self,
        owner: &ObjectKey,
        publication: Publication,
    ) -> Result<Publication, SealError> {
        // They are not for PingSIX.
        if matches!(publication.data_plane, DataPlaneKey::Stream { .. }) {
            return Ok(publication);
        }
        match self.0.get_mut(owner) {
            None => Ok(publication),
            Some(Seal::Key(key)) => Ok(key.seal(publication)),
            Some(Seal::Refused(why)) => Err(why.clone()),
            Some(Seal::Unknown) => Err(KeyringFault::Unknown.into()),
        }
    }
}

impl Key {
    fn new(entry: String) -> Result<Self, SealError> {
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
    /// Which keys the processes of an owner are to be given, or why they keep what they have.
    pub(super) fn keys_of_processes(
        &self,
        reconciler: &Reconciler,
        owner: &ObjectKey,
    ) -> Result<Keyring, KeyringFault> {
        self.plan_keys(reconciler, owner).map_or(Err(KeyringFault::Unknown), |plan| plan.processes)
    }

    /// What follows from the keys that an owner asks for; `None` as long as it is not known which ones its processes have.
    fn plan_keys(&self, reconciler: &Reconciler, owner: &ObjectKey) -> Option<KeyPlan> {
        let infrastructure = reconciler.infrastructure(owner);
        let asked = infrastructure.and_then(|infrastructure| keyring_of(reconciler.world(), infrastructure));
        // Who asks for none needs none, whatever there is.
        let held = if asked.is_some() { self.held_keys(owner)? } else { HeldKeys::Nobody };
        Some(plan_keys(asked.as_ref(), &held))
    }

    fn held_keys(&self, owner: &ObjectKey) -> Option<HeldKeys> {
        if self.provisioning.is_none() {
            return Some(HeldKeys::Nobody);
        }
        Some(self.provisioned.get(owner)?.keys.clone())
    }
}

impl Engine {
    /// Whether the keys of processes are being exchanged. A moment may come then in which one of them cannot read what it is
    /// given, when replicas of the controller do not see the same at the same time; no object is at fault for that.
    pub(super) fn are_keys_under_way(&self, owner: &ObjectKey) -> bool {
        let plan = self.managed.plan_keys(&self.parts.reconciler, owner);
        let held = self.managed.held_keys(owner);
        plan.zip(held).is_none_or(|(plan, held)| plan.is_under_way(&held))
    }
}
