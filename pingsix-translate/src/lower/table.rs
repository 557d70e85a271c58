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
//! A cell gets no Route if an earlier one takes all its requests: one of the group with the same prefix and a slash
//! at its end, or any that covers it in a group with a more specific original hostname that PingSIX matches by the
//! same host. Nothing would reach that Route, and no rule may be refused for what it would have done there.
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
//!    (h, p, m). The first real cell that matches is among them: what would take all its requests would match as well
//!    and be an earlier one. So the Route belongs to the first group with a matching cell, since virtual cells exist
//!    only within a real cell of their group.
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
//! Other spellings of a host (`h.`, `[h]`) are hosts of their own for PingSIX. The Routes of protected rules alone also list
//! them, so the Route taken there is the first protected one of those that match h ([`super::host`]).
//!
//! # With and without TLS
//!
//! Where a data plane serves a plaintext and an HTTPS port, rows may count for requests by TLS alone, and others send
//! requests in plaintext to HTTPS ([`RequestScheme`]). There are then two lists, one per audience, each with the argument
//! above; a Route's list is their union in order, up to the last row that either reaches. PingSIX can do both at once
//! if the first row that counts in plaintext is a redirect (`http_to_https`), or if both lists are the same. Otherwise
//! the rows that are not for everybody are refused (`super::document`).
//!
//! # Other spellings of protected paths
//!
//! If a row is protected, and a row with less protection covers its path in the same group or in one with a wider name, the
//! group gets a Route for the other spellings of the path ([`crate::normalise::other_spellings`]), which answers 400. Its
//! priority lies between those of all prefixes and those of all exact paths of the group, and the closure treats its patterns
//! like others. So it is the Route taken where no exact path of the group and no Route of an earlier group matches. It is no
//! cell, so lists never continue with it: where the conditions of an exact path or of a narrower name fail, the request goes on
//! as it would without the Route.
//!
//! # The size
//!
//! At most one Route per cell, one more per protected cell, and virtual cells only under conditional rows. Growth through closure is
//! measured in `benches/translate.rs`.

mod cell;
mod chain;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use self::cell::SchemeSet;
use self::chain::{Decided, DecidedGroups, decide_groups};
use super::RuleRef;
use super::path_map::Region;
use super::room::Room;
use crate::model::{Age, Hostname, ObjectKey, Section, compare_age, hostname_precedence};
use crate::normalise::{Condition, Path};
use crate::policy::ListenerChains;

/// A match of a rule, served under a hostname.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) rule: RuleRef,
    pub(crate) route: &'a Arc<ObjectKey>,
    pub(crate) age: Age,
    /// The part of its object.
    pub(crate) section: Section,
    /// The specificity of the original hostname ([`hostname_precedence`]).
    pub(crate) specificity: u32,
    pub(crate) path: &'a Path,
    pub(crate) method: Option<&'static str>,
    pub(crate) conditions: &'a [Condition],
    pub(crate) scheme: RequestScheme,
    pub(crate) state: RowState,
    /// Whether the row closes a path that stands for an inexpressible one. Of one object, it comes first.
    pub(crate) is_closing: bool,
    pub(crate) access: Access<'a>,
}

/// The clients that a row lets pass, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    /// The policies of the rule; `None` if none is known.
    pub(crate) chains: Option<&'a ListenerChains>,
    /// Whether requests reach a backend.
    pub(crate) is_forwarding: bool,
    /// Whether the row has more protection than all requests of its listeners.
    pub(crate) is_protected: bool,
}

impl Access<'_> {
    /// That of a row that no policies concern.
    pub(crate) const NONE: Self = Self { chains: None, is_forwarding: false, is_protected: false };
}

/// The state of a row's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowState {
    Served,
    /// The route is refused in the zone: the row answers an error.
    Refused,
    /// The rule exceeds the budget, or its hostname is closed: the row answers 503.
    Unavailable,
    /// The row stands for other spellings of a protected path: 400.
    OtherSpelling,
    /// The row stands for refused rules of a hostname, behind everything else: 503.
    Guard,
}

/// Requests that a row counts for. A data plane for several ports cannot tell them apart, but it can tell whether a
/// request came by TLS, and redirect it if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestScheme {
    Any,
    /// Requests over TLS: the row must not be served to others.
    Tls,
    /// Plaintext requests: the row redirects them to HTTPS, and has no conditions.
    Plaintext,
}

impl RowState {
    /// Whether the row stands for requests that no rule names.
    pub(crate) const fn is_guard(self) -> bool {
        matches!(self, Self::Guard)
    }
}

impl RequestScheme {
    const fn includes(self, tls: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Tls => tls,
            Self::Plaintext => !tls,
        }
    }
}

impl<'a> Row<'a> {
    /// Its path and method.
    pub(super) const fn region(&self) -> Region<'a> {
        Region { path: self.path, method: self.method }
    }

    /// Whether the row lets requests to a backend without the protection of another row.
    fn is_open_beside(&self, protected: &Self) -> bool {
        let is_open = || match (self.access.chains, protected.access.chains) {
            (Some(own), Some(protected)) => !own.protect_like(protected),
            (_, None) => !self.access.is_protected,
            (None, _) => true,
        };
        self.state == RowState::Served && self.access.is_forwarding && is_open()
    }

    /// Whether policies protect the row more than others of its listeners.
    fn is_protected(&self) -> bool {
        self.state == RowState::Served && self.access.is_protected
    }

    /// The row that answers other spellings of the path.
    pub(super) const fn with_other_spelling(&self) -> Self {
        Self {
            method: None,
            conditions: &[],
            scheme: RequestScheme::Any,
            state: RowState::OtherSpelling,
            access: Access::NONE,
            ..*self
        }
    }

    /// The older route comes first; of one age, the one whose `namespace/name` does.
    pub(crate) fn compare_age(&self, other: &Self) -> Ordering {
        compare_age((self.age, self.route), (other.age, other.route))
    }

    /// Whether PingSIX cannot tell the requests of both rows apart by host, path and method. Original hostnames that
    /// meet in one decision list lie on one chain of suffixes, so they are equal if they are as specific.
    pub(crate) fn is_of_one_cell(&self, other: &Self) -> bool {
        self.specificity == other.specificity && self.region() == other.region()
    }

    /// The order inside a cell (Gateway API, `HTTPRouteRule.matches`): most headers, most query parameters,
    /// oldest route, `namespace/name`, first rule, first match.
    fn compare_in_cell(&self, other: &Self) -> Ordering {
        let headers = |row: &Self| row.conditions.iter().filter(|condition| condition.is_header()).count();
        let queries = |row: &Self| row.conditions.len() - headers(row);
        self.state
            .is_guard()
            .cmp(&other.state.is_guard())
            .then_with(|| headers(other).cmp(&headers(self)))
            .then_with(|| queries(other).cmp(&queries(self)))
            .then_with(|| self.compare_age(other))
            .then_with(|| other.is_closing.cmp(&self.is_closing))
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
    pub(crate) key: Arc<TableKey>,
    /// The host that PingSIX matches; none is every host.
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
    /// The host that PingSIX matches; none is every host.
    pub(crate) fn host(&self) -> Option<Hostname> {
        host_of(self.original.as_ref(), self.zone.as_ref())
    }

    /// PingSIX's `priority`, below 2^31. Differs between any two Routes that can share a matcher entry and a method:
    /// their hosts and paths lie on one chain, on which lengths differ. The exception are Routes for other spellings of several
    /// paths, which all answer 400. `is_guarded`: whether the zone has a guard.
    pub(crate) fn priority(&self, is_guarded: bool) -> u32 {
        let zone = hostname_precedence(self.zone.as_ref());
        let original = hostname_precedence(self.original.as_ref());
        let path = self.path.as_ref().map_or(0, Path::precedence);
        let in_group = path << 1 | u32::from(self.method.is_some());
        // The guard of a zone comes after a guard for every path. So that a zone keeps its priorities when others come and
        // go, all zones with a hostname have room for a guard.
        let precedes_guard = (self.zone.is_some() || is_guarded) && self.path.is_some();
        zone << 22 | original << 13 | in_group.max(u32::from(precedes_guard))
    }
}

/// The answer of a Route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Rows, tried in order. Of those with one audience, only the last may be unconditional; if none is, the rest is
    /// 404. The shadowed rows of the cell are never reached.
    ///
    /// The protected rows that are exposed have other spellings which an open row takes.
    Decide { list: Vec<RowIndex>, shadowed: Vec<RowIndex>, exposed: Vec<RowIndex> },
    /// 400 to other spellings of the path of protected rows, at least one.
    OtherSpelling(Vec<RowIndex>),
    /// 404 or 421, so that the zone's hosts do not fall to a wider zone.
    Guard,
}

/// A row of the zone: group, then position.
pub(crate) type RowIndex = (usize, usize);

/// The rows of a zone's groups, in the order row indices refer to.
pub(crate) type Groups<'a> = Vec<(Option<Hostname>, Vec<Row<'a>>)>;

/// The Routes of a zone before closure.
#[derive(Debug)]
pub(crate) struct Compiled<'a> {
    pub(crate) groups: Groups<'a>,
    pub(crate) routes: Vec<TableRoute>,
    /// Cells that get no Route, because others take all their requests: group and path.
    pub(crate) unreached: Vec<(usize, &'a Path)>,
}

/// Compiles the Routes of some groups of a zone. `None` as soon as the result cannot fit. `is_divided`: whether the zone may
/// have rows for one audience alone.
///
/// The result for a group depends on that group, on those with the same host, and on those with wider names, and of
/// these on the rows whose paths are below the same first segment or may cover any.
pub(crate) fn compile_zone<'a>(
    zone: Zone<'a>,
    is_divided: bool,
    is_asked_for: impl Fn(&Option<Hostname>) -> bool,
    room: &mut Room,
) -> Option<Compiled<'a>> {
    let mut groups: Groups<'a> = zone.groups.into_iter().collect();
    for (_, rows) in &mut groups {
        rows.sort_by(Row::compare_in_cell);
    }
    let hosts: Vec<Option<Hostname>> =
        groups.iter().map(|(original, _)| host_of(original.as_ref(), zone.hostname.as_ref())).collect();
    let DecidedGroups { routes: decided, other_spellings, unreached } =
        decide_groups(&groups, &hosts, is_asked_for, SchemeSet { is_divided }, room)?;
    let route =
        |(group, region, Decided { list, shadowed, exposed }): (usize, Region<'a>, Decided)| TableRoute {
            key: Arc::new(TableKey {
                zone: zone.hostname.clone(),
                original: groups[group].0.clone(),
                path: Some(region.path.clone()),
                method: region.method,
            }),
            host: hosts[group].clone(),
            answer: Answer::Decide { list, shadowed, exposed },
        };
    let mut routes: Vec<TableRoute> = decided.into_iter().map(route).collect();
    routes.extend(other_spellings.into_iter().map(|(group, path, protected)| TableRoute {
        key: Arc::new(TableKey {
            zone: zone.hostname.clone(),
            original: groups[group].0.clone(),
            path: Some(path),
            method: None,
        }),
        host: hosts[group].clone(),
        answer: Answer::OtherSpelling(protected),
    }));
    if zone.guarded {
        room.take_route(0)?;
        routes.push(TableRoute {
            key: Arc::new(TableKey { zone: zone.hostname.clone(), original: None, path: None, method: None }),
            host: zone.hostname,
            answer: Answer::Guard,
        });
    }
    Some(Compiled { groups, routes, unreached })
}

/// The host that PingSIX matches for rows with this hostname.
pub(crate) fn host_of(original: Option<&Hostname>, listener: Option<&Hostname>) -> Option<Hostname> {
    match (original, listener) {
        (None, listener) => listener.cloned(),
        (Some(original), None) => Some(original.clone()),
        // Rows are attached only where the two intersect.
        (Some(original), Some(listener)) => listener.intersection(original),
    }
}

#[cfg(test)]
mod tests;
