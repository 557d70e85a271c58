//! Ingresses whose protected paths have less protected ones around them.
//!
//! PingSIX compares paths byte by byte, and the other controllers compare normalised paths. So another spelling of a protected
//! path may reach the rule of another Ingress.

use std::collections::BTreeMap;

use super::annotated::Annotated;
use super::dialect::Dialect;
use super::paths::stem;

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

/// Whether other spellings of a path of an Ingress may reach another Ingress, with other protection.
pub(super) fn is_exposed(ingress: &Annotated, all: &[Annotated]) -> bool {
    let others = || {
        let others = all.iter().filter(|other| other.key != ingress.key && other.read.canary.is_none());
        others.filter(|other| protection(other) != protection(ingress))
    };
    ingress.entries.iter().any(|entry| {
        let mut paths = entry.paths.iter().map(|path| stem(&path.path)).filter(|path| path != "/");
        paths.any(|path| others().any(|other| has_prefix_of(other, &entry.host, &path)))
    })
}

/// What limits the clients of an Ingress, as written.
fn protection(ingress: &Annotated) -> (&str, BTreeMap<&str, &str>) {
    let annotations = ingress.annotations.iter().filter(|(name, _)| {
        let short = name.rsplit_once('/').map_or(name.as_str(), |(_, short)| short);
        is_protecting(short) || short.contains("plugin")
    });
    (ingress.namespace(), annotations.map(|(name, value)| (name.as_str(), value.as_str())).collect())
}

/// Whether an Ingress has a prefix of a path for a host.
fn has_prefix_of(ingress: &Annotated, host: &str, path: &str) -> bool {
    let covers = |other: &str| {
        let is_within = |domain: &str| host.strip_suffix(domain).is_some_and(|label| !label.is_empty());
        other.is_empty() || other == host || other.strip_prefix('*').is_some_and(is_within)
    };
    let is_prefix = |prefix: &str| {
        let rest = path.strip_prefix(prefix.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let mut entries = ingress.entries.iter().filter(|entry| covers(&entry.host));
    ingress.default_backend.is_some()
        || entries.any(|entry| entry.paths.iter().any(|other| is_prefix(&stem(&other.path))))
}
