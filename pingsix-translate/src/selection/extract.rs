//! The selection of the objects of one owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::edges::Target;
use super::index::IndexedObjects;
use super::source::{ObjectSource, existing};
use crate::attach::{permitted_references, permitted_references_of_policies};
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::SharedMap;
use crate::snapshot::{
    AnyPolicy, AnyRoute, EndpointSlice, IngressSnapshot, Objects, OwnAddresses, OwnerSnapshot, Pending,
    Proxies, Quarantine, Referents, Snapshot, class_or_default, proxy_of_class, proxy_of_gateway,
    proxy_of_ingress_class, references_of_gateway, references_of_ingress, references_of_listener_set,
    references_of_proxy, services_of_ingress,
};

/// A snapshot, and the objects to watch by name for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Extract {
    /// The objects that the owner may use.
    pub snapshot: OwnerSnapshot,
    /// The permitted references to Secrets and ConfigMaps, whether the objects exist or not.
    pub referenced: BTreeSet<ObjectKey>,
}

/// The names of a snapshot's references.
#[derive(Debug, Default)]
struct Names {
    services: BTreeSet<ObjectName>,
    /// Secrets and ConfigMaps.
    references: BTreeSet<ObjectKey>,
    namespaces: BTreeSet<Arc<str>>,
    proxies: BTreeSet<ObjectName>,
    http_route_filters: BTreeSet<ObjectName>,
    /// The permissions for references into other namespaces.
    crossings: BTreeSet<Target>,
}

impl Extract {
    /// The extract of a Gateway or an IngressClass; `None` if the owner is absent or undecodable.
    pub fn new(source: &impl ObjectSource, owner: &ObjectKey) -> Option<Self> {
        let mut names = Names::default();
        let snapshot = if owner.kind == Kind::Gateway {
            OwnerSnapshot::Gateway(Box::new(names.gateway(source, &owner.name)?))
        } else {
            OwnerSnapshot::Ingress(Box::new(names.ingress_class(source, &owner.name)?))
        };
        Some(Self { snapshot, referenced: names.references })
    }
}

impl Objects {
    /// The snapshot of a Gateway; `None` if the Gateway does not exist. For the snapshots of several owners, an
    /// [`Extract`] of [`IndexedObjects`] reads the objects once.
    pub fn snapshot(&self, gateway: &ObjectName) -> Option<Snapshot> {
        Names::default().gateway(&IndexedObjects::from(self.clone()), gateway)
    }

    /// The snapshot of an IngressClass; `None` if the class does not exist.
    ///
    /// The class has the Ingresses for which [`class_or_default`] returns it.
    pub fn ingress_snapshot(&self, class: &str) -> Option<IngressSnapshot> {
        Names::default().ingress_class(&IndexedObjects::from(self.clone()), &ObjectName::new("", class))
    }
}

impl Names {
    fn gateway(&mut self, source: &impl ObjectSource, name: &ObjectName) -> Option<Snapshot> {
        let gateway = source.get(name)?;
        let parent = Target::object(Kind::Gateway, name);
        let listener_sets = existing(source, source.members(Kind::ListenerSet, &parent));
        let mut parents = vec![parent];
        parents.extend(listener_sets.keys().map(|name| Target::object(Kind::ListenerSet, name)));
        self.namespaces.insert(name.namespace.clone());
        self.namespaces.extend(listener_sets.keys().map(|name| name.namespace.clone()));
        let routes = self.routes(source, &parents);
        self.cross(Kind::Gateway, name, names_of(&references_of_gateway(&gateway, &name.namespace)));
        for (name, set) in &listener_sets {
            let references = references_of_listener_set(set, &name.namespace);
            self.cross(Kind::ListenerSet, name, names_of(&references));
        }
        let class = source.get(&ObjectName::new("", gateway.spec.gateway_class_name.as_str()));
        self.proxies.extend(class.as_deref().and_then(proxy_of_class));
        self.proxies.extend(proxy_of_gateway(&gateway, &name.namespace));
        let targets = parents.into_iter().chain(routes.keys().cloned().map(Target::Object));
        let policies = self.policies(source, targets, |_| true);
        // The permissions depend on ReferenceGrants and on labels of Namespaces, so Secrets and ConfigMaps follow.
        let mut referents = self.referents(source);
        self.references.extend(permitted_references(&gateway, &listener_sets, &policies, &referents));
        self.add_permitted(source, &mut referents);
        Some(Snapshot { gateway, class, listener_sets, routes, policies, referents })
    }

    fn ingress_class(&mut self, source: &impl ObjectSource, name: &ObjectName) -> Option<IngressSnapshot> {
        let class = source.get(name)?;
        let default_classes = source.default_classes();
        let mut members = source.members(Kind::Ingress, &Target::object(Kind::IngressClass, name));
        if default_classes.first().is_some_and(|default| **default == *name.name) {
            members.extend(source.members(Kind::Ingress, &Target::DefaultIngressClass));
        }
        let ingresses = existing(source, members);
        debug_assert!(
            ingresses
                .values()
                .all(|ingress| class_or_default(ingress, &default_classes) == Some(&*name.name))
        );
        for (name, ingress) in &ingresses {
            self.services.extend(services_of_ingress(ingress, &name.namespace));
            self.references.extend(references_of_ingress(ingress, &name.namespace));
        }
        self.proxies.extend(proxy_of_ingress_class(&class));
        let targets = ingresses.keys().map(|name| Target::object(Kind::Ingress, name));
        let policies = self.policies(source, targets, AnyPolicy::is_for_ingresses);
        let mut referents = self.referents(source);
        self.references.extend(permitted_references_of_policies(&policies, &referents));
        self.add_permitted(source, &mut referents);
        Some(IngressSnapshot { class, default_classes, ingresses, policies, referents })
    }

    /// The existing referents, without Secrets and ConfigMaps.
    fn referents(&self, source: &impl ObjectSource) -> Referents {
        let services = existing(source, self.services.iter().cloned());
        let mut endpoint_slices: Vec<(ObjectName, Vec<Arc<EndpointSlice>>)> = Vec::new();
        for service in &self.services {
            let slices = source.slices_of(service);
            if !slices.is_empty() {
                endpoint_slices.push((service.clone(), slices));
            }
        }
        let grants =
            self.crossings.iter().flat_map(|crossing| source.members(Kind::ReferenceGrant, crossing));
        let namespaces = self
            .namespaces
            .iter()
            .filter_map(|name| Some((name.clone(), source.get(&ObjectName::new("", name.clone()))?)));
        Referents {
            services,
            endpoint_slices: endpoint_slices.into_iter().collect(),
            reference_grants: existing(source, grants),
            secrets: SharedMap::new(),
            config_maps: SharedMap::new(),
            namespaces: namespaces.collect(),
            proxies: existing(source, self.proxies.iter().cloned()),
            http_route_filters: existing(source, self.http_route_filters.iter().cloned()),
            quarantine: Quarantine::new(),
            pending: Pending::new(),
            own_addresses: OwnAddresses::new(),
        }
    }

    /// Adds the permitted Secrets and ConfigMaps, and the Secrets of the parameters.
    fn add_permitted(&mut self, source: &impl ObjectSource, referents: &mut Referents) {
        self.references.extend(references_of_proxies(&referents.proxies));
        let of_kind = |kind| self.references.iter().filter(move |reference| reference.kind == kind);
        referents.secrets = existing(source, names_of(of_kind(Kind::Secret)).cloned());
        referents.config_maps = existing(source, names_of(of_kind(Kind::ConfigMap)).cloned());
    }

    /// The routes with one of these parents. Adds the references of the routes.
    fn routes(&mut self, source: &impl ObjectSource, parents: &[Target]) -> SharedMap<ObjectKey, AnyRoute> {
        let mut routes = Vec::new();
        for (kind, parent) in Kind::routes().flat_map(|kind| parents.iter().map(move |parent| (kind, parent)))
        {
            let children = source.members(kind, parent).into_iter().map(|name| ObjectKey { kind, name });
            routes.extend(children.filter_map(|key| {
                let route = AnyRoute::of(source.object(&key)?)?;
                Some((key, route))
            }));
        }
        let routes: SharedMap<ObjectKey, AnyRoute> = routes.into_iter().collect();
        for (ObjectKey { kind, name }, route) in &routes {
            self.namespaces.insert(name.namespace.clone());
            self.cross(*kind, name, route.services());
            self.services.extend(route.services().iter().cloned());
            self.http_route_filters.extend(route.filters().iter().cloned());
        }
        routes
    }

    /// The policies of the owner with one of these targets, or with one of the Services as a target. Adds the permissions
    /// for their references.
    fn policies(
        &mut self,
        source: &impl ObjectSource,
        targets: impl Iterator<Item = Target>,
        is_of_owner: impl Fn(&AnyPolicy) -> bool,
    ) -> SharedMap<ObjectKey, AnyPolicy> {
        let targets = self.services.iter().map(Target::service).chain(targets);
        let keys: BTreeSet<ObjectKey> = targets.flat_map(|target| source.policies_of(&target)).collect();
        let policies = keys.into_iter().filter_map(|key| {
            let policy = AnyPolicy::of(source.object(&key)?).filter(&is_of_owner)?;
            Some((key, policy))
        });
        let policies: SharedMap<ObjectKey, AnyPolicy> = policies.collect();
        for (ObjectKey { kind, name }, policy) in &policies {
            self.cross(*kind, name, names_of(&policy.references()));
        }
        policies
    }

    /// Adds the permissions for references of an object into other namespaces.
    fn cross<'a>(&mut self, kind: Kind, from: &ObjectName, to: impl IntoIterator<Item = &'a ObjectName>) {
        let foreign = to.into_iter().filter(|to| to.namespace != from.namespace);
        let crossings =
            foreign.map(|to| Target::crossing(kind, from.namespace.clone(), to.namespace.clone()));
        self.crossings.extend(crossings);
    }
}

fn names_of<'a>(references: impl IntoIterator<Item = &'a ObjectKey>) -> impl Iterator<Item = &'a ObjectName> {
    references.into_iter().map(|reference| &reference.name)
}

/// The Secrets that these parameters name.
pub(super) fn references_of_proxies(proxies: &Proxies) -> BTreeSet<ObjectKey> {
    proxies.iter().flat_map(|(name, proxy)| references_of_proxy(proxy, &name.namespace)).collect()
}
