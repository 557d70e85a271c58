//! Writes the table of a data plane down as PingSIX documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::closure::{Closed, close};
use super::condition::lower_conditions;
use super::id::Ids;
use super::plane::{Plane, RuleRef, ZoneListeners};
use super::ssl::write_certificates;
use super::table::{
    Answer, Groups, Row, RowIndex, TableKey, TableRoute, Zone, compare_slashed, compile_zone,
};
use super::upstream::Upstreams;
use crate::attach::{Attachment, Hostname, ServedName, hostname_covers, served_names};
use crate::field;
use crate::object::{Kind, ObjectKey};
use crate::options::{Budget, Options};
use crate::pingsix::plugin::{Abort, FaultInjection, SplitRule, TrafficSplit, WeightedUpstream};
use crate::pingsix::{self, Config, DocumentKey, Plugins, ResourceKind};
use crate::provenance::{Decision, Origin, Provenance};
use crate::resolve::{Action, Backends, ResolvedRule, Target};
use crate::route::{PathKind, Refusal, Route};
use crate::translation::{DataPlane, DataPlaneKey, Size};
use crate::verdict::Reason;

/// A route with what the earlier stages found out about it.
#[derive(Debug)]
pub(crate) struct RouteInput {
    pub(crate) route: Route,
    /// One per rule of the route.
    pub(crate) rules: Vec<ResolvedRule>,
    /// One per parentRef that is ours.
    pub(crate) parents: Vec<Attachment>,
    /// Listeners attached to through any of them.
    listeners: BTreeSet<usize>,
}

impl RouteInput {
    pub(crate) fn new(route: Route, rules: Vec<ResolvedRule>, parents: Vec<Attachment>) -> Self {
        let listeners =
            parents.iter().filter_map(|parent| parent.outcome.as_ref().ok()).flatten().copied().collect();
        Self { route, rules, parents, listeners }
    }
}

/// A data plane's documents, and what could not be put there.
#[derive(Debug, Default)]
pub(crate) struct Lowered {
    pub(crate) data_plane: DataPlane,
    /// Rules refused on this data plane.
    pub(crate) refused_rules: Vec<(RuleRef, Refusal)>,
    /// Routes refused on a listener; their rules answer 500 there.
    pub(crate) refused_zones: Vec<ZoneRefusal>,
    /// Routes and listeners that are served for at least some hosts: index of the route, listener.
    pub(crate) served_zones: BTreeSet<(usize, usize)>,
}

/// A route that a data plane cannot serve on one listener alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneRefusal {
    /// Index of the route.
    pub(crate) route: usize,
    /// The listener it is attached to.
    pub(crate) listener: usize,
    pub(crate) cause: ZoneRefusalCause,
}

/// Why: PingSIX serves every host on every port of the data plane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ZoneRefusalCause {
    /// Another listener serves the same hosts on another port, and the route is not attached to it.
    NotAttached { other: usize },
    /// All listeners of these hosts speak HTTPS, but the data plane also has a plaintext port.
    Exposed { port: u16 },
}

/// Lowers everything attached to the listeners of a data plane.
///
/// When the budget does not suffice, rules are admitted oldest first and the others refused.
pub(crate) fn lower_plane(
    plane: &Plane,
    routes: &[RouteInput],
    backends: &Backends,
    options: &Options,
) -> Lowered {
    let with = |admitted: Option<&[RuleRef]>, budget: Budget| {
        let admitted = admitted.map(|rules| rules.iter().copied().collect());
        Lowering { plane, routes, backends, options, admitted }
            .lower(budget)
            .filter(|lowered| fits(lowered, budget))
    };
    if let Some(all) = with(None, options.budget) {
        return all;
    }
    let oldest_first = by_age(plane, routes);
    // The largest count that fits. Admitting a rule never makes the table smaller.
    let (mut fitting, mut too_many, mut lowered) = (0, oldest_first.len(), None);
    while too_many - fitting > 1 {
        let middle = fitting.midpoint(too_many);
        match with(Some(&oldest_first[..middle]), options.budget) {
            Some(fits) => (fitting, lowered) = (middle, Some(fits)),
            None => too_many = middle,
        }
    }
    // Without rules only the guards are left; a budget too small even for them is exceeded.
    let unlimited = Budget { bytes: usize::MAX, matcher_entries: usize::MAX };
    let mut lowered = lowered.or_else(|| with(Some(&[]), unlimited)).unwrap_or_default();
    for &rule in &oldest_first[fitting..] {
        let index = routes[rule.route].route.rules[rule.rule].index;
        lowered.refused_rules.push((
            rule,
            Refusal::new(
                field::rule(index),
                Reason::BudgetExceeded,
                format!(
                    "Data plane {} has no room for the rule: older rules use up its budget of {} bytes and {} \
                     matcher entries.",
                    plane.key, options.budget.bytes, options.budget.matcher_entries
                ),
            ),
        ));
    }
    lowered
}

fn fits(lowered: &Lowered, budget: Budget) -> bool {
    let Size { bytes, matcher_entries } = lowered.data_plane.size;
    bytes <= budget.bytes && matcher_entries <= budget.matcher_entries
}

/// The rules that have a place in the data plane, oldest route first.
fn by_age(plane: &Plane, routes: &[RouteInput]) -> Vec<RuleRef> {
    let mut order: Vec<usize> = (0..routes.len())
        .filter(|route| {
            plane.zones.iter().flat_map(|zone| &zone.listeners).any(|l| routes[*route].listeners.contains(l))
        })
        .collect();
    order.sort_by(|left, right| {
        let (left, right) = (&routes[*left].route, &routes[*right].route);
        left.age.cmp(&right.age).then_with(|| compare_slashed(&left.key, &right.key))
    });
    order
        .into_iter()
        .flat_map(|route| (0..routes[route].route.rules.len()).map(move |rule| RuleRef { route, rule }))
        .collect()
}

struct Lowering<'a> {
    plane: &'a Plane,
    routes: &'a [RouteInput],
    backends: &'a Backends,
    options: &'a Options,
    /// The rules there is room for; all without a value.
    admitted: Option<BTreeSet<RuleRef>>,
}

impl<'a> Lowering<'a> {
    /// `None` when the table cannot fit the budget; one that is a little too large may come back all the same.
    fn lower(&self, budget: Budget) -> Option<Lowered> {
        let mut refused_zones = Vec::new();
        let mut served_zones = BTreeSet::new();
        let mut refused_in_zone = BTreeSet::new();
        let mut groups = Vec::new();
        let mut table = Vec::new();
        let mut zone_of = Vec::new();
        for index in 0..self.plane.zones.len() {
            let refused = self.refused_in(index);
            refused_in_zone.extend(refused.iter().map(|refusal| (refusal.route, index)));
            refused_zones.extend(refused);
            served_zones.extend(
                self.served_in(index).filter(|(route, _)| !refused_in_zone.contains(&(*route, index))),
            );
            let zone = self.zone(index);
            let (zone_groups, zone_routes) = compile_zone(zone);
            groups.push(zone_groups);
            zone_of.extend(std::iter::repeat_n(index, zone_routes.len()));
            table.extend(zone_routes);
        }
        let closed = close(&table, budget)?;

        let mut writer = Writer {
            lowering: self,
            upstreams: Upstreams::new(self.backends, self.options.responder),
            ids: Ids::default(),
            config: Config::default(),
            provenance: BTreeMap::new(),
            refused: BTreeMap::new(),
            refused_in_zone,
        };
        let matcher_entries = closed.iter().map(Closed::matcher_entries).sum();
        for ((route, closed), zone) in table.iter().zip(closed).zip(zone_of) {
            writer.write(route, closed, zone, &groups[zone]);
        }
        let Writer { upstreams, mut ids, mut config, mut provenance, refused, .. } = writer;
        let DataPlaneKey::Gateway { gateway, .. } = &self.plane.key;
        let gateway = Arc::new(ObjectKey { kind: Kind::Gateway, name: gateway.clone() });
        write_certificates(&gateway, &self.plane.certificates, &mut ids, &mut config, &mut provenance);
        upstreams.write(&mut config, &mut provenance);
        let bytes = config.size_in_bytes(&self.plane.key.prefix(&self.options.root));
        Some(Lowered {
            data_plane: DataPlane { config, provenance, size: Size { bytes, matcher_entries } },
            refused_rules: refused.into_iter().collect(),
            refused_zones,
            served_zones,
        })
    }

    /// The routes attached to listeners of a zone.
    fn attached(&self, zone: usize) -> impl Iterator<Item = (usize, &'a RouteInput)> + '_ {
        let members = &self.plane.zones[zone].listeners;
        self.routes
            .iter()
            .enumerate()
            .filter(move |(_, input)| members.iter().any(|listener| input.listeners.contains(listener)))
    }

    /// The names a route has in a zone.
    fn names(&self, zone: usize, input: &RouteInput) -> impl Iterator<Item = ServedName> + '_ {
        served_names(&input.route.hostnames, self.plane.zones[zone].hostname.as_ref())
            .into_iter()
            .filter(move |name| !self.is_elsewhere(zone, name.served.as_ref()))
    }

    fn zone(&self, zone: usize) -> Zone<'a> {
        let members = &self.plane.zones[zone];
        let mut groups: BTreeMap<Option<Hostname>, Vec<Row<'a>>> = BTreeMap::new();
        for (position, input) in self.attached(zone) {
            for name in self.names(zone, input) {
                groups.entry(name.original).or_default().extend(self.rows(position, input));
            }
        }
        Zone { hostname: members.hostname.clone(), guarded: members.guarded, groups }
    }

    /// Routes that cannot be served in a zone without being served where they are not attached.
    fn refused_in(&self, zone: usize) -> Vec<ZoneRefusal> {
        let ZoneListeners { listeners, exposed_on, .. } = &self.plane.zones[zone];
        let mut refused = Vec::new();
        for (route, input) in self.attached(zone) {
            let missing = listeners.iter().find(|listener| !input.listeners.contains(listener));
            let cause = match (missing, exposed_on) {
                (Some(&other), _) => ZoneRefusalCause::NotAttached { other },
                (None, Some(port)) => ZoneRefusalCause::Exposed { port: *port },
                (None, None) => continue,
            };
            if self.names(zone, input).next().is_none() {
                continue;
            }
            let attached = listeners.iter().filter(|listener| input.listeners.contains(listener));
            refused.extend(attached.map(|&listener| ZoneRefusal { route, listener, cause }));
        }
        refused
    }

    /// The routes that have a name in a zone, each with every listener of the zone it is attached to.
    fn served_in(&self, zone: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let listeners = &self.plane.zones[zone].listeners;
        self.attached(zone).filter(move |(_, input)| self.names(zone, input).next().is_some()).flat_map(
            move |(route, input)| {
                let attached = listeners.iter().filter(|listener| input.listeners.contains(listener));
                attached.map(move |&listener| (route, listener))
            },
        )
    }

    /// Whether every host of this name belongs to a narrower zone.
    fn is_elsewhere(&self, zone: usize, name: Option<&Hostname>) -> bool {
        let own = self.plane.zones[zone].hostname.as_ref();
        self.plane
            .zones
            .iter()
            .map(|other| other.hostname.as_ref())
            .any(|other| other != own && hostname_covers(own, other) && hostname_covers(other, name))
    }

    fn rows<'s>(&'s self, position: usize, input: &'a RouteInput) -> impl Iterator<Item = Row<'a>> + 's {
        let route = &input.route;
        route.rules.iter().enumerate().flat_map(move |(rule, content)| {
            let reference = RuleRef { route: position, rule };
            let admitted = self.admitted.as_ref().is_none_or(|admitted| admitted.contains(&reference));
            content.matches.iter().filter(move |_| admitted).map(move |matched| Row {
                rule: reference,
                route: &route.key,
                age: route.age,
                rule_index: content.index,
                match_index: matched.index,
                path: &matched.path,
                method: matched.method,
                conditions: &matched.conditions,
            })
        })
    }
}

struct Writer<'a, 'l> {
    lowering: &'l Lowering<'a>,
    upstreams: Upstreams<'a>,
    ids: Ids,
    config: Config,
    provenance: BTreeMap<DocumentKey, Provenance>,
    refused: BTreeMap<RuleRef, Refusal>,
    refused_in_zone: BTreeSet<(usize, usize)>,
}

impl<'a> Writer<'a, '_> {
    fn write(&mut self, route: &TableRoute, closed: Closed, zone: usize, groups: &Groups<'a>) {
        let (mut document, provenance) = match &route.answer {
            Answer::Guard => {
                let listener = route.key.zone.as_ref().map(ToString::to_string).unwrap_or_default();
                (self.native_status(404), Provenance::Guard { listener })
            }
            Answer::Decide(list) => {
                let (document, decisions) = self.decide(list, zone, groups);
                let text = |name: &Option<Hostname>| name.as_ref().map(ToString::to_string);
                let provenance =
                    Provenance::Rules { listener: text(&route.key.zone), host: text(&route.host), decisions };
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
    fn native_status(&mut self, status: u16) -> pingsix::Route {
        let abort = Abort { http_status: status, ..Abort::default() };
        pingsix::Route {
            plugins: Plugins::default()
                .with(&FaultInjection { abort: Some(abort), ..FaultInjection::default() }),
            upstream_id: Some(self.upstreams.nowhere().to_owned()),
            ..pingsix::Route::default()
        }
    }

    fn action(&self, row: &Row<'_>, zone: usize) -> Action {
        if self.refused_in_zone.contains(&(row.rule.route, zone)) {
            return Action::status(500);
        }
        self.lowering.routes[row.rule.route].rules[row.rule.rule].action.clone()
    }

    /// A Route that tries rows in order.
    fn decide(
        &mut self,
        list: &[RowIndex],
        zone: usize,
        groups: &Groups<'a>,
    ) -> (pingsix::Route, Vec<Decision>) {
        let rows: Vec<&Row<'a>> = list.iter().map(|&(group, row)| &groups[group].1[row]).collect();
        let steps: Vec<Step> = rows
            .iter()
            .map(|row| Step { conditions: lower_conditions(row.conditions), action: self.action(row, zone) })
            .collect();
        let ends_in_404 = rows.last().is_none_or(|row| !row.conditions.is_empty());
        let (document, split_rules) = match steps.as_slice() {
            [Step { action, .. }] if !ends_in_404 && action.only_status().is_some() => {
                (self.native_status(action.only_status().unwrap_or(500)), vec![0])
            }
            _ => self.split(&steps, ends_in_404).unwrap_or_else(|| {
                self.refuse_for_want_of_responder(&rows, &steps);
                (self.native_status(500), vec![0; steps.len()])
            }),
        };
        let decision = |(row, split_rules): (&&Row<'a>, usize)| Decision {
            origin: Some(Origin {
                object: row.route.clone(),
                rule: Some(row.rule_index),
                matched: Some(row.match_index),
            }),
            conditional: !row.conditions.is_empty(),
            split_rules,
        };
        let not_found = ends_in_404.then_some(Decision { origin: None, conditional: false, split_rules: 0 });
        (document, rows.iter().zip(split_rules).map(decision).chain(not_found).collect())
    }

    /// Lowers steps to a `traffic-split`, with the number of its rules that each step took; `None` when that
    /// takes a responder and there is none.
    fn split(&mut self, steps: &[Step], ends_in_404: bool) -> Option<(pingsix::Route, Vec<usize>)> {
        let mut rules = Vec::new();
        let mut taken = Vec::with_capacity(steps.len());
        let mut own = ends_in_404.then_some(Target::Status(404));
        for step in steps {
            let unconditional = step.conditions.iter().all(Vec::is_empty);
            match step.action.targets.as_slice() {
                // The end of a list needs no rule: it is the Route's own upstream.
                [(target, _)] if unconditional => {
                    own = Some(*target);
                    taken.push(0);
                }
                targets => {
                    let weighted_upstreams = self.weighted(targets)?;
                    rules.extend(step.conditions.iter().map(|vars| SplitRule {
                        vars: vars.clone(),
                        weighted_upstreams: weighted_upstreams.clone(),
                    }));
                    taken.push(step.conditions.len());
                }
            }
        }
        let upstream_id = match own {
            Some(target) => self.upstreams.target(target, &mut self.ids)?.to_owned(),
            // The last rule always holds; a Route needs an upstream of its own all the same.
            None => rules.last()?.weighted_upstreams.first()?.upstream_id.clone()?,
        };
        let mut plugins = Plugins::default();
        if !rules.is_empty() {
            plugins.insert(&TrafficSplit { rules });
        }
        Some((pingsix::Route { plugins, upstream_id: Some(upstream_id), ..pingsix::Route::default() }, taken))
    }

    fn weighted(&mut self, targets: &[(Target, u32)]) -> Option<Vec<WeightedUpstream>> {
        targets
            .iter()
            .map(|&(target, weight)| {
                let id = self.upstreams.target(target, &mut self.ids)?.to_owned();
                Some(WeightedUpstream { upstream_id: Some(id), upstream: None, weight })
            })
            .collect()
    }

    /// Refuses the rules whose conditions or shares could not be expressed; an unconditional rule at the end of
    /// a list is served elsewhere and not to blame.
    fn refuse_for_want_of_responder(&mut self, rows: &[&Row<'_>], steps: &[Step]) {
        for (row, step) in rows.iter().zip(steps) {
            if row.conditions.is_empty() && step.action.targets.len() == 1 {
                continue;
            }
            self.refused.entry(row.rule).or_insert_with(|| {
                Refusal::new(
                    field::rule(row.rule_index),
                    Reason::UnsupportedValue,
                    "PingSIX cannot answer this rule without a responder, and none is configured; where it would \
                     decide, requests are answered with 500.",
                )
            });
        }
    }
}

/// One row of a decision list, lowered.
struct Step {
    /// Alternatives of `vars`; one empty list when the row is unconditional.
    conditions: Vec<Vec<Vec<String>>>,
    action: Action,
}

/// `kind/namespace/name/rule` of the first row.
fn name_of(list: &[RowIndex], groups: &Groups<'_>) -> Option<String> {
    let &(group, row) = list.first()?;
    let row = &groups[group].1[row];
    Some(format!("{}/{}/{}", row.route.kind, row.route.name, row.rule_index))
}
