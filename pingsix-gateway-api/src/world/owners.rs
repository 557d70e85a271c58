//! From a change to the Gateways and IngressClasses it concerns.

use std::collections::BTreeSet;

use pingsix_translate::{Kind, ObjectKey};

use super::World;
use super::edges::Target;

/// Follows the edges from what changed: forwards from what concerns others, backwards to what depends on it. Ends at
/// Gateways and IngressClasses, whose translation is the unit of work. Returns how many steps that took as well.
pub(super) fn owners(world: &World, start: impl IntoIterator<Item = Target>) -> (BTreeSet<ObjectKey>, usize) {
    let mut owners = BTreeSet::new();
    let mut seen: BTreeSet<Target> = BTreeSet::new();
    let mut open: Vec<Target> = start.into_iter().collect();
    let mut steps = 0;
    while let Some(target) = open.pop() {
        steps += 1;
        if !leads_on(&target) || !seen.insert(target.clone()) {
            continue;
        }
        if let Target::Object(key) = &target {
            if is_owner(key.kind) {
                owners.insert(key.clone());
                continue;
            }
            open.extend(world.concerns(key));
        }
        open.extend(world.concerned_through(&target));
    }
    (owners, steps)
}

/// Whether objects of a kind are what is translated.
pub(super) const fn is_owner(kind: Kind) -> bool {
    matches!(kind, Kind::Gateway | Kind::IngressClass)
}

/// Translation has no use for who else asks for a host: data planes do not share certificates.
pub(super) const fn leads_on(target: &Target) -> bool {
    match target {
        Target::Object(_) | Target::Crossing { .. } | Target::DefaultIngressClass => true,
        Target::TlsHost(_) => false,
    }
}
