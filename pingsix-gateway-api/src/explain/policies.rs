//! The plugins that policies add to a Route.

use std::sync::Arc;

use pingsix_translate::pingsix::plugin::FaultInjection;
use pingsix_translate::pingsix::{DocumentKey, PluginConfig, ResourceKind, Route};
use pingsix_translate::{ObjectKey, Provenance};
use serde::Serialize;

use super::Plane;

/// The plugins to which a policy contributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyPlugins {
    /// Kind, namespace and name.
    pub policy: String,
    /// The names of the plugins.
    pub plugins: Vec<String>,
}

/// The plugins that policies add to a Route by its service, without those that the Route replaces.
pub(super) fn policies(plane: &Plane<'_>, route: &Route) -> Vec<PolicyPlugins> {
    let Some(id) = route.service_id.as_deref() else { return Vec::new() };
    let key = DocumentKey::new(ResourceKind::Service, id);
    let (Some(service), Some(Provenance::Policies { policies })) =
        (plane.config.service(id), plane.provenance.get(&key))
    else {
        return Vec::new();
    };
    let of_policy = |(policy, names): &(Arc<ObjectKey>, Box<[&'static str]>)| PolicyPlugins {
        policy: policy.to_string(),
        plugins: names
            .iter()
            .filter(|name| service.plugins.contains(name) && !route.plugins.contains(name))
            .map(|name| (*name).to_owned())
            .collect(),
    };
    policies.iter().map(of_policy).collect()
}

/// The policy of the fault that PingSIX injects into the requests of a Route.
pub(super) fn injecting_policy(plane: &Plane<'_>, route: &Route) -> Option<String> {
    let injects = |policy: &PolicyPlugins| policy.plugins.iter().any(|name| name == FaultInjection::NAME);
    policies(plane, route).into_iter().find(injects).map(|policy| policy.policy)
}
