//! Former versions of objects that may stay in force for a while.

use pingsix_translate::crd::{BackendTrafficPolicySpec, SecurityPolicySpec};
use pingsix_translate::{Kind, ObjectKey};

use crate::world::OwnerSnapshot;

/// Whether an object may keep its former version for a while.
///
/// A policy that is new, or that has other targets or further protections, may not: its targets may be new as well, or may have
/// lost another policy at the same time. Requests that no version of the objects leaves open would then reach a backend, or
/// reach it in plaintext, unverified or without a client certificate.
pub(crate) fn may_retain(now: &OwnerSnapshot, before: &OwnerSnapshot, key: &ObjectKey) -> bool {
    let name = &key.name;
    #[allow(clippy::wildcard_enum_match_arm, reason = "no other kind protects its targets by its references")]
    match key.kind {
        Kind::SecurityPolicy => {
            let [now, before] = [now, before].map(|snapshot| snapshot.security_policies().get(name));
            now.zip(before).is_some_and(|(now, before)| {
                let is_kept =
                    |is_set: fn(&SecurityPolicySpec) -> bool| is_set(&before.spec) || !is_set(&now.spec);
                now.spec.target_refs == before.spec.target_refs
                    && is_kept(authenticates)
                    && is_kept(|spec| spec.authorization.is_some())
                    && is_kept(|spec| spec.csrf.is_some())
            })
        }
        Kind::BackendTlsPolicy => {
            let [now, before] = [now, before].map(|snapshot| snapshot.backend_tls_policies()?.get(name));
            now.zip(before).is_some_and(|(now, before)| now.spec.target_refs == before.spec.target_refs)
        }
        Kind::BackendTrafficPolicy => {
            let [now, before] = [now, before].map(|snapshot| snapshot.backend_traffic_policies().get(name));
            let is_kept = |now: &BackendTrafficPolicySpec, before: &BackendTrafficPolicySpec| {
                now.target_refs == before.target_refs && before.tls.is_some()
            };
            now.is_some_and(|now| {
                now.spec.tls.is_none() || before.is_some_and(|before| is_kept(&now.spec, &before.spec))
            })
        }
        _ => true,
    }
}

/// Whether a policy demands credentials.
const fn authenticates(spec: &SecurityPolicySpec) -> bool {
    spec.api_key_auth.is_some() || spec.basic_auth.is_some() || spec.jwt.is_some()
}
