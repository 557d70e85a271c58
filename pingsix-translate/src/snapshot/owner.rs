//! The snapshot of an owner of data planes, and its parts.

use std::collections::BTreeSet;

use super::part::{Part, add_differing, copy, differing, text_at};
use super::{AnyPolicy, IngressSnapshot, Referents, Snapshot};
use crate::model::{Kind, ObjectKey};
use crate::shared_map::SharedMap;

/// The objects that an owner of data planes may use.
///
/// Its **parts** are the objects, and all EndpointSlices of a Service together. Such a part goes by
/// [`Kind::EndpointSlice`] and the name of the Service.
#[derive(Clone, Debug)]
pub enum OwnerSnapshot {
    /// A Gateway with its ListenerSets.
    Gateway(Box<Snapshot>),
    /// An IngressClass.
    Ingress(Box<IngressSnapshot>),
}

impl OwnerSnapshot {
    /// The policies.
    pub const fn policies(&self) -> &SharedMap<ObjectKey, AnyPolicy> {
        match self {
            Self::Gateway(snapshot) => &snapshot.policies,
            Self::Ingress(snapshot) => &snapshot.policies,
        }
    }

    /// The objects to which the others refer.
    pub const fn referents(&self) -> &Referents {
        match self {
            Self::Gateway(snapshot) => &snapshot.referents,
            Self::Ingress(snapshot) => &snapshot.referents,
        }
    }

    /// The objects to which the others refer.
    pub const fn referents_mut(&mut self) -> &mut Referents {
        match self {
            Self::Gateway(snapshot) => &mut snapshot.referents,
            Self::Ingress(snapshot) => &mut snapshot.referents,
        }
    }

    /// The parts that differ in content from those of another snapshot of the same owner.
    pub fn differences(&self, before: &Self) -> BTreeSet<ObjectKey> {
        let mut keys = BTreeSet::new();
        match (self, before) {
            (Self::Gateway(now), Self::Gateway(before)) => now.add_differences(before, &mut keys),
            (Self::Ingress(now), Self::Ingress(before)) => now.add_differences(before, &mut keys),
            (Self::Gateway(_), Self::Ingress(_)) | (Self::Ingress(_), Self::Gateway(_)) => {}
        }
        keys
    }

    /// Takes parts from another snapshot of the same owner. A part that the other one lacks is removed.
    pub fn take_parts<'k>(&mut self, from: &Self, parts: impl IntoIterator<Item = &'k ObjectKey>) {
        for part in parts {
            match (&mut *self, from) {
                (Self::Gateway(into), Self::Gateway(from)) => into.take_part(from, part),
                (Self::Ingress(into), Self::Ingress(from)) => into.take_part(from, part),
                (Self::Gateway(_), Self::Ingress(_)) | (Self::Ingress(_), Self::Gateway(_)) => {}
            }
        }
    }

    /// The content of a part as a text, equal for equal content in every process; `None` for an absent part. The text
    /// may be secret.
    pub fn text_of(&self, part: &ObjectKey) -> Option<String> {
        match self {
            Self::Gateway(snapshot) => snapshot.text_of(part),
            Self::Ingress(snapshot) => snapshot.text_of(part),
        }
    }

    /// Whether a part exists.
    pub fn has_part(&self, part: &ObjectKey) -> bool {
        self.text_of(part).is_some()
    }

    /// A snapshot of the owner with these parts alone.
    #[must_use]
    pub fn only(&self, parts: &BTreeSet<ObjectKey>) -> Self {
        let mut only = match self {
            Self::Gateway(snapshot) => Self::Gateway(Box::new(Snapshot {
                gateway: snapshot.gateway.clone(),
                class: None,
                listener_sets: SharedMap::new(),
                routes: SharedMap::new(),
                policies: SharedMap::new(),
                referents: Referents::default(),
            })),
            Self::Ingress(snapshot) => Self::Ingress(Box::new(IngressSnapshot {
                class: snapshot.class.clone(),
                default_classes: snapshot.default_classes.clone(),
                ingresses: SharedMap::new(),
                policies: SharedMap::new(),
                referents: Referents::default(),
            })),
        };
        only.take_parts(self, parts);
        only
    }

    /// The snapshot without routes of requests and without Ingresses.
    #[must_use]
    pub fn without_routes(&self) -> Self {
        let mut without = self.clone();
        match &mut without {
            Self::Gateway(snapshot) => {
                let routes = snapshot.routes.iter().filter(|(key, _)| !key.kind.has_requests());
                snapshot.routes = routes.map(|(key, route)| (key.clone(), route.clone())).collect();
            }
            Self::Ingress(snapshot) => snapshot.ingresses = SharedMap::new(),
        }
        without
    }
}

impl Snapshot {
    fn add_differences(&self, before: &Self, keys: &mut BTreeSet<ObjectKey>) {
        // Destructured, so that a new field is not forgotten.
        let Self { gateway, class, listener_sets, routes, policies, referents } = self;
        if !Part::has_equal_content(gateway, &before.gateway) {
            let metadata = &gateway.metadata;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            keys.insert(ObjectKey::new(Kind::Gateway, text(&metadata.namespace), text(&metadata.name)));
        }
        if !Part::has_equal_content(class, &before.class) {
            let name = gateway.spec.gateway_class_name.as_str();
            keys.insert(ObjectKey::new(Kind::GatewayClass, "", name));
        }
        add_differing(keys, Kind::ListenerSet, listener_sets, &before.listener_sets);
        keys.extend(differing(routes, &before.routes).cloned());
        keys.extend(differing(policies, &before.policies).cloned());
        referents.add_differences(&before.referents, keys);
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "all others are referents, or no parts")]
    fn take_part(&mut self, from: &Self, part: &ObjectKey) {
        match part.kind {
            Kind::Gateway => self.gateway = from.gateway.clone(),
            Kind::GatewayClass => self.class.clone_from(&from.class),
            Kind::ListenerSet => copy(&mut self.listener_sets, &from.listener_sets, &part.name),
            kind if kind.is_route() => copy(&mut self.routes, &from.routes, part),
            kind if kind.is_policy() => copy(&mut self.policies, &from.policies, part),
            _ => self.referents.take_part(&from.referents, part),
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "all others are referents, or no parts")]
    fn text_of(&self, part: &ObjectKey) -> Option<String> {
        match part.kind {
            Kind::Gateway => Some(Part::text(&self.gateway)),
            Kind::GatewayClass => self.class.as_ref().map(Part::text),
            Kind::ListenerSet => text_at(&self.listener_sets, &part.name),
            kind if kind.is_route() => text_at(&self.routes, part),
            kind if kind.is_policy() => text_at(&self.policies, part),
            _ => self.referents.text_of(part),
        }
    }
}

impl IngressSnapshot {
    fn add_differences(&self, before: &Self, keys: &mut BTreeSet<ObjectKey>) {
        // Destructured, so that a new field is not forgotten.
        let Self { class, default_classes, ingresses, policies, referents } = self;
        if !Part::has_equal_content(class, &before.class) || *default_classes != before.default_classes {
            let name = class.metadata.name.clone().unwrap_or_default();
            keys.insert(ObjectKey::new(Kind::IngressClass, "", name));
        }
        add_differing(keys, Kind::Ingress, ingresses, &before.ingresses);
        keys.extend(differing(policies, &before.policies).cloned());
        referents.add_differences(&before.referents, keys);
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "all others are referents, or no parts")]
    fn take_part(&mut self, from: &Self, part: &ObjectKey) {
        match part.kind {
            Kind::IngressClass => {
                self.class = from.class.clone();
                self.default_classes.clone_from(&from.default_classes);
            }
            Kind::Ingress => copy(&mut self.ingresses, &from.ingresses, &part.name),
            kind if kind.is_policy() => copy(&mut self.policies, &from.policies, part),
            _ => self.referents.take_part(&from.referents, part),
        }
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "all others are referents, or no parts")]
    fn text_of(&self, part: &ObjectKey) -> Option<String> {
        match part.kind {
            Kind::IngressClass => Some(format!("{} {:?}", Part::text(&self.class), self.default_classes)),
            Kind::Ingress => text_at(&self.ingresses, &part.name),
            kind if kind.is_policy() => text_at(&self.policies, part),
            _ => self.referents.text_of(part),
        }
    }
}
