//! Routes: the handling of requests by host, path and method.

use serde::{Deserialize, Serialize};

use super::field_rules;
use super::omit;
use super::plugin::Plugins;
use super::timeout::Timeout;
use super::upstream::Upstream;

/// The handling of requests with some hosts, paths and methods.
///
/// Exactly one of [`uri`](Self::uri) and [`uris`](Self::uris) is set; at most one of [`host`](Self::host) and
/// [`hosts`](Self::hosts); at most one of [`upstream`](Self::upstream) and
/// [`upstream_id`](Self::upstream_id), and at least one of these two and [`service_id`](Self::service_id).
/// PingSIX: `src/config/mod.rs`, `Route`; `src/proxy/route.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, garde::Validate)]
#[garde(allow_unvalidated)]
pub struct Route {
    /// The id in the body: never written, because the key has the id, and empty after decoding.
    #[serde(default, skip_serializing)]
    pub id: String,
    /// A label for metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// One path pattern: an exact path or `<prefix>{*p}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(custom(field_rules::route_uri(&self.uris)))]
    pub uri: Option<String>,
    /// Several path patterns, inserted in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uris: Vec<String>,
    /// The methods that match, compared case-sensitively; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(inner(custom(field_rules::method)))]
    pub methods: Vec<String>,
    /// One host pattern: a lower-case name, or `*.` and a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(custom(field_rules::route_host(&self.hosts)))]
    pub host: Option<String>,
    /// Several host patterns, inserted in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Higher wins among the routes of one matcher entry.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub priority: u32,
    /// The plugins of this route; they replace those of the service name by name.
    #[serde(default, skip_serializing_if = "Plugins::is_empty")]
    pub plugins: Plugins,
    /// An inline upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub upstream: Option<Box<Upstream>>,
    /// The id of a named upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(custom(field_rules::upstream_choice(self.upstream.is_some(), Some(self.service_id.is_some()))))]
    pub upstream_id: Option<String>,
    /// The id of a service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_id: Option<String>,
    /// Timeouts that replace those of the chosen upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub timeout: Option<Timeout>,
}

/// The requests that a [`Route`] matches by path and host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct RoutePatterns {
    pub(crate) uri: Option<String>,
    #[serde(default)]
    pub(crate) uris: Vec<String>,
    pub(crate) host: Option<String>,
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
}

impl RoutePatterns {
    /// Sets the matched requests of a Route.
    pub(crate) fn put_into(self, route: &mut Route) {
        let Self { uri, uris, host, hosts } = self;
        (route.uri, route.uris, route.host, route.hosts) = (uri, uris, host, hosts);
    }
}

impl Route {
    /// The patterns of paths and hosts.
    pub(crate) fn patterns(&self) -> RoutePatterns {
        let Self { uri, uris, host, hosts, .. } = self;
        RoutePatterns { uri: uri.clone(), uris: uris.clone(), host: host.clone(), hosts: hosts.clone() }
    }

    /// The path patterns in insertion order.
    pub fn path_patterns(&self) -> &[String] {
        self.uri.as_ref().map_or(&self.uris, std::slice::from_ref)
    }

    /// The route's own host patterns in insertion order. For a route without any, those of its service apply.
    pub fn host_patterns(&self) -> &[String] {
        self.host.as_ref().map_or(&self.hosts, std::slice::from_ref)
    }

    /// Whether the route serves a method: its list is empty or has exactly this text.
    pub fn allows(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|allowed| allowed == method)
    }
}
