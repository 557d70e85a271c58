//! The edges: all references between kinds.

use std::sync::Arc;

use crate::model::{Kind, ObjectKey, ObjectName};
use crate::snapshot::{
    BackendTlsPolicy, BackendTrafficPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, HttpRouteFilter,
    Identified, Ingress, IngressClass, ListenerSet, Namespace, OfKind, PingsixProxy, PolicyObject,
    ReferenceGrant, RouteObject, RouteSpec, Secret, SecurityPolicy, Service, TrafficPolicy, class_of_ingress,
    default_ingress_classes, parent_of_listener_set, proxy_of_class, proxy_of_gateway,
    proxy_of_ingress_class, references_of_gateway, references_of_ingress, references_of_listener_set,
    references_of_proxy, service_of_slice, services_of_ingress,
};

/// The targets of references by name, existing or absent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// An object.
    Object(ObjectKey),
    /// The permission for references from one namespace into another, which a ReferenceGrant gives. The box keeps the
    /// enum small, because most targets are objects.
    CrossNamespaceReference(Box<CrossNamespaceReference>),
    /// The mark of a default IngressClass, to which Ingresses without a class belong.
    DefaultIngressClass,
}

impl Target {
    /// An object of a kind.
    pub fn object(kind: Kind, name: &ObjectName) -> Self {
        Self::Object(ObjectKey { kind, name: name.clone() })
    }

    /// A Service.
    pub fn service(name: &ObjectName) -> Self {
        Self::object(Kind::Service, name)
    }

    /// The permission for objects of a kind to refer from one namespace into another.
    pub fn crossing(kind: Kind, from: Arc<str>, into: Arc<str>) -> Self {
        Self::CrossNamespaceReference(Box::new(CrossNamespaceReference { kind, from, into }))
    }
}

/// References from one namespace into another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrossNamespaceReference {
    /// The kind of the referring object.
    pub kind: Kind,
    /// The namespace of the referring object.
    pub from: Arc<str>,
    /// The namespace of the referenced object.
    pub into: Arc<str>,
}

/// The end of an edge that a change affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A change of the object affects its targets.
    Concerns,
    /// A change of a target affects the object.
    DependsOn,
}

/// References of the objects of one kind.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Edge<K> {
    /// The name in dumps and metrics, for example `backend`.
    pub name: &'static str,
    /// The affected end of a change.
    pub direction: Direction,
    /// Adds the targets of an object with this name; repetitions are allowed.
    pub targets: fn(&K, &ObjectName, &mut Vec<Target>),
}

impl<K> Edge<K> {
    /// A route concerns its Gateway.
    const fn concerns(name: &'static str, targets: fn(&K, &ObjectName, &mut Vec<Target>)) -> Self {
        Self { name, direction: Direction::Concerns, targets }
    }

    /// A route depends on its Services.
    const fn depends_on(name: &'static str, targets: fn(&K, &ObjectName, &mut Vec<Target>)) -> Self {
        Self { name, direction: Direction::DependsOn, targets }
    }
}

/// The edges that start at a kind.
pub trait Edges: Identified + 'static {
    /// All edges of the kind.
    const EDGES: &'static [Edge<Self>];
}

/// Declares kinds without references.
macro_rules! no_edges {
    ($($kind:ident)+) => {$(
        impl Edges for $kind {
            const EDGES: &'static [Edge<Self>] = &[];
        }
    )+};
}

no_edges! { Service Secret ConfigMap Namespace HttpRouteFilter }

impl Edges for PingsixProxy {
    const EDGES: &'static [Edge<Self>] = &[
        Edge::depends_on("reference", |proxy, name, targets| {
            let references = references_of_proxy(proxy, &name.namespace);
            targets.extend(references.into_iter().map(Target::Object));
        }),
        // A change of its Secrets affects its dependents: classes and Gateways.
        Edge::concerns("parameters", itself::<Self>),
    ];
}

impl Edges for GatewayClass {
    const EDGES: &'static [Edge<Self>] = &[
        Edge::depends_on("parameters", |class, _, targets| {
            targets.extend(proxy_of_class(class).map(|proxy| named(Kind::PingsixProxy, proxy)));
        }),
        // A change of its parameters affects its dependents, the Gateways.
        Edge::concerns("class", itself::<Self>),
    ];
}

impl Edges for Gateway {
    const EDGES: &'static [Edge<Self>] = &[
        Edge::depends_on("class", |gateway, _, targets| {
            targets.push(cluster(Kind::GatewayClass, &gateway.spec.gateway_class_name));
        }),
        Edge::depends_on("parameters", |gateway, name, targets| {
            let proxy = proxy_of_gateway(gateway, &name.namespace);
            targets.extend(proxy.map(|proxy| named(Kind::PingsixProxy, proxy)));
        }),
        Edge::depends_on("namespace", own_namespace),
        Edge::depends_on("reference", |gateway, name, targets| {
            refer(targets, Kind::Gateway, name, references_of_gateway(gateway, &name.namespace));
        }),
    ];
}

impl Edges for ListenerSet {
    const EDGES: &'static [Edge<Self>] = &[
        Edge::concerns("parent", |set, name, targets| {
            let parent = parent_of_listener_set(name, set);
            targets.extend(parent.map(|gateway| named(Kind::Gateway, gateway)));
        }),
        Edge::depends_on("namespace", own_namespace),
        Edge::depends_on("reference", |set, name, targets| {
            refer(targets, Kind::ListenerSet, name, references_of_listener_set(set, &name.namespace));
        }),
    ];
}

impl<S: RouteSpec + 'static> Edges for RouteObject<S>
where
    Self: OfKind,
{
    const EDGES: &'static [Edge<Self>] = &[
        Edge::concerns("parent", |route, name, targets| {
            let parents = route.parent_refs.iter();
            let parents = parents.filter_map(|parent| parent.target(&name.namespace));
            targets.extend(parents.map(Target::Object));
        }),
        Edge::depends_on("namespace", own_namespace),
        Edge::depends_on("backend", |route, name, targets| {
            let services = route.services().iter().cloned();
            let services = services.map(|name| ObjectKey { kind: Kind::Service, name });
            refer(targets, Self::KIND, name, services);
        }),
        Edge::depends_on("filter", |route, _, targets| {
            let filters = route.filters().iter().cloned();
            targets.extend(filters.map(|filter| named(Kind::HttpRouteFilter, filter)));
        }),
    ];
}

/// Declares kinds of policies.
macro_rules! policy_edges {
    ($($kind:ident)+) => {$(
        impl Edges for $kind {
            const EDGES: &'static [Edge<Self>] = &[
                Edge::concerns("target", |policy, name, targets| {
                    targets.extend(policy.targets(&name.namespace).into_iter().map(Target::Object));
                }),
                Edge::depends_on("reference", |policy, name, targets| {
                    refer(targets, Self::KIND, name, policy.references(&name.namespace));
                }),
            ];
        }
    )+};
}

policy_edges! { BackendTlsPolicy SecurityPolicy TrafficPolicy BackendTrafficPolicy }

impl Edges for ReferenceGrant {
    const EDGES: &'static [Edge<Self>] = &[Edge::concerns("crossing", |grant, name, targets| {
        targets.extend(grant.spec.from.iter().filter_map(|from| {
            let kind = Kind::from_group_kind(&from.group, &from.kind)?;
            Some(Target::crossing(kind, from.namespace.as_str().into(), name.namespace.clone()))
        }));
    })];
}

impl Edges for IngressClass {
    // One default class takes precedence, so a change of a mark affects all marked classes.
    const EDGES: &'static [Edge<Self>] = &[
        Edge::concerns("default", default_mark),
        Edge::depends_on("default", default_mark),
        Edge::depends_on("parameters", |class, _, targets| {
            targets.extend(proxy_of_ingress_class(class).map(|proxy| named(Kind::PingsixProxy, proxy)));
        }),
    ];
}

fn default_mark(class: &IngressClass, _: &ObjectName, targets: &mut Vec<Target>) {
    if !default_ingress_classes([class]).is_empty() {
        targets.push(Target::DefaultIngressClass);
    }
}

impl Edges for Ingress {
    const EDGES: &'static [Edge<Self>] = &[
        Edge::concerns("class", |ingress, _, targets| {
            targets.push(
                class_of_ingress(ingress)
                    .map_or(Target::DefaultIngressClass, |class| cluster(Kind::IngressClass, class)),
            );
        }),
        Edge::depends_on("backend", |ingress, name, targets| {
            let services = services_of_ingress(ingress, &name.namespace);
            targets.extend(services.into_iter().map(|service| named(Kind::Service, service)));
        }),
        Edge::depends_on("reference", |ingress, name, targets| {
            let references = references_of_ingress(ingress, &name.namespace);
            targets.extend(references.into_iter().map(Target::Object));
        }),
    ];
}

impl Edges for EndpointSlice {
    const EDGES: &'static [Edge<Self>] = &[Edge::concerns("service", |slice, _, targets| {
        targets.extend(service_of_slice(slice).map(|service| named(Kind::Service, service)));
    })];
}

fn named(kind: Kind, name: ObjectName) -> Target {
    Target::Object(ObjectKey { kind, name })
}

fn cluster(kind: Kind, name: &str) -> Target {
    Target::Object(ObjectKey::new(kind, "", name))
}

/// The object itself.
fn itself<K: OfKind>(_: &K, name: &ObjectName, targets: &mut Vec<Target>) {
    targets.push(named(K::KIND, name.clone()));
}

/// The namespace of an object, whose labels match selectors of listeners.
fn own_namespace<K>(_: &K, name: &ObjectName, targets: &mut Vec<Target>) {
    targets.push(cluster(Kind::Namespace, &name.namespace));
}

/// Adds references to objects, and the permissions for references into other namespaces.
fn refer(
    targets: &mut Vec<Target>,
    referrer: Kind,
    name: &ObjectName,
    objects: impl IntoIterator<Item = ObjectKey>,
) {
    for object in objects {
        let into = &object.name.namespace;
        if *into != name.namespace {
            targets.push(Target::crossing(referrer, name.namespace.clone(), into.clone()));
        }
        targets.push(Target::Object(object));
    }
}
