//! The canary Ingresses of a class.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::annotations::read_annotations;
use crate::crd::AnnotationDialect;
use crate::model::{Age, ObjectName};
use crate::normalise::Canary;
use crate::snapshot::Ingress;

/// Canary Ingresses by age, then by name.
type ByAge = BTreeMap<(Age, Box<str>), Canary>;

/// The canary Ingresses of a class, by namespace, then the oldest first.
#[derive(Debug, Default)]
pub(super) struct Canaries {
    by_namespace: BTreeMap<Arc<str>, ByAge>,
}

impl Canaries {
    pub(super) fn new<'i>(
        dialects: &[AnnotationDialect],
        ingresses: impl Iterator<Item = (&'i ObjectName, &'i Arc<Ingress>)>,
    ) -> Self {
        let mut canaries = Self::default();
        for (name, ingress) in ingresses {
            canaries.replace(dialects, name, Some(ingress));
        }
        canaries
    }

    /// Takes in how an Ingress is now; `None` if it is gone. Returns whether it is or was a canary.
    pub(super) fn replace(
        &mut self,
        dialects: &[AnnotationDialect],
        name: &ObjectName,
        ingress: Option<&Ingress>,
    ) -> bool {
        let mut concerns = false;
        if let Some(of_namespace) = self.by_namespace.get_mut(&name.namespace) {
            let before = of_namespace.len();
            of_namespace.retain(|(_, other), _| *other != name.name);
            concerns = of_namespace.len() != before;
            if of_namespace.is_empty() {
                self.by_namespace.remove(&name.namespace);
            }
        }
        let canary = ingress.and_then(|ingress| {
            let share = read_annotations(dialects, ingress.metadata.annotations.as_ref()).canary?;
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
