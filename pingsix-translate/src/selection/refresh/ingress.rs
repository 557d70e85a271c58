//! Incremental updates of the extract of an IngressClass.

use std::collections::BTreeSet;

use super::{Refresh, has_service, service_key};
use crate::attach::permitted_references_of_policies;
use crate::model::{Kind, ObjectKey, ObjectName};
use crate::selection::edges::Target;
use crate::selection::extract::references_of_proxies;
use crate::selection::source::{Changed, ObjectSource};
use crate::snapshot::{
    Ingress, IngressSnapshot, class_or_default, references_of_ingress, services_of_ingress,
};

/// The former references of changed Ingresses. Only the final state shows whether a reference remains.
#[derive(Default)]
struct Left {
    services: BTreeSet<ObjectName>,
    references: BTreeSet<ObjectKey>,
}

impl<S: ObjectSource> Refresh<'_, S> {
    /// See [`Extract::refresh`](super::Extract::refresh).
    pub(super) fn ingress_class(
        &self,
        snapshot: &mut IngressSnapshot,
        referenced: &mut BTreeSet<ObjectKey>,
        changed: &Changed,
    ) -> bool {
        // A class without the mark gets no changes of marked classes, and its Ingresses do not depend on marks.
        snapshot.default_classes = self.source.default_classes();
        let mut left = Left::default();
        for key @ ObjectKey { kind, name } in &changed.objects {
            #[allow(clippy::wildcard_enum_match_arm, reason = "all others are in no such extract")]
            match kind {
                Kind::Ingress => {
                    let is_done = self.refresh_ingress(snapshot, referenced, key, &mut left);
                    if !is_done {
                        return false;
                    }
                }
                Kind::Service
                    if has_service(&snapshot.referents, name) || self.refers_from_ingress(snapshot, key) =>
                {
                    self.update(&mut snapshot.referents.services, name);
                }
                Kind::Secret | Kind::ConfigMap if referenced.contains(key) => {
                    self.update_referenced(&mut snapshot.referents, key);
                }
                // Parameters and policies name Secrets, for which there may be grants, and another default class may have
                // other Ingresses.
                Kind::IngressClass | Kind::PingsixProxy => return false,
                kind if kind.is_policy() => return false,
                Kind::ReferenceGrant if may_cross(snapshot) => return false,
                // The Service of an EndpointSlice determines the update.
                _ => {}
            }
        }
        for name in left.services {
            if !self.refers_from_ingress(snapshot, &service_key(&name)) {
                snapshot.referents.services.remove(&name);
                snapshot.referents.endpoint_slices.remove(&name);
            }
        }
        if !left.references.is_empty() {
            let mut of_others = permitted_references_of_policies(&snapshot.policies, &snapshot.referents);
            of_others.extend(references_of_proxies(&snapshot.referents.proxies));
            for key in left.references {
                if !of_others.contains(&key) && !self.refers_from_ingress(snapshot, &key) {
                    if key.kind == Kind::Secret {
                        snapshot.referents.secrets.remove(&key.name);
                    } else {
                        snapshot.referents.config_maps.remove(&key.name);
                    }
                    referenced.remove(&key);
                }
            }
        }
        for name in &changed.sliced {
            if has_service(&snapshot.referents, name)
                || self.refers_from_ingress(snapshot, &service_key(name))
            {
                self.update_slices(&mut snapshot.referents, name);
            }
        }
        true
    }

    /// Updates an Ingress, and adds its former references to `left`. Returns whether the update is complete: a new or
    /// deleted Ingress, or another Service, may add or remove policies of the snapshot.
    fn refresh_ingress(
        &self,
        snapshot: &mut IngressSnapshot,
        referenced: &mut BTreeSet<ObjectKey>,
        key @ ObjectKey { name, .. }: &ObjectKey,
        left: &mut Left,
    ) -> bool {
        let after = self.source.get::<Ingress>(name).filter(|ingress| is_of_class(snapshot, ingress));
        let comes_or_goes = after.is_some() != snapshot.ingresses.contains_key(name);
        if comes_or_goes && self.is_target(key, &snapshot.policies) {
            return false;
        }
        let services = |ingress: Option<&Ingress>| -> BTreeSet<ObjectName> {
            let services = ingress.map(|ingress| services_of_ingress(ingress, &name.namespace));
            services.into_iter().flatten().collect()
        };
        let (before, now) =
            (services(snapshot.ingresses.get(name).map(AsRef::as_ref)), services(after.as_deref()));
        let has_policy = |service: &ObjectName| self.is_target(&service_key(service), &snapshot.policies);
        if before.symmetric_difference(&now).any(has_policy) {
            return false;
        }
        if let Some(ingress) = snapshot.ingresses.get(name) {
            left.references.extend(references_of_ingress(ingress, &name.namespace));
        }
        left.services.extend(before);
        let Some(ingress) = after else {
            snapshot.ingresses.remove(name);
            return true;
        };
        for service in &now {
            self.update_service(&mut snapshot.referents, service);
        }
        for key in references_of_ingress(&ingress, &name.namespace) {
            self.update_referenced(&mut snapshot.referents, &key);
            referenced.insert(key);
        }
        snapshot.ingresses.insert(name.clone(), ingress);
        true
    }

    /// Whether an Ingress of the snapshot refers to a Service, a Secret or a ConfigMap. The cost is proportional to the referring
    /// Ingresses of all classes.
    fn refers_from_ingress(&self, snapshot: &IngressSnapshot, to: &ObjectKey) -> bool {
        let target = Target::Object(to.clone());
        let is_present = |name: &ObjectName| snapshot.ingresses.contains_key(name);
        self.source.has_dependent(Kind::Ingress, &target, &is_present)
    }
}

/// Whether policies of a snapshot may refer to objects of other namespaces.
fn may_cross(snapshot: &IngressSnapshot) -> bool {
    snapshot.policies.values().any(|policy| !policy.references().is_empty())
}

/// Whether an Ingress belongs to the class of a snapshot.
fn is_of_class(snapshot: &IngressSnapshot, ingress: &Ingress) -> bool {
    class_or_default(ingress, &snapshot.default_classes) == snapshot.class.metadata.name.as_deref()
}
