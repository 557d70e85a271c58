//! The Ingresses that name a host, oldest first.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::ingress_key;
use crate::model::{Age, ObjectKey, ObjectName, compare_age};
use crate::snapshot::Ingress;

/// An Ingress by its age: the older one compares less.
#[derive(Clone, Debug)]
pub(super) struct AgedKey {
    pub(super) age: Age,
    pub(super) key: Arc<ObjectKey>,
}

impl AgedKey {
    pub(super) fn of(name: &ObjectName, ingress: &Ingress) -> Self {
        Self { age: Age::of(&ingress.metadata), key: ingress_key(name) }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.key.name.namespace
    }
}

impl Ord for AgedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_age((self.age, &self.key), (other.age, &other.key))
    }
}

impl PartialOrd for AgedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for AgedKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for AgedKey {}

/// The Ingresses that name a host; most hosts have one. There is always one at least.
#[derive(Debug)]
pub(super) enum Namers {
    One(AgedKey),
    Several(Box<Several>),
}

#[derive(Debug)]
pub(super) struct Several {
    all: BTreeSet<AgedKey>,
    /// The oldest of another namespace than the oldest of all.
    other: Option<AgedKey>,
}

impl Several {
    fn find_other(&mut self) {
        let oldest = self.all.first();
        let is_other =
            |namer: &&AgedKey| oldest.is_some_and(|oldest| oldest.namespace() != namer.namespace());
        self.other = self.all.iter().find(is_other).cloned();
    }
}

/// The oldest Ingress that names a host, and the oldest of another namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FirstTwo {
    pub(super) oldest: AgedKey,
    pub(super) other: Option<AgedKey>,
}

impl FirstTwo {
    /// Both, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &AgedKey> {
        std::iter::once(&self.oldest).chain(&self.other)
    }

    /// The first that is not of this namespace.
    pub(super) fn beside(&self, namespace: &str) -> Option<&AgedKey> {
        self.iter().find(|namer| namer.namespace() != namespace)
    }
}

impl Namers {
    pub(super) fn first_two(&self) -> Option<FirstTwo> {
        match self {
            Self::One(only) => Some(FirstTwo { oldest: only.clone(), other: None }),
            Self::Several(several) => {
                Some(FirstTwo { oldest: several.all.first()?.clone(), other: several.other.clone() })
            }
        }
    }

    pub(super) fn oldest(&self) -> Option<&AgedKey> {
        match self {
            Self::One(only) => Some(only),
            Self::Several(several) => several.all.first(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AgedKey> {
        let (one, several) = match self {
            Self::One(only) => (Some(only), None),
            Self::Several(several) => (None, Some(several.all.iter())),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    pub(super) fn insert(&mut self, namer: AgedKey) {
        match self {
            Self::One(only) if *only == namer => {}
            Self::One(only) => {
                let mut several = Several { all: [only.clone(), namer].into_iter().collect(), other: None };
                several.find_other();
                *self = Self::Several(Box::new(several));
            }
            Self::Several(several) => {
                let before = several.all.first().cloned();
                let Some(oldest) = before.filter(|oldest| oldest.namespace() != namer.namespace()) else {
                    // The oldest stays one of its namespace.
                    several.all.insert(namer);
                    return;
                };
                if namer < oldest {
                    several.other = Some(oldest);
                } else if several.other.as_ref().is_none_or(|other| namer < *other) {
                    several.other = Some(namer.clone());
                }
                several.all.insert(namer);
            }
        }
    }

    /// Takes an Ingress out. Returns whether none is left.
    pub(super) fn remove(&mut self, namer: &AgedKey) -> bool {
        match self {
            Self::One(only) => only == namer,
            Self::Several(several) => {
                let is_first = several.all.first() == Some(namer) || several.other.as_ref() == Some(namer);
                several.all.remove(namer);
                if is_first {
                    several.find_other();
                }
                if let (1, Some(last)) = (several.all.len(), several.all.first()) {
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
    fn the_first_two_are_those_of_a_sorted_list() {
        let mut rng = SmallRng::seed_from_u64(5);
        let all: Vec<AgedKey> = (0..30)
            .map(|number| {
                let created = format!("2026-01-01T00:00:0{}Z", rng.random_range(0..3));
                let ingress = json!({"metadata": {"creationTimestamp": created}});
                let name = ObjectName::new(["a", "a", "b", "c"][rng.random_range(0..4)], number.to_string());
                AgedKey::of(&name, &serde_json::from_value(ingress).unwrap())
            })
            .collect();
        for _ in 0..50 {
            let mut model: BTreeSet<AgedKey> = BTreeSet::new();
            let mut namers: Option<Namers> = None;
            for _ in 0..60 {
                let namer = all.choose(&mut rng).unwrap();
                if rng.random() {
                    model.insert(namer.clone());
                    match &mut namers {
                        Some(namers) => namers.insert(namer.clone()),
                        None => namers = Some(Namers::One(namer.clone())),
                    }
                } else if model.remove(namer) && namers.as_mut().unwrap().remove(namer) {
                    namers = None;
                }
                let first_two = model.first().map(|oldest| {
                    let other = model.iter().find(|namer| namer.namespace() != oldest.namespace());
                    FirstTwo { oldest: oldest.clone(), other: other.cloned() }
                });
                assert_eq!(namers.as_ref().and_then(Namers::first_two), first_two);
                assert!(namers.iter().flat_map(Namers::iter).eq(&model));
            }
        }
    }
}
