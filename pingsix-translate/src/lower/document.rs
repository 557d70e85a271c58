//! Writes the table of a data plane down as PingSIX documents.

use std::collections::{BTreeMap, BTreeSet};

use super::closure::Closed;
use super::decision::{Decided, Writer, origin_of};
use super::filters::filters_of;
use super::id::Name;
use super::lowering::Lowering;
use super::naming::Naming;
use super::plane::RuleRef;
use super::room::Room;
use super::shared::{SharedKey, Uses};
use super::table::{Answer, Groups, RowIndex, TableKey, TableRoute};
use crate::model::{Hostname, Origin, Provenance, Refusal};
use crate::normalise::PathKind;
use crate::pingsix::{self, DocumentKey, ResourceKind, RoutePatterns};
use thin_vec::ThinVec;

impl<'a> Lowering<'a> {
    /// A Route without its patterns.
    pub(super) fn draft(
        &self,
        route: &TableRoute,
        zone: usize,
        groups: &Groups<'a>,
        naming: &mut Naming,
    ) -> RouteDraft {
        let mut writer = Writer { lowering: self, naming, refused: BTreeMap::new() };
        let (mut document, origin) = writer.write(route, zone, groups);
        let has_spellings = route.host.is_some() && self.spells(route, zone, groups);
        document.methods = route.key.method.map(str::to_owned).into_iter().collect();
        document.priority = route.key.priority(self.plane.zones[zone].guarded);
        let refused = writer.refused.into_iter().collect();
        if let Some(filters) = filters_of(&document) {
            naming.request(SharedKey::Filters(filters), self);
        }
        RouteDraft { document, origin, uses: naming.take_requested(), has_spellings, refused }
    }
}

/// A Route that is written but for its patterns.
pub(super) struct RouteDraft {
    pub(super) document: pingsix::Route,
    pub(super) origin: Provenance,
    pub(super) uses: Uses,
    pub(super) has_spellings: bool,
    pub(super) refused: ThinVec<(RuleRef, Refusal)>,
}

impl TableRoute {
    /// Bytes of room that the Route takes at least, without its patterns.
    pub(super) fn room(&self, groups: &Groups<'_>) -> usize {
        let conditional = match &self.answer {
            Answer::Guard | Answer::OtherSpelling(_) => 0,
            Answer::Decide { list, .. } => {
                list.iter().filter(|(group, row)| !groups[*group].1[*row].conditions.is_empty()).count()
            }
        };
        Room::of_route(conditional)
    }
}

impl Closed {
    /// The patterns in the form of a Route.
    pub(super) fn into_patterns(self) -> RoutePatterns {
        let (uri, uris) = match <[String; 1]>::try_from(self.uris) {
            Ok([uri]) => (Some(uri), Vec::new()),
            Err(uris) => (None, uris),
        };
        let (host, hosts) = match self.hosts.as_slice() {
            [host] => (Some(host.clone()), Vec::new()),
            hosts => (None, hosts.to_vec()),
        };
        RoutePatterns { uri, uris, host, hosts }
    }
}

impl<'a> Writer<'a, '_> {
    fn write(
        &mut self,
        route: &TableRoute,
        zone: usize,
        groups: &Groups<'a>,
    ) -> (pingsix::Route, Provenance) {
        match &route.answer {
            Answer::OtherSpelling(protected) => {
                let first = protected.first().map(|&(group, row)| groups[group].1[row].with_other_spelling());
                let Decided { document, decisions, redirect } =
                    self.decide(first.iter().collect(), route.host.as_ref(), zone);
                let provenance = Provenance::Rules {
                    listener: route.key.zone.clone(),
                    host: route.host.clone(),
                    decisions,
                    redirect,
                    shadowed: Box::default(),
                };
                let name = name_of(protected, groups).filter(|_| self.lowering.options.route_names);
                (pingsix::Route { name, ..document }, provenance)
            }
            Answer::Guard => {
                let listener = route.key.zone.as_ref().map(ToString::to_string).unwrap_or_default();
                let misdirected = self.lowering.plane.zones[zone].misdirected;
                (self.guard(misdirected), Provenance::Guard { listener })
            }
            Answer::Decide { list, shadowed, exposed } => {
                let rows = list.iter().map(|&(group, row)| &groups[group].1[row]).collect();
                let Decided { document, decisions, redirect } = self.decide(rows, route.host.as_ref(), zone);
                for &(group, row) in exposed {
                    self.limit_exposed(&groups[group].1[row], shadowed.contains(&(group, row)));
                }
                let provenance = Provenance::Rules {
                    listener: route.key.zone.clone(),
                    host: route.host.clone(),
                    decisions,
                    redirect,
                    shadowed: origins_of(shadowed, groups),
                };
                let name = name_of(list, groups).filter(|_| self.lowering.options.route_names);
                (pingsix::Route { name, ..document }, provenance)
            }
        }
    }
}

/// The key of a Route, before collisions of names.
pub(super) fn document_key(key: &TableKey) -> DocumentKey {
    DocumentKey { kind: ResourceKind::Route, id: name_of_route(key).short() }
}

/// The name from which the id of a Route derives.
pub(super) fn name_of_route(key: &TableKey) -> Name {
    let host = |name: &Option<Hostname>| name.as_ref().map(ToString::to_string).unwrap_or_default();
    let kind = match key.path.as_ref().map(|path| path.kind) {
        None => "guard",
        Some(PathKind::Exact) => "exact",
        Some(PathKind::Prefix) => "prefix",
        Some(PathKind::Literal) => "literal",
        Some(PathKind::Spellings) => "spellings",
        Some(PathKind::LiteralSpellings) => "literal-spellings",
    };
    let path = key.path.as_ref().map(|path| &*path.text).unwrap_or_default();
    Name::new('r', &[&host(&key.zone), &host(&key.original), kind, path, key.method.unwrap_or_default()])
}

/// The origins of rows, each once: a path of an Ingress may have several.
fn origins_of(rows: &[RowIndex], groups: &Groups<'_>) -> Box<[Origin]> {
    let mut seen = BTreeSet::new();
    let origins = rows.iter().map(|&(group, row)| origin_of(&groups[group].1[row]));
    origins.filter(|origin| seen.insert(origin.clone())).collect()
}

/// `kind/namespace/name/rule` of the first row.
fn name_of(list: &[RowIndex], groups: &Groups<'_>) -> Option<String> {
    let &(group, row) = list.first()?;
    let row = &groups[group].1[row];
    let rule = row.section.rule().map_or_else(|| "default".to_owned(), |rule| rule.to_string());
    Some(format!("{}/{}/{rule}", row.route.kind, row.route.name))
}
