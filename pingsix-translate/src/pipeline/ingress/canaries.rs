//! The canary Ingresses of a class.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressRule;

use super::annotations::Annotated;
use super::bounded_problems::BoundedProblems;
use crate::model::{Age, ObjectKey, ObjectName, Problem, Reason, Severity, field};
use crate::normalise::{Canary, PathKey, path_key};
use crate::snapshot::Ingress;

/// Canary Ingresses by age, then by name.
type ByAge = BTreeMap<(Age, Box<str>), Canary>;

fn rules_of(ingress: &Ingress) -> &[IngressRule] {
    ingress.spec.as_ref().and_then(|spec| spec.rules.as_deref()).unwrap_or_default()
}

/// The paths of rules, each with the indices of its entry and of itself.
fn paths_of(rules: &[IngressRule]) -> impl Iterator<Item = ((usize, usize), PathKey<'_>)> {
    rules.iter().enumerate().flat_map(|(entry, rule)| {
        let paths = rule.http.iter().flat_map(|http| &http.paths).enumerate();
        paths.map(move |(index, path)| ((entry, index), path_key(rule.host.as_deref(), path)))
    })
}

/// The canary Ingresses of a class, by namespace, then the oldest first.
#[derive(Debug, Default)]
pub(super) struct Canaries {
    by_namespace: BTreeMap<Arc<str>, ByAge>,
}

impl Canaries {
    /// Takes in how an Ingress is now; `None` if it is gone. Returns whether it is or was a canary.
    pub(super) fn replace(&mut self, name: &ObjectName, now: Option<&Annotated<'_>>) -> bool {
        let mut concerns = false;
        if let Some(of_namespace) = self.by_namespace.get_mut(&name.namespace) {
            let before = of_namespace.len();
            of_namespace.retain(|(_, other), _| *other != name.name);
            concerns = of_namespace.len() != before;
            if of_namespace.is_empty() {
                self.by_namespace.remove(&name.namespace);
            }
        }
        let canary = now.and_then(|Annotated { ingress, annotations }| {
            let share = annotations.canary.clone()?;
            let rules = ingress.spec.as_ref().and_then(|spec| spec.rules.clone()).unwrap_or_default();
            Some((Age::of(&ingress.metadata), Canary { share, rules }))
        });
        if let Some((age, canary)) = canary {
            concerns = true;
            let of_namespace = self.by_namespace.entry(name.namespace.clone()).or_default();
            of_namespace.insert((age, name.name.clone()), canary);
        }
        concerns
    }

    /// Whether an Ingress is a canary.
    pub(super) fn contains(&self, name: &ObjectName) -> bool {
        let of_namespace = self.by_namespace.get(&name.namespace).into_iter().flatten();
        of_namespace.into_iter().any(|((_, canary), _)| *canary == name.name)
    }

    /// The canaries of a namespace with a host of one of these Ingresses.
    pub(super) fn sharing<'c>(
        &'c self,
        namespace: &'c Arc<str>,
        ingresses: &[&Ingress],
    ) -> impl Iterator<Item = ObjectName> + 'c {
        let of_namespace = self.by_namespace.get(namespace);
        let ingresses = ingresses.iter().filter(|_| of_namespace.is_some());
        let rules = ingresses.flat_map(|ingress| rules_of(ingress));
        let hosts: BTreeSet<String> = rules.map(|rule| rule.host.clone().unwrap_or_default()).collect();
        let canaries = of_namespace.into_iter().flatten().filter(move |(_, canary)| {
            canary.rules.iter().any(|rule| hosts.contains(rule.host.as_deref().unwrap_or_default()))
        });
        canaries.map(|((_, name), _)| ObjectName::new(namespace.clone(), name.clone()))
    }

    /// Reports the paths of a canary that take no requests. `sharing` are Ingresses of its namespace with its hosts.
    pub(super) fn report(
        &self,
        key: &Arc<ObjectKey>,
        ingress: &Ingress,
        sharing: &[&Ingress],
        problems: &mut Vec<Problem>,
    ) {
        let of_namespace = self.by_namespace.get(&key.name.namespace).into_iter().flatten();
        let older = of_namespace.clone().take_while(|((_, name), _)| *name != key.name.name);
        let older: BTreeSet<PathKey<'_>> =
            older.flat_map(|(_, canary)| paths_of(&canary.rules)).map(|(_, path)| path).collect();
        let canaries: BTreeSet<&str> = of_namespace.map(|((_, name), _)| &**name).collect();
        let is_canary = |ingress: &&&Ingress| {
            ingress.metadata.name.as_deref().is_some_and(|name| canaries.contains(name))
        };
        let mains = sharing.iter().filter(|ingress| !is_canary(ingress));
        let mains: BTreeSet<PathKey<'_>> =
            mains.flat_map(|ingress| paths_of(rules_of(ingress))).map(|(_, path)| path).collect();
        let mut bounded = BoundedProblems::new(problems, key);
        for (place, path) in paths_of(rules_of(ingress)) {
            let why = if !mains.contains(&path) {
                "no other Ingress of the namespace has the same host, path and type"
            } else if older.contains(&path) {
                "an older canary takes the requests"
            } else {
                continue;
            };
            bounded.add(Severity::Warning, Reason::Shadowed, place, |(entry, index)| {
                (
                    field::ingress_path(entry, index),
                    format!("The canary gets no requests by this path: {why}."),
                )
            });
        }
        bounded.finish(|(entry, index), count| {
            let message = format!("The canary gets no requests by {count} more of its paths.");
            (field::ingress_path(entry, index), message)
        });
    }

    /// The canaries of a namespace.
    pub(super) fn of_namespace(&self, namespace: &str) -> Vec<&Canary> {
        self.by_namespace.get(namespace).into_iter().flat_map(BTreeMap::values).collect()
    }
}
