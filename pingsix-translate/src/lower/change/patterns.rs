//! Which Routes have to list other patterns than before.
//!
//! What a Route lists ([`crate::lower::closure`]) depends on the set of patterns of its host. Only when that set changes
//! are other Routes of the host closed again: those with a catch-all above a pattern that came or went. Hosts that cover
//! each other carry patterns into each other's routers, and are closed together, all of them, when one of them changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::{LoweredPlane, Stale, Work};
use crate::attach::Hostname;
use crate::lower::budget::Room;
use crate::lower::closure::{Closed, HostTree, Matched, Pattern, close, covered_of, in_order};
use crate::lower::table::TableKey;
use crate::options::Options;
use crate::packed::pack;

/// By host: patterns that came or went.
pub(super) type ChangedPatterns = BTreeMap<Option<Hostname>, OfHost>;

/// What is different about the patterns of one host.
#[derive(Debug)]
pub(super) struct OfHost {
    /// Whether it had any.
    was_there: bool,
    /// Those that came or went.
    changed: BTreeSet<Pattern>,
}

/// The patterns that Routes have themselves, by host.
#[derive(Debug, Default)]
pub(super) struct HostPatterns {
    /// Every pattern of every Route.
    own: BTreeSet<Own>,
    /// How many of the hosts are wildcards.
    wildcards: usize,
    /// Hosts that cover others, or are covered.
    linked: BTreeSet<Hostname>,
    /// Whether hosts came or went since they were linked.
    is_unlinked: bool,
}

/// A pattern that a Route has itself. In this order, what Routes of a host have is together, and so is who has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Own {
    host: Option<Hostname>,
    pattern: Pattern,
    /// The Route; none comes before all of them.
    key: Option<Arc<TableKey>>,
}

impl HostPatterns {
    /// The patterns of a host from one on, with who has them.
    fn from<'p>(&'p self, host: Option<&'p Hostname>, first: Pattern) -> impl Iterator<Item = &'p Own> {
        let first = Own { host: host.cloned(), pattern: first, key: None };
        let range = (Bound::Included(first), Bound::Unbounded);
        self.own.range(range).take_while(move |own| own.host.as_ref() == host)
    }

    /// The Routes that have a pattern.
    fn with<'p>(
        &'p self,
        host: Option<&'p Hostname>,
        pattern: &'p Pattern,
    ) -> impl Iterator<Item = &'p Arc<TableKey>> {
        let with = self.from(host, pattern.clone()).take_while(move |own| own.pattern == *pattern);
        with.filter_map(|own| own.key.as_ref())
    }

    /// Whether some Route has the host.
    fn has(&self, host: Option<&Hostname>) -> bool {
        let first = Pattern { literal: Arc::from(""), catch_all: false };
        self.from(host, first).next().is_some()
    }

    /// Notes that a pattern of a host may come or go.
    fn touch<'c>(&self, host: Option<&Hostname>, changed: &'c mut ChangedPatterns) -> &'c mut OfHost {
        let of_host = changed.entry(host.cloned());
        of_host.or_insert_with(|| OfHost { was_there: self.has(host), changed: BTreeSet::new() })
    }

    /// Adds the patterns of a Route.
    pub(super) fn add(&mut self, key: &Arc<TableKey>, changed: &mut ChangedPatterns) {
        let host = key.host();
        let of_host = self.touch(host.as_ref(), changed);
        for pattern in Pattern::of(key.path.as_ref()) {
            if self.with(host.as_ref(), &pattern).next().is_none() {
                of_host.changed.insert(pattern.clone());
            }
            self.own.insert(Own { host: host.clone(), pattern, key: Some(key.clone()) });
        }
    }

    /// Removes the patterns of a Route.
    pub(super) fn remove(&mut self, key: &Arc<TableKey>, changed: &mut ChangedPatterns) {
        let host = key.host();
        let of_host = self.touch(host.as_ref(), changed);
        for pattern in Pattern::of(key.path.as_ref()) {
            let own = Own { host: host.clone(), pattern, key: Some(key.clone()) };
            self.own.remove(&own);
            if self.with(host.as_ref(), &own.pattern).next().is_none() {
                of_host.changed.insert(own.pattern);
            }
        }
    }

    /// Takes note of the hosts that came or went in a change.
    pub(super) fn settle(&mut self, changed: &ChangedPatterns) {
        for (host, OfHost { was_there, .. }) in changed {
            let is_there = self.has(host.as_ref());
            if is_there == *was_there {
                continue;
            }
            self.is_unlinked = true;
            if host.as_ref().is_some_and(Hostname::is_wildcard) {
                self.wildcards = if is_there { self.wildcards + 1 } else { self.wildcards - 1 };
            }
        }
    }

    /// The Routes with a catch-all that covers a pattern, or is it.
    fn above(&self, host: Option<&Hostname>, pattern: &Pattern) -> BTreeSet<Arc<TableKey>> {
        let stems = std::iter::successors(Some(&*pattern.literal), |stem| Some(stem.rsplit_once('/')?.0));
        let catch_alls = stems.map(|stem| Pattern { literal: [stem, "/"].concat().into(), catch_all: true });
        catch_alls.flat_map(|catch_all| self.with(host, &catch_all).cloned().collect::<Vec<_>>()).collect()
    }

    /// Takes no more memory than what is there needs.
    pub(super) fn pack(&mut self) {
        pack(&mut self.own);
    }

    /// Finds out which hosts cover each other.
    pub(super) fn link(&mut self) {
        let hosts = self.own.iter().filter_map(|own| own.host.as_ref());
        self.linked = if self.wildcards > 0 { HostTree::new(hosts).linked() } else { BTreeSet::new() };
        self.is_unlinked = false;
    }

    fn is_linked(&self, host: Option<&Hostname>) -> bool {
        host.is_some_and(|host| self.linked.contains(host))
    }

    /// What a Route of a host that is not linked lists.
    fn closed(&self, key: &TableKey, host: Option<&Hostname>) -> Closed {
        let own = Pattern::of(key.path.as_ref());
        let mut list: Vec<&Pattern> = own.iter().collect();
        for catch_all in own.iter().filter(|pattern| pattern.catch_all) {
            let of_host = self.from(host, catch_all.first_covered()).map(|own| &own.pattern);
            list.extend(covered_of(of_host, catch_all));
        }
        let hosts = Arc::new(host.map(|host| host.as_str().to_owned()).into_iter().collect());
        Closed { hosts, uris: in_order(list) }
    }
}

impl LoweredPlane {
    /// Lists the patterns of Routes that are new, or that others' patterns concern.
    pub(super) fn close(&mut self, work: &mut Work, options: &Options) -> Result<(), Stale> {
        let mut to_close = std::mem::take(&mut work.to_close);
        for (host, of_host) in &work.patterns {
            to_close.extend(
                of_host.changed.iter().flat_map(|pattern| self.patterns.above(host.as_ref(), pattern)),
            );
        }
        let is_changed = |(host, of_host): (&Option<Hostname>, &OfHost)| {
            !of_host.changed.is_empty() && self.patterns.is_linked(host.as_ref())
        };
        let mut linked_changed = work.patterns.iter().any(is_changed);
        self.patterns.settle(&work.patterns);
        if self.patterns.is_unlinked {
            let before = std::mem::take(&mut self.patterns.linked);
            self.patterns.link();
            linked_changed |= before != self.patterns.linked;
            let apart = before.difference(&self.patterns.linked).cloned().collect();
            to_close.extend(self.of_hosts(&apart));
        }
        linked_changed |= to_close
            .iter()
            .any(|key| self.table.contains_key(key) && self.patterns.is_linked(key.host().as_ref()));
        if linked_changed {
            let together = self.of_hosts(&self.patterns.linked);
            let hosts: Vec<Option<Hostname>> = together.iter().map(|key| key.host()).collect();
            let matched: Vec<Matched<'_>> = together
                .iter()
                .zip(&hosts)
                .map(|(key, host)| Matched { path: key.path.as_ref(), host: host.as_ref() })
                .collect();
            let closed = close(&matched, &mut Room::of(options.budget)).ok_or(Stale)?;
            work.closed = together.into_iter().zip(closed).collect();
        }
        for key in to_close {
            let host = key.host();
            if self.table.contains_key(&key) && !self.patterns.is_linked(host.as_ref()) {
                let closed = self.patterns.closed(&key, host.as_ref());
                work.closed.insert(key, closed);
            }
        }
        Ok(())
    }

    /// The Routes of some hosts.
    fn of_hosts(&self, hosts: &BTreeSet<Hostname>) -> Vec<Arc<TableKey>> {
        if hosts.is_empty() {
            return Vec::new();
        }
        let of_hosts = self.table.keys().filter(|key| key.host().is_some_and(|host| hosts.contains(&host)));
        of_hosts.cloned().collect()
    }
}
