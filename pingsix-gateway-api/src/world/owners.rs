//! From a change to the Gateways and IngressClasses it concerns.

use std::collections::BTreeSet;

use pingsix_translate::{Kind, ObjectKey};

use super::World;
use super::edges::Target;

/// The targets of a change.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// Gateways and IngressClasses.
    pub(super) owners: BTreeSet<ObjectKey>,
    /// GatewayClasses.
    pub(super) classes: BTreeSet<ObjectKey>,
    /// The number of steps of the search.
    pub(super) steps: usize,
}

/// Follows the edges from what changed: forwards from what concerns others, backwards to what depends on it. Ends at
/// Gateways and IngressClasses, whose translation is the unit of work.
pub(super) fn reached(world: &World, start: impl IntoIterator<Item = Target>) -> Reached {
    let Reached { mut owners, mut classes, mut steps } = Reached::default();
    let mut seen: BTreeSet<Target> = BTreeSet::new();
    let mut open: Vec<Target> = start.into_iter().collect();
    while let Some(target) = open.pop() {
        steps += 1;
        if !seen.insert(target.clone()) {
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
            open.extend(world.concerns(key));
        }
        open.extend(world.concerned_through(&target));
    }
    Reached { owners, classes, steps }
}

/// Whether objects of a kind are input of translation.
pub(super) const fn is_owner(kind: Kind) -> bool {
    matches!(kind, Kind::Gateway | Kind::IngressClass)
}
