//! The canary Ingresses of a class.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::annotations::Annotated;
use crate::model::{Age, ObjectName};
use crate::normalise::Canary;

/// Canary Ingresses by age, then by name.
type ByAge = BTreeMap<(Age, Box<str>), Canary>;

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

    /// The canaries of a namespace.
    pub(super) fn of_namespace(&self, namespace: &str) -> Vec<&Canary> {
        self.by_namespace.get(namespace).into_iter().flat_map(BTreeMap::values).collect()
    }
}
