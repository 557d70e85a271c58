//! Services: the plugins that many Routes share. PingSIX builds the plugins of a service once, and those of a Route for each
//! Route at every change (`src/proxy/route.rs`).
//!
//! All Routes that answer one status themselves have one service, and all Routes with one chain of policies. Of the other
//! Routes, those with equal filters have one service, if they are [`MIN_FILTERED`] at least.
//!
//! The id of a service stands for the identities of its policies. So a Route keeps its document while the contents of a
//! policy change, such as the keys of a Secret. The upstream is constant and never used, because each Route has its own: an
//! upstream with endpoints would have PingSIX rebuild the service with every endpoint (`src/proxy/control_plane.rs`).

use std::sync::Arc;

use serde_json::Value;

use super::id::{Ids, Name};
use super::lowering::Lowering;
use super::plane::RuleRef;
use super::shared::SharedKey;
use super::upstream::nowhere;
use crate::backends::Target;
use crate::model::Provenance;
use crate::normalise::DirectResponse;
use crate::pingsix::plugin::TrafficSplit;
use crate::pingsix::{Document, PluginConfig, Plugins, Route, Service};
use crate::policy::{ChainError, Credentials, EvaluatedChain, Policies, PolicyChain};

/// The id of the service of policies.
pub(super) fn id_of_policies(chain: &PolicyChain, ids: &mut Ids) -> String {
    let of_policies = chain
        .policies
        .iter()
        .flat_map(|policy| [policy.kind.as_str(), &*policy.name.namespace, &*policy.name.name]);
    let of_credentials = match chain.credentials {
        Credentials::OfAll => None,
        Credentials::NotOfAnnotations => Some("without credentials"),
    };
    let attributes: Vec<&str> = of_policies.chain(of_credentials).collect();
    ids.assign(&Name::new('s', &attributes))
}

/// The number of Routes with equal filters from which they have a service. A service costs PingSIX as much as the plugins of two
/// Routes. When a Route with these filters comes or goes, at most two others change.
pub(super) const MIN_FILTERED: usize = 3;

/// The filters of a Route that it may share: all plugins but the choice of upstreams. A Route with policies has their service.
pub(super) fn filters_of(route: &Route) -> Option<SharedKey> {
    let is_filter = |(name, _): &(&str, &Value)| *name != TrafficSplit::NAME;
    let filters: Plugins = route
        .plugins
        .iter()
        .filter(is_filter)
        .map(|(name, config)| (name.to_owned(), config.clone()))
        .collect();
    (route.service_id.is_none() && !filters.is_empty()).then(|| key_of_filters(&filters))
}

/// The key of the service of filters.
pub(super) fn key_of_filters(plugins: &Plugins) -> SharedKey {
    // Encoding cannot fail, because all map keys are text.
    SharedKey::Filters(serde_json::to_string(plugins).unwrap_or_default().into())
}

/// The plugins of a key.
fn plugins_of(filters: &str) -> Plugins {
    serde_json::from_str(filters).unwrap_or_default()
}

/// The id of the service of filters.
pub(super) fn id_of_filters(filters: &str, ids: &mut Ids) -> String {
    ids.assign(&Name::new('f', &[filters]))
}

/// Replaces the filters of a Route by a service.
pub(super) fn share_filters(route: &mut Route, service: String) {
    let split = route.plugins.remove(TrafficSplit::NAME);
    route.plugins = split.into_iter().map(|split| (TrafficSplit::NAME.to_owned(), split)).collect();
    route.service_id = Some(service);
}

/// Gives a Route its own filters in place of a service.
pub(super) fn unshare_filters(route: &mut Route, filters: &str) {
    route.service_id = None;
    let split = route.plugins.remove(TrafficSplit::NAME);
    route.plugins = plugins_of(filters);
    if let Some(split) = split {
        route.plugins.insert_raw(TrafficSplit::NAME, split);
    }
}

/// The service of filters, and its provenance.
pub(super) fn of_filters(filters: &str) -> (Document, Provenance) {
    (service(plugins_of(filters)), Provenance::Filters)
}

/// The service of a status, and its provenance.
pub(super) fn of_status(status: u16) -> (Document, Provenance) {
    let plugins = Plugins::default().with(&DirectResponse::status(status).lower());
    (service(plugins), Provenance::Status { status: Some(status) })
}

/// The service of policies, and its provenance.
pub(super) fn of_policies(chain: &PolicyChain, policies: &Policies) -> (Document, Provenance) {
    let provenance = Provenance::Policies { policies: policies.plugin_names(chain).collect() };
    (service(policies.plugins(chain)), provenance)
}

fn service(plugins: Plugins) -> Document {
    Document::Service(Service { plugins, upstream: Some(Box::new(nowhere())), ..Service::default() })
}

impl<'a> Lowering<'a> {
    /// The chain of a rule in a zone; `None` for a rule that sends nothing to a backend, which nothing protects.
    pub(super) fn chain(
        &self,
        rule: RuleRef,
        zone: usize,
    ) -> Result<Option<&'a Arc<EvaluatedChain>>, ChainError<'a>> {
        let input: &'a super::RouteInput = &self.routes[rule.route];
        let resolved = &input.rules[rule.rule];
        if !resolved.action.targets.iter().any(|(target, _)| matches!(target, Target::Backend(_))) {
            return Ok(None);
        }
        let listeners = self.plane.zones[zone].listeners.iter().copied();
        resolved.chains.of_listeners(listeners.filter(|listener| input.is_attached_to(*listener)))
    }
}
