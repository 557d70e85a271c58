//! The acceptance rules by name, each with the source file of PingSIX that it mirrors.

use std::fmt;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $ident:literal, $source:literal;)*) => {
        /// The acceptance rules.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[$doc])* $name,)*
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable name of the rule.
            pub const fn ident(self) -> &'static str {
                match self { $(Self::$name => $ident,)* }
            }

            /// The PingSIX source file the rule mirrors.
            pub const fn source(self) -> &'static str {
                match self { $(Self::$name => $source,)* }
            }
        }
    };
}

rules! {
    /// A key must name a document of a known kind.
    Key = "key", "src/config/etcd.rs";
    /// The guard key holds a value PingSIX does not know.
    Guard = "guard", "src/config/etcd.rs";
    /// A value must decode as a document of its kind.
    Decode = "decode", "src/config/mod.rs";
    /// An id must be unique in a static configuration and not empty.
    StaticId = "static-id", "src/config/mod.rs";
    /// A secret must not be an envelope that PingSIX cannot open.
    Envelope = "envelope", "src/utils/encryption.rs";
    /// A number must be in its range.
    Range = "range", "src/config/mod.rs";
    /// A text or list must not be empty.
    Empty = "empty", "src/config/mod.rs";
    /// A route has either `uri` or `uris`.
    RouteUri = "route-uri", "src/config/mod.rs";
    /// A route has at most one of `host` and `hosts`.
    RouteHost = "route-host", "src/config/mod.rs";
    /// A route or service must have an upstream in exactly one form.
    UpstreamChoice = "upstream-choice", "src/config/mod.rs";
    /// A method must be an HTTP token.
    Method = "method", "src/config/mod.rs";
    /// The key of a node must be a host with an optional port.
    NodeKey = "node-key", "src/config/mod.rs";
    /// The weight of a node must be at least 1.
    NodeWeight = "node-weight", "src/config/mod.rs";
    /// `pass_host: rewrite` needs `upstream_host`.
    RewriteHost = "rewrite-host", "src/config/mod.rs";
    /// A reference must lead to a document.
    Reference = "reference", "src/proxy/control_plane.rs";
    /// A node must be usable when the configuration is compiled.
    NodeUsable = "node-usable", "src/proxy/upstream/discovery.rs";
    /// A DNS name must resolve when the configuration is compiled.
    DnsName = "dns-name", "src/proxy/upstream/discovery.rs";
    /// The client certificate of an upstream must be PEM and fit its key.
    ClientCertificate = "client-certificate", "src/proxy/upstream/discovery.rs";
    /// The path and headers of a health check must be well-formed.
    HealthCheck = "health-check", "src/proxy/upstream/load_balancer.rs";
    /// The total weight of a balanced upstream costs memory.
    WeightTotal = "weight-total", "src/proxy/upstream/load_balancer.rs";
    /// Inline upstreams of services and traffic splits need a weight above 0.
    InlineWeight = "inline-weight", "src/proxy/upstream/load_balancer.rs";
    /// TLS to a node verifies a DNS name.
    TlsName = "tls-name", "src/proxy/upstream/discovery.rs";
    /// A plugin must be a plugin of PingSIX.
    PluginName = "plugin-name", "src/plugins/mod.rs";
    /// The configuration of a plugin must decode.
    PluginDecode = "plugin-decode", "src/plugins/mod.rs";
    /// `_meta` has no effect.
    PluginMeta = "plugin-meta", "src/core/plugin.rs";
    /// The rules of `traffic-split`.
    TrafficSplit = "traffic-split", "src/plugins/traffic_split.rs";
    /// The rules of `proxy-rewrite`.
    ProxyRewrite = "proxy-rewrite", "src/plugins/proxy_rewrite.rs";
    /// The rules of `redirect`.
    Redirect = "redirect", "src/plugins/redirect.rs";
    /// The rules of `response-rewrite`.
    ResponseRewrite = "response-rewrite", "src/plugins/response_rewrite.rs";
    /// The rules of `fault-injection`.
    FaultInjection = "fault-injection", "src/plugins/fault_injection.rs";
    /// The rules of `echo`.
    Echo = "echo", "src/plugins/echo.rs";
    /// The rules of `cors`.
    Cors = "cors", "src/plugins/cors.rs";
    /// The rules of `limit-count`.
    LimitCount = "limit-count", "src/plugins/limit_count.rs";
    /// The rules of `ip-restriction`.
    IpRestriction = "ip-restriction", "src/plugins/ip_restriction.rs";
    /// The rules of `key-auth`.
    KeyAuth = "key-auth", "src/plugins/key_auth.rs";
    /// The rules of `basic-auth`.
    BasicAuth = "basic-auth", "src/plugins/basic_auth.rs";
    /// The rules of `jwt-auth`.
    JwtAuth = "jwt-auth", "src/plugins/jwt_auth.rs";
    /// The rules of `csrf`.
    Csrf = "csrf", "src/plugins/csrf.rs";
    /// The rules of `cache`.
    Cache = "cache", "src/plugins/cache.rs";
    /// The rules of `gzip` and `brotli`.
    Compression = "compression", "src/plugins/compression.rs";
    /// The rules of `request-id`.
    RequestId = "request-id", "src/plugins/request_id.rs";
    /// The rules of `prometheus`.
    Prometheus = "prometheus", "src/plugins/prometheus.rs";
    /// The rules of `file-logger`.
    FileLogger = "file-logger", "src/plugins/file_logger.rs";
    /// A path or host pattern must be well-formed.
    Pattern = "pattern", "src/proxy/route.rs";
    /// Patterns of one router must not conflict.
    PatternConflict = "pattern-conflict", "src/proxy/route.rs";
    /// A pattern has another meaning than its text suggests.
    PatternMeaning = "pattern-meaning", "src/proxy/route.rs";
    /// PingSIX compares a wildcard of other gateways literally.
    LiteralWildcard = "literal-wildcard", "src/proxy/route.rs";
    /// PingSIX compares methods case-sensitively.
    MethodCase = "method-case", "src/proxy/route.rs";
    /// The certificate must be PEM and fit the key.
    Certificate = "certificate", "src/proxy/ssl.rs";
    /// A server name must be unique, without regard to case.
    ServerName = "server-name", "src/proxy/ssl.rs";
    /// An unknown field has no effect.
    IgnoredField = "ignored-field", "src/config/mod.rs";
    /// The list response must fit PingSIX's message limit.
    Bytes = "bytes", "src/config/etcd.rs";
    /// The matcher must not grow beyond its budget.
    MatcherEntries = "matcher-entries", "src/proxy/route.rs";
    /// A broad pattern must come after every narrower one of its router.
    Closure = "closure", "src/proxy/route.rs";
    /// Routes that share a matcher entry must differ in priority.
    PriorityTie = "priority-tie", "src/proxy/route.rs";
}

impl Rule {
    /// The rule of a stable name.
    pub fn from_ident(ident: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.ident() == ident)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.ident())
    }
}
