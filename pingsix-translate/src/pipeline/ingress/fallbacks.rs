//! The fallback route of a host takes the requests that match no path of the host, so that they do not fall to wider
//! hosts.
//!
//! Where hosts belong to namespaces ([`HostOwnership::OldestNamespace`]), each host has one, because any namespace may
//! come to own a wider host. The requests go to the default backend of the same namespace if that namespace owns the empty
//! host, and get 404 otherwise.
//!
//! Where hosts are shared, a wildcard of `networking.k8s.io/v1` stands for one label, and PingSIX's for several. A host
//! with more labels than a wildcard stands for has a fallback route if that changes no answer that the specification has:
//! no wildcard is for its requests, no path is for every host, and there is no default backend of another namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::host_ingresses::IngressByAge;
use crate::backends::{Action, ResolvedRule};
use crate::crd::HostOwnership;
use crate::model::{Hostname, ObjectKey};
use crate::normalise::{Hostnames, Part, Path, Route, host_fallback};
use crate::policy::ListenerChains;
use thin_vec::ThinVec;

/// The fallback routes of hosts. The owner of a host is charged for the fallback route.
#[derive(Debug)]
pub(super) struct HostFallbacks {
    ownership: HostOwnership,
    by_host: BTreeMap<Hostname, Claims>,
    /// The Ingresses with a default backend for the empty host.
    defaults: BTreeSet<IngressByAge>,
    /// The route to the default backend of the oldest of these Ingresses.
    default: Option<Route>,
    is_default_stale: bool,
    /// The number of entries of `spec.rules` with paths for every host.
    for_every_host: usize,
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

/// What the routes of an Ingress are for.
#[derive(Default)]
struct RouteClaims<'r> {
    of_hosts: BTreeSet<(&'r Hostname, Claim)>,
    /// The Ingress, if one route is to its default backend.
    default: Option<IngressByAge>,
    for_every_host: usize,
}

impl<'r> RouteClaims<'r> {
    fn of(routes: impl Iterator<Item = &'r Route>) -> Self {
        let mut claims = Self::default();
        for route in routes {
            let ingress = IngressByAge { age: route.age, key: route.key.clone() };
            match (&route.hostnames, route.part) {
                (Hostnames::Any, Part::DefaultBackend) => claims.default = Some(ingress),
                (Hostnames::Any, _) => claims.for_every_host += 1,
                (Hostnames::Named(names), Part::IngressRule(entry) | Part::IngressHost(entry)) => {
                    let claim = Claim { ingress, entry, is_total: matches_everything(route) };
                    claims.of_hosts.extend(names.iter().map(|name| (name, claim.clone())));
                }
                (Hostnames::Named(_), _) => {}
            }
        }
        claims
    }
}

impl HostFallbacks {
    pub(super) const fn new(ownership: HostOwnership) -> Self {
        Self {
            ownership,
            by_host: BTreeMap::new(),
            defaults: BTreeSet::new(),
            default: None,
            is_default_stale: false,
            for_every_host: 0,
            dirty: BTreeSet::new(),
        }
    }

    /// Replaces the routes of an Ingress.
    pub(super) fn replace<'r>(&mut self, before: impl Iterator<Item = &'r Route>, now: &'r [Route]) {
        let (old, new) = (RouteClaims::of(before), RouteClaims::of(now.iter()));
        for (host, claim) in old.of_hosts.difference(&new.of_hosts) {
            self.dirty.insert((*host).clone());
            let Some(claims) = self.by_host.get_mut(*host) else { continue };
            let was_there = claims.oldest_first.remove(claim);
            claims.total -= usize::from(was_there && claim.is_total);
            if claims.oldest_first.is_empty() {
                self.by_host.remove(*host);
                self.mark_below(host);
            }
        }
        for (host, claim) in new.of_hosts.difference(&old.of_hosts) {
            self.dirty.insert((*host).clone());
            if !self.by_host.contains_key(*host) {
                self.mark_below(host);
            }
            let claims = self.by_host.entry((*host).clone()).or_default();
            let is_new = claims.oldest_first.insert(claim.clone());
            claims.total += usize::from(is_new && claim.is_total);
        }
        // The same Ingress may have another default backend.
        self.is_default_stale |= old.default.is_some() || new.default.is_some();
        if let Some(default) = old.default {
            self.defaults.remove(&default);
        }
        self.defaults.extend(new.default);
        let before = self.for_every_host;
        self.for_every_host = before + new.for_every_host - old.for_every_host;
        if (before == 0) != (self.for_every_host == 0) && self.ownership == HostOwnership::Shared {
            self.dirty.extend(self.by_host.keys().cloned());
        }
    }

    /// Marks the hosts below a wildcard that comes or goes.
    fn mark_below(&mut self, host: &Hostname) {
        if host.is_wildcard() && self.ownership == HostOwnership::Shared {
            self.dirty.extend(self.by_host.keys().filter(|other| host.covers_strictly(other)).cloned());
        }
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
                let is_shared = self.ownership == HostOwnership::Shared;
                let is_concerned =
                    |claims: &Claims| is_shared || claims.oldest_first.first().is_some_and(is_of);
                let hosts = self.by_host.iter().filter(|(_, claims)| is_concerned(claims));
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
        let default = self.default.as_ref().filter(is_of_owner);
        if self.ownership == HostOwnership::Shared
            && (!self.falls_too_far(host)
                || self.for_every_host > 0
                || self.default.is_some() != default.is_some())
        {
            return None;
        }
        Some(match default {
            Some(default) => {
                let hostnames = Hostnames::Named(Box::new([host.clone()]));
                Route { hostnames, part: Part::HostDefault, ..default.clone() }
            }
            None => host_fallback(&ingress.key, ingress.age, *entry, host),
        })
    }

    /// Whether the requests of a host would fall to a wildcard although none is for them.
    fn falls_too_far(&self, host: &Hostname) -> bool {
        let mut wider = host.wider();
        let parent = if host.is_wildcard() { None } else { wider.next() };
        parent.is_none_or(|parent| !self.by_host.contains_key(&parent))
            && wider.any(|wider| self.by_host.contains_key(&wider))
    }
}

/// Whether the paths of a route match every request.
fn matches_everything(route: &Route) -> bool {
    let paths = route.rules.iter().flat_map(|rule| rule.matches.iter()).map(|matched| &matched.path);
    paths.into_iter().any(|path| *path == Path::unwritten() || *path == Path::root())
}

/// The 404 of a fallback route without backends.
pub(super) fn not_found() -> ResolvedRule {
    ResolvedRule {
        action: Action::status(404),
        unresolved: ThinVec::default(),
        refused: ThinVec::default(),
        policies: ThinVec::default(),
        chains: ListenerChains::default(),
    }
}
