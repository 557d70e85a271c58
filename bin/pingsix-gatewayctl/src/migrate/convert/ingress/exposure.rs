//! Ingresses whose protected paths have less protected ones around them.
//!
//! PingSIX compares paths byte by byte, and the other controllers compare normalised paths. So another spelling of a protected
//! path may reach the rule of another Ingress.

use std::collections::{BTreeMap, BTreeSet};

use super::annotated::{Annotated, Entry};
use super::dialect::Dialect;
use super::paths::stem;
use crate::migrate::convert::tls::covering;

/// Whether an annotation of a controller limits who may send requests.
pub(super) fn is_protecting(name: &str) -> bool {
    name.contains("auth") || name.ends_with("-source-range") || name.ends_with("-methods")
}

/// The difference for a protected path beside others.
pub(super) fn message(dialect: &Dialect) -> String {
    format!(
        "{} normalises paths before it protects them. PingSIX does not: it answers the known other spellings of the paths \
         with 400, and others reach the rules of other Ingresses of the host.",
        dialect.name
    )
}

/// Of each Ingress, whether other spellings of one of its paths may reach another Ingress with other protection.
pub(super) fn exposed(all: &[Annotated]) -> Vec<bool> {
    let protections: Vec<Protection<'_>> = all.iter().map(protection).collect();
    // By the host of a rule; a default backend is for every host.
    let mut by_host: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (index, ingress) in all.iter().enumerate().filter(|(_, ingress)| ingress.read.canary.is_none()) {
        let hosts = ingress.entries.iter().map(|entry| entry.host.as_str());
        for host in hosts.chain(ingress.default_backend.as_ref().map(|_| "")) {
            by_host.entry(host).or_default().insert(index);
        }
    }
    let is_exposed = |index: usize, entry: &Entry| {
        let others = covering(&entry.host).filter_map(|host| by_host.get(&*host)).flatten();
        let others: Vec<&Annotated> = others
            .filter(|other| protections[**other] != protections[index])
            .map(|other| &all[*other])
            .collect();
        let mut paths = entry.paths.iter().map(|path| stem(&path.path)).filter(|path| path != "/");
        paths.any(|path| others.iter().any(|other| has_prefix_of(other, &entry.host, &path)))
    };
    let ingresses = all.iter().enumerate();
    ingresses.map(|(index, ingress)| ingress.entries.iter().any(|entry| is_exposed(index, entry))).collect()
}

/// A namespace, and annotations that limit the clients of an Ingress, as written.
type Protection<'a> = (&'a str, BTreeMap<&'a str, &'a str>);

fn protection(ingress: &Annotated) -> Protection<'_> {
    let annotations = ingress.annotations.iter().filter(|(name, _)| {
        let short = name.rsplit_once('/').map_or(name.as_str(), |(_, short)| short);
        is_protecting(short) || short.contains("plugin")
    });
    (ingress.namespace(), annotations.map(|(name, value)| (name.as_str(), value.as_str())).collect())
}

/// Whether an Ingress has a prefix of a path for a host.
fn has_prefix_of(ingress: &Annotated, host: &str, path: &str) -> bool {
    let is_prefix = |prefix: &str| {
        let rest = path.strip_prefix(prefix.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let mut entries = ingress.entries.iter().filter(|entry| covering(host).any(|other| other == entry.host));
    ingress.default_backend.is_some()
        || entries.any(|entry| entry.paths.iter().any(|other| is_prefix(&stem(&other.path))))
}
