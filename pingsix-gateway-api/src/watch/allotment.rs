//! The width of watches of referenced objects: a pure function of the number of referenced names in each place.
//!
//! A watch of one object reads no other, and takes a connection of its own. The number of watches is bounded by
//! [`NameBounds`]; beyond a bound, one watch of a whole namespace takes the place of those of its objects. When the
//! namespaces alone are too many, one watch of all namespaces takes the place of those of the kind.
//!
//! A wide watch that the API server forbids is still attempted, and in its place are watched as many single objects (or
//! namespaces) as the bounds leave room for. The others are refused, with a message that names the bound.

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
    /// The place of an object.
    pub(super) fn of(key: &ObjectKey) -> Self {
        Self { kind: key.kind, namespace: key.name.namespace.clone() }
    }
}

/// The width of the watches of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Each by its name.
    Name,
    /// By one watch of the namespace.
    Namespace,
    /// By one watch of the kind in all namespaces.
    Cluster,
    /// Not at all: there is no room left, and the watch of all namespaces is forbidden.
    Refused,
}

/// The need of a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// The number of referenced names.
    pub(super) names: usize,
    /// The current width; `None` before the first allotment.
    pub(super) width: Option<Width>,
}

/// The allotment of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) width: Width,
    /// The limit of objects watched by name. Beside a wide watch these are the objects without an answer from it:
    /// because the watch is forbidden, or because its list is older than the reference.
    pub(super) by_name: usize,
}

/// The terms of allotments beside needs.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) bounds: NameBounds,
    /// Whether all namespaces are watched, instead of selected ones.
    pub(super) is_everywhere: bool,
    /// Kinds of which all namespaces are watched now.
    pub(super) cluster: BTreeSet<Kind>,
    /// The kinds for which the API server forbids the watch of all namespaces.
    pub(super) forbidden: BTreeSet<Kind>,
}

/// Which watches there are to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Allotment {
    pub(super) shares: BTreeMap<KindInNamespace, Share>,
    /// Kinds of which all namespaces are watched, or would be if it were allowed.
    pub(super) cluster: BTreeSet<Kind>,
}

/// A namespace takes its own watch and one of a name at least, unless it has one name only.
const WIDE: usize = 2;

/// Allots watches. What is watched widely stays so until it needs half of what a bound allows, so that one name more or
/// less does not go back and forth.
pub(super) fn allot(needs: &BTreeMap<KindInNamespace, Need>, terms: &Terms) -> Allotment {
    let most = terms.bounds.watches.max(WIDE);
    let cluster = if terms.is_everywhere { clustered(needs, terms, most) } else { BTreeSet::new() };
    let mut allotment = Allotment { shares: BTreeMap::new(), cluster };
    let mut narrow = Vec::new();
    for (place, need) in needs {
        if allotment.cluster.contains(&place.kind) && !terms.forbidden.contains(&place.kind) {
            allotment.shares.insert(place.clone(), Share { width: Width::Cluster, by_name: 1 });
        } else {
            narrow.push((place, need));
        }
    }
    if terms.is_everywhere {
        // A place with a watch keeps it.
        narrow.sort_by_key(|(_, need)| need.width.is_none_or(|width| width == Width::Refused));
        let mut used = 0;
        narrow.retain(|(place, need)| {
            let fits = used + need.names.min(WIDE) <= most;
            if fits {
                used += need.names.min(WIDE);
            } else {
                let share = Share { width: Width::Refused, by_name: 0 };
                allotment.shares.insert((*place).clone(), share);
            }
            fits
        });
    }
    let wide = widened(&narrow, terms.bounds.names_per_namespace.max(1), most);
    let level = level(&narrow, &wide, terms.bounds.names_per_namespace.max(1), most);
    for ((place, need), is_wide) in narrow.into_iter().zip(wide) {
        let share = if is_wide {
            Share { width: Width::Namespace, by_name: need.names.min(level) }
        } else {
            Share { width: Width::Name, by_name: need.names }
        };
        allotment.shares.insert(place.clone(), share);
    }
    allotment
}

/// The kinds of which all namespaces have to be watched: the fewest, for the rest to fit.
fn clustered(needs: &BTreeMap<KindInNamespace, Need>, terms: &Terms, most: usize) -> BTreeSet<Kind> {
    let mut floors: BTreeMap<Kind, usize> = BTreeMap::new();
    for (place, need) in needs {
        *floors.entry(place.kind).or_default() += need.names.min(WIDE);
    }
    let mut cluster = BTreeSet::new();
    if floors.values().sum::<usize>() > most / 2 {
        cluster.extend(floors.keys().filter(|kind| terms.cluster.contains(kind)));
        floors.retain(|kind, _| !cluster.contains(kind));
    }
    while floors.values().sum::<usize>() > most {
        let Some(largest) = floors.iter().max_by_key(|(_, floor)| **floor).map(|(kind, _)| *kind) else {
            break;
        };
        floors.remove(&largest);
        cluster.insert(largest);
    }
    cluster
}

/// Which places have a watch of their namespace.
fn widened(places: &[(&KindInNamespace, &Need)], per_namespace: usize, most: usize) -> Vec<bool> {
    let was_wide = |need: &Need| need.width == Some(Width::Namespace);
    let mut wide: Vec<bool> = places
        .iter()
        .map(|(_, need)| need.names > per_namespace || was_wide(need) && need.names > WIDE)
        .collect();
    let mut cost: usize =
        places.iter().zip(&wide).map(|((_, need), wide)| if *wide { WIDE } else { need.names }).sum();
    let mut by_size: Vec<(usize, usize)> =
        places.iter().enumerate().map(|(index, (_, need))| (need.names, index)).collect();
    by_size.sort_unstable_by_key(|(names, index)| (Reverse(*names), *index));
    for (names, index) in &by_size {
        if cost > most && *names > WIDE && !wide[*index] {
            wide[*index] = true;
            cost -= names - WIDE;
        }
    }
    for (names, index) in by_size.iter().rev() {
        let is_small = *names <= per_namespace / 2 && was_wide(places[*index].1);
        if wide[*index] && is_small && cost - WIDE + names <= most / 2 {
            wide[*index] = false;
            cost = cost - WIDE + names;
        }
    }
    wide
}

/// The limit of objects watched by name in each place with a watch of its namespace: the same for all places, as high
/// as the bound allows.
fn level(places: &[(&KindInNamespace, &Need)], wide: &[bool], per_namespace: usize, most: usize) -> usize {
    let (mut sizes, mut cost) = (Vec::new(), 0);
    for ((_, need), is_wide) in places.iter().zip(wide) {
        if *is_wide {
            sizes.push(need.names);
            cost += WIDE;
        } else {
            cost += need.names;
        }
    }
    let mut left = most.saturating_sub(cost);
    let mut level = 1;
    while level < per_namespace {
        let more = sizes.iter().filter(|size| **size > level).count();
        if more == 0 || more > left {
            break;
        }
        left -= more;
        level += 1;
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: NameBounds = NameBounds { names_per_namespace: 8, watches: 40 };

    fn place(kind: Kind, namespace: &str) -> KindInNamespace {
        KindInNamespace { kind, namespace: namespace.into() }
    }

    fn terms() -> Terms {
        Terms { bounds: BOUNDS, is_everywhere: true, cluster: BTreeSet::new(), forbidden: BTreeSet::new() }
    }

    /// Secrets of namespaces.
    fn needs(names: &[usize]) -> BTreeMap<KindInNamespace, Need> {
        let needs = names.iter().enumerate();
        needs
            .map(|(index, names)| {
                (place(Kind::Secret, &format!("n{index:04}")), Need { names: *names, width: None })
            })
            .collect()
    }

    fn widths(allotment: &Allotment) -> Vec<Width> {
        allotment.shares.values().map(|share| share.width).collect()
    }

    /// The greatest number of watches.
    fn watches(needs: &BTreeMap<KindInNamespace, Need>, allotment: &Allotment) -> usize {
        let of = |(place, share): (&KindInNamespace, &Share)| match share.width {
            Width::Name => needs[place].names,
            Width::Namespace => 1 + share.by_name,
            // One of a name each, and only while names come.
            Width::Cluster | Width::Refused => 0,
        };
        allotment.shares.iter().map(of).sum::<usize>() + allotment.cluster.len()
    }

    /// The same needs, watched as allotted.
    fn taken(
        needs: &BTreeMap<KindInNamespace, Need>,
        allotment: &Allotment,
    ) -> BTreeMap<KindInNamespace, Need> {
        let width = |place: &KindInNamespace| allotment.shares.get(place).map(|share| share.width);
        needs.iter().map(|(place, need)| (place.clone(), Need { width: width(place), ..*need })).collect()
    }

    use Width::{Cluster, Name, Namespace, Refused};

    #[test]
    fn few_names_are_watched_each_and_many_of_a_namespace_together() {
        assert_eq!(widths(&allot(&needs(&[1, 8, 9, 50_000]), &terms())), [Name, Name, Namespace, Namespace]);
    }

    #[test]
    fn when_there_are_too_many_names_in_all_the_largest_namespaces_are_watched_whole() {
        let allotment = allot(&needs(&[8, 7, 8, 8, 8, 1, 1]), &terms());
        assert_eq!(widths(&allotment), [Namespace, Name, Name, Name, Name, Name, Name]);
        // The remaining watches are shared equally.
        let allotment = allot(&needs(&[9, 9, 6]), &terms());
        assert!(allotment.shares.values().all(|share| share.by_name >= 6));
    }

    #[test]
    fn when_there_are_too_many_namespaces_all_are_watched_at_once() {
        let mut needs = needs(&[1; 45]);
        needs.insert(place(Kind::ConfigMap, "n0000"), Need { names: 3, width: None });
        let allotment = allot(&needs, &terms());
        assert_eq!(allotment.cluster, [Kind::Secret].into());
        assert!(needs.keys().all(|place| {
            let width = allotment.shares[place].width;
            width == if place.kind == Kind::Secret { Cluster } else { Name }
        }));
        // With selected namespaces, the options bound the number of namespaces.
        let some = Terms { is_everywhere: false, ..terms() };
        let allotment = allot(&needs, &some);
        assert!(allotment.shares.values().all(|share| matches!(share.width, Name | Namespace)));
        assert_eq!(allotment.cluster, BTreeSet::new());
    }

    #[test]
    fn when_that_is_forbidden_those_who_come_too_late_are_refused() {
        let mut needs = needs(&[1; 45]);
        for (index, need) in needs.values_mut().enumerate() {
            need.width = Some(if index < 5 { Refused } else { Cluster });
        }
        let forbidden: BTreeSet<Kind> = [Kind::Secret].into();
        let terms = Terms { cluster: forbidden.clone(), forbidden, ..terms() };
        let allotment = allot(&needs, &terms);
        assert_eq!(allotment.cluster, [Kind::Secret].into(), "it is attempted all the same");
        let widths = widths(&allotment);
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
            let terms = Terms { bounds: NameBounds { names_per_namespace: bound, ..BOUNDS }, ..terms() };
            let first = needs(&many);
            let allotment = allot(&first, &terms);
            let wide =
                |allotment: &Allotment| widths(allotment).iter().filter(|width| **width == Namespace).count();
            assert_eq!(wide(&allotment), 1);
            let mut second = taken(&first, &allotment);
            for (need, names) in second.values_mut().zip(fewer) {
                need.names = names;
            }
            assert_eq!(wide(&allot(&second, &terms)), 1);
            for (need, names) in second.values_mut().zip(few) {
                need.names = names;
            }
            assert_eq!(wide(&allot(&second, &terms)), 0);
        }
        // Nor does one namespace.
        let cluster: BTreeSet<Kind> = [Kind::Secret].into();
        let clustered = Terms { cluster: cluster.clone(), ..terms() };
        assert_eq!(allot(&needs(&[1; 21]), &clustered).cluster, cluster);
        assert_eq!(allot(&needs(&[1; 21]), &terms()).cluster, BTreeSet::new());
        assert_eq!(allot(&needs(&[1; 20]), &clustered).cluster, BTreeSet::new());
    }

    #[test]
    fn there_are_never_more_watches_than_the_bound() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let places = random.usize(1..60);
            let sizes: Vec<usize> = (0..places).map(|_| 1 << random.u32(0..12)).collect();
            let mut needs = needs(&sizes);
            for need in needs.values_mut() {
                need.width =
                    [None, Some(Name), Some(Namespace), Some(Cluster), Some(Refused)][random.usize(0..5)];
            }
            let kinds = |random: &mut fastrand::Rng| {
                if random.bool() { [Kind::Secret].into() } else { BTreeSet::new() }
            };
            let cluster: BTreeSet<Kind> = kinds(&mut random);
            let forbidden = if cluster.is_empty() { BTreeSet::new() } else { kinds(&mut random) };
            let terms = Terms { cluster, forbidden, ..terms() };
            let allotment = allot(&needs, &terms);
            assert!(
                watches(&needs, &allotment) <= BOUNDS.watches + allotment.cluster.len(),
                "{needs:?} {terms:?}"
            );
            assert_eq!(allotment.shares.len(), needs.len());
            assert!(allotment.shares.values().all(|share| share.width == Refused || share.by_name > 0));
            // The same needs get the same allotment.
            assert_eq!(
                allot(&taken(&needs, &allotment), &Terms { cluster: allotment.cluster.clone(), ..terms }),
                allotment
            );
        }
    }
}
