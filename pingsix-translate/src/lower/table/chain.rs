//! The Routes of each group, with their decision lists.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::cell::{Cell, ReachedSchemes, SchemeSet, cells};
use super::{Groups, Row, RowIndex};
use crate::lower::path_map::{PathMap, Region};
use crate::lower::room::Room;
use crate::model::{Hostname, hostname_precedence, wider_hostnames};
use crate::normalise::{Condition, Path};

/// The decision list of a Route of a group.
#[derive(Debug, Default)]
pub(super) struct Decided {
    pub(super) list: Vec<RowIndex>,
    pub(super) shadowed: Vec<RowIndex>,
    /// The protected rows whose requests would reach an open row under another spelling.
    pub(super) exposed: Vec<RowIndex>,
}

/// The Routes of some groups.
pub(super) struct DecidedGroups<'a> {
    /// With the index of their group.
    pub(super) routes: Vec<(usize, Region<'a>, Decided)>,
    /// Those for other spellings of protected paths: group, path, protected rows.
    pub(super) other_spellings: Vec<(usize, Path, Vec<RowIndex>)>,
    /// The cells that get no Route: group and path.
    pub(super) unreached: Vec<(usize, &'a Path)>,
}

/// The Routes of the groups asked for, by index of the group. `hosts` are what PingSIX matches for each of them.
/// `None` as soon as there cannot be room for them.
pub(super) fn decide_groups<'a>(
    groups: &Groups<'a>,
    hosts: &[Option<Hostname>],
    is_asked_for: impl Fn(&Option<Hostname>) -> bool,
    schemes: SchemeSet,
    room: &mut Room,
) -> Option<DecidedGroups<'a>> {
    let cells: Vec<PathMap<'a, Cell>> = groups.iter().map(|(_, rows)| cells(rows, schemes)).collect();
    let position: BTreeMap<Option<&Hostname>, usize> =
        groups.iter().enumerate().map(|(index, (original, _))| (original.as_ref(), index)).collect();
    let mut with_host: BTreeMap<Option<&Hostname>, Vec<usize>> = BTreeMap::new();
    for (index, host) in hosts.iter().enumerate() {
        with_host.entry(host.as_ref()).or_default().push(index);
    }
    let precedence = |group: usize| hostname_precedence(groups[group].0.as_ref());
    let mut decided = Vec::new();
    let mut other_spellings = Vec::new();
    let mut unreached = Vec::new();
    let mut without = Vec::new();
    for (own, (original, _)) in groups.iter().enumerate() {
        let mut alike = with_host[&hosts[own].as_ref()].clone();
        alike.retain(|&other| precedence(other) > precedence(own));
        alike.sort_by_key(|&other| Reverse(precedence(other)));
        let wider = wider_hostnames(original.as_ref());
        let wider = wider.filter_map(|name| position.get(&name.as_ref()).copied()).collect();
        let chain = GroupChain { own, alike, wider, cells: &cells, groups, schemes };
        if is_asked_for(original) {
            decided.extend(chain.routes(room)?.into_values().map(|(region, route)| (own, region, route)));
            other_spellings
                .extend(chain.other_spellings(room)?.into_iter().map(|(path, rows)| (own, path, rows)));
        }
        let of_group = chain.unreached();
        without.extend(of_group.iter().map(|cell| (own, cell.path)));
        unreached.extend(of_group);
    }
    name_unreached(&mut decided, unreached);
    Some(DecidedGroups { routes: decided, other_spellings, unreached: without })
}

/// A cell: its group and region.
type CellKey<'a> = (usize, Region<'a>);

/// A cell without a Route, because another one takes all its requests.
struct Unreached<'a> {
    path: &'a Path,
    taken_by: CellKey<'a>,
    rows: Vec<RowIndex>,
}

/// Adds rows that no list holds to the ones that the Route which takes their requests leaves nothing to.
fn name_unreached<'a>(decided: &mut [(usize, Region<'a>, Decided)], unreached: Vec<Unreached<'a>>) {
    if unreached.is_empty() {
        return;
    }
    let tried: BTreeSet<RowIndex> = decided.iter().flat_map(|(.., route)| &route.list).copied().collect();
    let mut routes: BTreeMap<CellKey<'a>, &mut Decided> =
        decided.iter_mut().map(|(group, region, route)| ((*group, *region), route)).collect();
    for Unreached { taken_by, rows, .. } in unreached {
        if let Some(route) = routes.get_mut(&taken_by) {
            route.shadowed.extend(rows.into_iter().filter(|row| !tried.contains(row)));
        }
    }
}

/// A group with the groups that serve its hosts too.
struct GroupChain<'c, 'a> {
    own: usize,
    /// Earlier groups with the same host in PingSIX, in order of precedence.
    alike: Vec<usize>,
    /// Groups with wider hostnames, the next one first.
    wider: Vec<usize>,
    cells: &'c [PathMap<'a, Cell>],
    groups: &'c Groups<'a>,
    schemes: SchemeSet,
}

impl<'c, 'a> GroupChain<'c, 'a> {
    /// The Routes of the group, with their decision lists. `None` as soon as there cannot be room for them.
    fn routes(&self, room: &mut Room) -> Option<PathMap<'a, Decided>> {
        let mut routes: PathMap<'a, Decided> = PathMap::default();
        let mut regions: BTreeSet<Region<'a>> = BTreeSet::new();
        for (region, cell) in self.cells[self.own].iter() {
            if self.taken_by(region).is_some() {
                continue;
            }
            let list = self.decide(region);
            self.take_room(&list, room)?;
            let shadowed = cell.shadowed.iter().map(|row| (self.own, *row)).collect();
            let exposed = self.exposed(region, cell).into_iter().chain(self.too_late(cell)).collect();
            *routes.entry(region) = Decided { list, shadowed, exposed };
            if !cell.reach.is_total(self.schemes) {
                self.add_regions_of(region, &mut regions);
            }
        }
        // Ascending, so that the Route that would otherwise answer is decided first.
        let mut regions: Vec<Region<'a>> = regions.into_iter().collect();
        regions.sort_by_key(|region| region.rank());
        for region in regions {
            if self.taken_by(region).is_some() {
                continue;
            }
            let otherwise = routes.covering(region.path).find(|(other, _)| other.takes(region.method));
            // One of a higher rank takes all requests of the region; one of the same rank is a real cell.
            if let Some((_, otherwise)) = otherwise.filter(|(other, _)| other.rank() < region.rank()) {
                let list = self.decide(region);
                if otherwise.list != list {
                    self.take_room(&list, room)?;
                    *routes.entry(region) = Decided { list, ..Decided::default() };
                }
            }
        }
        Some(routes)
    }

    /// The protected rows of a cell that another spelling of their path evades.
    fn exposed(&self, Region { path, .. }: Region<'a>, cell: &Cell) -> Vec<RowIndex> {
        let rows = cell.rows.iter().map(|row| (self.own, *row));
        let protected: Vec<RowIndex> = rows.filter(|row| self.row(*row).is_protected()).collect();
        if protected.is_empty() || path.spellings().is_none() {
            return Vec::new();
        }
        protected.into_iter().filter(|row| self.is_exposed(path, self.row(*row))).collect()
    }

    /// The rows of a cell that close nothing, because an older row lets its requests to a backend with less protection.
    fn too_late(&self, cell: &Cell) -> Vec<RowIndex> {
        let is_late = |closing: &Row<'a>| {
            let mut rows = cell.rows.iter().map(|row| self.row((self.own, *row)));
            closing.is_closing && rows.any(|row| row.is_open_beside(closing))
        };
        let shadowed = cell.shadowed.iter().map(|row| (self.own, *row));
        shadowed.filter(|row| is_late(self.row(*row))).collect()
    }

    /// Whether a row with less protection than another one has a path that covers the one's, in the group or in one with a wider
    /// name. A row for all paths leaves nothing to those after it, and methods with a cell of their own are not the row's.
    fn is_exposed(&self, path: &'a Path, protected: &Row<'a>) -> bool {
        let has_own = |method| {
            let of_method = self.cells[self.own].get(Region { path, method });
            let is_total = of_method.is_some_and(|cell| cell.reach.is_total(self.schemes));
            method != protected.method && (protected.method.is_some() || is_total)
        };
        let groups = std::iter::once(self.own).chain(self.wider.iter().copied());
        let cells = groups.flat_map(|group| self.cells[group].covering(path).map(move |cell| (group, cell)));
        for (group, (region, cell)) in cells.filter(|(_, (region, _))| region.path != path) {
            if region.method.is_some() && has_own(region.method) {
                continue;
            }
            if cell.rows.iter().any(|row| self.row((group, *row)).is_open_beside(protected)) {
                return true;
            }
            if region.path.is_root() && region.method.is_none() && cell.reach.is_total(self.schemes) {
                return false;
            }
        }
        false
    }

    /// The Routes for other spellings of the paths of exposed rows. `None` as soon as there cannot be room for them.
    fn other_spellings(&self, room: &mut Room) -> Option<BTreeMap<Path, Vec<RowIndex>>> {
        let mut other_spellings: BTreeMap<Path, Vec<RowIndex>> = BTreeMap::new();
        for (region, cell) in self.cells[self.own].iter() {
            let exposed = self.exposed(region, cell);
            let Some(path) = region.path.spellings().filter(|_| !exposed.is_empty()) else { continue };
            self.take_room(&[], room)?;
            other_spellings.entry(path).or_default().extend(exposed);
        }
        Some(other_spellings)
    }

    /// The first cell in the order that takes all requests to a path with a method and comes before the group's own for
    /// them; then nothing of the group is ever asked there.
    fn taken_by(&self, region: Region<'a>) -> Option<CellKey<'a>> {
        let first = |group: usize| {
            let mut covering = self.cells[group].covering(region.path).map(|(other, _)| other);
            Some((group, covering.find(|other| other.takes(region.method))?))
        };
        self.alike.iter().find_map(|&group| first(group)).or_else(|| {
            // The same prefix with a slash at its end.
            first(self.own).filter(|(_, other)| other.rank() > region.rank())
        })
    }

    /// The cells of the group that are never asked.
    fn unreached(&self) -> Vec<Unreached<'a>> {
        let of = |(region, cell): (Region<'a>, &Cell)| {
            let taken_by = self.taken_by(region)?;
            let rows = cell.rows.iter().chain(&cell.shadowed).map(|row| (self.own, *row));
            let rows = rows.filter(|row| !self.row(*row).state.is_guard()).collect();
            Some(Unreached { path: region.path, taken_by, rows })
        };
        self.cells[self.own].iter().filter_map(of).collect()
    }

    /// Where the continuation of a conditional cell may differ from the cell's own.
    fn add_regions_of(&self, Region { path, method }: Region<'a>, regions: &mut BTreeSet<Region<'a>>) {
        let mut add = |path: &'a Path| {
            regions.insert(Region { path, method });
            if method.is_none() {
                let groups = std::iter::once(self.own).chain(self.wider.iter().copied());
                for (other, _) in groups.flat_map(|group| self.cells[group].covering(path)) {
                    regions.insert(Region { path, method: other.method });
                }
            }
        };
        add(path);
        for &group in &self.wider {
            let below = self.cells[group].below(path).filter(|(other, _)| other.meets(method));
            below.for_each(|(other, _)| add(other.path));
        }
    }

    /// The decision list for requests of a region that no earlier Route of the group took.
    fn decide(&self, region: Region<'a>) -> Vec<RowIndex> {
        let Region { path, method } = region;
        let own = self.cells[self.own]
            .covering(path)
            .filter(|(other, _)| other.rank() <= region.rank())
            .map(|cell| (self.own, cell));
        let wider = self
            .wider
            .iter()
            .flat_map(|&group| self.cells[group].covering(path).map(move |cell| (group, cell)));
        let mut list: Vec<RowIndex> = Vec::new();
        let mut tried: BTreeSet<(bool, &[Condition])> = BTreeSet::new();
        let mut reach = ReachedSchemes::default();
        for (group, (_, cell)) in own.chain(wider).filter(|(_, (other, _))| other.takes(method)) {
            for &position in &cell.rows {
                let row = self.row((group, position));
                // Where the same conditions were tried before, a row is never reached.
                if reach.pass(row, self.schemes, |tls| tried.insert((tls, row.conditions))) {
                    list.push((group, position));
                }
            }
            if reach.is_total(self.schemes) {
                break;
            }
        }
        list
    }

    fn row(&self, (group, row): RowIndex) -> &'c Row<'a> {
        &self.groups[group].1[row]
    }

    /// Takes the room of a Route with this list, counting every condition as if it were written.
    fn take_room(&self, list: &[RowIndex], room: &mut Room) -> Option<()> {
        let conditional = list.iter().filter(|row| !self.row(**row).conditions.is_empty()).count();
        room.take_route(conditional)
    }
}
