//! The table. Its order is that of the stages that ask.

use super::Executor::{PingSix, Responder, StreamProxy, TlsFront};
use super::{CapabilityRow, Executor};
use crate::model::Reason;

/// Declares the capabilities with their rows. The comment of a capability is its name in the documentation.
macro_rules! capabilities {
    ($(#[doc = $doc:literal] $name:ident = $row:expr;)+) => {
        /// A capability that PingSIX lacks, or has with a limit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Capability { $(#[doc = $doc] $name,)+ }

        impl Capability {
            /// Every capability, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// A short description.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$name => $doc.trim_ascii(),)+ }
            }

            /// The row of the table.
            pub const fn row(self) -> &'static CapabilityRow {
                match self { $(Self::$name => const { &$row },)+ }
            }
        }
    };
}

/// A row that refuses.
const REFUSED: CapabilityRow = CapabilityRow {
    fields: "",
    executors: &[],
    reason: Reason::UnsupportedValue,
    message: "",
    message_to_routes: "",
    limit: "",
    unclaimed: &[],
};

/// A row of a field that PingSIX serves in another way than asked.
const LIMITED: CapabilityRow = CapabilityRow { reason: Reason::Limited, ..REFUSED };

/// A row that layout `perPort` makes needless: no route can depend on the port there.
const PORTS: CapabilityRow = CapabilityRow {
    fields: "`parentRefs` that name some of the listeners for a host",
    executors: &[(PingSix, PER_PORT)],
    limit: "tell the ports of a data plane apart",
    ..REFUSED
};

const PER_PORT: &str = "with layout `perPort`, a process for each port";

const ONE_LIST: &str = "where the rules with one host, path and method agree";

const ALONE: &str = "where one rule decides alone";

/// The sidecar in front of PingSIX.
const FRONT: &[(Executor, &str)] =
    &[(TlsFront, "PingSIX sees the address of the sidecar in place of the client's")];

capabilities! {
    /// Regular expressions for paths
    RegexPath = CapabilityRow {
        fields: "`matches[].path.type: RegularExpression` of HTTPRoute",
        limit: "match paths, headers, query parameters or gRPC methods by regular expression",
        message: "PingSIX has no regular expressions for paths; requests this match stands for are not served by this rule.",
        ..REFUSED
    };
    /// Regular expressions for gRPC services and methods
    RegexGrpcMethod = CapabilityRow {
        fields: "`matches[].method.type: RegularExpression` of GRPCRoute",
        limit: "match paths, headers, query parameters or gRPC methods by regular expression",
        message: "PingSIX has no regular expressions for services and methods; calls this match stands for are not served by \
                  this rule.",
        ..REFUSED
    };
    /// gRPC methods of any service
    GrpcMethodOfAnyService = CapabilityRow {
        fields: "`matches[].method.method` of GRPCRoute without `service`",
        limit: "match a gRPC method of any service",
        message: "PingSIX cannot match a method of any service; calls this match stands for are not served by this rule.",
        ..REFUSED
    };
    /// Regular expressions for headers and query parameters
    RegexCondition = CapabilityRow {
        fields: "`type: RegularExpression` of `matches[].headers[]` and `matches[].queryParams[]`",
        limit: "match paths, headers, query parameters or gRPC methods by regular expression",
        message: "PingSIX has no regular expressions for headers and query parameters.",
        ..REFUSED
    };
    /// Conditions on the Host header
    HostCondition = CapabilityRow {
        fields: "`matches[].headers[].name: Host`",
        message: "PingSIX cannot see the Host header on HTTP/2; use hostnames.",
        ..REFUSED
    };
    /// Conditions on empty values
    EmptyCondition = CapabilityRow {
        fields: "an empty `value` of `matches[].headers[]` and `matches[].queryParams[]`",
        message: "PingSIX cannot tell an empty value from a missing one.",
        ..REFUSED
    };
    /// Conditions on header values beyond visible ASCII
    NonAsciiCondition = CapabilityRow {
        fields: "`matches[].headers[].value`",
        message: "PingSIX compares header values of visible ASCII characters only.",
        ..REFUSED
    };
    /// Copies of requests to another backend
    RequestMirror = CapabilityRow {
        fields: "`filters[].requestMirror` of HTTPRoute and GRPCRoute",
        limit: "mirror requests",
        unclaimed: &[
            "HTTPRouteRequestMirror",
            "HTTPRouteRequestMultipleMirrors",
            "HTTPRouteRequestPercentageMirror",
        ],
        message: "PingSIX cannot mirror requests.",
        ..REFUSED
    };
    /// Authorization by another service
    ExternalAuthorization = CapabilityRow {
        fields: "`filters[].externalAuth` of HTTPRoute",
        limit: "ask another service for authorization",
        message: "PingSIX cannot ask another service for authorisation.",
        ..REFUSED
    };
    /// Filters of other kinds
    OtherFilters = CapabilityRow {
        fields: "`filters[].extensionRef` to another kind than HTTPRouteFilter",
        message: "PingSIX has no filters of this kind; HTTPRouteFilter of group pingsix.io is the only one.",
        ..REFUSED
    };
    /// Filters of one of several backends
    FiltersOfOneBackend = CapabilityRow {
        fields: "`backendRefs[].filters`",
        executors: &[(PingSix, "for a rule with one backend")],
        limit: "run filters for one of several backends of a rule",
        unclaimed: &["HTTPRouteBackendRequestHeaderModification"],
        message: "PingSIX runs filters per rule, so a backend can have its own only where it is the only one.",
        ..REFUSED
    };
    /// Filters beside a direct response
    FiltersOfResponses = CapabilityRow {
        fields: "`spec.directResponse` of HTTPRouteFilter beside other filters",
        message: "A rule that answers requests itself can have no other filter.",
        ..REFUSED
    };
    /// Preflights by the list of the filter alone
    PreflightMethod = CapabilityRow {
        fields: "`filters[].cors.allowMethods[]`",
        executors: &[(PingSix, "seven methods, of which GET, HEAD and POST are always allowed")],
        limit: "answer preflights by the list of the filter alone",
        unclaimed: &["HTTPRouteCORS"],
        message: "PingSIX allows no method {} in a preflight.",
        ..REFUSED
    };
    /// Names of PingSIX's variables in headers of responses
    VariableInHeader = CapabilityRow {
        fields: "`filters[].responseHeaderModifier`, `spec.responseHeaders` of TrafficPolicy",
        message: "PingSIX would replace {} in the value of header {}.",
        ..REFUSED
    };
    /// Dollar signs in the prefix of a path for backends
    DollarInPrefix = CapabilityRow {
        fields: "`filters[].urlRewrite.path.replacePrefixMatch`",
        message: "PingSIX takes $ for a reference; write %24.",
        ..REFUSED
    };
    /// Replacement of a part of a path by regular expression
    RegexForPartOfPath = CapabilityRow {
        fields: "`spec.urlRewrite.path.pattern` of HTTPRouteFilter",
        executors: &[(PingSix, "for patterns of whole paths")],
        limit: "replace a part of a path by regular expression",
        message: "PingSIX replaces whole paths, so the pattern has to match them whole, from ^ to $.",
        ..REFUSED
    };
    /// Sessions of a rule
    SessionsOfRules = CapabilityRow {
        fields: "`rules[].sessionPersistence`",
        limit: "keep a session on one backend",
        message: "PingSIX issues no session cookies or headers.",
        ..REFUSED
    };
    /// Limits of the total time of a request
    TotalTimeout = CapabilityRow {
        fields: "`rules[].timeouts`",
        executors: &[(PingSix, "idle timers of whole seconds, answered with 502")],
        limit: "limit the total time of a request",
        unclaimed: &["HTTPRouteBackendTimeout", "HTTPRouteRequestTimeout"],
        message: "PingSIX closes a connection after {} s without traffic and answers 502. The total time has no limit.",
        ..LIMITED
    };
    /// Retries by status
    RetryByStatus = CapabilityRow {
        fields: "`rules[].retry.codes`",
        executors: &[(PingSix, "connection failures alone")],
        limit: "retry by status code",
        unclaimed: &["HTTPRouteRetry", "HTTPRouteRetryBackendTimeout"],
        message: "PingSIX repeats a request only when it found no connection.",
        ..REFUSED
    };
    /// A delay before a retry
    RetryBackoff = CapabilityRow {
        fields: "`rules[].retry.backoff`",
        limit: "retry by status code",
        message: "PingSIX repeats a request at once.",
        ..REFUSED
    };
    /// More than 16 retries
    ManyRetries = CapabilityRow {
        fields: "`rules[].retry.attempts`",
        executors: &[(PingSix, "at most 16 retries")],
        limit: "retry by status code",
        unclaimed: &["HTTPRouteRetryConnectionError"],
        message: "PingSIX repeats a request at most {} times.",
        ..LIMITED
    };
    /// TLS to the backends of an Ingress without one name
    TlsWithoutName = CapabilityRow {
        fields: "the annotation `backend-protocol` with `HTTPS` or `GRPCS`",
        executors: &[(PingSix, "for hosts without a wildcard")],
        message: "PingSIX verifies the Host of a request over TLS, so a rule with backend-protocol HTTPS or GRPCS needs a host \
                  without a wildcard, or upstream-vhost.",
        ..REFUSED
    };
    /// Intermediate certificates for clients
    IntermediateCertificates = CapabilityRow {
        fields: "`tls.crt` of a Secret",
        executors: FRONT,
        limit: "send intermediate certificates to clients",
        message: "PingSIX sends the first certificate of Secret {} only, so clients that do not know its issuer, an \
                  intermediate authority, cannot verify it.",
        ..LIMITED
    };
    /// TCP, UDP and TLS connections
    StreamProtocol = CapabilityRow {
        fields: "`listeners[].protocol`: `TCP`, `UDP`, `TLS`",
        executors: &[(StreamProxy, "documents of their own, with a budget")],
        limit: "proxy TCP, UDP or TLS streams",
        reason: Reason::UnsupportedProtocol,
        message: "The data plane does not serve protocol {}.",
        ..REFUSED
    };
    /// Certificates of clients
    ClientCertificates = CapabilityRow {
        fields: "`spec.tls.frontend` of Gateway",
        executors: FRONT,
        limit: "ask clients for certificates",
        message: "PingSIX asks clients for no certificates, so the listener is not served.",
        ..REFUSED
    };
    /// Filters of a listener
    ListenerFilters = CapabilityRow {
        fields: "`listeners[].filters`",
        message: "PingSIX has no filters that run before routing, so the listener is not served: {}.",
        ..REFUSED
    };
    /// 421 for misdirected requests
    MisdirectedRequests = CapabilityRow {
        fields: "HTTPS listeners of one port",
        executors: &[(Responder, "with the sidecar in front, a rule of `traffic-split` in each Route")],
        limit: "compare the host of a request with the server name of the connection",
        message: "Without a responder, a request for a host of this listener that comes in by the connection of another \
                  listener is not answered with 421.",
        ..LIMITED
    };
    /// 421 on a port with many listeners
    MisdirectedBeyondSlots = CapabilityRow {
        fields: "HTTPS listeners of one port",
        message: "PingSIX tells {} listeners of a port apart, and earlier ones are as many. A request for a host of this \
                  listener may come in by the connection of another listener.",
        ..LIMITED
    };
    /// Authorities for single backends
    BackendAuthorities = CapabilityRow {
        fields: "`spec.validation.caCertificateRefs` of BackendTLSPolicy",
        executors: &[(PingSix, "the authorities of its system")],
        limit: "verify backends by several authorities or by alternative names",
        unclaimed: &["BackendTLSPolicy"],
        message: "PingSIX has one store of CA certificates for all backends and cannot use a separate one for a Service; \
                  add the CA to that store and use wellKnownCACertificates: System.",
        ..REFUSED
    };
    /// Alternative names of backends
    BackendAlternativeNames = CapabilityRow {
        fields: "`spec.validation.subjectAltNames` of BackendTLSPolicy",
        limit: "verify backends by several authorities or by alternative names",
        unclaimed: &["BackendTLSPolicySANValidation"],
        message: "PingSIX verifies the name that it sends to the backend and cannot verify other names.",
        ..REFUSED
    };
    /// A name of a backend that is not the Host
    BackendNameBesideHost = CapabilityRow {
        fields: "`spec.validation.hostname` of BackendTLSPolicy",
        executors: &[(PingSix, "for requests with this Host")],
        message: "PingSIX sends one name as Host and as server name, so PingSIX can verify {} only for requests with \
                  this Host or with a URLRewrite filter that sets this Host. Requests of these references may have another \
                  Host and are answered with an error: {}.",
        message_to_routes: "{} requires that Service {} proves the name {} (spec.validation.hostname). PingSIX verifies \
                            the Host of a request, so all requests need this Host: {} has to be the only host of the route, \
                            or the hostname of a URLRewrite filter of the rule. This share of requests is answered with an \
                            error, because a connection to the backend would be unverified.",
        ..REFUSED
    };
    /// TLS to the backends of connections without known requests
    TlsOfConnections = CapabilityRow {
        fields: "BackendTLSPolicies for Services of TCPRoutes and TLSRoutes",
        message: "PingSIX uses TLS to backends only for requests. Connections of these references carry no known requests \
                  and are closed: {}.",
        message_to_routes: "{} requires TLS for connections to Service {}. PingSIX uses TLS to backends only for requests. This \
                            share of connections is closed, because the backend would receive plaintext.",
        ..REFUSED
    };
    /// A certificate of the Gateway for backends
    CertificateOfGateway = CapabilityRow {
        fields: "`spec.tls.backend.clientCertificateRef` of Gateway",
        limit: "show a client certificate to backends",
        unclaimed: &["GatewayBackendClientCertificate"],
        message: "No certificate is shown to backends, so those that ask for one refuse connections.",
        ..LIMITED
    };
    /// A certificate for a Service without TLS for requests
    CertificateForBackends = CapabilityRow {
        fields: "`spec.tls.clientCertificateRef` of BackendTrafficPolicy",
        executors: &[(PingSix, "for requests of routes, with a BackendTLSPolicy")],
        message: "PingSIX presents client certificates only for requests over TLS, which need a route of Gateway API and a \
                  BackendTLSPolicy for the Service. These references are answered with an error: {}.",
        message_to_routes: "{} requires a client certificate for Service {}. PingSIX presents client certificates only for \
                            requests over TLS, which need a route of Gateway API and a BackendTLSPolicy for the Service. This \
                            share of traffic is answered with an error.",
        ..REFUSED
    };
    /// Sessions of a Service
    SessionsOfServices = CapabilityRow {
        fields: "`spec.sessionPersistence` of BackendTrafficPolicy",
        limit: "balance by load, keep sessions, or judge endpoints by their answers",
        message: "PingSIX has no sessions; a ConsistentHash of a cookie comes close.",
        ..REFUSED
    };
    /// Passive health checks
    PassiveHealthCheck = CapabilityRow {
        fields: "`spec.healthCheck.passive` of BackendTrafficPolicy",
        limit: "balance by load, keep sessions, or judge endpoints by their answers",
        message: "PingSIX does not judge endpoints by the answers to clients.",
        ..REFUSED
    };
    /// Other ways to balance
    OtherBalancing = CapabilityRow {
        fields: "`spec.loadBalancer.type` of BackendTrafficPolicy",
        executors: &[(PingSix, "`RoundRobin`, `Random` and `ConsistentHash`")],
        limit: "balance by load, keep sessions, or judge endpoints by their answers",
        message: "PingSIX has RoundRobin, Random and ConsistentHash, and no \"{}\".",
        ..REFUSED
    };
    /// A hash of the client's address behind the sidecar
    AddressHashBehindFront = CapabilityRow {
        fields: "`spec.loadBalancer.consistentHash.type: SourceIP` of BackendTrafficPolicy",
        executors: &[(PingSix, "on ports where no sidecar terminates TLS")],
        limit: "learn the address of a client behind another proxy",
        message: "PingSIX does not know the addresses of clients on a port where the sidecar terminates TLS. These \
                  references are answered with an error: {}.",
        message_to_routes: "{} hashes the addresses of clients for Service {} (spec.loadBalancer.consistentHash). PingSIX does \
                            not know them on a port where the sidecar terminates TLS. This share of requests is answered with \
                            an error.",
        ..REFUSED
    };
    /// Policies by the client's address behind the sidecar
    AddressPolicyBehindFront = CapabilityRow {
        fields: "`spec.authorization` of SecurityPolicy, `spec.rateLimit` of TrafficPolicy by `RemoteAddress`",
        executors: &[(PingSix, "on ports where no sidecar terminates TLS")],
        limit: "learn the address of a client behind another proxy",
        message: "spec.{}: PingSIX does not know the addresses of clients on a port where the sidecar terminates TLS",
        ..REFUSED
    };
    /// Retries of a Service by status
    RetryOfServiceByStatus = CapabilityRow {
        fields: "`spec.retry.statusCodes` of BackendTrafficPolicy",
        executors: &[(PingSix, "connection failures alone")],
        message: "PingSIX repeats a request only if it found no connection.",
        ..REFUSED
    };
    /// More than 16 retries of a Service
    ManyRetriesOfService = CapabilityRow {
        fields: "`spec.retry.numRetries` of BackendTrafficPolicy",
        executors: &[(PingSix, "at most 16 retries")],
        message: "PingSIX repeats a request at most 16 times.",
        ..REFUSED
    };
    /// Timeouts between whole seconds
    ExactTimeout = CapabilityRow {
        fields: "durations of BackendTrafficPolicy",
        executors: &[(PingSix, "whole seconds up to a day")],
        limit: "use timeouts below a second or between whole seconds",
        message: "PingSIX counts whole seconds from 1s to {}s, and \"{}\" is not one.",
        ..REFUSED
    };
    /// Other algorithms of tokens
    TokenAlgorithm = CapabilityRow {
        fields: "`spec.jwt.algorithm` of SecurityPolicy",
        executors: &[(PingSix, "HS256, HS512, RS256, RS384, RS512, ES256 and ES384")],
        limit: "verify tokens with HS384, PS256 or EdDSA, or check `nbf`",
        message: "PingSIX does not verify {}; it knows HS256, HS512, RS256, RS384, RS512, ES256 and ES384.",
        ..REFUSED
    };
    /// Required claims of any name
    RequiredClaim = CapabilityRow {
        fields: "`spec.jwt.requiredClaims[]` of SecurityPolicy",
        executors: &[(PingSix, "registered claims")],
        message: "PingSIX cannot require the claim \"{}\", only {}.",
        ..REFUSED
    };
    /// Credentials in one of several places
    CredentialPlaces = CapabilityRow {
        fields: "`extractFrom` of SecurityPolicy",
        executors: &[(PingSix, "one header and one query parameter")],
        message: "PingSIX looks into one header and one query parameter.",
        ..REFUSED
    };
    /// Tokens for any audience
    AnyAudience = CapabilityRow {
        fields: "`spec.jwt` of SecurityPolicy without `audience`",
        executors: &[(PingSix, "tokens without `aud`")],
        limit: "accept tokens with `aud` without a configured audience",
        message: "Without an audience, PingSIX refuses tokens with the claim aud.",
        ..LIMITED
    };
    /// The host of requests with credentials in the query
    HostBesideSanitize = CapabilityRow {
        fields: "`extractFrom.params` of SecurityPolicy with `sanitize`",
        executors: &[(PingSix, "for HTTP/1.1, and for rules that rewrite the hostname")],
        limit: "keep the host of requests over HTTP/2 whose key is removed from the query",
        message: "When PingSIX removes the parameter from a request over HTTP/2, a backend gets an empty Host, unless \
                  the rule rewrites the hostname.",
        ..LIMITED
    };
    /// Networks of IPv6 clients alone
    NetworkOfIpv6Alone = CapabilityRow {
        fields: "`::/0` in lists of networks of SecurityPolicy",
        executors: &[(PingSix, "on sockets of IPv4")],
        limit: "tell clients of IPv4 and IPv6 apart by `::/0`",
        message: "Where PingSIX listens on an address of IPv6, \"{}\" contains all clients of IPv4, too.",
        ..LIMITED
    };
    /// Several lines of X-Forwarded-For
    ForwardedForLines = CapabilityRow {
        fields: "`spec.clientIP` of SecurityPolicy",
        executors: &[(PingSix, "the first line")],
        limit: "read several lines of `X-Forwarded-For`",
        message: "PingSIX reads the first line of X-Forwarded-For alone, so the trusted proxies must keep the header \
                  in one line.",
        ..LIMITED
    };
    /// Request ids beside a check of addresses
    RequestIdBesideAddresses = CapabilityRow {
        fields: "`spec.requestID` of TrafficPolicy beside `authorization` and `clientIP` of SecurityPolicy",
        message: "Where authorization applies, requestID of a TrafficPolicy has no effect, because PingSIX uses \
                  the same plugin to refuse requests of these proxies without the header.",
        ..LIMITED
    };
    /// The preferred coding of a client
    PreferredCoding = CapabilityRow {
        fields: "`spec.compression` of TrafficPolicy with Brotli",
        executors: &[(PingSix, "the first coding that PingSIX knows")],
        limit: "compress by a coding that a client names later",
        message: "PingSIX considers the first coding alone that a client accepts and PingSIX knows, so clients that name gzip \
                  before br get no Brotli.",
        ..LIMITED
    };
    /// A cache for wildcards and for every host
    CacheOfAnyHost = CapabilityRow {
        fields: "`spec.cache` of TrafficPolicy",
        executors: &[(PingSix, "for exact hostnames")],
        limit: "tell whether a request has a second host",
        message: "Responses are cached for exact hostnames alone, and their backends get the hostname as the Host, with the \
                  port of the listener in place of the client's. Rules for wildcards and for every host cache nothing.",
        ..LIMITED
    };
    /// A cache that namespaces share
    SharedCache = CapabilityRow {
        fields: "`spec.cache` of TrafficPolicy",
        executors: &[(PingSix, "with `spec.sharedCache` of the class")],
        limit: "bound the headers and keys of cached responses",
        message: "No response is cached, because namespaces share the memory of these processes. The PingsixProxy of the class \
                  may allow it (spec.sharedCache).",
        ..LIMITED
    };
    /// Services of type `ExternalName` for requests
    ExternalName = CapabilityRow {
        fields: "`backendRefs` of HTTPRoute and GRPCRoute, backends of Ingresses",
        limit: "resolve DNS names of backends safely",
        message: "Service {} is of type ExternalName; a name that does not resolve would freeze PingSIX, so it is not used.",
        ..REFUSED
    };
    /// Services of type `ExternalName` for connections
    ExternalNameOfConnections = CapabilityRow {
        fields: "`backendRefs` of TCPRoute, UDPRoute and TLSRoute",
        message: "Service {} is of type ExternalName; names are not resolved.",
        ..REFUSED
    };
    /// Endpoints with DNS names for requests
    NamedEndpoints = CapabilityRow {
        fields: "EndpointSlices with `addressType: FQDN`",
        limit: "resolve DNS names of backends safely",
        message: "The endpoints of Service {} are DNS names; one that does not resolve would freeze PingSIX, so they are not \
                  used.",
        ..REFUSED
    };
    /// Endpoints with DNS names for connections
    NamedEndpointsOfConnections = CapabilityRow {
        fields: "EndpointSlices with `addressType: FQDN`",
        message: "The endpoints of Service {} are DNS names; names are not resolved.",
        ..REFUSED
    };
    /// Paths for h2c backends that see the client's host
    PathOfH2cBackend = CapabilityRow {
        fields: "`filters[].urlRewrite.path` before an h2c backend",
        executors: &[(PingSix, "with `urlRewrite.hostname`")],
        message: "PingSIX loses the host when it rewrites the path of a request to an h2c backend; give the URLRewrite \
                  filter a hostname.",
        ..REFUSED
    };
    /// Answers and redirects that conditions or shares choose
    ChosenAnswer = CapabilityRow {
        fields: "rules that conditions or weights lead to 404, 500, 503 or a redirect",
        executors: &[(PingSix, ALONE), (Responder, "a connection on loopback for each request")],
        limit: "answer 503, 404 or most redirects by itself",
        message: "This rule needs a responder, and none is configured. Requests that the responder would decide get {}.",
        ..REFUSED
    };
    /// Bodies of direct responses behind conditions
    BodyBehindConditions = CapabilityRow {
        fields: "`spec.directResponse.body` of HTTPRouteFilter",
        executors: &[(PingSix, ALONE)],
        limit: "respond with a body after conditions have chosen a rule, or choose its content type",
        message: "PingSIX responds with a body only where one rule decides about all requests with the same host, path and \
                  method. Where rules with conditions on headers or query, or a redirect to HTTPS, come before this rule, \
                  requests that reach it are answered with {}; leave out the body or the conditions.",
        ..REFUSED
    };
    /// Bodies of direct responses behind the sidecar
    BodyBehindFront = CapabilityRow {
        fields: "`spec.directResponse.body` of HTTPRouteFilter",
        executors: &[(PingSix, "on ports with one listener")],
        message: "PingSIX would respond with the body before it looks at the listener by which a request came in, so the \
                  requests are answered with {}. Leave out the body, or give the listener a port of its own.",
        ..REFUSED
    };
    /// Direct responses behind policies
    ResponseBehindPolicies = CapabilityRow {
        fields: "`spec.directResponse` of HTTPRouteFilter under policies that answer requests",
        message: "PingSIX would respond before it runs {}, so the requests are answered with {}; give the direct response a \
                  rule to which no such policy applies.",
        ..REFUSED
    };
    /// A filter and a policy with one plugin
    FilterBesidePolicy = CapabilityRow {
        fields: "`filters[].responseHeaderModifier` and `filters[].cors` under a TrafficPolicy or SecurityPolicy",
        limit: "add the headers of a policy to those of a filter",
        message: "{} asks for the plugin {}, and so does a filter of this rule. PingSIX would run the filter alone, so the \
                  requests are answered with {}; leave out the filter.",
        ..REFUSED
    };
    /// Different policies of rules that differ in conditions
    PoliciesOfConditions = CapabilityRow {
        fields: "SecurityPolicies and TrafficPolicies for `rules[]`",
        executors: &[(PingSix, ONE_LIST)],
        limit: "run different policies for rules that differ in conditions only",
        message: "PingSIX runs one set of policies for requests with the same host, path and method. {} takes precedence and \
                  has other policies ({} instead of {}), so requests to its host and path that reach this rule are answered \
                  with {}; have the same policies apply to both rules.",
        ..REFUSED
    };
    /// Different filters of rules that differ in conditions
    FiltersOfConditions = CapabilityRow {
        fields: "`rules[].filters`",
        executors: &[(PingSix, ONE_LIST)],
        limit: "run different filters for rules that differ in conditions only",
        message: "PingSIX runs one set of filters for requests with the same host, path and method. {} takes precedence and \
                  has other filters, so requests to its host and path that reach this rule are answered with {}; give both \
                  rules the same filters.",
        ..REFUSED
    };
    /// Policies of one of several ports
    PoliciesOfPorts = CapabilityRow {
        fields: "policies for `listeners[]` with the same hosts",
        message: "PingSIX cannot tell ports apart, and the policies of the listeners for these hosts differ, so the requests \
                  are answered with {}; use layout perPort.",
        ..PORTS
    };
    /// Policies behind a redirect to HTTPS
    PoliciesBehindRedirect = CapabilityRow {
        fields: "policies that answer requests, behind a redirect to HTTPS",
        limit: "redirect to HTTPS before authentication, with one data plane for both ports",
        message: "PingSIX would run {} before requests in plaintext are redirected to HTTPS, so requests are answered with {}; \
                  use layout perPort.",
        ..PORTS
    };
    /// Rules behind a redirect of some requests to HTTPS
    RulesBehindRedirect = CapabilityRow {
        message: "PingSIX cannot tell ports apart, and not every request in plaintext that the rule matches is redirected to \
                  HTTPS; use layout perPort.",
        ..PORTS
    };
    /// A redirect to HTTPS behind rules of all ports
    RedirectBehindRules = CapabilityRow {
        message: "PingSIX cannot tell ports apart, and rules of routes attached to all ports come before the redirect; use \
                  layout perPort.",
        ..PORTS
    };
    /// Redirects that keep the port
    RedirectOfPort = CapabilityRow {
        fields: "`filters[].requestRedirect` without a scheme",
        message: "PingSIX cannot tell ports apart, and the hosts of the route are served on several; give the redirect a \
                  scheme, or use layout perPort.",
        ..PORTS
    };
    /// Routes of an HTTPS listener beside a port without TLS
    RouteOfTlsPort = CapabilityRow {
        message: "PingSIX cannot tell ports apart. The routes of HTTPS listener \"{}\" would also be served in plaintext on \
                  port {}; use layout perPort.",
        ..PORTS
    };
    /// A redirect to HTTPS of wildcards, or by conditions
    RedirectOfWildcard = CapabilityRow {
        message: "PingSIX cannot tell ports apart. Requests of listener \"{}\" are redirected to HTTPS only for hosts with a \
                  name, by rules without conditions. Give the route hostnames without wildcards, or use layout perPort.",
        ..PORTS
    };
    /// Routes of one of several ports
    RouteOfPort = CapabilityRow {
        message: "PingSIX cannot tell ports apart, and listener \"{}\" on port {} serves the same hosts as listener \"{}\" on \
                  port {}; attach the route to both, or use layout perPort.",
        ..PORTS
    };
    /// Certificates of a server name by port
    CertificateOfPort = CapabilityRow {
        fields: "`listeners[].tls.certificateRefs`",
        limit: "show different certificates for a server name by port",
        reason: Reason::Limited,
        message: "The certificate of Secret {} is not shown for {}, because PingSIX takes one per name, on whatever port, and \
                  listener \"{}\" on port {} provides it; use layout perPort.",
        ..PORTS
    };
    /// HTTP/2 without TLS beside ports with TLS
    PlaintextHttp2 = CapabilityRow {
        fields: "GRPCRoutes and h2c backends on a port without TLS",
        limit: "offer HTTP/2 without TLS in a process with ports for TLS",
        reason: Reason::Limited,
        message: "PingSIX closes connections over HTTP/2 without TLS on port {}, because its process also has ports with TLS; \
                  {}. Use layout perPort, or a process of its own for the ports without TLS (pingsix-config --ports).",
        ..PORTS
    };
    /// Protected regular expressions behind older rules
    ProtectedRegex = CapabilityRow {
        fields: "policies for rules with `RegularExpression`",
        limit: "prefer what closes a protected regular expression to an older rule",
        message: "PingSIX cannot match what this rule protects, and an older rule with less protection takes requests for \
                  \"{}\"; protect the whole host.",
        ..LIMITED
    };
    /// Comparison of paths after normalisation
    NormalisedPath = CapabilityRow {
        fields: "policies and annotations for a path",
        executors: &[(PingSix, "400 for known spellings of protected paths")],
        limit: "compare paths after normalisation, as ingress-nginx does",
        message: "PingSIX compares paths byte by byte, and a rule with less protection takes requests of the same host beside \
                  \"{}\". The known other spellings of the path are answered with {}, but a backend that normalises paths \
                  further may serve what this rule protects; protect the whole host, and give public paths a rule of their \
                  own.",
        ..LIMITED
    };
}
