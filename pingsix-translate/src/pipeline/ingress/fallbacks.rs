//! The fallback route of a host takes the requests that match no path of the host, where hosts belong to namespaces
//! ([`HostOwnership::OldestNamespace`](crate::crd::HostOwnership::OldestNamespace)).
//!
//! These requests do not fall to wider hosts, because any namespace may come to own a wider host. They go to the default
//! backend of the same namespace if that namespace owns the empty host, and get 404 otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::host_ingresses::IngressByAge;
use crate::model::{Hostname, ObjectKey};
use crate::normalise::{Hostnames, Part, Path, Route, host_fallback};

/// The fallback routes of hosts. The owner of a host is charged for the fallback route.
#[derive(Debug, Default)]
pub(super) struct HostFallbacks {
    by_host: BTreeMap<Hostname, Claims>,
    /// The Ingresses with a default backend for the empty host.
    defaults: BTreeSet<IngressByAge>,
    /// The route to the default backend of the oldest of these Ingresses.
    default: Option<Route>,
    is_default_stale: bool,
    /// Hosts whose routes changed since the last query.
    dirty: BTreeSet<Hostname>,
}

/// The entries of `spec.rules` for a host.
#[derive(Debug, Default)]
struct Claims {
    oldest_first: BTreeSet<Claim>,
    /// The number of entries whose paths match every request.
    total: usize,
}

/// An entry of `spec.rules` for a host, by the age of its Ingress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    ingress: IngressByAge,
    entry: usize,
    /// Whether the paths of the entry match every request.
    is_total: bool,
}

/// The claims of the routes of an Ingress, and the Ingress if one route is to its default backend.
fn claims_of<'r>(
    routes: impl Iterator<Item = &'r Route>,
) -> (BTreeSet<(&'r Hostname, Claim)>, Option<IngressByAge>) {
    let (mut claims, mut default) = (BTreeSet::new(), None);
    for route in routes {
        let ingress = IngressByAge { age: route.age, key: route.key.clone() };
        match (&route.hostnames, route.part) {
            (Hostnames::Any, Part::DefaultBackend) => default = Some(ingress),
            (
                Hostnames::Named(names),
                Part::IngressRule(entry) | Part::IngressChallenges(entry) | Part::IngressHost(entry),
            ) => {
                let claim = Claim { ingress, entry, is_total: matches_everything(route) };
                claims.extend(names.iter().map(|name| (name, claim.clone())));
            }
            (Hostnames::Any | Hostnames::Named(_), _) => {}
        }
    }
    (claims, default)
}

impl HostFallbacks {
    /// Replaces the routes of an Ingress.
    pub(super) fn replace<'r>(&mut self, before: impl Iterator<Item = &'r Route>, now: &'r [Route]) {
        let (old, old_default) = claims_of(before);
        let (new, new_default) = claims_of(now.iter());
        for (host, claim) in old.difference(&new) {
            self.dirty.insert((*host).clone());
            let Some(claims) = self.by_host.get_mut(*host) else { continue };
            let was_there = claims.oldest_first.remove(claim);
            claims.total -= usize::from(was_there && claim.is_total);
            if claims.oldest_first.is_empty() {
                self.by_host.remove(*host);
            }
        }
        for (host, claim) in new.difference(&old) {
            self.dirty.insert((*host).clone());
            let claims = self.by_host.entry((*host).clone()).or_default();
            let is_new = claims.oldest_first.insert(claim.clone());
            claims.total += usize::from(is_new && claim.is_total);
        }
        // The same Ingress may have another default backend.
        self.is_default_stale |= old_default.is_some() || new_default.is_some();
        if let Some(default) = old_default {
            self.defaults.remove(&default);
        }
        self.defaults.extend(new_default);
    }

    /// The fallback routes that may have changed since the last query; `None` for a host whose paths match every request.
    /// `default_of` reads the route to the default backend of an Ingress.
    pub(super) fn take(
        &mut self,
        default_of: impl FnOnce(&Arc<ObjectKey>) -> Option<Route>,
    ) -> Vec<(Hostname, Option<Route>)> {
        if std::mem::take(&mut self.is_default_stale) {
            let now = self.defaults.first().and_then(|ingress| default_of(&ingress.key));
            if now != self.default {
                let before = std::mem::replace(&mut self.default, now);
                let defaults = before.iter().chain(&self.default);
                let of: BTreeSet<&str> = defaults.map(|route| &*route.key.name.namespace).collect();
                let is_of = |claim: &Claim| of.contains(claim.ingress.namespace());
                let is_owned = |claims: &Claims| claims.oldest_first.first().is_some_and(is_of);
                let hosts = self.by_host.iter().filter(|(_, claims)| is_owned(claims));
                self.dirty.extend(hosts.map(|(host, _)| host.clone()));
            }
        }
        let dirty = std::mem::take(&mut self.dirty).into_iter();
        dirty.map(|host| (host.clone(), self.fallback(&host))).collect()
    }

    fn fallback(&self, host: &Hostname) -> Option<Route> {
        let claims = self.by_host.get(host).filter(|claims| claims.total == 0)?;
        let Claim { ingress, entry, .. } = claims.oldest_first.first()?;
        let is_of_owner = |default: &&Route| *default.key.name.namespace == *ingress.namespace();
        Some(match self.default.as_ref().filter(is_of_owner) {
            Some(default) => {
                let hostnames = Hostnames::Named(Box::new([host.clone()]));
                Route { hostnames, part: Part::HostDefault, ..default.clone() }
            }
            None => host_fallback(&ingress.key, ingress.age, *entry, host),
        })
    }
}

/// Whether the paths of a route match every request.
fn matches_everything(route: &Route) -> bool {
    let paths = route.rules.iter().flat_map(|rule| rule.matches.iter()).map(|matched| &matched.path);
    paths.into_iter().any(|path| *path == Path::unwritten() || *path == Path::root())
}
