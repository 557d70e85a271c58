//! Which objects of a snapshot are others than the last time.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::crd::PingsixProxy;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::normalise::{
    Route, normalise_grpc_route, normalise_http_route, normalise_tcp_route, normalise_tls_route,
    normalise_udp_route,
};
use crate::quarantine::refuse_rules;
use crate::shared_map::{Change, SharedMap};
use crate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, GrpcRoute, HttpRoute, ListenerSet,
    Namespace, OwnAddresses, Pending, Quarantine, ReferenceGrant, Secret, Service, Snapshot, TcpRoute,
    TlsRoute, UdpRoute,
};

/// An object that is another one than the last time, or new, or gone.
#[derive(Debug)]
pub(super) struct Difference<T, N = ObjectName> {
    pub(super) name: N,
    /// Nothing if it is new.
    pub(super) before: Option<T>,
    /// Nothing if it is gone.
    pub(super) now: Option<T>,
}

/// What can be told from another without looking into it.
trait Identity: Clone {
    fn is_same(&self, other: &Self) -> bool;
}

impl<K> Identity for Arc<K> {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl<K> Identity for Option<Arc<K>> {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

impl<K> Identity for Vec<Arc<K>> {
    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

/// The objects of one kind, as they were the last time.
#[derive(Debug)]
struct OfKind<T, N = ObjectName>(SharedMap<N, T>);

impl<T: Identity, N: Ord + Clone> OfKind<T, N> {
    fn new(objects: &SharedMap<N, T>) -> Self {
        Self(objects.clone())
    }

    /// What is different now; from then on that is what was seen.
    fn update(&mut self, now: &SharedMap<N, T>) -> Vec<Difference<T, N>> {
        let before = std::mem::replace(&mut self.0, now.clone());
        let changes = now.changes(&before).into_iter();
        let differences = changes.filter_map(|change| {
            let (name, before, now) = match change {
                Change::Replaced(_, before, now) if before.is_same(now) => return None,
                Change::Replaced(name, before, now) => (name, Some(before.clone()), Some(now.clone())),
                Change::Added(name, now) => (name, None, Some(now.clone())),
                Change::Removed(name, before) => (name, Some(before.clone()), None),
            };
            Some(Difference { name: name.clone(), before, now })
        });
        differences.collect()
    }
}

/// The objects of a snapshot.
#[derive(Debug)]
pub(super) struct Seen {
    gateway: Arc<Gateway>,
    class: Option<Arc<GatewayClass>>,
    proxies: OfKind<Arc<PingsixProxy>>,
    listener_sets: OfKind<Arc<ListenerSet>>,
    http: OfKind<Arc<HttpRoute>>,
    grpc: OfKind<Arc<GrpcRoute>>,
    tls: OfKind<Arc<TlsRoute>>,
    tcp: OfKind<Arc<TcpRoute>>,
    udp: OfKind<Arc<UdpRoute>>,
    backend_tls_policies: OfKind<Arc<BackendTlsPolicy>>,
    services: OfKind<Arc<Service>>,
    slices: OfKind<Vec<Arc<EndpointSlice>>>,
    reference_grants: OfKind<Arc<ReferenceGrant>>,
    secrets: OfKind<Arc<Secret>>,
    config_maps: OfKind<Arc<ConfigMap>>,
    namespaces: OfKind<Arc<Namespace>, Arc<str>>,
    quarantine: Quarantine,
    pending: Pending,
    own_addresses: OwnAddresses,
}

/// What is different about a snapshot.
#[derive(Debug)]
pub(super) struct News {
    /// Whether the Gateway, its class, parameters, ListenerSets, policies or ConfigMaps are.
    pub(super) of_frame: bool,
    /// Whether the data planes are reached elsewhere.
    pub(super) of_own_addresses: bool,
    /// Routes, normalised, or nothing for one that is gone.
    pub(super) routes: Vec<(ObjectKey, Option<Route>)>,
    pub(super) services: Vec<ObjectName>,
    /// Services with other EndpointSlices.
    pub(super) slices: Vec<ObjectName>,
    pub(super) reference_grants: Vec<Difference<Arc<ReferenceGrant>>>,
    pub(super) secrets: Vec<Difference<Arc<Secret>>>,
    pub(super) namespaces: Vec<Difference<Arc<Namespace>, Arc<str>>>,
}

impl Seen {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        Self {
            gateway: snapshot.gateway.clone(),
            class: snapshot.class.clone(),
            proxies: OfKind::new(&snapshot.referents.proxies),
            listener_sets: OfKind::new(&snapshot.listener_sets),
            http: OfKind::new(&snapshot.http_routes),
            grpc: OfKind::new(&snapshot.grpc_routes),
            tls: OfKind::new(&snapshot.tls_routes),
            tcp: OfKind::new(&snapshot.tcp_routes),
            udp: OfKind::new(&snapshot.udp_routes),
            backend_tls_policies: OfKind::new(&snapshot.backend_tls_policies),
            services: OfKind::new(&snapshot.referents.services),
            slices: OfKind::new(&snapshot.referents.endpoint_slices),
            reference_grants: OfKind::new(&snapshot.referents.reference_grants),
            secrets: OfKind::new(&snapshot.referents.secrets),
            config_maps: OfKind::new(&snapshot.referents.config_maps),
            namespaces: OfKind::new(&snapshot.referents.namespaces),
            quarantine: snapshot.referents.quarantine.clone(),
            pending: snapshot.referents.pending.clone(),
            own_addresses: snapshot.referents.own_addresses.clone(),
        }
    }

    /// What is different now; from then on that is what was seen.
    pub(super) fn update(&mut self, snapshot: &Snapshot) -> News {
        let gateway = std::mem::replace(&mut self.gateway, snapshot.gateway.clone());
        let class = std::mem::replace(&mut self.class, snapshot.class.clone());
        let referents = &snapshot.referents;
        let others = [
            !gateway.is_same(&snapshot.gateway),
            !class.is_same(&snapshot.class),
            !self.proxies.update(&referents.proxies).is_empty(),
            !self.listener_sets.update(&snapshot.listener_sets).is_empty(),
            !self.backend_tls_policies.update(&snapshot.backend_tls_policies).is_empty(),
            !self.config_maps.update(&referents.config_maps).is_empty(),
        ];
        let mut routes =
            normalised(Kind::HttpRoute, self.http.update(&snapshot.http_routes), normalise_http_route);
        routes.extend(normalised(
            Kind::GrpcRoute,
            self.grpc.update(&snapshot.grpc_routes),
            normalise_grpc_route,
        ));
        routes.extend(normalised(Kind::TlsRoute, self.tls.update(&snapshot.tls_routes), normalise_tls_route));
        routes.extend(normalised(Kind::TcpRoute, self.tcp.update(&snapshot.tcp_routes), normalise_tcp_route));
        routes.extend(normalised(Kind::UdpRoute, self.udp.update(&snapshot.udp_routes), normalise_udp_route));
        let mut news = News {
            of_frame: others.contains(&true),
            of_own_addresses: false,
            routes,
            services: names(self.services.update(&referents.services)),
            slices: names(self.slices.update(&referents.endpoint_slices)),
            reference_grants: self.reference_grants.update(&referents.reference_grants),
            secrets: self.secrets.update(&referents.secrets),
            namespaces: self.namespaces.update(&referents.namespaces),
        };
        let before = std::mem::replace(&mut self.quarantine, referents.quarantine.clone());
        news.add_quarantined(&before, snapshot);
        let before = std::mem::replace(&mut self.pending, referents.pending.clone());
        news.add_pending(&before, snapshot);
        let before = std::mem::replace(&mut self.own_addresses, referents.own_addresses.clone());
        news.of_own_addresses = !referents.own_addresses.changes(&before).is_empty();
        for (_, route) in &mut news.routes {
            *route = route.take().map(|route| refuse_rules(&referents.quarantine, route));
        }
        news
    }
}

impl News {
    /// Takes objects for different that have come into quarantine, have left it, or are there for another reason.
    fn add_quarantined(&mut self, before: &Quarantine, snapshot: &Snapshot) {
        let changes = snapshot.referents.quarantine.changes(before).into_iter();
        let objects: BTreeSet<&ObjectKey> = changes
            .map(|change| match change {
                Change::Added(origin, _) | Change::Replaced(origin, ..) | Change::Removed(origin, _) => {
                    &*origin.object
                }
            })
            .collect();
        for object in objects {
            let name = &object.name;
            match object.kind {
                Kind::HttpRoute | Kind::GrpcRoute if self.routes.iter().all(|(key, _)| key != object) => {
                    let http = || Some(normalise_http_route(snapshot.http_routes.get(name)?));
                    let grpc = || Some(normalise_grpc_route(snapshot.grpc_routes.get(name)?));
                    let route = if object.kind == Kind::HttpRoute { http() } else { grpc() };
                    self.routes.extend(route.map(|route| (object.clone(), Some(route))));
                }
                Kind::Service if !self.services.contains(name) => self.services.push(name.clone()),
                Kind::Secret => self.add_secret(name, snapshot),
                // Known to be different already, or nothing comes of it.
                Kind::HttpRoute
                | Kind::GrpcRoute
                | Kind::Service
                | Kind::Gateway
                | Kind::GatewayClass
                | Kind::ListenerSet
                | Kind::TlsRoute
                | Kind::TcpRoute
                | Kind::UdpRoute
                | Kind::BackendTlsPolicy
                | Kind::ReferenceGrant
                | Kind::IngressClass
                | Kind::Ingress
                | Kind::EndpointSlice
                | Kind::ConfigMap
                | Kind::Namespace
                | Kind::PingsixProxy => {}
            }
        }
    }

    /// Takes Secrets for different of which something is known now, or is no longer. Of ConfigMaps, the frame reads all.
    fn add_pending(&mut self, before: &Pending, snapshot: &Snapshot) {
        for change in snapshot.referents.pending.changes(before) {
            match change {
                Change::Added(key, ()) | Change::Removed(key, ()) if key.kind == Kind::Secret => {
                    self.add_secret(&key.name, snapshot);
                }
                Change::Added(..) | Change::Removed(..) => self.of_frame = true,
                Change::Replaced(..) => {}
            }
        }
    }

    /// Takes a Secret for different, though it may be the same object.
    fn add_secret(&mut self, name: &ObjectName, snapshot: &Snapshot) {
        if self.secrets.iter().all(|secret| secret.name != *name) {
            let now = snapshot.referents.secrets.get(name).cloned();
            self.secrets.push(Difference { name: name.clone(), before: now.clone(), now });
        }
    }
}

fn names<T>(differences: Vec<Difference<T>>) -> Vec<ObjectName> {
    differences.into_iter().map(|difference| difference.name).collect()
}

fn normalised<K>(
    kind: Kind,
    differences: Vec<Difference<Arc<K>>>,
    normalise: impl Fn(&K) -> Route,
) -> Vec<(ObjectKey, Option<Route>)> {
    let routes = differences
        .into_iter()
        .map(|Difference { name, now, .. }| (ObjectKey { kind, name }, now.map(|object| normalise(&object))));
    routes.collect()
}
