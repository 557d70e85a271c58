//! The Ingresses that name a host, oldest first.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::ingress_key;
use crate::model::{Age, ObjectKey, ObjectName, compare_age};
use crate::snapshot::Ingress;

/// An Ingress, ordered by age: the older one compares less.
#[derive(Clone, Debug)]
pub(super) struct IngressByAge {
    pub(super) age: Age,
    pub(super) key: Arc<ObjectKey>,
}

impl IngressByAge {
    pub(super) fn of(name: &ObjectName, ingress: &Ingress) -> Self {
        Self { age: Age::of(&ingress.metadata), key: ingress_key(name) }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.key.name.namespace
    }
}

impl Ord for IngressByAge {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_age((self.age, &self.key), (other.age, &other.key))
    }
}

impl PartialOrd for IngressByAge {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for IngressByAge {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for IngressByAge {}

/// The Ingresses that name a host, at least one. Most hosts have exactly one.
#[derive(Debug)]
pub(super) enum HostIngresses {
    One(IngressByAge),
    Many(Box<ManyIngresses>),
}

#[derive(Debug)]
pub(super) struct ManyIngresses {
    all: BTreeSet<IngressByAge>,
    /// The oldest Ingress outside the namespace of the oldest Ingress of all.
    other: Option<IngressByAge>,
}

impl ManyIngresses {
    fn find_other(&mut self) {
        let oldest = self.all.first();
        let is_other =
            |ingress: &&IngressByAge| oldest.is_some_and(|oldest| oldest.namespace() != ingress.namespace());
        self.other = self.all.iter().find(is_other).cloned();
    }
}

/// The oldest Ingress that names a host, and the oldest of another namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OldestIngresses {
    pub(super) oldest: IngressByAge,
    pub(super) other: Option<IngressByAge>,
}

impl OldestIngresses {
    /// Both Ingresses, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &IngressByAge> {
        std::iter::once(&self.oldest).chain(&self.other)
    }

    /// The first Ingress outside of a namespace.
    pub(super) fn outside(&self, namespace: &str) -> Option<&IngressByAge> {
        self.iter().find(|ingress| ingress.namespace() != namespace)
    }
}

impl HostIngresses {
    pub(super) fn oldest_ingresses(&self) -> Option<OldestIngresses> {
        match self {
            Self::One(only) => Some(OldestIngresses { oldest: only.clone(), other: None }),
            Self::Many(many) => {
                Some(OldestIngresses { oldest: many.all.first()?.clone(), other: many.other.clone() })
            }
        }
    }

    pub(super) fn oldest(&self) -> Option<&IngressByAge> {
        match self {
            Self::One(only) => Some(only),
            Self::Many(many) => many.all.first(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &IngressByAge> {
        let (one, many) = match self {
            Self::One(only) => (Some(only), None),
            Self::Many(many) => (None, Some(many.all.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    pub(super) fn insert(&mut self, ingress: IngressByAge) {
        match self {
            Self::One(only) if *only == ingress => {}
            Self::One(only) => {
                let mut many =
                    ManyIngresses { all: [only.clone(), ingress].into_iter().collect(), other: None };
                many.find_other();
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => {
                let before = many.all.first().cloned();
                let Some(oldest) = before.filter(|oldest| oldest.namespace() != ingress.namespace()) else {
                    // The namespace of the oldest Ingress stays the same.
                    many.all.insert(ingress);
                    return;
                };
                if ingress < oldest {
                    many.other = Some(oldest);
                } else if many.other.as_ref().is_none_or(|other| ingress < *other) {
                    many.other = Some(ingress.clone());
                }
                many.all.insert(ingress);
            }
        }
    }

    /// Removes an Ingress. Returns whether none is left.
    pub(super) fn remove(&mut self, ingress: &IngressByAge) -> bool {
        match self {
            Self::One(only) => only == ingress,
            Self::Many(many) => {
                let is_first = many.all.first() == Some(ingress) || many.other.as_ref() == Some(ingress);
                many.all.remove(ingress);
                if is_first {
                    many.find_other();
                }
                if let (1, Some(last)) = (many.all.len(), many.all.first()) {
                    *self = Self::One(last.clone());
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::seq::IndexedRandom as _;
    use rand::{Rng as _, SeedableRng as _};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_ingresses_are_those_of_a_sorted_list() {
        let mut rng = SmallRng::seed_from_u64(5);
        let all: Vec<IngressByAge> = (0..30)
            .map(|number| {
                let created = format!("2026-01-01T00:00:0{}Z", rng.random_range(0..3));
                let ingress = json!({"metadata": {"creationTimestamp": created}});
                let name = ObjectName::new(["a", "a", "b", "c"][rng.random_range(0..4)], number.to_string());
                IngressByAge::of(&name, &serde_json::from_value(ingress).unwrap())
            })
            .collect();
        for _ in 0..50 {
            let mut model: BTreeSet<IngressByAge> = BTreeSet::new();
            let mut ingresses: Option<HostIngresses> = None;
            for _ in 0..60 {
                let ingress = all.choose(&mut rng).unwrap();
                if rng.random() {
                    model.insert(ingress.clone());
                    match &mut ingresses {
                        Some(ingresses) => ingresses.insert(ingress.clone()),
                        None => ingresses = Some(HostIngresses::One(ingress.clone())),
                    }
                } else if model.remove(ingress) && ingresses.as_mut().unwrap().remove(ingress) {
                    ingresses = None;
                }
                let oldest_ingresses = model.first().map(|oldest| {
                    let other = model.iter().find(|ingress| ingress.namespace() != oldest.namespace());
                    OldestIngresses { oldest: oldest.clone(), other: other.cloned() }
                });
                assert_eq!(ingresses.as_ref().and_then(HostIngresses::oldest_ingresses), oldest_ingresses);
                assert!(ingresses.iter().flat_map(HostIngresses::iter).eq(&model));
            }
        }
    }
}
