//! The kinds that are watched: one table.

use pingsix_translate::Kind;
use pingsix_translate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, GrpcRoute, HttpRoute, Ingress,
    IngressClass, ListenerSet, Namespace, ReferenceGrant, Secret, Service, TcpRoute, TlsRoute, UdpRoute,
};
use serde_json::Value;

use super::object::WatchedKind;

/// How a kind comes to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Every cluster has it, or the controller is of no use without it.
    Required,
    /// A custom resource that may not be installed. One that is not there has no objects; it may come later.
    Optional,
    /// Only the objects that others refer to are watched, each by its name.
    Referenced,
}

/// How a kind comes to be watched.
pub const fn presence(kind: Kind) -> Presence {
    match kind {
        Kind::GatewayClass
        | Kind::Gateway
        | Kind::HttpRoute
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Namespace
        | Kind::IngressClass
        | Kind::Ingress => Presence::Required,
        Kind::ListenerSet
        | Kind::GrpcRoute
        | Kind::TlsRoute
        | Kind::TcpRoute
        | Kind::UdpRoute
        | Kind::BackendTlsPolicy
        | Kind::ReferenceGrant => Presence::Optional,
        Kind::Secret | Kind::ConfigMap => Presence::Referenced,
    }
}

/// A kind as the API server names it in what may be asked of it.
#[derive(Clone, Debug)]
pub(crate) struct WatchedResource {
    pub(crate) kind: Kind,
    /// In the plural, for example `httproutes`.
    pub(crate) name: String,
    /// Whether we write its status.
    pub(crate) has_our_status: bool,
}

macro_rules! watched_kinds {
    ($($kind:ident { status: $status:literal, project: $project:expr })+) => {
        /// Every kind of the table.
        pub(crate) fn resources() -> Vec<WatchedResource> {
            vec![$(WatchedResource {
                kind: Kind::$kind,
                name: <$kind as kube::Resource>::plural(&()).into_owned(),
                has_our_status: $status,
            }),+]
        }

        $(impl WatchedKind for $kind {
            const KIND: Kind = Kind::$kind;
            const KEEPS_STATUS: bool = $status;

            fn project(object: &mut Value) {
                let project: fn(&mut Value) = $project;
                project(object);
            }
        })+
    };
}

watched_kinds! {
    GatewayClass { status: true, project: without_labels_and_annotations }
    Gateway { status: true, project: without_labels_and_annotations }
    ListenerSet { status: true, project: without_labels_and_annotations }
    HttpRoute { status: true, project: without_labels_and_annotations }
    GrpcRoute { status: true, project: without_labels_and_annotations }
    TlsRoute { status: true, project: without_labels_and_annotations }
    TcpRoute { status: true, project: without_labels_and_annotations }
    UdpRoute { status: true, project: without_labels_and_annotations }
    BackendTlsPolicy { status: true, project: without_labels_and_annotations }
    ReferenceGrant { status: false, project: without_labels_and_annotations }
    // The annotation says which class is the default.
    IngressClass { status: false, project: without_labels }
    // Annotations name the class, and others are warned of.
    Ingress { status: true, project: without_labels }
    Service { status: false, project: service }
    EndpointSlice { status: false, project: endpoint_slice }
    Secret { status: false, project: without_labels_and_annotations }
    ConfigMap { status: false, project: without_labels_and_annotations }
    // Selectors choose by label.
    Namespace { status: false, project: namespace }
}

fn remove(object: &mut Value, path: &[&str], fields: &[&str]) {
    let holder = path.iter().try_fold(object, |value, field| value.get_mut(*field));
    if let Some(holder) = holder.and_then(Value::as_object_mut) {
        for field in fields {
            holder.remove(*field);
        }
    }
}

/// What a parent or a controller elsewhere keeps in the metadata.
const BOOKKEEPING: &[&str] = &["ownerReferences", "finalizers", "selfLink", "generateName"];

fn without_labels(object: &mut Value) {
    remove(object, &["metadata"], BOOKKEEPING);
    remove(object, &["metadata"], &["labels"]);
}

fn without_labels_and_annotations(object: &mut Value) {
    without_labels(object);
    remove(object, &["metadata"], &["annotations"]);
}

fn service(object: &mut Value) {
    without_labels_and_annotations(object);
    remove(
        object,
        &["spec"],
        &[
            "selector",
            "clusterIPs",
            "sessionAffinityConfig",
            "internalTrafficPolicy",
            "allocateLoadBalancerNodePorts",
            "healthCheckNodePort",
            "loadBalancerSourceRanges",
        ],
    );
}

/// The label names the Service; of the endpoints, addresses and conditions count.
fn endpoint_slice(object: &mut Value) {
    remove(object, &["metadata"], BOOKKEEPING);
    remove(object, &["metadata"], &["annotations", "generation"]);
    if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.retain(|label, _| label == "kubernetes.io/service-name");
    }
    for endpoint in object.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        remove(endpoint, &[], &["targetRef", "nodeName", "zone", "hints", "hostname", "deprecatedTopology"]);
    }
}

fn namespace(object: &mut Value) {
    remove(object, &["metadata"], BOOKKEEPING);
    remove(object, &["metadata"], &["annotations"]);
    remove(object, &[], &["spec"]);
}
