//! Differences between snapshots, and the transfer of parts from one to another.
//!
//! A **part** is an object, or all EndpointSlices of a Service, which go by [`Kind::EndpointSlice`] and the name of the
//! Service.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::snapshot::{
    AnyPolicy, AnyRoute, EndpointSlice, Identified, IngressSnapshot, Referents, Snapshot,
};
use pingsix_translate::{Change, Kind, ObjectKey, ObjectName, SharedMap};

use crate::digest::short_digest;
use crate::world::OwnerSnapshot;

/// A part of a snapshot that can be compared with another version.
trait Part: Clone {
    /// Whether both have equal content. One of them may be a new reading.
    fn has_equal_content(&self, other: &Self) -> bool;

    /// The content as a text, equal for equal content in every process. The text may be secret.
    fn text(&self) -> String;
}

impl<K: Identified> Part for Arc<K> {
    fn has_equal_content(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other) || K::has_equal_content(self, other)
    }

    fn text(&self) -> String {
        K::text(self)
    }
}

impl Part for AnyRoute {
    fn has_equal_content(&self, other: &Self) -> bool {
        self.has_equal_content(other)
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl Part for AnyPolicy {
    fn has_equal_content(&self, other: &Self) -> bool {
        self.has_equal_content(other)
    }

    fn text(&self) -> String {
        self.text()
    }
}

impl Part for Vec<Arc<EndpointSlice>> {
    fn has_equal_content(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.has_equal_content(other))
    }

    fn text(&self) -> String {
        self.iter().map(Part::text).collect::<Vec<_>>().join(" ")
    }
}

/// The differences between two snapshots of one owner.
pub(super) fn differences(now: &OwnerSnapshot, before: &OwnerSnapshot) -> BTreeSet<ObjectKey> {
    let mut parts = BTreeSet::new();
    match (now, before) {
        (OwnerSnapshot::Gateway(now), OwnerSnapshot::Gateway(before)) => {
            // Destructured, so that a new field is not forgotten.
            let Snapshot { gateway, class, listener_sets, routes, policies, referents } = &**now;
            if !gateway.has_equal_content(&before.gateway) {
                parts.insert(key_of_gateway(now));
            }
            let is_same_class = match (class, &before.class) {
                (Some(now), Some(before)) => now.has_equal_content(before),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !is_same_class {
                parts.insert(key_of_gateway_class(now));
            }
            add(&mut parts, Kind::ListenerSet, listener_sets, &before.listener_sets);
            parts.extend(differing(routes, &before.routes).cloned());
            parts.extend(differing(policies, &before.policies).cloned());
            add_referents(&mut parts, referents, &before.referents);
        }
        (OwnerSnapshot::Ingress(now), OwnerSnapshot::Ingress(before)) => {
            let IngressSnapshot { class, default_classes, ingresses, policies, referents } = &**now;
            if !class.has_equal_content(&before.class) || *default_classes != before.default_classes {
                parts.insert(key_of_class(now));
            }
            add(&mut parts, Kind::Ingress, ingresses, &before.ingresses);
            parts.extend(differing(policies, &before.policies).cloned());
            add_referents(&mut parts, referents, &before.referents);
        }
        (OwnerSnapshot::Gateway(_), OwnerSnapshot::Ingress(_))
        | (OwnerSnapshot::Ingress(_), OwnerSnapshot::Gateway(_)) => {}
    }
    parts
}

fn add_referents(parts: &mut BTreeSet<ObjectKey>, now: &Referents, before: &Referents) {
    let Referents {
        services,
        endpoint_slices,
        reference_grants,
        secrets,
        config_maps,
        namespaces,
        proxies,
        http_route_filters,
        quarantine: _,
        pending: _,
        own_addresses: _,
    } = now;
    add(parts, Kind::Service, services, &before.services);
    add(parts, Kind::EndpointSlice, endpoint_slices, &before.endpoint_slices);
    add(parts, Kind::ReferenceGrant, reference_grants, &before.reference_grants);
    add(parts, Kind::Secret, secrets, &before.secrets);
    add(parts, Kind::ConfigMap, config_maps, &before.config_maps);
    add(parts, Kind::PingsixProxy, proxies, &before.proxies);
    add(parts, Kind::HttpRouteFilter, http_route_filters, &before.http_route_filters);
    parts.extend(differing(namespaces, &before.namespaces).map(namespace));
}

fn add<V: Part>(
    parts: &mut BTreeSet<ObjectKey>,
    kind: Kind,
    now: &SharedMap<ObjectName, V>,
    before: &SharedMap<ObjectName, V>,
) {
    parts.extend(differing(now, before).map(|name| ObjectKey { kind, name: name.clone() }));
}

/// The names of objects with another content than before.
fn differing<'m, N: Ord, V: Part>(
    now: &'m SharedMap<N, V>,
    before: &'m SharedMap<N, V>,
) -> impl Iterator<Item = &'m N> {
    let changes = now.changes(before).into_iter().filter(is_difference);
    changes.map(|change| name_of(&change))
}

fn is_difference<N, V: Part>(change: &Change<'_, N, V>) -> bool {
    match change {
        Change::Replaced(_, before, now) => !now.has_equal_content(before),
        Change::Added(..) | Change::Removed(..) => true,
    }
}

const fn name_of<'m, N, V>(change: &Change<'m, N, V>) -> &'m N {
    match change {
        Change::Replaced(name, ..) | Change::Added(name, _) | Change::Removed(name, _) => name,
    }
}

fn key_of_gateway(snapshot: &Snapshot) -> ObjectKey {
    let metadata = &snapshot.gateway.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    ObjectKey::new(Kind::Gateway, text(&metadata.namespace), text(&metadata.name))
}

fn key_of_gateway_class(snapshot: &Snapshot) -> ObjectKey {
    ObjectKey::new(Kind::GatewayClass, "", snapshot.gateway.spec.gateway_class_name.as_str())
}

fn key_of_class(snapshot: &IngressSnapshot) -> ObjectKey {
    ObjectKey::new(Kind::IngressClass, "", snapshot.class.metadata.name.clone().unwrap_or_default())
}

fn namespace(name: &Arc<str>) -> ObjectKey {
    ObjectKey::new(Kind::Namespace, "", name.clone())
}

/// Replaces these parts by their version in another snapshot of the same owner.
pub(crate) fn put<'k>(
    into: &mut OwnerSnapshot,
    from: &OwnerSnapshot,
    parts: impl IntoIterator<Item = &'k ObjectKey>,
) {
    for key @ ObjectKey { kind, name } in parts {
        match (&mut *into, from) {
            #[allow(clippy::wildcard_enum_match_arm, reason = "all others are referents, or no parts")]
            (OwnerSnapshot::Gateway(into), OwnerSnapshot::Gateway(from)) => match kind {
                Kind::Gateway => into.gateway = from.gateway.clone(),
                Kind::GatewayClass => into.class.clone_from(&from.class),
                Kind::ListenerSet => copy(&mut into.listener_sets, &from.listener_sets, name),
                kind if kind.is_route() => copy(&mut into.routes, &from.routes, key),
                kind if kind.is_policy() => copy(&mut into.policies, &from.policies, key),
                _ => put_referent(&mut into.referents, &from.referents, *kind, name),
            },
            (OwnerSnapshot::Ingress(into), OwnerSnapshot::Ingress(from)) => {
                if *kind == Kind::IngressClass {
                    into.class = from.class.clone();
                    into.default_classes.clone_from(&from.default_classes);
                } else if *kind == Kind::Ingress {
                    copy(&mut into.ingresses, &from.ingresses, name);
                } else if kind.is_policy() {
                    copy(&mut into.policies, &from.policies, key);
                } else {
                    put_referent(&mut into.referents, &from.referents, *kind, name);
                }
            }
            // They are of one owner.
            (OwnerSnapshot::Gateway(_), OwnerSnapshot::Ingress(_))
            | (OwnerSnapshot::Ingress(_), OwnerSnapshot::Gateway(_)) => {}
        }
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "no other kind is one of referents")]
fn put_referent(into: &mut Referents, from: &Referents, kind: Kind, name: &ObjectName) {
    match kind {
        Kind::Service => copy(&mut into.services, &from.services, name),
        Kind::EndpointSlice => copy(&mut into.endpoint_slices, &from.endpoint_slices, name),
        Kind::ReferenceGrant => copy(&mut into.reference_grants, &from.reference_grants, name),
        Kind::Secret => copy(&mut into.secrets, &from.secrets, name),
        Kind::ConfigMap => copy(&mut into.config_maps, &from.config_maps, name),
        Kind::Namespace => copy(&mut into.namespaces, &from.namespaces, &Arc::from(&*name.name)),
        Kind::PingsixProxy => copy(&mut into.proxies, &from.proxies, name),
        Kind::HttpRouteFilter => copy(&mut into.http_route_filters, &from.http_route_filters, name),
        _ => {}
    }
}

fn copy<N: Ord + Clone, V: Clone>(into: &mut SharedMap<N, V>, from: &SharedMap<N, V>, name: &N) {
    match from.get(name) {
        Some(object) => into.insert(name.clone(), object.clone()),
        None => into.remove(name),
    };
}

/// The digest of these parts, equal in every replica.
pub(super) fn version(of: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>) -> String {
    let texts = parts.iter().map(|part| format!("{part} {}", text(of, part).unwrap_or_default()));
    short_digest(&texts.collect::<Vec<_>>().join("\n"))
}

/// Whether a part exists.
pub(super) fn has(of: &OwnerSnapshot, part: &ObjectKey) -> bool {
    text(of, part).is_some()
}

/// The content of a part; `None` for an absent part.
#[allow(clippy::wildcard_enum_match_arm, reason = "all others are referents, or no parts")]
fn text(of: &OwnerSnapshot, key @ ObjectKey { kind, name }: &ObjectKey) -> Option<String> {
    match of {
        OwnerSnapshot::Gateway(of) => match kind {
            Kind::Gateway => Some(of.gateway.text()),
            Kind::GatewayClass => of.class.as_ref().map(Part::text),
            Kind::ListenerSet => text_at(&of.listener_sets, name),
            kind if kind.is_route() => text_at(&of.routes, key),
            kind if kind.is_policy() => text_at(&of.policies, key),
            _ => text_of_referent(&of.referents, key),
        },
        OwnerSnapshot::Ingress(of) => match kind {
            Kind::IngressClass => Some(format!("{} {:?}", of.class.text(), of.default_classes)),
            Kind::Ingress => text_at(&of.ingresses, name),
            kind if kind.is_policy() => text_at(&of.policies, key),
            _ => text_of_referent(&of.referents, key),
        },
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "no other kind is one of referents")]
fn text_of_referent(of: &Referents, ObjectKey { kind, name }: &ObjectKey) -> Option<String> {
    match kind {
        Kind::Service => text_at(&of.services, name),
        Kind::EndpointSlice => text_at(&of.endpoint_slices, name),
        Kind::ReferenceGrant => text_at(&of.reference_grants, name),
        Kind::Secret => text_at(&of.secrets, name),
        Kind::ConfigMap => text_at(&of.config_maps, name),
        Kind::Namespace => text_at(&of.namespaces, &Arc::from(&*name.name)),
        Kind::PingsixProxy => text_at(&of.proxies, name),
        Kind::HttpRouteFilter => text_at(&of.http_route_filters, name),
        _ => None,
    }
}

fn text_at<N: Ord, V: Part>(map: &SharedMap<N, V>, name: &N) -> Option<String> {
    map.get(name).map(Part::text)
}

/// A snapshot of the owner with these parts alone.
pub(super) fn only(of: &OwnerSnapshot, parts: &BTreeSet<ObjectKey>) -> OwnerSnapshot {
    let mut only = match of {
        OwnerSnapshot::Gateway(of) => OwnerSnapshot::Gateway(Box::new(Snapshot {
            gateway: of.gateway.clone(),
            class: None,
            listener_sets: SharedMap::new(),
            routes: SharedMap::new(),
            policies: SharedMap::new(),
            referents: Referents::default(),
        })),
        OwnerSnapshot::Ingress(of) => OwnerSnapshot::Ingress(Box::new(IngressSnapshot {
            class: of.class.clone(),
            default_classes: of.default_classes.clone(),
            ingresses: SharedMap::new(),
            policies: SharedMap::new(),
            referents: Referents::default(),
        })),
    };
    put(&mut only, of, parts);
    only
}

/// The snapshot without routes and Ingresses, which answers 404.
pub(super) fn without_routes(snapshot: &OwnerSnapshot) -> OwnerSnapshot {
    let mut without = snapshot.clone();
    match &mut without {
        OwnerSnapshot::Gateway(snapshot) => {
            let routes = snapshot.routes.iter().filter(|(key, _)| !key.kind.has_requests());
            snapshot.routes = routes.map(|(key, route)| (key.clone(), route.clone())).collect();
        }
        OwnerSnapshot::Ingress(snapshot) => snapshot.ingresses = SharedMap::new(),
    }
    without
}
