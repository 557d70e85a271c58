//! Which parts of a snapshot have to be put back together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::snapshot::{Ingress, OwnerSnapshot, references_of_ingress, services_of_ingress};
use pingsix_translate::{Kind, ObjectKey, ObjectName};

/// Groups parts that belong together: a route and its Services have versions of the same time.
pub(super) fn groups(
    parts: &BTreeSet<ObjectKey>,
    now: &OwnerSnapshot,
    before: &OwnerSnapshot,
) -> Vec<BTreeSet<ObjectKey>> {
    let parts: Vec<&ObjectKey> = parts.iter().collect();
    let place = |part: &ObjectKey| parts.binary_search(&part).ok();
    let mut groups = Groups((0..parts.len()).collect());
    for (index, part) in parts.iter().enumerate() {
        if concerns_all(part.kind) {
            (0..parts.len()).for_each(|other| groups.join(index, other));
            continue;
        }
        for related in related(now, part).into_iter().chain(related(before, part)) {
            // A route works with other endpoints. Only the step from none to some, or back, belongs to the route.
            let may_differ = part.kind != Kind::Service
                && related.kind == Kind::EndpointSlice
                && has_slices(now, &related.name)
                && has_slices(before, &related.name);
            if let Some(other) = place(&related).filter(|_| !may_differ) {
                groups.join(index, other);
            }
        }
        if part.kind == Kind::Namespace {
            let is_inside = |other: &usize| *parts[*other].name.namespace == *part.name.name;
            (0..parts.len()).filter(is_inside).for_each(|other| groups.join(index, other));
        }
    }
    let mut by_root: BTreeMap<usize, BTreeSet<ObjectKey>> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        by_root.entry(groups.root(index)).or_default().insert((*part).clone());
    }
    by_root.into_values().collect()
}

/// By index, the index of another member of the same group, or its own.
struct Groups(Vec<usize>);

impl Groups {
    fn root(&mut self, mut index: usize) -> usize {
        while self.0[index] != index {
            self.0[index] = self.0[self.0[index]];
            index = self.0[index];
        }
        index
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[other] = one;
    }
}

fn has_slices(snapshot: &OwnerSnapshot, service: &ObjectName) -> bool {
    snapshot.referents().endpoint_slices.contains_key(service)
}

/// Whether the verdicts of all routes depend on objects of a kind.
pub(super) const fn concerns_all(kind: Kind) -> bool {
    let concerns_some =
        matches!(kind, Kind::Ingress | Kind::Service | Kind::EndpointSlice | Kind::Secret | Kind::Namespace);
    !kind.is_route() && !concerns_some
}

/// The parts that a part refers to.
fn related(snapshot: &OwnerSnapshot, part: &ObjectKey) -> Vec<ObjectKey> {
    let name = &part.name;
    let mut references = Vec::new();
    let services: Vec<ObjectName> = match (snapshot, part.kind) {
        (OwnerSnapshot::Gateway(snapshot), kind) if kind.is_route() => {
            snapshot.routes.get(part).map(|route| route.services().to_vec()).unwrap_or_default()
        }
        (OwnerSnapshot::Ingress(snapshot), Kind::Ingress) => {
            let ingress = snapshot.ingresses.get(name);
            let of_ingress = |ingress: &Arc<Ingress>| references_of_ingress(ingress, &name.namespace);
            references.extend(ingress.into_iter().flat_map(of_ingress));
            let services =
                ingress.into_iter().flat_map(|ingress| services_of_ingress(ingress, &name.namespace));
            services.collect()
        }
        (_, Kind::Service) => vec![name.clone()],
        _ => Vec::new(),
    };
    let of_services = services.into_iter().flat_map(|name| {
        [Kind::Service, Kind::EndpointSlice].map(|kind| ObjectKey { kind, name: name.clone() })
    });
    of_services.chain(references).collect()
}
