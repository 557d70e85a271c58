//! Former versions of objects that may stay in force for a while.

use pingsix_translate::ObjectKey;
use pingsix_translate::snapshot::{OwnerSnapshot, policies_have_references};

/// Whether an object may keep its former version for a while. A deleted policy may not if its former version may name Secrets
/// that are gone.
pub(crate) fn may_retain(now: &OwnerSnapshot, before: &OwnerSnapshot, key: &ObjectKey) -> bool {
    match [now, before].map(|snapshot| snapshot.policies().get(key)) {
        [Some(now), before] => now.may_yield_to(before),
        [None, _] => !policies_have_references(key.kind),
    }
}
