//! Ingresses whose protected paths have less protected ones around them.
//!
//! PingSIX compares paths byte by byte, and the other controllers compare normalised paths. So another spelling of a protected
//! path may reach the rule of another Ingress.

use std::collections::BTreeMap;

use super::annotated::{Annotated, Entry};
use super::dialect::Dialect;
use super::paths::stem;
use crate::convert::covering::covering;

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
    let mut numbers: BTreeMap<Protection<'_>, usize> = BTreeMap::new();
    let protections: Vec<usize> = all
        .iter()
        .map(|ingress| {
            let next = numbers.len();
            *numbers.entry(protection(ingress)).or_insert(next)
        })
        .collect();
    // By the host of a rule, and by the path without a slash at its end.
    let mut around: BTreeMap<&str, BTreeMap<String, Protections>> = BTreeMap::new();
    let of_all = all.iter().zip(&protections).filter(|(ingress, _)| ingress.read.canary.is_none());
    for (ingress, protection) in of_all {
        let mut add = |host, path: &str| {
            let paths = around.entry(host).or_default();
            let held = paths.entry(path.to_owned()).or_insert(Protections::One(*protection));
            *held = held.with(*protection);
        };
        for entry in &ingress.entries {
            entry.paths.iter().for_each(|path| add(&entry.host, stem(&path.path).trim_end_matches('/')));
        }
        // A default backend is for every host.
        ingress.default_backend.iter().for_each(|_| add("", ""));
    }
    let is_exposed = |own: usize, entry: &Entry| {
        let mut paths = entry.paths.iter().map(|path| stem(&path.path)).filter(|path| path != "/");
        paths.any(|path| {
            let mut hosts = covering(&entry.host).filter_map(|host| around.get(&*host));
            hosts.any(|prefixes| {
                let mut ends = path.match_indices('/').map(|(end, _)| end);
                ends.any(|end| {
                    prefixes.get(&path[..end]).is_some_and(|held| held.with(own) != Protections::One(own))
                })
            })
        })
    };
    let ingresses = all.iter().zip(&protections);
    ingresses.map(|(ingress, own)| ingress.entries.iter().any(|entry| is_exposed(*own, entry))).collect()
}

/// The protections of the Ingresses with a path, by number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protections {
    One(usize),
    Several,
}

impl Protections {
    fn with(self, other: usize) -> Self {
        if self == Self::One(other) { self } else { Self::Several }
    }
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
