//! `HTTPRouteFilter`: filters of HTTPRoutes that Gateway API lacks.

use garde::Validate;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `spec` of an `HTTPRouteFilter`.
#[derive(
    CustomResource, KubeSchema, Validate, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq,
)]
#[kube(
    group = "pingsix.io",
    version = "v1alpha1",
    kind = "HTTPRouteFilter",
    root = "HttpRouteFilter",
    plural = "httproutefilters",
    shortname = "hrf",
    category = "pingsix",
    namespaced,
    derive = "PartialEq",
    doc = "A filter of rules of HTTPRoutes in the same namespace, referenced by `extensionRef`. A rule whose filter is \
           missing or invalid answers 500, and the conditions of its HTTPRoute say why.",
    printcolumn(
        name = "Pattern",
        type_ = "string",
        json_path = ".spec.urlRewrite.path.pattern",
        description = "The regular expression of a path rewrite."
    ),
    printcolumn(
        name = "Status",
        type_ = "integer",
        json_path = ".spec.directResponse.statusCode",
        description = "The status of a direct response."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.urlRewrite) != has(self.directResponse)")
        .message("exactly one of urlRewrite and directResponse has to be set")
)]
pub struct HttpRouteFilterSpec {
    /// Changes the URL of requests on the way to a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) url_rewrite: Option<FilterUrlRewrite>,

    /// Answers requests without a backend. The rule needs no `backendRefs`, and can have no other filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub(crate) direct_response: Option<FilterDirectResponse>,
}

/// Changes to the URL of a request.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterUrlRewrite {
    /// The change of the path.
    #[garde(dive)]
    pub(crate) path: FilterPath,
}

/// A change of the path of a request.
#[derive(JsonSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct FilterPath {
    /// The type of the change.
    #[serde(rename = "type")]
    #[garde(skip)]
    pub(crate) kind: FilterPathType,

    /// A regular expression that matches whole paths, from `^` to `$`, in the syntax of the Rust crate `regex`. Paths
    /// come without query and as the client has encoded them. A path without a match stays as it is.
    #[garde(length(bytes, min = 1, max = 1024))]
    #[schemars(length(min = 1, max = 1024))]
    pub(crate) pattern: String,

    /// The new path. `$1` to `$99` are the groups of the pattern, `%24` is a dollar sign. At most 9 references.
    #[garde(length(bytes, min = 1, max = 1024), prefix("/"))]
    #[schemars(length(min = 1, max = 1024), pattern("^/"))]
    pub(crate) substitution: String,
}

/// The type of a change of a path.
#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FilterPathType {
    /// A regular expression with a substitution.
    #[default]
    ReplaceRegexMatch,
}

/// An answer without a backend.
#[derive(KubeSchema, Validate, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.body) || size(self.body) == 0 || !(self.statusCode in [204, 205, 304])")
        .message("responses with status 204, 205 and 304 have no body")
)]
pub(crate) struct FilterDirectResponse {
    /// The status.
    #[garde(range(min = 200, max = 599))]
    #[schemars(range(min = 200, max = 599))]
    pub(crate) status_code: u16,

    /// The body, with content type `text/plain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(length(bytes, max = 4096))]
    #[schemars(length(max = 4096))]
    pub(crate) body: Option<String>,
}
