//! The plan of watches of referenced objects: a pure function of the number of referenced names in each namespace.
//!
//! A watch of one object reads no other object, and takes its own connection. [`NameBounds`] limits the number of
//! watches. Beyond a limit, one watch of a namespace replaces the watches of its objects. When there are too many
//! namespaces, one watch of all namespaces replaces the watches of the kind.
//!
//! A wide watch that the API server forbids is still attempted. In its place, as many single objects or namespaces are
//! watched as the limits allow. The other references are refused with a message that names the limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::{Kind, ObjectKey};

use super::options::NameBounds;

/// Objects of one kind in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KindInNamespace {
    pub(super) kind: Kind,
    pub(super) namespace: Arc<str>,
}

impl KindInNamespace {
    /// The kind and namespace of an object.
    pub(super) fn of(key: &ObjectKey) -> Self {
        Self { kind: key.kind, namespace: key.name.namespace.clone() }
    }
}

/// The width of the watches of a kind in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// One watch for each name.
    Name,
    /// One watch of the namespace.
    Namespace,
    /// One watch of the kind in all namespaces.
    Cluster,
    /// No watch: the limit is reached, and the watch of all namespaces is forbidden.
    Refused,
}

/// The demand for watches of a kind in a namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    /// The number of referenced names.
    pub(super) names: usize,
    /// The current width; `None` before the first plan.
    pub(super) width: Option<Width>,
}

/// The planned watches of a kind in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quota {
    pub(super) width: Width,
    /// The limit of objects watched by name. Beside a wide watch, these objects have no answer from the wide watch: the
    /// watch is forbidden, or its list is older than the reference.
    pub(super) by_name: usize,
}

/// The inputs of a plan beside the demands.
#[derive(Clone, Debug)]
pub(super) struct PlanInputs {
    pub(super) bounds: NameBounds,
    /// Whether all namespaces are watched, instead of selected ones.
    pub(super) all_namespaces: bool,
    /// The kinds that one watch covers in all namespaces now.
    pub(super) cluster: BTreeSet<Kind>,
    /// The kinds for which the API server forbids the watch of all namespaces.
    pub(super) forbidden: BTreeSet<Kind>,
}

/// The watches that should run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchPlan {
    pub(super) quotas: BTreeMap<KindInNamespace, Quota>,
    /// The kinds with one watch of all namespaces, which the API server may forbid.
    pub(super) cluster: BTreeSet<Kind>,
}

/// The cost of a wide watch: the watch of the namespace and at least one watch of a name.
const WIDE_COST: usize = 2;

/// Plans watches. A wide watch stays until its names need half of a limit, so a single name does not switch the width
/// back and forth.
pub(super) fn plan_watches(demands: &BTreeMap<KindInNamespace, Demand>, inputs: &PlanInputs) -> WatchPlan {
    let limit = inputs.bounds.watches.max(WIDE_COST);
    let cluster = if inputs.all_namespaces { cluster_kinds(demands, inputs, limit) } else { BTreeSet::new() };
    let mut plan = WatchPlan { quotas: BTreeMap::new(), cluster };
    let mut narrow = Vec::new();
    for (place, demand) in demands {
        if plan.cluster.contains(&place.kind) && !inputs.forbidden.contains(&place.kind) {
            plan.quotas.insert(place.clone(), Quota { width: Width::Cluster, by_name: 1 });
        } else {
            narrow.push((place, demand));
        }
    }
    if inputs.all_namespaces {
        // A namespace with a watch keeps the watch.
        narrow.sort_by_key(|(_, demand)| demand.width.is_none_or(|width| width == Width::Refused));
        let mut used = 0;
        narrow.retain(|(place, demand)| {
            let fits = used + demand.names.min(WIDE_COST) <= limit;
            if fits {
                used += demand.names.min(WIDE_COST);
            } else {
                let quota = Quota { width: Width::Refused, by_name: 0 };
                plan.quotas.insert((*place).clone(), quota);
            }
            fits
        });
    }
    let wide = wide_places(&narrow, inputs.bounds.names_per_namespace.max(1), limit);
    let names_beside_wide =
        names_beside_wide(&narrow, &wide, inputs.bounds.names_per_namespace.max(1), limit);
    for ((place, demand), is_wide) in narrow.into_iter().zip(wide) {
        let quota = if is_wide {
            Quota { width: Width::Namespace, by_name: demand.names.min(names_beside_wide) }
        } else {
            Quota { width: Width::Name, by_name: demand.names }
        };
        plan.quotas.insert(place.clone(), quota);
    }
    plan
}

/// The kinds with a watch of all namespaces: as few as the limit allows.
fn cluster_kinds(
    demands: &BTreeMap<KindInNamespace, Demand>,
    inputs: &PlanInputs,
    limit: usize,
) -> BTreeSet<Kind> {
    let mut costs: BTreeMap<Kind, usize> = BTreeMap::new();
    for (place, demand) in demands {
        *costs.entry(place.kind).or_default() += demand.names.min(WIDE_COST);
    }
    let mut cluster = BTreeSet::new();
    if costs.values().sum::<usize>() > limit / 2 {
        cluster.extend(costs.keys().filter(|kind| inputs.cluster.contains(kind)));
        costs.retain(|kind, _| !cluster.contains(kind));
    }
    while costs.values().sum::<usize>() > limit {
        let Some(largest) = costs.iter().max_by_key(|(_, cost)| **cost).map(|(kind, _)| *kind) else {
            break;
        };
        costs.remove(&largest);
        cluster.insert(largest);
    }
    cluster
}

/// Whether each kind in a namespace gets a watch of the namespace.
fn wide_places(places: &[(&KindInNamespace, &Demand)], per_namespace: usize, limit: usize) -> Vec<bool> {
    let was_wide = |demand: &Demand| demand.width == Some(Width::Namespace);
    let mut wide: Vec<bool> = places
        .iter()
        .map(|(_, demand)| demand.names > per_namespace || was_wide(demand) && demand.names > WIDE_COST)
        .collect();
    let mut cost: usize = places
        .iter()
        .zip(&wide)
        .map(|((_, demand), wide)| if *wide { WIDE_COST } else { demand.names })
        .sum();
    let mut by_size: Vec<(usize, usize)> =
        places.iter().enumerate().map(|(index, (_, demand))| (demand.names, index)).collect();
    by_size.sort_unstable_by_key(|(names, index)| (Reverse(*names), *index));
    for (names, index) in &by_size {
        if cost > limit && *names > WIDE_COST && !wide[*index] {
            wide[*index] = true;
            cost -= names - WIDE_COST;
        }
    }
    for (names, index) in by_size.iter().rev() {
        let is_small = *names <= per_namespace / 2 && was_wide(places[*index].1);
        if wide[*index] && is_small && cost - WIDE_COST + names <= limit / 2 {
            wide[*index] = false;
            cost = cost - WIDE_COST + names;
        }
    }
    wide
}

/// The limit of objects watched by name beside the watch of a namespace: equal for all namespaces, as high as the limit
/// of watches allows.
fn names_beside_wide(
    places: &[(&KindInNamespace, &Demand)],
    wide: &[bool],
    per_namespace: usize,
    limit: usize,
) -> usize {
    let (mut sizes, mut cost) = (Vec::new(), 0);
    for ((_, demand), is_wide) in places.iter().zip(wide) {
        if *is_wide {
            sizes.push(demand.names);
            cost += WIDE_COST;
        } else {
            cost += demand.names;
        }
    }
    let mut left = limit.saturating_sub(cost);
    let mut names_beside_wide = 1;
    while names_beside_wide < per_namespace {
        let more = sizes.iter().filter(|size| **size > names_beside_wide).count();
        if more == 0 || more > left {
            break;
        }
        left -= more;
        names_beside_wide += 1;
    }
    names_beside_wide
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: NameBounds = NameBounds { names_per_namespace: 8, watches: 40 };

    fn kind_in_namespace(kind: Kind, namespace: &str) -> KindInNamespace {
        KindInNamespace { kind, namespace: namespace.into() }
    }

    fn inputs() -> PlanInputs {
        PlanInputs {
            bounds: BOUNDS,
            all_namespaces: true,
            cluster: BTreeSet::new(),
            forbidden: BTreeSet::new(),
        }
    }

    /// Secrets of namespaces.
    fn demands(names: &[usize]) -> BTreeMap<KindInNamespace, Demand> {
        let demands = names.iter().enumerate();
        demands
            .map(|(index, names)| {
                (
                    kind_in_namespace(Kind::Secret, &format!("n{index:04}")),
                    Demand { names: *names, width: None },
                )
            })
            .collect()
    }

    fn widths(plan: &WatchPlan) -> Vec<Width> {
        plan.quotas.values().map(|quota| quota.width).collect()
    }

    /// The greatest number of watches.
    fn watches(demands: &BTreeMap<KindInNamespace, Demand>, plan: &WatchPlan) -> usize {
        let of = |(place, quota): (&KindInNamespace, &Quota)| match quota.width {
            Width::Name => demands[place].names,
            Width::Namespace => 1 + quota.by_name,
            // At most one watch of a name, while references are new.
            Width::Cluster | Width::Refused => 0,
        };
        plan.quotas.iter().map(of).sum::<usize>() + plan.cluster.len()
    }

    /// The same demands, with the widths of a plan.
    fn taken(
        demands: &BTreeMap<KindInNamespace, Demand>,
        plan: &WatchPlan,
    ) -> BTreeMap<KindInNamespace, Demand> {
        let width = |place: &KindInNamespace| plan.quotas.get(place).map(|quota| quota.width);
        demands
            .iter()
            .map(|(place, demand)| (place.clone(), Demand { width: width(place), ..*demand }))
            .collect()
    }

    use Width::{Cluster, Name, Namespace, Refused};

    #[test]
    fn few_names_are_watched_each_and_many_of_a_namespace_together() {
        assert_eq!(
            widths(&plan_watches(&demands(&[1, 8, 9, 50_000]), &inputs())),
            [Name, Name, Namespace, Namespace]
        );
    }

    #[test]
    fn the_largest_namespaces_are_watched_whole_if_names_are_too_many() {
        let plan = plan_watches(&demands(&[8, 7, 8, 8, 8, 1, 1]), &inputs());
        assert_eq!(widths(&plan), [Namespace, Name, Name, Name, Name, Name, Name]);
        // The remaining watches are shared equally.
        let plan = plan_watches(&demands(&[9, 9, 6]), &inputs());
        assert!(plan.quotas.values().all(|quota| quota.by_name >= 6));
    }

    #[test]
    fn when_there_are_too_many_namespaces_all_are_watched_at_once() {
        let mut demands = demands(&[1; 45]);
        demands.insert(kind_in_namespace(Kind::ConfigMap, "n0000"), Demand { names: 3, width: None });
        let plan = plan_watches(&demands, &inputs());
        assert_eq!(plan.cluster, [Kind::Secret].into());
        assert!(demands.keys().all(|place| {
            let width = plan.quotas[place].width;
            width == if place.kind == Kind::Secret { Cluster } else { Name }
        }));
        // With selected namespaces, the options bound the number of namespaces.
        let some = PlanInputs { all_namespaces: false, ..inputs() };
        let plan = plan_watches(&demands, &some);
        assert!(plan.quotas.values().all(|quota| matches!(quota.width, Name | Namespace)));
        assert_eq!(plan.cluster, BTreeSet::new());
    }

    #[test]
    fn late_references_are_refused_if_the_watch_of_the_cluster_is_forbidden() {
        let mut demands = demands(&[1; 45]);
        for (index, demand) in demands.values_mut().enumerate() {
            demand.width = Some(if index < 5 { Refused } else { Cluster });
        }
        let forbidden: BTreeSet<Kind> = [Kind::Secret].into();
        let inputs = PlanInputs { cluster: forbidden.clone(), forbidden, ..inputs() };
        let plan = plan_watches(&demands, &inputs);
        assert_eq!(plan.cluster, [Kind::Secret].into(), "it is attempted all the same");
        let widths = widths(&plan);
        assert!(widths[..5].iter().all(|width| *width == Refused));
        assert!(widths[5..].iter().all(|width| *width == Name));
    }

    #[test]
    fn one_name_more_or_less_changes_nothing() {
        for (bound, many, fewer, few) in [
            // Of one namespace, and in all.
            (8, vec![9], vec![5], vec![4]),
            (8, vec![8, 8, 8, 8, 9], vec![8, 8, 8, 8, 8], vec![2, 2, 4, 4, 4]),
        ] {
            let inputs =
                PlanInputs { bounds: NameBounds { names_per_namespace: bound, ..BOUNDS }, ..inputs() };
            let first = demands(&many);
            let plan = plan_watches(&first, &inputs);
            let wide = |plan: &WatchPlan| widths(plan).iter().filter(|width| **width == Namespace).count();
            assert_eq!(wide(&plan), 1);
            let mut second = taken(&first, &plan);
            for (demand, names) in second.values_mut().zip(fewer) {
                demand.names = names;
            }
            assert_eq!(wide(&plan_watches(&second, &inputs)), 1);
            for (demand, names) in second.values_mut().zip(few) {
                demand.names = names;
            }
            assert_eq!(wide(&plan_watches(&second, &inputs)), 0);
        }
        // One namespace more or less changes nothing either.
        let cluster: BTreeSet<Kind> = [Kind::Secret].into();
        let clustered = PlanInputs { cluster: cluster.clone(), ..inputs() };
        assert_eq!(plan_watches(&demands(&[1; 21]), &clustered).cluster, cluster);
        assert_eq!(plan_watches(&demands(&[1; 21]), &inputs()).cluster, BTreeSet::new());
        assert_eq!(plan_watches(&demands(&[1; 20]), &clustered).cluster, BTreeSet::new());
    }

    #[test]
    fn there_are_never_more_watches_than_the_bound() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let places = random.usize(1..60);
            let sizes: Vec<usize> = (0..places).map(|_| 1 << random.u32(0..12)).collect();
            let mut demands = demands(&sizes);
            for demand in demands.values_mut() {
                demand.width =
                    [None, Some(Name), Some(Namespace), Some(Cluster), Some(Refused)][random.usize(0..5)];
            }
            let kinds = |random: &mut fastrand::Rng| {
                if random.bool() { [Kind::Secret].into() } else { BTreeSet::new() }
            };
            let cluster: BTreeSet<Kind> = kinds(&mut random);
            let forbidden = if cluster.is_empty() { BTreeSet::new() } else { kinds(&mut random) };
            let inputs = PlanInputs { cluster, forbidden, ..inputs() };
            let plan = plan_watches(&demands, &inputs);
            assert!(
                watches(&demands, &plan) <= BOUNDS.watches + plan.cluster.len(),
                "{demands:?} {inputs:?}"
            );
            assert_eq!(plan.quotas.len(), demands.len());
            assert!(plan.quotas.values().all(|quota| quota.width == Refused || quota.by_name > 0));
            // The same demands get the same plan.
            assert_eq!(
                plan_watches(
                    &taken(&demands, &plan),
                    &PlanInputs { cluster: plan.cluster.clone(), ..inputs }
                ),
                plan
            );
        }
    }
}
