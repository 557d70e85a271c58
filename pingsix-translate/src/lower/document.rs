//! Writes the table of a data plane down as PingSIX documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::budget::{Admission, Room};
use super::closure::{Closed, Matched, close};
use super::decision::{Decided, origin_of};
use super::id::{Ids, Name};
use super::named::SharedDocuments;
use super::plane::{Plane, RuleRef};
use super::rows::{PlaneRows, RouteInput};
use super::service::write_service;
use super::ssl::{ServedCertificate, SslKey, id_of_certificate};
use super::table::{Answer, Groups, RowIndex, TableKey, TableRoute, compile_zone};
use super::upstream::{Upstreams, Uses};
use crate::backends::Backends;
use crate::lower::{DataPlane, Size};
use crate::model::{Hostname, Options, Origin, Provenance, Reason, Refusal};
use crate::normalise::{DirectResponse, PathKind, Rule};
use crate::pingsix::{self, Document, DocumentKey, LazyDocument, Plugins, ResourceKind, RoutePatterns};
use crate::policy::{Policies, PolicyChain};
use thin_vec::ThinVec;

/// The documents of a data plane.
#[derive(Debug, Default)]
pub(crate) struct PlaneDocuments {
    pub(crate) data_plane: DataPlane,
    /// The origin of the Routes: index of the zone, and key.
    pub(super) table: Vec<(usize, Arc<TableKey>, WrittenRoute)>,
    pub(super) naming: Naming,
    /// The ids of the documents of certificates.
    pub(super) certificates: BTreeMap<SslKey, String>,
    /// The parts with cells that get no Route.
    pub(super) unreached: BTreeSet<PartKey>,
}

/// The key of rows that may depend on each other: those of a group whose paths have the same first segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartKey {
    /// Index of the zone.
    pub(super) zone: usize,
    pub(super) original: Option<Hostname>,
    /// Empty for the root, and for paths that may cover several first segments.
    pub(super) segment: Box<str>,
}

/// The state for rewriting a written Route.
#[derive(Debug)]
pub(super) struct WrittenRoute {
    /// The upstreams that were asked for.
    pub(super) uses: Uses,
    /// The policies of its service.
    pub(super) chain: Option<Arc<PolicyChain>>,
    /// Whether it lists other spellings of its hosts.
    pub(super) has_spellings: bool,
    /// The refusals because of the Route, each rule once.
    pub(super) refused: ThinVec<(RuleRef, Refusal)>,
    /// Bytes of room that it takes, without its patterns.
    pub(super) room: usize,
    /// Bytes of room that its patterns take.
    pub(super) pattern_bytes: usize,
    pub(super) matcher_entries: usize,
}

/// The names of documents.
#[derive(Debug)]
pub(crate) struct Naming {
    pub(super) upstreams: Upstreams,
    pub(super) services: SharedDocuments<Arc<PolicyChain>>,
    pub(super) ids: Ids,
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            upstreams: Upstreams::default(),
            services: SharedDocuments::new(ResourceKind::Service),
            ids: Ids::default(),
        }
    }
}

/// The inputs of a data plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lowering<'a> {
    pub(crate) plane: &'a Plane,
    pub(crate) routes: &'a [Arc<RouteInput>],
    pub(crate) backends: &'a Backends,
    pub(crate) policies: &'a Policies,
    pub(crate) options: &'a Options,
}

impl<'a> Lowering<'a> {
    /// A rule with its route.
    pub(super) fn rule(&self, rule: RuleRef) -> (&'a RouteInput, &'a Rule) {
        let input: &'a RouteInput = &self.routes[rule.route];
        (input, &input.route.rules[rule.rule])
    }

    /// Lowers the admitted rules. `None` when the documents cannot fit the room; a result may exceed the room
    /// slightly.
    pub(crate) fn lower(
        &self,
        rows: &PlaneRows<'a>,
        admission: &Admission,
        room: &mut Room,
    ) -> Option<PlaneDocuments> {
        let mut groups = Vec::new();
        let mut table = Vec::new();
        let mut zone_of = Vec::new();
        let mut unreached = BTreeSet::new();
        for zone in 0..self.plane.zones.len() {
            let compiled = compile_zone(rows.zone(zone, admission), None, room)?;
            unreached.extend(compiled.unreached.iter().map(|(group, path)| PartKey {
                zone,
                original: compiled.groups[*group].0.clone(),
                segment: path.first_segment().into(),
            }));
            zone_of.extend(std::iter::repeat_n(zone, compiled.routes.len()));
            groups.push(compiled.groups);
            table.extend(compiled.routes);
        }
        let matched: Vec<Matched<'_>> = table.iter().map(Matched::by).collect();
        let closed = close(&matched, room)?;

        let mut naming = Naming::default();
        let mut documents: Vec<(DocumentKey, LazyDocument)> = Vec::with_capacity(table.len());
        let mut provenance = Vec::with_capacity(table.len());
        let mut written = Vec::with_capacity(table.len());
        let mut requested = BTreeSet::new();
        for ((route, closed), zone) in table.into_iter().zip(closed).zip(zone_of) {
            let RouteDraft { mut document, origin, uses, chain, has_spellings, refused } =
                self.draft(&route, zone, &groups[zone], &mut naming);
            let closed = if has_spellings { closed.with_spellings() } else { closed };
            let (room, id) = (route.room(&groups[zone]), naming.ids.assign(&name_of_route(&route.key)));
            let (pattern_bytes, matcher_entries) = (closed.bytes(), closed.matcher_entries());
            closed.into_patterns().put_into(&mut document);
            let key = DocumentKey { kind: ResourceKind::Route, id };
            let document = LazyDocument::written(&Document::Route(document));
            provenance.push((key.clone(), origin));
            documents.push((key, document));
            requested.extend(uses.iter().copied());
            let route_written =
                WrittenRoute { uses, chain, has_spellings, refused, room, pattern_bytes, matcher_entries };
            written.push((zone, route.key, route_written));
        }
        let mut certificates = BTreeMap::new();
        let is_shown = |served: &ServedCertificate| admission.shows(&served.name);
        for (certificate, document) in self.plane.certificates.documents(is_shown) {
            let id = id_of_certificate(&certificate, &mut naming.ids);
            let key = DocumentKey { kind: ResourceKind::Ssl, id: id.clone() };
            documents.push((key.clone(), LazyDocument::written(&Document::Ssl(document.ssl()))));
            provenance.push((key, document.provenance()));
            certificates.insert(certificate, id);
        }
        if let Some((key, document, origin)) = self.plane.telemetry() {
            provenance.push((key.clone(), origin));
            documents.push((key, document));
        }
        for upstream in requested {
            if let Some((key, (document, origin))) = naming
                .upstreams
                .named
                .document_key(&upstream)
                .zip(upstream.write(self.options.responder, self.backends))
            {
                documents.push((key.clone(), LazyDocument::written(&Document::Upstream(document))));
                provenance.push((key, origin));
            }
        }
        for chain in naming.services.keys() {
            let Some(key) = naming.services.document_key(chain) else { continue };
            let (document, origin) = write_service(chain, self.policies);
            documents.push((key.clone(), LazyDocument::written(&Document::Service(document))));
            provenance.push((key, origin));
        }
        let config: pingsix::Config = documents.into_iter().collect();
        let bytes = config.size_in_bytes(&self.plane.key.prefix(&self.options.root));
        let matcher_entries = written.iter().map(|(_, _, route)| route.matcher_entries).sum();
        let data_plane = DataPlane {
            config,
            provenance: provenance.into_iter().collect(),
            size: Size { bytes, matcher_entries },
            charged_ratio: admission.charged_ratio(),
        };
        Some(PlaneDocuments { data_plane, table: written, naming, certificates, unreached })
    }

    /// A Route without its patterns.
    pub(super) fn draft(
        &self,
        route: &TableRoute,
        zone: usize,
        groups: &Groups<'a>,
        naming: &mut Naming,
    ) -> RouteDraft {
        let mut writer = Writer { lowering: self, naming, refused: BTreeMap::new() };
        let (mut document, origin, chain) = writer.write(route, zone, groups);
        let has_spellings = route.host.is_some() && self.spells(route, zone, groups);
        document.methods = route.key.method.map(str::to_owned).into_iter().collect();
        document.priority = route.key.priority(self.plane.zones[zone].guarded);
        let refused = writer.refused.into_iter().collect();
        let uses = naming.upstreams.take_requested();
        RouteDraft { document, origin, uses, chain, has_spellings, refused }
    }
}

/// A Route that is written but for its patterns.
pub(super) struct RouteDraft {
    pub(super) document: pingsix::Route,
    pub(super) origin: Provenance,
    pub(super) uses: Uses,
    pub(super) chain: Option<Arc<PolicyChain>>,
    pub(super) has_spellings: bool,
    pub(super) refused: ThinVec<(RuleRef, Refusal)>,
}

/// Whether a refusal says that a rule is served with a limitation.
pub(super) fn is_limitation(refusal: &Refusal) -> bool {
    refusal.reason == Reason::Limited
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
        conditional.saturating_mul(Room::SPLIT_RULE).saturating_add(Room::ROUTE)
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

/// A Route being written.
pub(super) struct Writer<'a, 'l> {
    pub(super) lowering: &'l Lowering<'a>,
    pub(super) naming: &'l mut Naming,
    pub(super) refused: BTreeMap<RuleRef, Refusal>,
}

impl<'a> Writer<'a, '_> {
    fn write(
        &mut self,
        route: &TableRoute,
        zone: usize,
        groups: &Groups<'a>,
    ) -> (pingsix::Route, Provenance, Option<Arc<PolicyChain>>) {
        match &route.answer {
            Answer::OtherSpelling(protected) => {
                let first = protected.first().map(|&(group, row)| groups[group].1[row].with_other_spelling());
                let Decided { document, chain, decisions, redirect } =
                    self.decide(first.iter().collect(), route.host.as_ref(), zone);
                let provenance = Provenance::Rules {
                    listener: route.key.zone.clone(),
                    host: route.host.clone(),
                    decisions,
                    redirect,
                    shadowed: Box::default(),
                };
                let name = name_of(protected, groups).filter(|_| self.lowering.options.route_names);
                (pingsix::Route { name, ..document }, provenance, chain)
            }
            Answer::Guard => {
                let listener = route.key.zone.as_ref().map(ToString::to_string).unwrap_or_default();
                let misdirected = self.lowering.plane.zones[zone].misdirected;
                (self.guard(misdirected), Provenance::Guard { listener }, None)
            }
            Answer::Decide { list, shadowed, exposed } => {
                let rows = list.iter().map(|&(group, row)| &groups[group].1[row]).collect();
                let Decided { document, chain, decisions, redirect } =
                    self.decide(rows, route.host.as_ref(), zone);
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
                if self.lowering.options.route_names {
                    (pingsix::Route { name: name_of(list, groups), ..document }, provenance, chain)
                } else {
                    (document, provenance, chain)
                }
            }
        }
    }

    /// A Route that gives a status itself.
    pub(super) fn native_status(&mut self, status: u16) -> pingsix::Route {
        self.native_response(&DirectResponse { status, body: None })
    }

    /// A Route that answers itself.
    pub(super) fn native_response(&mut self, response: &DirectResponse) -> pingsix::Route {
        pingsix::Route {
            plugins: Plugins::default().with(&response.lower()),
            upstream_id: Some(self.naming.upstreams.nowhere().to_owned()),
            ..pingsix::Route::default()
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
