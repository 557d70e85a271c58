//! The size of a table of rows, known before the table is built.
//!
//! A cell costs a Route, and a row costs its addition to a decision list. A list without an unconditional row of its
//! own cell continues in other cells ([`crate::lower::table`]): such a cell is **open** here, and every row of
//! another cell that may be in its lists is charged to it too, for each of its **regions**, the Routes that continue
//! it. Each pair is charged once, to the later of the two. The sum is never less than the compiled table.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::Group;
use super::ledger::Ledger;
use super::patterns::PatternSizes;
use super::row_sizes::{address_bytes, fits, route_bytes, upstream_bytes};
use super::rule_sizes::RuleSizes;
use super::shared::SharedCharges;
use crate::backends::{Action, Target};
use crate::lower::host::{SPELLING, SPELLINGS};
use crate::lower::lowering::Lowering;
use crate::lower::path_map::{PathEntry, PathMap};
use crate::lower::plane::{MISDIRECTED, Misdirected};
use crate::lower::route_sizes::ROUTE_SIZES;
use crate::lower::rows::MISSPELLED;
use crate::lower::service::{ServiceKey, service_bytes};
use crate::lower::table::host_of;
use crate::lower::upstream::UpstreamKey;
use crate::model::Hostname;
use crate::normalise::Path;
use crate::pingsix::canonical_prefix;

/// A row, as far as sizes depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SizedRow<'a> {
    pub(super) path: &'a Path,
    pub(super) method: Option<&'static str>,
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
#[derive(Debug)]
pub(super) struct TableSizes<'a> {
    lowering: Lowering<'a>,
    /// Length of the prefix of all keys.
    prefix: usize,
    patterns: PatternSizes,
    /// By zone.
    zones: Vec<Zone<'a>>,
    shared: SharedCharges,
    /// Whether any Route may list other spellings of its hosts.
    may_spell: bool,
    journal: Vec<Added<'a>>,
}

#[derive(Debug, Default)]
struct Zone<'a> {
    groups: BTreeMap<Option<Hostname>, PathMap<'a, Cell<'a>>>,
    /// Open cells by group.
    open: BTreeMap<Option<Hostname>, Vec<Open<'a>>>,
}

impl<'a> Zone<'a> {
    /// The groups with rows for a hostname: its own, and those with wider names.
    fn counting<'z>(
        &'z self,
        original: Option<&'z Hostname>,
    ) -> impl Iterator<Item = (&'z Option<Hostname>, &'z PathMap<'a, Cell<'a>>)> {
        let wider = original.into_iter().flat_map(|name| name.wider().map(Some).chain([None]));
        std::iter::once(original.cloned()).chain(wider).filter_map(|name| self.groups.get_key_value(&name))
    }
}

/// Rows of a group with one path and method.
#[derive(Debug)]
struct Cell<'a> {
    path: &'a Path,
    method: Option<&'static str>,
    state: CellState,
}

/// The part of a cell that rows change.
#[derive(Clone, Copy, Debug, Default)]
struct CellState {
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

impl<'a> Cell<'a> {
    fn new(path: &'a Path, method: Option<&'static str>) -> Self {
        Self { path, method, state: CellState::default() }
    }
}

impl PathEntry for Cell<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn method(&self) -> Option<&'static str> {
        self.method
    }
}

/// A cell whose list goes on in others.
#[derive(Debug)]
struct Open<'a> {
    path: &'a Path,
    method: Option<&'static str>,
    /// The Routes that continue it, itself included.
    regions: BTreeSet<Region<'a>>,
}

/// A path and a method; none is every method.
pub(super) type Region<'a> = (&'a Path, Option<&'static str>);

#[derive(Debug)]
enum Added<'a> {
    Row { group: Group, path: &'a Path, method: Option<&'static str>, before: CellState },
    Open(Group),
    Region { group: Group, open: usize, region: Region<'a> },
    Upstream(UpstreamKey),
    Service(ServiceKey),
}

impl<'a> TableSizes<'a> {
    pub(super) fn new(lowering: Lowering<'a>) -> Self {
        let prefix = canonical_prefix(&lowering.plane.key.prefix(&lowering.options.root)).len();
        Self {
            lowering,
            prefix,
            patterns: PatternSizes::default(),
            zones: lowering.plane.zones.iter().map(|_| Zone::default()).collect(),
            shared: SharedCharges::default(),
            may_spell: lowering.may_spell(),
            journal: Vec::new(),
        }
    }

    /// Charges the guard of a zone.
    pub(super) fn add_zone_guard(&mut self, zone: usize, ledger: &mut Ledger) -> Option<()> {
        ledger.take(self.prefix + ROUTE_SIZES.route, 0)?;
        self.add_address(zone, ledger)?;
        let is_misdirected = self.lowering.plane.zones[zone].misdirected == Some(Misdirected::All);
        self.add_status(if is_misdirected { MISDIRECTED } else { 404 }, ledger)?;
        self.patterns.add_route(self.lowering.plane.zones[zone].hostname.as_ref(), None, 0, ledger)
    }

    /// Charges a row of a group to a ledger. `None` without room; the caller then rolls back.
    pub(super) fn add_row(&mut self, group: &Group, row: SizedRow<'a>, ledger: &mut Ledger) -> Option<()> {
        let (zone, original) = (group.0, &group.1);
        let SizedRow { path, method, is_conditional, has_spellings, bytes, path_spellings } = row;
        let make = || Cell::new(path, method);
        let cells = self.zones[zone].groups.entry(original.clone()).or_insert_with(PathMap::new);
        let cell = cells.entry(path, method, make);
        let path = cell.path;
        let before = cell.state;
        let state = &mut cell.state;
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
        self.journal.push(Added::Row { group: group.clone(), path, method, before });
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
        self.continue_others(group, (path, method), is_new, added, ledger)?;
        if opens {
            self.open(group, (path, method), ledger)?;
        }
        Some(())
    }

    fn add_route(
        &mut self,
        (zone, original): &Group,
        path: &'a Path,
        method: Option<&'static str>,
        ledger: &mut Ledger,
    ) -> Option<()> {
        ledger.take(self.prefix + route_bytes(method), 0)?;
        self.add_address(*zone, ledger)?;
        let host = host_of(original.as_ref(), self.lowering.plane.zones[*zone].hostname.as_ref());
        self.patterns.add_route(host.as_ref(), Some(path), 0, ledger)
    }

    /// Charges the other spellings of the hosts of a Route: for each, as much as a Route's hosts and patterns.
    fn add_spellings(&mut self, (zone, original): &Group, path: &Path, ledger: &mut Ledger) -> Option<()> {
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
        ledger: &mut Ledger,
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
    fn add_address(&mut self, zone: usize, ledger: &mut Ledger) -> Option<()> {
        let zone = &self.lowering.plane.zones[zone];
        if zone.address().is_none() {
            return Some(());
        }
        ledger.take(address_bytes(zone), 0)?;
        self.add_upstreams(&Action::status(MISDIRECTED), ledger)
    }

    /// Charges the additions of a new row to the lists of open cells, except its own.
    fn continue_others(
        &mut self,
        (zone, original): &Group,
        (path, method): Region<'a>,
        is_new: bool,
        bytes: usize,
        ledger: &mut Ledger,
    ) -> Option<()> {
        let open = &self.zones[*zone].open;
        // The group's own cells and those of narrower groups.
        let groups: Vec<Option<Hostname>> = match original {
            Some(name) if !name.is_wildcard() => {
                open.get(original).map(|_| original.clone()).into_iter().collect()
            }
            _ => {
                let is_below =
                    |name: &&Option<Hostname>| *name == original || covers(original.as_ref(), name.as_ref());
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
                let is_related = path.covers(open.path) || open.path.covers(path);
                let is_same = is_own && open.path == path && open.method == method;
                if !is_related || is_same || !fits(open.method, method) {
                    continue;
                }
                let lists = open.regions.iter().filter(|(region, _)| path.covers(region)).count();
                ledger.take(bytes.saturating_mul(lists), 0)?;
                if is_new {
                    self.add_regions(&group, index, ledger)?;
                }
            }
        }
        Some(())
    }

    /// Charges the continuation of a cell that becomes open.
    fn open(&mut self, group: &Group, (path, method): Region<'a>, ledger: &mut Ledger) -> Option<()> {
        let open = Open { path, method, regions: BTreeSet::from([(path, method)]) };
        let of_group = self.zones[group.0].open.entry(group.1.clone()).or_default();
        of_group.push(open);
        let index = of_group.len() - 1;
        self.journal.push(Added::Open(group.clone()));
        ledger.take(ROUTE_SIZES.split + self.listed(group, path), 0)?;
        if self.may_spell {
            // Its list may go on in a protected row.
            self.add_spellings(group, path, ledger)?;
        }
        self.add_regions(group, index, ledger)
    }

    /// Bytes of the rows in the continuation of a list for a path: at most those of all cells that cover it.
    fn listed(&self, (zone, original): &Group, path: &Path) -> usize {
        let cells = self.zones[*zone].counting(original.as_ref()).flat_map(|(_, cells)| cells.covering(path));
        cells.map(|cell| cell.state.bytes).sum()
    }

    /// Charges the new Routes that continue an open cell: where rows of wider hostnames begin to count, or rows with
    /// a method.
    fn add_regions(&mut self, group: &Group, index: usize, ledger: &mut Ledger) -> Option<()> {
        let (zone, original) = (&self.zones[group.0], &group.1);
        let &Open { path, method, ref regions } = zone.open.get(original)?.get(index)?;
        let mut paths: BTreeSet<&'a Path> = BTreeSet::from([path]);
        for (_, cells) in zone.counting(original.as_ref()).filter(|(name, _)| *name != original) {
            let below = cells.below(path).filter(|cell| cell.state.rows > 0 && fits(method, cell.method));
            paths.extend(below.map(|cell| cell.path));
        }
        let mut new: Vec<Region<'a>> = Vec::new();
        for path in paths {
            let mut methods = BTreeSet::from([method]);
            if method.is_none() {
                let covering = zone.counting(original.as_ref()).flat_map(|(_, cells)| cells.covering(path));
                methods.extend(covering.filter(|cell| cell.state.rows > 0).map(|cell| cell.method));
            }
            let of_path = methods.into_iter().map(|method| (path, method));
            new.extend(of_path.filter(|region| !regions.contains(region)));
        }
        for region in new {
            let (path, method) = region;
            ledger.take(ROUTE_SIZES.split + self.listed(group, path), 0)?;
            if let Some(open) = self.zones[group.0].open.get_mut(original).and_then(|of| of.get_mut(index)) {
                open.regions.insert(region);
            }
            self.journal.push(Added::Region { group: group.clone(), open: index, region });
            self.add_route(group, path, method, ledger)?;
            if self.may_spell {
                self.add_spellings(group, path, ledger)?;
            }
        }
        Some(())
    }

    /// Charges the upstreams and the service of a rule that are not there yet.
    pub(super) fn add_shared(&mut self, sizes: &RuleSizes<'a>, ledger: &mut Ledger) -> Option<()> {
        self.add_upstreams(&sizes.action, ledger)?;
        let mut services = sizes.services();
        services.try_for_each(|service| self.add_service(service, ledger))
    }

    /// Charges the upstreams that an action takes and that are not there yet.
    pub(super) fn add_upstreams(&mut self, action: &Action, ledger: &mut Ledger) -> Option<()> {
        for (target, _) in &action.targets {
            self.add_upstream(UpstreamKey::Target(*target), ledger)?;
            if matches!(target, Target::Status(_) | Target::Redirect) {
                self.add_upstream(UpstreamKey::Nowhere, ledger)?;
            }
        }
        Some(())
    }

    /// Charges an upstream, unless it is there.
    pub(super) fn add_upstream(&mut self, upstream: UpstreamKey, ledger: &mut Ledger) -> Option<()> {
        let Entry::Vacant(entry) = self.shared.upstreams.entry(upstream) else { return Some(()) };
        let bytes = *entry.insert(upstream_bytes(&self.lowering, self.prefix, upstream));
        self.journal.push(Added::Upstream(upstream));
        ledger.take(bytes, 0)
    }

    /// Charges the documents of a status that Routes answer: its service, and its upstream where conditions choose it.
    pub(super) fn add_status(&mut self, status: u16, ledger: &mut Ledger) -> Option<()> {
        self.add_upstreams(&Action::status(status), ledger)?;
        self.add_service(ServiceKey::Status(status), ledger)
    }

    /// Charges a service, unless it is there.
    fn add_service(&mut self, service: ServiceKey, ledger: &mut Ledger) -> Option<()> {
        let Entry::Vacant(entry) = self.shared.services.entry(service.clone()) else { return Some(()) };
        let bytes = *entry.insert(service_bytes(&service, self.lowering.policies, self.prefix));
        self.journal.push(Added::Service(service));
        ledger.take(bytes, 0)
    }

    /// Takes the charges of upstreams and services.
    pub(super) fn take_shared(&mut self) -> SharedCharges {
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
        while let Some(added) = self.journal.pop() {
            match added {
                Added::Row { group: (zone, original), path, method, before } => {
                    let make = || Cell::new(path, method);
                    let cells = self.zones[zone].groups.entry(original).or_insert_with(PathMap::new);
                    let cell = cells.entry(path, method, make);
                    cell.state = before;
                }
                Added::Open((zone, original)) => {
                    if let Some(of_group) = self.zones[zone].open.get_mut(&original) {
                        of_group.pop();
                    }
                }
                Added::Region { group: (zone, original), open, region } => {
                    let of_group = self.zones[zone].open.get_mut(&original);
                    if let Some(open) = of_group.and_then(|of_group| of_group.get_mut(open)) {
                        open.regions.remove(&region);
                    }
                }
                Added::Upstream(upstream) => {
                    self.shared.upstreams.remove(&upstream);
                }
                Added::Service(service) => {
                    self.shared.services.remove(&service);
                }
            }
        }
    }
}

/// Whether a hostname strictly covers another one; none covers every name.
fn covers(wider: Option<&Hostname>, narrower: Option<&Hostname>) -> bool {
    match (wider, narrower) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(wider), Some(narrower)) => wider.covers_strictly(narrower),
    }
}
