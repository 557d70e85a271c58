//! The route table compiler: from rows in the specification's order to PingSIX Routes.
//!
//! # The problem
//!
//! Gateway API asks for a *list*: of all (hostname, match) rows attached to the listener that serves a request,
//! sorted by precedence, the first one that matches wins, and when its header conditions fail the next one gets
//! its turn, however much wider. PingSIX has a *tree*: a host router, in it a path router, in it one entry with
//! Routes by priority, of which the first whose methods fit is taken; conditions on headers and query exist only
//! in that Route's `traffic-split`, after which there is no way back (`src/proxy/route.rs`).
//!
//! # The construction
//!
//! A **zone** is the set of hosts for which one listener hostname is the most specific. A request belongs to one
//! zone, and only rows attached there count. Within a zone, rows with the same *original* hostname (the one the
//! route was written with) form a **group**; rows of a group with the same path and method form a **cell**.
//! A group's names, and those of every group that serves the same host, lie on one chain of suffixes, and the
//! longer name always precedes. So the specification's order of rows in a zone is: original hostname, path,
//! method, then the order inside a cell (headers, query, age, name, rule).
//!
//! Each cell becomes one Route with priority (zone, original hostname, path, method): 9 + 9 + 12 + 1 bits, a
//! function of its own attributes. Its **decision list** holds the cell's rows in order and, unless one of them
//! is unconditional, continues with the rows of every later cell that matches wherever the cell does, up to the
//! first unconditional row, or 404.
//!
//! Where a later cell matches only in *part* of a cell's requests (a wider hostname with a longer path, or a
//! cell with a method under one without), the list differs by region. For each such region the group gets a
//! **virtual cell**: a Route of the group for that path and method whose list is the one of the region. It is
//! left out when its list equals that of the Route that would otherwise answer there.
//!
//! # Why it is right
//!
//! Let a request have host h, path p, method m, in zone z, and let the table be closed (see [`super::closure`]), so that
//! the entry PingSIX finds for (h, p) holds exactly the Routes that match h and p, by priority.
//!
//! 1. *Zones.* Routes of a wider zone also match h, but z's bits come first in the priority, and z's guard, with
//!    the lowest priority of the zone and the path `/`, answers what the zone's rows do not. Zones narrower than
//!    z do not match h.
//! 2. *The Route taken* is the one with the greatest (original, path, method) among z's Routes that match
//!    (h, p, m). Real cells that match are among them, so it belongs to the first group with a matching cell:
//!    virtual cells exist only within a real cell of their group.
//! 3. *Its list* is, by construction, the rows of all cells not before it that match everywhere in its region.
//!    (a) No row is missing: a cell that matches (h, p, m) but not the whole region would have given rise to a
//!    virtual cell there with a longer path, or with a method where the Route has none, and that would have been
//!    taken instead, unless its list was equal. (b) Rows before it that match (h, p, m) do not exist: they would
//!    belong to a real cell with a greater key. (c) Rows after the first unconditional one do not matter.
//! 4. *The conditions* are then tried in the specification's order by `traffic-split`, first match wins.
//!
//! If no Route of the host router matches, PingSIX turns to the Routes without hosts: the group without a
//! hostname in the zone without one, which is last in the order. Lists that began in the host router contain its
//! rows, since after a list there is no such turn.
//!
//! # With and without TLS
//!
//! Where a data plane serves a plaintext and an HTTPS port, rows may count for requests by TLS alone, and others send
//! requests in plaintext to HTTPS ([`Audience`]). There are then two lists, one per audience, each with the argument
//! above; a Route's list is their union in order, up to the last row that either reaches. PingSIX can do both at once
//! if the first row that counts in plaintext is a redirect (`http_to_https`), or if both lists are the same. Otherwise
//! the rows that are not for everybody are refused (`super::document`).
//!
//! # The size
//!
//! One Route per cell, and virtual cells only under conditional rows. Growth through closure is
//! measured in `benches/translate.rs`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::RuleRef;
use super::budget::Room;
use super::path_map::{PathMap, Ranked};
use crate::attach::{Hostname, hostname_precedence};
use crate::object::{Age, ObjectKey, compare_age};
use crate::provenance::Section;
use crate::route::{Condition, Path};

/// A match of a rule, served under a hostname.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) rule: RuleRef,
    pub(crate) route: &'a Arc<ObjectKey>,
    pub(crate) age: Age,
    /// Which part of its object the row is.
    pub(crate) section: Section,
    pub(crate) path: &'a Path,
    pub(crate) method: Option<&'static str>,
    pub(crate) conditions: &'a [Condition],
    pub(crate) audience: Audience,
}

/// Requests that a row counts for. A data plane for several ports cannot tell them apart, but it can tell whether a
/// request came by TLS, and redirect it if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Audience {
    Everybody,
    /// Those by TLS: the row must not be served to others.
    Tls,
    /// Those in plaintext: the row sends them to HTTPS, and has no conditions.
    Plaintext,
}

impl Audience {
    const fn includes(self, tls: bool) -> bool {
        match self {
            Self::Everybody => true,
            Self::Tls => tls,
            Self::Plaintext => !tls,
        }
    }
}

impl Row<'_> {
    /// The older route comes first; of one age, the one whose `namespace/name` does.
    pub(crate) fn compare_age(&self, other: &Self) -> Ordering {
        compare_age((self.age, self.route), (other.age, other.route))
    }

    /// The order inside a cell (Gateway API, `HTTPRouteRule.matches`): most headers, most query parameters,
    /// oldest route, `namespace/name`, first rule, first match.
    fn compare_in_cell(&self, other: &Self) -> Ordering {
        let headers = |row: &Self| row.conditions.iter().filter(|condition| condition.is_header()).count();
        let queries = |row: &Self| row.conditions.len() - headers(row);
        headers(other)
            .cmp(&headers(self))
            .then_with(|| queries(other).cmp(&queries(self)))
            .then_with(|| self.compare_age(other))
            .then_with(|| self.section.cmp(&other.section))
    }
}

/// The rows of one zone.
#[derive(Clone, Debug)]
pub(crate) struct Zone<'a> {
    /// The listener hostname; none is every host.
    pub(crate) hostname: Option<Hostname>,
    /// Whether a wider zone exists, whose rows must not answer for this one.
    pub(crate) guarded: bool,
    /// Rows by original hostname.
    pub(crate) groups: BTreeMap<Option<Hostname>, Vec<Row<'a>>>,
}

/// A PingSIX Route before closure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableRoute {
    pub(crate) key: TableKey,
    /// What PingSIX matches; none is every host.
    pub(crate) host: Option<Hostname>,
    pub(crate) answer: Answer,
}

/// The attributes a Route's priority and id derive from. Unique in a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableKey {
    pub(crate) zone: Option<Hostname>,
    pub(crate) original: Option<Hostname>,
    /// `None` is the guard of a zone: every path, behind every row.
    pub(crate) path: Option<Path>,
    pub(crate) method: Option<&'static str>,
}

impl TableKey {
    /// PingSIX's `priority`, below 2^31. Differs between any two Routes that can share a matcher entry and a
    /// method: what they match by lies on one chain, on which lengths differ.
    pub(crate) fn priority(&self) -> u32 {
        let zone = hostname_precedence(self.zone.as_ref());
        let original = hostname_precedence(self.original.as_ref());
        let path = self.path.as_ref().map_or(0, Path::precedence);
        zone << 22 | original << 13 | path << 1 | u32::from(self.method.is_some())
    }
}

/// What a Route answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Rows, tried in order. Of those with one audience, only the last may be unconditional; if none is, the rest is
    /// 404. The shadowed rows of the cell are never reached.
    Decide { list: Vec<RowIndex>, shadowed: Vec<RowIndex> },
    /// 404, so that the zone's hosts do not fall to a wider zone.
    Guard,
}

/// A row of the zone: group, then position.
pub(crate) type RowIndex = (usize, usize);

/// The rows of a zone's groups, in the order row indices refer to.
pub(crate) type Groups<'a> = Vec<(Option<Hostname>, Vec<Row<'a>>)>;

/// Compiles one zone. `None` as soon as there cannot be room for the result.
pub(crate) fn compile_zone<'a>(zone: Zone<'a>, room: &mut Room) -> Option<(Groups<'a>, Vec<TableRoute>)> {
    let mut groups: Groups<'a> = zone.groups.into_iter().collect();
    for (_, rows) in &mut groups {
        rows.sort_by(Row::compare_in_cell);
    }
    let everybody = |row: &Row<'_>| row.audience == Audience::Everybody;
    let audiences = Audiences { split: !groups.iter().flat_map(|(_, rows)| rows).all(everybody) };
    let cells: Vec<PathMap<'a, Cell<'a>>> = groups.iter().map(|(_, rows)| cells(rows, audiences)).collect();
    let position: BTreeMap<Option<&Hostname>, usize> =
        groups.iter().enumerate().map(|(index, (original, _))| (original.as_ref(), index)).collect();

    let mut routes = Vec::new();
    for (own, (original, _)) in groups.iter().enumerate() {
        let host = match (original, &zone.hostname) {
            (None, listener) => listener.clone(),
            (Some(original), None) => Some(original.clone()),
            // Rows are attached only where the two intersect.
            (Some(original), Some(listener)) => listener.intersection(original),
        };
        let wider = wider_names(original.as_ref());
        let wider = wider.filter_map(|name| position.get(&name.as_ref()).copied()).collect();
        let chain = Chain { own, wider, cells: &cells, groups: &groups, audiences };
        routes.extend(chain.routes(room)?.into_iter().map(|Decided { path, method, list, shadowed }| {
            TableRoute {
                key: TableKey {
                    zone: zone.hostname.clone(),
                    original: original.clone(),
                    path: Some(path.clone()),
                    method,
                },
                host: host.clone(),
                answer: Answer::Decide { list, shadowed },
            }
        }));
    }
    if zone.guarded {
        room.take_bytes(Room::ROUTE)?;
        routes.push(TableRoute {
            key: TableKey { zone: zone.hostname.clone(), original: None, path: None, method: None },
            host: zone.hostname,
            answer: Answer::Guard,
        });
    }
    Some((groups, routes))
}

/// The names that cover a name strictly, longest first, ending with none for every host.
fn wider_names(name: Option<&Hostname>) -> impl Iterator<Item = Option<Hostname>> + '_ {
    name.into_iter().flat_map(|name| name.wider().map(Some).chain([None]))
}

/// Rows of a group with one path and method.
#[derive(Debug)]
struct Cell<'a> {
    path: &'a Path,
    method: Option<&'static str>,
    /// Positions in the group, in order, that some request reaches: each with conditions of its own, up to the first
    /// unconditional row of each audience.
    rows: Vec<usize>,
    /// The other positions.
    shadowed: Vec<usize>,
    reach: Reach,
}

/// Whether a zone has rows that count only for requests with or without TLS. If not, there is one audience.
#[derive(Clone, Copy, Debug)]
struct Audiences {
    split: bool,
}

impl Audiences {
    /// Each audience, as whether it comes by TLS.
    fn iter(self) -> impl Iterator<Item = bool> {
        std::iter::once(true).chain(self.split.then_some(false))
    }
}

/// Which audiences have met an unconditional row, and go no further.
#[derive(Clone, Copy, Debug, Default)]
struct Reach {
    ended_tls: bool,
    ended_plaintext: bool,
}

impl Reach {
    const fn ended(self, tls: bool) -> bool {
        if tls { self.ended_tls } else { self.ended_plaintext }
    }

    /// Whether nobody goes further.
    fn is_total(self, audiences: Audiences) -> bool {
        audiences.iter().all(|tls| self.ended(tls))
    }

    /// Whether somebody reaches a row, and what remains after it. `is_new` tells whether an audience has not met the
    /// row's conditions before.
    fn pass(&mut self, row: &Row<'_>, audiences: Audiences, mut is_new: impl FnMut(bool) -> bool) -> bool {
        let mut reached = false;
        for tls in audiences.iter().filter(|tls| row.audience.includes(*tls)) {
            if self.ended(tls) {
                continue;
            }
            if row.conditions.is_empty() {
                reached = true;
                if tls { self.ended_tls = true } else { self.ended_plaintext = true }
            } else {
                reached |= is_new(tls);
            }
        }
        reached
    }
}

impl Ranked for Cell<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn method(&self) -> Option<&'static str> {
        self.method
    }
}

/// A Route of a group with its decision list.
#[derive(Debug)]
struct Decided<'a> {
    path: &'a Path,
    method: Option<&'static str>,
    list: Vec<RowIndex>,
    shadowed: Vec<RowIndex>,
}

impl Ranked for Decided<'_> {
    fn path(&self) -> &Path {
        self.path
    }

    fn method(&self) -> Option<&'static str> {
        self.method
    }
}

fn cells<'a>(rows: &[Row<'a>], audiences: Audiences) -> PathMap<'a, Cell<'a>> {
    let mut cells = PathMap::new();
    // Equal conditions are neighbours in no order, so each cell remembers what it has.
    let mut tried: BTreeSet<(bool, &Path, Option<&'static str>, &[Condition])> = BTreeSet::new();
    for (position, row) in rows.iter().enumerate() {
        let (path, method) = (row.path, row.method);
        let make = || Cell { path, method, rows: Vec::new(), shadowed: Vec::new(), reach: Reach::default() };
        let cell = cells.entry(path, method, make);
        if cell.reach.pass(row, audiences, |tls| tried.insert((tls, path, method, row.conditions))) {
            cell.rows.push(position);
        } else {
            cell.shadowed.push(position);
        }
    }
    cells
}

/// A group with the wider groups that serve its hosts too, next in the order first.
struct Chain<'c, 'a> {
    own: usize,
    wider: Vec<usize>,
    cells: &'c [PathMap<'a, Cell<'a>>],
    groups: &'c Groups<'a>,
    audiences: Audiences,
}

impl<'c, 'a> Chain<'c, 'a> {
    /// The Routes of the group, with their decision lists. `None` as soon as there cannot be room for them.
    fn routes(&self, room: &mut Room) -> Option<Vec<Decided<'a>>> {
        let mut routes: PathMap<'a, Decided<'a>> = PathMap::new();
        let mut regions: BTreeSet<(&'a Path, Option<&'static str>)> = BTreeSet::new();
        for cell in self.cells[self.own].iter() {
            let &Cell { path, method, .. } = cell;
            let list = self.decide(path, method);
            self.take_room(&list, room)?;
            let shadowed = cell.shadowed.iter().map(|row| (self.own, *row)).collect();
            routes.entry(path, method, || Decided { path, method, list, shadowed });
            if !cell.reach.is_total(self.audiences) {
                self.add_regions_of(cell, &mut regions);
            }
        }
        // Ascending, so that the Route that would otherwise answer is decided first.
        let mut regions: Vec<_> = regions.into_iter().collect();
        regions.sort_by_key(|(path, method)| (path.precedence(), method.is_some()));
        for (path, method) in regions {
            let rank = (path.precedence(), method.is_some());
            // One of a higher rank takes all requests of the region; one of the same rank is a real cell.
            let otherwise =
                routes.covering(path).find(|route| route.takes(method)).filter(|route| route.rank() < rank);
            if let Some(otherwise) = otherwise {
                let list = self.decide(path, method);
                if otherwise.list != list {
                    self.take_room(&list, room)?;
                    routes.entry(path, method, || Decided { path, method, list, shadowed: Vec::new() });
                }
            }
        }
        Some(routes.into_values().collect())
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
        let mut reach = Reach::default();
        for (group, cell) in own.chain(wider).filter(|(_, cell)| cell.takes(method)) {
            for &position in &cell.rows {
                let row = self.row((group, position));
                // Where the same conditions were tried before, a row is never reached.
                if reach.pass(row, self.audiences, |tls| tried.insert((tls, row.conditions))) {
                    list.push((group, position));
                }
            }
            if reach.is_total(self.audiences) {
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
        room.take_bytes(conditional.saturating_mul(Room::SPLIT_RULE).saturating_add(Room::ROUTE))
    }
}

#[cfg(test)]
mod tests;
