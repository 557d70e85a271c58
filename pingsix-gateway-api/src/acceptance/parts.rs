//! Snapshots, part by part: what is different between two, and what has to be put back together.
//!
//! A **part** is an object, or all EndpointSlices of a Service, which go by [`Kind::EndpointSlice`] and the name of the
//! Service.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Resource;
use kube::core::ObjectMeta;
use pingsix_translate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GrpcRoute, HttpRoute, Ingress, IngressClass,
    IngressSnapshot, ListenerSet, Namespace, ReferenceGrant, Referents, RouteReferences, Secret, Service,
    Snapshot, TcpRoute, TlsRoute, UdpRoute, secrets_of_ingress, services_of_ingress,
};
use pingsix_translate::{Change, Kind, ObjectKey, ObjectName, Origin, Section, SharedMap};
use serde::Serialize;

use crate::world::OwnerSnapshot;

/// What can be compared with another version of itself.
trait Part: Clone {
    /// Whether both say the same. One of them may have been read anew.
    fn says_the_same(&self, other: &Self) -> bool;
}

/// Kinds held in the generated type, of which some metadata say nothing.
macro_rules! generated {
    ($($kind:ident)+) => {$(
        impl Part for Arc<$kind> {
            fn says_the_same(&self, other: &Self) -> bool {
                Self::ptr_eq(self, other) || say_the_same(&**self, &**other)
            }
        }
    )+};
}

generated! { Gateway ListenerSet BackendTlsPolicy ReferenceGrant IngressClass Ingress Secret ConfigMap Namespace }

fn say_the_same<K: Resource + Serialize>(one: &K, other: &K) -> bool {
    let essence = |metadata: &ObjectMeta| {
        let ObjectMeta { uid, generation, labels, annotations, .. } = metadata.clone();
        (uid, generation, labels, annotations)
    };
    let spec = |object: &K| {
        let mut object = serde_json::to_value(object).unwrap_or_default();
        object.as_object_mut().map(|object| object.remove("metadata"));
        object
    };
    essence(one.meta()) == essence(other.meta())
        && (one.meta().generation.is_some_and(|generation| generation > 0) || spec(one) == spec(other))
}

/// Kinds of which nothing is kept but what translation reads.
macro_rules! kept {
    ($($kind:ident)+) => {$(
        impl Part for Arc<$kind> {
            fn says_the_same(&self, other: &Self) -> bool {
                Self::ptr_eq(self, other) || self == other
            }
        }
    )+};
}

kept! { HttpRoute GrpcRoute TlsRoute TcpRoute UdpRoute Service EndpointSlice }

impl Part for Vec<Arc<EndpointSlice>> {
    fn says_the_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.says_the_same(other))
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

fn key_of_class(snapshot: &IngressSnapshot) -> ObjectKey {
    ObjectKey::new(Kind::IngressClass, "", snapshot.class.metadata.name.clone().unwrap_or_default())
}

fn namespace(name: &Arc<str>) -> ObjectKey {
    ObjectKey::new(Kind::Namespace, "", name.clone())
}

/// Makes these parts what they are in another snapshot of the same owner.
pub(super) fn put<'k>(
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
                Kind::GatewayClass
                | Kind::ReferenceGrant
                | Kind::IngressClass
                | Kind::Ingress
                | Kind::Service
                | Kind::EndpointSlice
                | Kind::Secret
                | Kind::ConfigMap
                | Kind::Namespace => put_referent(&mut into.referents, &from.referents, *kind, name),
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
        Kind::Namespace => copy(&mut into.namespaces, &from.namespaces, &name.name),
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

/// A snapshot with nothing in it but these parts, and the owner.
pub(super) fn only(of: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>) -> OwnerSnapshot {
    let mut only = match of {
        OwnerSnapshot::Gateway(of) => OwnerSnapshot::Gateway(Box::new(Snapshot {
            gateway: of.gateway.clone(),
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

/// What of a part can be put into quarantine: the rules of a route, the sections of an Ingress, a Service or a Secret as
/// a whole. Nothing of what is not there, nor of a part that all others depend on.
pub(super) fn sources(snapshot: &OwnerSnapshot, part: &ObjectKey) -> Vec<Origin> {
    let name = &part.name;
    let of = |key: &ObjectKey, sections: Vec<Section>| -> Vec<Origin> {
        let object = Arc::new(key.clone());
        sections.into_iter().map(|section| Origin { object: object.clone(), section }).collect()
    };
    let referents = match snapshot {
        OwnerSnapshot::Gateway(snapshot) => {
            let count = |rules: Option<usize>| rules.unwrap_or(1).max(1);
            let rules = if part.kind == Kind::HttpRoute {
                let route = snapshot.http_routes.get(name);
                route.map(|route| count(route.spec.rules.as_ref().map(Vec::len)))
            } else if part.kind == Kind::GrpcRoute {
                let route = snapshot.grpc_routes.get(name);
                route.map(|route| count(route.spec.rules.as_ref().map(Vec::len)))
            } else {
                None
            };
            if let Some(rules) = rules {
                return of(part, (0..rules).map(Section::Rule).collect());
            }
            &snapshot.referents
        }
        OwnerSnapshot::Ingress(snapshot) => {
            if part.kind == Kind::Ingress {
                let sections = snapshot.ingresses.get(name).map(|ingress| sections(ingress));
                return of(part, sections.unwrap_or_default());
            }
            &snapshot.referents
        }
    };
    let service = ObjectKey { kind: Kind::Service, name: name.clone() };
    let is_there = if part.kind == Kind::Secret {
        referents.secrets.contains_key(name)
    } else {
        matches!(part.kind, Kind::Service | Kind::EndpointSlice) && referents.services.contains_key(name)
    };
    let whole = if part.kind == Kind::Secret { part } else { &service };
    if is_there { of(whole, vec![Section::Whole]) } else { Vec::new() }
}

/// The sections of an Ingress that ask for something.
fn sections(ingress: &Ingress) -> Vec<Section> {
    let Some(spec) = &ingress.spec else { return Vec::new() };
    let mut sections = Vec::new();
    for (rule, content) in spec.rules.iter().flatten().enumerate() {
        let paths = content.http.as_ref().map_or(0, |http| http.paths.len());
        sections.extend((0..paths).map(|index| Section::Match { rule, index }));
        if paths == 0 && spec.default_backend.is_some() {
            sections.push(Section::Rule(rule));
        }
    }
    sections.extend(spec.default_backend.as_ref().map(|_| Section::DefaultBackend));
    sections.extend((0..spec.tls.as_ref().map_or(0, Vec::len)).map(Section::Tls));
    sections
}

/// Everything of a snapshot that can be put into quarantine without hiding something else: no Services, and of Ingresses no
/// Secrets.
pub(super) fn all_sources(snapshot: &OwnerSnapshot) -> BTreeSet<Origin> {
    let keys = |kind: Kind, names: Vec<&ObjectName>| -> Vec<ObjectKey> {
        names.into_iter().map(|name| ObjectKey { kind, name: name.clone() }).collect()
    };
    let parts = match snapshot {
        OwnerSnapshot::Gateway(snapshot) => {
            let mut parts = keys(Kind::HttpRoute, snapshot.http_routes.keys().collect());
            parts.extend(keys(Kind::GrpcRoute, snapshot.grpc_routes.keys().collect()));
            parts.extend(keys(Kind::Secret, snapshot.referents.secrets.keys().collect()));
            parts
        }
        OwnerSnapshot::Ingress(snapshot) => keys(Kind::Ingress, snapshot.ingresses.keys().collect()),
    };
    parts.iter().flat_map(|part| sources(snapshot, part)).collect()
}

/// The parts that a source is made of: when one of them changes, what was said of the source counts no more.
pub(super) fn parts_of(source: &Origin) -> BTreeSet<ObjectKey> {
    let object = &*source.object;
    let slices = ObjectKey { kind: Kind::EndpointSlice, name: object.name.clone() };
    let slices = (object.kind == Kind::Service).then_some(slices);
    slices.into_iter().chain([object.clone()]).collect()
}

/// Puts parts together that must not be separated: a route in its old version does not go with its Services in their new
/// ones, nor the other way round.
pub(super) fn groups(
    parts: &BTreeSet<ObjectKey>,
    now: &OwnerSnapshot,
    before: &OwnerSnapshot,
) -> Vec<BTreeSet<ObjectKey>> {
    let parts: Vec<&ObjectKey> = parts.iter().collect();
    let place = |part: &ObjectKey| parts.binary_search(&part).ok();
    let mut groups = Groups((0..parts.len()).collect());
    for (index, part) in parts.iter().enumerate() {
        if concerns_all(part.kind) {
            (0..parts.len()).for_each(|other| groups.join(index, other));
            continue;
        }
        for related in related(now, part).into_iter().chain(related(before, part)) {
            // Other endpoints do as well for a route as those it was made for, unless there were none, or are none.
            let is_free = part.kind != Kind::Service
                && related.kind == Kind::EndpointSlice
                && has_slices(now, &related.name)
                && has_slices(before, &related.name);
            if let Some(other) = place(&related).filter(|_| !is_free) {
                groups.join(index, other);
            }
        }
        if part.kind == Kind::Namespace {
            let is_inside = |other: &usize| parts[*other].name.namespace == part.name.name;
            (0..parts.len()).filter(is_inside).for_each(|other| groups.join(index, other));
        }
    }
    let mut by_root: BTreeMap<usize, BTreeSet<ObjectKey>> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        by_root.entry(groups.root(index)).or_default().insert((*part).clone());
    }
    by_root.into_values().collect()
}

/// By index, the index of another member of the same group, or its own.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&mut self, mut index: usize) -> usize {
        while self.0[index] != index {
            self.0[index] = self.0[self.0[index]];
            index = self.0[index];
        }
        index
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[other] = one;
    }
}

fn has_slices(snapshot: &OwnerSnapshot, service: &ObjectName) -> bool {
    let referents = match snapshot {
        OwnerSnapshot::Gateway(snapshot) => &snapshot.referents,
        OwnerSnapshot::Ingress(snapshot) => &snapshot.referents,
    };
    referents.endpoint_slices.contains_key(service)
}

/// Whether routes of all kinds are judged by it.
pub(super) const fn concerns_all(kind: Kind) -> bool {
    match kind {
        Kind::GatewayClass
        | Kind::Gateway
        | Kind::ListenerSet
        | Kind::BackendTlsPolicy
        | Kind::ReferenceGrant
        | Kind::IngressClass
        | Kind::ConfigMap => true,
        Kind::HttpRoute
        | Kind::GrpcRoute
        | Kind::TlsRoute
        | Kind::TcpRoute
        | Kind::UdpRoute
        | Kind::Ingress
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Secret
        | Kind::Namespace => false,
    }
}

/// The parts that a part refers to.
fn related(snapshot: &OwnerSnapshot, part: &ObjectKey) -> Vec<ObjectKey> {
    fn services<R: RouteReferences>(
        routes: &SharedMap<ObjectName, Arc<R>>,
        name: &ObjectName,
    ) -> Vec<ObjectName> {
        routes.get(name).map(|route| route.services(&name.namespace)).unwrap_or_default()
    }
    let name = &part.name;
    let mut secrets = BTreeSet::new();
    let services: Vec<ObjectName> = match (snapshot, part.kind) {
        (OwnerSnapshot::Gateway(snapshot), Kind::HttpRoute) => services(&snapshot.http_routes, name),
        (OwnerSnapshot::Gateway(snapshot), Kind::GrpcRoute) => services(&snapshot.grpc_routes, name),
        (OwnerSnapshot::Gateway(snapshot), Kind::TlsRoute) => services(&snapshot.tls_routes, name),
        (OwnerSnapshot::Gateway(snapshot), Kind::TcpRoute) => services(&snapshot.tcp_routes, name),
        (OwnerSnapshot::Gateway(snapshot), Kind::UdpRoute) => services(&snapshot.udp_routes, name),
        (OwnerSnapshot::Ingress(snapshot), Kind::Ingress) => {
            let ingress = snapshot.ingresses.get(name);
            secrets
                .extend(ingress.into_iter().flat_map(|ingress| secrets_of_ingress(ingress, &name.namespace)));
            let services =
                ingress.into_iter().flat_map(|ingress| services_of_ingress(ingress, &name.namespace));
            services.collect()
        }
        (_, Kind::Service) => vec![name.clone()],
        _ => Vec::new(),
    };
    let of_services = services.into_iter().flat_map(|name| {
        [Kind::Service, Kind::EndpointSlice].map(|kind| ObjectKey { kind, name: name.clone() })
    });
    let secrets = secrets.into_iter().map(|name| ObjectKey { kind: Kind::Secret, name });
    of_services.chain(secrets).collect()
}
