//! Snapshots after changes of objects that refer to the same others as before, which are the most frequent changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::objects::{Object, Objects};
use super::references::{references_of_ingress, service_of_slice, services_of_ingress};
use super::route_spec::AnyRoute;
use super::{EndpointSlice, Ingress, IngressSnapshot, Referents, Snapshot, class_of_ingress};
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::shared_map::SharedMap;

impl Snapshot {
    /// Replaces the changed objects of a snapshot. Returns whether the snapshot is the one of the objects now: which objects it
    /// has depends on references, so other ones take a new snapshot, and this one is of no use.
    pub fn refresh(&mut self, before: &Objects, now: &Objects, changed: &BTreeSet<ObjectKey>) -> bool {
        changed.iter().filter(|key| key.kind != Kind::Ingress).all(|key| {
            let (Some(before), Some(now)) = (before.get(key), now.get(key)) else { return false };
            match (AnyRoute::of(before.clone()), AnyRoute::of(now.clone())) {
                (Some(before), Some(now)) => {
                    let is_alike = before.parent_refs() == now.parent_refs()
                        && before.services() == now.services()
                        && before.filters() == now.filters();
                    if self.routes.contains_key(key) {
                        self.routes.insert(key.clone(), now);
                    }
                    is_alike
                }
                (None, None) => self.referents.refresh(before, now),
                (Some(_), None) | (None, Some(_)) => false,
            }
        })
    }
}

impl IngressSnapshot {
    /// As [`Snapshot::refresh`].
    pub fn refresh(&mut self, before: &Objects, now: &Objects, changed: &BTreeSet<ObjectKey>) -> bool {
        changed.iter().filter(|key| !key.kind.is_route()).all(|key| {
            let (Some(before), Some(now)) = (before.get(key), now.get(key)) else { return false };
            match (before, now) {
                (Object::Ingress(before), Object::Ingress(now)) => {
                    let is_alike = refers_alike(&before, &now, &key.name);
                    replace(&mut self.ingresses, &key.name, now);
                    is_alike
                }
                (before, now) => self.referents.refresh(before, now),
            }
        })
    }
}

/// Whether an Ingress has the same class and references as before.
fn refers_alike(before: &Ingress, now: &Ingress, name: &ObjectName) -> bool {
    let namespace = &name.namespace;
    let services = |ingress| services_of_ingress(ingress, namespace).into_iter().collect::<BTreeSet<_>>();
    let others = |ingress| references_of_ingress(ingress, namespace).into_iter().collect::<BTreeSet<_>>();
    class_of_ingress(before) == class_of_ingress(now)
        && services(before) == services(now)
        && others(before) == others(now)
}

impl Referents {
    /// Replaces an object. Returns whether that is all: objects of other kinds refer to others.
    fn refresh(&mut self, before: Object, now: Object) -> bool {
        let name = now.key().name;
        match (before, now) {
            (_, Object::Service(now)) => replace(&mut self.services, &name, now),
            (_, Object::Secret(now)) => replace(&mut self.secrets, &name, now),
            (_, Object::ConfigMap(now)) => replace(&mut self.config_maps, &name, now),
            (_, Object::HttpRouteFilter(now)) => replace(&mut self.http_route_filters, &name, now),
            (Object::EndpointSlice(before), Object::EndpointSlice(now)) => {
                return self.refresh_slice(&before, &now);
            }
            (_, _) => return false,
        }
        true
    }

    fn refresh_slice(&mut self, before: &Arc<EndpointSlice>, now: &Arc<EndpointSlice>) -> bool {
        let service = service_of_slice(before);
        if service != service_of_slice(now) {
            return false;
        }
        let slices = service.and_then(|service| self.endpoint_slices.get_mut(&service));
        for slice in slices.into_iter().flatten().filter(|slice| Arc::ptr_eq(slice, before)) {
            *slice = now.clone();
        }
        true
    }
}

/// Replaces an object that is there.
fn replace<T>(objects: &mut SharedMap<ObjectName, Arc<T>>, name: &ObjectName, now: Arc<T>) {
    if objects.contains_key(name) {
        objects.insert(name.clone(), now);
    }
}
