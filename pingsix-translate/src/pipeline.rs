//! The translation of one snapshot, stage by stage.

mod frame;
mod infrastructure;
mod ingress;
mod memo;
mod seen;
mod shared;
mod slots;
mod translation;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use ingress::translate_ingress;
pub use translation::Translation;

use self::frame::{Frame, JudgedBefore};
use self::memo::Memo;
use self::shared::Shared;
#[cfg(doc)]
use crate::SharedMap;
use crate::attach::Listeners;
use crate::backends::Backends;
use crate::few::Few;
use crate::lower::{
    DataPlane, Lowered, LoweredStreams, RouteInput, StreamPlane, lower_plane, lower_plane_to_change,
    lower_streams,
};
use crate::model::{DataPlaneKey, Options, Problem};
use crate::normalise::{
    Route, normalise_grpc_route, normalise_http_route, normalise_tcp_route, normalise_tls_route,
    normalise_udp_route,
};
use crate::quarantine::refuse_rules;
use crate::references::{Reading, References};
use crate::snapshot::{IngressSnapshot, Snapshot};
use crate::status::{Refusals, RouteVerdict, attached_to, judge_route};

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
/// What is different from the last snapshot is found without looking at what the two share, so that it takes hardly any
/// time if the snapshot is a changed copy of the last one. Then
///
/// - EndpointSlices are looked at, and routes only if a port ceases or begins to have endpoints;
/// - routes and Services take attaching and resolving these routes and those that refer to the Services;
/// - Secrets, Namespaces, ReferenceGrants, BackendTLSPolicies and whatever leaves hosts, ports and names of the listeners
///   as they are take judging all listeners, and the routes for which something else follows.
///
/// What is compiled and written is in proportion to what comes out different. Other changes of listeners, those that
/// concern most of the routes, and whatever `lower/change.rs` says take a full translation.
#[derive(Debug)]
pub struct Translator {
    options: Options,
    memo: Option<Box<Memo>>,
    effort: Effort,
}

/// What a translation took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Everything was done.
    Whole,
    /// What was different was done again.
    Part {
        /// The routes that were attached, and their references resolved.
        routes: usize,
    },
}

impl Translator {
    /// Nothing is remembered yet.
    pub const fn new(options: Options) -> Self {
        Self { options, memo: None, effort: Effort::Whole }
    }

    /// As [`translate`].
    pub fn translate(&mut self, snapshot: &Snapshot) -> Translation {
        let options = &self.options;
        if let Some(mut memo) = self.memo.take()
            && let Ok((translation, routes)) = memo.change(snapshot, options)
        {
            self.memo = Some(memo);
            self.effort = Effort::Part { routes };
            return translation;
        }
        self.effort = Effort::Whole;
        let attached = Attached::new(snapshot, options);
        let lowered = attached
            .frame
            .planes
            .iter()
            .map(|plane| lower_plane_to_change(plane, &attached.inputs, &attached.backends, options));
        let (lowered, planes): (Vec<Lowered>, Vec<_>) = lowered.unzip();
        let (translation, judged) = attached.judge(snapshot, options, lowered);
        self.memo = Some(Box::new(Memo::new(snapshot, judged, planes, &translation)));
        translation
    }

    /// As [`translate_ingress`]. There is nothing yet that is not done again.
    pub fn translate_ingress(&mut self, snapshot: &IngressSnapshot) -> Translation {
        self.memo = None;
        self.effort = Effort::Whole;
        translate_ingress(snapshot, &self.options)
    }

    /// What the last translation took.
    pub const fn effort(&self) -> Effort {
        self.effort
    }
}

/// Everything up to lowering.
#[derive(Debug)]
struct Attached {
    reading: Arc<Reading>,
    frame: Frame,
    backends: Backends,
    shared: Shared,
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
    counted: Few<usize>,
}

impl Attached {
    fn new(snapshot: &Snapshot, options: &Options) -> Self {
        let references = References::new(&snapshot.referents);
        let frame = Frame::new(snapshot, &references, options);
        let mut backends = Backends::default();
        let mut shared = Shared::default();
        let (mut inputs, mut problems) = (Vec::new(), Vec::new());
        for route in normalised(snapshot) {
            let mut of_route = Vec::new();
            let route = shared.route(route);
            let input = frame.attach(route, &references, (&mut backends, &mut shared), &mut of_route);
            inputs.push(Arc::new(input));
            problems.push(of_route);
        }
        Self { reading: references.reading().clone(), frame, backends, shared, inputs, problems }
    }

    fn judge(
        mut self,
        snapshot: &Snapshot,
        options: &Options,
        lowered: Vec<Lowered>,
    ) -> (Translation, JudgedRoutes) {
        let Self { reading, frame, inputs, backends, shared, problems: of_routes } = &mut self;
        let references = References::with(&snapshot.referents, reading.clone());
        let is_refused = frame.refused.is_some();
        let mut data_planes: BTreeMap<DataPlaneKey, DataPlane> = BTreeMap::new();
        let mut refusals = Refusals::default();
        let of_certificates = lowered
            .iter()
            .flat_map(|lowered| &lowered.refused_certificates)
            .map(|(owner, refusal)| refusal.of(owner));
        let of_shares = lowered.iter().flat_map(|lowered| &lowered.problems).cloned();
        let of_planes: Vec<Problem> = of_certificates.chain(of_shares).collect();
        for (number, (plane, lowered)) in frame.planes.iter().zip(lowered).enumerate() {
            refusals.add_plane(number, plane.listeners());
            let data_plane = add_refusals(&mut refusals, number, &frame.listeners, lowered);
            // A Gateway that is not accepted serves nothing, and its data planes must come to hold nothing.
            data_planes.insert(plane.key.clone(), if is_refused { DataPlane::default() } else { data_plane });
        }
        let mut problems: Vec<Problem> = of_routes.iter().flatten().cloned().chain(of_planes).collect();
        let mut stream_planes: BTreeMap<DataPlaneKey, StreamPlane> = BTreeMap::new();
        let streams = options.stream.then(|| lower_streams(&frame.listened(), inputs, backends, options));
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
            let (verdict, route) = judge_one(index, input, &refusals, shared);
            for listener in &route.counted {
                counts[*listener] += 1;
            }
            problems.extend(route.problems.iter().cloned());
            verdicts.push((input.route.key.clone(), verdict));
            judged.push(route);
        }
        let routes = verdicts.into_iter().collect();
        let judged_before = JudgedBefore { counts: &counts, routes, problems };
        let verdicts = frame.judge(snapshot, &references, inputs, judged_before);
        let (infrastructure, attached) = (frame.infrastructure.clone(), frame.parameters.attached().cloned());
        let has_unusable_parameters = frame.has_unusable_parameters();
        let translation = Translation {
            data_planes,
            stream_planes,
            infrastructure,
            attached,
            has_unusable_parameters,
            verdicts,
        };
        (translation, JudgedRoutes { attached: self, streams, judged })
    }
}

/// Takes note of what a data plane refuses. Returns its documents.
fn add_refusals(
    refusals: &mut Refusals,
    number: usize,
    listeners: &Listeners,
    lowered: Lowered,
) -> DataPlane {
    let Lowered { data_plane, refused_rules, refused_zones, served_zones, .. } = lowered;
    refusals.add_rules(number, refused_rules);
    refusals.add_zones(&listeners.all, &refused_zones, served_zones);
    data_plane
}

fn add_streams(refusals: &mut Refusals, number: usize, streams: &LoweredStreams) {
    refusals.add_plane(number, streams.listeners.iter().copied());
    refusals.add_rules(number, streams.refused_rules.iter().cloned());
}

fn judge_one(
    index: usize,
    input: &RouteInput,
    refusals: &Refusals,
    shared: &mut Shared,
) -> (RouteVerdict, JudgedRoute) {
    let mut problems = Vec::new();
    let mut verdict = judge_route(index, input, refusals, &mut problems);
    verdict.parents = shared.parents.share(verdict.parents);
    let counted = attached_to(index, input, &verdict, refusals);
    (verdict, JudgedRoute { problems, counted })
}

/// The routes of every kind.
fn normalised(snapshot: &Snapshot) -> impl Iterator<Item = Route> {
    let quarantine = &snapshot.referents.quarantine;
    let http = snapshot.http_routes.values().map(|route| normalise_http_route(route));
    let grpc = snapshot.grpc_routes.values().map(|route| normalise_grpc_route(route));
    let tls = snapshot.tls_routes.values().map(|route| normalise_tls_route(route));
    let tcp = snapshot.tcp_routes.values().map(|route| normalise_tcp_route(route));
    let udp = snapshot.udp_routes.values().map(|route| normalise_udp_route(route));
    let routes = http.chain(grpc).chain(tls).chain(tcp).chain(udp);
    routes.map(|route| refuse_rules(quarantine, route))
}
