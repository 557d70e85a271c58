//! The wanted data planes, and their state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::ObjectKey;
use pingsix_translate::infrastructure::Infrastructure;
use pingsix_translate::status::Address;

use super::{DeployedKeys, Keyring, MissingKeysError};

/// The desired infrastructure of an owner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InfrastructureNeed {
    /// The infrastructure from the translation.
    pub(crate) infrastructure: Arc<Infrastructure>,
    /// The keys for its processes, or the reason for their absence.
    pub(crate) keyring: Result<Keyring, MissingKeysError>,
}

/// The desired infrastructure, by owner.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub(crate) struct DesiredInfrastructure {
    /// The needs by owner.
    pub(crate) needs: BTreeMap<ObjectKey, InfrastructureNeed>,
    /// Owners whose need is unknown, because their parameters are faulty. Their processes stay.
    pub(crate) unclear: BTreeSet<ObjectKey>,
    /// Whether the needs are complete. Processes of all other owners are then deleted.
    pub(crate) is_complete: bool,
    /// Whether the controller sees only some owners. Other controllers may serve the rest, so only processes of
    /// [dismissed](Self::dismiss) owners are deleted.
    pub(crate) is_partial: bool,
    /// Visible owners without a need; recorded only if the set is [partial](Self::is_partial).
    pub(crate) dismissed: BTreeSet<ObjectKey>,
}

impl DesiredInfrastructure {
    /// Sets the need of an owner. Returns whether that is a change.
    pub(crate) fn set(&mut self, owner: ObjectKey, need: InfrastructureNeed) -> bool {
        self.unclear.remove(&owner);
        self.dismissed.remove(&owner);
        if self.needs.get(&owner) == Some(&need) {
            return false;
        }
        self.needs.insert(owner, need);
        true
    }

    /// Removes an owner that is no longer visible. Returns whether that is a change.
    pub(crate) fn remove(&mut self, owner: &ObjectKey) -> bool {
        let was_known = self.unclear.remove(owner) | self.dismissed.remove(owner);
        self.needs.remove(owner).is_some() || was_known
    }

    /// Sets that an existing owner needs no processes. Returns whether that is a change.
    pub(crate) fn dismiss(&mut self, owner: &ObjectKey) -> bool {
        if self.dismissed.contains(owner) {
            return false;
        }
        self.remove(owner) | (self.is_partial && self.dismissed.insert(owner.clone()))
    }

    /// Sets that the need of an owner is unknown. Returns whether that is a change.
    pub(crate) fn leave(&mut self, owner: ObjectKey) -> bool {
        let had_need = self.needs.remove(&owner).is_some();
        self.dismissed.remove(&owner);
        self.unclear.insert(owner) || had_need
    }

    /// Whether the processes of an owner are to be deleted.
    pub(crate) fn is_unwanted(&self, owner: &ObjectKey) -> bool {
        let is_known = self.needs.contains_key(owner) || self.unclear.contains(owner);
        self.is_complete && !is_known && (!self.is_partial || self.dismissed.contains(owner))
    }

    /// Sets that the needs are complete. Returns whether that is a change.
    pub(crate) const fn complete(&mut self) -> bool {
        !std::mem::replace(&mut self.is_complete, true)
    }
}

/// The state of an owner's infrastructure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) struct Provisioned {
    /// The addresses of its Service; none before they are assigned.
    pub(crate) addresses: Vec<Address>,
    /// The reason for a difference from the desired state, in full sentences. Only the leader has the reason.
    pub(crate) error: Option<String>,
    /// The keys that its processes have.
    pub(crate) keys: DeployedKeys,
}

/// The states by owner. The state of a missing owner is unknown.
pub(crate) type ProvisionedOwners = BTreeMap<ObjectKey, Provisioned>;

#[cfg(test)]
mod tests {
    use pingsix_translate::Kind;

    use super::*;
    use crate::provision::tests::gateway;

    #[test]
    fn processes_of_owners_without_a_need_are_unwanted() {
        let owner = ObjectKey::new(Kind::Gateway, "infra", "web");
        let need =
            InfrastructureNeed { infrastructure: Arc::new(gateway(&[80])), keyring: Ok(Keyring::default()) };
        let mut wanted = DesiredInfrastructure::default();
        assert!(!wanted.is_unwanted(&owner), "not everything is known");
        assert!(wanted.complete() && wanted.is_unwanted(&owner));
        assert!(wanted.set(owner.clone(), need.clone()) && !wanted.is_unwanted(&owner));
        assert!(wanted.leave(owner.clone()) && wanted.needs.is_empty() && !wanted.is_unwanted(&owner));
        assert!(!wanted.leave(owner.clone()), "no news");
        assert!(wanted.set(owner.clone(), need) && wanted.unclear.is_empty());
        assert!(wanted.leave(owner.clone()) && wanted.remove(&owner) && wanted.is_unwanted(&owner));
    }

    #[test]
    fn a_partial_view_keeps_processes_of_invisible_owners() {
        let owner = ObjectKey::new(Kind::Gateway, "infra", "web");
        let need =
            InfrastructureNeed { infrastructure: Arc::new(gateway(&[80])), keyring: Ok(Keyring::default()) };
        let mut wanted =
            DesiredInfrastructure { is_complete: true, is_partial: true, ..DesiredInfrastructure::default() };
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
        assert_eq!(
            wanted,
            DesiredInfrastructure { is_complete: true, is_partial: true, ..DesiredInfrastructure::default() }
        );
    }
}
