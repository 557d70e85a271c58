//! `SecurityPolicy`: who may send requests.

#![allow(
    dead_code,
    reason = "the derive of KubeSchema copies the spec, and reads no skipped field of the copy"
)]
#![expect(clippy::duplicated_attributes, reason = "each printed column has a type of its own")]

use gateway_api::experimental::httproutes as api;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::policy::{
    MergeStrategy, PolicyStatus, PolicyTargetReference, SecretObjectReference, SpecReader, UnreadableField,
    ingresses_without_section, is_default, overrides_of_wide_targets, targets_of_one_class,
};

/// `spec` of a `SecurityPolicy`.
#[derive(CustomResource, KubeSchema, Serialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "pingsix.io",
    version = "v1alpha1",
    kind = "SecurityPolicy",
    plural = "securitypolicies",
    category = "pingsix",
    namespaced,
    status = "PolicyStatus",
    derive = "PartialEq",
    label("gateway.networking.k8s.io/policy", "Inherited"),
    doc = "Who may send requests through Gateways, ListenerSets and routes, or to Ingresses: authentication, addresses, \
           origins. The policy of a Gateway holds for its listeners and ListenerSets, these for their routes, and a route \
           for its rules. Of several policies, each top-level field counts for itself, and the four authentications count \
           as one field.",
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
        "[has(self.apiKeyAuth), has(self.basicAuth), has(self.jwt), has(self.anonymous)].filter(set, set).size() <= 1"
    ).message("at most one of apiKeyAuth, basicAuth, jwt and anonymous may be set"),
    validation = Rule::new(
        "has(self.apiKeyAuth) || has(self.basicAuth) || has(self.jwt) || has(self.anonymous) || \
         has(self.authorization) || has(self.clientIP) || has(self.cors) || has(self.csrf)"
    ).message("a policy has to set a field beside targetRefs"),
    validation = targets_of_one_class(),
    validation = ingresses_without_section(),
    validation = overrides_of_wide_targets(),
    validation = Rule::new(
        "!has(self.strategy) || self.strategy != 'Overrides' || !has(self.anonymous)"
    ).message("anonymous overrides no authentication")
)]
pub struct SecurityPolicySpec {
    /// The objects to which the policy applies: Gateways and ListenerSets, or HTTPRoutes and GRPCRoutes, or Ingresses.
    #[schemars(length(min = 1, max = 16))]
    pub(crate) target_refs: Vec<PolicyTargetReference>,

    /// Which policy counts where several apply.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) strategy: MergeStrategy,

    /// API keys of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_auth: Option<ApiKeyAuth>,

    /// A user with a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,

    /// JSON Web Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jwt: Option<Jwt>,

    /// No authentication, although a policy with a wider target asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) anonymous: Option<Anonymous>,

    /// The addresses of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<Authorization>,

    /// The source of client addresses behind trusted proxies. `authorization` uses this address.
    #[serde(default, rename = "clientIP", skip_serializing_if = "Option::is_none")]
    pub(crate) client_ip: Option<ClientIp>,

    /// Requests of scripts from other origins. The CORS filter of a rule replaces this field. A rule with such a filter
    /// cannot be served where a policy with the strategy `Overrides` sets the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<Cors>,

    /// Tokens against forged requests. Each response sets the cookie of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) csrf: Option<Csrf>,

    /// Fields that could not be read. A policy with such a field is invalid.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) unreadable: Vec<UnreadableField>,
}

impl SecurityPolicySpec {
    /// Whether it sets each protection that another version sets: credentials, authorization, and a defence against CSRF.
    pub(crate) fn has_protections_of(&self, other: &Self) -> bool {
        let is_kept = |is_set: fn(&Self) -> bool| is_set(self) || !is_set(other);
        is_kept(Self::authenticates)
            && is_kept(|spec| spec.authorization.is_some())
            && is_kept(|spec| spec.csrf.is_some())
    }

    /// Whether it demands credentials.
    const fn authenticates(&self) -> bool {
        self.api_key_auth.is_some() || self.basic_auth.is_some() || self.jwt.is_some()
    }
}

impl<'de> Deserialize<'de> for SecurityPolicySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut reader = SpecReader::new(deserializer)?;
        let mut spec = Self {
            target_refs: reader.list("targetRefs"),
            strategy: reader.field("strategy").unwrap_or_default(),
            api_key_auth: reader.field("apiKeyAuth"),
            basic_auth: reader.field("basicAuth"),
            jwt: reader.field("jwt"),
            anonymous: reader.field("anonymous"),
            authorization: reader.field("authorization"),
            client_ip: reader.field("clientIP"),
            cors: reader.field("cors"),
            csrf: reader.field("csrf"),
            unreadable: Vec::new(),
        };
        spec.unreadable = reader.finish();
        Ok(spec)
    }
}

/// API keys of clients.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiKeyAuth {
    /// Secrets with keys: the value of each entry is a key.
    #[schemars(length(min = 1, max = 16))]
    pub(crate) credential_refs: Vec<SecretObjectReference>,

    /// Where requests have their key. Default: the header `apikey`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extract_from: Option<ExtractFrom>,

    /// Removes the key from requests before they go to a backend. Default: true for targets that are Gateways or
    /// ListenerSets, whose routes may be of others, and false for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sanitize: Option<bool>,
}

/// Where requests have a credential: one header, one query parameter, or both.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExtractFrom {
    /// The name of a header.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1))]
    pub(crate) headers: Vec<String>,

    /// The name of a query parameter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1))]
    pub(crate) params: Vec<String>,
}

/// A user with a password.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuth {
    /// A Secret of type `kubernetes.io/basic-auth`, with `username` and `password`.
    pub secret_ref: SecretObjectReference,

    /// Removes the credentials from requests before they go to a backend. Default: true for targets that are Gateways or
    /// ListenerSets, whose routes may be of others, and false for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sanitize: Option<bool>,
}

/// JSON Web Tokens. A token needs the claim `exp`.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.secretRef) != has(self.publicKeyRef)")
        .message("exactly one of secretRef and publicKeyRef has to be set")
)]
pub(crate) struct Jwt {
    /// The claim `iss` that tokens need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub(crate) issuer: Option<String>,

    /// The claim `aud` that tokens need. Without this field, tokens with the claim are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub(crate) audience: Option<String>,

    /// The algorithm of signatures: HS256 or HS512 with a secret; RS256, RS384, RS512, ES256 or ES384 with a public key.
    pub(crate) algorithm: String,

    /// A Secret with the shared secret in the entry `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret_ref: Option<SecretObjectReference>,

    /// A ConfigMap or Secret with the public key in the entry `key`, as PEM. `kind` tells which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) public_key_ref: Option<SecretObjectReference>,

    /// Where requests have their token. Default: the header `Authorization`, with or without `Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extract_from: Option<ExtractFrom>,

    /// Claims that tokens need beside `exp`: `aud`, `iss`, `nbf` and `sub` are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub(crate) required_claims: Vec<String>,

    /// Seconds after `exp` for which a token is still valid.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(range(max = 3600))]
    pub(crate) clock_skew: u32,

    /// Removes the token from requests before they go to a backend. Default: true for targets that are Gateways or
    /// ListenerSets, whose routes may be of others, and false for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sanitize: Option<bool>,
}

/// No authentication.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Anonymous {}

/// The addresses of clients.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.allow) || has(self.deny)").message("one of allow and deny has to be set"))]
pub struct Authorization {
    /// Networks in CIDR notation; `10.0.0.0/8` contains `::ffff:10.0.0.0/104`. Requests of other addresses are answered with
    /// 403. Without this field, all are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub allow: Vec<String>,

    /// Networks in CIDR notation whose requests are answered with 403, although `allow` may have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub deny: Vec<String>,
}

/// The source of client addresses behind trusted proxies.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClientIp {
    /// Networks of proxies, in CIDR notation. Their `X-Forwarded-For` counts, and no other header. These proxies must set
    /// that header, or else their requests are answered with 403. They must keep it in one line, because PingSIX reads the
    /// first line alone.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) trusted_proxies: Vec<String>,
}

/// Requests of scripts from other origins, with the fields of the CORS filter of HTTPRoute.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Cors {
    /// Origins: a scheme, a host and perhaps a port; `*` is any, and `https://*` is any of a scheme.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub(crate) allow_origins: Vec<String>,

    /// The names for which `*` stands in origins such as `https://*.example.com`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) origin_wildcards: OriginWildcards,

    /// Methods; `*` is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 9))]
    pub(crate) allow_methods: Vec<String>,

    /// Headers of requests; `*` is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub(crate) allow_headers: Vec<String>,

    /// Headers of responses that scripts may read; `*` is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub(crate) expose_headers: Vec<String>,

    /// Whether scripts may send cookies and credentials. The field has no effect where any origin is allowed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) allow_credentials: bool,

    /// Seconds for which browsers keep the answer. Default: 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub(crate) max_age: Option<i32>,
}

/// The names for which `*` stands before a domain.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OriginWildcards {
    /// One or more labels, as in the CORS filter of HTTPRoute.
    #[default]
    AnyDepth,
    /// One label.
    OneLabel,
}

/// The filter of Gateway API with the same permissions, except that its wildcards have any depth.
impl From<&Cors> for api::HttpRouteRulesFiltersCors {
    fn from(cors: &Cors) -> Self {
        let listed = |names: &[String]| Some(names.to_vec()).filter(|names| !names.is_empty());
        Self {
            allow_credentials: Some(cors.allow_credentials),
            allow_headers: listed(&cors.allow_headers),
            allow_methods: listed(&cors.allow_methods),
            allow_origins: listed(&cors.allow_origins),
            expose_headers: listed(&cors.expose_headers),
            max_age: cors.max_age,
        }
    }
}

/// Tokens against forged requests.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Csrf {
    /// A Secret with the secret of the tokens in the entry `key`.
    pub(crate) secret_ref: SecretObjectReference,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: Value) -> (SecurityPolicySpec, Vec<String>) {
        let spec: SecurityPolicySpec = serde_json::from_value(spec).unwrap();
        let fields = spec.unreadable.iter().map(|unread| unread.field.clone()).collect();
        (spec, fields)
    }

    fn targets() -> Value {
        json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"}])
    }

    #[test]
    fn every_field_is_read_as_it_is_written() {
        let reference = json!({"name": "secret"});
        let written = json!({
            "targetRefs": targets(),
            "strategy": "Overrides",
            "apiKeyAuth": {"credentialRefs": [reference], "extractFrom": {"headers": ["a"]}, "sanitize": true},
            "basicAuth": {"secretRef": reference},
            "jwt": {"algorithm": "HS256", "issuer": "i", "secretRef": reference, "clockSkew": 3},
            "anonymous": {},
            "authorization": {"allow": ["10.0.0.0/8"]},
            "clientIP": {"trustedProxies": ["10.0.0.0/8"]},
            "cors": {"allowOrigins": ["*"]},
            "csrf": {"secretRef": reference},
        });
        let (spec, unread) = read(written.clone());
        assert_eq!(unread, [""; 0]);
        assert_eq!(serde_json::to_value(&spec).unwrap(), written);
    }

    #[test]
    fn an_unreadable_field_leaves_the_targets_and_the_other_fields() {
        let (spec, unread) = read(json!({
            "targetRefs": [{"kind": 7}, targets()[0]],
            "strategy": "Merge",
            "authorization": {"allow": ["10.0.0.0/8", 4]},
            "cors": {"allowOrigins": ["*"], "allowPrivateNetwork": true},
            "oidc": {"issuer": "i"},
            "csrf": null,
            "basicAuth": "hunter2",
        }));
        assert_eq!(spec.target_refs.len(), 1);
        assert!(spec.cors.is_some());
        assert_eq!(
            unread,
            [
                "targetRefs[0].kind",
                "strategy",
                "basicAuth",
                "authorization.allow[1]",
                "cors.allowPrivateNetwork",
                "oidc"
            ]
        );
        assert!(!format!("{:?}", spec.unreadable).contains("hunter2"));
    }
}
