//! `TrafficPolicy`: limits, compression and other treatment of requests and their responses.

#![allow(
    dead_code,
    reason = "the derive of KubeSchema copies the spec, and reads no skipped field of the copy"
)]
#![expect(clippy::duplicated_attributes, reason = "each printed column has a type of its own")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::pingsix_proxy::ResponseHeader;
use super::policy::{
    MergeStrategy, PolicyStatus, PolicyTargetReference, SpecReader, UnreadableField,
    ingresses_without_section, is_default, overrides_of_wide_targets, targets_of_one_class,
};

/// `spec` of a `TrafficPolicy`. Durations are those of Gateway API, such as `5s` or `200ms`.
#[derive(CustomResource, KubeSchema, Serialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "pingsix.io",
    version = "v1alpha1",
    kind = "TrafficPolicy",
    plural = "trafficpolicies",
    category = "pingsix",
    namespaced,
    status = "PolicyStatus",
    derive = "PartialEq",
    label("gateway.networking.k8s.io/policy", "Inherited"),
    doc = "Limits, compression and other treatment of requests through Gateways, ListenerSets and routes, or to Ingresses. The \
           policy of a Gateway holds for its listeners and ListenerSets, these for their routes, and a route for its rules. \
           Of several policies, each top-level field counts for itself. An invalid field has no effect and leaves the other \
           fields as they are, except for `rateLimit`: its rules answer 500.",
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.targetRefs[0].kind"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetRefs[0].name"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = ".status.ancestors[0].conditions[?(@.type==\"Accepted\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.ancestors[0].conditions[?(@.type==\"Accepted\")].reason",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "has(self.rateLimit) || has(self.compression) || has(self.requestID) || has(self.faultInjection) || \
         has(self.grpcWeb) || has(self.responseHeaders) || has(self.cache)"
    ).message("a policy has to set a field beside targetRefs"),
    validation = targets_of_one_class(),
    validation = ingresses_without_section(),
    validation = overrides_of_wide_targets()
)]
pub struct TrafficPolicySpec {
    /// The objects to which the policy applies: Gateways and ListenerSets, or HTTPRoutes and GRPCRoutes, or Ingresses.
    #[schemars(length(min = 1, max = 16))]
    pub(crate) target_refs: Vec<PolicyTargetReference>,

    /// Which policy counts where several apply.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) strategy: MergeStrategy,

    /// The limit of requests of a client. Rules whose limit is invalid answer 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate_limit: Option<RateLimit>,

    /// The codings with which responses are compressed, each at most once. PingSIX considers the first coding alone that a
    /// client accepts and PingSIX knows: a client with `gzip, br` gets gzip, or nothing where only Brotli is listed.
    /// Responses of less than 20 bytes and those of types that are compressed already stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2))]
    #[x_kube(
        validation = Rule::new("self.all(one, self.filter(other, other.type == one.type).size() == 1)")
            .message("each type may be listed once")
    )]
    pub(crate) compression: Option<Vec<Compression>>,

    /// A header with an id for each request. The id of a client stays as it is. Where a SecurityPolicy sets
    /// `authorization` and `clientIP`, this field has no effect.
    #[serde(default, rename = "requestID", skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<RequestId>,

    /// Delays and errors for tests. PingSIX injects them before authentication and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault_injection: Option<FaultInjection>,

    /// Translation of gRPC-Web, which browsers speak, into gRPC. The backends have to speak gRPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grpc_web: Option<GrpcWeb>,

    /// Changes to the headers of responses of backends. Answers of PingSIX itself, such as 401 and 429, stay as they are. A
    /// rule with a `ResponseHeaderModifier` cannot be served under this field, because PingSIX would make the changes of
    /// the rule alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) response_headers: Option<ResponseHeaderChanges>,

    /// A cache of responses in the memory of each process. PingSIX bounds the bodies alone: by default 512 MiB for all
    /// policies together, and 1 MiB for each. Headers and keys take memory without a bound, so clients can fill the memory of
    /// a process with requests for many URLs. Where namespaces share a data plane, `sharedCache` of the class has to allow it.
    ///
    /// Responses to requests for an exact hostname alone are kept, and their backends get this hostname as the Host. Responses
    /// with `Set-Cookie` are never kept, nor responses to requests with `Authorization`, `Proxy-Authorization` or `Cookie`, or
    /// with the key or token for which a SecurityPolicy of the rule asks. Any other header, such as `X-Api-Key` without such a
    /// policy, is no credential to PingSIX. Any client can go past the cache, by the header `x-bypass-cache` or by
    /// `cache-control: no-cache`. `Cache-Control` of a response counts before `ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<ResponseCache>,

    /// Fields that could not be read. Such a field is invalid.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) unreadable: Vec<UnreadableField>,
}

impl<'de> Deserialize<'de> for TrafficPolicySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut reader = SpecReader::new(deserializer)?;
        let mut spec = Self {
            target_refs: reader.list("targetRefs"),
            strategy: reader.field("strategy").unwrap_or_default(),
            rate_limit: reader.field("rateLimit"),
            compression: reader.field("compression"),
            request_id: reader.field("requestID"),
            fault_injection: reader.field("faultInjection"),
            grpc_web: reader.field("grpcWeb"),
            response_headers: reader.field("responseHeaders"),
            cache: reader.field("cache"),
            unreadable: Vec::new(),
        };
        spec.unreadable = reader.finish();
        Ok(spec)
    }
}

/// The limit of requests of a client.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit {
    /// A limit in fixed windows that each process of the data plane counts for itself. With several processes, clients may
    /// send a multiple of it.
    ///
    /// All rules with the same SecurityPolicies and TrafficPolicies share the counts. So one policy for two routes allows
    /// both together the limit, and a route with a further policy has counts of its own. PingSIX forgets all counts when
    /// it builds its plugins anew: after a change of a policy, or of an endpoint of any Service of the data plane. With
    /// more than about a thousand keys in a window, PingSIX may count the requests of several keys together.
    pub(crate) local: LocalRateLimit,
}

/// A limit per process and key.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LocalRateLimit {
    /// The number of requests.
    pub(crate) limit: RequestLimit,

    /// The part of a request by which clients are told apart. A client that chooses another header, cookie or parameter has
    /// another count.
    #[serde(default)]
    pub(crate) key: RateLimitKey,

    /// Treatment of requests without the header, cookie or query parameter. No request passes uncounted.
    #[serde(default)]
    pub(crate) on_missing_key: MissingKey,

    /// The status of requests beyond the limit.
    #[serde(default = "LocalRateLimit::default_reject_code")]
    #[schemars(range(min = 400, max = 599))]
    pub(crate) reject_code: u16,

    /// Whether responses have the headers `X-Rate-Limit-Limit`, `X-Rate-Limit-Remaining` and `X-Rate-Limit-Reset`, and
    /// rejections `Retry-After`.
    #[serde(default = "LocalRateLimit::default_quota_headers")]
    pub(crate) quota_headers: bool,
}

impl LocalRateLimit {
    fn default_reject_code() -> u16 {
        429
    }

    fn default_quota_headers() -> bool {
        true
    }
}

/// A number of requests per unit of time.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestLimit {
    /// The number of requests in each unit.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(crate) requests: u32,

    /// The length of the window.
    pub(crate) unit: RateLimitUnit,
}

/// The length of a window.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateLimitUnit {
    /// A second.
    Second,
    /// 60 seconds.
    Minute,
    /// 3,600 seconds.
    Hour,
    /// 86,400 seconds.
    Day,
}

/// The part of a request by which clients are told apart. A client that chooses another header, cookie or parameter has
/// another count.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("(self.type == 'RemoteAddress') != has(self.name)")
        .message("a Header, a Cookie and a QueryParam need a name, a RemoteAddress has none")
)]
pub(crate) struct RateLimitKey {
    /// The kind of the part.
    #[serde(default)]
    pub(crate) r#type: RateLimitKeyType,

    /// The name of the header, cookie or query parameter: letters, digits, `-`, `_` and `.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub(crate) name: Option<String>,
}

/// The kind of a part of requests.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RateLimitKeyType {
    /// The address of the connection's peer.
    #[default]
    RemoteAddress,
    /// A request header.
    Header,
    /// A cookie.
    Cookie,
    /// A query parameter, as it is encoded.
    QueryParam,
}

/// Treatment of requests without a key.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MissingKey {
    /// All of them share one count.
    #[default]
    Share,
    /// They are answered with 400.
    Deny,
}

/// A coding of responses.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[x_kube(validation = Rule::new("self.type != 'Gzip' || !has(self.level) || self.level <= 9").message("Gzip has the levels 1 to 9"))]
pub(crate) struct Compression {
    /// The coding.
    pub(crate) r#type: CompressionType,

    /// The effort: 1 to 9 for Gzip, 1 to 11 for Brotli. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 11))]
    pub(crate) level: Option<u32>,
}

/// A coding.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CompressionType {
    /// `gzip`.
    Gzip,
    /// `br`.
    Brotli,
}

/// A header with an id for each request.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestId {
    /// The name of the header. Default: `X-Request-Id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub(crate) header_name: Option<String>,

    /// Whether the response has the header, too. Default: `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_response: Option<bool>,
}

/// Delays and errors for tests.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(validation = Rule::new("has(self.delay) || has(self.abort)").message("one of delay and abort has to be set"))]
pub(crate) struct FaultInjection {
    /// A delay of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delay: Option<FaultDelay>,

    /// An answer without a backend, after the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) abort: Option<FaultAbort>,
}

/// A delay of requests.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultDelay {
    /// The length of the delay, at most 60s.
    #[schemars(length(min = 1, max = 32))]
    pub(crate) duration: String,

    /// The share of requests in per cent.
    #[serde(default = "every_request")]
    #[schemars(range(max = 100))]
    pub(crate) percentage: u32,
}

/// An answer without a backend.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FaultAbort {
    /// The status of the answer.
    #[schemars(range(min = 200, max = 599))]
    pub(crate) http_status: u16,

    /// The share of requests in per cent.
    #[serde(default = "every_request")]
    #[schemars(range(max = 100))]
    pub(crate) percentage: u32,
}

fn every_request() -> u32 {
    100
}

/// Translation of gRPC-Web into gRPC.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GrpcWeb {}

/// Changes to the headers of responses, with the fields of the `ResponseHeaderModifier` of HTTPRoute.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[x_kube(
    validation = Rule::new("has(self.set) || has(self.add) || has(self.remove)")
        .message("one of set, add and remove has to be set")
)]
pub(crate) struct ResponseHeaderChanges {
    /// Headers whose values are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub(crate) set: Vec<ResponseHeader>,

    /// Headers that get one more value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub(crate) add: Vec<ResponseHeader>,

    /// Names of headers to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub(crate) remove: Vec<String>,
}

/// A cache of responses.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseCache {
    /// The time for which a response is fresh if it has no `Cache-Control`: whole seconds, from 1s to 86400s.
    #[schemars(length(min = 1, max = 32))]
    pub(crate) ttl: String,

    /// The methods whose responses are kept: `GET` and `HEAD`. Default: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2))]
    pub(crate) methods: Option<Vec<CacheMethod>>,

    /// The statuses of responses that are kept, from 200 to 599 but for 206 and 304. Default: 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), inner(range(min = 200, max = 599)))]
    pub(crate) statuses: Option<Vec<u16>>,
}

/// A method whose responses may be kept.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheMethod {
    /// `GET`.
    #[serde(rename = "GET")]
    Get,
    /// `HEAD`.
    #[serde(rename = "HEAD")]
    Head,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    fn read(spec: Value) -> (TrafficPolicySpec, Vec<String>) {
        let spec: TrafficPolicySpec = serde_json::from_value(spec).unwrap();
        let fields = spec.unreadable.iter().map(|unread| unread.field.clone()).collect();
        (spec, fields)
    }

    #[test]
    fn every_field_is_read_as_it_is_written() {
        let written = json!({
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"}],
            "strategy": "Overrides",
            "rateLimit": {"local": {
                "limit": {"requests": 3, "unit": "Minute"}, "key": {"type": "Header", "name": "x-user"},
                "onMissingKey": "Deny", "rejectCode": 503, "quotaHeaders": false,
            }},
            "compression": [{"type": "Gzip", "level": 6}, {"type": "Brotli"}],
            "requestID": {"headerName": "X-Id", "inResponse": false},
            "faultInjection": {
                "delay": {"duration": "200ms", "percentage": 5}, "abort": {"httpStatus": 503, "percentage": 1},
            },
            "grpcWeb": {},
            "responseHeaders": {
                "set": [{"name": "A", "value": "1"}], "add": [{"name": "B", "value": "2"}], "remove": ["C"],
            },
            "cache": {"ttl": "5s", "methods": ["GET"], "statuses": [200, 404]},
        });
        let (spec, unread) = read(written.clone());
        assert_eq!(unread, [""; 0]);
        assert_eq!(serde_json::to_value(&spec).unwrap(), written);
    }

    #[test]
    fn a_limit_has_defaults() {
        let (spec, unread) = read(json!({
            "targetRefs": [], "rateLimit": {"local": {"limit": {"requests": 3, "unit": "Second"}}},
        }));
        assert_eq!(unread, [""; 0]);
        let LocalRateLimit { key, on_missing_key, reject_code, quota_headers, .. } =
            spec.rate_limit.unwrap().local;
        assert_eq!(key, RateLimitKey { r#type: RateLimitKeyType::RemoteAddress, name: None });
        assert_eq!((on_missing_key, reject_code, quota_headers), (MissingKey::Share, 429, true));
    }

    #[test]
    fn an_unreadable_field_leaves_the_others() {
        let (spec, unread) = read(json!({
            "targetRefs": [],
            "rateLimit": {"global": {}},
            "compression": [{"type": "Zstd"}],
            "responseHeaders": {"set": [{"name": "A", "value": "1", "append": true}]},
            "faultInjection": {"delay": {"duration": "1s", "jitter": "1s"}},
            "cache": {"ttl": "5s", "scope": "cluster"},
            "requestID": {},
            "mirror": {},
        }));
        assert!(spec.request_id.is_some() && spec.rate_limit.is_none());
        assert_eq!(
            unread,
            [
                "rateLimit.global",
                "rateLimit",
                "compression[0].type",
                "faultInjection.delay.jitter",
                "responseHeaders.set[0].append",
                "cache.scope",
                "mirror"
            ]
        );
        let fields: BTreeSet<&str> = spec.unreadable.iter().map(UnreadableField::top_level).collect();
        assert_eq!(
            fields,
            ["cache", "compression", "faultInjection", "mirror", "rateLimit", "responseHeaders"].into()
        );
    }
}
