//! Writes the table of a data plane down as PingSIX documents.

use std::collections::{BTreeMap, BTreeSet};

use super::budget::Room;
use super::closure::{Closed, close};
use super::decision::{Decided, origin_of};
use super::id::Ids;
use super::plane::{Plane, RuleRef};
use super::rows::{PlaneRows, RouteInput};
use super::ssl::write_certificates;
use super::table::{Answer, Groups, RowIndex, TableKey, TableRoute, compile_zone};
use super::upstream::Upstreams;
use crate::attach::Hostname;
use crate::options::Options;
use crate::pingsix::plugin::{Abort, FaultInjection};
use crate::pingsix::{self, Config, DocumentKey, Plugins, ResourceKind};
use crate::provenance::Provenance;
use crate::resolve::Backends;
use crate::route::{PathKind, Refusal};
use crate::translation::{DataPlane, Size};

/// The documents of a data plane.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) data_plane: DataPlane,
    /// Rules that cannot be expressed.
    pub(crate) refused_rules: Vec<(RuleRef, Refusal)>,
}

/// What a data plane is written from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lowering<'a> {
    pub(crate) plane: &'a Plane,
    pub(crate) rows: &'a PlaneRows<'a>,
    pub(crate) routes: &'a [RouteInput],
    pub(crate) backends: &'a Backends,
    pub(crate) options: &'a Options,
}

impl Lowering<'_> {
    /// Lowers the admitted rules, or all. `None` when the documents cannot fit the room; what needs a little more
    /// may come back all the same.
    pub(crate) fn lower(&self, admitted: Option<&BTreeSet<RuleRef>>, room: &mut Room) -> Option<Written> {
        let mut groups = Vec::new();
        let mut table = Vec::new();
        let mut zone_of = Vec::new();
        for zone in 0..self.plane.zones.len() {
            let (zone_groups, zone_routes) = compile_zone(self.rows.zone(zone, admitted), room)?;
            groups.push(zone_groups);
            zone_of.extend(std::iter::repeat_n(zone, zone_routes.len()));
            table.extend(zone_routes);
        }
        let closed = close(&table, room)?;

        let mut writer = Writer {
            lowering: self,
            upstreams: Upstreams::new(self.backends, self.options.responder),
            ids: Ids::default(),
            config: Config::default(),
            provenance: BTreeMap::new(),
            refused: BTreeMap::new(),
        };
        let matcher_entries = closed.iter().map(Closed::matcher_entries).sum();
        for ((route, closed), zone) in table.iter().zip(closed).zip(zone_of) {
            writer.write(route, closed, zone, &groups[zone]);
        }
        let Writer { upstreams, mut ids, mut config, mut provenance, refused, .. } = writer;
        write_certificates(&self.plane.certificates, &mut ids, &mut config, &mut provenance);
        upstreams.write(&mut config, &mut provenance);
        let bytes = config.size_in_bytes(&self.plane.key.prefix(&self.options.root));
        Some(Written {
            data_plane: DataPlane { config, provenance, size: Size { bytes, matcher_entries } },
            refused_rules: refused.into_iter().collect(),
        })
    }
}

/// A data plane being written.
pub(super) struct Writer<'a, 'l> {
    pub(super) lowering: &'l Lowering<'a>,
    pub(super) upstreams: Upstreams<'a>,
    pub(super) ids: Ids,
    config: Config,
    provenance: BTreeMap<DocumentKey, Provenance>,
    pub(super) refused: BTreeMap<RuleRef, Refusal>,
}

impl<'a> Writer<'a, '_> {
    fn write(&mut self, route: &TableRoute, closed: Closed, zone: usize, groups: &Groups<'a>) {
        let (mut document, provenance) = match &route.answer {
            Answer::Guard => {
                let listener = route.key.zone.as_ref().map(ToString::to_string).unwrap_or_default();
                (self.native_status(404), Provenance::Guard { listener })
            }
            Answer::Decide { list, shadowed } => {
                let rows = list.iter().map(|&(group, row)| &groups[group].1[row]).collect();
                let Decided { document, decisions, redirect } = self.decide(rows, route.host.as_ref(), zone);
                let text = |name: &Option<Hostname>| name.as_ref().map(ToString::to_string);
                let provenance = Provenance::Rules {
                    listener: text(&route.key.zone),
                    host: text(&route.host),
                    decisions,
                    redirect,
                    shadowed: shadowed.iter().map(|&(group, row)| origin_of(&groups[group].1[row])).collect(),
                };
                if self.lowering.options.route_names {
                    (pingsix::Route { name: name_of(list, groups), ..document }, provenance)
                } else {
                    (document, provenance)
                }
            }
        };
        match <[String; 1]>::try_from(closed.uris) {
            Ok([uri]) => document.uri = Some(uri),
            Err(uris) => document.uris = uris,
        }
        match closed.hosts.as_slice() {
            [host] => document.host = Some(host.clone()),
            hosts => document.hosts = hosts.to_vec(),
        }
        document.methods = route.key.method.map(str::to_owned).into_iter().collect();
        document.priority = route.key.priority();
        let id = self.id_of(&route.key);
        self.provenance.insert(DocumentKey { kind: ResourceKind::Route, id: id.clone() }, provenance);
        self.config.insert(id, document);
    }

    fn id_of(&mut self, key: &TableKey) -> String {
        let host = |name: &Option<Hostname>| name.as_ref().map(ToString::to_string).unwrap_or_default();
        let kind = match key.path.as_ref().map(|path| path.kind) {
            None => "guard",
            Some(PathKind::Exact) => "exact",
            Some(PathKind::Prefix) => "prefix",
        };
        let path = key.path.as_ref().map(|path| &*path.text).unwrap_or_default();
        self.ids.assign(
            'r',
            &[&host(&key.zone), &host(&key.original), kind, path, key.method.unwrap_or_default()],
        )
    }

    /// A Route that gives a status itself.
    pub(super) fn native_status(&mut self, status: u16) -> pingsix::Route {
        let abort = Abort { http_status: status, ..Abort::default() };
        pingsix::Route {
            plugins: Plugins::default()
                .with(&FaultInjection { abort: Some(abort), ..FaultInjection::default() }),
            upstream_id: Some(self.upstreams.nowhere().to_owned()),
            ..pingsix::Route::default()
        }
    }
}

/// `kind/namespace/name/rule` of the first row.
fn name_of(list: &[RowIndex], groups: &Groups<'_>) -> Option<String> {
    let &(group, row) = list.first()?;
    let row = &groups[group].1[row];
    let rule = row.section.rule().map_or_else(|| "default".to_owned(), |rule| rule.to_string());
    Some(format!("{}/{}/{rule}", row.route.kind, row.route.name))
}
