//! The owner of a host that Ingresses of several namespaces name, and the Ingresses with a verdict about that.
//!
//! A host counts as it is written: `shop.example.com`, `*.example.com` and no host, which stands for every one, are three.
//! An Ingress names the hosts of its rules and of `spec.tls`; with a default backend it names the host that is none.
//!
//! With [`HostOwnership::OldestNamespace`], younger objects change no answer for a host. Rules, default backends and
//! certificates of other namespaces for the host are left out before they are lowered. Requests that no path of a
//! host takes do not fall to wider hosts ([`super::rests`]).
//!
//! [`Hosts`] is kept between translations. An Ingress with the same hosts as before costs nothing here. An Ingress
//! with other hosts costs a look at these hosts, and a note for each Ingress whose verdict may change.

use std::collections::{BTreeMap, BTreeSet, btree_map as map};
use std::sync::Arc;

use super::namers::{AgedKey, FirstTwo, Namers};
use crate::bounds;
use crate::crd::HostOwnership;
use crate::lower::FullTranslationNeeded;
use crate::model::{FieldPath, Hostname, ObjectKey, ObjectName, Problem, Reason, Severity, field};
use crate::normalise::{Hostnames, Route};
use crate::snapshot::Ingress;

/// A host as it is written; `None` is every host.
type Host = Option<Hostname>;

/// The number of changed wildcard hosts above which a full comparison is cheaper.
const WIDE: usize = 16;

/// The first two Ingresses of hosts before they changed.
pub(super) type FirstTwoBefore = BTreeMap<Host, Option<FirstTwo>>;

/// The Ingresses that name each host.
#[derive(Debug)]
pub(super) struct Hosts {
    ownership: HostOwnership,
    named: BTreeMap<Host, Namers>,
    /// The wildcard hosts that some Ingress names.
    overlaps: BTreeMap<Host, Overlap>,
}

/// The first wildcard host that covers a host, and the first host of another namespace; each with the Ingress.
#[derive(Debug, PartialEq, Eq)]
struct Overlap {
    first: (Hostname, AgedKey),
    second: Option<(Hostname, AgedKey)>,
}

impl Overlap {
    /// With one host.
    fn of(host: &Hostname, namers: &Namers) -> Option<Self> {
        let FirstTwo { oldest, other } = namers.first_two()?;
        Some(Self { first: (host.clone(), oldest), second: other.map(|other| (host.clone(), other)) })
    }

    /// Adds a host that comes behind those that were added before.
    fn add(&mut self, host: &Hostname, namers: &Namers) {
        if self.second.is_none() {
            let first_two = namers.first_two();
            let other = first_two.as_ref().and_then(|namers| namers.beside(self.first.1.namespace()));
            self.second = other.map(|other| (host.clone(), other.clone()));
        }
    }

    fn iter(&self) -> impl Iterator<Item = &(Hostname, AgedKey)> {
        std::iter::once(&self.first).chain(&self.second)
    }
}

/// A place where an Ingress names a host.
#[derive(Clone, Copy)]
enum HostSource {
    Rule { index: usize, has_host: bool },
    DefaultBackend,
    Tls { entry: usize, host: usize },
}

impl HostSource {
    fn field(self) -> FieldPath {
        match self {
            Self::Rule { index, has_host: true } => field::rule(index).child("host"),
            Self::Rule { index, has_host: false } => field::rule(index),
            Self::DefaultBackend => field::default_backend(),
            Self::Tls { entry, host } => field::tls(entry).child("hosts").index(host),
        }
    }
}

/// The hosts that can be one, and where an Ingress names them.
fn hosts_of(ingress: &Ingress) -> impl Iterator<Item = (Host, HostSource)> {
    let spec = ingress.spec.iter();
    let rules = spec.clone().flat_map(|spec| spec.rules.iter().flatten().enumerate());
    let of_rules = rules.filter_map(|(index, rule)| {
        let written = rule.host.as_deref().filter(|host| !host.is_empty());
        let host = written.map(Hostname::parse).transpose().ok()?;
        Some((host, HostSource::Rule { index, has_host: written.is_some() }))
    });
    let default = spec.clone().filter(|spec| spec.default_backend.is_some());
    let tls = spec.flat_map(|spec| spec.tls.iter().flatten().enumerate());
    let of_tls = tls.flat_map(|(entry, tls)| {
        let hosts = tls.hosts.iter().flatten().enumerate();
        hosts.map(move |(host, written)| (written, HostSource::Tls { entry, host }))
    });
    // A certificate is shown for no more names.
    let of_tls = of_tls
        .take(bounds::NAMES)
        .filter_map(|(host, place)| Some((Some(Hostname::parse(host).ok()?), place)));
    of_rules.chain(default.map(|_| (None, HostSource::DefaultBackend))).chain(of_tls)
}

impl Hosts {
    pub(super) fn new<'i>(
        ownership: HostOwnership,
        ingresses: impl Iterator<Item = (&'i ObjectName, &'i Ingress)>,
    ) -> Self {
        let mut hosts = Self { ownership, named: BTreeMap::new(), overlaps: BTreeMap::new() };
        for (name, ingress) in ingresses {
            let key = AgedKey::of(name, ingress);
            for (host, _) in hosts_of(ingress) {
                hosts.add(host, &key);
            }
        }
        hosts.overlaps = hosts.all_overlaps();
        hosts
    }

    /// Replaces an Ingress of the same name. `was` receives the former first two Ingresses of its hosts.
    pub(super) fn replace(
        &mut self,
        name: &ObjectName,
        before: Option<&Ingress>,
        now: Option<&Ingress>,
        was: &mut FirstTwoBefore,
    ) {
        let named = |ingress: Option<&Ingress>| -> BTreeSet<Host> {
            ingress.into_iter().flat_map(hosts_of).map(|(host, _)| host).collect()
        };
        let [old, new] = [named(before), named(now)];
        let [old_key, new_key] = [before, now].map(|ingress| Some(AgedKey::of(name, ingress?)));
        let is_as_old = old_key == new_key;
        for host in old.iter().filter(|host| !(is_as_old && new.contains(*host))) {
            was.entry(host.clone()).or_insert_with(|| self.first_two(host));
            let Some((key, namers)) = old_key.as_ref().zip(self.named.get_mut(host)) else { continue };
            if namers.remove(key) {
                self.named.remove(host);
            }
        }
        for host in new.into_iter().filter(|host| !(is_as_old && old.contains(host))) {
            was.entry(host.clone()).or_insert_with(|| self.first_two(&host));
            if let Some(key) = &new_key {
                self.add(host, key);
            }
        }
    }

    fn add(&mut self, host: Host, key: &AgedKey) {
        match self.named.entry(host) {
            map::Entry::Occupied(mut namers) => namers.get_mut().insert(key.clone()),
            map::Entry::Vacant(none) => {
                none.insert(Namers::One(key.clone()));
            }
        }
    }

    fn first_two(&self, host: &Host) -> Option<FirstTwo> {
        self.named.get(host)?.first_two()
    }

    /// Handles hosts with these former first two Ingresses. `to_read` receives the Ingresses whose verdicts or refusals
    /// may change. The result is stale with more than `limit` of them. Returns whether hosts may have other owners.
    pub(super) fn settle(
        &mut self,
        was: FirstTwoBefore,
        limit: usize,
        to_read: &mut BTreeSet<ObjectName>,
    ) -> Result<bool, FullTranslationNeeded> {
        let changed = was.into_iter().filter(|(host, before)| self.first_two(host) != *before);
        let changed: BTreeSet<Host> = changed.map(|(host, _)| host).collect();
        let is_wide = |host: &&Host| host.as_ref().is_none_or(Hostname::is_wildcard);
        let mut wide: BTreeSet<Host> = changed.iter().filter(is_wide).cloned().collect();
        for host in &changed {
            wide.extend(self.wider(host).filter(|wider| self.may_overlap(wider, host)));
        }
        // Each wildcard host takes a look at all hosts.
        if wide.len() > WIDE {
            return Err(FullTranslationNeeded);
        }
        let mut concerned = changed.clone();
        for wildcard in changed.iter().filter(is_wide).flatten() {
            let is_covered = |host: &&Host| host.as_ref().is_some_and(|host| wildcard.covers_strictly(host));
            concerned.extend(self.named.keys().filter(is_covered).cloned());
        }
        for host in wide {
            let overlap = self.overlap(&host);
            if self.overlaps.get(&host) == overlap.as_ref() {
                continue;
            }
            match overlap {
                Some(overlap) => self.overlaps.insert(host.clone(), overlap),
                None => self.overlaps.remove(&host),
            };
            concerned.insert(host);
        }
        for namer in concerned.iter().filter_map(|host| self.named.get(host)).flat_map(Namers::iter) {
            to_read.insert(namer.key.name.clone());
            if to_read.len() > limit {
                return Err(FullTranslationNeeded);
            }
        }
        Ok(!changed.is_empty() && self.ownership == HostOwnership::OldestNamespace)
    }

    /// The Ingress by which a host belongs to another namespace.
    pub(super) fn other_owner(&self, host: Option<&Hostname>, namespace: &str) -> Option<&Arc<ObjectKey>> {
        if self.ownership == HostOwnership::Shared {
            return None;
        }
        let owner = self.named.get(&host.cloned())?.oldest()?;
        (owner.namespace() != namespace).then_some(&owner.key)
    }

    /// Whether the host of a route belongs to another namespace.
    pub(super) fn is_refused(&self, route: &Route) -> bool {
        let host = match &route.hostnames {
            Hostnames::Any => None,
            Hostnames::Named(names) => match &**names {
                [host] => Some(host),
                _ => return false,
            },
        };
        self.other_owner(host, &route.key.name.namespace).is_some()
    }

    /// The refusals of an Ingress, and the Ingresses of other namespaces that share its hosts.
    pub(super) fn report(&self, key: &Arc<ObjectKey>, ingress: &Ingress, problems: &mut Vec<Problem>) {
        let namespace = &key.name.namespace;
        let mut host_problems = HostProblems { problems, key, one_by_one: 0, others: None };
        let mut to_read = BTreeSet::new();
        for (host, place) in hosts_of(ingress) {
            if let Some(owner) = self.other_owner(host.as_ref(), namespace) {
                // The verdict on certificates is part of theirs.
                if !matches!(place, HostSource::Tls { .. }) {
                    host_problems.add(Severity::Error, Reason::HostNotOwned, place, || refused(&host, owner));
                }
            } else if !to_read.contains(&host)
                && let Some(message) = self.shared(&host, namespace)
            {
                host_problems.add(Severity::Warning, Reason::HostShared, place, || message);
                to_read.insert(host);
            }
        }
        host_problems.finish();
    }

    /// The wildcard hosts that cover this one. A host has paths of its own in front of those for every host, and a
    /// host with an owner shares nothing.
    fn wider(&self, host: &Host) -> impl Iterator<Item = Host> {
        let every = (self.ownership == HostOwnership::Shared).then_some(None);
        let wider = host.iter().flat_map(move |host| host.wider().map(Some).chain(every.clone()));
        wider.filter(|wider| self.named.contains_key(wider))
    }

    /// The hosts that share requests with a wildcard host.
    fn all_overlaps(&self) -> BTreeMap<Host, Overlap> {
        let mut overlaps: BTreeMap<Host, Overlap> = BTreeMap::new();
        if self.named.keys().any(|host| host.as_ref().is_none_or(Hostname::is_wildcard)) {
            for (host, namers) in &self.named {
                let Some(narrower) = host else { continue };
                for wider in self.wider(host) {
                    match overlaps.entry(wider) {
                        map::Entry::Occupied(mut overlap) => overlap.get_mut().add(narrower, namers),
                        map::Entry::Vacant(none) => {
                            Overlap::of(narrower, namers).map(|overlap| none.insert(overlap));
                        }
                    }
                }
            }
        }
        overlaps
    }

    /// The wildcard hosts that share requests with a host.
    fn overlap(&self, wide: &Host) -> Option<Overlap> {
        if !self.named.contains_key(wide) || (wide.is_none() && self.ownership != HostOwnership::Shared) {
            return None;
        }
        let narrower = self.named.iter().filter_map(|(host, namers)| Some((host.as_ref()?, namers)));
        let mut narrower =
            narrower.filter(|(host, _)| wide.as_ref().is_none_or(|wide| wide.covers_strictly(host)));
        let mut overlap = narrower.next().and_then(|(host, namers)| Overlap::of(host, namers))?;
        for (host, namers) in narrower {
            if overlap.second.is_some() {
                break;
            }
            overlap.add(host, namers);
        }
        Some(overlap)
    }

    /// Whether the first two Ingresses of a host affect the shared requests of a wildcard host.
    fn may_overlap(&self, wider: &Host, host: &Host) -> bool {
        let (Some(Overlap { first, second }), Some(host)) = (self.overlaps.get(wider), host) else {
            return true;
        };
        match second {
            _ if *host <= first.0 => true,
            Some(second) => *host <= second.0,
            None => self
                .first_two(&Some(host.clone()))
                .is_some_and(|namers| namers.beside(first.1.namespace()).is_some()),
        }
    }

    /// The message about another namespace that names the same host, or one that covers it or that it covers.
    fn shared(&self, host: &Host, namespace: &str) -> Option<String> {
        let is_owned = self.ownership == HostOwnership::OldestNamespace;
        if let Some(other) = self.first_two(host)?.beside(namespace) {
            let (of, who) = (in_words(host), &other.key);
            return Some(if is_owned {
                format!("{who} of another namespace names {of} too; nothing of it is served for that host.")
            } else {
                format!(
                    "{who} of another namespace names {of} too; the more specific path, then the older Ingress, gets \
                     its requests."
                )
            });
        }
        let narrower = self.overlaps.get(host).into_iter().flat_map(Overlap::iter);
        if let Some((narrower, other)) =
            narrower.into_iter().find(|(_, namer)| namer.namespace() != namespace)
        {
            return Some(format!(
                "{} of another namespace names \"{narrower}\", which {} stands for as well, and gets its requests{}.",
                other.key,
                host.as_ref().map_or_else(|| "this".to_owned(), |host| format!("\"{host}\"")),
                if is_owned { "" } else { " as far as it has a path for them" }
            ));
        }
        let (wider, other) = host.as_ref()?.wider().find_map(|wider| {
            let named = self.first_two(&Some(wider.clone()))?;
            Some((wider, named.beside(namespace)?.clone()))
        })?;
        Some(format!(
            "{} of another namespace names \"{wider}\", which stands for {} as well, and gets {} its requests that no \
             path takes here.",
            other.key,
            in_words(host),
            if is_owned { "none of" } else { "those of" }
        ))
    }
}

fn in_words(host: &Host) -> String {
    host.as_ref().map_or_else(|| "every host".to_owned(), |host| format!("\"{host}\""))
}

fn refused(host: &Host, owner: &ObjectKey) -> String {
    let what =
        host.as_ref().map_or_else(|| "What is for every host".to_owned(), |host| format!("\"{host}\""));
    format!(
        "{what} belongs to namespace {}: {owner} is the oldest Ingress that names it. Nothing is served here.",
        owner.name.namespace
    )
}

/// The verdict of an Ingress on its hosts. An Ingress may have thousands of hosts, so only the first few are named.
struct HostProblems<'p> {
    problems: &'p mut Vec<Problem>,
    key: &'p Arc<ObjectKey>,
    one_by_one: usize,
    /// The severest of the further hosts, the position of the first, and their number.
    others: Option<(Severity, Reason, HostSource, usize)>,
}

impl HostProblems<'_> {
    const ONE_BY_ONE: usize = 8;

    fn add(
        &mut self,
        severity: Severity,
        reason: Reason,
        place: HostSource,
        message: impl FnOnce() -> String,
    ) {
        if self.one_by_one < Self::ONE_BY_ONE {
            self.one_by_one += 1;
            let (object, field) = (self.key.clone(), place.field());
            self.problems.push(Problem { object, field, severity, reason, message: message() });
            return;
        }
        self.others = Some(match self.others {
            Some((severest, reason, place, count)) if severest <= severity => {
                (severest, reason, place, count + 1)
            }
            Some((.., count)) => (severity, reason, place, count + 1),
            None => (severity, reason, place, 1),
        });
    }

    fn finish(self) {
        let Some((severity, reason, place, count)) = self.others else { return };
        let (object, field) = (self.key.clone(), place.field());
        let message =
            format!("So it is, or alike, with {count} other places in which the Ingress names hosts.");
        self.problems.push(Problem { object, field, severity, reason, message });
    }
}
