//! Units: steps of a plan that a target should apply at once.
//!
//! PingSIX looks up the Routes of a request's host and then those without a host, and a Route with several hosts
//! answers for each of them. A request is therefore answered as before or as after if all changed Routes that share a
//! host, directly or through other changed Routes, change at once. A wildcard (`*.example.com`) shares with every
//! host that it matches, and a Route without hosts shares with all.
//!
//! PingSIX presents the certificate of the requested server name, so `ssls` documents between which a name moves
//! change at once too.
//!
//! Documents of other kinds belong to no unit with others. Targets of Routes are written before all of them and
//! deleted after, and no document refers to a Route or a certificate, so grouping Routes keeps a plan valid.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::names::moves;
use super::{Step, UnknownDocuments};
use crate::desired::DocumentSet;
use crate::document::Key;
use crate::resource::ResourceKind;

/// The steps of a plan by units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Units {
    steps: Vec<Step>,
    /// The index after the last step of each unit.
    ends: Vec<usize>,
}

impl Units {
    /// All steps.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// All steps.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// The steps of each unit.
    pub fn iter(&self) -> impl Iterator<Item = &[Step]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.steps[start..*end])
    }

    /// The number of steps to apply from `start` on when `fitting` steps fit: whole units, unless the first one does
    /// not fit.
    pub fn batch_len(&self, start: usize, fitting: usize) -> usize {
        let ended = self.ends.partition_point(|end| *end <= start + fitting);
        let end = ended.checked_sub(1).map_or(0, |last| self.ends[last]);
        if end > start { end - start } else { fitting }
    }
}

/// The hosts of a changed Route, before and after.
#[derive(Debug, PartialEq, Eq)]
enum Hosts {
    /// The Route has no hosts, or they are unreadable.
    Any,
    Listed(Vec<String>),
}

impl Hosts {
    fn of(value: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Route {
            host: Option<String>,
            hosts: Vec<String>,
        }
        let Ok(Route { host, mut hosts }) = serde_json::from_slice(value) else { return Self::Any };
        hosts.extend(host);
        if hosts.is_empty() { Self::Any } else { Self::Listed(hosts) }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Listed(mut hosts), Self::Listed(others)) => {
                hosts.extend(others);
                Self::Listed(hosts)
            }
            (Self::Any, _) | (_, Self::Any) => Self::Any,
        }
    }
}

/// Groups a plan from `current` into units, each at the position of its first step.
pub fn units(steps: &[Step], current: &DocumentSet) -> Units {
    let mut shared = UnionFind::of(steps, current);
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for index in 0..steps.len() {
        members.entry(shared.find(index)).or_default().push(index);
    }
    let ordered = members.values().flatten().map(|index| steps[*index].clone()).collect();
    let ends = members.values().scan(0, |end, unit| {
        *end += unit.len();
        Some(*end)
    });
    Units { steps: ordered, ends: ends.collect() }
}

/// Groups of steps as a union-find forest with the first step as root.
struct UnionFind(Vec<usize>);

impl UnionFind {
    fn of(steps: &[Step], current: &DocumentSet) -> Self {
        let mut shared = Self((0..steps.len()).collect());
        for (predecessor, successor) in moves(steps, current, &UnknownDocuments::new()) {
            shared.union(predecessor, successor);
        }
        let routes: Vec<(usize, Hosts)> = steps
            .iter()
            .enumerate()
            .filter(|(_, step)| is_route(step.key()))
            .map(|(index, step)| (index, hosts(step, current)))
            .collect();
        if routes.iter().any(|(_, hosts)| *hosts == Hosts::Any) {
            for pair in routes.windows(2) {
                shared.union(pair[0].0, pair[1].0);
            }
            return shared;
        }
        // The reverse order lets the hosts of a wildcard follow it.
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (index, hosts) in &routes {
            let Hosts::Listed(hosts) = hosts else { continue };
            for host in hosts {
                let first = *seen.entry(host.chars().rev().collect()).or_insert(*index);
                shared.union(first, *index);
            }
        }
        for (wildcard, index) in &seen {
            let Some(suffix) = wildcard.strip_suffix('*') else { continue };
            let covered = seen.range(suffix.to_owned()..).take_while(|(host, _)| host.starts_with(suffix));
            for (_, other) in covered {
                shared.union(*index, *other);
            }
        }
        shared
    }

    fn find(&mut self, index: usize) -> usize {
        let mut at = index;
        while self.0[at] != at {
            // Path halving.
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn union(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
    }
}

fn is_route(key: &Key) -> bool {
    ResourceKind::of(key).is_ok_and(|(kind, _)| kind == ResourceKind::Route)
}

fn hosts(step: &Step, current: &DocumentSet) -> Hosts {
    let before = current.get(step.key()).map(|document| Hosts::of(&document.value));
    let after = match step {
        Step::Create(document) | Step::Update(document) => Some(Hosts::of(&document.value)),
        Step::Delete { .. } => None,
    };
    match (before, after) {
        (Some(before), Some(after)) => before.and(after),
        (Some(hosts), None) | (None, Some(hosts)) => hosts,
        (None, None) => Hosts::Any,
    }
}
