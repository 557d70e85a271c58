//! Which objects of a snapshot are others than the last time.

use std::sync::Arc;

use crate::object::ObjectName;
use crate::shared_map::{Change, SharedMap};
use crate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GrpcRoute, HttpRoute, ListenerSet, Namespace,
    ReferenceGrant, Secret, Service, Snapshot, TcpRoute, TlsRoute, UdpRoute,
};

/// The objects of one kind, as they were the last time.
#[derive(Debug)]
pub(super) struct Seen<T>(SharedMap<ObjectName, T>);

/// An object that is another one than the last time, or new, or gone.
#[derive(Debug)]
pub(super) struct Difference<T> {
    pub(super) name: ObjectName,
    /// Nothing if it is gone.
    pub(super) now: Option<T>,
}

/// What can be told from another without looking into it.
pub(super) trait Identity: Clone {
    fn is_same(&self, other: &Self) -> bool;
}

impl<K> Identity for Arc<K> {
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl<K> Identity for Vec<Arc<K>> {
    fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl<T: Identity> Seen<T> {
    pub(super) fn new(objects: &SharedMap<ObjectName, T>) -> Self {
        Self(objects.clone())
    }

    /// What is different now; from then on that is what was seen.
    pub(super) fn update(&mut self, now: &SharedMap<ObjectName, T>) -> Vec<Difference<T>> {
        let changes = now.changes(&self.0).into_iter();
        let differences = changes
            .filter_map(|change| {
                let (name, now) = match change {
                    Change::Replaced(_, before, now) if before.is_same(now) => return None,
                    Change::Added(name, now) | Change::Replaced(name, _, now) => (name, Some(now.clone())),
                    Change::Removed(name, _) => (name, None),
                };
                Some(Difference { name: name.clone(), now })
            })
            .collect();
        self.0 = now.clone();
        differences
    }

    /// The names in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.0.keys()
    }
}

/// The objects that a [`super::Frame`] is made from.
#[derive(Debug)]
pub(super) struct SeenFrame {
    gateway: Arc<Gateway>,
    listener_sets: SharedMap<ObjectName, Arc<ListenerSet>>,
    backend_tls_policies: SharedMap<ObjectName, Arc<BackendTlsPolicy>>,
    reference_grants: SharedMap<ObjectName, Arc<ReferenceGrant>>,
    secrets: SharedMap<ObjectName, Arc<Secret>>,
    config_maps: SharedMap<ObjectName, Arc<ConfigMap>>,
    namespaces: SharedMap<Arc<str>, Arc<Namespace>>,
}

impl SeenFrame {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        Self {
            gateway: snapshot.gateway.clone(),
            listener_sets: snapshot.listener_sets.clone(),
            backend_tls_policies: snapshot.backend_tls_policies.clone(),
            reference_grants: snapshot.referents.reference_grants.clone(),
            secrets: snapshot.referents.secrets.clone(),
            config_maps: snapshot.referents.config_maps.clone(),
            namespaces: snapshot.referents.namespaces.clone(),
        }
    }

    pub(super) fn is_same(&self, snapshot: &Snapshot) -> bool {
        fn same<N: Ord, K>(one: &SharedMap<N, Arc<K>>, other: &SharedMap<N, Arc<K>>) -> bool {
            let alike = one.values().zip(other.values()).all(|(one, other)| Arc::ptr_eq(one, other));
            one.len() == other.len() && alike && one.keys().eq(other.keys())
        }
        Arc::ptr_eq(&self.gateway, &snapshot.gateway)
            && same(&self.listener_sets, &snapshot.listener_sets)
            && same(&self.backend_tls_policies, &snapshot.backend_tls_policies)
            && same(&self.reference_grants, &snapshot.referents.reference_grants)
            && same(&self.secrets, &snapshot.referents.secrets)
            && same(&self.config_maps, &snapshot.referents.config_maps)
            && same(&self.namespaces, &snapshot.referents.namespaces)
    }
}

/// Routes, Services and EndpointSlices.
#[derive(Debug)]
pub(super) struct SeenRoutes {
    pub(super) http: Seen<Arc<HttpRoute>>,
    pub(super) grpc: Seen<Arc<GrpcRoute>>,
    pub(super) tls: Seen<Arc<TlsRoute>>,
    pub(super) tcp: Seen<Arc<TcpRoute>>,
    pub(super) udp: Seen<Arc<UdpRoute>>,
    pub(super) services: Seen<Arc<Service>>,
    pub(super) slices: Seen<Vec<Arc<EndpointSlice>>>,
}

impl SeenRoutes {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        Self {
            http: Seen::new(&snapshot.http_routes),
            grpc: Seen::new(&snapshot.grpc_routes),
            tls: Seen::new(&snapshot.tls_routes),
            tcp: Seen::new(&snapshot.tcp_routes),
            udp: Seen::new(&snapshot.udp_routes),
            services: Seen::new(&snapshot.referents.services),
            slices: Seen::new(&snapshot.referents.endpoint_slices),
        }
    }
}
