//! The kinds as the controller has them: the presence of a kind in clusters, the status that it gets, and the part of its
//! objects that is kept. One table, beside that of [`Kind`].

use pingsix_translate::snapshot::{self, Identified};
use pingsix_translate::{Kind, for_each_kind};
use serde_json::Value;

/// The condition for a watch of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Every cluster has it, or the controller is of no use without it.
    Required,
    /// A custom resource that may not be installed. One that is not there has no objects; it may come later.
    Optional,
    /// Only the objects that others refer to are watched, each by its name.
    Referenced,
}

/// The part of an object's status that the controller writes. The status of a kind with [`Writes::Nothing`] is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    Nothing,
    /// Conditions or addresses of the object.
    Fields,
    /// Its own entries of this list.
    Entries(&'static str),
}

/// A row of the table.
pub(crate) struct Facts {
    presence: Presence,
    pub(crate) writes: Writes,
    /// Drops the fields that are never read, so that they neither take room nor count as a change.
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
    // The annotation says which class is the default.
    IngressClass { Required, Writes::Nothing, without_labels }
    // Annotations name the class, and others are warned of.
    Ingress { Required, Writes::Fields, without_labels }
    Service { Required, Writes::Nothing, service }
    EndpointSlice { Required, Writes::Nothing, endpoint_slice }
    Secret { Referenced, Writes::Nothing, without_labels_and_annotations }
    ConfigMap { Referenced, Writes::Nothing, without_labels_and_annotations }
    // Selectors choose by label.
    Namespace { Required, Writes::Nothing, namespace }
    HttpRouteFilter { Optional, Writes::Nothing, without_labels_and_annotations }
    PingsixProxy { Optional, Writes::Fields, without_labels_and_annotations }
    BackendTrafficPolicy { Optional, Writes::Entries("ancestors"), without_labels_and_annotations }
}

/// The condition for a watch of a kind.
pub const fn presence(kind: Kind) -> Presence {
    facts(kind).presence
}

/// A kind as the API server names it in what may be asked of it.
#[derive(Clone, Debug)]
pub(crate) struct WatchedResource {
    pub(crate) kind: Kind,
    /// In the plural, for example `httproutes`.
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
        /// Every kind.
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

/// Metadata that an owner or another controller maintains.
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
