//! Requests that ingress-nginx decides about by more than one Ingress, and Gateway API and the class by one.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::crd::AnnotationDialect;

use super::annotated::Annotated;
use super::canary::{self, PathKey};
use super::paths;
use super::tls::TlsHosts;
use crate::migrate::convert::Conversion;
use crate::migrate::report::Reason;

/// Reports such requests. `ingresses` are in the order of their age.
pub(super) fn note(ingresses: &[Annotated], conversion: &mut Conversion) {
    let is_own = |one: &&Annotated| one.dialect.annotations == AnnotationDialect::IngressNginx;
    let (canaries, mains): (Vec<&Annotated>, Vec<&Annotated>) =
        ingresses.iter().filter(is_own).partition(|one| one.read.canary.is_some());
    note_canaries(&mains, &canaries, conversion);
    note_wide_hosts(&mains, conversion);
    note_slashes(ingresses, conversion);
    if conversion.choices.keep_ingress {
        note_regular(&mains, conversion);
        note_repeated(&mains, conversion);
        note_redirected(&mains, &TlsHosts::of(ingresses), conversion);
    }
}

/// The paths of some Ingresses, each with the port of its Service.
fn paths_of<'a>(
    ingresses: &[&'a Annotated],
) -> impl Iterator<Item = (&'a Annotated, PathKey<'a>, Target<'a>)> {
    ingresses.iter().flat_map(|ingress| {
        canary::paths(ingress).filter_map(|(entry, path)| {
            let target = path.target.as_ref()?;
            let target = (ingress.namespace(), target.service.as_str(), target.port.as_str());
            Some((*ingress, canary::key(ingress, entry, path), target))
        })
    })
}

/// A port of a Service.
type Target<'a> = (&'a str, &'a str, &'a str);

/// ingress-nginx splits the requests of a Service among it and its first canary, whatever their paths are.
fn note_canaries(mains: &[&Annotated], canaries: &[&Annotated], conversion: &mut Conversion) {
    let mut of_path: BTreeMap<PathKey<'_>, usize> = BTreeMap::new();
    for (index, canary) in canaries.iter().enumerate() {
        for (_, named, _) in paths_of(&[*canary]) {
            of_path.entry(named).or_insert(index);
        }
    }
    // The canaries of the paths with a Service; `None` for a path without one.
    let mut of_service: BTreeMap<Target<'_>, BTreeSet<Option<usize>>> = BTreeMap::new();
    for (_, named, target) in paths_of(mains) {
        of_service.entry(target).or_default().insert(of_path.get(&named).copied());
    }
    for ((namespace, service, port), found) in of_service.iter().filter(|(_, found)| found.len() > 1) {
        for canary in found.iter().flatten().filter_map(|index| canaries.get(*index)) {
            let message = format!(
                "ingress-nginx sends the share of all requests for Service {namespace}/{service} port {port}, and the output that \
                 of the paths of the canary alone."
            );
            conversion.report.limited(&canary.at_own("canary"), Reason::DifferentScope, message);
        }
    }
    for (canary, _, target) in paths_of(canaries).filter(|(_, _, target)| of_service.contains_key(target)) {
        let (namespace, service, port) = target;
        let message = format!(
            "Service {namespace}/{service} port {port} is a backend of an Ingress without a canary, too, and ingress-nginx may \
             ignore the canary then."
        );
        conversion.report.limited(&canary.at_own("canary"), Reason::DifferentScope, message);
    }
}

/// In ingress-nginx, a request for a host with rules is never one for a wildcard or for all hosts.
fn note_wide_hosts(mains: &[&Annotated], conversion: &mut Conversion) {
    let mut is_complete: BTreeMap<&str, bool> = BTreeMap::new();
    for ingress in mains {
        for entry in &ingress.entries {
            let has_all = entry.paths.iter().any(|path| path.path == "/" && !path.is_exact());
            *is_complete.entry(&entry.host).or_default() |= has_all || ingress.default_backend.is_some();
        }
    }
    let open: Vec<&str> =
        is_complete.iter().filter(|(_, is_complete)| !**is_complete).map(|(host, _)| *host).collect();
    for ingress in mains {
        if let Some(entry) = ingress.entries.iter().find(|entry| entry.host.starts_with('*')) {
            let message = format!(
                "{} stands for one label or more before its parent, and in ingress-nginx for one.",
                entry.host
            );
            conversion.report.limited(&ingress.place.at("spec.rules"), Reason::DifferentMatch, message);
        }
        let covers = |wide: &str, host: &str| match wide.strip_prefix('*') {
            _ if wide.is_empty() => !host.is_empty(),
            Some(domain) => host != wide && host.ends_with(domain),
            None => false,
        };
        let is_covered = |host: &&&str| {
            ingress.entries.iter().any(|entry| !entry.paths.is_empty() && covers(&entry.host, host))
        };
        let is_wide = |host: &str| host.is_empty() || host.starts_with('*');
        if !ingress.entries.iter().any(|entry| is_wide(&entry.host)) {
            continue;
        }
        let Some(host) = open.iter().find(is_covered) else { continue };
        let message = format!(
            "Requests for {host} that no path of that host takes reach the rules for more hosts. ingress-nginx answers 404."
        );
        conversion.report.limited(&ingress.place.at("spec.rules"), Reason::DifferentScope, message);
    }
}

/// A path with a slash at its end is not that without one in the originals.
fn note_slashes(ingresses: &[Annotated], conversion: &mut Conversion) {
    let plain = ingresses.iter().filter(|one| one.read.rewriting.is_none() && one.read.canary.is_none());
    for (ingress, path) in plain.flat_map(|one| {
        let paths = one.entries.iter().flat_map(|entry| &entry.paths);
        paths.map(move |path| (one, path))
    }) {
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
        conversion.report.limited(&path.place.at("path"), Reason::DifferentAnswer, message);
    }
}

/// A class reads the paths of each Ingress for themselves.
fn note_regular(mains: &[&Annotated], conversion: &mut Conversion) {
    let hosts = paths::regular_hosts(mains.iter().copied());
    for ingress in mains.iter().filter(|one| one.read.rewriting.is_none()) {
        for entry in ingress.entries.iter().filter(|entry| hosts.contains(entry.host.as_str())) {
            for path in entry.paths.iter().filter(|path| path.path != "/" || path.is_exact()) {
                let message = format!("{}.", paths::ALL_REGULAR);
                conversion.report.limited(&path.place.at("path"), Reason::DifferentPath, message);
            }
        }
    }
}

/// Copies are equally old.
fn note_repeated(mains: &[&Annotated], conversion: &mut Conversion) {
    let mut known: BTreeMap<(&str, &str, bool), &Annotated> = BTreeMap::new();
    for ingress in mains {
        for entry in &ingress.entries {
            for path in &entry.paths {
                let key = (entry.host.as_str(), path.path.as_str(), path.is_exact());
                let first = known.entry(key).or_insert(ingress);
                if first.key.name > ingress.key.name {
                    let message = format!(
                        "{} has the host and path, too, and ingress-nginx serves that one. The copies are equally old, and the \
                         class serves the first by name.",
                        first.key
                    );
                    conversion.report.limited(&path.place, Reason::Precedence, message);
                }
            }
        }
    }
}

/// A class redirects hosts that any Ingress lists in `spec.tls`.
fn note_redirected(mains: &[&Annotated], tls_hosts: &TlsHosts<'_>, conversion: &mut Conversion) {
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
                conversion.report.limited(&ingress.place.at("spec.rules"), Reason::DifferentScope, message);
            }
        }
    }
}
