//! Writes the table of a data plane down as PingSIX documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::budget::Room;
use super::closure::Closed;
use super::decision::{Decided, origin_of};
use super::id::{Ids, Name};
use super::named::SharedDocuments;
use super::plane::{Plane, RuleRef};
use super::rows::RouteInput;
use super::service::write_service;
use super::ssl::{SslDocument, SslKey, id_of_certificate};
use super::table::{Answer, Groups, RowIndex, TableKey, TableRoute};
use super::upstream::{UpstreamKey, Upstreams, Uses};
use crate::backends::Backends;
use crate::model::{Hostname, Options, Origin, Provenance, Reason, Refusal};
use crate::normalise::{DirectResponse, PathKind, Rule};
use crate::pingsix::{self, Document, DocumentKey, LazyDocument, Plugins, ResourceKind, RoutePatterns};
use crate::policy::{Policies, PolicyChain};
use thin_vec::ThinVec;

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

/// A document with its key, and where it comes from.
pub(super) type WrittenDocument = (DocumentKey, LazyDocument, Provenance);

impl Naming {
    /// The document of an upstream; `None` if its id was never asked for.
    pub(super) fn upstream(
        &self,
        lowering: &Lowering<'_>,
        upstream: &UpstreamKey,
    ) -> Option<WrittenDocument> {
        let key = self.upstreams.named.document_key(upstream)?;
        let (document, origin) = upstream.write(lowering.options.responder, lowering.backends)?;
        Some((key, LazyDocument::written(&Document::Upstream(document)), origin))
    }

    /// The document of a service; `None` if its id was never asked for.
    pub(super) fn service(
        &self,
        lowering: &Lowering<'_>,
        chain: &Arc<PolicyChain>,
    ) -> Option<WrittenDocument> {
        let key = self.services.document_key(chain)?;
        let (document, origin) = write_service(chain, lowering.policies);
        Some((key, LazyDocument::written(&Document::Service(document)), origin))
    }

    /// The document of a certificate. It keeps its id among those of the others.
    pub(super) fn certificate(
        &mut self,
        ids: &mut BTreeMap<SslKey, String>,
        certificate: SslKey,
        document: &SslDocument<'_>,
    ) -> WrittenDocument {
        let id = ids.entry(certificate);
        let id = id.or_insert_with_key(|certificate| id_of_certificate(certificate, &mut self.ids)).clone();
        let key = DocumentKey { kind: ResourceKind::Ssl, id };
        (key, LazyDocument::written(&Document::Ssl(document.ssl())), document.provenance())
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
