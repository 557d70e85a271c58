//! Which Routes have to list other patterns than before.
//!
//! What a Route lists ([`crate::lower::closure`]) depends on the set of patterns of its host. Only when that set changes
//! are other Routes of the host closed again: those with a catch-all above a pattern that came or went. Hosts that cover
//! each other carry patterns into each other's routers, and are closed together, all of them, when one of them changes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{LoweredPlane, Stale, Work};
use crate::attach::Hostname;
use crate::lower::budget::Room;
use crate::lower::closure::{Closed, HostTree, Matched, Pattern, close, listed};
use crate::lower::table::TableKey;
use crate::options::Options;

/// By host: patterns that came or went.
pub(super) type ChangedPatterns = BTreeMap<Option<Hostname>, BTreeSet<Pattern>>;

/// The patterns that Routes have themselves, by host.
#[derive(Debug, Default)]
pub(super) struct HostPatterns {
    hosts: BTreeMap<Option<Hostname>, OfHost>,
    /// How many of the hosts are wildcards.
    wildcards: usize,
    /// Hosts that cover others, or are covered.
    linked: BTreeSet<Hostname>,
    /// Whether hosts came or went since they were linked.
    is_unlinked: bool,
}

/// The patterns of one host.
#[derive(Debug, Default)]
struct OfHost {
    /// With the number of Routes that have them.
    counts: BTreeMap<Pattern, usize>,
    set: BTreeSet<Pattern>,
    /// By the end of what they catch all of: Routes, sorted. Most stems have one.
    by_stem: BTreeMap<Box<str>, Vec<TableKey>>,
}

impl OfHost {
    /// The Routes with a catch-all that covers a pattern, or is it.
    fn above<'o>(&'o self, pattern: &'o Pattern) -> impl Iterator<Item = &'o TableKey> {
        let stems = std::iter::successors(Some(&*pattern.literal), |stem| Some(stem.rsplit_once('/')?.0));
        stems.filter_map(|stem| self.by_stem.get(stem)).flatten()
    }
}

/// What a catch-all is above of.
fn stem(pattern: &Pattern) -> Option<&str> {
    pattern.catch_all.then(|| pattern.literal.strip_suffix('/').unwrap_or(&pattern.literal))
}

impl HostPatterns {
    /// Adds the patterns of a Route.
    pub(super) fn add(&mut self, key: &TableKey, host: Option<&Hostname>, changed: &mut ChangedPatterns) {
        let of_host = match self.hosts.entry(host.cloned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                self.wildcards += usize::from(host.is_some_and(Hostname::is_wildcard));
                self.is_unlinked = true;
                new.insert(OfHost::default())
            }
        };
        for pattern in Pattern::of(key.path.as_ref()) {
            if let Some(stem) = stem(&pattern) {
                let keys = of_host.by_stem.entry(stem.into()).or_insert_with(|| Vec::with_capacity(1));
                if let Err(at) = keys.binary_search(key) {
                    keys.insert(at, key.clone());
                }
            }
            let count = of_host.counts.entry(pattern.clone()).or_default();
            *count += 1;
            if *count == 1 {
                of_host.set.insert(pattern.clone());
                changed.entry(host.cloned()).or_default().insert(pattern);
            }
        }
    }

    /// Removes the patterns of a Route. The host stays until [`drop_empty`](Self::drop_empty).
    pub(super) fn remove(&mut self, key: &TableKey, host: Option<&Hostname>, changed: &mut ChangedPatterns) {
        let Some(of_host) = self.hosts.get_mut(&host.cloned()) else { return };
        for pattern in Pattern::of(key.path.as_ref()) {
            if let Some(stem) = stem(&pattern)
                && let Some(keys) = of_host.by_stem.get_mut(stem)
            {
                if let Ok(at) = keys.binary_search(key) {
                    keys.remove(at);
                }
                if keys.is_empty() {
                    of_host.by_stem.remove(stem);
                }
            }
            if let Some(count) = of_host.counts.get_mut(&pattern) {
                *count -= 1;
                if *count == 0 {
                    of_host.counts.remove(&pattern);
                    of_host.set.remove(&pattern);
                    changed.entry(host.cloned()).or_default().insert(pattern);
                }
            }
        }
    }

    /// Drops those of some hosts that have no patterns any more.
    fn drop_empty<'h>(&mut self, hosts: impl Iterator<Item = &'h Option<Hostname>>) {
        for host in hosts {
            if self.hosts.get(host).is_some_and(|of_host| of_host.set.is_empty()) {
                self.hosts.remove(host);
                self.wildcards -= usize::from(host.as_ref().is_some_and(Hostname::is_wildcard));
                self.is_unlinked = true;
            }
        }
    }

    /// Finds out which hosts cover each other.
    pub(super) fn link(&mut self) {
        let hosts = self.hosts.keys().flatten();
        self.linked = if self.wildcards > 0 { HostTree::new(hosts).linked() } else { BTreeSet::new() };
        self.is_unlinked = false;
    }

    fn is_linked(&self, host: Option<&Hostname>) -> bool {
        host.is_some_and(|host| self.linked.contains(host))
    }

    /// What a Route of a host that is not linked lists.
    fn closed(&self, key: &TableKey, host: Option<&Hostname>) -> Option<Closed> {
        let of_host = self.hosts.get(&host.cloned())?;
        let uris = listed(&Pattern::of(key.path.as_ref()), std::iter::once(&of_host.set));
        let hosts = Arc::new(host.map(|host| host.as_str().to_owned()).into_iter().collect());
        Some(Closed { hosts, uris })
    }
}

impl LoweredPlane {
    /// Lists the patterns of Routes that are new, or that others' patterns concern.
    pub(super) fn close(&mut self, work: &mut Work, options: &Options) -> Result<(), Stale> {
        let mut to_close = std::mem::take(&mut work.to_close);
        for (host, patterns) in &work.patterns {
            if let Some(of_host) = self.patterns.hosts.get(host) {
                to_close.extend(patterns.iter().flat_map(|pattern| of_host.above(pattern)).cloned());
            }
        }
        let mut linked_changed = work.patterns.keys().any(|host| self.patterns.is_linked(host.as_ref()));
        self.patterns.drop_empty(work.patterns.keys());
        if self.patterns.is_unlinked {
            let before = std::mem::take(&mut self.patterns.linked);
            self.patterns.link();
            linked_changed |= before != self.patterns.linked;
            let apart = before.difference(&self.patterns.linked).cloned().collect();
            to_close.extend(self.of_hosts(&apart));
        }
        linked_changed |= to_close
            .iter()
            .any(|key| self.table.get(key).is_some_and(|route| self.patterns.is_linked(route.host.as_ref())));
        if linked_changed {
            let together = self.of_hosts(&self.patterns.linked);
            let matched = together.iter().filter_map(|key| self.table.get(key));
            let matched: Vec<Matched<'_>> = matched
                .map(|route| Matched { path: route.key.path.as_ref(), host: route.host.as_ref() })
                .collect();
            let closed = close(&matched, &mut Room::of(options.budget)).ok_or(Stale)?;
            work.closed = together.into_iter().zip(closed).collect();
        }
        for key in to_close {
            if let Some(route) = self.table.get(&key)
                && !self.patterns.is_linked(route.host.as_ref())
                && let Some(closed) = self.patterns.closed(&key, route.host.as_ref())
            {
                work.closed.insert(key, closed);
            }
        }
        Ok(())
    }

    /// The Routes of some hosts.
    fn of_hosts(&self, hosts: &BTreeSet<Hostname>) -> Vec<TableKey> {
        if hosts.is_empty() {
            return Vec::new();
        }
        let routes = self.table.values();
        let of_hosts = routes.filter(|route| route.host.as_ref().is_some_and(|host| hosts.contains(host)));
        of_hosts.map(|route| route.key.clone()).collect()
    }
}
