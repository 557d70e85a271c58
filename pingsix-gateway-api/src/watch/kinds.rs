//! The kinds that are watched: one table.

use pingsix_translate::Kind;
use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, GrpcRoute, HttpRoute, Ingress,
    IngressClass, ListenerSet, Namespace, ReferenceGrant, Secret, Service, TcpRoute, TlsRoute, UdpRoute,
    wire,
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
        | Kind::ReferenceGrant
        | Kind::PingsixProxy => Presence::Optional,
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
    ($($kind:ident of $wire:ty { status: $status:literal, project: $project:expr })+) => {
        /// Every kind of the table.
        pub(crate) fn resources() -> Vec<WatchedResource> {
            vec![$(WatchedResource {
                kind: Kind::$kind,
                name: <<$kind as WatchedKind>::Wire as kube::Resource>::plural(&()).into_owned(),
                has_our_status: $status,
            }),+]
        }

        $(impl WatchedKind for $kind {
            type Wire = $wire;

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
    GatewayClass of GatewayClass { status: true, project: without_labels_and_annotations }
    Gateway of Gateway { status: true, project: without_labels_and_annotations }
    ListenerSet of ListenerSet { status: true, project: without_labels_and_annotations }
    HttpRoute of wire::HttpRoute { status: true, project: without_labels_and_annotations }
    GrpcRoute of wire::GrpcRoute { status: true, project: without_labels_and_annotations }
    TlsRoute of wire::TlsRoute { status: true, project: without_labels_and_annotations }
    TcpRoute of wire::TcpRoute { status: true, project: without_labels_and_annotations }
    UdpRoute of wire::UdpRoute { status: true, project: without_labels_and_annotations }
    BackendTlsPolicy of BackendTlsPolicy { status: true, project: without_labels_and_annotations }
    ReferenceGrant of ReferenceGrant { status: false, project: without_labels_and_annotations }
    // The annotation says which class is the default.
    IngressClass of IngressClass { status: false, project: without_labels }
    // Annotations name the class, and others are warned of.
    Ingress of Ingress { status: true, project: without_labels }
    Service of wire::Service { status: false, project: service }
    EndpointSlice of wire::EndpointSlice { status: false, project: endpoint_slice }
    Secret of Secret { status: false, project: without_labels_and_annotations }
    ConfigMap of ConfigMap { status: false, project: without_labels_and_annotations }
    // Selectors choose by label.
    Namespace of Namespace { status: false, project: namespace }
    PingsixProxy of PingsixProxy { status: true, project: without_labels_and_annotations }
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

/// Keeps these fields of an object, and nothing else.
fn keep(object: Option<&mut Value>, fields: &[&str]) {
    if let Some(object) = object.and_then(Value::as_object_mut) {
        object.retain(|field, _| fields.contains(&field.as_str()));
    }
}

/// Of each element of a list.
fn keep_of_each(list: Option<&mut Value>, fields: &[&str]) {
    for element in list.and_then(Value::as_array_mut).into_iter().flatten() {
        keep(Some(element), fields);
    }
}

/// Its ports, and whether there is anything behind them.
fn service(object: &mut Value) {
    without_labels_and_annotations(object);
    keep(object.get_mut("spec"), &["type", "ports"]);
    keep_of_each(object.pointer_mut("/spec/ports"), &["name", "port", "protocol", "appProtocol"]);
}

/// The label names the Service; of the endpoints, addresses and conditions count. There are as many slices as routes, and
/// nobody is told anything about one.
fn endpoint_slice(object: &mut Value) {
    keep(object.get_mut("metadata"), &["name", "namespace", "labels"]);
    keep(object.pointer_mut("/metadata/labels"), &["kubernetes.io/service-name"]);
    keep_of_each(object.get_mut("endpoints"), &["addresses", "conditions"]);
    keep_of_each(object.get_mut("ports"), &["name", "port"]);
}

fn namespace(object: &mut Value) {
    remove(object, &["metadata"], BOOKKEEPING);
    remove(object, &["metadata"], &["annotations"]);
    remove(object, &[], &["spec"]);
}
