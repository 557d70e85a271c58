//! Snapshot: the closed set of objects one owner of data planes may see.

mod authority_ref;
mod endpoint_slice;
mod frontend;
mod ingress;
mod kinds;
mod metadata;
mod objects;
mod owner;
mod part;
mod policy_object;
mod pool;
mod ports;
mod references;
mod referents;
mod refresh;
mod route_spec;
mod routes;
mod service;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(crate) use authority_ref::AuthorityRef;
pub use endpoint_slice::{Endpoint, EndpointSlice, EndpointState};
pub(crate) use frontend::FrontendValidation;
pub use gateway_api::gateways::{GatewayListeners, GatewaySpec};
pub use ingress::{IngressSnapshot, class_of_ingress, default_ingress_classes};
pub use kinds::*;
pub(crate) use metadata::key_of;
pub use metadata::{Identified, Metadata, OfKind};
pub use objects::{Object, Objects};
pub use owner::OwnerSnapshot;
pub(crate) use part::Part;
pub use policy_object::{AnyPolicy, PolicyObject, TargetRef};
pub use pool::Pool;
pub use ports::{EndpointPort, Protocol, ServicePort};
pub(crate) use references::named_referent;
pub use references::{
    backends_of_ingress, config_maps_of_gateway, proxy_of_class, proxy_of_gateway, proxy_of_ingress_class,
    references_of_ingress, secrets_of_gateway, secrets_of_listener_set, secrets_of_proxy, service_of_slice,
    services_of_ingress,
};
pub use referents::{OwnAddress, OwnAddresses, Pending, Proxies, Quarantine, Referents};
pub use route_spec::{AnyRoute, GrpcRoute, HttpRoute, TcpRoute, TlsRoute, UdpRoute};
pub use routes::{RouteObject, RouteSpec};
pub use service::Service;

use crate::model::{GATEWAY_GROUP, Kind, ObjectKey, ObjectName};
use crate::shared_map::SharedMap;

/// The input of translation for one Gateway, from [`Objects::snapshot`] or built by hand.
///
/// A [`Translator`](crate::Translator) finds the differences from the last snapshot by [`SharedMap::changes`], which is
/// cheap if one map is a changed copy of the other. Only the cost depends on that.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The Gateway.
    pub gateway: Arc<Gateway>,
    /// The GatewayClass, if it exists.
    pub class: Option<Arc<GatewayClass>>,
    /// ListenerSets whose parentRef is the Gateway, by name.
    pub listener_sets: SharedMap<ObjectName, Arc<ListenerSet>>,
    /// Routes of all kinds with a parentRef to the Gateway or one of its ListenerSets, by kind, then by name.
    pub routes: SharedMap<ObjectKey, AnyRoute>,
    /// Policies of all kinds that target the Gateway, one of its ListenerSets, one of the routes or a Service to which one of
    /// them refers, by kind, then by name.
    pub policies: SharedMap<ObjectKey, AnyPolicy>,
    /// The objects to which all of these refer.
    pub referents: Referents,
}

/// Names of [`Referents`].
#[derive(Clone, Debug, Default)]
struct ReferentNames {
    services: BTreeSet<ObjectName>,
    secrets: BTreeSet<ObjectName>,
    config_maps: BTreeSet<ObjectName>,
    namespaces: BTreeSet<Arc<str>>,
    proxies: BTreeSet<ObjectName>,
    http_route_filters: BTreeSet<ObjectName>,
}

impl Objects {
    /// The snapshot of a Gateway; `None` if the Gateway does not exist.
    pub fn snapshot(&self, gateway: &ObjectName) -> Option<Snapshot> {
        let object = self.gateways.get(gateway)?;
        let listener_sets: SharedMap<ObjectName, Arc<ListenerSet>> = self
            .listener_sets
            .iter()
            .filter(|(name, set)| parent_of_listener_set(name, set).as_ref() == Some(gateway))
            .map(|(name, set)| (name.clone(), set.clone()))
            .collect();

        let mut names = ReferentNames::default();
        names.namespaces.insert(gateway.namespace.clone());
        names.namespaces.extend(listener_sets.keys().map(|name| name.namespace.clone()));
        let mut parents = BTreeSet::from([ObjectKey { kind: Kind::Gateway, name: gateway.clone() }]);
        parents.extend(
            listener_sets.keys().map(|name| ObjectKey { kind: Kind::ListenerSet, name: name.clone() }),
        );
        let routes = names.routes(self.routes(), &parents);
        names.secrets.extend(secrets_of_gateway(object, &gateway.namespace));
        names.config_maps.extend(config_maps_of_gateway(object, &gateway.namespace));
        for (name, set) in &listener_sets {
            names.secrets.extend(secrets_of_listener_set(set, &name.namespace));
        }
        let class = self.gateway_classes.get(&ObjectName::new("", object.spec.gateway_class_name.as_str()));
        names.proxies.extend(class.and_then(|class| proxy_of_class(class)));
        names.proxies.extend(proxy_of_gateway(object, &gateway.namespace));
        let policies = names.policies(self.policies(), |target| {
            parents.contains(target) || (target.kind.is_route() && routes.contains_key(target))
        });
        Some(Snapshot {
            gateway: object.clone(),
            class: class.cloned(),
            listener_sets,
            routes,
            policies,
            referents: self.referents(&names),
        })
    }

    fn referents(&self, names: &ReferentNames) -> Referents {
        let mut endpoint_slices: BTreeMap<ObjectName, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
        for slice in self.endpoint_slices.values() {
            if let Some(service) = service_of_slice(slice)
                && names.services.contains(&service)
            {
                endpoint_slices.entry(service).or_default().push(slice.clone());
            }
        }
        let targets = names.services.iter().chain(&names.secrets).chain(&names.config_maps);
        let referred: BTreeSet<&Arc<str>> = targets.map(|target| &target.namespace).collect();
        Referents {
            services: pick(&self.services, &names.services),
            endpoint_slices: endpoint_slices.into_iter().collect(),
            reference_grants: self
                .reference_grants
                .iter()
                .filter(|(name, _)| referred.contains(&name.namespace))
                .map(|(name, grant)| (name.clone(), grant.clone()))
                .collect(),
            secrets: pick(&self.secrets, &names.secrets),
            config_maps: pick(&self.config_maps, &names.config_maps),
            namespaces: self
                .namespaces
                .iter()
                .filter(|(name, _)| names.namespaces.contains(&*name.name))
                .map(|(name, namespace)| (Arc::from(&*name.name), namespace.clone()))
                .collect(),
            proxies: pick(&self.proxies, &names.proxies),
            http_route_filters: pick(&self.http_route_filters, &names.http_route_filters),
            quarantine: Quarantine::new(),
            pending: Pending::new(),
            own_addresses: OwnAddresses::new(),
        }
    }
}

impl ReferentNames {
    /// The policies with such a target, or with one of the Services as a target. Adds the names of their referents.
    fn policies(
        &mut self,
        policies: impl Iterator<Item = AnyPolicy>,
        is_target: impl Fn(&ObjectKey) -> bool,
    ) -> SharedMap<ObjectKey, AnyPolicy> {
        let is_service =
            |target: &ObjectKey| target.kind == Kind::Service && self.services.contains(&target.name);
        let is_target = |target: &ObjectKey| is_service(target) || is_target(target);
        let policies = policies.filter(|policy| policy.targets().iter().any(&is_target));
        let policies: SharedMap<ObjectKey, AnyPolicy> =
            policies.map(|policy| (policy.key(), policy)).collect();
        self.add(policies.values().flat_map(AnyPolicy::references));
        policies
    }

    /// Adds Secrets and ConfigMaps.
    fn add(&mut self, references: impl IntoIterator<Item = ObjectKey>) {
        for ObjectKey { kind, name } in references {
            let names = if kind == Kind::Secret { &mut self.secrets } else { &mut self.config_maps };
            names.insert(name);
        }
    }

    /// The routes with one of these parents. Adds the names of their referents.
    fn routes(
        &mut self,
        routes: impl Iterator<Item = AnyRoute>,
        parents: &BTreeSet<ObjectKey>,
    ) -> SharedMap<ObjectKey, AnyRoute> {
        let mut picked = Vec::new();
        for route in routes {
            let key = route.key();
            let mut targets =
                route.parent_refs().iter().filter_map(|parent| parent.target(&key.name.namespace));
            if targets.any(|target| parents.contains(&target)) {
                self.namespaces.insert(key.name.namespace.clone());
                self.services.extend(route.services().iter().cloned());
                self.http_route_filters.extend(route.filters().iter().cloned());
                picked.push((key, route));
            }
        }
        picked.into_iter().collect()
    }
}

fn pick<V: Clone>(from: &SharedMap<ObjectName, V>, names: &BTreeSet<ObjectName>) -> SharedMap<ObjectName, V> {
    names.iter().filter_map(|name| from.get(name).map(|value| (name.clone(), value.clone()))).collect()
}

/// The Gateway of a ListenerSet; `None` if its parentRef names another kind.
pub fn parent_of_listener_set(name: &ObjectName, set: &ListenerSet) -> Option<ObjectName> {
    let parent = &set.spec.parent_ref;
    let names_gateway = parent.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP
        && parent.kind.as_deref().unwrap_or(Kind::Gateway.as_str()) == Kind::Gateway.as_str();
    names_gateway.then(|| {
        let namespace = parent.namespace.as_deref().map_or_else(|| name.namespace.clone(), Arc::from);
        ObjectName::new(namespace, parent.name.as_str())
    })
}
