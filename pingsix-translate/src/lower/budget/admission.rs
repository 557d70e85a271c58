//! The admitted rules of a data plane, and the guards of refused ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use super::share::Share;
use super::{Group, OlderRules, refusal, room};
use crate::attach::ServerName;
use crate::lower::Size;
use crate::lower::plane::RuleRef;
use crate::lower::room::Room;
use crate::lower::rows::{Placement, RouteInput, RowTreatment};
use crate::lower::shared::SharedKey;
use crate::lower::table::{Access, RequestScheme, Row, RowState};
use crate::model::{
    Budget, DataPlaneKey, Hostname, ObjectKey, Problem, Reason, Refusal, hostname_precedence,
};
use crate::normalise::{Match, Path};

/// The response to requests of refused rules.
pub(in crate::lower) const UNAVAILABLE: u16 = 503;

/// The path of guards of hostnames: every path, behind every one that is written.
pub(super) static EVERY_PATH: LazyLock<Path> = LazyLock::new(Path::unwritten);

/// The divisor of the room for a noticeable part of it.
const NOTICEABLE: usize = 32;

/// The admitted rules of a data plane, and the guards of refused ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Admission {
    /// Rules that are not admitted.
    pub(super) refused: BTreeMap<RuleRef, Refused>,
    /// Hostnames with a guard, each with the rule it stands for.
    pub(super) guards: BTreeMap<Group, RuleRef>,
    /// Zones that there is no room to guard.
    pub(super) unguarded: BTreeSet<usize>,
    /// The closed cells.
    pub(super) closed: Closed,
    /// Refused certificates: their names and the messages to their owners.
    pub(super) certificates: BTreeSet<ServerName>,
    pub(in crate::lower) certificate_refusals: Vec<(Arc<ObjectKey>, Refusal)>,
    /// The room that there was for rules and certificates.
    pub(super) room: Size,
    /// The charge of admitted objects.
    pub(super) charged: Size,
    /// The estimated part of it that another admission may charge otherwise.
    pub(super) outdated: Size,
    /// The charge of shared documents, including those of refused rules. Empty if everything is admitted.
    pub(in crate::lower) shared: BTreeMap<SharedKey, usize>,
    /// The share of each namespace, and the largest use.
    pub(in crate::lower) share: Option<Share>,
    pub(super) most_of_share: Size,
    /// Warnings for namespaces that use most of their shares, and for owners of listeners without guards.
    pub(in crate::lower) problems: Vec<Problem>,
    pub(super) budget: Budget,
    /// Whether less is admitted than the budget would allow.
    pub(in crate::lower) is_smaller: bool,
}

/// Cells that are closed, by hostname: paths and methods, each with the object because of which.
pub(super) type Closed = BTreeMap<Group, BTreeMap<(Path, Option<&'static str>), Arc<ObjectKey>>>;

/// The keys with other values.
fn differing<K: Ord + Clone, V: PartialEq>(one: &BTreeMap<K, V>, other: &BTreeMap<K, V>) -> BTreeSet<K> {
    let differs = |(key, value): &(&K, &V)| other.get(*key) != Some(*value);
    let gone = other.keys().filter(|key| !one.contains_key(*key));
    one.iter().filter(differs).map(|(key, _)| key).chain(gone).cloned().collect()
}

/// A rule that is not admitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) older: OlderRules,
    /// The share of the namespace, if the share does not suffice.
    pub(super) share: Option<Share>,
    /// The groups in which the rule keeps matches or paths.
    pub(super) in_place: BTreeMap<Group, KeptPart>,
}

/// The part of a refused rule that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeptPart {
    /// The matches.
    Matches,
    /// Their paths and methods, without conditions, behind all other rules with the same.
    Paths,
}

impl Admission {
    /// Whether everything is admitted.
    pub(crate) fn is_all(&self) -> bool {
        self.refused.is_empty() && self.certificate_refusals.is_empty() && self.unguarded.is_empty()
    }

    /// The charged part of the room for rules and certificates.
    pub(crate) fn charged_ratio(&self) -> f64 {
        let Size { bytes, matcher_entries } = self.room;
        self.charged.ratio_of(Budget { bytes, matcher_entries })
    }

    /// Whether there is room for the guard of a zone.
    pub(crate) fn guards_zone(&self, zone: usize) -> bool {
        !self.unguarded.contains(&zone)
    }

    /// Charges further bytes of any namespace, if there is room and no warning is due. Returns whether both hold.
    pub(crate) fn grow(&mut self, growth: Size) -> bool {
        let most = self.most_of_share.with(growth, usize::saturating_add);
        if self.share.is_some_and(|share| !share.is_far_from(most)) {
            return false;
        }
        let charged = self.charged.with(growth, usize::saturating_add);
        let fits = Room::new(room(self.budget)).take_size(charged).is_some();
        if fits {
            (self.most_of_share, self.charged) = (most, charged);
        }
        fits
    }

    /// Notes a change after which the charge is less exact: it may have replaced something with an equal charge, and
    /// the charges of other objects may have changed as their documents have.
    pub(crate) fn age(&mut self, growth: Size, before: Size, now: Size) {
        let changed = |charged: usize, before: usize, now: usize| {
            charged.saturating_mul(before.abs_diff(now)).checked_div(before).unwrap_or_default()
        };
        let Size { bytes, matcher_entries } = self.charged;
        let changed = Size {
            bytes: changed(bytes, before.bytes, now.bytes),
            matcher_entries: changed(matcher_entries, before.matcher_entries, now.matcher_entries),
        };
        self.outdated = self.outdated.with(changed.with(growth, usize::max), usize::saturating_add);
    }

    /// Whether a noticeable part of the charge may be outdated.
    pub(crate) fn is_outdated(&self) -> bool {
        Room::new(self.room.part(NOTICEABLE)).take_size(self.outdated).is_none()
    }

    /// Whether the same certificates and guards of zones are admitted as with another one.
    pub(crate) fn has_certificates_of(&self, other: &Self) -> bool {
        self.unguarded == other.unguarded
            && self.certificates == other.certificates
            && self.certificate_refusals == other.certificate_refusals
    }

    /// The rules with another treatment than in `other`.
    pub(crate) fn differing_rules(&self, other: &Self) -> BTreeSet<RuleRef> {
        differing(&self.refused, &other.refused)
    }

    /// The groups with another guard.
    pub(crate) fn differing_guards(&self, other: &Self) -> BTreeSet<Group> {
        differing(&self.guards, &other.guards)
    }

    /// The groups that are closed, or are not any more.
    pub(crate) fn differing_closed(&self, other: &Self) -> BTreeSet<Group> {
        differing(&self.closed, &other.closed)
    }

    /// The treatment of a rule's rows in a group.
    pub(crate) fn kept(&self, rule: RuleRef, matched: &Match, group: &Group) -> RowTreatment {
        if self.refused.is_empty() && self.closed.is_empty() {
            return RowTreatment::Served;
        }
        match self.refused.get(&rule).map(|refused| refused.in_place.get(group)) {
            Some(Some(KeptPart::Matches)) => RowTreatment::InPlace,
            Some(Some(KeptPart::Paths)) => RowTreatment::Behind,
            Some(None) => RowTreatment::Nothing,
            None if self.closing(matched, group).is_some() => RowTreatment::Closed,
            None => RowTreatment::Served,
        }
    }

    /// The object because of which a match is closed in a group.
    fn closing(&self, matched: &Match, group: &Group) -> Option<&Arc<ObjectKey>> {
        self.closed.get(group)?.get(&(matched.path.clone(), matched.method))
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
            scheme: RequestScheme::Any,
            state: RowState::Guard,
            is_closing: false,
            access: Access::NONE,
        })
    }

    /// The hostnames of a zone that have a guard.
    pub(crate) fn guarded(&self, zone: usize) -> impl Iterator<Item = &Option<Hostname>> {
        self.guards.keys().filter(move |(of, _)| *of == zone).map(|(_, original)| original)
    }

    /// Whether a certificate is shown for a name.
    pub(crate) fn shows(&self, name: &ServerName) -> bool {
        !self.certificates.contains(name)
    }

    /// The refusals of a route with rows in a data plane.
    pub(crate) fn refusals<'s>(
        &'s self,
        route: usize,
        routes: &'s [Arc<RouteInput>],
        places: impl IntoIterator<Item = &'s Placement>,
        plane: &'s DataPlaneKey,
    ) -> Vec<(RuleRef, Refusal)> {
        if self.refused.is_empty() && self.closed.is_empty() {
            return Vec::new();
        }
        let of_route = RuleRef { route, rule: 0 }..=RuleRef { route, rule: usize::MAX };
        let mut refusals: Vec<(RuleRef, Refusal)> = self
            .refused
            .range(of_route)
            .map(|(rule, refused)| {
                (*rule, refusal(routes, *rule, (refused.older, refused.share), plane, self.budget))
            })
            .collect();
        if self.closed.is_empty() {
            return refusals;
        }
        let route_of = &routes[route].route;
        // By rule and hostname, one match whose path is closed.
        let mut closed: BTreeMap<_, (&Match, &Arc<ObjectKey>)> = BTreeMap::new();
        for placement in places {
            for name in &placement.names {
                let group = (placement.zone, name.original.clone());
                for (index, content) in route_of.rules.iter().enumerate() {
                    let of_match = |matched: &'s Match| Some((matched, self.closing(matched, &group)?));
                    if let Some(found) = content.matches.iter().find_map(of_match) {
                        closed.insert((index, group.1.clone()), found);
                    }
                }
            }
        }
        for ((index, name), (matched, by)) in closed {
            let rule = RuleRef { route, rule: index };
            if self.refused.contains_key(&rule) {
                continue;
            }
            let name = name.map_or_else(|| "all hostnames".to_owned(), |name| name.to_string());
            let by = by.named_to(&route_of.key);
            let message = format!(
                "Data plane {plane} answers 503 for path \"{}\" of {name}: {by} is for some of these requests and does not \
                 fit its budget, and there is no room to tell them apart.",
                matched.path.text
            );
            let at = route_of.field_of(&route_of.rules[index]);
            refusals.push((rule, Refusal::new(at, Reason::BudgetExceeded, message)));
        }
        refusals
    }
}
