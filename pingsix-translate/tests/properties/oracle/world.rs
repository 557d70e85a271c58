//! The objects as the oracle reads them: straight from manifests, and only the fields it needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::attach::ListenerProblem;
use super::grpc::{Call, GrpcRoute};
use super::security::Policy;

/// Namespace and name.
pub(crate) type Name = (String, String);

/// Everything the oracle knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    /// Those that name the Gateway, whether it allows them or not, in order of precedence.
    pub(crate) listener_sets: Vec<ListenerSet>,
    /// The Gateway's listeners, then those of the ListenerSets it allows.
    pub(crate) listeners: Vec<Listener>,
    /// The problems of each listener that keep it from serving.
    pub(crate) problems: Vec<BTreeSet<ListenerProblem>>,
    pub(crate) routes: Vec<Route>,
    pub(crate) services: BTreeMap<Name, Service>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) namespaces: BTreeMap<String, BTreeMap<String, String>>,
    pub(crate) secrets: BTreeSet<Name>,
    pub(crate) security_policies: Vec<Policy>,
    pub(crate) traffic_policies: Vec<Policy>,
    pub(crate) backend_traffic_policies: Vec<Policy>,
    /// Secrets as written.
    pub(crate) credentials: BTreeMap<Name, Value>,
}

impl World {
    /// Reads manifests with exactly one Gateway among them.
    pub(crate) fn read(objects: &[Value]) -> Self {
        Self::around(None, objects)
    }

    /// Reads manifests as they concern the Gateway of this name.
    pub(crate) fn around(gateway: Option<&str>, objects: &[Value]) -> Self {
        let mut world = Self::default();
        for object in objects {
            match object["kind"].as_str().unwrap() {
                "Gateway" if gateway.is_some_and(|name| object["metadata"]["name"] != name) => {}
                "Gateway" => world.gateway = read(object),
                "ListenerSet" => world.listener_sets.push(read(object)),
                "HTTPRoute" => world.routes.push(read(object)),
                "GRPCRoute" => world.routes.push(read::<GrpcRoute>(object).into()),
                "EndpointSlice" => world.slices.push(read(object)),
                "ReferenceGrant" => world.grants.push(read(object)),
                "SecurityPolicy" => world.security_policies.push(read(object)),
                "TrafficPolicy" => world.traffic_policies.push(read(object)),
                "BackendTrafficPolicy" => world.backend_traffic_policies.push(read(object)),
                "Service" => {
                    let service: Service = read(object);
                    world.services.insert(service.metadata.key(), service);
                }
                "Namespace" => {
                    let Labelled { metadata } = read(object);
                    world.namespaces.insert(metadata.name, metadata.labels);
                }
                "Secret" => {
                    let Labelled { metadata } = read(object);
                    world.credentials.insert(metadata.key(), object.clone());
                    world.secrets.insert(metadata.key());
                }
                other => panic!("the oracle does not read kind {other}"),
            }
        }
        world.gather_listeners();
        world.judge_listeners();
        world
    }
}

fn read<T: DeserializeOwned>(object: &Value) -> T {
    T::deserialize(object).unwrap()
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) generation: i64,
    pub(crate) creation_timestamp: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Metadata {
    pub(crate) fn key(&self) -> Name {
        (self.namespace.clone(), self.name.clone())
    }

    /// Oldest first, one without a timestamp last; then as `namespace/name` is written.
    pub(crate) fn age(&self) -> (&str, String) {
        (self.creation_timestamp.as_deref().unwrap_or("~"), format!("{}/{}", self.namespace, self.name))
    }
}

#[derive(Deserialize)]
struct Labelled {
    metadata: Metadata,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Gateway {
    pub(crate) metadata: Metadata,
    pub(crate) spec: GatewaySpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GatewaySpec {
    pub(crate) listeners: Vec<Listener>,
    #[serde(default)]
    pub(crate) allowed_listeners: AllowedListeners,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AllowedListeners {
    pub(crate) namespaces: FromNamespaces,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ListenerSet {
    pub(crate) metadata: Metadata,
    pub(crate) spec: ListenerSetSpec,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListenerSetSpec {
    pub(crate) parent_ref: ParentRef,
    pub(crate) listeners: Vec<Listener>,
}

/// In whose spec a listener stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    #[default]
    Gateway,
    /// The ListenerSet at this place of [`World::listener_sets`].
    Set(usize),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listener {
    #[serde(skip)]
    pub(crate) owner: Owner,
    pub(crate) name: String,
    pub(crate) hostname: Option<String>,
    pub(crate) port: u16,
    pub(crate) protocol: String,
    #[serde(default)]
    pub(crate) tls: Tls,
    #[serde(default)]
    pub(crate) allowed_routes: AllowedRoutes,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Tls {
    pub(crate) certificate_refs: Vec<SecretRef>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SecretRef {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AllowedRoutes {
    pub(crate) kinds: Vec<RouteKind>,
    pub(crate) namespaces: FromNamespaces,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RouteKind {
    pub(crate) group: Option<String>,
    pub(crate) kind: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FromNamespaces {
    /// `Same` when absent for routes, `None` for ListenerSets.
    pub(crate) from: Option<String>,
    pub(crate) selector: Selector,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Selector {
    pub(crate) match_labels: BTreeMap<String, String>,
    pub(crate) match_expressions: Vec<Requirement>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Requirement {
    pub(crate) key: String,
    pub(crate) operator: String,
    #[serde(default)]
    pub(crate) values: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Route {
    #[serde(skip)]
    pub(crate) kind: RouteKindName,
    pub(crate) metadata: Metadata,
    pub(crate) spec: RouteSpec,
}

/// The kind of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RouteKindName {
    #[default]
    Http,
    Grpc,
}

impl RouteKindName {
    /// The kind's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "HTTPRoute",
            Self::Grpc => "GRPCRoute",
        }
    }

    /// The status for a request that cannot be served: 500, or the one that gRPC clients read as UNAVAILABLE.
    pub(crate) const fn failure(self) -> u16 {
        match self {
            Self::Http => 500,
            Self::Grpc => 503,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RouteSpec {
    #[serde(default)]
    pub(crate) parent_refs: Vec<ParentRef>,
    #[serde(default)]
    pub(crate) hostnames: Vec<String>,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParentRef {
    pub(crate) group: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) section_name: Option<String>,
    pub(crate) port: Option<u16>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    pub(crate) name: Option<String>,
    pub(crate) matches: Vec<Match>,
    pub(crate) backend_refs: Vec<BackendRef>,
    pub(crate) filters: Vec<Value>,
    pub(crate) timeouts: Value,
    pub(crate) retry: Value,
    pub(crate) session_persistence: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Match {
    pub(crate) path: Comparison,
    pub(crate) method: Option<String>,
    pub(crate) headers: Vec<Comparison>,
    pub(crate) query_params: Vec<Comparison>,
    /// Instead of path and method, in a match of a GRPCRoute.
    #[serde(skip)]
    pub(crate) call: Option<Call>,
}

impl Match {
    /// A path that the match is about.
    pub(crate) fn path(&self) -> String {
        match &self.call {
            Some(call) => call.path(),
            None => self.path.value.clone().unwrap_or_else(|| "/".to_owned()),
        }
    }
}

/// A path, header or query match; a path has no name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Comparison {
    pub(crate) name: String,
    pub(crate) r#type: Option<String>,
    pub(crate) value: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct BackendRef {
    pub(crate) group: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) port: Option<u16>,
    pub(crate) weight: Option<u64>,
    #[serde(default)]
    pub(crate) filters: Vec<Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Service {
    pub(crate) metadata: Metadata,
    pub(crate) spec: ServiceSpec,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ServiceSpec {
    pub(crate) r#type: Option<String>,
    #[serde(default)]
    pub(crate) ports: Vec<ServicePort>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServicePort {
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) port: u16,
    pub(crate) app_protocol: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Slice {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) endpoints: Vec<Endpoint>,
    #[serde(default)]
    pub(crate) ports: Vec<SlicePort>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) addresses: Vec<String>,
    #[serde(default)]
    pub(crate) conditions: EndpointConditions,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EndpointConditions {
    pub(crate) ready: Option<bool>,
    pub(crate) serving: Option<bool>,
    pub(crate) terminating: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SlicePort {
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Grant {
    pub(crate) metadata: Metadata,
    pub(crate) spec: GrantSpec,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GrantSpec {
    pub(crate) from: Vec<GrantFrom>,
    pub(crate) to: Vec<GrantTo>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GrantFrom {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GrantTo {
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
}
