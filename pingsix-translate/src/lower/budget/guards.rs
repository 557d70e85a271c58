//! What keeps the requests of rules that a data plane has no room for.
//!
//! Without a refused rule, its requests could fall to a rule of another namespace. One part of the budget is kept for
//! Routes that answer them with 503, of which a namespace may take one part in [`NAMESPACES`]. For each hostname of a
//! refused rule:
//!
//! 1. Where another namespace has rules for the same hostname, the rule keeps its matches and answers 503.
//! 2. Otherwise a **guard** answers 503 to all requests for the hostname that no admitted rule of the namespace takes.
//!    Requests for the refused rule may still be answered by other rules of its namespace.
//!
//! Where there is no room for that either, hostnames are **closed**: their rules keep their paths and answer 503,
//! whosever they are. These are, in the first case, the hostname itself, and in both the wider ones that another
//! namespace has rules for. Closing takes no room, since the rules are there.
//!
//! # Why no request is answered by another namespace
//!
//! Let a request be for a refused rule of namespace N with hostname h, as it is written. Rules that come before it
//! would have come before it anyway. The rules that come after it are of the same hostname or of wider ones in the zone. In
//! the first case the rule itself ends the list. Else the rules of the hostname are of N, or closed; and either the guard is
//! the last of them, or the wider ones are of N, or closed. Wider zones are kept out by the guard of the zone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admission::{EVERY_PATH, UNAVAILABLE};
use super::admit::Admitting;
use super::ledger::Ledger;
use super::oldest_first;
use super::table::{Group, STATUS, Sized, TableSizes, name_bytes, row_bytes};
use crate::lower::document::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::rows::{Placement, RouteInput};
use crate::lower::table::Audience;
use crate::resolve::Action;
use crate::translation::Size;

/// One part of what is kept for guards in so many is for those of one namespace.
const NAMESPACES: usize = 4;

impl<'a> Admitting<'a> {
    /// Finds out what keeps the requests of refused rules.
    pub(super) fn guard(&mut self, reserve: Size) {
        let served = self.served();
        let of_namespace =
            Size { bytes: reserve.bytes / NAMESPACES, matcher_entries: reserve.matcher_entries / NAMESPACES };
        let mut guarding = Guarding {
            all: Ledger::new(reserve),
            namespaces: BTreeMap::new(),
            of_namespace,
            served,
            tried: BTreeMap::new(),
        };
        let routes = self.lowering.routes;
        let refused: BTreeSet<usize> = self.admission.refused.keys().map(|rule| rule.route).collect();
        let rules = oldest_first(routes, &refused);
        for rule in
            rules.into_iter().filter(|rule| self.admission.refused.contains_key(rule)).collect::<Vec<_>>()
        {
            for placement in self.places.get(&rule.route).cloned().unwrap_or_default() {
                for name in &placement.names {
                    let group = (placement.zone, name.original.clone());
                    self.guard_group(rule, placement, group, &mut guarding);
                }
            }
        }
    }

    /// The namespaces with admitted rules, by group.
    fn served(&self) -> BTreeMap<Group, BTreeSet<&'a str>> {
        let mut served: BTreeMap<Group, BTreeSet<&'a str>> = BTreeMap::new();
        let routes: &'a [Arc<RouteInput>] = self.lowering.routes;
        for (&route, places) in &self.places {
            let input = &routes[route].route;
            let is_served = |rule| !self.admission.refused.contains_key(&RuleRef { route, rule });
            if !(0..input.rules.len()).any(is_served) {
                continue;
            }
            for placement in places {
                for name in &placement.names {
                    let group = (placement.zone, name.original.clone());
                    served.entry(group).or_default().insert(&input.key.name.namespace);
                }
            }
        }
        served
    }

    /// Sees to the requests of a refused rule for one of its hostnames.
    fn guard_group(
        &mut self,
        rule: RuleRef,
        placement: &'a Placement,
        group: Group,
        guarding: &mut Guarding<'a>,
    ) {
        let routes: &'a [Arc<RouteInput>] = self.lowering.routes;
        let namespace: &'a str = &routes[rule.route].route.key.name.namespace;
        if guarding.is_shared(&group, namespace) && !self.admission.closed.contains_key(&group) {
            let keeps = self.keeps_in_place(rule, placement)
                && guarding.charge(namespace, &mut self.table, |table, ledger| {
                    add_guard_rows(table, &self.lowering, rule, &group, ledger)
                });
            if keeps {
                if let Some(refused) = self.admission.refused.get_mut(&rule) {
                    refused.in_place.insert(group);
                }
                return;
            }
            self.admission.closed.insert(group.clone(), rule);
        }
        if self.admission.guards.contains_key(&group) {
            return;
        }
        // What did not fit once does not fit later.
        let is_new = guarding.tried.entry(group.clone()).or_default().insert(namespace);
        let is_guarded = is_new
            && guarding.charge(namespace, &mut self.table, |table, ledger| {
                add_guard(table, &self.lowering, rule, &group, ledger)
            });
        if is_guarded {
            self.admission.guards.insert(group, rule);
            return;
        }
        let (zone, original) = group;
        let wider = original.iter().flat_map(|name| name.wider().map(Some).chain([None]));
        for wider in wider.map(|name| (zone, name)) {
            if guarding.is_shared(&wider, namespace) {
                self.admission.closed.entry(wider).or_insert(rule);
            }
        }
    }

    /// Whether a rule can keep its matches: conditions take a responder to answer with a status, and what is for
    /// requests with or without TLS alone takes more than that.
    fn keeps_in_place(&self, rule: RuleRef, placement: &Placement) -> bool {
        let matches = &self.lowering.routes[rule.route].route.rules[rule.rule].matches;
        let is_plain = matches.iter().all(|matched| matched.conditions.is_empty());
        (is_plain || self.lowering.options.responder.is_some())
            && !matches!(placement.audience, Ok(Audience::Tls | Audience::Plaintext))
    }
}

/// What guards are charged to.
struct Guarding<'a> {
    all: Ledger,
    namespaces: BTreeMap<&'a str, Ledger>,
    of_namespace: Size,
    /// The namespaces with admitted rules, by group.
    served: BTreeMap<Group, BTreeSet<&'a str>>,
    /// The namespaces that a guard was too large for, by group.
    tried: BTreeMap<Group, BTreeSet<&'a str>>,
}

impl<'a> Guarding<'a> {
    /// Whether another namespace has admitted rules in a group.
    fn is_shared(&self, group: &Group, namespace: &str) -> bool {
        self.served.get(group).is_some_and(|served| served.iter().any(|other| *other != namespace))
    }

    /// Charges a guard to a namespace. Returns whether there is room.
    fn charge(
        &mut self,
        namespace: &'a str,
        table: &mut TableSizes<'a>,
        add: impl FnOnce(&mut TableSizes<'a>, &mut Ledger) -> Option<()>,
    ) -> bool {
        let own = self.namespaces.entry(namespace).or_insert_with(|| Ledger::new(self.of_namespace));
        let mut ledger = own.within(&self.all);
        let before = ledger.left();
        if add(table, &mut ledger).is_none() {
            table.roll_back();
            return false;
        }
        table.commit();
        let left = ledger.left();
        let (bytes, entries) = (before.bytes - left.bytes, before.matcher_entries - left.matcher_entries);
        // There was room in both.
        own.take(bytes, entries).and_then(|()| self.all.take(bytes, entries)).is_some()
    }
}

/// Charges the rows of a rule that keeps its matches in a group and answers 503.
fn add_guard_rows<'a>(
    table: &mut TableSizes<'a>,
    lowering: &Lowering<'a>,
    rule: RuleRef,
    group: &Group,
    ledger: &mut Ledger,
) -> Option<()> {
    let input: &'a RouteInput = &lowering.routes[rule.route];
    let action = Action::status(UNAVAILABLE);
    table.add_upstreams(&action, ledger)?;
    input.route.rules[rule.rule].matches.iter().try_for_each(|matched| {
        let bytes = name_bytes(lowering, rule.route)
            + row_bytes(lowering, group.0, &matched.conditions, &action, None, None);
        let is_conditional = !matched.conditions.is_empty();
        let row = Sized { path: &matched.path, method: matched.method, is_conditional, bytes };
        table.add_row(group, row, ledger)
    })
}

/// Charges the guard of a group.
fn add_guard<'a>(
    table: &mut TableSizes<'a>,
    lowering: &Lowering<'a>,
    rule: RuleRef,
    group: &Group,
    ledger: &mut Ledger,
) -> Option<()> {
    table.add_upstreams(&Action::status(UNAVAILABLE), ledger)?;
    let bytes = STATUS + name_bytes(lowering, rule.route);
    table.add_row(group, Sized { path: &EVERY_PATH, method: None, is_conditional: false, bytes }, ledger)
}
