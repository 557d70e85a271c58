//! Which rules and certificates a data plane has room for.
//!
//! Objects are admitted oldest first. What each costs is charged before anything is built ([`super::table`]), to a budget
//! that older objects have been charged to alone. So nothing that is admitted is put out by younger objects. What does
//! not fit is refused, and the next one has its turn.

use std::collections::{BTreeMap, BTreeSet};

use super::admission::{Admission, Refused};
use super::certificates::{CertificateItem, certificate_items};
use super::ledger::{Ledger, part_of};
use super::table::{Sized, TableSizes, is_conditional, name_bytes, row_bytes};
use super::{Older, oldest_first};
use crate::attach::ServedName;
use crate::lower::document::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::rows::{Placement, PlaneRows, RouteInput};
use crate::lower::ssl::SslKey;
use crate::lower::table::Audience;
use crate::object::compare_age;
use crate::options::Budget;
use crate::resolve::Action;
use crate::route::{Match, Refusal};
use crate::translation::Size;
use crate::verdict::Reason;

/// One part of the budget in so many is for guards.
const GUARDS: usize = 16;

/// Decides what is admitted, with a budget that may be smaller than the one that is told.
pub(in crate::lower) fn admit<'a>(
    lowering: &Lowering<'a>,
    rows: &'a PlaneRows<'a>,
    budget: Budget,
) -> Admission {
    let places = rows.by_route();
    let mut admitting = Admitting {
        lowering: *lowering,
        places,
        table: TableSizes::new(*lowering),
        ledger: Ledger::default(),
        documents: BTreeSet::new(),
        admission: Admission {
            budget: lowering.options.budget,
            is_smaller: budget != lowering.options.budget,
            ..Admission::default()
        },
    };
    let room = room(budget);
    admitting.ledger = Ledger::new(room);
    if admitting.add_zone_guards().is_none() {
        admitting.table.roll_back();
        admitting.ledger = Ledger::default();
    }
    admitting.admit_oldest_first();
    let left = admitting.ledger.left();
    admitting.admission.charged =
        Size { bytes: room.bytes - left.bytes, matcher_entries: room.matcher_entries - left.matcher_entries };
    if !admitting.admission.refused.is_empty() {
        admitting.guard(part_of(budget, GUARDS));
    }
    admitting.admission
}

/// The room that there is for rules and certificates.
pub(super) fn room(budget: Budget) -> Size {
    let guards = part_of(budget, GUARDS);
    Size {
        bytes: budget.bytes - guards.bytes,
        matcher_entries: budget.matcher_entries - guards.matcher_entries,
    }
}

/// Something that is admitted as a whole.
enum Item<'a> {
    Certificate(CertificateItem<'a>),
    Rule(RuleRef),
}

/// An admission in the making.
pub(super) struct Admitting<'a> {
    pub(super) lowering: Lowering<'a>,
    /// The places of each route.
    pub(super) places: BTreeMap<usize, Vec<&'a Placement>>,
    pub(super) table: TableSizes<'a>,
    ledger: Ledger,
    /// The documents of certificates that are admitted.
    documents: BTreeSet<SslKey>,
    pub(super) admission: Admission,
}

impl<'a> Admitting<'a> {
    fn add_zone_guards(&mut self) -> Option<()> {
        let zones = self.lowering.plane.zones.iter().enumerate();
        let mut ledger = self.ledger;
        for (zone, _) in zones.filter(|(_, members)| members.guarded) {
            self.table.add_zone_guard(zone, &mut ledger)?;
        }
        self.table.commit();
        self.ledger = ledger;
        Some(())
    }

    fn admit_oldest_first(&mut self) {
        let room = self.ledger.left();
        for item in self.items() {
            let before = self.ledger;
            let added = match &item {
                Item::Certificate(item) => self.add_certificate(item),
                Item::Rule(rule) => self.add_rule(*rule),
            };
            if added.is_some() {
                self.table.commit();
                continue;
            }
            self.table.roll_back();
            self.ledger = before;
            let older = if before.left() == room { Older::None } else { Older::Admitted };
            match item {
                Item::Certificate(item) => self.refuse_certificate(&item, older),
                Item::Rule(rule) => {
                    self.admission.refused.insert(rule, Refused { older, in_place: BTreeSet::new() });
                }
            }
        }
    }

    /// What asks for room, oldest first. Of one object, certificates come first, then rules that end decision lists.
    fn items(&self) -> Vec<Item<'a>> {
        let routes = self.lowering.routes;
        let certificates = certificate_items(&self.lowering);
        let rules = oldest_first(routes, &self.places.keys().copied().collect());
        let mut items = Vec::with_capacity(certificates.len() + rules.len());
        let mut certificates = certificates.into_iter().peekable();
        for rule in rules {
            let route = &routes[rule.route].route;
            while let Some(item) = certificates
                .next_if(|item| compare_age((item.shown.age, item.owner()), (route.age, &route.key)).is_le())
            {
                items.push(Item::Certificate(item));
            }
            items.push(Item::Rule(rule));
        }
        items.extend(certificates.map(Item::Certificate));
        items
    }

    fn refuse_certificate(&mut self, item: &CertificateItem<'a>, older: Older) {
        let Budget { bytes, .. } = self.admission.budget;
        let plane = &self.lowering.plane.key;
        let why = match older {
            Older::None => "even without any other, its documents would exceed",
            Older::Admitted | Older::TooLarge(_) => "older objects use up",
        };
        let message = format!(
            "Data plane {plane} has no room for the certificate of Secret {}: {why} its budget of {bytes} bytes.",
            item.shown.certificate.secret
        );
        let refusal = Refusal::new(item.shown.certificate.at.clone(), Reason::BudgetExceeded, message);
        self.admission.certificate_refusals.push((item.owner().clone(), refusal));
        self.admission.certificates.extend(item.names.iter().map(|name| (*name).clone()));
    }

    /// Charges the names, and the rest of the document if this is its first certificate.
    fn add_certificate(&mut self, item: &CertificateItem<'a>) -> Option<()> {
        let is_new = !self.documents.contains(&item.document);
        let bytes = item.name_bytes.saturating_add(if is_new { item.document_bytes } else { 0 });
        self.ledger.take(bytes, 0)?;
        if is_new {
            self.documents.insert(item.document.clone());
        }
        Some(())
    }

    fn add_rule(&mut self, rule: RuleRef) -> Option<()> {
        let places = self.places.get(&rule.route).cloned().unwrap_or_default();
        let mut ledger = self.ledger;
        for placement in places {
            add_rows(&mut self.table, &self.lowering, rule, placement, &mut ledger)?;
        }
        self.ledger = ledger;
        Some(())
    }
}

/// What a rule does in a zone, and what a row of it, by match and name, adds to a list in bytes.
pub(in crate::lower) fn sized_rule(
    lowering: &Lowering<'_>,
    rule: RuleRef,
    placement: &Placement,
) -> (Action, impl Fn(&Match, &ServedName) -> usize) {
    let input = &lowering.routes[rule.route];
    let action = if placement.audience.is_ok() {
        input.rules[rule.rule].action.clone()
    } else {
        Action::status(input.route.traffic.failure())
    };
    let zone = placement.zone;
    let filters = input.route.rules[rule.rule].filters.as_deref();
    let of_row = action.clone();
    let name_of_route = name_bytes(lowering, rule.route);
    let bytes = move |matched: &Match, name: &ServedName| {
        let host = name.served.as_ref();
        name_of_route + row_bytes(lowering, zone, &matched.conditions, &of_row, filters, host)
    };
    (action, bytes)
}

/// Charges the rows of a rule in a zone.
fn add_rows<'a>(
    table: &mut TableSizes<'a>,
    lowering: &Lowering<'a>,
    rule: RuleRef,
    placement: &Placement,
    ledger: &mut Ledger,
) -> Option<()> {
    let input: &'a RouteInput = &lowering.routes[rule.route];
    let content = &input.route.rules[rule.rule];
    let (action, bytes_of) = sized_rule(lowering, rule, placement);
    table.add_upstreams(&action, ledger)?;
    let audience = placement.audience.unwrap_or(Audience::Everybody);
    let depends_on_host = content.filters.as_deref().is_some_and(|filters| filters.redirect.is_some());
    for matched in content.matches.iter() {
        let mut bytes = None;
        for name in &placement.names {
            let of_name = match bytes {
                Some(known) if !depends_on_host => known,
                Some(_) | None => bytes_of(matched, name),
            };
            bytes = Some(of_name);
            let row = Sized {
                path: &matched.path,
                method: matched.method,
                is_conditional: is_conditional(&matched.conditions, audience),
                bytes: of_name,
            };
            table.add_row(&(placement.zone, name.original.clone()), row, ledger)?;
        }
    }
    Some(())
}
