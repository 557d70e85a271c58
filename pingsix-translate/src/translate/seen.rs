//! Which objects of a snapshot are others than the last time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::ObjectName;
use crate::snapshot::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GrpcRoute, HttpRoute, ListenerSet, Namespace,
    ReferenceGrant, Secret, Service, Snapshot, TcpRoute, TlsRoute, UdpRoute,
};

/// The objects of one kind, as they were the last time, in the order of their names.
#[derive(Debug)]
pub(super) struct Seen<T>(Vec<(ObjectName, T)>);

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
    pub(super) fn new(objects: &BTreeMap<ObjectName, T>) -> Self {
        Self(objects.iter().map(|(name, object)| (name.clone(), object.clone())).collect())
    }

    /// What is different now; from then on that is what was seen.
    pub(super) fn update(&mut self, now: &BTreeMap<ObjectName, T>) -> Vec<Difference<T>> {
        let mut differences = Vec::new();
        let in_place = self.0.len() == now.len()
            && self.0.iter().zip(now.keys()).all(|((name, _), other)| is_same_name(name, other));
        if in_place {
            for ((name, held), object) in self.0.iter_mut().zip(now.values()) {
                if !held.is_same(object) {
                    *held = object.clone();
                    differences.push(Difference { name: name.clone(), now: Some(object.clone()) });
                }
            }
            return differences;
        }
        let mut before = std::mem::take(&mut self.0).into_iter().peekable();
        self.0.reserve(now.len());
        for (name, object) in now {
            while let Some((gone, _)) = before.next_if(|(other, _)| other < name) {
                differences.push(Difference { name: gone, now: None });
            }
            match before.next_if(|(other, _)| other == name) {
                Some((name, held)) if held.is_same(object) => self.0.push((name, held)),
                Some(_) | None => {
                    differences.push(Difference { name: name.clone(), now: Some(object.clone()) });
                    self.0.push((name.clone(), object.clone()));
                }
            }
        }
        differences.extend(before.map(|(name, _)| Difference { name, now: None }));
        differences
    }

    /// The names in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.0.iter().map(|(name, _)| name)
    }
}

fn is_same_name(one: &ObjectName, other: &ObjectName) -> bool {
    Arc::ptr_eq(&one.name, &other.name) && Arc::ptr_eq(&one.namespace, &other.namespace) || one == other
}

/// The objects that a [`super::Frame`] is made from.
#[derive(Debug)]
pub(super) struct SeenFrame {
    gateway: Arc<Gateway>,
    listener_sets: BTreeMap<ObjectName, Arc<ListenerSet>>,
    backend_tls_policies: BTreeMap<ObjectName, Arc<BackendTlsPolicy>>,
    reference_grants: BTreeMap<ObjectName, Arc<ReferenceGrant>>,
    secrets: BTreeMap<ObjectName, Arc<Secret>>,
    config_maps: BTreeMap<ObjectName, Arc<ConfigMap>>,
    namespaces: BTreeMap<Arc<str>, Arc<Namespace>>,
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
        fn same<N: Ord, K>(one: &BTreeMap<N, Arc<K>>, other: &BTreeMap<N, Arc<K>>) -> bool {
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
