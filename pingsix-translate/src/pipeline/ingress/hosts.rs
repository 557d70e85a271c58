//! The owner of a host that Ingresses of several namespaces name, and the problems of these Ingresses.
//!
//! Hosts are compared as they are written: `shop.example.com`, `*.example.com` and the empty host, which covers every
//! host, are three hosts. An Ingress names the hosts of its rules and of `spec.tls`. A default backend names the empty
//! host. Annotations name aliases and hosts that are redirected ([`MoreHosts`]), which have no effect once another Ingress
//! has rules for the host.
//!
//! With [`HostOwnership::OldestNamespace`], younger objects change no answer for a host. Rules, default backends and
//! certificates of other namespaces for the host are left out before they are lowered. Requests that no path of a
//! host takes do not fall to wider hosts ([`super::fallbacks`]).
//!
//! [`Hosts`] is kept between translations. An Ingress with the same hosts as before costs nothing here. An Ingress
//! with other hosts costs a comparison of these hosts. Each Ingress whose verdict may change is read again.

use std::collections::{BTreeMap, BTreeSet, btree_map as map};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressTLS;

use super::super::owner::FullTranslationNeeded;
use super::annotations::Annotated;
use super::bounded_problems::BoundedProblems;
use super::host_ingresses::{HostIngresses, IngressByAge, NamedBy, NamingIngress, OldestIngresses};
use crate::annotations::MoreHosts;
use crate::bounds;
use crate::crd::HostOwnership;
use crate::model::{FieldPath, Hostname, ObjectKey, ObjectName, Problem, Reason, Severity, field};
use crate::normalise::{Hostnames, Route};
use crate::snapshot::Ingress;

/// A host as it is written; `None` is the empty host.
type Host = Option<Hostname>;

/// Limit of changed wildcard hosts. Above, a full comparison is cheaper.
const MAX_WIDE_HOSTS: usize = 16;

/// Hosts before a change.
pub(super) type FormerHosts = BTreeMap<Host, FormerHost>;

/// A host before a change.
#[derive(Debug)]
pub(super) struct FormerHost {
    oldest: Option<OldestIngresses>,
    has_tls: bool,
}

/// The Ingresses that name each host.
#[derive(Debug)]
pub(super) struct Hosts {
    ownership: HostOwnership,
    /// Whether the class redirects hosts with `spec.tls` to HTTPS.
    redirects_to_tls: bool,
    named: BTreeMap<Host, HostIngresses>,
    /// By Ingress with such annotations.
    annotations: BTreeMap<ObjectName, HostAnnotations>,
    /// By wildcard host that an Ingress names.
    overlaps: BTreeMap<Host, Overlap>,
}

/// The annotations of an Ingress that matter for hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HostAnnotations {
    more: MoreHosts,
    is_canary: bool,
}

impl HostAnnotations {
    fn of(annotated: &Annotated<'_>) -> Self {
        Self { more: annotated.more_hosts(), is_canary: annotated.annotations.canary.is_some() }
    }

    /// The hosts of annotations, and the places that name them.
    fn hosts(&self) -> impl Iterator<Item = (Host, HostSource)> {
        let aliases = self.more.aliases.iter().map(|(_, alias)| (Some(alias.clone()), HostSource::Alias));
        let redirects =
            self.more.redirects.iter().map(|redirect| (Some(redirect.from.clone()), HostSource::Redirect));
        aliases.chain(redirects)
    }

    /// The valid hosts of an Ingress with these annotations: the ways in which it names them, and whether it has
    /// `spec.tls` for them.
    ///
    /// ingress-nginx has a certificate for a host once any Ingress with rules for it has `spec.tls`, with any hosts
    /// listed there (`createServers` of `internal/ingress/controller/controller.go`).
    fn named(&self, ingress: &Ingress) -> BTreeMap<Host, (NamedBy, bool)> {
        let has_tls = !tls_of(ingress).is_empty();
        let mut named: BTreeMap<Host, (NamedBy, bool)> = BTreeMap::new();
        for (host, place) in hosts_of(ingress).chain(self.hosts()) {
            let by = place.named_by(self.is_canary);
            let is_for_host = match place {
                HostSource::Tls { .. } => true,
                HostSource::Rule { has_host, .. } => has_tls && has_host && !self.is_canary,
                HostSource::DefaultBackend | HostSource::Alias | HostSource::Redirect => false,
            };
            let (known, known_tls) = named.entry(host).or_insert((by, is_for_host));
            *known = known.and(by);
            *known_tls |= is_for_host;
        }
        named
    }
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
        let OldestIngresses { oldest, other, .. } = ingresses.oldest_ingresses()?;
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
    Alias,
    Redirect,
}

impl HostSource {
    const fn named_by(self, is_canary: bool) -> NamedBy {
        match self {
            Self::Rule { .. } | Self::DefaultBackend if !is_canary => NamedBy::Rules,
            Self::Rule { .. } | Self::DefaultBackend | Self::Tls { .. } => NamedBy::Otherwise,
            Self::Alias | Self::Redirect => NamedBy::Annotation,
        }
    }

    fn field(self) -> FieldPath {
        match self {
            Self::Rule { index, has_host: true } => field::rule(index).child("host"),
            Self::Rule { index, has_host: false } => field::rule(index),
            Self::DefaultBackend => field::default_backend(),
            Self::Tls { entry, host } => field::tls(entry).child("hosts").index(host),
            Self::Alias | Self::Redirect => FieldPath::new("metadata").child("annotations"),
        }
    }
}

/// The entries of `spec.tls`.
pub(super) fn tls_of(ingress: &Ingress) -> &[IngressTLS] {
    ingress.spec.as_ref().and_then(|spec| spec.tls.as_deref()).unwrap_or_default()
}

/// The valid hosts of the spec of an Ingress, and the places that name them.
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
    pub(super) const fn new(ownership: HostOwnership, redirects_to_tls: bool) -> Self {
        Self {
            ownership,
            redirects_to_tls,
            named: BTreeMap::new(),
            annotations: BTreeMap::new(),
            overlaps: BTreeMap::new(),
        }
    }

    /// Adds an Ingress before the first translation.
    pub(super) fn add_first(&mut self, name: &ObjectName, annotated: &Annotated<'_>) {
        let ingress = IngressByAge::of(name, annotated.ingress);
        let annotations = HostAnnotations::of(annotated);
        for (host, by) in annotations.named(annotated.ingress) {
            self.add(host, NamingIngress::new(by, ingress.clone()));
        }
        self.keep_annotations(name, annotations);
    }

    /// Determines the overlaps of all hosts.
    pub(super) fn find_overlaps(&mut self) {
        self.overlaps = self.all_overlaps();
    }

    fn keep_annotations(&mut self, name: &ObjectName, annotations: HostAnnotations) {
        if annotations == HostAnnotations::default() {
            self.annotations.remove(name);
        } else {
            self.annotations.insert(name.clone(), annotations);
        }
    }

    /// Replaces an Ingress of the same name. `former` receives the states that its hosts had. Returns whether
    /// annotations add other hosts than before.
    pub(super) fn replace(
        &mut self,
        name: &ObjectName,
        before: Option<&Ingress>,
        now: Option<&Annotated<'_>>,
        former: &mut FormerHosts,
    ) -> bool {
        let old_annotations = self.annotations.remove(name).unwrap_or_default();
        let new_annotations = now.map(HostAnnotations::of).unwrap_or_default();
        let old = before.map(|before| old_annotations.named(before)).unwrap_or_default();
        let new = now.map(|now| new_annotations.named(now.ingress)).unwrap_or_default();
        let [old_key, new_key] =
            [before, now.map(|now| now.ingress)].map(|ingress| Some(IngressByAge::of(name, ingress?)));
        let is_as_old = old_key == new_key;
        for (host, by) in old.iter().filter(|(host, by)| !(is_as_old && new.get(*host) == Some(*by))) {
            former.entry(host.clone()).or_insert_with(|| self.state_of(host));
            let Some((ingress, ingresses)) = old_key.clone().zip(self.named.get_mut(host)) else { continue };
            if ingresses.remove(&NamingIngress::new(*by, ingress)) {
                self.named.remove(host);
            }
        }
        for (host, by) in new.into_iter().filter(|(host, by)| !(is_as_old && old.get(host) == Some(by))) {
            former.entry(host.clone()).or_insert_with(|| self.state_of(&host));
            if let Some(ingress) = new_key.clone() {
                self.add(host, NamingIngress::new(by, ingress));
            }
        }
        let has_other_hosts = old_annotations.more != new_annotations.more;
        self.keep_annotations(name, new_annotations);
        has_other_hosts
    }

    fn add(&mut self, host: Host, naming: NamingIngress) {
        match self.named.entry(host) {
            map::Entry::Occupied(mut ingresses) => ingresses.get_mut().insert(naming),
            map::Entry::Vacant(none) => {
                none.insert(HostIngresses::One(naming));
            }
        }
    }

    /// The Ingress whose rules for a host leave the annotations of others for it without effect.
    fn rules_beside_annotations(&self, host: &Hostname) -> Option<IngressByAge> {
        let named = self.oldest_ingresses(&Some(host.clone()))?;
        named.with_rules.filter(|_| named.annotated.is_some())
    }

    /// Whether an Ingress redirects a host, and not an older one that does so in its place.
    fn redirects(&self, host: &Hostname, key: &ObjectKey) -> bool {
        let named = self.oldest_ingresses(&Some(host.clone()));
        let named = named.filter(|named| named.with_rules.is_none());
        let Some(first) = named.and_then(|named| named.annotated) else { return false };
        let counts = self.ownership == HostOwnership::Shared || *first.namespace() == *key.name.namespace;
        *first.key == *key || !counts
    }

    /// The hosts that annotations add to an Ingress, without those that others have.
    pub(super) fn more_hosts(&self, key: &ObjectKey) -> MoreHosts {
        let Some(HostAnnotations { more, .. }) = self.annotations.get(&key.name) else {
            return MoreHosts::default();
        };
        let mut more = more.clone();
        more.aliases.retain(|(_, alias)| self.rules_beside_annotations(alias).is_none());
        more.redirects.retain(|redirect| self.redirects(&redirect.from, key));
        more
    }

    fn state_of(&self, host: &Host) -> FormerHost {
        FormerHost { oldest: self.oldest_ingresses(host), has_tls: self.host_has_tls(host) }
    }

    /// Whether an Ingress has `spec.tls` for a host as it is written.
    fn host_has_tls(&self, host: &Host) -> bool {
        self.redirects_to_tls
            && host.is_some()
            && self.named.get(host).is_some_and(|ingresses| ingresses.has_tls(self.ownership))
    }

    /// The hosts with a certificate among those of the rules and annotations of an Ingress. Requests in plaintext for them
    /// may be redirected to HTTPS. The certificate is the one of the host, or of the wildcard with one label in its place,
    /// as in ingress-nginx (`rootfs/etc/nginx/lua/certificate.lua`).
    pub(super) fn tls_hosts(&self, key: &ObjectKey, ingress: &Ingress) -> BTreeSet<Hostname> {
        let namespace = &key.name.namespace;
        let annotations = self.annotations.get(&key.name);
        let served = hosts_of(ingress).filter(|(_, place)| !matches!(place, HostSource::Tls { .. }));
        let hosts = served.chain(annotations.into_iter().flat_map(HostAnnotations::hosts));
        let has_tls = |host: &Hostname| {
            let around = host.wider().next().filter(|_| !host.is_wildcard());
            std::iter::once(host.clone())
                .chain(around)
                .map(Some)
                .any(|host| self.host_has_tls(&host) && self.other_owner(host.as_ref(), namespace).is_none())
        };
        let hosts: BTreeSet<Hostname> = hosts.filter_map(|(host, _)| host).collect();
        hosts.into_iter().filter(has_tls).collect()
    }

    /// The hosts of the rules of an Ingress for which no older one has rules. The redirect of the Ingress is for all requests
    /// of these hosts. Canaries have no rules of their own.
    pub(super) fn led_hosts(&self, key: &ObjectKey, ingress: &Ingress) -> BTreeSet<Hostname> {
        let hosts = hosts_of(ingress).filter(|(_, place)| matches!(place, HostSource::Rule { .. }));
        let leads = |host: &Hostname| {
            let oldest = self.named.get(&Some(host.clone())).and_then(HostIngresses::oldest_with_rules);
            oldest.is_some_and(|oldest| *oldest.key == *key)
        };
        hosts.filter_map(|(host, _)| host).filter(leads).collect()
    }

    fn oldest_ingresses(&self, host: &Host) -> Option<OldestIngresses> {
        self.named.get(host)?.oldest_ingresses()
    }

    /// Determines the overlaps of changed hosts again. `to_read` receives the Ingresses whose problems or routes may
    /// change. Fails with more than `limit` of these Ingresses. Returns whether certificates may be for other hosts: the
    /// owner of a host changed, or the effect of an annotation.
    pub(super) fn refresh_overlaps(
        &mut self,
        former: FormerHosts,
        limit: usize,
        to_read: &mut BTreeSet<ObjectName>,
    ) -> Result<bool, FullTranslationNeeded> {
        let mut has_other_annotations = false;
        let with_other_tls = former.iter().filter(|(host, before)| self.host_has_tls(host) != before.has_tls);
        let with_other_tls: BTreeSet<Host> = with_other_tls.map(|(host, _)| host.clone()).collect();
        let changed = former.into_iter().filter(|(host, before)| {
            let now = self.oldest_ingresses(host);
            let annotated = |oldest: &Option<OldestIngresses>| {
                let OldestIngresses { annotated, with_rules, .. } = oldest.as_ref()?;
                Some((annotated.clone()?, with_rules.clone()))
            };
            has_other_annotations |= annotated(&now) != annotated(&before.oldest);
            now != before.oldest
        });
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
        let mut concerned: BTreeSet<Host> = changed.union(&with_other_tls).cloned().collect();
        let may_cover = concerned.clone();
        for wildcard in may_cover.iter().filter(is_wide).flatten() {
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
        Ok(has_other_annotations || (!changed.is_empty() && self.ownership == HostOwnership::OldestNamespace))
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
        let annotations = self.annotations.get(&key.name);
        let more = annotations.into_iter().flat_map(HostAnnotations::hosts);
        for (host, place) in hosts_of(ingress).chain(more) {
            let is_annotation = matches!(place, HostSource::Alias | HostSource::Redirect);
            let named = host.as_ref().filter(|_| is_annotation);
            if let Some(other) = named.and_then(|host| self.rules_beside_annotations(host)) {
                host_problems.add(Severity::Warning, Reason::Shadowed, place, |place| {
                    (place.field(), no_effect(&host, place, &other.key, key))
                });
            } else if self.other_owner(host.as_ref(), namespace).is_some() {
                // The certificates have their own problems.
                if !matches!(place, HostSource::Tls { .. }) {
                    host_problems.add(Severity::Error, Reason::HostNotOwned, place, |place| {
                        (place.field(), not_owned(&host))
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
        let beyond = annotations.map_or(0, |annotations| annotations.more.beyond);
        if beyond > 0 {
            problems.push(Problem {
                object: key.clone(),
                field: HostSource::Alias.field(),
                severity: Severity::Warning,
                reason: Reason::UnsupportedAnnotation,
                message: format!(
                    "server-alias: {beyond} aliases have no effect, because the Ingress would have too many paths with them."
                ),
            });
        }
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
        if self.oldest_ingresses(host)?.outside(namespace).is_some() {
            let of = in_words(host);
            return Some(if is_owned {
                format!("An Ingress of another namespace also names {of}, and is not served for that host.")
            } else {
                format!(
                    "An Ingress of another namespace also names {of}. A request goes to the more specific path, and \
                     between equal paths to the older Ingress."
                )
            });
        }
        let narrower = self.overlaps.get(host).into_iter().flat_map(Overlap::iter);
        if let Some((narrower, _)) =
            narrower.into_iter().find(|(_, ingress)| ingress.namespace() != namespace)
        {
            return Some(format!(
                "An Ingress of another namespace names \"{narrower}\", which {} covers. Requests for \"{narrower}\" go to \
                 that Ingress{}.",
                host.as_ref().map_or_else(|| "the empty host".to_owned(), |host| format!("\"{host}\"")),
                if is_owned { "" } else { " if one of its paths matches" }
            ));
        }
        let wider = host.as_ref()?.wider().find(|wider| {
            let named = self.oldest_ingresses(&Some(wider.clone()));
            named.is_some_and(|named| named.outside(namespace).is_some())
        })?;
        let host = in_words(host);
        Some(format!(
            "An Ingress of another namespace names \"{wider}\", which covers {host}. Requests for {host} that match no path \
             here {} to that Ingress.",
            if is_owned { "do not go" } else { "go" }
        ))
    }
}

fn in_words(host: &Host) -> String {
    host.as_ref().map_or_else(|| "every host".to_owned(), |host| format!("\"{host}\""))
}

fn not_owned(host: &Host) -> String {
    let host = host.as_ref().map_or_else(|| "The empty host".to_owned(), |host| format!("\"{host}\""));
    format!(
        "{host} belongs to another namespace, whose Ingress is the oldest with this host. This Ingress is not served for the \
         host."
    )
}

/// The message about a host of an annotation for which another Ingress has rules.
fn no_effect(host: &Host, place: HostSource, other: &ObjectKey, reader: &ObjectKey) -> String {
    let (annotation, effect) = match place {
        HostSource::Redirect => ("from-to-www-redirect", "its requests are not redirected"),
        HostSource::Alias | HostSource::Rule { .. } | HostSource::DefaultBackend | HostSource::Tls { .. } => {
            ("server-alias", "the alias has no effect")
        }
    };
    format!("{annotation}: {} has rules for {}, so {effect}.", other.named_to(reader), in_words(host))
}
