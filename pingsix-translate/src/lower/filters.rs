//! Services of filters: Routes with equal filters have one service, if they are [`MIN_ROUTES_TO_SHARE`] at least.

use std::sync::Arc;

use serde_json::Value;

use super::id::{Ids, Name};
use super::upstream::nowhere;
use crate::model::Provenance;
use crate::pingsix::plugin::TrafficSplit;
use crate::pingsix::{Document, PluginConfig, Plugins, Route, Service};

/// The number of Routes with equal filters from which they have a service. A service costs PingSIX as much as the plugins of two
/// Routes. When a Route with these filters comes or goes, at most two others change.
pub(super) const MIN_ROUTES_TO_SHARE: usize = 3;

/// The filters of a Route that it may share, as JSON: all plugins but the choice of upstreams. A Route with policies has their
/// service.
pub(super) fn filters_of(route: &Route) -> Option<Arc<str>> {
    let is_filter = |(name, _): &(&str, &Value)| *name != TrafficSplit::NAME;
    let filters: Plugins = route
        .plugins
        .iter()
        .filter(is_filter)
        .map(|(name, config)| (name.to_owned(), config.clone()))
        .collect();
    let is_shareable = route.service_id.is_none() && !filters.is_empty();
    // Encoding cannot fail, because all map keys are text.
    is_shareable.then(|| serde_json::to_string(&filters).unwrap_or_default().into())
}

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

/// A service with plugins. Each of its Routes has an upstream of its own.
pub(super) fn service(plugins: Plugins) -> Document {
    Document::Service(Service { plugins, upstream: Some(Box::new(nowhere())), ..Service::default() })
}

/// The service of filters, and its provenance.
pub(super) fn of_filters(filters: &str) -> (Document, Provenance) {
    (service(plugins_of(filters)), Provenance::Filters)
}
