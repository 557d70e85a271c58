//! Which objects of a snapshot are others than the last time.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::crd::PingsixProxy;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::{Change, SharedMap};
use crate::snapshot::{
    ConfigMap, EndpointSlice, Namespace, OwnAddresses, Pending, Quarantine, ReferenceGrant, Referents,
    Secret, Service,
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
pub(super) trait Identity: Clone {
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
pub(super) struct OfKind<T, N = ObjectName>(SharedMap<N, T>);

impl<T: Identity, N: Ord + Clone> OfKind<T, N> {
    pub(super) fn new(objects: &SharedMap<N, T>) -> Self {
        Self(objects.clone())
    }

    /// What is different now; from then on that is what was seen.
    pub(super) fn update(&mut self, now: &SharedMap<N, T>) -> Vec<Difference<T, N>> {
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

/// The objects that others refer to.
#[derive(Debug)]
pub(super) struct Seen {
    proxies: OfKind<Arc<PingsixProxy>>,
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

/// What is different about them.
#[derive(Debug)]
pub(super) struct News {
    /// Whether parameters are.
    pub(super) of_proxies: bool,
    /// Whether ConfigMaps are, or what is known of them.
    pub(super) of_config_maps: bool,
    /// Whether the data planes are reached elsewhere.
    pub(super) of_own_addresses: bool,
    pub(super) services: Vec<ObjectName>,
    /// Services with other EndpointSlices.
    pub(super) slices: Vec<ObjectName>,
    pub(super) reference_grants: Vec<Difference<Arc<ReferenceGrant>>>,
    pub(super) secrets: Vec<Difference<Arc<Secret>>>,
    pub(super) namespaces: Vec<Difference<Arc<Namespace>, Arc<str>>>,
    /// Objects that have come into quarantine, have left it, or are there for another reason. Services and Secrets are among
    /// those above.
    pub(super) quarantined: BTreeSet<ObjectKey>,
}

impl Seen {
    pub(super) fn new(referents: &Referents) -> Self {
        Self {
            proxies: OfKind::new(&referents.proxies),
            services: OfKind::new(&referents.services),
            slices: OfKind::new(&referents.endpoint_slices),
            reference_grants: OfKind::new(&referents.reference_grants),
            secrets: OfKind::new(&referents.secrets),
            config_maps: OfKind::new(&referents.config_maps),
            namespaces: OfKind::new(&referents.namespaces),
            quarantine: referents.quarantine.clone(),
            pending: referents.pending.clone(),
            own_addresses: referents.own_addresses.clone(),
        }
    }

    /// What is different now; from then on that is what was seen.
    pub(super) fn update(&mut self, referents: &Referents) -> News {
        let mut news = News {
            of_proxies: !self.proxies.update(&referents.proxies).is_empty(),
            of_config_maps: !self.config_maps.update(&referents.config_maps).is_empty(),
            of_own_addresses: false,
            services: names(self.services.update(&referents.services)),
            slices: names(self.slices.update(&referents.endpoint_slices)),
            reference_grants: self.reference_grants.update(&referents.reference_grants),
            secrets: self.secrets.update(&referents.secrets),
            namespaces: self.namespaces.update(&referents.namespaces),
            quarantined: BTreeSet::new(),
        };
        let before = std::mem::replace(&mut self.quarantine, referents.quarantine.clone());
        news.add_quarantined(&before, referents);
        let before = std::mem::replace(&mut self.pending, referents.pending.clone());
        news.add_pending(&before, referents);
        let before = std::mem::replace(&mut self.own_addresses, referents.own_addresses.clone());
        news.of_own_addresses = !referents.own_addresses.changes(&before).is_empty();
        news
    }
}

impl News {
    /// Takes objects for different that have come into quarantine, have left it, or are there for another reason.
    fn add_quarantined(&mut self, before: &Quarantine, referents: &Referents) {
        let changes = referents.quarantine.changes(before).into_iter();
        self.quarantined = changes
            .map(|change| match change {
                Change::Added(origin, _) | Change::Replaced(origin, ..) | Change::Removed(origin, _) => {
                    (*origin.object).clone()
                }
            })
            .collect();
        for ObjectKey { kind, name } in self.quarantined.clone() {
            match kind {
                Kind::Service if !self.services.contains(&name) => self.services.push(name),
                Kind::Secret => self.add_secret(&name, referents),
                // Known to be different already, up to the owner, or nothing comes of it.
                Kind::Service
                | Kind::HttpRoute
                | Kind::GrpcRoute
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

    /// Takes Secrets for different of which something is known now, or is no longer, and ConfigMaps altogether.
    fn add_pending(&mut self, before: &Pending, referents: &Referents) {
        for change in referents.pending.changes(before) {
            match change {
                Change::Added(key, ()) | Change::Removed(key, ()) if key.kind == Kind::Secret => {
                    self.add_secret(&key.name, referents);
                }
                Change::Added(..) | Change::Removed(..) => self.of_config_maps = true,
                Change::Replaced(..) => {}
            }
        }
    }

    /// Takes a Secret for different, though it may be the same object.
    fn add_secret(&mut self, name: &ObjectName, referents: &Referents) {
        if self.secrets.iter().all(|secret| secret.name != *name) {
            let now = referents.secrets.get(name).cloned();
            self.secrets.push(Difference { name: name.clone(), before: now.clone(), now });
        }
    }
}

fn names<T>(differences: Vec<Difference<T>>) -> Vec<ObjectName> {
    differences.into_iter().map(|difference| difference.name).collect()
}
