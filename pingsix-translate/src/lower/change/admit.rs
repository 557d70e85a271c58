//! The admission after a change, and the parts with other rows because of it.

use std::collections::BTreeSet;

use super::part::{PartKey, part_key};
use super::placement::parts_of;
use super::{LoweredPlane, LoweringDiff, Stale, Work};
use crate::attach::ServedName;
use crate::backends::Target;
use crate::lower::Size;
use crate::lower::budget::{Admission, RuleSizes, address_bytes, admit, route_bytes, upstream_bytes};
use crate::lower::closure::Pattern;
use crate::lower::host::{SPELLING, SPELLINGS};
use crate::lower::lowering::Lowering;
use crate::lower::plane::RuleRef;
use crate::lower::route_sizes::QUOTED;
use crate::lower::rows::{Placement, PlaneRows};
use crate::lower::service::service_bytes;
use crate::lower::table::host_of;
use crate::lower::upstream::UpstreamKey;
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
        if self.admission.is_smaller() {
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
        let now = admit_anew(lowering);
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
                self.admission = admit_anew(lowering);
                if !self.admission.is_all() {
                    return Err(Stale);
                }
            }
        }
        self.documents.set_charged_ratio(self.admission.charged_ratio());
        Ok(())
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
        let prefix = self.documents.prefix();
        let shared = self.admission.shared();
        let mut backends = changed.backends.iter().map(|index| UpstreamKey::Target(Target::Backend(*index)));
        let mut services = shared.services().filter(|(service, _)| service.has_any(changed.policies));
        changed.routes.iter().all(|(&route, change)| {
            change.is_there
                && change
                    .before
                    .as_ref()
                    .is_some_and(|before| before.is_charged_like(&lowering.routes[route]))
        }) && backends
            .all(|upstream| shared.is_upstream_alike(upstream, || upstream_bytes(lowering, prefix, upstream)))
            && services.all(|(service, bytes)| service_bytes(service, lowering.policies, prefix) == bytes)
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
    /// conditions that count for other rows, and hosts below wildcards.
    fn growth(&self, lowering: &Lowering<'_>, changed: LoweringDiff<'_>) -> Option<Size> {
        if !self.admission.is_all() || self.is_recertified || !self.unreached.is_empty() {
            return None;
        }
        // When a route goes, its charge for shared documents may pass to other namespaces.
        if self.admission.has_shares() && changed.routes.values().any(|change| change.before.is_some()) {
            return None;
        }
        let prefix = self.documents.prefix();
        let mut growth = Size::default();
        for backend in changed.backends {
            growth.bytes += upstream_bytes(lowering, prefix, UpstreamKey::Target(Target::Backend(*backend)));
        }
        for service in self.services_of(changed.policies) {
            growth.bytes += service_bytes(service, lowering.policies, prefix);
        }
        for (&route, change) in changed.routes {
            let now = Some(&lowering.routes[route]).filter(|_| change.is_there);
            for input in change.before.iter().chain(now) {
                for placement in self.placed.places(lowering.plane, input) {
                    let is_simple =
                        placement.names.iter().all(|name| self.is_simple(lowering, &placement, name));
                    is_simple.then_some(())?;
                }
            }
            for placement in now.into_iter().flat_map(|input| self.placed.places(lowering.plane, input)) {
                self.grow_by(lowering, route, &placement, prefix, &mut growth);
            }
        }
        self.grow_by_each_other(lowering, changed, &mut growth);
        Some(growth)
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
        is_plain && stands_alone && !zone.is_divided()
    }

    /// Adds the upper bound of a route's charge in a zone.
    fn grow_by(
        &self,
        lowering: &Lowering<'_>,
        route: usize,
        placement: &Placement,
        prefix: usize,
        growth: &mut Size,
    ) {
        let input = &lowering.routes[route];
        let zone = &lowering.plane.zones[placement.zone];
        let (hostname, address) = (zone.hostname.as_ref(), address_bytes(zone));
        for (rule, content) in input.route.rules.iter().enumerate() {
            let sizes = RuleSizes::new(lowering, RuleRef { route, rule }, placement);
            for (target, _) in &sizes.action.targets {
                for upstream in [UpstreamKey::Target(*target), UpstreamKey::Nowhere] {
                    if !self.naming.upstreams.named.is_used(&upstream) {
                        growth.bytes += upstream_bytes(lowering, prefix, upstream);
                    }
                }
            }
            for service in sizes.services().filter(|service| !self.naming.services.is_used(service)) {
                growth.bytes += service_bytes(&service, lowering.policies, prefix);
            }
            for (matched, name, bytes) in sizes.rows(&content.matches, &placement.names) {
                let host = host_of(name.original.as_ref(), hostname);
                let (patterns, listed) = self.patterns.listed_with(host.as_ref(), &matched.path);
                growth.bytes += prefix + route_bytes(matched.method) + bytes + address;
                let hosts = host.as_ref().map_or(0, |host| host.as_str().len()) + QUOTED + patterns;
                growth.bytes += hosts;
                growth.matcher_entries += listed * lowering.hosts_of_host();
                if sizes.has_spellings {
                    growth.bytes += (hosts + SPELLING) * SPELLINGS;
                }
                if let Some((path, name)) = sizes.path_spellings(&matched.path) {
                    let (patterns, listed) = self.patterns.listed_with(host.as_ref(), &path);
                    let host = host.as_ref().map_or(0, |host| host.as_str().len()) + QUOTED;
                    growth.bytes += prefix + route_bytes(None) + name + address + host + patterns;
                    if lowering.may_spell() {
                        growth.bytes += (host + patterns + SPELLING) * SPELLINGS;
                    }
                    growth.matcher_entries += listed * lowering.hosts_of_host();
                }
            }
        }
    }

    /// Adds the upper bound of the charge for the patterns that the changed routes list for each other.
    fn grow_by_each_other(&self, lowering: &Lowering<'_>, changed: LoweringDiff<'_>, growth: &mut Size) {
        let (mut own, mut times) = (Vec::new(), 0_usize);
        for (&route, _) in changed.routes.iter().filter(|(_, change)| change.is_there) {
            let input = &lowering.routes[route];
            let places = self.placed.places(lowering.plane, input);
            let names: usize = places.into_iter().map(|placement| placement.names.len()).sum();
            let mut add = |path: &Path| {
                let patterns = Pattern::of(Some(path));
                let catch_alls = patterns.iter().filter(|pattern| pattern.catch_all).count();
                times = times.saturating_add(catch_alls.saturating_mul(names));
                own.extend(patterns);
            };
            for (rule, content) in input.route.rules.iter().enumerate() {
                for matched in &*content.matches {
                    add(&matched.path);
                    let spellings = matched.path.spellings().filter(|_| input.is_protected(rule));
                    spellings.iter().for_each(&mut add);
                }
            }
        }
        let bytes: usize = own.iter().map(Pattern::listed_len).sum();
        growth.bytes = growth.bytes.saturating_add(bytes.saturating_mul(times));
        let entries = own.len().saturating_mul(times).saturating_mul(lowering.hosts_of_host());
        growth.matcher_entries = growth.matcher_entries.saturating_add(entries);
    }
}

/// The admission of all rules and certificates of a data plane.
fn admit_anew(lowering: &Lowering<'_>) -> Admission {
    let rows = PlaneRows::new(lowering.plane, lowering.routes);
    admit(lowering, &rows, lowering.options.budget)
}
