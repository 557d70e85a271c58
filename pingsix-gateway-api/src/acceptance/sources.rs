//! The sources that can be put into quarantine, and the parts of a snapshot that contain them.

use std::collections::BTreeSet;
use std::sync::Arc;

use pingsix_translate::snapshot::{AnyRoute, Ingress, OwnerSnapshot};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Origin, Section};

/// The sources of a part: the rules of a route, the sections of an Ingress, or a Service, a Secret or an inherited
/// policy as a whole. Absent parts have none, and neither do parts on which all others depend.
pub(super) fn sources(snapshot: &OwnerSnapshot, part: &ObjectKey) -> Vec<Origin> {
    let name = &part.name;
    let of = |key: &ObjectKey, sections: Vec<Section>| -> Vec<Origin> {
        let object = Arc::new(key.clone());
        sections.into_iter().map(|section| Origin { object: object.clone(), section }).collect()
    };
    if part.kind.is_inherited_policy() {
        return of(part, whole(snapshot.policies().contains_key(part)));
    }
    let referents = match snapshot {
        OwnerSnapshot::Gateway(snapshot) => {
            let count = |rules: Option<usize>| rules.unwrap_or(1).max(1);
            let rules = match snapshot.routes.get(part) {
                Some(AnyRoute::HttpRoute(route)) => Some(count(route.spec().rules.map(|rules| rules.len()))),
                Some(AnyRoute::GrpcRoute(route)) => Some(count(route.spec().rules.map(|rules| rules.len()))),
                Some(AnyRoute::TlsRoute(_) | AnyRoute::TcpRoute(_) | AnyRoute::UdpRoute(_)) | None => None,
            };
            if let Some(rules) = rules {
                return of(part, (0..rules).map(Section::Rule).collect());
            }
            &snapshot.referents
        }
        OwnerSnapshot::Ingress(snapshot) => {
            if part.kind == Kind::Ingress {
                let sections = snapshot.ingresses.get(name).map(|ingress| sections(ingress));
                return of(part, sections.unwrap_or_default());
            }
            &snapshot.referents
        }
    };
    let service = ObjectKey { kind: Kind::Service, name: name.clone() };
    let is_there = if part.kind == Kind::Secret {
        referents.secrets.contains_key(name)
    } else {
        matches!(part.kind, Kind::Service | Kind::EndpointSlice) && referents.services.contains_key(name)
    };
    let object = if part.kind == Kind::Secret { part } else { &service };
    of(object, whole(is_there))
}

/// The sections of an object that is a source as a whole.
fn whole(is_there: bool) -> Vec<Section> {
    if is_there { vec![Section::Whole] } else { Vec::new() }
}

/// The sections of an Ingress that ask for something.
fn sections(ingress: &Ingress) -> Vec<Section> {
    let Some(spec) = &ingress.spec else { return Vec::new() };
    let mut sections = Vec::new();
    for (rule, content) in spec.rules.iter().flatten().enumerate() {
        let paths = content.http.as_ref().map_or(0, |http| http.paths.len());
        sections.extend((0..paths).map(|index| Section::Match { rule, index }));
        if paths == 0 && spec.default_backend.is_some() {
            sections.push(Section::Rule(rule));
        }
    }
    sections.extend(spec.default_backend.as_ref().map(|_| Section::DefaultBackend));
    sections.extend((0..spec.tls.as_ref().map_or(0, Vec::len)).map(Section::Tls));
    sections
}

/// The sources of a snapshot that can be put into quarantine without hiding others: no Services, and no Secrets of
/// Ingresses.
pub(super) fn all_sources(snapshot: &OwnerSnapshot) -> BTreeSet<Origin> {
    let keys = |kind: Kind, names: Vec<&ObjectName>| -> Vec<ObjectKey> {
        names.into_iter().map(|name| ObjectKey { kind, name: name.clone() }).collect()
    };
    let parts = match snapshot {
        OwnerSnapshot::Gateway(snapshot) => {
            let routes = snapshot.routes.keys().filter(|key| key.kind.has_requests());
            let mut parts: Vec<ObjectKey> = routes.cloned().collect();
            parts.extend(keys(Kind::Secret, snapshot.referents.secrets.keys().collect()));
            parts
        }
        OwnerSnapshot::Ingress(snapshot) => keys(Kind::Ingress, snapshot.ingresses.keys().collect()),
    };
    parts.iter().flat_map(|part| sources(snapshot, part)).collect()
}

/// The parts of a source. A quarantine about the source ends when one of them changes.
pub(super) fn parts_of(source: &Origin) -> BTreeSet<ObjectKey> {
    let object = &*source.object;
    let slices = ObjectKey { kind: Kind::EndpointSlice, name: object.name.clone() };
    let slices = (object.kind == Kind::Service).then_some(slices);
    slices.into_iter().chain([object.clone()]).collect()
}
