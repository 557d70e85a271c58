//! The size of hosts and path patterns of a table, known before the table is built.
//!
//! [`crate::lower::closure`] makes a Route list the patterns that its catch-alls cover, and a wildcard list the hosts
//! that it covers. So the charge of a Route depends on the other Routes. Every pair of a Route and a listed pattern
//! is charged once, to the later of the two.
//!
//! - A pattern of a host that no wildcard carries is listed by the host's Routes with a catch-all above it.
//! - A wildcard **carries** its own patterns, and those its catch-alls cover in the hosts below it. A carried pattern
//!   is listed by every Route with a catch-all above it, of the wildcard and of all hosts below it. A pattern counts
//!   for the widest wildcard that carries it.
//!
//! The sum is never less than the closure of the table: S(W) of the closure is a subset of the patterns that W and
//! the wildcards around it carry here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::counts::decrement;
use crate::lower::closure::{Pattern, covered};
use crate::lower::path_map::prefixes_in;
use crate::lower::room::Room;
use crate::lower::route_sizes::QUOTED;
use crate::model::Hostname;
use crate::normalise::Path;

/// The hosts of a table with their Routes, as far as sizes depend on them.
#[derive(Default)]
pub(super) struct PatternSizes {
    /// By [`HostKey`].
    routers: BTreeMap<HostKey, Router>,
    /// The wildcards among them.
    wildcards: BTreeSet<HostKey>,
    /// The inverses of the additions since the last [`commit`](Self::commit), for a rollback.
    journal: Vec<Inverse>,
}

type Inverse = Box<dyn FnOnce(&mut PatternSizes)>;

/// A host with its characters in reverse, so that the hosts below a wildcard are neighbours; empty for every host.
type HostKey = Arc<str>;

/// The Routes of one host.
#[derive(Debug, Default)]
struct Router {
    patterns: BTreeSet<Pattern>,
    /// The number of Routes with a catch-all, by its literal.
    catch_alls: BTreeMap<Arc<str>, usize>,
    routes: usize,
    /// Bytes that its Routes together add to each listed host.
    added: usize,
    /// The number of patterns that its Routes list.
    listed: usize,
    /// The additional state of a wildcard.
    wildcard: Wildcard,
}

/// The hosts below a wildcard. Empty for another host.
#[derive(Debug, Default)]
struct Wildcard {
    hosts: usize,
    host_bytes: usize,
    carried: BTreeSet<Pattern>,
    /// The catch-alls of the wildcard and of all hosts below it, by literal.
    listers: BTreeMap<Arc<str>, Listers>,
}

/// Routes with one catch-all.
#[derive(Clone, Copy, Debug, Default)]
struct Listers {
    routes: usize,
    /// The hosts that they list, together.
    hosts: usize,
}

impl Router {
    fn hosts(&self) -> usize {
        1 + self.wildcard.hosts
    }
}

/// The values of the catch-alls that cover a pattern.
fn above<'m, V>(catch_alls: &'m BTreeMap<Arc<str>, V>, pattern: &Pattern) -> impl Iterator<Item = &'m V> {
    let length = pattern.literal.len();
    let all = prefixes_in(catch_alls, &pattern.literal);
    all.filter(move |(literal, _)| literal.len() < length).map(|(_, value)| value)
}

fn key_of(host: Option<&Hostname>) -> HostKey {
    host.map(|host| host.as_str().chars().rev().collect::<String>()).unwrap_or_default().into()
}

/// The wildcards among some that cover a host, and the host.
fn wildcards<'s>(covering: &'s [HostKey], key: &'s HostKey) -> impl Iterator<Item = &'s HostKey> {
    covering.iter().chain(Some(key).filter(|key| key.ends_with('*')))
}

impl PatternSizes {
    /// Charges a Route with this host and path to a ledger: its hosts with `added` bytes each, its patterns, and their
    /// listings by other Routes.
    ///
    /// `None` without room; the caller then rolls back.
    pub(super) fn add_route(
        &mut self,
        host: Option<&Hostname>,
        path: Option<&Path>,
        added: usize,
        ledger: &mut Room,
    ) -> Option<()> {
        let key = key_of(host);
        let covering = self.covering(&key);
        self.add_router(&key, &covering, ledger)?;
        let own = Pattern::of(path);
        let router = self.routers.get_mut(&key)?;
        let hosts = router.hosts();
        let host_bytes = router.wildcard.host_bytes + key.len() + QUOTED + added.saturating_mul(hosts);
        router.routes += 1;
        router.added += added;
        router.listed += own.len();
        let listed = own.len();
        self.note(&key, move |router| {
            router.routes -= 1;
            router.added -= added;
            router.listed -= listed;
        });
        ledger.take(
            host_bytes + own.iter().map(Pattern::listed_len).sum::<usize>(),
            own.len().saturating_mul(hosts),
        )?;
        for pattern in &own {
            self.add_pattern(&key, &covering, pattern, ledger)?;
        }
        for pattern in own.iter().filter(|pattern| pattern.catch_all) {
            self.add_catch_all(&key, &covering, pattern, ledger)?;
        }
        Some(())
    }

    /// Keeps the additions.
    pub(super) fn commit(&mut self) {
        self.journal.clear();
    }

    /// Reverts the additions since the last commit.
    pub(super) fn roll_back(&mut self) {
        while let Some(inverse) = self.journal.pop() {
            inverse(self);
        }
    }

    /// Notes the inverse of an addition to a host.
    fn note(&mut self, key: &HostKey, inverse: impl FnOnce(&mut Router) + 'static) {
        let key = key.clone();
        self.journal.push(Box::new(move |sizes| sizes.with(&key, inverse)));
    }

    fn with(&mut self, key: &HostKey, change: impl FnOnce(&mut Router)) {
        if let Some(router) = self.routers.get_mut(key) {
            change(router);
        }
    }

    /// The wildcards of the table that strictly cover a host, widest first.
    fn covering(&self, key: &HostKey) -> Vec<HostKey> {
        if self.wildcards.is_empty() {
            return Vec::new();
        }
        let dots = key.bytes().enumerate().filter(|(_, byte)| *byte == b'.');
        dots.map(|(at, _)| [&key[..=at], "*"].concat())
            .filter(|wider| **wider != **key)
            .filter_map(|wider| self.wildcards.get(&*wider).cloned())
            .collect()
    }

    /// The wildcards that carry patterns into a host: those that cover it, and a wildcard itself.
    fn carrying_wildcards<'s>(
        &'s self,
        covering: &'s [HostKey],
        key: &'s HostKey,
    ) -> impl Iterator<Item = &'s Router> {
        wildcards(covering, key).filter_map(|wildcard| self.routers.get(wildcard))
    }

    /// The hosts below a wildcard, without itself.
    fn below<'s>(&'s self, wildcard: &'s HostKey) -> impl Iterator<Item = (&'s HostKey, &'s Router)> + 's {
        let suffix = wildcard.strip_suffix('*').unwrap_or(wildcard);
        self.routers
            .range::<str, _>((Bound::Included(suffix), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(suffix))
            .filter(move |(key, _)| *key != wildcard)
    }

    /// Adds a host, which every Route of the wildcards around it then lists.
    fn add_router(&mut self, key: &HostKey, covering: &[HostKey], ledger: &mut Room) -> Option<()> {
        if self.routers.contains_key(key) {
            return Some(());
        }
        let bytes = key.len() + QUOTED;
        for (position, wildcard) in covering.iter().enumerate() {
            let router = self.routers.get_mut(wildcard)?;
            router.wildcard.hosts += 1;
            router.wildcard.host_bytes += bytes;
            let (listers, listed, added) = (router.routes, router.listed, router.added);
            let catch_alls: Vec<(Arc<str>, usize)> =
                router.catch_alls.iter().map(|(literal, count)| (literal.clone(), *count)).collect();
            self.note(wildcard, move |router| {
                router.wildcard.hosts -= 1;
                router.wildcard.host_bytes -= bytes;
            });
            // Each of its Routes has one host more.
            for wider in &covering[..=position] {
                for (literal, hosts) in &catch_alls {
                    self.add_listers(wider, literal, Listers { routes: 0, hosts: *hosts });
                }
            }
            ledger.take(bytes.saturating_mul(listers).saturating_add(added), listed)?;
        }
        let mut router = Router::default();
        if key.ends_with('*') {
            for (below, other) in self.below(key) {
                router.wildcard.hosts += 1;
                router.wildcard.host_bytes += below.len() + QUOTED;
                for (literal, routes) in &other.catch_alls {
                    let listers = router.wildcard.listers.entry(literal.clone()).or_default();
                    listers.routes += routes;
                    listers.hosts += routes * other.hosts();
                }
            }
            self.wildcards.insert(key.clone());
        }
        self.routers.insert(key.clone(), router);
        let key = key.clone();
        self.journal.push(Box::new(move |sizes| {
            sizes.routers.remove(&key);
            sizes.wildcards.remove(&key);
        }));
        Some(())
    }

    /// Adds a pattern to a host, and charges its listings.
    fn add_pattern(
        &mut self,
        key: &HostKey,
        covering: &[HostKey],
        pattern: &Pattern,
        ledger: &mut Room,
    ) -> Option<()> {
        let router = self.routers.get_mut(key)?;
        if !router.patterns.insert(pattern.clone()) {
            return Some(());
        }
        let own: usize = above(&router.catch_alls, pattern).sum();
        let added = pattern.clone();
        self.note(key, move |router| {
            router.patterns.remove(&added);
        });
        let covers = |wildcard: &&HostKey| {
            let router = self.routers.get(*wildcard);
            router.is_some_and(|router| above(&router.catch_alls, pattern).next().is_some())
        };
        let carrier = covering.iter().find(covers).or_else(|| Some(key).filter(|key| key.ends_with('*')));
        match carrier.cloned() {
            Some(carrier) => self.carry(&carrier, pattern, ledger),
            None => ledger.take(pattern.listed_len().saturating_mul(own), own),
        }
    }

    /// Has a wildcard carry a pattern.
    fn carry(&mut self, wildcard: &HostKey, pattern: &Pattern, ledger: &mut Room) -> Option<()> {
        let router = self.routers.get_mut(wildcard)?;
        if !router.wildcard.carried.insert(pattern.clone()) {
            return Some(());
        }
        let mut all = Listers::default();
        for listers in above(&router.wildcard.listers, pattern) {
            all.routes += listers.routes;
            all.hosts += listers.hosts;
        }
        let added = pattern.clone();
        self.note(wildcard, move |router| {
            router.wildcard.carried.remove(&added);
        });
        let suffix = wildcard.strip_suffix('*').unwrap_or(wildcard);
        let within = self
            .wildcards
            .range::<str, _>((Bound::Included(suffix), Bound::Unbounded))
            .take_while(|key| key.starts_with(suffix));
        for key in within.cloned().collect::<Vec<HostKey>>() {
            let Some(router) = self.routers.get(&key) else { continue };
            let listed: usize = above(&router.catch_alls, pattern).sum();
            self.add_listed(&key, listed);
        }
        ledger.take(pattern.listed_len().saturating_mul(all.routes), all.hosts)
    }

    /// Adds the catch-all of a Route with the patterns that it covers.
    fn add_catch_all(
        &mut self,
        key: &HostKey,
        covering: &[HostKey],
        catch_all: &Pattern,
        ledger: &mut Room,
    ) -> Option<()> {
        let is_wildcard = key.ends_with('*');
        let router = self.routers.get(key)?;
        let carrying_wildcards: Vec<&Router> = self.carrying_wildcards(covering, key).collect();
        let is_carried = |pattern: &Pattern| {
            carrying_wildcards.iter().any(|router| router.wildcard.carried.contains(pattern))
        };
        let own = covered(&router.patterns, catch_all).filter(|pattern| !is_carried(pattern));
        let carried =
            carrying_wildcards.iter().flat_map(|router| covered(&router.wildcard.carried, catch_all));
        let (hosts, mut listed) = (router.hosts(), 0);
        for pattern in own.chain(carried) {
            listed += 1;
            ledger.take(pattern.listed_len(), hosts)?;
        }
        let is_first = !router.catch_alls.contains_key(&catch_all.literal);
        let literal = &catch_all.literal;
        self.add_listed(key, listed);
        self.with(key, |router| *router.catch_alls.entry(literal.clone()).or_default() += 1);
        let added = literal.clone();
        self.note(key, move |router| {
            decrement(&mut router.catch_alls, &added);
        });
        for wildcard in wildcards(covering, key) {
            self.add_listers(wildcard, literal, Listers { routes: 1, hosts });
        }
        if is_wildcard && is_first {
            self.carry_below(key, covering, catch_all, ledger)?;
        }
        Some(())
    }

    /// Lets a wildcard carry the patterns that its new catch-all covers in the hosts below it.
    fn carry_below(
        &mut self,
        key: &HostKey,
        covering: &[HostKey],
        catch_all: &Pattern,
        ledger: &mut Room,
    ) -> Option<()> {
        let is_carried = |pattern: &Pattern| {
            self.carrying_wildcards(covering, key).any(|router| router.wildcard.carried.contains(pattern))
        };
        let mut new: BTreeSet<&Pattern> = BTreeSet::new();
        let mut least = ledger.left().bytes;
        for (_, router) in self.below(key) {
            let sets = [&router.patterns, &router.wildcard.carried];
            for pattern in sets.into_iter().flat_map(|set| covered(set, catch_all)) {
                if !is_carried(pattern) && new.insert(pattern) {
                    // The catch-all itself lists it.
                    least = least.checked_sub(pattern.listed_len())?;
                }
            }
        }
        let new: Vec<Pattern> = new.into_iter().cloned().collect();
        new.iter().try_for_each(|pattern| self.carry(key, pattern, ledger))
    }

    fn add_listers(&mut self, wildcard: &HostKey, literal: &Arc<str>, more: Listers) {
        self.with(wildcard, |router| {
            let listers = router.wildcard.listers.entry(literal.clone()).or_default();
            listers.routes += more.routes;
            listers.hosts += more.hosts;
        });
        let literal = literal.clone();
        self.note(wildcard, move |router| {
            if let Some(listers) = router.wildcard.listers.get_mut(&literal) {
                listers.routes -= more.routes;
                listers.hosts -= more.hosts;
            }
        });
    }

    /// Adds patterns that the Routes of a host list.
    fn add_listed(&mut self, key: &HostKey, listed: usize) {
        if listed > 0 {
            self.with(key, |router| router.listed += listed);
            self.note(key, move |router| router.listed -= listed);
        }
    }
}
