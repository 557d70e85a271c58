//! The edges: all references between kinds.

use std::sync::Arc;

use pingsix_translate::snapshot::{
    BackendTlsPolicy, BackendTrafficPolicy, EndpointSlice, Gateway, GatewayClass, Ingress, IngressClass,
    ListenerSet, OfKind, PingsixProxy, PolicyObject, ReferenceGrant, RouteObject, RouteSpec, SecurityPolicy,
    TrafficPolicy, class_of_ingress, config_maps_of_gateway, default_ingress_classes, parent_of_listener_set,
    proxy_of_class, proxy_of_gateway, proxy_of_ingress_class, references_of_ingress, secrets_of_gateway,
    secrets_of_listener_set, secrets_of_proxy, service_of_slice, services_of_ingress,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName};

use crate::store::Edge;
use crate::watch::{Watched, WatchedKind};

/// The targets of references by name, existing or absent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Target {
    /// An object.
    Object(ObjectKey),
    /// The permission for references from one namespace into another, which a ReferenceGrant gives. The box keeps the
    /// enum small, because most targets are objects.
    CrossNamespaceReference(Box<CrossNamespaceReference>),
    /// The mark of a default IngressClass, to which Ingresses without a class belong.
    DefaultIngressClass,
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

/// The edges that start at a kind.
pub(super) trait Edges: WatchedKind {
    /// All edges of the kind.
    fn edges() -> Vec<Edge<Watched<Self>, Target>>;
}

/// Declares kinds without references.
macro_rules! no_edges {
    ($($kind:ident)+) => {$(
        impl Edges for pingsix_translate::snapshot::$kind {
            fn edges() -> Vec<Edge<Watched<Self>, Target>> {
                Vec::new()
            }
        }
    )+};
}

no_edges! { Service Secret ConfigMap Namespace HttpRouteFilter }

impl Edges for PingsixProxy {
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![
            Edge::depends_on("secret", |proxy: &Watched<Self>, targets| {
                each(proxy, |proxy, name| {
                    let secrets = secrets_of_proxy(proxy, &name.namespace);
                    targets.extend(secrets.into_iter().map(|secret| named(Kind::Secret, secret)));
                });
            }),
            // A change of its Secrets affects its dependents: classes and Gateways.
            Edge::concerns("parameters", |proxy: &Watched<Self>, targets| {
                targets.push(Target::Object(proxy.key()));
            }),
        ]
    }
}

impl Edges for GatewayClass {
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![
            Edge::depends_on("parameters", |class: &Watched<Self>, targets| {
                each(class, |class, _| {
                    targets.extend(proxy_of_class(class).map(|proxy| named(Kind::PingsixProxy, proxy)));
                });
            }),
            // A change of its parameters affects its dependents, the Gateways.
            Edge::concerns("class", |class: &Watched<Self>, targets| {
                targets.push(Target::Object(class.key()));
            }),
        ]
    }
}

impl Edges for Gateway {
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![
            Edge::depends_on("class", |gateway: &Watched<Self>, targets| {
                if let Some(gateway) = gateway.object() {
                    targets.push(cluster(Kind::GatewayClass, &gateway.spec.gateway_class_name));
                }
            }),
            Edge::depends_on("parameters", |gateway: &Watched<Self>, targets| {
                each(gateway, |gateway, name| {
                    let proxy = proxy_of_gateway(gateway, &name.namespace);
                    targets.extend(proxy.map(|proxy| named(Kind::PingsixProxy, proxy)));
                });
            }),
            Edge::depends_on("namespace", own_namespace),
            Edge::depends_on("secret", |gateway: &Watched<Self>, targets| {
                each(gateway, |gateway, name| {
                    refer(
                        targets,
                        Kind::Gateway,
                        name,
                        Kind::Secret,
                        secrets_of_gateway(gateway, &name.namespace),
                    );
                });
            }),
            Edge::depends_on("authority", |gateway: &Watched<Self>, targets| {
                each(gateway, |gateway, name| {
                    let config_maps = config_maps_of_gateway(gateway, &name.namespace);
                    refer(targets, Kind::Gateway, name, Kind::ConfigMap, config_maps);
                });
            }),
        ]
    }
}

impl Edges for ListenerSet {
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![
            Edge::concerns("parent", |set: &Watched<Self>, targets| {
                each(set, |set, name| {
                    targets.extend(
                        parent_of_listener_set(name, set).map(|gateway| named(Kind::Gateway, gateway)),
                    );
                });
            }),
            Edge::depends_on("namespace", own_namespace),
            Edge::depends_on("secret", |set: &Watched<Self>, targets| {
                each(set, |set, name| {
                    let secrets = secrets_of_listener_set(set, &name.namespace);
                    refer(targets, Kind::ListenerSet, name, Kind::Secret, secrets);
                });
            }),
        ]
    }
}

impl<S: RouteSpec> Edges for RouteObject<S>
where
    Self: WatchedKind,
{
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![
            Edge::concerns("parent", |route: &Watched<Self>, targets| {
                each(route, |route, name| {
                    let parents = route.parent_refs.iter();
                    targets.extend(
                        parents.filter_map(|parent| parent.target(&name.namespace)).map(Target::Object),
                    );
                });
            }),
            Edge::depends_on("namespace", own_namespace),
            Edge::depends_on("backend", |route: &Watched<Self>, targets| {
                each(route, |route, name| {
                    refer(targets, Self::KIND, name, Kind::Service, route.services().iter().cloned());
                });
            }),
            Edge::depends_on("filter", |route: &Watched<Self>, targets| {
                each(route, |route, _| {
                    let filters = route.filters().iter().cloned();
                    targets.extend(filters.map(|filter| named(Kind::HttpRouteFilter, filter)));
                });
            }),
        ]
    }
}

/// Declares kinds of policies.
macro_rules! policy_edges {
    ($($kind:ident)+) => {$(
        impl Edges for $kind {
            fn edges() -> Vec<Edge<Watched<Self>, Target>> {
                vec![
                Edge::concerns("target", |policy: &Watched<Self>, targets| {
                    each(policy, |policy, name| {
                        targets.extend(policy.targets(&name.namespace).into_iter().map(Target::Object));
                    });
                }),
                Edge::depends_on("reference", |policy: &Watched<Self>, targets| {
                    each(policy, |policy, name| {
                        for ObjectKey { kind, name: object } in policy.references(&name.namespace) {
                            refer(targets, Self::KIND, name, kind, [object]);
                        }
                    });
                }),
            ]
            }
        }
    )+};
}

policy_edges! { BackendTlsPolicy SecurityPolicy TrafficPolicy BackendTrafficPolicy }

impl Edges for ReferenceGrant {
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![Edge::concerns("crossing", |grant: &Watched<Self>, targets| {
            each(grant, |grant, name| {
                targets.extend(grant.spec.from.iter().filter_map(|from| {
                    let kind = Kind::from_group_kind(&from.group, &from.kind)?;
                    let from = from.namespace.as_str().into();
                    Some(crossing(kind, from, name.namespace.clone()))
                }));
            });
        })]
    }
}

impl Edges for IngressClass {
    // One default class takes precedence, so a change of a mark affects all marked classes.
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![
            Edge::concerns("default", default_mark),
            Edge::depends_on("default", default_mark),
            Edge::depends_on("parameters", |class: &Watched<Self>, targets| {
                each(class, |class, _| {
                    targets
                        .extend(proxy_of_ingress_class(class).map(|proxy| named(Kind::PingsixProxy, proxy)));
                });
            }),
        ]
    }
}

fn default_mark(class: &Watched<IngressClass>, targets: &mut Vec<Target>) {
    if class.object().is_some_and(|class| !default_ingress_classes([&**class]).is_empty()) {
        targets.push(Target::DefaultIngressClass);
    }
}

impl Edges for Ingress {
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![
            Edge::concerns("class", |ingress: &Watched<Self>, targets| {
                if let Some(ingress) = ingress.object() {
                    targets.push(
                        class_of_ingress(ingress)
                            .map_or(Target::DefaultIngressClass, |class| cluster(Kind::IngressClass, class)),
                    );
                }
            }),
            Edge::depends_on("backend", |ingress: &Watched<Self>, targets| {
                each(ingress, |ingress, name| {
                    let services = services_of_ingress(ingress, &name.namespace);
                    targets.extend(services.into_iter().map(|service| named(Kind::Service, service)));
                });
            }),
            Edge::depends_on("reference", |ingress: &Watched<Self>, targets| {
                each(ingress, |ingress, name| {
                    let references = references_of_ingress(ingress, &name.namespace);
                    targets.extend(references.into_iter().map(Target::Object));
                });
            }),
        ]
    }
}

impl Edges for EndpointSlice {
    fn edges() -> Vec<Edge<Watched<Self>, Target>> {
        vec![Edge::concerns("service", |slice: &Watched<Self>, targets| {
            if let Some(slice) = slice.object() {
                targets.extend(service_of_slice(slice).map(|service| named(Kind::Service, service)));
            }
        })]
    }
}

/// Calls a function with a decodable object and its name.
fn each<K: WatchedKind>(object: &Watched<K>, mut function: impl FnMut(&K, &ObjectName)) {
    if let Some(decoded) = object.object() {
        function(decoded, &object.name());
    }
}

fn named(kind: Kind, name: ObjectName) -> Target {
    Target::Object(ObjectKey { kind, name })
}

/// The permission to refer from one namespace into another.
pub(super) fn crossing(kind: Kind, from: Arc<str>, into: Arc<str>) -> Target {
    Target::CrossNamespaceReference(Box::new(CrossNamespaceReference { kind, from, into }))
}

fn cluster(kind: Kind, name: &str) -> Target {
    Target::Object(ObjectKey::new(kind, "", name))
}

/// The namespace of an object, whose labels match selectors of listeners.
fn own_namespace<K: WatchedKind>(object: &Watched<K>, targets: &mut Vec<Target>) {
    targets.push(cluster(Kind::Namespace, &object.name().namespace));
}

/// Adds references to objects, and the permissions for references into other namespaces.
fn refer(
    targets: &mut Vec<Target>,
    referrer: Kind,
    name: &ObjectName,
    kind: Kind,
    objects: impl IntoIterator<Item = ObjectName>,
) {
    for object in objects {
        if object.namespace != name.namespace {
            targets.push(crossing(referrer, name.namespace.clone(), object.namespace.clone()));
        }
        targets.push(named(kind, object));
    }
}
