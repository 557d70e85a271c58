//! The closure of a route table, which makes it independent of PingSIX's insertion order.
//!
//! PingSIX inserts Routes in random order, and looks each pattern up *as if it were a request* before it makes an
//! entry for it: with `/{*p}` present, `/foo/{*p}` never gets an entry of its own, and the Route lands in the wrong
//! one. Hosts have the same defect (`src/proxy/route.rs`, `insert_into_router`).
//!
//! Therefore every Route lists, before a broad pattern of its own, all narrower patterns of its routers; and before a
//! wildcard host, all hosts of the table that the wildcard covers. Then, in every order, a router with a broad
//! pattern also has all patterns that it covers (by induction over the insertions: a Route brings the covered ones
//! along, earlier). So a lookup of a pattern's text finds its own entry or none, and each entry ends up with exactly
//! the Routes that list it.
//!
//! `hosts` and `uris` of a Route are a cross product, so patterns listed for one host appear in every router of the
//! Route, where other Routes must list them in turn: the closure is a fixpoint. It has a closed form. All Routes with
//! one wildcard host W land in the same routers, those of W and of the hosts it covers; the patterns they carry there
//! are S(W): their own, and the patterns of these routers that their catch-alls cover. A router holds the patterns of
//! its own Routes, and S(W) for each W that covers it. Only the S(W) depend on each other, along nested wildcards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::room::Room;
use crate::model::Hostname;
use crate::normalise::{Path, PathKind, SpellingEnds, other_spellings};

/// The name PingSIX patterns give to the rest of a path. Any will do; all must be one.
const REST: &str = "{*p}";

/// A path pattern of PingSIX: an exact path, or everything behind a literal, at least one character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    /// Without the catch-all.
    pub(super) literal: Arc<str>,
    pub(super) catch_all: bool,
}

impl Pattern {
    /// The patterns that together match the requests of a path. PingSIX's catch-all needs at least one character.
    pub(super) fn of(path: Option<&Path>) -> Vec<Self> {
        let exact = |literal: Arc<str>| Self { literal, catch_all: false };
        let below = |literal: Arc<str>| Self { literal, catch_all: true };
        let root = |slash: Arc<str>| vec![exact(slash.clone()), below(slash)];
        let Some(path) = path else { return root(Arc::from("/")) };
        match (path.kind, path.stem()) {
            (PathKind::Exact, _) => vec![exact(path.text.clone())],
            (PathKind::Spellings | PathKind::LiteralSpellings, text) => {
                let all = other_spellings(text, path.kind == PathKind::LiteralSpellings).into_iter();
                all.flat_map(|spelling| Self::of_spelling(&spelling.text.into(), spelling.ends)).collect()
            }
            (PathKind::Literal, _) => vec![exact(path.text.clone()), below(path.text.clone())],
            (PathKind::Prefix, "") if path.text.is_empty() => root(Arc::from("/")),
            (PathKind::Prefix, "") => root(path.text.clone()),
            (PathKind::Prefix, stem) => {
                let stem = if stem.len() == path.text.len() { path.text.clone() } else { Arc::from(stem) };
                let slash: Arc<str> = Arc::from([&*stem, "/"].concat());
                vec![exact(stem), exact(slash.clone()), below(slash)]
            }
        }
    }

    /// The patterns of the spellings of a path that begin with a text.
    pub(super) fn of_spelling(text: &Arc<str>, ends: SpellingEnds) -> Vec<Self> {
        let of = |catch_all| Self { literal: text.clone(), catch_all };
        let exact = ends.alone.then(|| of(false));
        exact.into_iter().chain(ends.longer.then(|| of(true))).collect()
    }

    /// Whether this pattern is a catch-all for the longer literal of another pattern.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.catch_all
            && other.literal.len() > self.literal.len()
            && other.literal.starts_with(&*self.literal)
    }

    /// The length of the pattern as PingSIX reads it.
    fn text_len(&self) -> usize {
        self.literal.len() + if self.catch_all { REST.len() } else { 0 }
    }

    /// Bytes that the pattern takes in a list, with quotes and a comma.
    pub(super) fn listed_len(&self) -> usize {
        self.text_len() + 3
    }

    fn text(&self) -> String {
        if self.catch_all { [&*self.literal, REST].concat() } else { self.literal.to_string() }
    }
}

/// Patterns, sorted by literal, so that those a catch-all covers are neighbours.
pub(super) type Patterns = BTreeSet<Pattern>;

/// The patterns of a set that a catch-all covers.
pub(super) fn covered<'s>(set: &'s Patterns, by: &'s Pattern) -> impl Iterator<Item = &'s Pattern> + 's {
    // The matching patterns follow, because patterns with the same literal prefix are adjacent.
    let from_it = set.range(by..).take_while(|pattern| pattern.literal.starts_with(&*by.literal));
    from_it.filter(|pattern| by.covers(pattern))
}

/// `hosts` and `uris` of a Route, in the order PingSIX must see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    /// Empty for a Route without hosts. Shared by all Routes with the same host.
    pub(crate) hosts: Arc<Vec<String>>,
    pub(crate) uris: Vec<String>,
}

/// The host and patterns that a Route matches without closure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matched<'a> {
    pub(crate) path: Option<&'a Path>,
    pub(crate) host: Option<&'a Hostname>,
}

impl Closed {
    /// Bytes that the patterns take at least.
    pub(super) fn bytes(&self) -> usize {
        let lengths = |patterns: &[String]| patterns.iter().map(String::len).sum::<usize>();
        lengths(&self.hosts) + lengths(&self.uris)
    }

    /// Entries in PingSIX's matchers.
    pub(crate) fn matcher_entries(&self) -> usize {
        self.hosts.len().max(1) * self.uris.len()
    }
}

/// Closes a table: one entry per Route, in the same order. `None` as soon as the result cannot fit: a wildcard over
/// many hosts with paths of their own multiplies them, and an oversized table need not be built.
pub(crate) fn close(routes: &[Matched<'_>], room: &mut Room) -> Option<Vec<Closed>> {
    let own: Vec<Vec<Pattern>> = routes.iter().map(|route| Pattern::of(route.path)).collect();
    // The patterns that the Routes with one host bring into its router themselves.
    let mut own_patterns: BTreeMap<Option<&Hostname>, Patterns> = BTreeMap::new();
    for (route, patterns) in routes.iter().zip(&own) {
        own_patterns.entry(route.host).or_default().extend(patterns.iter().cloned());
    }
    let tree = HostTree::new(own_patterns.keys().filter_map(|host| *host));
    let carried = carried_patterns(&own_patterns, &tree);
    let hosts: BTreeMap<Option<&Hostname>, Arc<Vec<String>>> =
        own_patterns.keys().map(|host| (*host, Arc::new(tree.listed(*host)))).collect();
    let host_bytes: BTreeMap<Option<&Hostname>, usize> =
        hosts.iter().map(|(host, listed)| (*host, listed.iter().map(String::len).sum())).collect();
    routes
        .iter()
        .zip(&own)
        .map(|(route, own)| {
            let host = route.host;
            let uris: Vec<String> = match host {
                // All that a wildcard's Routes have to list is in S(W).
                Some(wildcard) if wildcard.is_wildcard() => listed(own, [&carried[wildcard]].into_iter()),
                Some(exact) => {
                    let wider = tree.wider(exact).map(|wildcard| &carried[wildcard]);
                    listed(own, [&own_patterns[&host]].into_iter().chain(wider))
                }
                None => listed(own, [&own_patterns[&host]].into_iter()),
            };
            let closed = Closed { hosts: hosts[&host].clone(), uris };
            let bytes = host_bytes[&host] + closed.uris.iter().map(String::len).sum::<usize>();
            room.take(bytes, closed.matcher_entries())?;
            Some(closed)
        })
        .collect()
}

/// The catch-alls of a set without those that others cover; together they cover the same patterns.
fn widest_catch_alls(patterns: &Patterns) -> Vec<&Pattern> {
    let mut widest: Vec<&Pattern> = Vec::new();
    for pattern in patterns.iter().filter(|pattern| pattern.catch_all) {
        // In the order of the set, a literal comes right after those it starts with.
        if widest.last().is_none_or(|wider| !pattern.literal.starts_with(&*wider.literal)) {
            widest.push(pattern);
        }
    }
    widest
}

/// S(W) for every wildcard host: the least fixpoint.
fn carried_patterns<'h>(
    own_patterns: &BTreeMap<Option<&'h Hostname>, Patterns>,
    tree: &HostTree<'h>,
) -> BTreeMap<&'h Hostname, Patterns> {
    let wildcards: Vec<&'h Hostname> =
        own_patterns.keys().filter_map(|host| *host).filter(|host| host.is_wildcard()).collect();
    let mut carried: BTreeMap<&Hostname, Patterns> =
        wildcards.iter().map(|wildcard| (*wildcard, own_patterns[&Some(*wildcard)].clone())).collect();
    loop {
        let mut changed = false;
        for wildcard in &wildcards {
            let catch_alls = widest_catch_alls(&own_patterns[&Some(*wildcard)]);
            // The routers' own patterns, and the patterns that each overlapping wildcard carries in.
            let routers: Vec<&Hostname> = tree.routers(wildcard).collect();
            let reaching: BTreeSet<&Hostname> =
                routers.iter().flat_map(|router| tree.wider(router)).collect();
            let visible: Vec<&Patterns> = routers
                .iter()
                .map(|router| &own_patterns[&Some(*router)])
                .chain(reaching.iter().map(|wildcard| &carried[wildcard]))
                .collect();
            let mut next = carried[wildcard].clone();
            for catch_all in catch_alls {
                next.extend(visible.iter().flat_map(|patterns| covered(patterns, catch_all)).cloned());
            }
            if next.len() > carried[wildcard].len() {
                changed = true;
                carried.insert(wildcard, next);
            }
        }
        if !changed {
            return carried;
        }
    }
}

/// A Route's own patterns and those its catch-alls cover.
fn listed<'p>(own: &'p [Pattern], visible: impl Iterator<Item = &'p Patterns>) -> Vec<String> {
    let mut list: Vec<&Pattern> = own.iter().collect();
    for patterns in visible {
        for catch_all in own.iter().filter(|pattern| pattern.catch_all) {
            list.extend(covered(patterns, catch_all));
        }
    }
    in_order(list)
}

/// The patterns of a Route as PingSIX must see them: exact ones first, then catch-alls, longest first.
pub(super) fn in_order(mut list: Vec<&Pattern>) -> Vec<String> {
    list.sort_unstable_by(|left, right| {
        left.catch_all
            .cmp(&right.catch_all)
            .then_with(|| right.literal.len().cmp(&left.literal.len()))
            .then_with(|| left.literal.cmp(&right.literal))
    });
    list.dedup();
    list.into_iter().map(Pattern::text).collect()
}

/// The cover relation between the host patterns of a table.
#[derive(Debug)]
pub(super) struct HostTree<'h> {
    /// For each wildcard, the hosts it strictly covers.
    covered: BTreeMap<&'h Hostname, Vec<&'h Hostname>>,
    /// For each host, the wildcards that strictly cover it.
    wider: BTreeMap<&'h Hostname, Vec<&'h Hostname>>,
}

impl<'h> HostTree<'h> {
    pub(super) fn new(hosts: impl Iterator<Item = &'h Hostname>) -> Self {
        let hosts: BTreeSet<&'h Hostname> = hosts.collect();
        let mut tree = Self { covered: BTreeMap::new(), wider: BTreeMap::new() };
        for &host in &hosts {
            for wider in host.wider() {
                if let Some(&wider) = hosts.get(&wider) {
                    tree.covered.entry(wider).or_default().push(host);
                    tree.wider.entry(host).or_default().push(wider);
                }
            }
        }
        tree
    }

    /// Every host that covers another one, or is covered.
    pub(super) fn linked(&self) -> BTreeSet<Hostname> {
        self.covered.keys().chain(self.wider.keys()).map(|host| (*host).clone()).collect()
    }

    /// The wildcards that strictly cover a host.
    fn wider(&self, host: &Hostname) -> impl Iterator<Item = &'h Hostname> + '_ {
        self.wider.get(host).into_iter().flatten().copied()
    }

    /// The routers a Route with this host lands in.
    fn routers<'s>(&'s self, host: &'h Hostname) -> impl Iterator<Item = &'h Hostname> + 's {
        self.covered.get(host).into_iter().flatten().copied().chain([host])
    }

    /// `hosts` of a Route: exact names first, then wildcards, longest first.
    fn listed(&self, host: Option<&'h Hostname>) -> Vec<String> {
        let mut all: Vec<&Hostname> = host.into_iter().flat_map(|host| self.routers(host)).collect();
        all.sort_by(|left, right| {
            left.is_wildcard()
                .cmp(&right.is_wildcard())
                .then_with(|| {
                    if left.is_wildcard() {
                        right.as_str().len().cmp(&left.as_str().len())
                    } else {
                        std::cmp::Ordering::Equal
                    }
                })
                .then_with(|| left.cmp(right))
        });
        all.into_iter().map(|host| host.as_str().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests;
