//! Where parameters name a keyring, secrets are handed out as PingSIX's `data_encryption` has them.
//!
//! Which key encrypts does not change as long as it is among those that are named, wherever it stands there: processes
//! that were started with the keys of before read what is published until others have taken their place. When the keys
//! cannot be had, that of before goes on; where there was none, nothing is published, rather than in plaintext.

use std::collections::BTreeMap;

use pingsix_sink::resource::{self, Sealer};
use pingsix_translate::{DataPlaneKey, ObjectKey};

use super::Engine;
use crate::controller::Feed;
use crate::provision::Keyring;
use crate::reconcile::Publication;

/// Of owners with encrypted secrets, what encrypts them, or why nothing can.
#[derive(Debug, Default)]
pub(super) struct Seals(BTreeMap<ObjectKey, Result<Seal, String>>);

/// What encrypts.
#[derive(Debug)]
struct Seal {
    /// The one entry that does.
    entry: Keyring,
    keyring: resource::Keyring,
    sealers: BTreeMap<DataPlaneKey, Sealer>,
}

impl Seals {
    /// An owner has these keys from now on; `None` when nothing is encrypted.
    fn set(&mut self, owner: &ObjectKey, keyring: Option<Result<Keyring, String>>) {
        let before = self.0.remove(owner).and_then(Result::ok);
        let seal = match (keyring, before) {
            (None, _) => return,
            (Some(Err(_)), Some(before)) => Ok(before),
            (Some(Err(why)), None) => Err(why),
            (Some(Ok(keyring)), Some(before)) if before.is_among(&keyring) => Ok(before),
            (Some(Ok(keyring)), _) => Seal::new(keyring),
        };
        self.0.insert(owner.clone(), seal);
    }

    /// What is to be published in the place of something.
    ///
    /// # Errors
    ///
    /// Why nothing is.
    pub(super) fn seal(
        &mut self,
        owner: &ObjectKey,
        publication: Publication,
    ) -> Result<Publication, String> {
        // They are not for PingSIX.
        if matches!(publication.data_plane, DataPlaneKey::Stream { .. }) {
            return Ok(publication);
        }
        match self.0.get_mut(owner) {
            None => Ok(publication),
            Some(Ok(seal)) => Ok(seal.seal(publication)),
            Some(Err(why)) => Err(why.clone()),
        }
    }
}

impl Seal {
    fn new(Keyring(mut entries): Keyring) -> Result<Self, String> {
        entries.truncate(1);
        let keyring = resource::Keyring::new(entries.iter().map(String::as_str));
        let keyring = keyring.map_err(|error| format!("Secrets cannot be encrypted: {error}."))?;
        Ok(Self { entry: Keyring(entries), keyring, sealers: BTreeMap::new() })
    }

    fn is_among(&self, Keyring(entries): &Keyring) -> bool {
        self.entry.0.iter().all(|entry| entries.contains(entry))
    }

    fn seal(&mut self, publication: Publication) -> Publication {
        let Publication { data_plane, desired } = publication;
        let sealer = self.sealers.entry(data_plane.clone());
        let sealer = sealer.or_insert_with(|| Sealer::new(self.keyring.clone()));
        Publication { desired: sealer.seal(&desired), data_plane }
    }
}

impl<F: Feed + 'static> Engine<F> {
    /// Sees which keys an owner has, before what was made of it is published.
    pub(super) fn look_at_keys(&mut self, owner: &ObjectKey) {
        let infrastructure = self.parts.reconciler.infrastructure(owner);
        let keyring = infrastructure.and_then(|infrastructure| self.keyring_of(infrastructure));
        self.seals.set(owner, keyring);
        if let Some(Ok(seal)) = self.seals.0.get_mut(owner) {
            let planes = self.parts.reconciler.data_planes(owner);
            seal.sealers.retain(|data_plane, _| planes.contains(data_plane));
        }
    }
}
