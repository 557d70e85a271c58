//! GRPCRoutes: what a call is, which method matches hold for it, and in which order they are tried.
//!
//! A call of a method of a service is a request to `/service/method` (gRPC over HTTP/2). A request to another kind of
//! path is no call; where the specification has nothing to say about it, its first element counts as a service.

use serde::Deserialize;

use super::world::{
    BackendRef, Comparison, Match, Metadata, ParentRef, Route, RouteKindName, RouteSpec, Rule,
};

#[derive(Clone, Debug, Deserialize)]
pub(super) struct GrpcRoute {
    metadata: Metadata,
    spec: GrpcRouteSpec,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GrpcRouteSpec {
    #[serde(default)]
    parent_refs: Vec<ParentRef>,
    #[serde(default)]
    hostnames: Vec<String>,
    rules: Vec<GrpcRule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GrpcRule {
    name: Option<String>,
    #[serde(default)]
    matches: Vec<GrpcMatch>,
    #[serde(default)]
    backend_refs: Vec<BackendRef>,
    #[serde(default)]
    filters: Vec<serde_json::Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct GrpcMatch {
    #[serde(default)]
    method: Call,
    #[serde(default)]
    headers: Vec<Comparison>,
}

/// The requirements of a match for a call; an empty match has none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Call {
    r#type: Option<String>,
    service: Option<String>,
    method: Option<String>,
    /// Everything that begins with this path, in the place of what is unsupported.
    #[serde(skip)]
    closing: Option<&'static str>,
}

impl From<GrpcRoute> for Route {
    fn from(GrpcRoute { metadata, spec }: GrpcRoute) -> Self {
        let rule = |GrpcRule { name, matches, backend_refs, filters }: GrpcRule| {
            // Without matches, there is one that asks for nothing.
            let everything =
                matches.is_empty().then(|| GrpcMatch { method: Call::default(), headers: Vec::new() });
            let matches = matches.into_iter().chain(everything);
            let matches = matches
                .map(|one| Match { call: Some(one.method), headers: one.headers, ..Match::default() })
                .collect();
            Rule { name, matches, backend_refs, filters, ..Rule::default() }
        };
        let GrpcRouteSpec { parent_refs, hostnames, rules } = spec;
        let rules = rules.into_iter().map(rule).collect();
        Self { kind: RouteKindName::Grpc, metadata, spec: RouteSpec { parent_refs, hostnames, rules } }
    }
}

impl Call {
    /// The calls that are closed if the rule of an unsupported match is protected: those with the literal prefix of the
    /// regular expression that the generator knows, or all.
    pub(super) fn closing(&self) -> Option<Self> {
        let prefix = if self.service.is_some() { "/fo" } else { "/" };
        self.is_unsupported().then(|| Self { closing: Some(prefix), ..Self::default() })
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Whether PingSIX cannot do what is asked: a method of any service, or a regular expression.
    pub(super) fn is_unsupported(&self) -> bool {
        self.r#type.as_deref() == Some("RegularExpression")
            || (self.service.is_none() && self.method.is_some())
    }

    /// Whether the match takes a request. An unsupported match takes none.
    pub(super) fn holds(&self, path: &str) -> bool {
        if let Some(closing) = self.closing {
            return path.starts_with(closing);
        }
        let Some(path) = path.strip_prefix('/') else { return false };
        let (service, method) = path.split_once('/').unwrap_or((path, ""));
        !self.is_unsupported()
            && self.service.as_ref().is_none_or(|wanted| wanted == service)
            && self.method.as_ref().is_none_or(|wanted| wanted == method)
    }

    /// A path that the match is about.
    pub(super) fn path(&self) -> String {
        let part = |name: &Option<String>| name.clone().map(|name| format!("/{name}")).unwrap_or_default();
        match (&self.service, &self.method) {
            (None, None) => "/".to_owned(),
            (service, method) => part(service) + &part(method),
        }
    }

    /// The order among calls: characters of the service, then of the method.
    pub(super) fn specificity(&self) -> (usize, usize) {
        if let Some(closing) = self.closing {
            return (closing.len().saturating_sub(2), 0);
        }
        let length = |name: &Option<String>| name.as_deref().unwrap_or_default().chars().count();
        (length(&self.service), length(&self.method))
    }

    /// The order among calls and paths, about which the specification says nothing: that of the paths of the calls,
    /// as exactness and characters.
    pub(super) fn as_path(&self) -> (bool, usize) {
        if let Some(closing) = self.closing {
            // It comes after the prefix of elements with its text.
            return (false, closing.len() - usize::from(closing != "/"));
        }
        let (service, method) = self.specificity();
        match (&self.service, &self.method) {
            (Some(_), Some(_)) => (true, service + method + 2),
            _ => (false, service + 1),
        }
    }
}
