//! The Ingresses that name a host: those with an alias alone come last, then the oldest comes first.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ingress_key;
use crate::counts::decrement;
use crate::crd::HostOwnership;
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

/// The ways in which an Ingress names a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedBy {
    /// Its rules or default backend serve the host.
    Rules,
    /// `spec.tls`, or a rule of a canary, which serves nothing by itself.
    Otherwise,
    /// An alias or a redirect of annotations, which yields to the rules of others.
    Annotation,
    /// An annotation, and otherwise.
    AnnotationAndOtherwise,
}

impl NamedBy {
    /// Both ways together.
    pub(super) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Rules, _) | (_, Self::Rules) => Self::Rules,
            (Self::Otherwise, Self::Otherwise) => Self::Otherwise,
            (Self::Annotation, Self::Annotation) => Self::Annotation,
            (
                Self::AnnotationAndOtherwise | Self::Otherwise | Self::Annotation,
                Self::AnnotationAndOtherwise | Self::Otherwise | Self::Annotation,
            ) => Self::AnnotationAndOtherwise,
        }
    }

    const fn is_by_annotation(self) -> bool {
        matches!(self, Self::Annotation | Self::AnnotationAndOtherwise)
    }
}

/// An Ingress that names a host. An Ingress that names it by an annotation alone is ordered behind all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamingIngress {
    is_last: bool,
    pub(super) ingress: IngressByAge,
    pub(super) by: NamedBy,
    /// Whether the Ingress has `spec.tls` for the host.
    pub(super) has_tls: bool,
}

impl NamingIngress {
    pub(super) fn new((by, has_tls): (NamedBy, bool), ingress: IngressByAge) -> Self {
        Self { is_last: by == NamedBy::Annotation, ingress, by, has_tls }
    }

    fn namespace(&self) -> &str {
        self.ingress.namespace()
    }
}

/// The Ingresses that name a host, at least one. Most hosts have exactly one.
#[derive(Debug)]
pub(super) enum HostIngresses {
    One(NamingIngress),
    Many(Box<ManyIngresses>),
}

#[derive(Debug)]
pub(super) struct ManyIngresses {
    all: BTreeSet<NamingIngress>,
    /// The first Ingress outside the namespace of the first Ingress of all.
    other: Option<NamingIngress>,
    /// The first Ingress with rules for the host.
    with_rules: Option<NamingIngress>,
    /// The first Ingress with an annotation for the host.
    annotated: Option<NamingIngress>,
    /// The number of Ingresses with `spec.tls` for the host, by namespace.
    with_tls: BTreeMap<Arc<str>, usize>,
}

impl ManyIngresses {
    fn of(all: BTreeSet<NamingIngress>) -> Self {
        let with_tls = BTreeMap::new();
        let mut many = Self { all, other: None, with_rules: None, annotated: None, with_tls };
        for naming in many.all.iter().filter(|naming| naming.has_tls) {
            *many.with_tls.entry(naming.ingress.key.name.namespace.clone()).or_default() += 1;
        }
        many.find();
        many
    }

    /// Determines the first Ingresses again.
    fn find(&mut self) {
        let first = self.all.first();
        let is_other = |one: &&NamingIngress| first.is_some_and(|first| first.namespace() != one.namespace());
        self.other = self.all.iter().find(is_other).cloned();
        self.with_rules = self.all.iter().find(|one| one.by == NamedBy::Rules).cloned();
        self.annotated = self.all.iter().find(|one| one.by.is_by_annotation()).cloned();
    }
}

/// The first Ingresses that name a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OldestIngresses {
    /// The owner of the host, where hosts have owners.
    pub(super) oldest: IngressByAge,
    /// The oldest of another namespace.
    pub(super) other: Option<IngressByAge>,
    /// The oldest with rules for the host.
    pub(super) with_rules: Option<IngressByAge>,
    /// The oldest that names the host by an annotation.
    pub(super) annotated: Option<IngressByAge>,
}

impl OldestIngresses {
    /// The owner and the oldest of another namespace.
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
        let ingress = |one: &NamingIngress| one.ingress.clone();
        match self {
            Self::One(only) => {
                let by = |is_so: bool| is_so.then(|| ingress(only));
                Some(OldestIngresses {
                    oldest: ingress(only),
                    other: None,
                    with_rules: by(only.by == NamedBy::Rules),
                    annotated: by(only.by.is_by_annotation()),
                })
            }
            Self::Many(many) => {
                let ManyIngresses { all, other, with_rules, annotated, with_tls: _ } = &**many;
                // An annotation has no effect beside rules.
                let counts = |other: &&NamingIngress| with_rules.is_none() || other.by != NamedBy::Annotation;
                Some(OldestIngresses {
                    oldest: ingress(all.first()?),
                    other: other.as_ref().filter(counts).map(ingress),
                    with_rules: with_rules.as_ref().map(ingress),
                    annotated: annotated.as_ref().map(ingress),
                })
            }
        }
    }

    /// Whether an Ingress with an effect on the host has `spec.tls` for it.
    pub(super) fn has_tls(&self, ownership: HostOwnership) -> bool {
        match (self, ownership) {
            (Self::One(only), _) => only.has_tls,
            (Self::Many(many), HostOwnership::Shared) => !many.with_tls.is_empty(),
            (Self::Many(many), HostOwnership::OldestNamespace) => {
                many.all.first().is_some_and(|first| many.with_tls.contains_key(first.namespace()))
            }
        }
    }

    /// The oldest Ingress with rules for the host.
    pub(super) fn oldest_with_rules(&self) -> Option<&IngressByAge> {
        let naming = match self {
            Self::One(only) => Some(only).filter(|only| only.by == NamedBy::Rules),
            Self::Many(many) => many.with_rules.as_ref(),
        };
        naming.map(|naming| &naming.ingress)
    }

    pub(super) fn oldest(&self) -> Option<&IngressByAge> {
        match self {
            Self::One(only) => Some(&only.ingress),
            Self::Many(many) => many.all.first().map(|first| &first.ingress),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &IngressByAge> {
        let (one, many) = match self {
            Self::One(only) => (Some(only), None),
            Self::Many(many) => (None, Some(many.all.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten()).map(|naming| &naming.ingress)
    }

    /// Adds an Ingress that is not among them.
    pub(super) fn insert(&mut self, naming: NamingIngress) {
        match self {
            Self::One(only) => {
                let many = ManyIngresses::of([only.clone(), naming].into_iter().collect());
                *self = Self::Many(Box::new(many));
            }
            Self::Many(many) => {
                let ManyIngresses { all, other, with_rules, annotated, with_tls } = &mut **many;
                if naming.has_tls {
                    *with_tls.entry(naming.ingress.key.name.namespace.clone()).or_default() += 1;
                }
                let is_before =
                    |first: &Option<NamingIngress>| first.as_ref().is_none_or(|first| naming < *first);
                if naming.by == NamedBy::Rules && is_before(with_rules) {
                    *with_rules = Some(naming.clone());
                }
                if naming.by.is_by_annotation() && is_before(annotated) {
                    *annotated = Some(naming.clone());
                }
                let before = all.first().cloned();
                // Otherwise, the namespace of the first Ingress stays the same.
                if let Some(first) = before.filter(|first| first.namespace() != naming.namespace()) {
                    if naming < first {
                        *other = Some(first);
                    } else if is_before(other) {
                        *other = Some(naming.clone());
                    }
                }
                all.insert(naming);
            }
        }
    }

    /// Removes an Ingress. Returns whether none is left.
    pub(super) fn remove(&mut self, naming: &NamingIngress) -> bool {
        match self {
            Self::One(only) => only == naming,
            Self::Many(many) => {
                let firsts = [
                    many.all.first(),
                    many.other.as_ref(),
                    many.with_rules.as_ref(),
                    many.annotated.as_ref(),
                ];
                let is_first = firsts.contains(&Some(naming));
                let removed = many.all.take(naming);
                if let Some(removed) = removed.filter(|removed| removed.has_tls) {
                    decrement(&mut many.with_tls, removed.namespace());
                }
                if is_first {
                    many.find();
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
        let ways = [NamedBy::Rules, NamedBy::Otherwise, NamedBy::Annotation, NamedBy::AnnotationAndOtherwise];
        let all: Vec<NamingIngress> = (0..30)
            .map(|number| {
                let created = format!("2026-01-01T00:00:0{}Z", rng.random_range(0..3));
                let ingress = json!({"metadata": {"creationTimestamp": created}});
                let name = ObjectName::new(["a", "a", "b", "c"][rng.random_range(0..4)], number.to_string());
                let ingress = IngressByAge::of(&name, &serde_json::from_value(ingress).unwrap());
                NamingIngress::new((*ways.choose(&mut rng).unwrap(), rng.random()), ingress)
            })
            .collect();
        for _ in 0..50 {
            let mut model: BTreeSet<NamingIngress> = BTreeSet::new();
            let mut ingresses: Option<HostIngresses> = None;
            for _ in 0..60 {
                let naming = all.choose(&mut rng).unwrap();
                if rng.random() {
                    if model.insert(naming.clone()) {
                        match &mut ingresses {
                            Some(ingresses) => ingresses.insert(naming.clone()),
                            None => ingresses = Some(HostIngresses::One(naming.clone())),
                        }
                    }
                } else if model.remove(naming) && ingresses.as_mut().unwrap().remove(naming) {
                    ingresses = None;
                }
                let of = |naming: &NamingIngress| naming.ingress.clone();
                let with_rules = model.iter().find(|naming| naming.by == NamedBy::Rules);
                let has_effect =
                    |naming: &&NamingIngress| with_rules.is_none() || naming.by != NamedBy::Annotation;
                let oldest_ingresses = model.first().map(|first| {
                    let mut others =
                        model.iter().filter(has_effect).filter(|one| one.namespace() != first.namespace());
                    let annotated = model.iter().find(|naming| naming.by.is_by_annotation());
                    OldestIngresses {
                        oldest: of(first),
                        other: others.next().map(of),
                        with_rules: with_rules.map(of),
                        annotated: annotated.map(of),
                    }
                });
                assert_eq!(ingresses.as_ref().and_then(HostIngresses::oldest_ingresses), oldest_ingresses);
                let has_tls = |ownership| ingresses.as_ref().is_some_and(|one| one.has_tls(ownership));
                let mut with_tls = model.iter().filter(|naming| naming.has_tls);
                assert_eq!(has_tls(HostOwnership::Shared), with_tls.clone().next().is_some());
                let is_of_owner = |naming: &NamingIngress| {
                    model.first().is_some_and(|first| first.namespace() == naming.namespace())
                };
                assert_eq!(has_tls(HostOwnership::OldestNamespace), with_tls.any(is_of_owner));
                let named = ingresses.iter().flat_map(HostIngresses::iter);
                assert!(named.eq(model.iter().map(|naming| &naming.ingress)));
            }
        }
    }
}
