//! The translation of one snapshot, stage by stage.

mod ingress;
mod memo;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use ingress::translate_ingress;

use self::memo::Memo;
use crate::attach::{Listeners, attach_route, judge_listeners, only_host};
use crate::lower::{
    Lowered, LoweredStreams, Plane, RouteInput, lower_plane, lower_plane_to_change, lower_streams, planes,
};
use crate::object::{Kind, ObjectKey};
use crate::options::Options;
use crate::policy::{BackendTlsPolicies, Carried};
use crate::resolve::{Backends, References};
use crate::route::{
    Route, normalise_grpc_route, normalise_http_route, normalise_tcp_route, normalise_tls_route,
    normalise_udp_route,
};
use crate::shared_map::SharedMap;
use crate::snapshot::{IngressSnapshot, Snapshot, key_of};
use crate::translation::{DataPlane, DataPlaneKey, StreamPlane, Translation};
use crate::verdict::{
    Judged, Problem, Refusals, RouteVerdict, Verdicts, attached_to, judge_gateway, judge_listener_sets,
    judge_policies, judge_route, refuse_gateway,
};

/// Translates what one Gateway may see into PingSIX configuration and verdicts.
///
/// Total and deterministic: whatever the objects hold, there is a result, and the same snapshot and options give
/// the same bytes. What cannot be honoured answers an error to the requests it stands for and is named in the
/// verdicts; everything else is served.
pub fn translate(snapshot: &Snapshot, options: &Options) -> Translation {
    let attached = Attached::new(snapshot, options);
    let lowered = attached
        .frame
        .planes
        .iter()
        .map(|plane| lower_plane(plane, &attached.inputs, &attached.backends, options));
    let lowered = lowered.collect();
    attached.judge(snapshot, options, lowered).0
}

/// Translates one owner of data planes again and again, and does again only what is different.
///
/// Each result is the one that [`translate`] or [`translate_ingress`] gives, byte for byte. Objects count as unchanged
/// when they are the same [`Arc`]s as the last time; results share what is the same, see [`SharedMap::changes`].
///
/// A change of routes, Services or EndpointSlices takes time in proportion to what it changes, and a small constant per
/// object of the snapshot for finding it. A change of anything else, or of most of the routes, and whatever
/// `lower/change.rs` says, takes a full translation.
#[derive(Debug)]
pub struct Translator {
    options: Options,
    memo: Option<Box<Memo>>,
}

impl Translator {
    /// Nothing is remembered yet.
    pub const fn new(options: Options) -> Self {
        Self { options, memo: None }
    }

    /// As [`translate`].
    pub fn translate(&mut self, snapshot: &Snapshot) -> Translation {
        let options = &self.options;
        if let Some(mut memo) = self.memo.take()
            && let Ok(translation) = memo.change(snapshot, options)
        {
            self.memo = Some(memo);
            return translation;
        }
        let attached = Attached::new(snapshot, options);
        let lowered = attached
            .frame
            .planes
            .iter()
            .map(|plane| lower_plane_to_change(plane, &attached.inputs, &attached.backends, options));
        let (lowered, planes): (Vec<Lowered>, Vec<_>) = lowered.unzip();
        let (translation, judged) = attached.judge(snapshot, options, lowered);
        let planes: Option<Vec<_>> = planes.into_iter().collect();
        self.memo = planes.map(|planes| Box::new(Memo::new(snapshot, judged, planes, &translation)));
        translation
    }

    /// As [`translate_ingress`]. There is nothing yet that is not done again.
    pub fn translate_ingress(&mut self, snapshot: &IngressSnapshot) -> Translation {
        self.memo = None;
        translate_ingress(snapshot, &self.options)
    }
}

/// What does not depend on routes, nor on what they refer to.
#[derive(Debug)]
struct Frame {
    gateway: Arc<ObjectKey>,
    listeners: Listeners,
    planes: Vec<Plane>,
    policies: BackendTlsPolicies,
    problems: Vec<Problem>,
}

impl Frame {
    fn new(snapshot: &Snapshot, references: &References<'_>, options: &Options) -> Self {
        let gateway = Arc::new(key_of(Kind::Gateway, &snapshot.gateway.metadata));
        let mut problems = Vec::new();
        let mut listeners = judge_listeners(snapshot, &gateway, references, options, &mut problems);
        let planes = planes(&gateway.name, &listeners.all, options.layout);
        for (listener, limit) in planes.iter().flat_map(|plane| &plane.certificates.limits) {
            listeners.all[*listener].limits.push(limit.clone());
        }
        for listener in &listeners.all {
            problems.extend(listener.limits.iter().map(|limit| limit.of(&listener.owner)));
        }
        let policies = BackendTlsPolicies::new(&snapshot.backend_tls_policies, references);
        Self { gateway, listeners, planes, policies, problems }
    }

    /// Attaches a route and resolves what it refers to.
    fn attach(
        &self,
        route: Arc<Route>,
        references: &References<'_>,
        backends: &mut Backends,
        problems: &mut Vec<Problem>,
    ) -> RouteInput {
        let parents = attach_route(&route, &self.listeners, references);
        let host = only_host(&route.hostnames, &parents, &self.listeners.all);
        let carried = Carried::by(route.traffic, &parents, &self.listeners.all, host.as_ref());
        let in_effect = self.policies.for_route(carried);
        let rules = route
            .rules
            .iter()
            .map(|rule| references.resolve_rule(&route, rule, in_effect, backends, problems))
            .collect();
        RouteInput::new(route, rules, parents)
    }

    /// Verdicts on everything but routes, and everything that is wrong. `inputs` are the routes in the order of the
    /// snapshot.
    fn judge(
        &self,
        snapshot: &Snapshot,
        options: &Options,
        inputs: &[Arc<RouteInput>],
        attached: &[i32],
        routes: SharedMap<Arc<ObjectKey>, RouteVerdict>,
        mut problems: Vec<Problem>,
    ) -> Verdicts {
        let references = References::new(&snapshot.referents);
        let policies = judge_policies(&self.policies, &self.gateway, inputs, &references, &mut problems);
        let refused = refuse_gateway(&snapshot.gateway);
        let judged = Judged {
            listeners: &self.listeners,
            attached,
            layout: options.layout,
            refused: refused.as_ref(),
        };
        let listener_sets = judge_listener_sets(&judged);
        let gateway = judge_gateway(&snapshot.gateway, &judged, &listener_sets, &references, &mut problems);
        problems.extend(self.problems.iter().cloned());
        problems.sort();
        problems.dedup();
        Verdicts {
            gateway: Some(gateway),
            listener_sets,
            routes,
            policies,
            ingresses: BTreeSet::new(),
            problems,
        }
    }
}

/// Everything up to lowering.
#[derive(Debug)]
struct Attached {
    frame: Frame,
    backends: Backends,
    /// In the order of the snapshot.
    inputs: Vec<Arc<RouteInput>>,
    /// What is wrong with each route, so far.
    problems: Vec<Vec<Problem>>,
}

/// A whole translation with what it was made of.
#[derive(Debug)]
struct JudgedRoutes {
    attached: Attached,
    streams: Option<LoweredStreams>,
    /// By route: what else is wrong with it, and the listeners it counts for.
    judged: Vec<JudgedRoute>,
}

/// What a verdict on a route comes with.
#[derive(Debug, Default)]
struct JudgedRoute {
    problems: Vec<Problem>,
    /// The listeners that count the route as attached.
    counted: BTreeSet<usize>,
}

impl Attached {
    fn new(snapshot: &Snapshot, options: &Options) -> Self {
        let references = References::new(&snapshot.referents);
        let frame = Frame::new(snapshot, &references, options);
        let mut backends = Backends::default();
        let (mut inputs, mut problems) = (Vec::new(), Vec::new());
        for route in normalised(snapshot) {
            let mut of_route = Vec::new();
            let input = frame.attach(Arc::new(route), &references, &mut backends, &mut of_route);
            inputs.push(Arc::new(input));
            problems.push(of_route);
        }
        Self { frame, backends, inputs, problems }
    }

    fn judge(
        self,
        snapshot: &Snapshot,
        options: &Options,
        lowered: Vec<Lowered>,
    ) -> (Translation, JudgedRoutes) {
        let Self { frame, inputs, backends, .. } = &self;
        let is_refused = refuse_gateway(&snapshot.gateway).is_some();
        let mut data_planes: BTreeMap<DataPlaneKey, DataPlane> = BTreeMap::new();
        let mut refusals = Refusals::default();
        for (number, (plane, lowered)) in frame.planes.iter().zip(lowered).enumerate() {
            let data_plane = add_refusals(&mut refusals, number, plane, &frame.listeners, lowered);
            // A Gateway that is not accepted serves nothing, and its data planes must come to hold nothing.
            data_planes.insert(plane.key.clone(), if is_refused { DataPlane::default() } else { data_plane });
        }
        let mut problems: Vec<Problem> = self.problems.iter().flatten().cloned().collect();
        let mut stream_planes: BTreeMap<DataPlaneKey, StreamPlane> = BTreeMap::new();
        let streams = options
            .stream
            .then(|| lower_streams(&frame.gateway.name, &frame.listeners.all, inputs, backends, options));
        if let Some(streams) = &streams {
            add_streams(&mut refusals, data_planes.len(), streams);
            problems.extend(streams.problems.iter().cloned());
            let plane = if is_refused { StreamPlane::default() } else { streams.plane.clone() };
            stream_planes.insert(streams.key.clone(), plane);
        }
        let mut counts = vec![0; frame.listeners.all.len()];
        let mut judged = Vec::with_capacity(inputs.len());
        let mut verdicts = Vec::with_capacity(inputs.len());
        for (index, input) in inputs.iter().enumerate() {
            let (verdict, route) = judge_one(index, input, &refusals);
            for listener in &route.counted {
                counts[*listener] += 1;
            }
            problems.extend(route.problems.iter().cloned());
            verdicts.push((input.route.key.clone(), verdict));
            judged.push(route);
        }
        let routes = verdicts.into_iter().collect();
        let verdicts = frame.judge(snapshot, options, inputs, &counts, routes, problems);
        let translation = Translation { data_planes, stream_planes, verdicts };
        (translation, JudgedRoutes { attached: self, streams, judged })
    }
}

/// Takes note of what a data plane refuses. Returns its documents.
fn add_refusals(
    refusals: &mut Refusals,
    number: usize,
    plane: &Plane,
    listeners: &Listeners,
    lowered: Lowered,
) -> DataPlane {
    let Lowered { data_plane, refused_rules, refused_zones, served_zones } = lowered;
    let served = plane.zones.iter().flat_map(|zone| &zone.listeners).copied();
    refusals.add_rules(number, served, refused_rules);
    refusals.add_zones(&listeners.all, &refused_zones, served_zones);
    data_plane
}

fn add_streams(refusals: &mut Refusals, number: usize, streams: &LoweredStreams) {
    refusals.add_rules(number, streams.listeners.iter().copied(), streams.refused_rules.iter().cloned());
}

fn judge_one(index: usize, input: &RouteInput, refusals: &Refusals) -> (RouteVerdict, JudgedRoute) {
    let mut problems = Vec::new();
    let verdict = judge_route(index, input, refusals, &mut problems);
    let counted = attached_to(index, input, &verdict, refusals);
    (verdict, JudgedRoute { problems, counted })
}

/// The routes of every kind.
fn normalised(snapshot: &Snapshot) -> impl Iterator<Item = Route> {
    let http = snapshot.http_routes.values().map(|route| normalise_http_route(route));
    let grpc = snapshot.grpc_routes.values().map(|route| normalise_grpc_route(route));
    let tls = snapshot.tls_routes.values().map(|route| normalise_tls_route(route));
    let tcp = snapshot.tcp_routes.values().map(|route| normalise_tcp_route(route));
    let udp = snapshot.udp_routes.values().map(|route| normalise_udp_route(route));
    http.chain(grpc).chain(tls).chain(tcp).chain(udp)
}
