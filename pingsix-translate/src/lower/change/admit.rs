//! The admission after a change, and the parts with other rows because of it.

use std::collections::BTreeSet;

use super::part::{PartKey, part_key};
use super::placement::parts_of;
use super::{LoweredPlane, LoweringDiff, Stale, Work};
use crate::attach::ServedName;
use crate::backends::Target;
use crate::lower::Size;
use crate::lower::budget::{Admission, RuleSizes, TableSizes, admit, oldest_first};
use crate::lower::lowering::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::room::Room;
use crate::lower::rows::Placement;
use crate::lower::shared::SharedKey;
use crate::lower::table::host_of;
use crate::normalise::Path;

impl LoweredPlane {
    /// Repeats the admission. Adds the parts with other rows than before, and the routes with other refusals.
    pub(super) fn admit(
        &mut self,
        lowering: &Lowering<'_>,
        changed: LoweringDiff<'_>,
        parts: &mut BTreeSet<PartKey>,
        work: &mut Work,
    ) -> Result<(), Stale> {
        if self.admission.is_smaller {
            return Err(Stale);
        }
        if !self.is_recertified && !self.concerns(lowering, changed) {
            return Ok(());
        }
        if self.has_charges_as_before(lowering, changed) {
            return Ok(());
        }
        if let Some(growth) = self.growth(lowering, changed)
            && self.admission.grow(growth)
        {
            work.growth = Some(growth);
            return Ok(());
        }
        let now = self.admit_anew(lowering);
        if !now.has_certificates_of(&self.admission) {
            return Err(Stale);
        }
        let before = std::mem::replace(&mut self.admission, now);
        self.is_recertified = false;
        self.find_parts(&before, lowering, parts, work);
        Ok(())
    }

    /// Updates the charged part of the budget after a change of documents. When a noticeable part of the charge is
    /// outdated, the admission is repeated, so a table that changes for a long time does not seem to be full.
    pub(super) fn update_charge(
        &mut self,
        lowering: &Lowering<'_>,
        before: Size,
        work: &Work,
    ) -> Result<(), Stale> {
        if let Some(growth) = work.growth {
            self.admission.age(growth, before, self.data_plane().size);
            if self.admission.is_outdated() {
                self.admission = self.admit_anew(lowering);
                if !self.admission.is_all() {
                    return Err(Stale);
                }
            }
        }
        self.documents.data_plane.charged_ratio = self.admission.charged_ratio();
        Ok(())
    }

    /// The admission of all rules and certificates of a data plane.
    fn admit_anew(&self, lowering: &Lowering<'_>) -> Admission {
        admit(lowering, &self.placed.all(lowering), lowering.options.budget)
    }

    /// Whether a change concerns routes or backends of the data plane.
    fn concerns(&self, lowering: &Lowering<'_>, changed: LoweringDiff<'_>) -> bool {
        let is_placed = |input| !self.placed.places(lowering.plane, input).is_empty();
        !changed.backends.is_empty()
            || !changed.policies.is_empty()
            || changed.routes.iter().any(|(&route, change)| {
                let now = Some(&lowering.routes[route]).filter(|_| change.is_there);
                change.before.iter().chain(now).any(|input| is_placed(input))
            })
    }

    /// Whether nothing has another charge than in an admission that refuses something. Then it refuses the same again.
    fn has_charges_as_before(&self, lowering: &Lowering<'_>, changed: LoweringDiff<'_>) -> bool {
        if self.admission.is_all() || self.is_recertified {
            return false;
        }
        let prefix = self.documents.prefix;
        let shared = &self.admission.shared;
        let upstreams = changed.backends.iter().map(|index| SharedKey::Upstream(Target::Backend(*index)));
        let upstreams = upstreams.filter_map(|key| Some((shared.get_key_value(&key)?.0, *shared.get(&key)?)));
        let services = shared.range(SharedKey::Status(0)..).map(|(key, bytes)| (key, *bytes));
        let services = services.filter(|(key, _)| key.has_any(changed.policies));
        changed.routes.iter().all(|(&route, change)| {
            change.is_there
                && change
                    .before
                    .as_ref()
                    .is_some_and(|before| before.is_charged_like(&lowering.routes[route]))
        }) && upstreams.chain(services).all(|(key, bytes)| key.bytes(lowering, prefix) == bytes)
    }

    /// Finds the parts with other rows because of the admission.
    fn find_parts(
        &self,
        before: &Admission,
        lowering: &Lowering<'_>,
        parts: &mut BTreeSet<PartKey>,
        work: &mut Work,
    ) {
        let now = &self.admission;
        for rule in now.differing_rules(before) {
            work.to_judge.insert(rule.route);
            let Some(input) = lowering.routes.get(rule.route).filter(|input| input.is_there()) else {
                continue;
            };
            for placement in self.placed.places(lowering.plane, input) {
                parts.extend(parts_of(input, &placement));
            }
        }
        for (zone, original) in now.differing_guards(before) {
            parts.insert(part_key(zone, original.as_ref(), ""));
        }
        for (zone, original) in now.differing_closed(before) {
            for (segment, part) in self.placed.parts.of_group(zone, original.as_ref()) {
                parts.insert(part_key(zone, original.as_ref(), segment));
                work.to_judge.extend(part.routes.iter().copied());
            }
        }
    }

    /// An upper bound of the additional charge of a change, without the charge of removed rows. `None` if the
    /// admission refuses anything, or if the change may affect the charge of other routes: certificates, rows with
    /// conditions that count for other rows, rows that are never reached, and hosts below wildcards.
    fn growth(&self, lowering: &Lowering<'_>, changed: LoweringDiff<'_>) -> Option<Size> {
        if !self.admission.is_all() || self.is_recertified {
            return None;
        }
        // When a route goes, its charge for shared documents may pass to other namespaces.
        if self.admission.share.is_some() && changed.routes.values().any(|change| change.before.is_some()) {
            return None;
        }
        let (mut table, mut ledger) = (TableSizes::new(*lowering), Room::unlimited());
        let backends = changed.backends.iter().map(|backend| SharedKey::Upstream(Target::Backend(*backend)));
        table.add_shared(backends, &mut ledger)?;
        let services = self.naming.services_of(changed.policies).cloned();
        table.add_shared(services, &mut ledger)?;
        for (&route, change) in changed.routes {
            let now = Some(&lowering.routes[route]).filter(|_| change.is_there);
            for input in change.before.iter().chain(now) {
                for placement in self.placed.places(lowering.plane, input) {
                    let is_simple =
                        placement.names.iter().all(|name| self.is_simple(lowering, &placement, name));
                    is_simple.then_some(())?;
                }
            }
        }
        let present = changed.routes.iter().filter(|(_, change)| change.is_there).map(|(route, _)| *route);
        for rule in oldest_first(lowering.routes, &present.collect()) {
            for placement in self.placed.places(lowering.plane, &lowering.routes[rule.route]) {
                let sizes = RuleSizes::new(lowering, rule, &placement);
                let shared = sizes.shared().filter(|shared| !self.naming.exists(shared));
                table.add_shared(shared, &mut ledger)?;
                table.add_rows(rule, &placement, &sizes, &mut ledger)?;
                self.add_listed(lowering, rule, &placement, &sizes, &mut ledger)?;
            }
        }
        Some(ledger.used_of(Room::unlimited().left()))
    }

    /// Whether only the rows of one hostname determine the charge of a route's rows.
    fn is_simple(&self, lowering: &Lowering<'_>, placement: &Placement, name: &ServedName) -> bool {
        let zone = &self.placed.zones[placement.zone];
        let host = host_of(name.original.as_ref(), lowering.plane.zones[placement.zone].hostname.as_ref());
        let is_plain = match &name.original {
            Some(original) if !original.is_wildcard() => !zone.conditional.contains_key(&name.original),
            Some(_) | None => zone.conditional.is_empty(),
        };
        let stands_alone = host.as_ref().is_none_or(|host| {
            !host.is_wildcard() && host.wider().all(|wider| !self.patterns.has(Some(&wider)))
        });
        let has_unreached = || self.unreached_of(placement.zone, name.original.as_ref()).next().is_some();
        is_plain && stands_alone && !zone.is_divided() && !has_unreached()
    }

    /// Charges the patterns that the Routes of a rule and the others of their hosts list for each other.
    fn add_listed(
        &self,
        lowering: &Lowering<'_>,
        rule: RuleRef,
        placement: &Placement,
        sizes: &RuleSizes<'_>,
        ledger: &mut Room,
    ) -> Option<()> {
        let hostname = lowering.plane.zones[placement.zone].hostname.as_ref();
        for matched in &*lowering.rule(rule).1.matches {
            let spellings = sizes.path_spellings(&matched.path).map(|(path, _)| path);
            for name in &placement.names {
                let host = host_of(name.original.as_ref(), hostname);
                let mut add = |path: &Path| {
                    let (bytes, count) = self.patterns.listed_with(host.as_ref(), path);
                    // Any of the Routes that list each other may have other spellings of the host.
                    let times = lowering.hosts_of_host();
                    ledger.take(bytes * times, count * times)
                };
                add(&matched.path)?;
                spellings.iter().try_for_each(add)?;
            }
        }
        Some(())
    }
}
