//! Global rules: plugins that run on every request.

use serde::{Deserialize, Serialize};

use super::plugin::Plugins;

/// Plugins that run before those of routes and services, and are never merged with them.
///
/// PingSIX: `src/config/mod.rs`, `GlobalRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalRule {
    /// The id in the body: never written, because the key has the id, and empty after decoding.
    #[serde(default, skip_serializing)]
    pub id: String,
    /// The plugins.
    #[serde(default, skip_serializing_if = "Plugins::is_empty")]
    pub plugins: Plugins,
}
