//! The Routes that list other patterns than before.
//!
//! The patterns in a Route ([`crate::lower::closure`]) depend on the set of patterns of its host. Other Routes of the
//! host are closed again only if that set changes, and only those with a catch-all above an added or removed pattern.
//! Hosts that cover each other carry patterns into each other's routers. They are closed together when one of them
//! changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{LoweredPlane, Stale, Work};
use crate::lower::closure::{Closed, HostTree, Matched, Pattern, close, in_order};
use crate::lower::path_map::prefixes;
use crate::lower::room::Room;
use crate::lower::table::TableKey;
use crate::model::Hostname;
use crate::normalise::{Path, PathKind, SpellingEnds, other_spellings};

/// Added and removed patterns by host.
pub(super) type ChangedPatterns = BTreeMap<Option<Hostname>, HostPatternDiff>;

/// The difference of the patterns of one host.
#[derive(Debug)]
pub(super) struct HostPatternDiff {
    /// Whether it had any.
    was_there: bool,
    /// Added and removed patterns.
    changed: BTreeSet<Pattern>,
}

/// The patterns that Routes have themselves, by host.
#[derive(Debug, Default)]
pub(super) struct HostPatterns {
    /// Every Route.
    routes: BTreeSet<HostRoute>,
    /// The number of wildcard hosts.
    wildcards: usize,
    /// Hosts that cover other hosts or that other hosts cover.
    linked: BTreeSet<Hostname>,
    /// Whether hosts were added or removed since they were linked.
    is_unlinked: bool,
}

/// A Route with patterns of its own. The order groups the Routes of a host, and within a host the Routes below a
/// path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HostRoute {
    host: Option<Hostname>,
    /// The path as written. All patterns of the Route begin with it, apart from a slash at the end. A Route for other
    /// spellings has an entry with the text of each.
    text: Arc<str>,
    /// `None` for a Route that is not for other spellings.
    spelling: Option<SpellingEnds>,
    /// The Route; `None` sorts first.
    key: Option<Arc<TableKey>>,
}

impl HostRoute {
    /// The entries of a Route.
    fn all(key: &Arc<TableKey>) -> Vec<Self> {
        let host = key.host();
        let entry = |text, spelling| Self { host: host.clone(), text, spelling, key: Some(key.clone()) };
        let Some(path) = &key.path else { return vec![entry(Arc::from("/"), None)] };
        let is_open = match path.kind {
            PathKind::Exact | PathKind::Prefix | PathKind::Literal => {
                return vec![entry(path.text.clone(), None)];
            }
            PathKind::Spellings => false,
            PathKind::LiteralSpellings => true,
        };
        let spellings = other_spellings(&path.text, is_open).into_iter();
        spellings.map(|spelling| entry(spelling.text.into(), Some(spelling.ends))).collect()
    }

    /// The first entry of a host with a text, and before all others with it.
    fn first(host: Option<&Hostname>, text: &str) -> Self {
        Self { host: host.cloned(), text: text.into(), spelling: None, key: None }
    }

    /// The patterns of the Route that begin with the text.
    fn patterns(&self) -> Vec<Pattern> {
        match (&self.key, self.spelling) {
            (None, _) => Vec::new(),
            (Some(key), None) => Pattern::of(key.path.as_ref()),
            (Some(_), Some(ends)) => Pattern::of_spelling(&self.text, ends),
        }
    }
}

impl HostPatterns {
    /// The patterns of these Routes.
    pub(super) fn new<'k>(keys: impl Iterator<Item = &'k Arc<TableKey>>) -> Self {
        let routes: BTreeSet<HostRoute> = keys.flat_map(HostRoute::all).collect();
        let hosts: BTreeSet<&Hostname> = routes.iter().filter_map(|route| route.host.as_ref()).collect();
        let wildcards = hosts.into_iter().filter(|host| host.is_wildcard()).count();
        let mut patterns = Self { routes, wildcards, linked: BTreeSet::new(), is_unlinked: false };
        patterns.link();
        patterns
    }

    /// The Routes of a host from a text on.
    fn from<'p>(
        &'p self,
        host: Option<&'p Hostname>,
        text: &str,
    ) -> impl Iterator<Item = &'p HostRoute> + use<'p> {
        self.routes.range(HostRoute::first(host, text)..).take_while(move |route| route.host.as_ref() == host)
    }

    /// The Routes with a pattern: their text is the pattern's, with or without a slash at the end.
    fn with<'p>(
        &'p self,
        host: Option<&'p Hostname>,
        pattern: &'p Pattern,
    ) -> impl Iterator<Item = &'p Arc<TableKey>> {
        let stem = pattern.literal.strip_suffix('/').unwrap_or(&pattern.literal);
        let written = [stem.to_owned(), [stem, "/"].concat()];
        let routes = written
            .into_iter()
            .flat_map(move |text| self.from(host, &text).take_while(move |route| *route.text == *text));
        routes.filter(|route| route.patterns().contains(pattern)).filter_map(|route| route.key.as_ref())
    }

    /// The patterns of a host that a catch-all covers. Such a pattern and the text of its Route begin with the
    /// catch-all's literal.
    fn covered(&self, host: Option<&Hostname>, by: &Pattern) -> Vec<Pattern> {
        let below = self.from(host, &by.literal).take_while(|route| route.text.starts_with(&*by.literal));
        below.flat_map(HostRoute::patterns).filter(|pattern| by.covers(pattern)).collect()
    }

    /// An upper bound of the patterns that another Route of a host would list, and of the Routes that would list its own:
    /// bytes and patterns.
    pub(super) fn listed_with(&self, host: Option<&Hostname>, path: &Path) -> (usize, usize) {
        let (mut bytes, mut count) = (0, 0);
        for pattern in Pattern::of(Some(path)) {
            let times = self.above(host, &pattern).len();
            bytes += pattern.listed_len().saturating_mul(times);
            count += times;
            if pattern.catch_all {
                let below = self.covered(host, &pattern);
                bytes += below.iter().map(Pattern::listed_len).sum::<usize>();
                count += below.len();
            }
        }
        (bytes, count)
    }

    /// Whether some Route has the host.
    pub(super) fn has(&self, host: Option<&Hostname>) -> bool {
        self.from(host, "").next().is_some()
    }

    /// Notes that a pattern of a host may come or go.
    fn touch<'c>(
        &self,
        host: Option<&Hostname>,
        changed: &'c mut ChangedPatterns,
    ) -> &'c mut HostPatternDiff {
        let of_host = changed.entry(host.cloned());
        of_host.or_insert_with(|| HostPatternDiff { was_there: self.has(host), changed: BTreeSet::new() })
    }

    /// Adds the patterns of a Route.
    pub(super) fn add(&mut self, key: &Arc<TableKey>, changed: &mut ChangedPatterns) {
        for route in HostRoute::all(key) {
            self.touch_new(&route, changed);
            self.routes.insert(route);
        }
    }

    /// Removes the patterns of a Route.
    pub(super) fn remove(&mut self, key: &Arc<TableKey>, changed: &mut ChangedPatterns) {
        for route in HostRoute::all(key) {
            // The host existed before the removal.
            self.touch(route.host.as_ref(), changed);
            self.routes.remove(&route);
            self.touch_new(&route, changed);
        }
    }

    /// Marks the patterns that only this Route has as added or removed.
    fn touch_new(&self, route: &HostRoute, changed: &mut ChangedPatterns) {
        let host = route.host.as_ref();
        let is_new = |pattern: &Pattern| self.with(host, pattern).next().is_none();
        self.touch(host, changed).changed.extend(route.patterns().into_iter().filter(is_new));
    }

    /// Updates the hosts that were added or removed in a change.
    pub(super) fn settle(&mut self, changed: &ChangedPatterns) {
        for (host, HostPatternDiff { was_there, .. }) in changed {
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

    /// The Routes whose catch-all covers or equals a pattern. The text of such a Route is a prefix of the pattern's.
    fn above(&self, host: Option<&Hostname>, pattern: &Pattern) -> BTreeSet<Arc<TableKey>> {
        let is_above =
            |own: &Pattern| own.catch_all && (own.literal == pattern.literal || own.covers(pattern));
        let last_up_to = |text: &str| {
            // No other text comes between.
            let behind = HostRoute::first(host, &[text, "\0"].concat());
            let last = self.routes.range(..behind).next_back();
            last.filter(|last| last.host.as_ref() == host).map(|last| &*last.text)
        };
        let texts = prefixes(&pattern.literal, last_up_to).into_iter();
        let routes =
            texts.flat_map(|text| self.from(host, text).take_while(move |route| *route.text == *text));
        let above = routes.filter(|route| route.patterns().iter().any(is_above));
        above.filter_map(|route| route.key.clone()).collect()
    }

    /// Determines which hosts cover each other.
    fn link(&mut self) {
        let hosts = self.routes.iter().filter_map(|route| route.host.as_ref());
        self.linked = if self.wildcards > 0 { HostTree::new(hosts).linked() } else { BTreeSet::new() };
        self.is_unlinked = false;
    }

    fn is_linked(&self, host: Option<&Hostname>) -> bool {
        host.is_some_and(|host| self.linked.contains(host))
    }

    /// The patterns in a Route of a host that is not linked.
    fn closed(&self, key: &TableKey, host: Option<&Hostname>) -> Closed {
        let own = Pattern::of(key.path.as_ref());
        let catch_alls = own.iter().filter(|pattern| pattern.catch_all);
        let covered: Vec<Pattern> = catch_alls.flat_map(|pattern| self.covered(host, pattern)).collect();
        let list = own.iter().chain(&covered).collect();
        let hosts = Arc::new(host.map(|host| host.as_str().to_owned()).into_iter().collect());
        Closed { hosts, uris: in_order(list) }
    }
}

impl LoweredPlane {
    /// Lists the patterns of Routes that are new, or whose host has other patterns.
    pub(super) fn close(&mut self, work: &mut Work) -> Result<(), Stale> {
        let mut to_close = std::mem::take(&mut work.to_close);
        for (host, of_host) in &work.patterns {
            to_close.extend(
                of_host.changed.iter().flat_map(|pattern| self.patterns.above(host.as_ref(), pattern)),
            );
        }
        let is_changed = |(host, of_host): (&Option<Hostname>, &HostPatternDiff)| {
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
            let closed = close_together(together.iter(), &mut work.room)?;
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

/// The patterns of Routes that are closed together. Hosts of other Routes neither cover their hosts nor are covered by them.
pub(super) fn close_together<'k>(
    keys: impl Iterator<Item = &'k Arc<TableKey>>,
    room: &mut Room,
) -> Result<Vec<Closed>, Stale> {
    let hosts: Vec<(&TableKey, Option<Hostname>)> = keys.map(|key| (&**key, key.host())).collect();
    let routes = hosts.iter();
    let matched = routes.map(|(key, host)| Matched { path: key.path.as_ref(), host: host.as_ref() });
    close(&matched.collect::<Vec<_>>(), room).ok_or(Stale)
}
