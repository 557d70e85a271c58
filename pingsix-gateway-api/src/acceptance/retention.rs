//! Former versions of objects that may stay in force for a while.

use pingsix_translate::crd::SecurityPolicySpec;
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
            let is_kept =
                |is_set: fn(&SecurityPolicySpec) -> bool| is_set(&before.spec) || !is_set(&now.spec);
            now.spec.target_refs == before.spec.target_refs
                && is_kept(authenticates)
                && is_kept(|spec| spec.authorization.is_some())
                && is_kept(|spec| spec.csrf.is_some())
        }
        [Some(AnyPolicy::BackendTlsPolicy(now)), before] => {
            let Some(AnyPolicy::BackendTlsPolicy(before)) = before else { return false };
            now.spec.target_refs == before.spec.target_refs
        }
        [Some(AnyPolicy::BackendTrafficPolicy(now)), before] if now.spec.tls.is_some() => {
            let Some(AnyPolicy::BackendTrafficPolicy(before)) = before else { return false };
            now.spec.target_refs == before.spec.target_refs && before.spec.tls.is_some()
        }
        // No other policy protects its targets by its references.
        [Some(AnyPolicy::BackendTrafficPolicy(_) | AnyPolicy::TrafficPolicy(_)), _] => true,
        [None, _] => key.kind == Kind::TrafficPolicy || !key.kind.is_policy(),
    }
}

/// Whether a policy demands credentials.
const fn authenticates(spec: &SecurityPolicySpec) -> bool {
    spec.api_key_auth.is_some() || spec.basic_auth.is_some() || spec.jwt.is_some()
}
