//! Requests that ingress-nginx decides about by more than one Ingress, and Gateway API and the class by one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::crd::AnnotationDialect;

use super::annotated::{Annotated, Entry, PathEntry};
use super::canary::{self, PathKey};
use super::hosts::WWW;
use super::paths;
use super::tls_hosts::TlsHosts;
use crate::convert::Context;
use crate::convert::covering::covering;
use crate::report::{Reason, Report};

/// Reports such requests. `ingresses` are in the order of their age.
pub(super) fn note(ingresses: &[Annotated], context: &Context<'_>, report: &mut Report) {
    let is_own = |one: &&Annotated| one.dialect.annotations == AnnotationDialect::IngressNginx;
    let (canaries, mains): (Vec<&Annotated>, Vec<&Annotated>) =
        ingresses.iter().filter(is_own).partition(|one| one.read.canary.is_some());
    note_canaries(&mains, &canaries, report);
    note_shared_services(ingresses, report);
    note_wide_hosts(&mains, report);
    note_slashes(ingresses, report);
    note_order(&mains, context, report);
    note_unserved_redirects(&mains, report);
    if context.choices.keep_ingress {
        note_regular(&mains, report);
        note_repeated(&mains, report);
        note_repeated(&canaries, report);
        note_oldest_of_host(&mains, report);
        note_redirected(&mains, &TlsHosts::of(ingresses), report);
    }
}

/// The paths of some Ingresses, each with the port of its Service.
fn targets_of<'a>(ingresses: &[&'a Annotated]) -> impl Iterator<Item = (PathKey<'a>, Target<'a>)> {
    paths_of(ingresses.iter().copied()).filter_map(|(ingress, entry, path)| {
        Some((canary::key(ingress, entry, path), target_of(ingress, path)?))
    })
}

/// The paths of some Ingresses.
fn paths_of<'a>(
    ingresses: impl Iterator<Item = &'a Annotated>,
) -> impl Iterator<Item = (&'a Annotated, &'a Entry, &'a PathEntry)> {
    ingresses.flat_map(|ingress| ingress.paths().map(move |(entry, path)| (ingress, entry, path)))
}

fn target_of<'a>(ingress: &'a Annotated, path: &'a PathEntry) -> Option<Target<'a>> {
    let target = path.target.as_ref()?;
    Some((ingress.namespace(), &target.service, &target.port))
}

/// A port of a Service.
type Target<'a> = (&'a str, &'a str, &'a str);

/// ingress-nginx splits the requests of a Service among it and its first canary, whatever their paths are.
fn note_canaries(mains: &[&Annotated], canaries: &[&Annotated], report: &mut Report) {
    let mut of_path: BTreeMap<PathKey<'_>, usize> = BTreeMap::new();
    for (index, canary) in canaries.iter().enumerate() {
        for (named, _) in targets_of(&[*canary]) {
            of_path.entry(named).or_insert(index);
        }
    }
    // The canaries of the paths with a Service; `None` for a path without one.
    let mut of_service: BTreeMap<Target<'_>, BTreeSet<Option<usize>>> = BTreeMap::new();
    for (named, target) in targets_of(mains) {
        of_service.entry(target).or_default().insert(of_path.get(&named).copied());
    }
    for ((namespace, service, port), found) in of_service.iter().filter(|(_, found)| found.len() > 1) {
        for canary in found.iter().flatten().filter_map(|index| canaries.get(*index)) {
            let message = format!(
                "ingress-nginx sends the share of all requests for Service {namespace}/{service} port {port}, and the output that \
                 of the paths of the canary alone."
            );
            report.limited(&canary.at_own("canary"), Reason::DifferentScope, message);
        }
    }
}

/// In ingress-nginx, the oldest Ingress with a Service decides whether the Service is that of a canary (`createUpstreams` of
/// `internal/ingress/controller/controller.go`): the others have no share, or no path. `ingresses` are in the order of their
/// age.
fn note_shared_services(ingresses: &[Annotated], report: &mut Report) {
    let own = || ingresses.iter().filter(|one| one.is_of_nginx());
    let mut first: BTreeMap<Target<'_>, &Annotated> = BTreeMap::new();
    for (ingress, _, path) in paths_of(own()) {
        if let Some(target) = target_of(ingress, path) {
            first.entry(target).or_insert(ingress);
        }
    }
    for (ingress, _, path) in paths_of(own()) {
        let Some(target) = target_of(ingress, path) else { continue };
        let Some(oldest) = first.get(&target) else { continue };
        let (namespace, service, port) = target;
        let service = format!("Service {namespace}/{service} port {port}");
        let is_canary = ingress.read.canary.is_some();
        if is_canary == oldest.read.canary.is_some() {
            continue;
        }
        if is_canary {
            let message = format!(
                "{service} is a backend of {}, too, so ingress-nginx serves the paths of this Ingress and ignores its canary annotations.",
                oldest.key
            );
            report.limited(&ingress.at_own("canary"), Reason::DifferentScope, message);
        } else {
            let message = format!(
                "{service} is a backend of the canary {}, which ingress-nginx reads first, so it leaves the path out.",
                oldest.key
            );
            report.limited(&path.place, Reason::DifferentScope, message);
            let message = format!(
                "{service} is a backend of {}, too, whose path ingress-nginx leaves out, and perhaps the share of the canary.",
                ingress.key
            );
            report.limited(&oldest.at_own("canary"), Reason::DifferentScope, message);
        }
    }
}

/// In ingress-nginx, a request for a host with rules is never one for a wildcard or for all hosts.
fn note_wide_hosts(mains: &[&Annotated], report: &mut Report) {
    let mut is_complete: BTreeMap<&str, bool> = BTreeMap::new();
    for ingress in mains {
        for entry in &ingress.entries {
            let has_all = entry.paths.iter().any(|path| path.path == "/" && !path.is_exact());
            *is_complete.entry(&entry.host).or_default() |= has_all || ingress.default_backend.is_some();
        }
    }
    // The first of the open hosts below each wider one.
    let mut open: BTreeMap<Cow<'_, str>, &str> = BTreeMap::new();
    for (host, _) in is_complete.iter().filter(|(_, is_complete)| !**is_complete) {
        for wide in covering(host).filter(|wide| wide != host) {
            open.entry(wide).or_insert(host);
        }
    }
    let first_open = is_complete.iter().find(|(host, is_complete)| !host.is_empty() && !**is_complete);
    for ingress in mains {
        if let (Some(backend), Some((host, _))) = (&ingress.default_backend, first_open) {
            let message = format!(
                "Requests for {host} that no path of that host takes reach the backend. ingress-nginx answers 404."
            );
            report.limited(&backend.place, Reason::DifferentScope, message);
        }
        if let Some(entry) = ingress.entries.iter().find(|entry| entry.host.starts_with('*')) {
            let message = format!(
                "{} stands for one label or more before its parent, and in ingress-nginx for one.",
                entry.host
            );
            report.limited(&ingress.place.at("spec.rules"), Reason::DifferentMatch, message);
        }
        let with_paths = ingress.entries.iter().filter(|entry| !entry.paths.is_empty());
        let covered = with_paths.filter_map(|entry| open.get(entry.host.as_str()));
        let Some(host) = covered.min() else { continue };
        let message = format!(
            "Requests for {host} that no path of that host takes reach the rules for more hosts. ingress-nginx answers 404."
        );
        report.limited(&ingress.place.at("spec.rules"), Reason::DifferentScope, message);
    }
}

/// A path with a slash at its end is not that without one in the originals.
fn note_slashes(ingresses: &[Annotated], report: &mut Report) {
    let regular = paths::regular_hosts(ingresses.iter());
    for (ingress, entry, path) in paths_of(ingresses.iter().filter(|one| one.read.canary.is_none())) {
        // Regular expressions are other paths.
        if ingress.is_of_nginx() && regular.contains(entry.host.as_str()) {
            continue;
        }
        let without = path.path.strip_suffix('/').filter(|without| !without.is_empty());
        let Some(without) = without else { continue };
        let answer = match ingress.dialect.annotations {
            AnnotationDialect::IngressNginx => {
                format!("ingress-nginx redirects {without} to {} with status 301", path.path)
            }
            AnnotationDialect::Apisix if path.kind == "Prefix" => format!("APISIX does not take {without}"),
            AnnotationDialect::Apisix => continue,
        };
        let taken = if path.is_exact() { "the path with the slash alone" } else { "both" };
        let message = format!("{answer}, and the rule takes {taken}.");
        report.limited(&path.place.at("path"), Reason::DifferentAnswer, message);
    }
}

/// A class reads the paths of each Ingress for themselves.
fn note_regular(mains: &[&Annotated], report: &mut Report) {
    let hosts = paths::regular_hosts(mains.iter().copied());
    let all = paths_of(mains.iter().copied());
    for (ingress, _, path) in all.filter(|(_, entry, _)| hosts.contains(entry.host.as_str())) {
        let difference = match &ingress.read.rewriting {
            Some(_) => paths::has_letters(&path.path).then_some(paths::LETTERS),
            None => (path.path != "/" || path.is_exact()).then_some(paths::ALL_REGULAR),
        };
        if let Some(difference) = difference {
            let message = format!("{difference}.");
            report.limited(&path.place.at("path"), Reason::DifferentPath, message);
        }
    }
}

/// A regular expression of a host.
struct Expression<'a> {
    /// Its beginning without groups.
    stem: String,
    is_open: bool,
    ingress: &'a Annotated,
    path: &'a PathEntry,
}

impl Expression<'_> {
    /// Whether the expression takes the requests of a longer beginning.
    fn takes(&self, stem: &str) -> bool {
        self.has_below(stem) || (self.is_open && stem.starts_with(&self.stem))
    }

    /// Whether another beginning is that of the expression with further elements.
    fn has_below(&self, stem: &str) -> bool {
        let rest = stem.strip_prefix(self.stem.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.stem.ends_with('/'))
    }

    fn length(&self) -> usize {
        self.path.path.len()
    }
}

/// Of the regular expressions of a host, ingress-nginx takes the longest text that matches, and the output the longest
/// beginning.
fn note_order(mains: &[&Annotated], context: &Context<'_>, report: &mut Report) {
    let hosts = paths::regular_hosts(mains.iter().copied());
    let mut of_host: BTreeMap<&str, Vec<Expression<'_>>> = BTreeMap::new();
    for (ingress, entry, path) in paths_of(mains.iter().copied()) {
        let read = match &ingress.read.rewriting {
            Some(rewriting) => rewriting.read(&path.path).ok().map(|pattern| (pattern.path, pattern.is_open)),
            None => Some((path.path.clone(), true)),
        };
        if let Some((stem, is_open)) = read.filter(|_| hosts.contains(entry.host.as_str())) {
            of_host.entry(&entry.host).or_default().push(Expression { stem, is_open, ingress, path });
        }
    }
    for mut expressions in of_host.into_values() {
        let key = |one: &Expression<'_>| (one.stem.clone(), std::cmp::Reverse(one.length()));
        expressions.sort_by_cached_key(key);
        // The expressions whose beginning the current one has, each with the longest text that comes before.
        let mut around: Vec<(&Expression<'_>, Option<&Expression<'_>>)> = Vec::new();
        for one in &expressions {
            while around.last().is_some_and(|(other, _)| !one.stem.starts_with(&other.stem)) {
                around.pop();
            }
            let before = around.last().and_then(|(other, before)| {
                let all = [Some(*other), *before].into_iter().flatten();
                all.filter(|other| other.takes(&one.stem)).max_by_key(|other| other.length())
            });
            around.push((one, before));
            // Of HTTPRoutes, those without requests are left out.
            let keeps = context.choices.keep_ingress;
            let before = before.filter(|before| before.length() > one.length());
            if let Some(before) = before.filter(|before| keeps || !before.has_below(&one.stem)) {
                let message = format!(
                    "{} has {}, too, which ingress-nginx prefers because its text is longer.",
                    before.ingress.key, before.path.path
                );
                report.limited(&one.path.place.at("path"), Reason::Precedence, message);
            }
        }
    }
}

/// Copies are equally old, so of those with one host and path the class serves the first by name.
fn note_repeated(mains: &[&Annotated], report: &mut Report) {
    let mut oldest = BTreeMap::new();
    for (ingress, entry, path) in paths_of(mains.iter().copied()) {
        let key = (entry.host.as_str(), path.path.as_str(), path.is_exact());
        if let Some(older) = older_by_age_alone(&mut oldest, key, ingress) {
            let message = format!(
                "{} has the host and path, too, and ingress-nginx serves that one. The copies are equally old, and the class \
                 serves the first by name.",
                older.key
            );
            report.limited(&path.place, Reason::Precedence, message);
        }
    }
}

/// In ingress-nginx, the oldest Ingress of a host decides about requests that no path takes, too.
fn note_oldest_of_host(mains: &[&Annotated], report: &mut Report) {
    let mut oldest = BTreeMap::new();
    for (ingress, host) in mains.iter().flat_map(|ingress| ingress.hosts().map(move |host| (*ingress, host)))
    {
        let older = older_by_age_alone(&mut oldest, host, ingress);
        let redirects = |one: &&Annotated| one.read.redirects_hosts || ingress.read.redirects_hosts;
        if let Some(older) = older.filter(redirects) {
            let message = format!(
                "{} is the oldest Ingress with host {host}, so it decides about requests that no path takes. The copies are equally \
                 old, and in the class the first by name decides.",
                older.key
            );
            report.limited(&ingress.place.at("spec.rules"), Reason::DifferentScope, message);
        }
    }
}

/// The oldest Ingress with a key, if its name comes after that of a younger one. `oldest` has the Ingresses before that one.
fn older_by_age_alone<'a, K: Ord>(
    oldest: &mut BTreeMap<K, &'a Annotated>,
    key: K,
    ingress: &'a Annotated,
) -> Option<&'a Annotated> {
    let oldest = *oldest.entry(key).or_insert(ingress);
    (oldest.key.name > ingress.key.name).then_some(oldest)
}

/// ingress-nginx redirects the host with or without `www.` of a host for which it serves a path of the Ingress.
fn note_unserved_redirects(mains: &[&Annotated], report: &mut Report) {
    if !mains.iter().any(|ingress| ingress.read.redirects_www) {
        return;
    }
    let mut known = BTreeSet::new();
    for ingress in mains {
        let mut served: BTreeMap<&str, bool> = BTreeMap::new();
        for entry in &ingress.entries {
            let is_served = served.entry(&entry.host).or_default();
            for path in &entry.paths {
                *is_served |= known.insert((entry.host.as_str(), path.path.as_str(), path.is_exact()));
            }
        }
        for (host, _) in served.iter().filter(|(_, is_served)| ingress.read.redirects_www && !**is_served) {
            let message = format!(
                "ingress-nginx redirects no request to {host}, because it serves none of the paths of this Ingress for the host."
            );
            report.limited(&ingress.at_own(WWW), Reason::DifferentScope, message);
        }
    }
}

/// A class redirects hosts that any Ingress lists in `spec.tls`.
fn note_redirected(mains: &[&Annotated], tls_hosts: &TlsHosts<'_>, report: &mut Report) {
    for ingress in mains {
        let https = &ingress.read.https;
        let is_asked = https.with_tls || ingress.own("ssl-redirect").is_none();
        for entry in ingress.entries.iter().filter(|_| is_asked && !https.without_tls) {
            let host = &entry.host;
            if tls_hosts.has(host) && !tls_hosts.has_of_rules(host) {
                let message = format!(
                    "Plaintext for {host} is redirected to HTTPS. ingress-nginx serves plaintext, because no Ingress with rules for \
                     the host has spec.tls."
                );
                report.limited(&ingress.place.at("spec.rules"), Reason::DifferentScope, message);
            }
        }
    }
}
