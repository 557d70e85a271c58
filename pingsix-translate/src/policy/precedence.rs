//! Which of several policies counts for a target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::backend_tls::{BackendTls, PolicyTarget};
use crate::model::{Hostname, ObjectKey, ObjectName, Refusal};
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::BackendTlsPolicy;

use super::{InEffect, Payload};

/// What routes are told of a policy: its name, and the one to verify or why there is none.
type PolicyResult<'p> = (&'p Arc<ObjectKey>, &'p Result<Hostname, Vec<Refusal>>);

/// The BackendTLSPolicies of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct BackendTlsPolicies {
    /// Oldest first, then by name: who comes first wins.
    list: Vec<BackendTls>,
    /// By Service and name of a port, or all ports: index of the policy that won.
    winners: BTreeMap<ObjectName, BTreeMap<Option<String>, usize>>,
}

impl BackendTlsPolicies {
    pub(crate) fn new(
        policies: &SharedMap<ObjectName, Arc<BackendTlsPolicy>>,
        references: &References<'_>,
    ) -> Self {
        let mut list: Vec<BackendTls> =
            policies.values().map(|policy| BackendTls::read(policy, references)).collect();
        // Policies with one target are of one namespace, so that the names alone decide as `namespace/name` would.
        list.sort_by(|left, right| left.age.cmp(&right.age).then_with(|| left.key.cmp(&right.key)));
        let mut winners: BTreeMap<ObjectName, BTreeMap<Option<String>, usize>> = BTreeMap::new();
        for (index, policy) in list.iter().enumerate() {
            for target in policy.targets.iter().flatten() {
                winners
                    .entry(target.service.clone())
                    .or_default()
                    .entry(target.port.clone())
                    .or_insert(index);
            }
        }
        Self { list, winners }
    }

    /// Every policy, with its index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &BackendTls)> {
        self.list.iter().enumerate()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The policy that counts for a port of a Service: one for the port by name before one for the Service.
    pub(super) fn of_port(&self, service: &ObjectName, port: Option<&str>) -> Option<&BackendTls> {
        let of_service = self.winners.get(service)?;
        let named = port.and_then(|name| of_service.get(&Some(name.to_owned())));
        let index = *named.or_else(|| of_service.get(&None))?;
        self.list.get(index)
    }

    /// The policy that takes precedence over this one for a target.
    pub(crate) fn preferred(&self, index: usize, target: &PolicyTarget) -> Option<&Arc<ObjectKey>> {
        let winner = *self.winners.get(&target.service)?.get(&target.port)?;
        (winner != index).then(|| self.list.get(winner).map(|policy| &policy.key))?
    }

    /// The Services that policies target, whether they count there or not.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &ObjectName> {
        self.winners.keys()
    }

    /// The Services for which other policies count than these, or the same ones demand something else.
    pub(crate) fn changed<'s>(&'s self, other: &'s Self) -> BTreeSet<&'s ObjectName> {
        let services: BTreeSet<&ObjectName> = self.winners.keys().chain(other.winners.keys()).collect();
        services.into_iter().filter(|service| self.demands(service) != other.demands(service)).collect()
    }

    /// By name of a port of a Service, what routes are told of the policy that won.
    fn demands(&self, service: &ObjectName) -> BTreeMap<&Option<String>, PolicyResult<'_>> {
        let of_service = self.winners.get(service).into_iter().flatten();
        let demands = of_service.filter_map(|(port, index)| Some((port, self.list.get(*index)?)));
        demands.map(|(port, policy)| (port, (&policy.key, &policy.verified))).collect()
    }

    /// The policies as they apply to what a route carries.
    pub(crate) fn for_route<'a>(&'a self, carried: Payload<'a>) -> InEffect<'a> {
        InEffect { policies: self, carried }
    }
}
