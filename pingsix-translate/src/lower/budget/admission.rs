//! What is admitted to a data plane, and what keeps the requests of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::admit::room;
use super::ledger::Ledger;
use super::table::Group;
use super::{Older, refusal};
use crate::attach::{Hostname, ServerName, hostname_precedence};
use crate::lower::plane::RuleRef;
use crate::lower::rows::{Placement, RouteInput};
use crate::lower::table::{Audience, Row, Standing};
use crate::object::ObjectKey;
use crate::options::Budget;
use crate::route::{Path, Refusal};
use crate::translation::{DataPlaneKey, Size};
use crate::verdict::Reason;

/// What is answered to requests that there is no room for.
pub(in crate::lower) const UNAVAILABLE: u16 = 503;

/// The path of guards of hostnames: every path, behind every one that is written.
pub(super) static EVERY_PATH: LazyLock<Path> = LazyLock::new(Path::unwritten);

/// What is admitted to a data plane, and what keeps the requests of the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Admission {
    /// Rules that are not admitted.
    pub(super) refused: BTreeMap<RuleRef, Refused>,
    /// Hostnames with a guard, each with the rule it stands for.
    pub(super) guards: BTreeMap<Group, RuleRef>,
    /// Hostnames that are closed, each with the rule because of which.
    pub(super) closed: BTreeMap<Group, RuleRef>,
    /// Certificates that are not admitted: their names, and what to tell the owners.
    pub(super) certificates: BTreeSet<ServerName>,
    pub(super) certificate_refusals: Vec<(Arc<ObjectKey>, Refusal)>,
    /// What admitted objects are charged.
    pub(super) charged: Size,
    pub(super) budget: Budget,
    /// Whether less is admitted than the budget would allow.
    pub(super) is_smaller: bool,
}

/// The keys with other values.
fn unlike<K: Ord + Clone, V: PartialEq>(one: &BTreeMap<K, V>, other: &BTreeMap<K, V>) -> BTreeSet<K> {
    let differs = |(key, value): &(&K, &V)| other.get(*key) != Some(*value);
    let gone = other.keys().filter(|key| !one.contains_key(*key));
    one.iter().filter(differs).map(|(key, _)| key).chain(gone).cloned().collect()
}

/// A rule that is not admitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) older: Older,
    /// Where it keeps its matches.
    pub(super) in_place: BTreeSet<Group>,
}

/// What becomes of the rows of a rule in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Served,
    /// They answer 503.
    InPlace,
    /// They answer 503, whatever their conditions.
    Closed,
    Nothing,
}

impl Admission {
    /// Whether the documents would not have fitted the budget with all that was charged to it.
    pub(crate) const fn is_smaller(&self) -> bool {
        self.is_smaller
    }

    /// Whether everything is admitted.
    pub(crate) fn is_all(&self) -> bool {
        self.refused.is_empty() && self.certificate_refusals.is_empty()
    }

    /// Charges more, if there is room for it. Returns whether there is.
    pub(crate) fn grow(&mut self, growth: Size) -> bool {
        let mut ledger = Ledger::new(room(self.budget));
        let Size { bytes, matcher_entries } = self.charged;
        let taken = ledger
            .take(bytes, matcher_entries)
            .and_then(|()| ledger.take(growth.bytes, growth.matcher_entries));
        if taken.is_some() {
            self.charged.bytes += growth.bytes;
            self.charged.matcher_entries += growth.matcher_entries;
        }
        taken.is_some()
    }

    /// Whether the same certificates are admitted as with another one.
    pub(crate) fn has_certificates_of(&self, other: &Self) -> bool {
        self.certificates == other.certificates && self.certificate_refusals == other.certificate_refusals
    }

    /// The rules that something else becomes of than with another one.
    pub(crate) fn rules_unlike(&self, other: &Self) -> BTreeSet<RuleRef> {
        unlike(&self.refused, &other.refused)
    }

    /// The groups with another guard.
    pub(crate) fn guards_unlike(&self, other: &Self) -> BTreeSet<Group> {
        unlike(&self.guards, &other.guards)
    }

    /// The groups that are closed, or are not any more.
    pub(crate) fn closed_unlike(&self, other: &Self) -> BTreeSet<Group> {
        unlike(&self.closed, &other.closed)
    }

    /// What becomes of the rows of a rule in a group.
    pub(crate) fn kept(&self, rule: RuleRef, group: &Group) -> Kept {
        if self.refused.is_empty() {
            return Kept::Served;
        }
        match self.refused.get(&rule) {
            Some(refused) if refused.in_place.contains(group) => Kept::InPlace,
            Some(_) => Kept::Nothing,
            None if self.closed.contains_key(group) => Kept::Closed,
            None => Kept::Served,
        }
    }

    /// The guard of a group.
    pub(crate) fn guard<'a>(&self, group: &Group, routes: &'a [Arc<RouteInput>]) -> Option<Row<'a>> {
        let rule = *self.guards.get(group)?;
        let route = &routes.get(rule.route)?.route;
        let content = route.rules.get(rule.rule)?;
        Some(Row {
            rule,
            route: &route.key,
            age: route.age,
            section: route.part.section_of_rule(content),
            specificity: hostname_precedence(group.1.as_ref()),
            path: &EVERY_PATH,
            method: None,
            conditions: &[],
            audience: Audience::Everybody,
            standing: Standing::Guard,
        })
    }

    /// The hostnames of a zone that have a guard.
    pub(crate) fn guarded(&self, zone: usize) -> impl Iterator<Item = &Group> {
        self.guards.keys().filter(move |(of, _)| *of == zone)
    }

    /// Whether a certificate is shown for a name.
    pub(crate) fn shows(&self, name: &ServerName) -> bool {
        !self.certificates.contains(name)
    }

    /// What owners of certificates are told.
    pub(crate) fn certificate_refusals(&self) -> &[(Arc<ObjectKey>, Refusal)] {
        &self.certificate_refusals
    }

    /// What is refused of a route with places in a data plane.
    pub(crate) fn refusals<'s>(
        &'s self,
        route: usize,
        routes: &'s [Arc<RouteInput>],
        places: impl IntoIterator<Item = &'s Placement>,
        plane: &'s DataPlaneKey,
    ) -> Vec<(RuleRef, Refusal)> {
        if self.refused.is_empty() {
            return Vec::new();
        }
        let of_route = RuleRef { route, rule: 0 }..=RuleRef { route, rule: usize::MAX };
        let mut refusals: Vec<(RuleRef, Refusal)> = self
            .refused
            .range(of_route)
            .map(|(rule, refused)| (*rule, refusal(routes, *rule, refused.older, plane, self.budget)))
            .collect();
        if self.closed.is_empty() {
            return refusals;
        }
        let mut closed: BTreeMap<Option<Hostname>, RuleRef> = BTreeMap::new();
        for placement in places {
            for name in &placement.names {
                if let Some(by) = self.closed.get(&(placement.zone, name.original.clone())) {
                    closed.insert(name.original.clone(), *by);
                }
            }
        }
        let route_of = &routes[route].route;
        for (name, by) in closed {
            let name = name.map_or_else(|| "all hostnames".to_owned(), |name| name.to_string());
            let message = format!(
                "Data plane {plane} answers 503 for {name}: {} does not fit its budget, and has no room for guards.",
                routes[by.route].route.key
            );
            refusals.extend(route_of.rules.iter().enumerate().filter_map(|(index, content)| {
                let rule = RuleRef { route, rule: index };
                let at = route_of.field_of(content);
                let refused = || Refusal::new(at, Reason::BudgetExceeded, message.clone());
                (!self.refused.contains_key(&rule)).then(|| (rule, refused()))
            }));
        }
        refusals
    }
}
