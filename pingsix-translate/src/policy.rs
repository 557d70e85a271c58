//! Attached policies: which policy counts for a target, and its effect there.
//!
//! Each kind of policy has a file, such as [`backend_tls`]: it reads the spec and says whether PingSIX can honour the
//! policy. [`attached`] finds the policy that counts for each target, in the same way for all kinds. [`demand`] applies the
//! policies of Services to one route. A policy that PingSIX cannot honour still wins its target, so PingSIX makes no
//! connection to that backend.

mod attached;
mod backend_tls;
mod backend_traffic;
mod demand;

use std::collections::BTreeSet;

pub(crate) use attached::{AttachedPolicies, AttachedPolicy, PolicyKind, PolicyTarget, Unserved};
use backend_tls::BackendTls;
use backend_traffic::BackendTraffic;
pub(crate) use backend_traffic::{Balancing, ClientCertificate, Hashed, HealthProbe, TrafficSettings};
pub(crate) use demand::{Demand, Payload, RoutePolicies, TrafficDemand};

use crate::model::ObjectKey;
use crate::references::References;
use crate::snapshot::Snapshot;

/// The policies of a snapshot: a field for each kind. Methods name each field, so that the compiler finds all of them.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(crate) backend_tls: AttachedPolicies<BackendTls>,
    pub(crate) backend_traffic: AttachedPolicies<BackendTraffic>,
}

impl Policies {
    pub(crate) fn new(snapshot: &Snapshot, references: &References<'_>) -> Self {
        Self {
            backend_tls: AttachedPolicies::new(&snapshot.backend_tls_policies, references),
            backend_traffic: AttachedPolicies::new(&snapshot.backend_traffic_policies, references),
        }
    }

    /// The objects that policies target.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &ObjectKey> {
        let Self { backend_tls, backend_traffic } = self;
        backend_tls.targets().chain(backend_traffic.targets())
    }

    /// The objects for which other policies count than before, or policies with another effect.
    pub(crate) fn changed<'s>(&'s self, before: &'s Self) -> BTreeSet<&'s ObjectKey> {
        let Self { backend_tls, backend_traffic } = self;
        let changed = backend_tls.changed(&before.backend_tls);
        changed.chain(backend_traffic.changed(&before.backend_traffic)).collect()
    }

    /// The policies as they apply to the traffic of a route.
    pub(crate) fn for_route<'a>(&'a self, payload: Payload<'a>) -> RoutePolicies<'a> {
        RoutePolicies { policies: self, payload }
    }
}

#[cfg(test)]
mod tests;
