//! The wanted data planes, and their state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::ObjectKey;
use pingsix_translate::infrastructure::Infrastructure;
use pingsix_translate::status::Address;

use super::{DeployedKeys, Keyring, KeyringFault};

/// The wanted infrastructure of an owner.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The infrastructure from the translation.
    pub infrastructure: Arc<Infrastructure>,
    /// The keys that its processes are to be given, or why there are none.
    pub keyring: Result<Keyring, KeyringFault>,
}

/// The wanted infrastructure, by owner.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Wanted {
    /// The needs by owner.
    pub needs: BTreeMap<ObjectKey, Need>,
    /// Of whom it cannot be said what has to run, because something is wrong with what says so: whatever runs for them stays.
    pub unclear: BTreeSet<ObjectKey>,
    /// Whether the needs are complete: other processes are deleted.
    pub is_complete: bool,
    /// Whether not all owners are seen, and somebody else may serve the others: then what runs is taken away from those alone
    /// that are [dismissed](Self::dismiss).
    pub is_partial: bool,
    /// Owners that are seen and need nothing; counted only when [others are not](Self::is_partial).
    pub dismissed: BTreeSet<ObjectKey>,
}

impl Wanted {
    /// Something has to run for an owner from now on. Returns whether that changes anything.
    pub fn set(&mut self, owner: ObjectKey, need: Need) -> bool {
        self.unclear.remove(&owner);
        self.dismissed.remove(&owner);
        if self.needs.get(&owner) == Some(&need) {
            return false;
        }
        self.needs.insert(owner, need);
        true
    }

    /// An owner is not seen any more. Returns whether that changes anything.
    pub fn remove(&mut self, owner: &ObjectKey) -> bool {
        let was_said = self.unclear.remove(owner) | self.dismissed.remove(owner);
        self.needs.remove(owner).is_some() || was_said
    }

    /// Sets that an existing owner needs no processes. Returns whether that is a change.
    pub fn dismiss(&mut self, owner: &ObjectKey) -> bool {
        if self.dismissed.contains(owner) {
            return false;
        }
        self.remove(owner) | (self.is_partial && self.dismissed.insert(owner.clone()))
    }

    /// Sets that the need of an owner is unknown. Returns whether that is a change.
    pub fn leave(&mut self, owner: ObjectKey) -> bool {
        let had_need = self.needs.remove(&owner).is_some();
        self.dismissed.remove(&owner);
        self.unclear.insert(owner) || had_need
    }

    /// Whether the processes of an owner are to be deleted.
    pub fn is_unwanted(&self, owner: &ObjectKey) -> bool {
        let is_said = self.needs.contains_key(owner) || self.unclear.contains(owner);
        self.is_complete && !is_said && (!self.is_partial || self.dismissed.contains(owner))
    }

    /// Sets that the needs are complete. Returns whether that is a change.
    pub const fn complete(&mut self) -> bool {
        !std::mem::replace(&mut self.is_complete, true)
    }
}

/// The state of an owner's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provisioned {
    /// The addresses of its Service; none before they are assigned.
    pub addresses: Vec<Address>,
    /// Why not everything is as it should be, one or more full sentences. The replica that leads alone knows.
    pub fault: Option<String>,
    /// The keys that its processes have.
    pub keys: DeployedKeys,
}

/// The states by owner. The state of a missing owner is unknown.
pub type ProvisionedOwners = BTreeMap<ObjectKey, Provisioned>;

#[cfg(test)]
mod tests {
    use pingsix_translate::Kind;

    use super::*;
    use crate::provision::tests::gateway;

    #[test]
    fn what_runs_is_taken_away_from_those_who_are_known_to_need_nothing() {
        let owner = ObjectKey::new(Kind::Gateway, "infra", "web");
        let need = Need { infrastructure: Arc::new(gateway(&[80])), keyring: Ok(Keyring::default()) };
        let mut wanted = Wanted::default();
        assert!(!wanted.is_unwanted(&owner), "not everything is known");
        assert!(wanted.complete() && wanted.is_unwanted(&owner));
        assert!(wanted.set(owner.clone(), need.clone()) && !wanted.is_unwanted(&owner));
        assert!(wanted.leave(owner.clone()) && wanted.needs.is_empty() && !wanted.is_unwanted(&owner));
        assert!(!wanted.leave(owner.clone()), "no news");
        assert!(wanted.set(owner.clone(), need) && wanted.unclear.is_empty());
        assert!(wanted.leave(owner.clone()) && wanted.remove(&owner) && wanted.is_unwanted(&owner));
    }

    #[test]
    fn who_does_not_see_all_takes_nothing_from_those_it_does_not_see() {
        let owner = ObjectKey::new(Kind::Gateway, "infra", "web");
        let need = Need { infrastructure: Arc::new(gateway(&[80])), keyring: Ok(Keyring::default()) };
        let mut wanted = Wanted { is_complete: true, is_partial: true, ..Wanted::default() };
        assert!(!wanted.is_unwanted(&owner), "somebody else may serve it");
        assert!(
            wanted.set(owner.clone(), need.clone()) && wanted.dismiss(&owner) && wanted.is_unwanted(&owner)
        );
        assert!(!wanted.dismiss(&owner), "no news");
        assert!(wanted.set(owner.clone(), need) && wanted.dismiss(&owner) && wanted.leave(owner.clone()));
        assert!(!wanted.is_unwanted(&owner));
        assert!(
            wanted.dismiss(&owner) && wanted.remove(&owner) && !wanted.is_unwanted(&owner),
            "it is not seen"
        );
        assert_eq!(wanted, Wanted { is_complete: true, is_partial: true, ..Wanted::default() });
    }
}
