//! Whose a host is that Ingresses of several namespaces name, and who is told of it.
//!
//! A host counts as it is written: `shop.example.com`, `*.example.com` and no host, which stands for every one, are three.
//! An Ingress names the hosts of its rules and of `spec.tls`; with a default backend it names the host that is none.
//!
//! With [`HostOwnership::OldestNamespace`], nothing that comes later changes what is answered for a host:
//!
//! 1. Others' rules, default backends and certificates for the host are left out before anything is made of them.
//! 2. What no path of a host takes does not fall to wider hosts, since anybody may come to own one. It goes to the default
//!    backend of the same namespace, if that owns the host that is none, and to 404 otherwise ([`rests_of_hosts`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::backends::{Action, ResolvedRule};
use crate::bounds;
use crate::crd::HostOwnership;
use crate::lower::RouteInput;
use crate::model::{
    Age, FieldPath, Hostname, Kind, ObjectKey, Problem, Reason, Severity, compare_age, field,
};
use crate::normalise::{Hostnames, Part, Path, Route, rest_of_host};
use crate::rare::Rare;
use crate::snapshot::{Ingress, IngressSnapshot, key_of};

/// An Ingress and how old it is.
pub(super) struct Aged<'a> {
    pub(super) age: Age,
    pub(super) key: Arc<ObjectKey>,
    pub(super) ingress: &'a Ingress,
}

/// The Ingresses of a class.
pub(super) fn oldest_first(snapshot: &IngressSnapshot) -> Vec<Aged<'_>> {
    let aged = |ingress: &'_ Ingress| Arc::new(key_of(Kind::Ingress, &ingress.metadata));
    let mut oldest_first: Vec<Aged<'_>> = snapshot
        .ingresses
        .values()
        .map(|ingress| Aged { age: Age::of(&ingress.metadata), key: aged(ingress), ingress })
        .collect();
    oldest_first.sort_by(|left, right| compare_age((left.age, &left.key), (right.age, &right.key)));
    oldest_first
}

/// A host as it is written; `None` stands for every one.
type Host = Option<Hostname>;

/// The hosts that Ingresses of several namespaces name. Nothing is remembered if all are of one.
pub(super) struct Hosts<'a> {
    ownership: HostOwnership,
    oldest_first: &'a [Aged<'a>],
    /// By the index of the Ingress.
    named: BTreeMap<Host, FirstTwo>,
}

/// The oldest Ingress, and the oldest of another namespace.
#[derive(Clone, Copy)]
struct FirstTwo {
    oldest: usize,
    other: Option<usize>,
}

impl FirstTwo {
    const fn new(oldest: usize) -> Self {
        Self { oldest, other: None }
    }

    fn add(&mut self, index: usize, all: &[Aged<'_>]) {
        if self.other.is_none() && all[index].namespace() != all[self.oldest].namespace() {
            self.other = Some(index);
        }
    }

    /// The first that is not of this namespace.
    fn beside(self, namespace: &str, all: &[Aged<'_>]) -> Option<usize> {
        [Some(self.oldest), self.other]
            .into_iter()
            .flatten()
            .find(|index| all[*index].namespace() != namespace)
    }
}

/// A place where an Ingress names a host.
#[derive(Clone, Copy)]
enum Place {
    Rule { index: usize, has_host: bool },
    DefaultBackend,
    Tls { entry: usize, host: usize },
}

impl Place {
    fn field(self) -> FieldPath {
        match self {
            Self::Rule { index, has_host: true } => field::rule(index).child("host"),
            Self::Rule { index, has_host: false } => field::rule(index),
            Self::DefaultBackend => field::default_backend(),
            Self::Tls { entry, host } => field::tls(entry).child("hosts").index(host),
        }
    }
}

impl Aged<'_> {
    fn namespace(&self) -> &str {
        &self.key.name.namespace
    }

    /// The hosts that can be one, and where they are named.
    fn hosts(&self) -> impl Iterator<Item = (Host, Place)> {
        let spec = self.ingress.spec.iter();
        let rules = spec.clone().flat_map(|spec| spec.rules.iter().flatten().enumerate());
        let of_rules = rules.filter_map(|(index, rule)| {
            let written = rule.host.as_deref().filter(|host| !host.is_empty());
            let host = written.map(Hostname::parse).transpose().ok()?;
            Some((host, Place::Rule { index, has_host: written.is_some() }))
        });
        let default = spec.clone().filter(|spec| spec.default_backend.is_some());
        let tls = spec.flat_map(|spec| spec.tls.iter().flatten().enumerate());
        let of_tls = tls.flat_map(|(entry, tls)| {
            let hosts = tls.hosts.iter().flatten().enumerate();
            hosts.map(move |(host, written)| (written, Place::Tls { entry, host }))
        });
        // No certificate is shown for more.
        let of_tls = of_tls
            .take(bounds::NAMES)
            .filter_map(|(host, place)| Some((Some(Hostname::parse(host).ok()?), place)));
        of_rules.chain(default.map(|_| (None, Place::DefaultBackend))).chain(of_tls)
    }
}

impl<'a> Hosts<'a> {
    pub(super) fn new(ownership: HostOwnership, oldest_first: &'a [Aged<'a>]) -> Self {
        let mut named: BTreeMap<Host, FirstTwo> = BTreeMap::new();
        let namespaces = oldest_first.iter().map(Aged::namespace);
        if namespaces.clone().zip(namespaces.skip(1)).any(|(one, next)| one != next) {
            for (index, aged) in oldest_first.iter().enumerate() {
                for (host, _) in aged.hosts() {
                    named.entry(host).or_insert(FirstTwo::new(index)).add(index, oldest_first);
                }
            }
        }
        Self { ownership, oldest_first, named }
    }

    /// The Ingress because of which a host belongs to another namespace.
    pub(super) fn other_owner(&self, host: Option<&Hostname>, namespace: &str) -> Option<&Arc<ObjectKey>> {
        if self.ownership == HostOwnership::Shared {
            return None;
        }
        let owner = &self.oldest_first[self.named.get(&host.cloned())?.oldest];
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

    /// Says what is refused, and who shares hosts with another namespace.
    pub(super) fn tell(&self, problems: &mut Vec<Problem>) {
        let overlaps = self.overlaps();
        for aged in self.oldest_first.iter().filter(|_| !self.named.is_empty()) {
            let mut telling = Telling { problems, key: &aged.key, one_by_one: 0, others: None };
            let mut told = BTreeSet::new();
            for (host, place) in aged.hosts() {
                if let Some(owner) = self.other_owner(host.as_ref(), aged.namespace()) {
                    // What becomes of certificates is told with them.
                    if !matches!(place, Place::Tls { .. }) {
                        telling.tell(Severity::Error, Reason::HostNotOwned, place, || refused(&host, owner));
                    }
                } else if let Some(message) = self.shared(&host, aged, &overlaps)
                    && !told.contains(&host)
                {
                    telling.tell(Severity::Warning, Reason::HostShared, place, || message);
                    told.insert(host);
                }
            }
            telling.tell_others();
        }
    }

    /// The hosts that stand for others as well, each with the first two of these that another namespace than the first's
    /// names: host, and index of the Ingress.
    fn overlaps(&self) -> BTreeMap<Host, [Option<(&Hostname, usize)>; 2]> {
        let mut overlaps: BTreeMap<Host, [Option<(&Hostname, usize)>; 2]> = BTreeMap::new();
        if !self.named.keys().any(|host| host.as_ref().is_none_or(Hostname::is_wildcard)) {
            return overlaps;
        }
        for (host, named) in &self.named {
            let Some(host) = host else { continue };
            // A host has paths of its own in front of what stands for every host, and with an owner it shares nothing.
            let every = (self.ownership == HostOwnership::Shared).then_some(None);
            for wider in host.wider().map(Some).chain(every).filter(|wider| self.named.contains_key(wider)) {
                let [first, second] = overlaps.entry(wider).or_default();
                for index in [Some(named.oldest), named.other].into_iter().flatten() {
                    let namespace = |index: usize| self.oldest_first[index].namespace();
                    match first {
                        None => *first = Some((host, index)),
                        Some((_, other)) if second.is_none() && namespace(*other) != namespace(index) => {
                            *second = Some((host, index));
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        overlaps
    }

    /// What to say if another namespace names the host too, or one that it covers or that covers it.
    fn shared(
        &self,
        host: &Host,
        aged: &Aged<'_>,
        overlaps: &BTreeMap<Host, [Option<(&Hostname, usize)>; 2]>,
    ) -> Option<String> {
        let is_owned = self.ownership == HostOwnership::OldestNamespace;
        let key = |index: usize| &self.oldest_first[index].key;
        if let Some(other) = self.named.get(host)?.beside(aged.namespace(), self.oldest_first) {
            let (of, who) = (in_words(host), key(other));
            return Some(if is_owned {
                format!("{who} of another namespace names {of} too; nothing of it is served for that host.")
            } else {
                format!(
                    "{who} of another namespace names {of} too; the more specific path, then the older Ingress, gets \
                     its requests."
                )
            });
        }
        let narrower = overlaps.get(host).into_iter().flatten().flatten();
        let mut narrower =
            narrower.filter(|(_, index)| self.oldest_first[*index].namespace() != aged.namespace());
        if let Some((narrower, other)) = narrower.next() {
            return Some(format!(
                "{} of another namespace names \"{narrower}\", which {} stands for as well, and gets its requests{}.",
                key(*other),
                host.as_ref().map_or_else(|| "this".to_owned(), |host| format!("\"{host}\"")),
                if is_owned { "" } else { " as far as it has a path for them" }
            ));
        }
        let (wider, other) = host.as_ref()?.wider().find_map(|wider| {
            let named = self.named.get(&Some(wider.clone()))?;
            Some((wider, named.beside(aged.namespace(), self.oldest_first)?))
        })?;
        Some(format!(
            "{} of another namespace names \"{wider}\", which stands for {} as well, and gets {} its requests that no \
             path takes here.",
            key(other),
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

/// What an Ingress is told of its hosts. It may have thousands, so only the first few are told one by one.
struct Telling<'p> {
    problems: &'p mut Vec<Problem>,
    key: &'p Arc<ObjectKey>,
    one_by_one: usize,
    /// Of the others, the severest, where the first of them is, and how many there are.
    others: Option<(Severity, Reason, Place, usize)>,
}

impl Telling<'_> {
    const ONE_BY_ONE: usize = 8;

    fn tell(&mut self, severity: Severity, reason: Reason, place: Place, message: impl FnOnce() -> String) {
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

    fn tell_others(self) {
        let Some((severity, reason, place, count)) = self.others else { return };
        let (object, field) = (self.key.clone(), place.field());
        let message =
            format!("So it is, or alike, with {count} other places in which the Ingress names hosts.");
        self.problems.push(Problem { object, field, severity, reason, message });
    }
}

/// A route for each named host that none of the routes takes every request of: to the default backend of the same
/// namespace, or else 404. Each host has one owner here, to whom its route is charged.
pub(super) fn rests_of_hosts(routes: &[Arc<RouteInput>]) -> Vec<Arc<RouteInput>> {
    /// The oldest route of a host, and whether any takes every request.
    struct Taken<'a> {
        oldest: &'a RouteInput,
        is_whole: bool,
    }
    let is_older = |one: &RouteInput, other: &RouteInput| {
        compare_age((one.route.age, &one.route.key), (other.route.age, &other.route.key)).is_lt()
    };
    let mut by_host: BTreeMap<&Hostname, Taken<'_>> = BTreeMap::new();
    let mut default: Option<&RouteInput> = None;
    for input in routes {
        match &input.route.hostnames {
            Hostnames::Any if input.route.part == Part::DefaultBackend => {
                if default.is_none_or(|default| is_older(input, default)) {
                    default = Some(input);
                }
            }
            Hostnames::Any => {}
            Hostnames::Named(names) => {
                for name in names {
                    let taken = by_host.entry(name).or_insert(Taken { oldest: input, is_whole: false });
                    taken.is_whole |= takes_everything(&input.route);
                    if is_older(input, taken.oldest) {
                        taken.oldest = input;
                    }
                }
            }
        }
    }
    let rest = |(host, Taken { oldest, .. }): (&Hostname, Taken<'_>)| {
        let (route, rules) = match default
            .filter(|default| default.route.key.name.namespace == oldest.route.key.name.namespace)
        {
            Some(default) => {
                let hostnames = Hostnames::Named(Box::new([host.clone()]));
                (Route { hostnames, ..default.route.clone() }, default.rules.clone())
            }
            None => (rest_of_host(&oldest.route, host), Box::from([nothing()])),
        };
        Arc::new(RouteInput::new(route, rules, oldest.attached.clone()))
    };
    by_host.into_iter().filter(|(_, taken)| !taken.is_whole).map(rest).collect()
}

/// Whether nothing is left for wider hosts.
fn takes_everything(route: &Route) -> bool {
    let paths = route.rules.iter().flat_map(|rule| rule.matches.iter()).map(|matched| &matched.path);
    paths.into_iter().any(|path| *path == Path::unwritten() || *path == Path::root())
}

fn nothing() -> ResolvedRule {
    ResolvedRule {
        action: Action::status(404),
        unresolved: Rare::default(),
        refused: Rare::default(),
        policies: Rare::default(),
    }
}
