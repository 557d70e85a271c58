//! Canaries: Ingresses whose backends take a part of the requests of another Ingress.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::annotations::CanaryShare;
use serde_json::{Value, json};

use super::annotated::{Annotated, Entry, PathEntry, Target};
use crate::report::{Reason, Report};

/// A canary for a path.
#[derive(Clone, Copy)]
pub(super) struct Canary<'a> {
    pub(super) ingress: &'a Annotated,
    pub(super) share: &'a CanaryShare,
    pub(super) target: &'a Target,
}

/// A path of an Ingress: namespace, host, path, and whether it is exact. ingress-nginx takes all others for prefixes.
pub(super) type PathKey<'a> = (&'a str, &'a str, &'a str, bool);

pub(super) fn key<'a>(ingress: &'a Annotated, entry: &'a Entry, path: &'a PathEntry) -> PathKey<'a> {
    (ingress.namespace(), &entry.host, &path.path, path.is_exact())
}

/// The canaries of all Ingresses, by the path whose requests they take.
pub(super) struct Canaries<'a>(BTreeMap<PathKey<'a>, Canary<'a>>);

impl<'a> Canaries<'a> {
    /// The oldest Ingress comes first. It takes the requests of other Ingresses of the namespace with the same host, path
    /// and type.
    pub(super) fn of(ingresses: &'a [Annotated]) -> Self {
        let mut canaries = BTreeMap::new();
        for ingress in ingresses.iter().filter(|ingress| !ingress.is_closed) {
            let Some(share) = &ingress.read.canary else { continue };
            let mut own = BTreeSet::new();
            for (entry, path) in ingress.paths() {
                let key = key(ingress, entry, path);
                // Of equal paths of an Ingress, the first one counts.
                if own.insert(key)
                    && let Some(target) = &path.target
                {
                    canaries.entry(key).or_insert(Canary { ingress, share, target });
                }
            }
        }
        Self(canaries)
    }

    /// The canary for a path of an Ingress.
    pub(super) fn find(&self, ingress: &Annotated, entry: &Entry, path: &PathEntry) -> Option<Canary<'a>> {
        self.0.get(&key(ingress, entry, path)).copied()
    }

    /// Reports the paths of canaries that take no requests.
    pub(super) fn note_unused(&self, ingresses: &[Annotated], report: &mut Report) {
        let (canaries, mains): (Vec<_>, Vec<_>) =
            ingresses.iter().partition(|ingress| ingress.read.canary.is_some());
        let mains: BTreeSet<PathKey<'_>> = mains
            .into_iter()
            .flat_map(|main| main.paths().map(move |(entry, path)| key(main, entry, path)))
            .collect();
        for canary in canaries {
            for (entry, path) in canary.paths() {
                let is_oldest =
                    || self.find(canary, entry, path).is_some_and(|found| found.ingress.key == canary.key);
                if !(mains.contains(&key(canary, entry, path)) && is_oldest()) {
                    let message = "No other Ingress of the namespace has the host, path and type, or an older canary takes \
                                   the requests, so this one gets none, as before.";
                    report.limited(&path.place, Reason::NoEffect, message);
                }
            }
        }
    }
}

/// The rules for one path: items of `headers` of the match, and the backends. The rule for the rest comes last.
pub(super) fn divide(share: &CanaryShare, main: &Value, canary: &Value) -> Vec<(Option<Value>, Vec<Value>)> {
    let mut rules = Vec::with_capacity(3);
    if let Some((name, value)) = &share.header {
        let mut with = |value: &str, backend: &Value| {
            let header = json!({ "type": "Exact", "name": name, "value": value });
            rules.push((Some(json!([header])), vec![backend.clone()]));
        };
        if let Some(value) = value {
            with(value, canary);
        } else {
            with("always", canary);
            with("never", main);
        }
    }
    let weighted = |backend: &Value, weight: u32| {
        let mut backend = backend.clone();
        backend["weight"] = json!(weight);
        backend
    };
    let rest = match share.weight {
        0 => vec![main.clone()],
        weight => vec![weighted(main, share.total - weight), weighted(canary, weight)],
    };
    rules.push((None, rest));
    rules
}
