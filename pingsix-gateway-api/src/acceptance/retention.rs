//! Former versions of objects that may stay in force for a while.

use pingsix_translate::snapshot::OwnerSnapshot;
use pingsix_translate::{Kind, ObjectKey};

/// Whether an object may keep its former version for a while. A deleted policy may not, because its former version may name
/// Secrets that are gone. A TrafficPolicy names none.
pub(crate) fn may_retain(now: &OwnerSnapshot, before: &OwnerSnapshot, key: &ObjectKey) -> bool {
    match [now, before].map(|snapshot| snapshot.policies().get(key)) {
        [Some(now), before] => now.may_yield_to(before),
        [None, _] => key.kind == Kind::TrafficPolicy || !key.kind.is_policy(),
    }
}
