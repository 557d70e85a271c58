//! What is to be told about each object, over all owners that have something to say about it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::verdict::{PolicyVerdict, RouteVerdict, Verdicts};
use pingsix_translate::{Change, ObjectKey, SharedMap};

/// Verdicts by object, and within it by the owner whose translation gave them.
#[derive(Debug, Default)]
pub(super) struct Shared {
    routes: BTreeMap<Arc<ObjectKey>, BTreeMap<ObjectKey, RouteVerdict>>,
    policies: BTreeMap<Arc<ObjectKey>, BTreeMap<ObjectKey, PolicyVerdict>>,
    /// Whose translation speaks of an object that belongs to one owner at a time: a Gateway, a ListenerSet, an Ingress.
    /// While one moves, that of either may.
    own: BTreeMap<Arc<ObjectKey>, BTreeSet<ObjectKey>>,
}

impl Shared {
    /// Replaces what one owner says. Returns the objects about which something changed.
    pub(super) fn replace(
        &mut self,
        owner: &ObjectKey,
        before: Option<&Verdicts>,
        after: Option<&Verdicts>,
    ) -> BTreeSet<Arc<ObjectKey>> {
        let mut changed = BTreeSet::new();
        for key in own(before) {
            if let Some(owners) = self.own.get_mut(&key) {
                owners.remove(owner);
                if owners.is_empty() {
                    self.own.remove(&key);
                }
            }
            changed.insert(key);
        }
        for key in own(after) {
            self.own.entry(key.clone()).or_default().insert(owner.clone());
            changed.insert(key);
        }
        let routes = |verdicts: Option<&Verdicts>| verdicts.map_or_else(SharedMap::new, |v| v.routes.clone());
        let (routes_before, routes_after) = (routes(before), routes(after));
        for change in routes_after.changes(&routes_before) {
            match change {
                Change::Replaced(_, one, other) if one == other => {}
                Change::Added(key, verdict) | Change::Replaced(key, _, verdict) => {
                    self.routes.entry(key.clone()).or_default().insert(owner.clone(), verdict.clone());
                    changed.insert(key.clone());
                }
                Change::Removed(key, _) => {
                    remove(&mut self.routes, owner, key);
                    changed.insert(key.clone());
                }
            }
        }
        replace(
            &mut self.policies,
            owner,
            before.map(|v| &v.policies),
            after.map(|v| &v.policies),
            &mut changed,
        );
        changed
    }

    /// What all Gateways together say of a route; `None` when none has anything to say any more.
    pub(super) fn route(&self, route: &ObjectKey) -> Option<RouteVerdict> {
        let mut verdicts = self.routes.get(route)?.values();
        let mut merged = verdicts.next()?.clone();
        for verdict in verdicts {
            merged.merge(verdict.clone());
        }
        Some(merged)
    }

    /// Whose translation speaks of a Gateway, ListenerSet or Ingress.
    pub(super) fn owners(&self, object: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.own.get(object).into_iter().flatten()
    }

    /// What each Gateway says of a policy.
    pub(super) fn policy(&self, policy: &ObjectKey) -> Vec<PolicyVerdict> {
        self.policies.get(policy).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }
}

/// The objects that only their owner has something to say about.
fn own(verdicts: Option<&Verdicts>) -> impl Iterator<Item = Arc<ObjectKey>> {
    let gateway = verdicts.and_then(|verdicts| verdicts.gateway.as_ref()).map(|gateway| &gateway.key);
    let sets = verdicts.into_iter().flat_map(|verdicts| verdicts.listener_sets.keys());
    let ingresses = verdicts.into_iter().flat_map(|verdicts| &verdicts.ingresses);
    gateway.into_iter().chain(sets).chain(ingresses).cloned()
}

fn remove<V>(
    held: &mut BTreeMap<Arc<ObjectKey>, BTreeMap<ObjectKey, V>>,
    owner: &ObjectKey,
    key: &Arc<ObjectKey>,
) {
    if let Some(verdicts) = held.get_mut(key) {
        verdicts.remove(owner);
        if verdicts.is_empty() {
            held.remove(key);
        }
    }
}

fn replace<V: Clone + PartialEq>(
    held: &mut BTreeMap<Arc<ObjectKey>, BTreeMap<ObjectKey, V>>,
    owner: &ObjectKey,
    before: Option<&BTreeMap<Arc<ObjectKey>, V>>,
    after: Option<&BTreeMap<Arc<ObjectKey>, V>>,
    changed: &mut BTreeSet<Arc<ObjectKey>>,
) {
    for key in before.into_iter().flat_map(BTreeMap::keys) {
        if after.is_some_and(|after| after.contains_key(key)) {
            continue;
        }
        remove(held, owner, key);
        changed.insert(key.clone());
    }
    for (key, verdict) in after.into_iter().flatten() {
        if before.and_then(|before| before.get(key)) == Some(verdict) {
            continue;
        }
        held.entry(key.clone()).or_default().insert(owner.clone(), verdict.clone());
        changed.insert(key.clone());
    }
}
