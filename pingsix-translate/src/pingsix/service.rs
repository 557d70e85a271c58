//! Services: the shared parts of routes.

use serde::{Deserialize, Serialize};

use super::field_rules;
use super::plugin::Plugins;
use super::upstream::Upstream;

/// Plugins, hosts and an upstream shared by the routes that name this service.
///
/// Exactly one of [`upstream`](Self::upstream) and [`upstream_id`](Self::upstream_id) is set.
/// PingSIX: `src/config/mod.rs`, `Service`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Service {
    /// The id in the body: never written, because the key has the id, and empty after decoding.
    #[serde(default, skip_serializing)]
    pub id: String,
    /// A label for metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Plugins of every route of the service, unless the route has its own of the same name.
    #[serde(default, skip_serializing_if = "Plugins::is_empty")]
    pub plugins: Plugins,
    /// An inline upstream. PingSIX does not validate its fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Box<Upstream>>,
    /// The id of a named upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(custom(field_rules::upstream_choice(self.upstream.is_some(), None)))]
    pub upstream_id: Option<String>,
    /// Host patterns of routes that have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}
