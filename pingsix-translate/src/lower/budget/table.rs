//! The size of a table of rows, known before the table is built.
//!
//! A cell costs a Route, and a row costs its addition to a decision list. A list without an unconditional row of its
//! own cell continues in other cells ([`crate::lower::table`]): such a cell is **open** here, and every row of
//! another cell that may be in its lists is charged to it too, for each of its **regions**, the Routes that continue
//! it. Each pair is charged once, to the later of the two. The sum is never less than the compiled table.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::Group;
use super::patterns::PatternSizes;
use super::row_sizes::{address_bytes, is_conditional, route_bytes};
use super::rule_sizes::RuleSizes;
use crate::backends::{Action, Target};
use crate::lower::host::{SPELLING, SPELLINGS};
use crate::lower::lowering::Lowering;
use crate::lower::path_map::{PathMap, Region};
use crate::lower::plane::{MISDIRECTED, Misdirected, RuleRef};
use crate::lower::room::Room;
use crate::lower::route_sizes::ROUTE_SIZES;
use crate::lower::rows::{MISSPELLED, Placement};
use crate::lower::shared::SharedKey;
use crate::lower::table::{RequestScheme, host_of};
use crate::model::{Hostname, hostname_and_wider, hostname_covers};
use crate::normalise::Path;

/// A row, as far as sizes depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizedRow<'a> {
    pub(super) region: Region<'a>,
    /// Whether requests may go on after it.
    pub(super) is_conditional: bool,
    /// Whether the Routes of its hostname that it stands in list other spellings of their hosts. Open cells are charged for
    /// these anyway.
    pub(super) has_spellings: bool,
    /// Bytes that it adds to each list it stands in.
    pub(super) bytes: usize,
    /// Bytes of the name of a Route for other spellings of its path; `None` if the row is not protected.
    pub(super) path_spellings: Option<usize>,
}

/// The tables of all zones of a data plane.
pub(in crate::lower) struct TableSizes<'a> {
    lowering: Lowering<'a>,
    /// Length of the prefix of all keys.
    prefix: usize,
    patterns: PatternSizes,
    /// By zone.
    zones: Vec<Zone<'a>>,
    /// The charges of shared documents.
    shared: BTreeMap<SharedKey, usize>,
    /// Whether any Route may list other spellings of its hosts.
    may_spell: bool,
    /// The inverses of the additions since the last [`commit`](Self::commit), for a rollback.
    journal: Vec<Inverse<'a>>,
}

type Inverse<'a> = Box<dyn FnOnce(&mut TableSizes<'a>) + 'a>;

#[derive(Default)]
struct Zone<'a> {
    groups: BTreeMap<Option<Hostname>, PathMap<'a, Cell>>,
    /// Open cells by group.
    open: BTreeMap<Option<Hostname>, Vec<Open<'a>>>,
}

impl<'a> Zone<'a> {
    /// The groups with rows for a hostname: its own, and those with wider names.
    fn counting<'z>(
        &'z self,
        original: Option<&'z Hostname>,
    ) -> impl Iterator<Item = (&'z Option<Hostname>, &'z PathMap<'a, Cell>)> {
        hostname_and_wider(original).filter_map(|name| self.groups.get_key_value(&name))
    }
}

/// Rows of a group with one path and method.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    rows: usize,
    /// Bytes of its rows in a list.
    bytes: usize,
    /// Whether a row ends its list.
    is_closed: bool,
    is_open: bool,
    charged: ChargedSpellings,
}

/// The other spellings for which a cell is charged.
#[derive(Clone, Copy, Debug, Default)]
struct ChargedSpellings {
    /// Those of the hosts of its Routes.
    of_hosts: bool,
    /// Those of its path, which may have a Route.
    of_path: bool,
}

/// A cell whose list goes on in others.
struct Open<'a> {
    region: Region<'a>,
    /// The Routes that continue it, itself included.
    regions: BTreeSet<Region<'a>>,
}

impl<'a> TableSizes<'a> {
    pub(in crate::lower) fn new(lowering: Lowering<'a>) -> Self {
        let prefix = lowering.prefix();
        Self {
            lowering,
            prefix,
            patterns: PatternSizes::default(),
            zones: lowering.plane.zones.iter().map(|_| Zone::default()).collect(),
            shared: BTreeMap::new(),
            may_spell: lowering.may_spell(),
            journal: Vec::new(),
        }
    }

    /// Charges the guard of a zone.
    pub(super) fn add_zone_guard(&mut self, zone: usize, ledger: &mut Room) -> Option<()> {
        ledger.take(self.prefix + ROUTE_SIZES.route, 0)?;
        self.add_address(zone, ledger)?;
        let is_misdirected = self.lowering.plane.zones[zone].misdirected == Some(Misdirected::All);
        self.add_status(if is_misdirected { MISDIRECTED } else { 404 }, ledger)?;
        self.patterns.add_route(self.lowering.plane.zones[zone].hostname.as_ref(), None, 0, ledger)
    }

    /// Charges the rows of a rule in a zone. `None` without room; the caller then rolls back.
    pub(in crate::lower) fn add_rows(
        &mut self,
        rule: RuleRef,
        placement: &Placement,
        sizes: &RuleSizes<'a>,
        ledger: &mut Room,
    ) -> Option<()> {
        let (_, content) = self.lowering.rule(rule);
        let scheme = placement.scheme.unwrap_or(RequestScheme::Any);
        for (matched, name, bytes) in sizes.rows(&content.matches, &placement.names) {
            let row = SizedRow {
                region: Region { path: &matched.path, method: matched.method },
                is_conditional: is_conditional(&matched.conditions, scheme),
                has_spellings: sizes.has_spellings,
                bytes,
                path_spellings: sizes.path_spellings(&matched.path).map(|(_, name)| name),
            };
            self.add_row(&(placement.zone, name.original.clone()), row, ledger)?;
        }
        Some(())
    }

    /// Charges a row of a group to a ledger. `None` without room; the caller then rolls back.
    pub(super) fn add_row(&mut self, group: &Group, row: SizedRow<'a>, ledger: &mut Room) -> Option<()> {
        let (zone, original) = (group.0, &group.1);
        let SizedRow { region, is_conditional, has_spellings, bytes, path_spellings } = row;
        let Region { path, method } = region;
        let state = self.zones[zone].groups.entry(original.clone()).or_default().entry(region);
        let before = *state;
        let is_new = state.rows == 0;
        let is_reached = is_conditional || !state.is_closed;
        let added = if is_reached { bytes } else { 0 };
        state.rows += 1;
        state.bytes += added;
        state.is_closed |= !is_conditional;
        let opens = is_conditional && !state.is_closed && !state.is_open;
        state.is_open |= opens;
        let spells = has_spellings && !state.charged.of_hosts;
        state.charged.of_hosts |= has_spellings;
        let path_spellings = path_spellings.filter(|_| !state.charged.of_path);
        state.charged.of_path |= path_spellings.is_some();
        let name = original.clone();
        self.journal.push(Box::new(move |sizes| {
            *sizes.zones[zone].groups.entry(name).or_default().entry(region) = before;
        }));
        ledger.take(added, 0)?;
        if is_new {
            self.add_route(group, path, method, ledger)?;
        }
        if spells {
            self.add_spellings(group, path, ledger)?;
        }
        if let Some(name) = path_spellings {
            self.add_path_spellings(group, path, name, ledger)?;
        }
        self.continue_others(group, region, is_new, added, ledger)?;
        if opens {
            self.open(group, region, ledger)?;
        }
        Some(())
    }

    fn add_route(
        &mut self,
        (zone, original): &Group,
        path: &'a Path,
        method: Option<&'static str>,
        ledger: &mut Room,
    ) -> Option<()> {
        ledger.take(self.prefix + route_bytes(method), 0)?;
        self.add_address(*zone, ledger)?;
        let host = host_of(original.as_ref(), self.lowering.plane.zones[*zone].hostname.as_ref());
        self.patterns.add_route(host.as_ref(), Some(path), 0, ledger)
    }

    /// Charges the other spellings of the hosts of a Route: for each, as much as a Route's hosts and patterns.
    fn add_spellings(&mut self, (zone, original): &Group, path: &Path, ledger: &mut Room) -> Option<()> {
        let zone = &self.lowering.plane.zones[*zone];
        let Some(host) = host_of(original.as_ref(), zone.hostname.as_ref()) else { return Some(()) };
        for _ in 0..SPELLINGS {
            self.patterns.add_route(Some(&host), Some(path), SPELLING, ledger)?;
        }
        Some(())
    }

    /// Charges the Route for other spellings of a path, with the bytes of its name.
    fn add_path_spellings(
        &mut self,
        group: &Group,
        path: &Path,
        name: usize,
        ledger: &mut Room,
    ) -> Option<()> {
        let (zone, original) = group;
        let Some(path) = path.spellings() else { return Some(()) };
        ledger.take(self.prefix + route_bytes(None) + name, 0)?;
        self.add_address(*zone, ledger)?;
        self.add_status(MISSPELLED, ledger)?;
        let host = host_of(original.as_ref(), self.lowering.plane.zones[*zone].hostname.as_ref());
        self.patterns.add_route(host.as_ref(), Some(&path), 0, ledger)?;
        if self.may_spell { self.add_spellings(group, &path, ledger) } else { Some(()) }
    }

    /// Charges the rule of a Route for requests that came in at another address, and its upstream.
    fn add_address(&mut self, zone: usize, ledger: &mut Room) -> Option<()> {
        let zone = &self.lowering.plane.zones[zone];
        if zone.address().is_none() {
            return Some(());
        }
        ledger.take(address_bytes(zone), 0)?;
        let upstreams = [SharedKey::Upstream(Target::Status(MISDIRECTED)), SharedKey::Nowhere];
        self.add_shared(upstreams, ledger)
    }

    /// Charges the additions of a new row to the lists of open cells, except its own.
    fn continue_others(
        &mut self,
        (zone, original): &Group,
        region: Region<'a>,
        is_new: bool,
        bytes: usize,
        ledger: &mut Room,
    ) -> Option<()> {
        let open = &self.zones[*zone].open;
        // The group's own cells and those of narrower groups.
        let groups: Vec<Option<Hostname>> = match original {
            Some(name) if !name.is_wildcard() => {
                open.get(original).map(|_| original.clone()).into_iter().collect()
            }
            _ => {
                let is_below = |name: &&Option<Hostname>| hostname_covers(original.as_ref(), name.as_ref());
                open.keys().filter(is_below).cloned().collect()
            }
        };
        for group in groups {
            let is_own = group == *original;
            let group = (*zone, group);
            for index in 0..self.zones[*zone].open.get(&group.1).map_or(0, Vec::len) {
                let Some(open) = self.zones[*zone].open.get(&group.1).and_then(|of| of.get(index)) else {
                    break;
                };
                let (own, path) = (open.region, region.path);
                let is_related = path.covers(own.path) || own.path.covers(path);
                if !is_related || (is_own && own == region) || !own.meets(region.method) {
                    continue;
                }
                let lists = open.regions.iter().filter(|other| path.covers(other.path)).count();
                ledger.take(bytes.saturating_mul(lists), 0)?;
                if is_new {
                    self.add_regions(&group, index, ledger)?;
                }
            }
        }
        Some(())
    }

    /// Charges the continuation of a cell that becomes open.
    fn open(&mut self, group: &Group, region: Region<'a>, ledger: &mut Room) -> Option<()> {
        let open = Open { region, regions: BTreeSet::from([region]) };
        let of_group = self.zones[group.0].open.entry(group.1.clone()).or_default();
        of_group.push(open);
        let index = of_group.len() - 1;
        let (zone, original) = group.clone();
        self.journal.push(Box::new(move |sizes| {
            sizes.zones[zone].open.entry(original).or_default().pop();
        }));
        ledger.take(ROUTE_SIZES.split + self.listed(group, region.path), 0)?;
        if self.may_spell {
            // Its list may go on in a protected row.
            self.add_spellings(group, region.path, ledger)?;
        }
        self.add_regions(group, index, ledger)
    }

    /// Bytes of the rows in the continuation of a list for a path: at most those of all cells that cover it.
    fn listed(&self, (zone, original): &Group, path: &Path) -> usize {
        let cells = self.zones[*zone].counting(original.as_ref()).flat_map(|(_, cells)| cells.covering(path));
        cells.map(|(_, cell)| cell.bytes).sum()
    }

    /// Charges the new Routes that continue an open cell: where rows of wider hostnames begin to count, or rows with
    /// a method.
    fn add_regions(&mut self, group: &Group, index: usize, ledger: &mut Room) -> Option<()> {
        let (zone, original) = (&self.zones[group.0], &group.1);
        let Open { region: Region { path, method }, regions } = zone.open.get(original)?.get(index)?;
        let (path, method) = (*path, *method);
        let mut paths: BTreeSet<&'a Path> = BTreeSet::from([path]);
        for (_, cells) in zone.counting(original.as_ref()).filter(|(name, _)| *name != original) {
            let below = cells.below(path).filter(|(region, cell)| cell.rows > 0 && region.meets(method));
            paths.extend(below.map(|(region, _)| region.path));
        }
        let mut new: Vec<Region<'a>> = Vec::new();
        for path in paths {
            let mut methods = BTreeSet::from([method]);
            if method.is_none() {
                let covering = zone.counting(original.as_ref()).flat_map(|(_, cells)| cells.covering(path));
                methods.extend(covering.filter(|(_, cell)| cell.rows > 0).map(|(region, _)| region.method));
            }
            let of_path = methods.into_iter().map(|method| Region { path, method });
            new.extend(of_path.filter(|region| !regions.contains(region)));
        }
        for region in new {
            let Region { path, method } = region;
            ledger.take(ROUTE_SIZES.split + self.listed(group, path), 0)?;
            if let Some(open) = self.open_cell(group, index) {
                open.regions.insert(region);
            }
            let of = group.clone();
            self.journal.push(Box::new(move |sizes| {
                if let Some(open) = sizes.open_cell(&of, index) {
                    open.regions.remove(&region);
                }
            }));
            self.add_route(group, path, method, ledger)?;
            if self.may_spell {
                self.add_spellings(group, path, ledger)?;
            }
        }
        Some(())
    }

    /// Charges the shared documents that are not there yet.
    pub(in crate::lower) fn add_shared(
        &mut self,
        keys: impl IntoIterator<Item = SharedKey>,
        ledger: &mut Room,
    ) -> Option<()> {
        keys.into_iter().try_for_each(|key| {
            let Entry::Vacant(entry) = self.shared.entry(key) else { return Some(()) };
            let key = entry.key().clone();
            let bytes = *entry.insert(key.bytes(&self.lowering, self.prefix));
            self.journal.push(Box::new(move |sizes| {
                sizes.shared.remove(&key);
            }));
            ledger.take(bytes, 0)
        })
    }

    /// Charges the documents of a status that Routes answer: its service, and its upstream where conditions choose it.
    pub(super) fn add_status(&mut self, status: u16, ledger: &mut Room) -> Option<()> {
        self.add_shared(SharedKey::of_action(&Action::status(status)), ledger)
    }

    /// Takes the charges of shared documents.
    pub(super) fn take_shared(&mut self) -> BTreeMap<SharedKey, usize> {
        std::mem::take(&mut self.shared)
    }

    /// Keeps the additions.
    pub(super) fn commit(&mut self) {
        self.patterns.commit();
        self.journal.clear();
    }

    /// Reverts the additions since the last commit.
    pub(super) fn roll_back(&mut self) {
        self.patterns.roll_back();
        while let Some(inverse) = self.journal.pop() {
            inverse(self);
        }
    }

    fn open_cell(&mut self, (zone, original): &Group, index: usize) -> Option<&mut Open<'a>> {
        self.zones[*zone].open.get_mut(original)?.get_mut(index)
    }
}
