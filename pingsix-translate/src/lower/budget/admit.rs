//! Admission of rules and certificates to a data plane.
//!
//! Objects are admitted oldest first. The charge of each is computed before documents are built ([`super::table`]),
//! to a budget with the charges of older objects alone. So younger objects never displace an admitted one. An object
//! that does not fit is refused, and the next one follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admission::{Admission, Refused, UNAVAILABLE};
use super::certificates::{CertificateItem, certificate_items};
use super::row_sizes::telemetry_bytes;
use super::rule_sizes::RuleSizes;
use super::share::{Share, Shares};
use super::table::TableSizes;
use super::{GUARDS, OlderRules, oldest_first, room};
use crate::lower::Size;
use crate::lower::lowering::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::room::Room;
use crate::lower::rows::Places;
use crate::lower::ssl::SslKey;
use crate::model::{Age, Budget, FieldPath, ObjectKey, Reason, Refusal, Traffic, compare_age};

/// Decides the admission with a budget that may be smaller than the reported one.
pub(in crate::lower) fn admit<'a>(lowering: &Lowering<'a>, places: &'a Places, budget: Budget) -> Admission {
    let mut admitting = Admitting {
        lowering: *lowering,
        places,
        table: TableSizes::new(*lowering),
        ledger: Room::default(),
        shares: Shares::default(),
        documents: BTreeSet::new(),
        admission: Admission {
            budget: lowering.options.budget,
            is_smaller: budget != lowering.options.budget,
            ..Admission::default()
        },
    };
    let room = room(budget);
    let telemetry = Size { bytes: telemetry_bytes(lowering), matcher_entries: 0 };
    admitting.ledger = Room::new(room.with(telemetry, usize::saturating_sub));
    admitting.charge_failures();
    admitting.shares =
        Shares::new(Share::of(lowering.plane.settings.namespace_share, admitting.ledger.left()));
    admitting.admit_oldest_first();
    admitting.admission.room = room;
    admitting.admission.charged = admitting.ledger.used_of(room);
    admitting.admission.share = admitting.shares.share();
    admitting.admission.most_of_share = admitting.shares.most_used();
    admitting.admission.problems.extend(admitting.shares.warnings(&lowering.plane.key));
    if !admitting.admission.refused.is_empty() || !admitting.admission.unguarded.is_empty() {
        admitting.guard(Size::of(budget).part(GUARDS));
    }
    if !admitting.admission.is_all() {
        admitting.add_shared_of_refused();
        admitting.admission.shared = admitting.table.take_shared();
    }
    admitting.admission
}

/// Something that is admitted as a whole.
enum Item<'a> {
    /// The guard of a zone, and whose listener it is.
    ZoneGuard(usize, &'a Arc<ObjectKey>),
    Certificate(CertificateItem<'a>),
    Rule(RuleRef),
}

/// An admission in the making.
pub(super) struct Admitting<'a> {
    pub(super) lowering: Lowering<'a>,
    pub(super) places: &'a Places,
    pub(super) table: TableSizes<'a>,
    ledger: Room,
    shares: Shares<'a>,
    /// The documents of certificates that are admitted.
    documents: BTreeSet<SslKey>,
    pub(super) admission: Admission,
}

impl<'a> Admitting<'a> {
    /// Charges the answers of rules that fail, and of closed ones, as far as there is room.
    fn charge_failures(&mut self) {
        for status in [Traffic::Http.failure(), UNAVAILABLE] {
            let mut ledger = self.ledger;
            if self.table.add_status(status, &mut ledger).is_some() {
                self.ledger = ledger;
                self.table.commit();
            } else {
                self.table.roll_back();
            }
        }
    }

    fn admit_oldest_first(&mut self) {
        let room = self.ledger.left();
        for item in self.items() {
            let object = self.object_of(&item);
            let own = self.shares.left(&object.name.namespace);
            let mut ledger = own.map_or(self.ledger, |own| own.within(&self.ledger));
            let whole = ledger.left();
            if self.add(&item, &mut ledger).is_some() {
                let taken = ledger.used_of(whole);
                self.table.commit();
                if let Item::Certificate(item) = &item {
                    self.documents.insert(item.document.clone());
                }
                // There is room in both.
                self.ledger.take_size(taken).unwrap_or_default();
                self.shares.take(object, taken);
                continue;
            }
            self.table.roll_back();
            let older_than =
                |left: Size, whole: Size| if left == whole { OlderRules::None } else { OlderRules::Admitted };
            let mut older = older_than(self.ledger.left(), room);
            let share = self.shares.share().filter(|_| self.fits_without_share(&item));
            if let Some((share, own)) = share.zip(own) {
                older = older_than(own.left(), share.size);
            }
            match item {
                Item::ZoneGuard(zone, owner) => self.refuse_zone_guard(zone, owner),
                Item::Certificate(item) => self.refuse_certificate(&item, older, share),
                Item::Rule(rule) => {
                    self.admission.refused.insert(rule, Refused { older, share, in_place: BTreeMap::new() });
                }
            }
        }
    }

    /// Whether an item would fit without the share of its namespace.
    fn fits_without_share(&mut self, item: &Item<'a>) -> bool {
        let mut ledger = self.ledger;
        let fits = self.add(item, &mut ledger).is_some();
        self.table.roll_back();
        fits
    }

    /// Adds the upstreams and services that refused rules would need, without a charge.
    fn add_shared_of_refused(&mut self) {
        let mut unlimited = Room::unlimited();
        for &rule in self.admission.refused.keys() {
            for placement in self.places.get(&rule.route).into_iter().flatten() {
                let sizes = RuleSizes::new(&self.lowering, rule, placement);
                self.table.add_shared(sizes.shared(), &mut unlimited).unwrap_or_default();
            }
        }
    }

    /// The object that an item is charged to.
    fn object_of(&self, item: &Item<'a>) -> &'a Arc<ObjectKey> {
        match item {
            Item::ZoneGuard(_, owner) => owner,
            Item::Certificate(item) => item.owner(),
            Item::Rule(rule) => &self.lowering.rule(*rule).0.route.key,
        }
    }

    /// Charges an item to a ledger. `None` without room; the caller then rolls back.
    fn add(&mut self, item: &Item<'a>, ledger: &mut Room) -> Option<()> {
        match item {
            Item::ZoneGuard(zone, _) => self.table.add_zone_guard(*zone, ledger),
            Item::Certificate(item) => {
                // The names, and the rest of the document if this is its first certificate.
                let is_new = !self.documents.contains(&item.document);
                ledger.take(item.name_bytes.saturating_add(if is_new { item.document_bytes } else { 0 }), 0)
            }
            Item::Rule(rule) => {
                let mut places = self.places.get(&rule.route).into_iter().flatten();
                places.try_for_each(|placement| {
                    let sizes = RuleSizes::new(&self.lowering, *rule, placement);
                    self.table.add_shared(sizes.shared(), ledger)?;
                    self.table.add_rows(*rule, placement, &sizes, ledger)
                })
            }
        }
    }

    /// The items that need room, oldest first. Within one object, guards and certificates come first, then rules that
    /// end decision lists.
    fn items(&self) -> Vec<Item<'a>> {
        let Lowering { plane, routes, .. } = self.lowering;
        let zones = plane.zones.iter().enumerate().filter(|(_, zone)| zone.guarded);
        let guards = zones.filter_map(|(zone, members)| {
            let (age, owner) = members.owner.as_ref()?;
            Some((*age, owner, Item::ZoneGuard(zone, owner)))
        });
        let certificates = certificate_items(&self.lowering).into_iter();
        let certificates = certificates.map(|item| (item.shown.age, item.owner(), Item::Certificate(item)));
        let mut first: Vec<(Age, &'a Arc<ObjectKey>, Item<'a>)> = guards.chain(certificates).collect();
        first.sort_by(|one, other| compare_age((one.0, one.1), (other.0, other.1)));
        let rules = oldest_first(routes, &self.places.keys().copied().collect());
        let mut items = Vec::with_capacity(first.len() + rules.len());
        let mut first = first.into_iter().peekable();
        for rule in rules {
            let route = &routes[rule.route].route;
            while let Some((.., item)) =
                first.next_if(|(age, owner, _)| compare_age((*age, owner), (route.age, &route.key)).is_le())
            {
                items.push(item);
            }
            items.push(Item::Rule(rule));
        }
        items.extend(first.map(|(.., item)| item));
        items
    }

    fn refuse_zone_guard(&mut self, zone: usize, owner: &Arc<ObjectKey>) {
        let hostname = self.lowering.plane.zones[zone].hostname.as_ref().map(ToString::to_string);
        let message = format!(
            "Data plane {} has no room for the guard of {}; rules for wider hostnames are answered with 503.",
            self.lowering.plane.key,
            hostname.unwrap_or_default()
        );
        let at = FieldPath::new("spec").child("listeners");
        self.admission.problems.push(Refusal::new(at, Reason::BudgetExceeded, message).of(owner));
        self.admission.unguarded.insert(zone);
    }

    fn refuse_certificate(&mut self, item: &CertificateItem<'a>, older: OlderRules, share: Option<Share>) {
        let plane = &self.lowering.plane.key;
        let why = match older {
            OlderRules::None => "the documents of the certificate alone exceed",
            OlderRules::Admitted | OlderRules::TooLarge(_) => "older objects use up",
        };
        let (bound, reason) = match share {
            Some(share) => (share.named(&item.owner().name.namespace), Reason::ShareExceeded),
            None => (format!("its budget of {} bytes", self.admission.budget.bytes), Reason::BudgetExceeded),
        };
        let message = format!(
            "Data plane {plane} has no room for the certificate of Secret {}: {why} {bound}.",
            item.shown.certificate.secret
        );
        let refusal = Refusal::new(item.shown.certificate.at.clone(), reason, message);
        self.admission.certificate_refusals.push((item.owner().clone(), refusal));
        self.admission.certificates.extend(item.names.iter().map(|name| (*name).clone()));
    }
}
