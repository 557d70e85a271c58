//! The extract: the objects that one Gateway or IngressClass may use.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::snapshot::{
    AnyPolicy, AnyRoute, EndpointSlice, IngressSnapshot, OwnAddresses, OwnerSnapshot, Pending, Referents,
    Snapshot, class_of_ingress, config_maps_of_gateway, default_ingress_classes, proxy_of_class,
    proxy_of_gateway, proxy_of_ingress_class, references_of_ingress, secrets_of_gateway,
    secrets_of_listener_set, secrets_of_proxy, services_of_ingress,
};
use pingsix_translate::{
    Kind, ObjectKey, ObjectName, Quarantine, SharedMap, permitted_references,
    permitted_references_of_policies,
};

use super::edges::{Target, crossing};
use super::{KindStore, Stored, World};

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
    secrets: BTreeSet<ObjectName>,
    config_maps: BTreeSet<ObjectName>,
    namespaces: BTreeSet<Arc<str>>,
    proxies: BTreeSet<ObjectName>,
    http_route_filters: BTreeSet<ObjectName>,
    /// The permissions for references into other namespaces.
    crossings: BTreeSet<Target>,
}

impl World {
    /// The extract of an owner; `None` if the owner is absent or undecodable.
    pub fn extract(&self, owner: &ObjectKey) -> Option<Extract> {
        if owner.kind == Kind::Gateway {
            self.extract_gateway(&owner.name)
        } else {
            self.extract_ingress_class(&owner.name)
        }
    }

    fn extract_gateway(&self, name: &ObjectName) -> Option<Extract> {
        let gateway = self.get(name)?;
        let parent = Target::Object(ObjectKey { kind: Kind::Gateway, name: name.clone() });
        let listener_sets = picked(&self.listener_sets, self.listener_sets.members(&parent));
        let mut parents = vec![parent];
        parents.extend(
            listener_sets
                .keys()
                .map(|name| Target::Object(ObjectKey { kind: Kind::ListenerSet, name: name.clone() })),
        );
        let mut names = Names::default();
        names.namespaces.insert(name.namespace.clone());
        names.namespaces.extend(listener_sets.keys().map(|name| name.namespace.clone()));
        let routes = names.routes(self, &parents);
        names.cross(Kind::Gateway, name, &secrets_of_gateway(&gateway, &name.namespace));
        names.cross(Kind::Gateway, name, &config_maps_of_gateway(&gateway, &name.namespace));
        for (name, set) in &listener_sets {
            names.cross(Kind::ListenerSet, name, &secrets_of_listener_set(set, &name.namespace));
        }
        let class = self.get(&ObjectName::new("", gateway.spec.gateway_class_name.as_str()));
        names.proxies.extend(class.as_deref().and_then(proxy_of_class));
        names.proxies.extend(proxy_of_gateway(&gateway, &name.namespace));
        names.secrets.extend(self.secrets_of_proxies(&names.proxies));
        let targets = parents.iter().cloned().chain(routes.keys().cloned().map(Target::Object));
        let policies = names.policies(self, targets, |_| true);
        let mut referents = self.referents(&names);
        // The permissions depend on ReferenceGrants and on labels of Namespaces, so they follow the other referents.
        let permitted = permitted_references(&gateway, &listener_sets, &policies, &referents);
        names.permit(permitted);
        referents.secrets = picked(&self.secrets, &names.secrets);
        referents.config_maps = picked(&self.config_maps, &names.config_maps);
        let snapshot = Snapshot { gateway, class, listener_sets, routes, policies, referents };
        Some(Extract { snapshot: OwnerSnapshot::Gateway(Box::new(snapshot)), referenced: names.referenced() })
    }

    fn extract_ingress_class(&self, name: &ObjectName) -> Option<Extract> {
        let class = self.get(name)?;
        let default_classes = self.default_classes();
        let own = Target::Object(ObjectKey { kind: Kind::IngressClass, name: name.clone() });
        let mut ingresses = picked(&self.ingresses, self.ingresses.members(&own));
        if default_classes.first().is_some_and(|default| **default == *name.name) {
            let defaulted = picked(&self.ingresses, self.ingresses.members(&Target::DefaultIngressClass));
            ingresses.extend(defaulted.iter().map(|(name, ingress)| (name.clone(), ingress.clone())));
        }
        debug_assert!(
            ingresses
                .values()
                .all(|ingress| class_of_ingress(ingress).is_none_or(|class| *class == *name.name))
        );
        let mut names = Names::default();
        for (name, ingress) in &ingresses {
            names.services.extend(services_of_ingress(ingress, &name.namespace));
            names.permit(references_of_ingress(ingress, &name.namespace));
        }
        names.proxies.extend(proxy_of_ingress_class(&class));
        names.secrets.extend(self.secrets_of_proxies(&names.proxies));
        let keys = ingresses.keys().map(|name| ObjectKey { kind: Kind::Ingress, name: name.clone() });
        let policies = names.policies(self, keys.map(Target::Object), AnyPolicy::is_for_ingresses);
        let mut referents = self.referents(&names);
        // Permission takes the ReferenceGrants.
        let permitted = permitted_references_of_policies(&policies, &referents);
        names.permit(permitted);
        referents.secrets = picked(&self.secrets, &names.secrets);
        referents.config_maps = picked(&self.config_maps, &names.config_maps);
        let snapshot = IngressSnapshot { class, default_classes, ingresses, policies, referents };
        Some(Extract { snapshot: OwnerSnapshot::Ingress(Box::new(snapshot)), referenced: names.referenced() })
    }

    /// The classes with the mark of the default, in the order of precedence.
    pub(super) fn default_classes(&self) -> Vec<Arc<str>> {
        let marked = self.ingress_classes.dependents(&Target::DefaultIngressClass);
        let marked = picked(&self.ingress_classes, marked);
        default_ingress_classes(marked.values().map(AsRef::as_ref))
    }

    /// The Secrets that these parameters name.
    pub(super) fn secrets_of_proxies(&self, proxies: &BTreeSet<ObjectName>) -> BTreeSet<ObjectName> {
        let proxies = picked(&self.proxies, proxies);
        proxies.iter().flat_map(|(name, proxy)| secrets_of_proxy(proxy, &name.namespace)).collect()
    }

    fn referents(&self, names: &Names) -> Referents {
        let services = picked(&self.services, &names.services);
        let mut endpoint_slices: Vec<(ObjectName, Vec<Arc<EndpointSlice>>)> = Vec::new();
        for service in &names.services {
            let slices = self.slices_of(service);
            if !slices.is_empty() {
                let name = services.get(service).map_or(service, |service| &service.name);
                endpoint_slices.push((name.clone(), slices));
            }
        }
        Referents {
            services,
            endpoint_slices: endpoint_slices.into_iter().collect(),
            reference_grants: picked(
                &self.reference_grants,
                names.crossings.iter().flat_map(|crossing| self.reference_grants.members(crossing)),
            ),
            secrets: picked(&self.secrets, &names.secrets),
            config_maps: picked(&self.config_maps, &names.config_maps),
            namespaces: names
                .namespaces
                .iter()
                .filter_map(|name| Some((name.clone(), self.get(&ObjectName::new("", name.clone()))?)))
                .collect(),
            proxies: picked(&self.proxies, &names.proxies),
            http_route_filters: picked(&self.http_route_filters, &names.http_route_filters),
            quarantine: Quarantine::new(),
            pending: Pending::new(),
            own_addresses: OwnAddresses::new(),
        }
    }
}

/// The existing, decodable objects with these names. The keys share the names of the objects.
pub(super) fn picked<'a, K: Stored>(
    store: &KindStore<K>,
    names: impl IntoIterator<Item = &'a ObjectName>,
) -> SharedMap<ObjectName, Arc<K>> {
    let object = |name: &ObjectName| {
        let watched = store.get(name)?;
        Some((watched.name(), watched.object()?.clone()))
    };
    names.into_iter().filter_map(object).collect()
}

impl Names {
    /// The routes with one of these parents. Adds the references of the routes.
    fn routes(&mut self, world: &World, parents: &[Target]) -> SharedMap<ObjectKey, AnyRoute> {
        let mut routes = Vec::new();
        for (kind, parent) in Kind::routes().flat_map(|kind| parents.iter().map(move |parent| (kind, parent)))
        {
            let names = world.members(kind, parent).into_iter();
            let children = names.filter_map(|name| world.route(&ObjectKey { kind, name: name.clone() }));
            routes.extend(children.map(|route| (route.key(), route)));
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
        world: &World,
        targets: impl Iterator<Item = Target>,
        is_of_owner: impl Fn(&AnyPolicy) -> bool,
    ) -> SharedMap<ObjectKey, AnyPolicy> {
        let services = self.services.iter();
        let services =
            services.map(|name| Target::Object(ObjectKey { kind: Kind::Service, name: name.clone() }));
        let keys: BTreeSet<ObjectKey> =
            services.chain(targets).flat_map(|target| world.policies_of(&target)).collect();
        let policies = keys.into_iter().filter_map(|key| {
            let policy = world.policy(&key).filter(&is_of_owner)?;
            Some((key, policy))
        });
        let policies: SharedMap<ObjectKey, AnyPolicy> = policies.collect();
        for (ObjectKey { kind, name }, policy) in &policies {
            self.cross(*kind, name, policy.references().iter().map(|referent| &referent.name));
        }
        policies
    }

    /// Adds permitted Secrets and ConfigMaps.
    fn permit(&mut self, references: impl IntoIterator<Item = ObjectKey>) {
        for ObjectKey { kind, name } in references {
            let names = if kind == Kind::Secret { &mut self.secrets } else { &mut self.config_maps };
            names.insert(name);
        }
    }

    /// Adds the permissions for references of an object into other namespaces.
    fn cross<'a>(&mut self, kind: Kind, from: &ObjectName, to: impl IntoIterator<Item = &'a ObjectName>) {
        let foreign = to.into_iter().filter(|to| to.namespace != from.namespace);
        let crossings = foreign.map(|to| crossing(kind, from.namespace.clone(), to.namespace.clone()));
        self.crossings.extend(crossings);
    }

    /// The objects to watch by name.
    fn referenced(self) -> BTreeSet<ObjectKey> {
        let secrets = self.secrets.into_iter().map(|name| ObjectKey { kind: Kind::Secret, name });
        let config_maps = self.config_maps.into_iter().map(|name| ObjectKey { kind: Kind::ConfigMap, name });
        secrets.chain(config_maps).collect()
    }
}
