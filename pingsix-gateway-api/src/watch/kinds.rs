//! The controller's table of kinds, beside the table of [`Kind`]: the presence of a kind in clusters, the written part
//! of its status, and the stored part of its objects.

use pingsix_translate::snapshot::{self, Identified};
use pingsix_translate::{Kind, for_each_kind};
use serde_json::Value;

/// The condition for a watch of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The controller needs the kind.
    Required,
    /// A custom resource that may be installed later or never. A missing kind has no objects.
    Optional,
    /// Referenced objects are watched, each by its name.
    Referenced,
}

/// The part of an object's status that the controller writes. The status of a kind with [`Writes::Nothing`] is not
/// stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    Nothing,
    /// Conditions or addresses of the object.
    Fields,
    /// The controller's own entries of this list.
    Entries(&'static str),
}

/// A row of the table.
pub(crate) struct Facts {
    presence: Presence,
    pub(crate) writes: Writes,
    /// Drops unused fields, which would take memory and count as changes.
    pub(super) project: fn(&mut Value),
}

macro_rules! watched_kinds {
    ($($kind:ident { $presence:ident, $writes:expr, $project:ident })+) => {
        /// The row of a kind.
        pub(crate) const fn facts(kind: Kind) -> Facts {
            match kind {
                $(Kind::$kind => Facts { presence: Presence::$presence, writes: $writes, project: $project },)+
            }
        }
    };
}

watched_kinds! {
    GatewayClass { Required, Writes::Fields, without_labels_and_annotations }
    Gateway { Required, Writes::Fields, without_labels_and_annotations }
    ListenerSet { Optional, Writes::Fields, without_labels_and_annotations }
    HttpRoute { Required, Writes::Entries("parents"), without_labels_and_annotations }
    GrpcRoute { Optional, Writes::Entries("parents"), without_labels_and_annotations }
    TlsRoute { Optional, Writes::Entries("parents"), without_labels_and_annotations }
    TcpRoute { Optional, Writes::Entries("parents"), without_labels_and_annotations }
    UdpRoute { Optional, Writes::Entries("parents"), without_labels_and_annotations }
    BackendTlsPolicy { Optional, Writes::Entries("ancestors"), without_labels_and_annotations }
    SecurityPolicy { Optional, Writes::Entries("ancestors"), without_labels_and_annotations }
    TrafficPolicy { Optional, Writes::Entries("ancestors"), without_labels_and_annotations }
    ReferenceGrant { Optional, Writes::Nothing, without_labels_and_annotations }
    // An annotation marks the default class.
    IngressClass { Required, Writes::Nothing, without_labels }
    // An annotation may name the class, and foreign annotations cause warnings.
    Ingress { Required, Writes::Fields, without_labels }
    Service { Required, Writes::Nothing, service }
    EndpointSlice { Required, Writes::Nothing, endpoint_slice }
    Secret { Referenced, Writes::Nothing, without_labels_and_annotations }
    ConfigMap { Referenced, Writes::Nothing, without_labels_and_annotations }
    // Namespace selectors match labels.
    Namespace { Required, Writes::Nothing, namespace }
    HttpRouteFilter { Optional, Writes::Nothing, without_labels_and_annotations }
    PingsixProxy { Optional, Writes::Fields, without_labels_and_annotations }
    BackendTrafficPolicy { Optional, Writes::Entries("ancestors"), without_labels_and_annotations }
}

/// The condition for a watch of a kind.
pub const fn presence(kind: Kind) -> Presence {
    facts(kind).presence
}

/// A kind in the terms of RBAC rules.
#[derive(Clone, Debug)]
pub(crate) struct WatchedResource {
    pub(crate) kind: Kind,
    /// The plural, for example `httproutes`.
    pub(crate) name: String,
    /// Whether the controller writes its status.
    pub(crate) has_our_status: bool,
}

impl WatchedResource {
    fn of<K: Identified>() -> Self {
        let name = <K::Wire as kube::Resource>::plural(&()).into_owned();
        Self { kind: K::KIND, name, has_our_status: facts(K::KIND).writes != Writes::Nothing }
    }
}

macro_rules! resources {
    ($($kind:ident in $field:ident $facts:tt)+) => {
        /// The resources of all kinds.
        pub(crate) fn resources() -> Vec<WatchedResource> {
            vec![$(WatchedResource::of::<snapshot::$kind>(),)+]
        }
    };
}

for_each_kind! { resources }

fn remove(object: &mut Value, path: &[&str], fields: &[&str]) {
    let holder = path.iter().try_fold(object, |value, field| value.get_mut(*field));
    if let Some(holder) = holder.and_then(Value::as_object_mut) {
        for field in fields {
            holder.remove(*field);
        }
    }
}

/// Unused fields of the metadata.
const UNUSED_METADATA: &[&str] = &["ownerReferences", "finalizers", "selfLink", "generateName"];

fn without_labels(object: &mut Value) {
    remove(object, &["metadata"], UNUSED_METADATA);
    remove(object, &["metadata"], &["labels"]);
}

fn without_labels_and_annotations(object: &mut Value) {
    without_labels(object);
    remove(object, &["metadata"], &["annotations"]);
}

/// Drops all other fields of an object.
fn keep_fields(object: Option<&mut Value>, fields: &[&str]) {
    if let Some(object) = object.and_then(Value::as_object_mut) {
        object.retain(|field, _| fields.contains(&field.as_str()));
    }
}

/// Drops all other fields of each element of a list.
fn keep_in_each(list: Option<&mut Value>, fields: &[&str]) {
    for element in list.and_then(Value::as_array_mut).into_iter().flatten() {
        keep_fields(Some(element), fields);
    }
}

/// Keeps the type, the cluster IP and the ports.
fn service(object: &mut Value) {
    without_labels_and_annotations(object);
    keep_fields(object.get_mut("spec"), &["type", "clusterIP", "ports"]);
    keep_in_each(object.pointer_mut("/spec/ports"), &["name", "port", "protocol", "appProtocol"]);
}

/// Keeps the label with the name of the Service, and addresses, conditions and ports. Events never concern
/// EndpointSlices, so their uid is dropped, too.
fn endpoint_slice(object: &mut Value) {
    keep_fields(object.get_mut("metadata"), &["name", "namespace", "labels"]);
    keep_fields(object.pointer_mut("/metadata/labels"), &["kubernetes.io/service-name"]);
    keep_in_each(object.get_mut("endpoints"), &["addresses", "conditions"]);
    keep_in_each(object.get_mut("ports"), &["name", "port"]);
}

fn namespace(object: &mut Value) {
    remove(object, &["metadata"], UNUSED_METADATA);
    remove(object, &["metadata"], &["annotations"]);
    remove(object, &[], &["spec"]);
}
