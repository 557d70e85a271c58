//! Incremental updates of extracts: a frequent change costs its own part of the work.
//!
//! An update replaces each changed object of the extract by its current version. The order and the repetition of
//! changes do not matter, and objects of other owners have no effect. A changed route is read with its references: the
//! owner got no changes of these objects before the route referred to them.

mod ingress;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::edges::Target;
use super::extract::{Extract, references_of_proxies};
use super::source::{Changed, ObjectSource, existing};
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::SharedMap;
use crate::snapshot::{
    AnyPolicy, AnyRoute, FromObject, OwnerSnapshot, Referents, Snapshot, proxy_of_class, proxy_of_gateway,
};

impl Extract {
    /// Updates the extract if that is possible without a scan. With the result `false`, the extract is invalid.
    ///
    /// The update covers frequent changes: routes with their filters, Services, EndpointSlices, Secrets, ConfigMaps,
    /// Namespaces and parameters of a Gateway; Ingresses, Services, EndpointSlices, Secrets and ConfigMaps of an
    /// IngressClass. References into other namespaces and to Services with policies need a new extract.
    pub fn refresh(&mut self, source: &impl ObjectSource, changed: &Changed) -> bool {
        let refresh = Refresh { source };
        match &mut self.snapshot {
            OwnerSnapshot::Gateway(snapshot) => refresh.gateway(snapshot, &self.referenced, changed),
            OwnerSnapshot::Ingress(snapshot) => {
                refresh.ingress_class(snapshot, &mut self.referenced, changed)
            }
        }
    }
}

/// An update from a source.
struct Refresh<'s, S> {
    source: &'s S,
}

impl<S: ObjectSource> Refresh<'_, S> {
    fn gateway(&self, snapshot: &mut Snapshot, referenced: &BTreeSet<ObjectKey>, changed: &Changed) -> bool {
        // Former references of routes to Services and filters. Only the final state of all routes shows whether one
        // remains.
        let mut left = BTreeSet::new();
        #[allow(clippy::wildcard_enum_match_arm, reason = "changes of all other kinds take a new extract")]
        let is_done = changed.objects.iter().all(|key @ ObjectKey { kind, name }| match kind {
            kind if kind.is_route() => self.refresh_route(snapshot, key, &mut left),
            Kind::Service => {
                if has_service(&snapshot.referents, name) || self.refers(snapshot, key) {
                    self.update(&mut snapshot.referents.services, name);
                }
                true
            }
            Kind::HttpRouteFilter => {
                if self.refers(snapshot, key) {
                    self.update(&mut snapshot.referents.http_route_filters, name);
                }
                true
            }
            Kind::Secret | Kind::ConfigMap => {
                if referenced.contains(key) {
                    self.update_referenced(&mut snapshot.referents, key);
                }
                true
            }
            Kind::Namespace => {
                let namespace = Arc::from(&*name.name);
                if lives_in(snapshot, &namespace) {
                    self.update_namespace(snapshot, &namespace);
                }
                // The labels may decide whether a ListenerSet is allowed, and thereby the permitted Secrets.
                !snapshot.has_listener_set_in(&namespace)
            }
            Kind::GatewayClass | Kind::PingsixProxy => self.update_parameters(snapshot),
            // The Service determines the update of its EndpointSlices, and Ingresses have no effect on Gateways.
            Kind::EndpointSlice | Kind::Ingress | Kind::IngressClass => true,
            _ => false,
        });
        if is_done {
            left.retain(|referent| !self.refers(snapshot, referent));
            for ObjectKey { kind, name } in &left {
                if *kind == Kind::HttpRouteFilter {
                    snapshot.referents.http_route_filters.remove(name);
                } else {
                    snapshot.referents.services.remove(name);
                    snapshot.referents.endpoint_slices.remove(name);
                }
            }
            for service in &changed.sliced {
                if has_service(&snapshot.referents, service) || self.refers(snapshot, &service_key(service)) {
                    self.update_slices(&mut snapshot.referents, service);
                }
            }
        }
        is_done
    }

    /// Updates a route, and adds its former Services and filters to `left`. Returns whether that was possible.
    fn refresh_route(
        &self,
        snapshot: &mut Snapshot,
        key @ ObjectKey { name, .. }: &ObjectKey,
        left: &mut BTreeSet<ObjectKey>,
    ) -> bool {
        let before = snapshot.routes.get(key).cloned();
        let after = self.route(key).filter(|route| is_child(snapshot, route, name));
        let old = before.as_ref().map_or(&[][..], AnyRoute::services);
        let new = after.as_ref().map_or(&[][..], AnyRoute::services);
        // Both are sorted.
        let gone = old.iter().filter(|service| new.binary_search(service).is_err());
        let is_simple = |service: &ObjectName| {
            service.namespace == name.namespace && !self.is_target(&service_key(service), &snapshot.policies)
        };
        // A new or deleted route may add or remove inherited policies of the snapshot.
        let comes_or_goes = before.is_some() != after.is_some();
        let is_target = || self.is_target(key, &snapshot.policies);
        if (comes_or_goes && is_target()) || !gone.clone().chain(new).all(is_simple) {
            return false;
        }
        match &after {
            Some(route) => {
                snapshot.routes.insert(key.clone(), route.clone());
            }
            None => {
                snapshot.routes.remove(key);
            }
        }
        for service in new {
            self.update_service(&mut snapshot.referents, service);
        }
        left.extend(gone.map(service_key));
        let filters = |route: &Option<AnyRoute>| {
            route.iter().flat_map(|route| route.filters().to_vec()).collect::<Vec<_>>()
        };
        for filter in filters(&after) {
            self.update(&mut snapshot.referents.http_route_filters, &filter);
        }
        // Filters that are still referenced stay.
        left.extend(filters(&before).into_iter().map(|name| ObjectKey { kind: Kind::HttpRouteFilter, name }));
        self.update_namespace(snapshot, &name.namespace);
        true
    }

    /// Whether a policy targets an object, now or in a snapshot with these policies.
    fn is_target(&self, key: &ObjectKey, policies: &SharedMap<ObjectKey, AnyPolicy>) -> bool {
        let target = Target::Object(key.clone());
        Kind::policies().any(|kind| !self.source.members(kind, &target).is_empty())
            || policies.values().any(|policy| policy.has_target(key))
    }

    /// Stores the current version of a referenced object, or removes an absent one.
    fn update<K: FromObject>(&self, stored: &mut SharedMap<ObjectName, Arc<K>>, name: &ObjectName) {
        match self.source.get(name) {
            Some(object) => stored.insert(name.clone(), object),
            None => stored.remove(name),
        };
    }

    /// Stores the current version of a Secret or a ConfigMap, or removes an absent one.
    fn update_referenced(&self, referents: &mut Referents, ObjectKey { kind, name }: &ObjectKey) {
        if *kind == Kind::Secret {
            self.update(&mut referents.secrets, name);
        } else {
            self.update(&mut referents.config_maps, name);
        }
    }

    /// Stores the current version of a Service with its EndpointSlices, or removes an absent one.
    fn update_service(&self, referents: &mut Referents, service: &ObjectName) {
        self.update(&mut referents.services, service);
        self.update_slices(referents, service);
    }

    /// Stores the current class of the Gateway and the parameters of both. Returns whether the parameters name the same
    /// Secrets as before.
    fn update_parameters(&self, snapshot: &mut Snapshot) -> bool {
        let gateway = &snapshot.gateway;
        let namespace = gateway.metadata.namespace.as_deref().unwrap_or_default();
        snapshot.class = self.source.get(&ObjectName::new("", gateway.spec.gateway_class_name.as_str()));
        let of_class = snapshot.class.as_deref().and_then(proxy_of_class);
        let names = of_class.into_iter().chain(proxy_of_gateway(gateway, namespace)).collect::<BTreeSet<_>>();
        let before = std::mem::replace(&mut snapshot.referents.proxies, existing(self.source, names));
        references_of_proxies(&before) == references_of_proxies(&snapshot.referents.proxies)
    }

    fn update_slices(&self, referents: &mut Referents, service: &ObjectName) {
        let slices = self.source.slices_of(service);
        let stored = &mut referents.endpoint_slices;
        if slices.is_empty() {
            stored.remove(service);
        } else {
            stored.insert(service.clone(), slices);
        }
    }

    /// Stores a namespace if an object of the snapshot is in it.
    fn update_namespace(&self, snapshot: &mut Snapshot, name: &Arc<str>) {
        let namespace =
            self.source.get(&ObjectName::new("", name.clone())).filter(|_| lives_in(snapshot, name));
        let stored = &mut snapshot.referents.namespaces;
        match namespace {
            Some(namespace) => stored.insert(name.clone(), namespace),
            None => stored.remove(name),
        };
    }

    /// Whether a route of the snapshot refers to an object. The cost is proportional to the referring routes of all
    /// Gateways.
    fn refers(&self, snapshot: &Snapshot, referent: &ObjectKey) -> bool {
        let target = Target::Object(referent.clone());
        Kind::routes().any(|kind| {
            let is_present =
                |name: &ObjectName| snapshot.routes.contains_key(&ObjectKey { kind, name: name.clone() });
            self.source.has_dependent(kind, &target, &is_present)
        })
    }

    /// The route with this key, if it exists.
    fn route(&self, key: &ObjectKey) -> Option<AnyRoute> {
        AnyRoute::of(self.source.object(key)?)
    }
}

fn service_key(name: &ObjectName) -> ObjectKey {
    ObjectKey { kind: Kind::Service, name: name.clone() }
}

/// Whether a snapshot has a Service or its EndpointSlices, so a route or Ingress of the snapshot refers to the Service.
fn has_service(referents: &Referents, service: &ObjectName) -> bool {
    referents.services.contains_key(service) || referents.endpoint_slices.contains_key(service)
}

/// Whether a route names the Gateway of a snapshot, or one of its ListenerSets.
fn is_child(snapshot: &Snapshot, route: &AnyRoute, name: &ObjectName) -> bool {
    let metadata = &snapshot.gateway.metadata;
    let is_gateway = |parent: &ObjectName| {
        metadata.name.as_deref() == Some(&*parent.name)
            && metadata.namespace.as_deref() == Some(&*parent.namespace)
    };
    route.parent_refs().iter().filter_map(|parent| parent.target(&name.namespace)).any(|parent| {
        parent.kind == Kind::Gateway && is_gateway(&parent.name)
            || parent.kind == Kind::ListenerSet && snapshot.listener_sets.contains_key(&parent.name)
    })
}

/// Whether a route of a snapshot is in a namespace.
fn has_route(snapshot: &Snapshot, namespace: &Arc<str>) -> bool {
    Kind::routes().any(|kind| {
        let first = ObjectKey::new(kind, namespace.clone(), "");
        let next = snapshot.routes.from_key(&first).next();
        next.is_some_and(|(key, _)| key.kind == kind && key.name.namespace == *namespace)
    })
}

/// Whether the Gateway, a ListenerSet or a route of a snapshot is in a namespace.
fn lives_in(snapshot: &Snapshot, namespace: &Arc<str>) -> bool {
    snapshot.gateway.metadata.namespace.as_deref() == Some(&**namespace)
        || snapshot.has_listener_set_in(namespace)
        || has_route(snapshot, namespace)
}
