//! The Routes of each group, with their decision lists.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::cell::{Cell, ReachedSchemes, SchemeSet, cells};
use super::{Groups, Row, RowIndex};
use crate::lower::path_map::{PathEntry, PathMap};
use crate::lower::room::Room;
use crate::model::{Hostname, hostname_precedence};
use crate::normalise::{Condition, Path};

/// A Route of a group with its decision list.
#[derive(Debug)]
pub(super) struct Decided<'a> {
    pub(super) path: &'a Path,
    pub(super) method: Option<&'static str>,
    pub(super) list: Vec<RowIndex>,
    pub(super) shadowed: Vec<RowIndex>,
    /// The protected rows whose requests would reach an open row under another spelling.
    pub(super) exposed: Vec<RowIndex>,
}

impl PathEntry for Decided<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn method(&self) -> Option<&'static str> {
        self.method
    }
}

/// The Routes of some groups.
pub(super) struct DecidedGroups<'a> {
    /// With the index of their group.
    pub(super) routes: Vec<(usize, Decided<'a>)>,
    /// Those for other spellings of protected paths: group, path, protected rows.
    pub(super) other_spellings: Vec<(usize, Path, Vec<RowIndex>)>,
    /// The cells that get no Route: group and path.
    pub(super) unreached: Vec<(usize, &'a Path)>,
}

/// The Routes of every group, or of those asked for, by index of the group. `hosts` are what PingSIX matches for each of them.
/// `None` as soon as there cannot be room for them.
pub(super) fn decide_groups<'a>(
    groups: &Groups<'a>,
    hosts: &[Option<Hostname>],
    only: impl Fn(usize) -> bool,
    schemes: SchemeSet,
    room: &mut Room,
) -> Option<DecidedGroups<'a>> {
    let cells: Vec<PathMap<'a, Cell<'a>>> = groups.iter().map(|(_, rows)| cells(rows, schemes)).collect();
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
        let wider = wider_names(original.as_ref());
        let wider = wider.filter_map(|name| position.get(&name.as_ref()).copied()).collect();
        let chain = GroupChain { own, alike, wider, cells: &cells, groups, schemes };
        if only(own) {
            decided.extend(chain.routes(room)?.into_iter().map(|route| (own, route)));
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

/// The names that cover a name strictly, longest first, ending with none for every host.
fn wider_names(name: Option<&Hostname>) -> impl Iterator<Item = Option<Hostname>> + '_ {
    name.into_iter().flat_map(|name| name.wider().map(Some).chain([None]))
}

/// A cell: group, path, method.
type CellKey<'a> = (usize, &'a Path, Option<&'static str>);

/// A cell without a Route, because another one takes all its requests.
struct Unreached<'a> {
    path: &'a Path,
    taken_by: CellKey<'a>,
    rows: Vec<RowIndex>,
}

/// Adds rows that no list holds to the ones that the Route which takes their requests leaves nothing to.
fn name_unreached<'a>(decided: &mut [(usize, Decided<'a>)], unreached: Vec<Unreached<'a>>) {
    if unreached.is_empty() {
        return;
    }
    let tried: BTreeSet<RowIndex> = decided.iter().flat_map(|(_, route)| &route.list).copied().collect();
    let mut routes: BTreeMap<CellKey<'a>, &mut Decided<'a>> =
        decided.iter_mut().map(|(group, route)| ((*group, route.path, route.method), route)).collect();
    for Unreached { taken_by, rows, .. } in unreached {
        if let Some(route) = routes.get_mut(&taken_by) {
            route.shadowed.extend(rows.into_iter().filter(|row| !tried.contains(row)));
        }
    }
}

/// A group with the groups that serve its hosts too.
struct GroupChain<'c, 'a> {
    own: usize,
    /// Those that PingSIX matches by the same host, and that come before it, first in the order first.
    alike: Vec<usize>,
    /// Those with wider hostnames, which come after it, next in the order first.
    wider: Vec<usize>,
    cells: &'c [PathMap<'a, Cell<'a>>],
    groups: &'c Groups<'a>,
    schemes: SchemeSet,
}

impl<'c, 'a> GroupChain<'c, 'a> {
    /// The Routes of the group, with their decision lists. `None` as soon as there cannot be room for them.
    fn routes(&self, room: &mut Room) -> Option<Vec<Decided<'a>>> {
        let mut routes: PathMap<'a, Decided<'a>> = PathMap::new();
        let mut regions: BTreeSet<(&'a Path, Option<&'static str>)> = BTreeSet::new();
        for cell in self.cells[self.own].iter() {
            let &Cell { path, method, .. } = cell;
            if self.taken_by(path, method).is_some() {
                continue;
            }
            let list = self.decide(path, method);
            self.take_room(&list, room)?;
            let shadowed = cell.shadowed.iter().map(|row| (self.own, *row)).collect();
            let exposed = self.exposed(cell).into_iter().chain(self.too_late(cell)).collect();
            routes.entry(path, method, || Decided { path, method, list, shadowed, exposed });
            if !cell.reach.is_total(self.schemes) {
                self.add_regions_of(cell, &mut regions);
            }
        }
        // Ascending, so that the Route that would otherwise answer is decided first.
        let mut regions: Vec<_> = regions.into_iter().collect();
        regions.sort_by_key(|(path, method)| (path.precedence(), method.is_some()));
        for (path, method) in regions {
            if self.taken_by(path, method).is_some() {
                continue;
            }
            let rank = (path.precedence(), method.is_some());
            // One of a higher rank takes all requests of the region; one of the same rank is a real cell.
            let otherwise =
                routes.covering(path).find(|route| route.takes(method)).filter(|route| route.rank() < rank);
            if let Some(otherwise) = otherwise {
                let list = self.decide(path, method);
                if otherwise.list != list {
                    self.take_room(&list, room)?;
                    routes.entry(path, method, || Decided {
                        path,
                        method,
                        list,
                        shadowed: Vec::new(),
                        exposed: Vec::new(),
                    });
                }
            }
        }
        Some(routes.into_values().collect())
    }

    /// The protected rows of a cell that another spelling of their path evades.
    fn exposed(&self, cell: &Cell<'a>) -> Vec<RowIndex> {
        let rows = cell.rows.iter().map(|row| (self.own, *row));
        let protected: Vec<RowIndex> = rows.filter(|row| self.row(*row).is_protected()).collect();
        if protected.is_empty() || cell.path.spellings().is_none() {
            return Vec::new();
        }
        protected.into_iter().filter(|row| self.is_exposed(cell.path, self.row(*row))).collect()
    }

    /// The rows of a cell that close nothing, because an older row lets its requests to a backend with less protection.
    fn too_late(&self, cell: &Cell<'a>) -> Vec<RowIndex> {
        let is_late = |closing: &Row<'a>| {
            let mut rows = cell.rows.iter().map(|row| self.row((self.own, *row)));
            closing.is_closing && rows.any(|row| row.is_open_beside(closing))
        };
        let shadowed = cell.shadowed.iter().map(|row| (self.own, *row));
        shadowed.filter(|row| is_late(self.row(*row))).collect()
    }

    /// Whether a row with less protection than another one has a path that covers the one's, in the group or in one with a wider
    /// name. A row for all paths leaves nothing to those after it, and methods with a cell of their own are not the row's.
    fn is_exposed(&self, path: &Path, protected: &Row<'a>) -> bool {
        let of_path = || self.cells[self.own].covering(path).filter(|cell| cell.path == path);
        let has_own = |method| {
            let of_method = |cell: &Cell<'a>| cell.method == method && cell.reach.is_total(self.schemes);
            method != protected.method && (protected.method.is_some() || of_path().any(of_method))
        };
        let groups = std::iter::once(self.own).chain(self.wider.iter().copied());
        let cells = groups.flat_map(|group| self.cells[group].covering(path).map(move |cell| (group, cell)));
        for (group, cell) in cells.filter(|(_, cell)| cell.path != path) {
            if cell.method.is_some() && has_own(cell.method) {
                continue;
            }
            if cell.rows.iter().any(|row| self.row((group, *row)).is_open_beside(protected)) {
                return true;
            }
            if cell.path.is_root() && cell.method.is_none() && cell.reach.is_total(self.schemes) {
                return false;
            }
        }
        false
    }

    /// The Routes for other spellings of the paths of exposed rows. `None` as soon as there cannot be room for them.
    fn other_spellings(&self, room: &mut Room) -> Option<BTreeMap<Path, Vec<RowIndex>>> {
        let mut other_spellings: BTreeMap<Path, Vec<RowIndex>> = BTreeMap::new();
        for cell in self.cells[self.own].iter() {
            let exposed = self.exposed(cell);
            let Some(path) = cell.path.spellings().filter(|_| !exposed.is_empty()) else { continue };
            self.take_room(&[], room)?;
            other_spellings.entry(path).or_default().extend(exposed);
        }
        Some(other_spellings)
    }

    /// The first cell in the order that takes all requests to a path with a method and comes before the group's own for
    /// them; then nothing of the group is ever asked there.
    fn taken_by(&self, path: &Path, method: Option<&'static str>) -> Option<CellKey<'a>> {
        let rank = (path.precedence(), method.is_some());
        let first = |group: usize| {
            let cell = self.cells[group].covering(path).find(|cell| cell.takes(method))?;
            Some((group, cell))
        };
        let (group, cell) = self.alike.iter().find_map(|&group| first(group)).or_else(|| {
            // The same prefix with a slash at its end.
            first(self.own).filter(|(_, cell)| cell.rank() > rank)
        })?;
        Some((group, cell.path, cell.method))
    }

    /// The cells of the group that are never asked.
    fn unreached(&self) -> Vec<Unreached<'a>> {
        let of = |cell: &Cell<'a>| {
            let taken_by = self.taken_by(cell.path, cell.method)?;
            let rows = cell.rows.iter().chain(&cell.shadowed).map(|row| (self.own, *row));
            let rows = rows.filter(|row| !self.row(*row).state.is_guard()).collect();
            Some(Unreached { path: cell.path, taken_by, rows })
        };
        self.cells[self.own].iter().filter_map(of).collect()
    }

    /// Where the continuation of a conditional cell may differ from the cell's own.
    fn add_regions_of(&self, cell: &Cell<'a>, regions: &mut BTreeSet<(&'a Path, Option<&'static str>)>) {
        let mut add = |path: &'a Path| {
            regions.insert((path, cell.method));
            if cell.method.is_none() {
                let groups = std::iter::once(self.own).chain(self.wider.iter().copied());
                for other in groups.flat_map(|group| self.cells[group].covering(path)) {
                    regions.insert((path, other.method));
                }
            }
        };
        add(cell.path);
        for &group in &self.wider {
            for other in self.cells[group].below(cell.path) {
                if cell.method.is_none() || other.takes(cell.method) {
                    add(other.path);
                }
            }
        }
    }

    /// The decision list for requests to `path` with `method` that no earlier Route of the group took.
    fn decide(&self, path: &Path, method: Option<&'static str>) -> Vec<RowIndex> {
        let limit = (path.precedence(), method.is_some());
        let own = self.cells[self.own]
            .covering(path)
            .filter(|cell| cell.rank() <= limit)
            .map(|cell| (self.own, cell));
        let wider = self
            .wider
            .iter()
            .flat_map(|&group| self.cells[group].covering(path).map(move |cell| (group, cell)));
        let mut list: Vec<RowIndex> = Vec::new();
        let mut tried: BTreeSet<(bool, &[Condition])> = BTreeSet::new();
        let mut reach = ReachedSchemes::default();
        for (group, cell) in own.chain(wider).filter(|(_, cell)| cell.takes(method)) {
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
