//! Attached policies: which policy counts for a target, and its effect there.
//!
//! Each kind of policy has a file, such as [`backend_tls`]: it reads the spec and says whether PingSIX can honour the
//! policy. [`attached`] finds the policy that counts for each target, in the same way for all kinds. [`demand`] applies the
//! policies of Services to one route. A policy that PingSIX cannot honour still wins its target, so PingSIX makes no
//! connection to that backend.

mod attached;
mod backend_tls;
mod backend_traffic;
mod chain;
mod demand;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use attached::{AttachedPolicies, AttachedPolicy, PolicyKind, PolicyTarget, Unserved};
use backend_tls::BackendTls;
use backend_traffic::BackendTraffic;
pub(crate) use backend_traffic::{Balancing, ClientCertificate, Hashed, HealthProbe, TrafficSettings};
pub(crate) use chain::{BrokenPolicy, Chain, ChainFault, RuleChains};
pub(crate) use demand::{Demand, Payload, RoutePolicies, TrafficDemand};

use crate::model::{ObjectKey, PolicyPlugins};
use crate::pingsix::Plugins;
use crate::references::References;
use crate::snapshot::Snapshot;

/// The policies of a snapshot: a field for each kind. Methods name each field, so that the compiler finds all of them.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(crate) backend_tls: AttachedPolicies<BackendTls>,
    pub(crate) backend_traffic: AttachedPolicies<BackendTraffic>,
}

#[allow(clippy::unused_self, reason = "no kind of policy is inherited yet")]
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

    /// Inherited policies with other contents than before.
    pub(crate) fn changed_contents(&self, _before: &Self) -> BTreeSet<Arc<ObjectKey>> {
        BTreeSet::new()
    }

    /// The inherited policies of a rule, for each of the listeners to which its route is attached.
    pub(crate) fn chains(&self, listeners: impl Iterator<Item = usize>) -> RuleChains {
        RuleChains::new(listeners.map(|listener| (listener, Ok(None))))
    }

    /// The plugins of a chain.
    pub(crate) fn plugins(&self, _chain: &Chain) -> Plugins {
        Plugins::default()
    }

    /// The policies of a chain, each with the plugins to which it contributes.
    pub(crate) fn plugin_names<'c>(&'c self, chain: &'c Chain) -> impl Iterator<Item = PolicyPlugins> + 'c {
        chain.policies.iter().map(|policy| (policy.clone(), Box::default()))
    }

    /// The policies as they apply to the traffic of a route.
    pub(crate) fn for_route<'a>(&'a self, payload: Payload<'a>) -> RoutePolicies<'a> {
        RoutePolicies { policies: self, payload }
    }
}

#[cfg(test)]
mod tests;
