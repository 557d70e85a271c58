//! PingSIX's configuration: its documents, its acceptance rules, and a model of its router.
//!
//! The types have the fields that PingSIX decodes, and name the mirrored source files of PingSIX. Serialisation is
//! compact: defaults are omitted, maps are sorted, and the id is in the key. Decoding is as lenient as PingSIX's own,
//! so foreign configurations are readable. The acceptance rules find the documents that PingSIX would refuse.

mod checks;
mod config;
mod document;
mod field_rules;
mod global_rule;
mod kind;
mod known_fields;
mod lazy_document;
mod omit;
pub mod plugin;
pub mod process;
mod route;
pub mod router;
mod rule;
mod secret;
mod service;
mod ssl;
mod summary;
mod timeout;
mod upstream;
mod uri;
pub mod validate;
mod write_order;

pub use self::checks::{ActiveCheck, CheckType, Health, HealthCheck, Unhealthy};
pub use self::config::{Config, DecodeError, StaticConfigError};
pub(crate) use self::config::{listed_bytes, listed_len};
pub use self::document::Document;
pub(crate) use self::document::json_len;
pub use self::global_rule::GlobalRule;
pub(crate) use self::kind::canonical_prefix;
pub use self::kind::{DocumentKey, KeyError, ResourceKind};
pub use self::lazy_document::LazyDocument;
pub use self::plugin::{PluginConfig, Plugins};
pub use self::route::Route;
pub(crate) use self::route::RoutePatterns;
pub use self::router::{Outcome, Request, RouteTable, Router};
pub(crate) use self::secret::{REDACTED, Redacted};
pub use self::service::Service;
pub use self::ssl::Ssl;
pub(crate) use self::summary::Summary;
pub use self::timeout::Timeout;
pub use self::upstream::{HashOn, PassHost, Scheme, SelectionType, Upstream, UpstreamTls};

#[cfg(test)]
mod tests;
