//! Plugins: their configurations, and the plugins of a document.
//!
//! PingSIX: `src/plugins/*.rs`, registry in `src/plugins/mod.rs`. PingSIX ignores unknown fields, so a configuration
//! for APISIX may decode with another meaning.

mod access;
mod auth;
mod cache;
mod compression;
mod cors;
mod fault_injection;
mod limit_count;
mod observe;
mod proxy_rewrite;
mod redirect;
mod response_rewrite;
mod traffic_split;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(in crate::pingsix) use self::access::has_address;
pub use self::access::{ForwardedHeaderErrorPolicy, IpRestriction};
pub use self::auth::{BasicAuth, Csrf, JwtAlgorithm, JwtAuth, KeyAuth};
pub use self::cache::Cache;
pub use self::compression::{Brotli, Gzip};
pub use self::cors::Cors;
pub use self::fault_injection::{Abort, Delay, Echo, FaultInjection};
pub use self::limit_count::{KeyMissingPolicy, LimitCount, Scope};
pub(crate) use self::observe::{FileLogger, Prometheus};
pub use self::observe::{GrpcWeb, RangeId, RequestId};
pub use self::proxy_rewrite::{Header, HeaderChanges, ProxyRewrite};
pub use self::redirect::Redirect;
pub(crate) use self::response_rewrite::EXPANDED_IN_HEADERS;
pub use self::response_rewrite::{ResponseHeaders, ResponseRewrite};
pub use self::traffic_split::{SplitRule, TrafficSplit, WeightedUpstream};

use super::secret::redact;

/// The configuration of one plugin.
pub trait PluginConfig: Serialize + DeserializeOwned {
    /// The name under which PingSIX registers the plugin.
    const NAME: &'static str;
}

macro_rules! plugins {
    ($($plugin:ident = $name:literal;)+) => {
        $(
            impl PluginConfig for $plugin {
                const NAME: &'static str = $name;
            }
        )+

        /// The names of all plugins that PingSIX has. PingSIX refuses any other name (`src/plugins/mod.rs`).
        pub const PLUGIN_NAMES: [&str; 20] = [$($name),+];
    };
}

plugins! {
    BasicAuth = "basic-auth";
    Brotli = "brotli";
    Cache = "cache";
    Cors = "cors";
    Csrf = "csrf";
    Echo = "echo";
    FaultInjection = "fault-injection";
    FileLogger = "file-logger";
    GrpcWeb = "grpc-web";
    Gzip = "gzip";
    IpRestriction = "ip-restriction";
    JwtAuth = "jwt-auth";
    KeyAuth = "key-auth";
    LimitCount = "limit-count";
    Prometheus = "prometheus";
    ProxyRewrite = "proxy-rewrite";
    Redirect = "redirect";
    RequestId = "request-id";
    ResponseRewrite = "response-rewrite";
    TrafficSplit = "traffic-split";
}

/// The plugins of a document: configuration by name, in name order.
///
/// The configurations are JSON values, because PingSIX decodes them later than their document, and every document must
/// survive a round trip. `Debug` hides secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plugins(BTreeMap<String, Value>);

impl Plugins {
    /// No plugins.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Whether there are no plugins.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of plugins.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a plugin, replacing one of the same name.
    pub fn insert<C: PluginConfig>(&mut self, config: &C) {
        // Encoding cannot fail, because all map keys are text. A number that JSON cannot express becomes null, which
        // the acceptance rules refuse.
        let value = serde_json::to_value(config).unwrap_or(Value::Null);
        self.0.insert(C::NAME.to_owned(), value);
    }

    /// This set with one more plugin.
    #[must_use]
    pub fn with<C: PluginConfig>(mut self, config: &C) -> Self {
        self.insert(config);
        self
    }

    /// Adds an untyped configuration with any name.
    pub fn insert_raw(&mut self, name: impl Into<String>, config: Value) {
        self.0.insert(name.into(), config);
    }

    /// Decodes the configuration of a plugin; `None` when the plugin is absent.
    ///
    /// # Errors
    ///
    /// The error of the decoder, if PingSIX would refuse the form of the configuration.
    pub fn get<C: PluginConfig>(&self) -> Option<Result<C, serde_json::Error>> {
        self.0.get(C::NAME).map(C::deserialize)
    }

    /// The untyped configuration of a plugin.
    pub fn raw(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Whether a plugin of that name is present.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Removes a plugin and returns its configuration.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Names and configurations in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, config)| (name.as_str(), config))
    }
}

impl FromIterator<(String, Value)> for Plugins {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(plugins: I) -> Self {
        Self(plugins.into_iter().collect())
    }
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, config)| (name, redact(name, config)))).finish()
    }
}
