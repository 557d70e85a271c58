//! The owner of a host that Ingresses of several namespaces name, and the problems of these Ingresses.
//!
//! Hosts are compared as they are written: `shop.example.com`, `*.example.com` and the empty host, which covers every
//! host, are three hosts. An Ingress names the hosts of its rules and of `spec.tls`. A default backend names the empty
//! host.
//!
//! With [`HostOwnership::OldestNamespace`], younger objects change no answer for a host. Rules, default backends and
//! certificates of other namespaces for the host are left out before they are lowered. Requests that no path of a
//! host takes do not fall to wider hosts ([`super::fallbacks`]).
//!
//! [`Hosts`] is kept between translations. An Ingress with the same hosts as before costs nothing here. An Ingress
//! with other hosts costs a comparison of these hosts. Each Ingress whose verdict may change is read again.

use std::collections::{BTreeMap, BTreeSet, btree_map as map};
use std::sync::Arc;

use super::bounded_problems::BoundedProblems;
use super::host_ingresses::{HostIngresses, IngressByAge, OldestIngresses};
use crate::bounds;
use crate::crd::HostOwnership;
use crate::lower::FullTranslationNeeded;
use crate::model::{FieldPath, Hostname, ObjectKey, ObjectName, Problem, Reason, Severity, field};
use crate::normalise::{Hostnames, Route};
use crate::snapshot::Ingress;

/// A host as it is written; `None` is the empty host.
type Host = Option<Hostname>;

/// Limit of changed wildcard hosts. Above, a full comparison is cheaper.
const MAX_WIDE_HOSTS: usize = 16;

/// The oldest Ingresses of hosts before a change.
pub(super) type FormerOldest = BTreeMap<Host, Option<OldestIngresses>>;

/// The Ingresses that name each host.
#[derive(Debug)]
pub(super) struct Hosts {
    ownership: HostOwnership,
    named: BTreeMap<Host, HostIngresses>,
    /// By wildcard host that an Ingress names.
    overlaps: BTreeMap<Host, Overlap>,
}

/// The first host that a wildcard host covers, and the first one of another namespace; each with its Ingress.
#[derive(Debug, PartialEq, Eq)]
struct Overlap {
    first: (Hostname, IngressByAge),
    second: Option<(Hostname, IngressByAge)>,
}

impl Overlap {
    /// The overlap with one host.
    fn of(host: &Hostname, ingresses: &HostIngresses) -> Option<Self> {
        let OldestIngresses { oldest, other } = ingresses.oldest_ingresses()?;
        Some(Self { first: (host.clone(), oldest), second: other.map(|other| (host.clone(), other)) })
    }

    /// Adds a host that sorts behind all earlier ones.
    fn add(&mut self, host: &Hostname, ingresses: &HostIngresses) {
        if self.second.is_none() {
            let oldest_ingresses = ingresses.oldest_ingresses();
            let other =
                oldest_ingresses.as_ref().and_then(|ingresses| ingresses.outside(self.first.1.namespace()));
            self.second = other.map(|other| (host.clone(), other.clone()));
        }
    }

    fn iter(&self) -> impl Iterator<Item = &(Hostname, IngressByAge)> {
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

/// The valid hosts of an Ingress, and the places that name them.
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
    // A certificate is shown for at most this many names.
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
            let key = IngressByAge::of(name, ingress);
            for (host, _) in hosts_of(ingress) {
                hosts.add(host, &key);
            }
        }
        hosts.overlaps = hosts.all_overlaps();
        hosts
    }

    /// Replaces an Ingress of the same name. `former` receives the oldest Ingresses that its hosts had.
    pub(super) fn replace(
        &mut self,
        name: &ObjectName,
        before: Option<&Ingress>,
        now: Option<&Ingress>,
        former: &mut FormerOldest,
    ) {
        let named = |ingress: Option<&Ingress>| -> BTreeSet<Host> {
            ingress.into_iter().flat_map(hosts_of).map(|(host, _)| host).collect()
        };
        let [old, new] = [named(before), named(now)];
        let [old_key, new_key] = [before, now].map(|ingress| Some(IngressByAge::of(name, ingress?)));
        let is_as_old = old_key == new_key;
        for host in old.iter().filter(|host| !(is_as_old && new.contains(*host))) {
            former.entry(host.clone()).or_insert_with(|| self.oldest_ingresses(host));
            let Some((key, ingresses)) = old_key.as_ref().zip(self.named.get_mut(host)) else { continue };
            if ingresses.remove(key) {
                self.named.remove(host);
            }
        }
        for host in new.into_iter().filter(|host| !(is_as_old && old.contains(host))) {
            former.entry(host.clone()).or_insert_with(|| self.oldest_ingresses(&host));
            if let Some(key) = &new_key {
                self.add(host, key);
            }
        }
    }

    fn add(&mut self, host: Host, key: &IngressByAge) {
        match self.named.entry(host) {
            map::Entry::Occupied(mut ingresses) => ingresses.get_mut().insert(key.clone()),
            map::Entry::Vacant(none) => {
                none.insert(HostIngresses::One(key.clone()));
            }
        }
    }

    fn oldest_ingresses(&self, host: &Host) -> Option<OldestIngresses> {
        self.named.get(host)?.oldest_ingresses()
    }

    /// Determines the overlaps of changed hosts again. `to_read` receives the Ingresses whose problems or routes may
    /// change. Fails with more than `limit` of these Ingresses. Returns whether the owner of a host may have changed.
    pub(super) fn refresh_overlaps(
        &mut self,
        former: FormerOldest,
        limit: usize,
        to_read: &mut BTreeSet<ObjectName>,
    ) -> Result<bool, FullTranslationNeeded> {
        let changed = former.into_iter().filter(|(host, before)| self.oldest_ingresses(host) != *before);
        let changed: BTreeSet<Host> = changed.map(|(host, _)| host).collect();
        let is_wide = |host: &&Host| host.as_ref().is_none_or(Hostname::is_wildcard);
        let mut wide: BTreeSet<Host> = changed.iter().filter(is_wide).cloned().collect();
        for host in &changed {
            wide.extend(self.wider(host).filter(|wider| self.may_overlap(wider, host)));
        }
        // Each wildcard host is compared with all hosts.
        if wide.len() > MAX_WIDE_HOSTS {
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
        for ingress in concerned.iter().filter_map(|host| self.named.get(host)).flat_map(HostIngresses::iter)
        {
            to_read.insert(ingress.key.name.clone());
            if to_read.len() > limit {
                return Err(FullTranslationNeeded);
            }
        }
        Ok(!changed.is_empty() && self.ownership == HostOwnership::OldestNamespace)
    }

    /// The Ingresses of a namespace that name a host of an Ingress.
    pub(super) fn sharing(&self, namespace: &str, ingress: &Ingress) -> BTreeSet<ObjectName> {
        let hosts: BTreeSet<Host> = hosts_of(ingress).map(|(host, _)| host).collect();
        let ingresses = hosts.iter().filter_map(|host| self.named.get(host)).flat_map(HostIngresses::iter);
        ingresses.filter(|other| other.namespace() == namespace).map(|other| other.key.name.clone()).collect()
    }

    /// The Ingress of another namespace that owns a host.
    pub(super) fn other_owner(&self, host: Option<&Hostname>, namespace: &str) -> Option<&Arc<ObjectKey>> {
        if self.ownership == HostOwnership::Shared {
            return None;
        }
        let owner = self.named.get(&host.cloned())?.oldest()?;
        (owner.namespace() != namespace).then_some(&owner.key)
    }

    /// Whether hosts may need fallback routes ([`super::fallbacks`]): hosts that are owned, or below wildcards.
    pub(super) fn need_fallbacks(&self) -> bool {
        // Wildcards sort first.
        let first = self.named.keys().flatten().next();
        self.ownership == HostOwnership::OldestNamespace || first.is_some_and(Hostname::is_wildcard)
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
        let mut host_problems = BoundedProblems::new(problems, key);
        let mut shared_hosts = BTreeSet::new();
        for (host, place) in hosts_of(ingress) {
            if let Some(owner) = self.other_owner(host.as_ref(), namespace) {
                // The certificates have their own problems.
                if !matches!(place, HostSource::Tls { .. }) {
                    host_problems.add(Severity::Error, Reason::HostNotOwned, place, |place| {
                        (place.field(), not_owned(&host, owner))
                    });
                }
            } else if !shared_hosts.contains(&host)
                && let Some(message) = self.shared(&host, namespace)
            {
                host_problems
                    .add(Severity::Warning, Reason::HostShared, place, |place| (place.field(), message));
                shared_hosts.insert(host);
            }
        }
        host_problems.finish(|place, count| {
            (place.field(), format!("{count} more hosts of the Ingress have this problem or a similar one."))
        });
    }

    /// The named hosts that cover this one. The empty host is one of them only if hosts are shared: the paths of an owned
    /// host come before the paths of the empty host.
    fn wider(&self, host: &Host) -> impl Iterator<Item = Host> {
        let every = (self.ownership == HostOwnership::Shared).then_some(None);
        let wider = host.iter().flat_map(move |host| host.wider().map(Some).chain(every.clone()));
        wider.filter(|wider| self.named.contains_key(wider))
    }

    /// The overlap of each wildcard host.
    fn all_overlaps(&self) -> BTreeMap<Host, Overlap> {
        let mut overlaps: BTreeMap<Host, Overlap> = BTreeMap::new();
        if self.named.keys().any(|host| host.as_ref().is_none_or(Hostname::is_wildcard)) {
            for (host, ingresses) in &self.named {
                let Some(narrower) = host else { continue };
                for wider in self.wider(host) {
                    match overlaps.entry(wider) {
                        map::Entry::Occupied(mut overlap) => overlap.get_mut().add(narrower, ingresses),
                        map::Entry::Vacant(none) => {
                            Overlap::of(narrower, ingresses).map(|overlap| none.insert(overlap));
                        }
                    }
                }
            }
        }
        overlaps
    }

    /// The overlap of one wildcard host.
    fn overlap(&self, wide: &Host) -> Option<Overlap> {
        if !self.named.contains_key(wide) || (wide.is_none() && self.ownership != HostOwnership::Shared) {
            return None;
        }
        let narrower = self.named.iter().filter_map(|(host, ingresses)| Some((host.as_ref()?, ingresses)));
        let mut narrower =
            narrower.filter(|(host, _)| wide.as_ref().is_none_or(|wide| wide.covers_strictly(host)));
        let mut overlap = narrower.next().and_then(|(host, ingresses)| Overlap::of(host, ingresses))?;
        for (host, ingresses) in narrower {
            if overlap.second.is_some() {
                break;
            }
            overlap.add(host, ingresses);
        }
        Some(overlap)
    }

    /// Whether a host may change the overlap of a wildcard host.
    fn may_overlap(&self, wider: &Host, host: &Host) -> bool {
        let (Some(Overlap { first, second }), Some(host)) = (self.overlaps.get(wider), host) else {
            return true;
        };
        match second {
            _ if *host <= first.0 => true,
            Some(second) => *host <= second.0,
            None => self
                .oldest_ingresses(&Some(host.clone()))
                .is_some_and(|ingresses| ingresses.outside(first.1.namespace()).is_some()),
        }
    }

    /// The message about an Ingress of another namespace that names the same host, a wider one or a narrower one.
    fn shared(&self, host: &Host, namespace: &str) -> Option<String> {
        let is_owned = self.ownership == HostOwnership::OldestNamespace;
        if let Some(other) = self.oldest_ingresses(host)?.outside(namespace) {
            let (of, who) = (in_words(host), &other.key);
            return Some(if is_owned {
                format!("{who} of another namespace also names {of}, and is not served for that host.")
            } else {
                format!(
                    "{who} of another namespace also names {of}. A request goes to the more specific path, and between \
                     equal paths to the older Ingress."
                )
            });
        }
        let narrower = self.overlaps.get(host).into_iter().flat_map(Overlap::iter);
        if let Some((narrower, other)) =
            narrower.into_iter().find(|(_, ingress)| ingress.namespace() != namespace)
        {
            return Some(format!(
                "{} of another namespace names \"{narrower}\", which {} covers. Requests for \"{narrower}\" go to that \
                 Ingress{}.",
                other.key,
                host.as_ref().map_or_else(|| "the empty host".to_owned(), |host| format!("\"{host}\"")),
                if is_owned { "" } else { " if one of its paths matches" }
            ));
        }
        let (wider, other) = host.as_ref()?.wider().find_map(|wider| {
            let named = self.oldest_ingresses(&Some(wider.clone()))?;
            Some((wider, named.outside(namespace)?.clone()))
        })?;
        let host = in_words(host);
        Some(format!(
            "{} of another namespace names \"{wider}\", which covers {host}. Requests for {host} that match no path here \
             {} to that Ingress.",
            other.key,
            if is_owned { "do not go" } else { "go" }
        ))
    }
}

fn in_words(host: &Host) -> String {
    host.as_ref().map_or_else(|| "every host".to_owned(), |host| format!("\"{host}\""))
}

fn not_owned(host: &Host, owner: &ObjectKey) -> String {
    let host = host.as_ref().map_or_else(|| "The empty host".to_owned(), |host| format!("\"{host}\""));
    format!(
        "{host} belongs to namespace {}, because {owner} is the oldest Ingress with this host. This Ingress is not \
         served for the host.",
        owner.name.namespace
    )
}
