//! Former versions of objects that may stay in force for a while.

use pingsix_translate::snapshot::{AnyPolicy, OwnerSnapshot};
use pingsix_translate::{Kind, ObjectKey};

/// Whether an object may keep its former version for a while.
///
/// A policy that is new, or that has other targets or further protections, may not: its targets may be new as well, or may have
/// lost another policy at the same time. Requests that no version of the objects leaves open would then reach a backend, or
/// reach it in plaintext, unverified or without a client certificate.
pub(crate) fn may_retain(now: &OwnerSnapshot, before: &OwnerSnapshot, key: &ObjectKey) -> bool {
    match [now, before].map(|snapshot| snapshot.policies().get(key)) {
        [Some(AnyPolicy::SecurityPolicy(now)), before] => {
            let Some(AnyPolicy::SecurityPolicy(before)) = before else { return false };
            before.spec.has_targets_of(&now.spec) && before.spec.has_protections_of(&now.spec)
        }
        [Some(AnyPolicy::BackendTlsPolicy(now)), before] => {
            let Some(AnyPolicy::BackendTlsPolicy(before)) = before else { return false };
            now.spec.target_refs == before.spec.target_refs
        }
        [Some(AnyPolicy::BackendTrafficPolicy(now)), before] if now.spec.sets_tls() => {
            let Some(AnyPolicy::BackendTrafficPolicy(before)) = before else { return false };
            before.spec.has_targets_of(&now.spec) && before.spec.sets_tls()
        }
        // No other policy protects its targets by its references.
        [Some(AnyPolicy::BackendTrafficPolicy(_) | AnyPolicy::TrafficPolicy(_)), _] => true,
        [None, _] => key.kind == Kind::TrafficPolicy || !key.kind.is_policy(),
    }
}
