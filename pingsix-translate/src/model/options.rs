//! Options of translation. There are no globals.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BackendAddresses;

/// The default controller name of an installation (`GatewayClass.spec.controllerName`).
pub const DEFAULT_CONTROLLER_NAME: &str = "pingsix.io/gateway-controller";

/// Options of a translation. Equal options and equal snapshots give equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The `spec.controllerName` of the classes we serve.
    pub controller_name: String,
    /// The distribution of ports over data planes.
    pub layout: Layout,
    /// First segment(s) of every prefix, starting with `/` and not ending with it.
    pub root: String,
    /// The address of the responder for data planes. Without one, rules that need it are refused.
    pub responder: Option<SocketAddr>,
    /// The size limit of the configuration of one data plane.
    pub budget: Budget,
    /// The percentage of a data plane's budget that one namespace may use; 100 and more is no bound. Parameters of
    /// classes override it for their data planes, and those of Gateways lower it (`PingsixProxy.spec.budget`).
    pub namespace_share: u8,
    /// Writes `kind/namespace/name/rule` into `Route.name`, which PingSIX uses as a metrics label. Costs bytes.
    pub route_names: bool,
    /// Whether a stream proxy beside PingSIX serves [stream documents](crate::stream): TCPRoute, UDPRoute and
    /// TLSRoute. Without it, their listeners are `UnsupportedProtocol`.
    pub stream: bool,
    /// Whether the program publishes to the sinks of parameters (`PingsixProxy.spec.attached.sink`). Without it, such
    /// parameters are `InvalidParameters`, so that documents reach no unintended target.
    pub attached_sinks: bool,
    /// The rules for addresses of backends.
    pub backend_addresses: BackendAddresses,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controller_name: DEFAULT_CONTROLLER_NAME.to_owned(),
            layout: Layout::Shared,
            root: "/pingsix".to_owned(),
            responder: None,
            budget: Budget::default(),
            namespace_share: 100,
            route_names: false,
            stream: false,
            attached_sinks: false,
            backend_addresses: BackendAddresses::default(),
        }
    }
}

/// The distribution of the ports of a Gateway or an IngressClass over data planes.
///
/// PingSIX routes have no predicate on port or protocol, so one prefix cannot distinguish listeners that differ only
/// in these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Layout {
    /// All ports share one data plane. A route of a Gateway that is attached to only one of two ports that serve
    /// its hostname is refused on it.
    #[default]
    Shared,
    /// One data plane per port: exact semantics.
    PerPort,
}

/// Limits of one data plane, or of the stream documents of one Gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of the list response. PingSIX refuses to decode more than 4 MiB (`src/config/etcd.rs`).
    pub bytes: usize,
    /// Entries in PingSIX's route matchers: the sum of hosts x uris over all Routes (`src/proxy/route.rs`). For
    /// stream documents, the matches of connections: ports, and server names on a port.
    pub matcher_entries: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: 3_670_016, matcher_entries: 1_000_000 }
    }
}
