//! Snapshots, part by part: what is different between two, and how one takes over what another has.
//!
//! A **part** is an object, or all EndpointSlices of a Service, which go by [`Kind::EndpointSlice`] and the name of the
//! Service.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use kube::Resource;
use kube::core::ObjectMeta;
use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, GrpcRoute, HttpRoute, Ingress,
    IngressClass, IngressSnapshot, ListenerSet, Namespace, ReferenceGrant, Referents, Secret, Service,
    Snapshot, TcpRoute, TlsRoute, UdpRoute,
};
use pingsix_translate::{Change, Kind, ObjectKey, ObjectName, SharedMap};
use serde::Serialize;
use serde_json::Value;

use crate::digest::short_digest;
use crate::world::OwnerSnapshot;

/// What can be compared with another version of itself.
trait Part: Clone {
    /// Whether both say the same. One of them may have been read anew.
    fn says_the_same(&self, other: &Self) -> bool;

    /// What it says, as a text that is the same for all that say the same, whoever has read it. It may be secret.
    fn text(&self) -> String;
}

/// Kinds held in the generated type, of which some metadata say nothing.
macro_rules! generated {
    ($($kind:ident)+) => {$(
        impl Part for Arc<$kind> {
            fn says_the_same(&self, other: &Self) -> bool {
                Self::ptr_eq(self, other) || say_the_same(&**self, &**other)
            }

            fn text(&self) -> String {
                text_of(&**self)
            }
        }
    )+};
}

generated! {
    GatewayClass Gateway ListenerSet BackendTlsPolicy ReferenceGrant IngressClass Ingress Secret ConfigMap Namespace
    PingsixProxy
}

fn say_the_same<K: Resource + Serialize>(one: &K, other: &K) -> bool {
    essence(one.meta()) == essence(other.meta())
        && (has_generation(one.meta()) || without_metadata(one) == without_metadata(other))
}

fn text_of<K: Resource + Serialize>(object: &K) -> String {
    let rest = if has_generation(object.meta()) { Value::Null } else { without_metadata(object) };
    format!("{:?} {rest}", essence(object.meta()))
}

/// What metadata say that matters.
fn essence(metadata: &ObjectMeta) -> impl PartialEq + Debug + use<> {
    let ObjectMeta { uid, generation, labels, annotations, .. } = metadata.clone();
    (uid, generation, labels, annotations)
}

/// Whether the rest of the object is told by its generation.
fn has_generation(metadata: &ObjectMeta) -> bool {
    metadata.generation.is_some_and(|generation| generation > 0)
}

fn without_metadata(object: &impl Serialize) -> Value {
    let mut object = serde_json::to_value(object).unwrap_or_default();
    object.as_object_mut().map(|object| object.remove("metadata"));
    object
}

/// Kinds of which nothing is kept but what translation reads.
macro_rules! kept {
    ($($kind:ident)+) => {$(
        impl Part for Arc<$kind> {
            fn says_the_same(&self, other: &Self) -> bool {
                Self::ptr_eq(self, other) || self == other
            }

            fn text(&self) -> String {
                format!("{self:?}")
            }
        }
    )+};
}

kept! { HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute Service EndpointSlice }

impl Part for Vec<Arc<EndpointSlice>> {
    fn says_the_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.says_the_same(other))
    }

    fn text(&self) -> String {
        self.iter().map(Part::text).collect::<Vec<_>>().join(" ")
    }
}

/// What of a snapshot is different from another one of the same owner.
pub(super) fn differences(now: &OwnerSnapshot, before: &OwnerSnapshot) -> BTreeSet<ObjectKey> {
    let mut parts = BTreeSet::new();
    match (now, before) {
        (OwnerSnapshot::Gateway(now), OwnerSnapshot::Gateway(before)) => {
            if !now.gateway.says_the_same(&before.gateway) {
                parts.insert(key_of_gateway(now));
            }
            let is_same_class = match (&now.class, &before.class) {
                (Some(now), Some(before)) => now.says_the_same(before),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !is_same_class {
                parts.insert(key_of_gateway_class(now));
            }
            add(&mut parts, Kind::ListenerSet, &now.listener_sets, &before.listener_sets);
            add(&mut parts, Kind::HttpRoute, &now.http_routes, &before.http_routes);
            add(&mut parts, Kind::GrpcRoute, &now.grpc_routes, &before.grpc_routes);
            add(&mut parts, Kind::TlsRoute, &now.tls_routes, &before.tls_routes);
            add(&mut parts, Kind::TcpRoute, &now.tcp_routes, &before.tcp_routes);
            add(&mut parts, Kind::UdpRoute, &now.udp_routes, &before.udp_routes);
            add(&mut parts, Kind::BackendTlsPolicy, &now.backend_tls_policies, &before.backend_tls_policies);
            add_referents(&mut parts, &now.referents, &before.referents);
        }
        (OwnerSnapshot::Ingress(now), OwnerSnapshot::Ingress(before)) => {
            if !now.class.says_the_same(&before.class) || now.default_classes != before.default_classes {
                parts.insert(key_of_class(now));
            }
            add(&mut parts, Kind::Ingress, &now.ingresses, &before.ingresses);
            add_referents(&mut parts, &now.referents, &before.referents);
        }
        (OwnerSnapshot::Gateway(_), OwnerSnapshot::Ingress(_))
        | (OwnerSnapshot::Ingress(_), OwnerSnapshot::Gateway(_)) => {}
    }
    parts
}

fn add_referents(parts: &mut BTreeSet<ObjectKey>, now: &Referents, before: &Referents) {
    add(parts, Kind::Service, &now.services, &before.services);
    add(parts, Kind::EndpointSlice, &now.endpoint_slices, &before.endpoint_slices);
    add(parts, Kind::ReferenceGrant, &now.reference_grants, &before.reference_grants);
    add(parts, Kind::Secret, &now.secrets, &before.secrets);
    add(parts, Kind::ConfigMap, &now.config_maps, &before.config_maps);
    add(parts, Kind::PingsixProxy, &now.proxies, &before.proxies);
    let changes = now.namespaces.changes(&before.namespaces).into_iter().filter(is_difference);
    parts.extend(changes.map(|change| namespace(name_of(&change))));
}

fn add<V: Part>(
    parts: &mut BTreeSet<ObjectKey>,
    kind: Kind,
    now: &SharedMap<ObjectName, V>,
    before: &SharedMap<ObjectName, V>,
) {
    let changes = now.changes(before).into_iter().filter(is_difference);
    parts.extend(changes.map(|change| ObjectKey { kind, name: name_of(&change).clone() }));
}

fn is_difference<N, V: Part>(change: &Change<'_, N, V>) -> bool {
    match change {
        Change::Replaced(_, before, now) => !now.says_the_same(before),
        Change::Added(..) | Change::Removed(..) => true,
    }
}

const fn name_of<'m, N, V>(change: &Change<'m, N, V>) -> &'m N {
    match change {
        Change::Replaced(name, ..) | Change::Added(name, _) | Change::Removed(name, _) => name,
    }
}

fn key_of_gateway(snapshot: &Snapshot) -> ObjectKey {
    let metadata = &snapshot.gateway.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    ObjectKey::new(Kind::Gateway, text(&metadata.namespace), text(&metadata.name))
}

fn key_of_gateway_class(snapshot: &Snapshot) -> ObjectKey {
    ObjectKey::new(Kind::GatewayClass, "", snapshot.gateway.spec.gateway_class_name.as_str())
}

fn key_of_class(snapshot: &IngressSnapshot) -> ObjectKey {
    ObjectKey::new(Kind::IngressClass, "", snapshot.class.metadata.name.clone().unwrap_or_default())
}

fn namespace(name: &Arc<str>) -> ObjectKey {
    ObjectKey::new(Kind::Namespace, "", name.clone())
}

/// Makes these parts what they are in another snapshot of the same owner.
pub(crate) fn put<'k>(
    into: &mut OwnerSnapshot,
    from: &OwnerSnapshot,
    parts: impl IntoIterator<Item = &'k ObjectKey>,
) {
    for ObjectKey { kind, name } in parts {
        match (&mut *into, from) {
            (OwnerSnapshot::Gateway(into), OwnerSnapshot::Gateway(from)) => match kind {
                Kind::Gateway => into.gateway = from.gateway.clone(),
                Kind::ListenerSet => copy(&mut into.listener_sets, &from.listener_sets, name),
                Kind::HttpRoute => copy(&mut into.http_routes, &from.http_routes, name),
                Kind::GrpcRoute => copy(&mut into.grpc_routes, &from.grpc_routes, name),
                Kind::TlsRoute => copy(&mut into.tls_routes, &from.tls_routes, name),
                Kind::TcpRoute => copy(&mut into.tcp_routes, &from.tcp_routes, name),
                Kind::UdpRoute => copy(&mut into.udp_routes, &from.udp_routes, name),
                Kind::BackendTlsPolicy => {
                    copy(&mut into.backend_tls_policies, &from.backend_tls_policies, name);
                }
                Kind::GatewayClass => into.class.clone_from(&from.class),
                Kind::ReferenceGrant
                | Kind::IngressClass
                | Kind::Ingress
                | Kind::Service
                | Kind::EndpointSlice
                | Kind::Secret
                | Kind::ConfigMap
                | Kind::Namespace
                | Kind::PingsixProxy => put_referent(&mut into.referents, &from.referents, *kind, name),
            },
            (OwnerSnapshot::Ingress(into), OwnerSnapshot::Ingress(from)) => {
                if *kind == Kind::IngressClass {
                    into.class = from.class.clone();
                    into.default_classes.clone_from(&from.default_classes);
                } else if *kind == Kind::Ingress {
                    copy(&mut into.ingresses, &from.ingresses, name);
                } else {
                    put_referent(&mut into.referents, &from.referents, *kind, name);
                }
            }
            // They are of one owner.
            (OwnerSnapshot::Gateway(_), OwnerSnapshot::Ingress(_))
            | (OwnerSnapshot::Ingress(_), OwnerSnapshot::Gateway(_)) => {}
        }
    }
}

fn put_referent(into: &mut Referents, from: &Referents, kind: Kind, name: &ObjectName) {
    match kind {
        Kind::Service => copy(&mut into.services, &from.services, name),
        Kind::EndpointSlice => copy(&mut into.endpoint_slices, &from.endpoint_slices, name),
        Kind::ReferenceGrant => copy(&mut into.reference_grants, &from.reference_grants, name),
        Kind::Secret => copy(&mut into.secrets, &from.secrets, name),
        Kind::ConfigMap => copy(&mut into.config_maps, &from.config_maps, name),
        Kind::Namespace => copy(&mut into.namespaces, &from.namespaces, &Arc::from(&*name.name)),
        Kind::PingsixProxy => copy(&mut into.proxies, &from.proxies, name),
        Kind::GatewayClass
        | Kind::Gateway
        | Kind::ListenerSet
        | Kind::HttpRoute
        | Kind::GrpcRoute
        | Kind::TlsRoute
        | Kind::TcpRoute
        | Kind::UdpRoute
        | Kind::BackendTlsPolicy
        | Kind::IngressClass
        | Kind::Ingress => {}
    }
}

fn copy<N: Ord + Clone, V: Clone>(into: &mut SharedMap<N, V>, from: &SharedMap<N, V>, name: &N) {
    match from.get(name) {
        Some(object) => into.insert(name.clone(), object.clone()),
        None => into.remove(name),
    };
}

/// What stands for these parts as they are, wherever they were read.
pub(super) fn version(of: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>) -> String {
    let texts = parts.iter().map(|part| format!("{part} {}", text(of, part).unwrap_or_default()));
    short_digest(&texts.collect::<Vec<_>>().join("\n"))
}

/// Whether a part is there.
pub(super) fn has(of: &OwnerSnapshot, part: &ObjectKey) -> bool {
    text(of, part).is_some()
}

/// What a part says; `None` when it is not there.
fn text(of: &OwnerSnapshot, ObjectKey { kind, name }: &ObjectKey) -> Option<String> {
    fn at<N: Ord, V: Part>(map: &SharedMap<N, V>, name: &N) -> Option<String> {
        map.get(name).map(Part::text)
    }
    let referents = match of {
        OwnerSnapshot::Gateway(of) => &of.referents,
        OwnerSnapshot::Ingress(of) => &of.referents,
    };
    match (of, kind) {
        (OwnerSnapshot::Gateway(of), Kind::Gateway) => Some(of.gateway.text()),
        (OwnerSnapshot::Gateway(of), Kind::GatewayClass) => of.class.as_ref().map(Part::text),
        (OwnerSnapshot::Gateway(of), Kind::ListenerSet) => at(&of.listener_sets, name),
        (OwnerSnapshot::Gateway(of), Kind::HttpRoute) => at(&of.http_routes, name),
        (OwnerSnapshot::Gateway(of), Kind::GrpcRoute) => at(&of.grpc_routes, name),
        (OwnerSnapshot::Gateway(of), Kind::TlsRoute) => at(&of.tls_routes, name),
        (OwnerSnapshot::Gateway(of), Kind::TcpRoute) => at(&of.tcp_routes, name),
        (OwnerSnapshot::Gateway(of), Kind::UdpRoute) => at(&of.udp_routes, name),
        (OwnerSnapshot::Gateway(of), Kind::BackendTlsPolicy) => at(&of.backend_tls_policies, name),
        (OwnerSnapshot::Ingress(of), Kind::IngressClass) => {
            Some(format!("{} {:?}", of.class.text(), of.default_classes))
        }
        (OwnerSnapshot::Ingress(of), Kind::Ingress) => at(&of.ingresses, name),
        (_, Kind::Service) => at(&referents.services, name),
        (_, Kind::EndpointSlice) => at(&referents.endpoint_slices, name),
        (_, Kind::ReferenceGrant) => at(&referents.reference_grants, name),
        (_, Kind::Secret) => at(&referents.secrets, name),
        (_, Kind::ConfigMap) => at(&referents.config_maps, name),
        (_, Kind::Namespace) => at(&referents.namespaces, &Arc::from(&*name.name)),
        (_, Kind::PingsixProxy) => at(&referents.proxies, name),
        // Of the other kind of owner.
        (OwnerSnapshot::Gateway(_), Kind::IngressClass | Kind::Ingress)
        | (
            OwnerSnapshot::Ingress(_),
            Kind::GatewayClass
            | Kind::Gateway
            | Kind::ListenerSet
            | Kind::HttpRoute
            | Kind::GrpcRoute
            | Kind::TlsRoute
            | Kind::TcpRoute
            | Kind::UdpRoute
            | Kind::BackendTlsPolicy,
        ) => None,
    }
}

/// A snapshot with nothing in it but these parts, and the owner.
pub(super) fn only(of: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>) -> OwnerSnapshot {
    let mut only = match of {
        OwnerSnapshot::Gateway(of) => OwnerSnapshot::Gateway(Box::new(Snapshot {
            gateway: of.gateway.clone(),
            class: None,
            listener_sets: SharedMap::new(),
            http_routes: SharedMap::new(),
            grpc_routes: SharedMap::new(),
            tls_routes: SharedMap::new(),
            tcp_routes: SharedMap::new(),
            udp_routes: SharedMap::new(),
            backend_tls_policies: SharedMap::new(),
            referents: Referents::default(),
        })),
        OwnerSnapshot::Ingress(of) => OwnerSnapshot::Ingress(Box::new(IngressSnapshot {
            class: of.class.clone(),
            default_classes: of.default_classes.clone(),
            ingresses: SharedMap::new(),
            referents: Referents::default(),
        })),
    };
    put(&mut only, of, parts);
    only
}

/// Everything but routes and Ingresses: what is left answers 404.
pub(super) fn without_routes(snapshot: &OwnerSnapshot) -> OwnerSnapshot {
    let mut without = snapshot.clone();
    match &mut without {
        OwnerSnapshot::Gateway(snapshot) => {
            snapshot.http_routes = SharedMap::new();
            snapshot.grpc_routes = SharedMap::new();
        }
        OwnerSnapshot::Ingress(snapshot) => snapshot.ingresses = SharedMap::new(),
    }
    without
}
