//! The search for the Gateways and IngressClasses that a change affects.

use std::collections::BTreeSet;

use pingsix_translate::{Kind, ObjectKey};

use super::World;
use pingsix_translate::selection::Target;

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct AffectedOwners {
    /// Gateways and IngressClasses.
    pub(super) owners: BTreeSet<ObjectKey>,
    /// GatewayClasses.
    pub(super) classes: BTreeSet<ObjectKey>,
    /// The number of steps of the search.
    pub(super) steps: usize,
}

/// Follows the edges from changed targets: from an object to the targets that it concerns, and from a target to its
/// dependents. The search ends at Gateways and IngressClasses, which are translated as a whole.
pub(super) fn affected_owners(world: &World, start: impl IntoIterator<Item = Target>) -> AffectedOwners {
    let AffectedOwners { mut owners, mut classes, mut steps } = AffectedOwners::default();
    let mut visited: BTreeSet<Target> = BTreeSet::new();
    let mut stack: Vec<Target> = start.into_iter().collect();
    while let Some(target) = stack.pop() {
        steps += 1;
        if !visited.insert(target.clone()) {
            continue;
        }
        if let Target::Object(key) = &target {
            if is_owner(key.kind) {
                owners.insert(key.clone());
                continue;
            }
            if key.kind == Kind::GatewayClass {
                classes.insert(key.clone());
            }
            stack.extend(world.concerns(key));
        }
        stack.extend(world.concerned_through(&target));
    }
    AffectedOwners { owners, classes, steps }
}

/// Whether objects of a kind have data planes.
pub(super) const fn is_owner(kind: Kind) -> bool {
    matches!(kind, Kind::Gateway | Kind::IngressClass)
}
