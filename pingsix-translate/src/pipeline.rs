//! The translation of one snapshot, stage by stage.

mod cache;
mod diff;
mod gateway;
mod gateway_context;
mod infrastructure;
mod ingress;
mod owner;
mod route_slab;
mod shared;
mod translation;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use translation::Translation;

use self::cache::TranslationCache;
use self::gateway::OfGateway;
use self::ingress::{OfIngressClass, of_another_controller};
use self::owner::{Owner, Served};
use self::shared::Shared;
#[cfg(doc)]
use crate::SharedMap;
use crate::attach::Listener;
use crate::backends::Backends;
use crate::lower::{
    DataPlane, Lowered, LoweredStreams, Lowering, Plane, RouteInput, StreamPlane, lower_plane,
    lower_plane_to_change, lower_streams,
};
use crate::model::{DataPlaneKey, Options, Problem};
use crate::references::{ReferenceCache, References};
use crate::small_set::SmallSet;
use crate::snapshot::{IngressSnapshot, Snapshot};
use crate::status::Refusals;

/// Translates what one Gateway may see into PingSIX configuration and verdicts.
///
/// Translation is total and deterministic: every snapshot has a result, and the same snapshot and options give the
/// same bytes. A rule that cannot be honoured answers its requests with an error and is named in the verdicts. All
/// other rules are served.
pub fn translate(snapshot: &Snapshot, options: &Options) -> Translation {
    translate_whole::<OfGateway>(snapshot, options)
}

/// Translates what one IngressClass may see into PingSIX configuration and verdicts.
///
/// As [`translate`], it is total and deterministic. A class of another controller has no data plane; one of ours that
/// cannot be served has an empty one.
pub fn translate_ingress(snapshot: &IngressSnapshot, options: &Options) -> Translation {
    of_another_controller(snapshot, options)
        .unwrap_or_else(|| translate_whole::<OfIngressClass>(snapshot, options))
}

fn translate_whole<O: Owner>(snapshot: &O::Snapshot, options: &Options) -> Translation {
    let attached = Attached::<O>::new(snapshot, options);
    let planes = attached.owner.planes().iter();
    let lowered = planes.map(|plane| lower_plane(&attached.lowering(plane, options))).collect();
    attached.judge(snapshot, options, lowered).0
}

/// Translates one owner of data planes repeatedly, at a cost in proportion to the changes.
///
/// Each result is the one that [`translate`] or [`translate_ingress`] gives, byte for byte. Objects count as unchanged
/// when they are the same [`Arc`]s as the last time; results share what is the same, see [`SharedMap::changes`].
///
/// The comparison with the last snapshot skips the parts that both share, so it takes hardly any time for a changed
/// copy of the last snapshot. The cost of a change depends on its kind:
///
/// - EndpointSlices: the endpoints, and the routes of a port that gains its first endpoint or loses its last one;
/// - routes, Ingresses and Services: attachment and resolution of these routes and of those that refer to the
///   Services;
/// - Secrets, Namespaces, ReferenceGrants, policies and changes of listeners that keep hosts, ports and names: all
///   listeners are judged, and the routes with another result are attached again;
/// - Ingresses that name other hosts than before: the other Ingresses of these hosts, if several namespaces name
///   them;
/// - Secrets and `spec.tls` of Ingresses: all of `spec.tls`.
///
/// Documents are compiled and written in proportion to the difference of the result. Other changes of listeners,
/// changes that concern most of the routes, and the cases that `lower/change.rs` names take a full translation.
#[derive(Debug)]
pub struct Translator {
    options: Options,
    cache: Option<KindOfCache>,
    effort: Effort,
}

/// The cache of the last translation, by the kind of its owner.
#[derive(Debug)]
enum KindOfCache {
    Gateway(Box<TranslationCache<OfGateway>>),
    IngressClass(Box<TranslationCache<OfIngressClass>>),
}

/// The effort of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A full translation.
    Whole,
    /// An incremental translation.
    Part {
        /// The number of routes that were attached and whose references were resolved.
        routes: usize,
    },
}

impl Translator {
    /// A translator without a last translation.
    pub const fn new(options: Options) -> Self {
        Self { options, cache: None, effort: Effort::Whole }
    }

    /// As [`translate`].
    pub fn translate(&mut self, snapshot: &Snapshot) -> Translation {
        let cache = match self.cache.take() {
            Some(KindOfCache::Gateway(cache)) => Some(cache),
            Some(KindOfCache::IngressClass(_)) | None => None,
        };
        let (translation, cache, effort) = change_or_begin(cache, snapshot, &self.options);
        (self.cache, self.effort) = (Some(KindOfCache::Gateway(cache)), effort);
        translation
    }

    /// As [`translate_ingress`].
    pub fn translate_ingress(&mut self, snapshot: &IngressSnapshot) -> Translation {
        let cache = match self.cache.take() {
            Some(KindOfCache::IngressClass(cache)) => Some(cache),
            Some(KindOfCache::Gateway(_)) | None => None,
        };
        if let Some(translation) = of_another_controller(snapshot, &self.options) {
            self.effort = Effort::Whole;
            return translation;
        }
        let (translation, cache, effort) = change_or_begin(cache, snapshot, &self.options);
        (self.cache, self.effort) = (Some(KindOfCache::IngressClass(cache)), effort);
        translation
    }

    /// The effort of the last translation.
    pub const fn effort(&self) -> Effort {
        self.effort
    }

    /// The number of Route documents that the last translation wrote again; 0 after a full translation.
    pub fn routes_written(&self) -> usize {
        match &self.cache {
            Some(KindOfCache::Gateway(cache)) => cache.routes_written(),
            Some(KindOfCache::IngressClass(cache)) => cache.routes_written(),
            None => 0,
        }
    }
}

/// Translates incrementally if the cache allows it, and in full otherwise. Returns the new cache.
fn change_or_begin<O: Owner>(
    cache: Option<Box<TranslationCache<O>>>,
    snapshot: &O::Snapshot,
    options: &Options,
) -> (Translation, Box<TranslationCache<O>>, Effort) {
    if let Some(mut cache) = cache
        && let Ok((translation, routes)) = cache.change(snapshot, options)
    {
        return (translation, cache, Effort::Part { routes });
    }
    let attached = Attached::<O>::new(snapshot, options);
    let planes = attached.owner.planes().iter();
    let lowered = planes.map(|plane| lower_plane_to_change(&attached.lowering(plane, options)));
    let (lowered, planes): (Vec<Lowered>, Vec<_>) = lowered.unzip();
    let (translation, judged) = attached.judge(snapshot, options, lowered);
    let cache = Box::new(TranslationCache::new(snapshot, judged, planes, &translation));
    (translation, cache, Effort::Whole)
}

/// The results of all stages before lowering.
#[derive(Debug)]
struct Attached<O> {
    reference_cache: Arc<ReferenceCache>,
    owner: O,
    backends: Backends,
    shared: Shared,
    /// In the order of the snapshot.
    inputs: Vec<Arc<RouteInput>>,
    /// The problems of each route so far.
    problems: Vec<Vec<Problem>>,
}

/// A full translation with the results of its stages.
#[derive(Debug)]
struct JudgedRoutes<O> {
    attached: Attached<O>,
    streams: Option<LoweredStreams>,
    /// By route: further problems, and the listeners that count the route.
    judged: Vec<JudgedRoute>,
}

/// The side results of a verdict on a route.
#[derive(Debug, Default)]
struct JudgedRoute {
    problems: Vec<Problem>,
    /// The listeners that count the route as attached.
    counted: SmallSet<usize>,
}

impl<O: Owner> Attached<O> {
    fn new(snapshot: &O::Snapshot, options: &Options) -> Self {
        let references = References::new(O::referents(snapshot));
        let mut owner = O::new(snapshot, &references, options);
        let mut backends = Backends::default();
        let mut shared = Shared::default();
        let (mut inputs, mut problems) = (Vec::new(), Vec::new());
        owner.take_routes(snapshot, |owner, route| {
            let mut of_route = Vec::new();
            let route = shared.route(route);
            let input = owner.attach(route, &references, (&mut backends, &mut shared), &mut of_route);
            inputs.push(Arc::new(input));
            problems.push(of_route);
        });
        Self {
            reference_cache: references.reference_cache().clone(),
            owner,
            backends,
            shared,
            inputs,
            problems,
        }
    }

    fn lowering<'a>(&'a self, plane: &'a Plane, options: &'a Options) -> Lowering<'a> {
        let Self { owner, backends, inputs, .. } = self;
        Lowering { plane, routes: inputs, backends, policies: owner.policies(), options }
    }

    fn judge(
        mut self,
        snapshot: &O::Snapshot,
        options: &Options,
        lowered: Vec<Lowered>,
    ) -> (Translation, JudgedRoutes<O>) {
        let Self { reference_cache, owner, inputs, backends, shared, problems: of_routes } = &mut self;
        let references = References::with(O::referents(snapshot), reference_cache.clone());
        let is_refused = owner.is_refused();
        let mut data_planes: BTreeMap<DataPlaneKey, DataPlane> = BTreeMap::new();
        let mut refusals = Refusals::default();
        let of_certificates = lowered
            .iter()
            .flat_map(|lowered| &lowered.refused_certificates)
            .map(|(owner, refusal)| refusal.of(owner));
        let of_shares = lowered.iter().flat_map(|lowered| &lowered.problems).cloned();
        let of_planes: Vec<Problem> = of_certificates.chain(of_shares).collect();
        for (number, (plane, lowered)) in owner.planes().iter().zip(lowered).enumerate() {
            refusals.add_plane(number, plane.listeners());
            let data_plane = add_refusals(&mut refusals, number, owner.listeners(), lowered);
            // An owner that is not accepted serves nothing, and its data planes must come to hold nothing.
            data_planes.insert(plane.key.clone(), if is_refused { DataPlane::default() } else { data_plane });
        }
        let mut problems: Vec<Problem> = of_routes.iter().flatten().cloned().chain(of_planes).collect();
        let mut stream_planes: BTreeMap<DataPlaneKey, StreamPlane> = BTreeMap::new();
        let listened = owner.listened().filter(|_| options.stream);
        let streams = listened.map(|listened| lower_streams(&listened, inputs, backends, options));
        if let Some(streams) = &streams {
            add_streams(&mut refusals, data_planes.len(), streams);
            problems.extend(streams.problems.iter().cloned());
            let plane = if is_refused { StreamPlane::default() } else { streams.plane.clone() };
            stream_planes.insert(streams.key.clone(), plane);
        }
        owner.judge_policies(inputs, &references);
        let mut counts = vec![0; owner.listeners().len()];
        let mut judged = Vec::with_capacity(inputs.len());
        let mut verdicts = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let (verdict, route) = owner.judge(index, input, &refusals, shared);
            for listener in &route.counted {
                counts[*listener] += 1;
            }
            problems.extend(route.problems.iter().cloned());
            verdicts.extend(verdict.map(|verdict| (input.route.key.clone(), verdict)));
            judged.push(route);
        }
        let verdicts = verdicts.into_iter().collect();
        let served = Served { data_planes, stream_planes, counts: &counts, verdicts, problems };
        let translation = owner.translation(snapshot, &references, served);
        (translation, JudgedRoutes { attached: self, streams, judged })
    }
}

/// Notes the refusals of a data plane. Returns its documents.
fn add_refusals(
    refusals: &mut Refusals,
    number: usize,
    listeners: &[Listener],
    lowered: Lowered,
) -> DataPlane {
    let Lowered { data_plane, refused_rules, refused_zones, served_zones, .. } = lowered;
    refusals.add_rules(number, refused_rules);
    refusals.add_zones(listeners, &refused_zones, served_zones);
    data_plane
}

fn add_streams(refusals: &mut Refusals, number: usize, streams: &LoweredStreams) {
    refusals.add_plane(number, streams.listeners.iter().copied());
    refusals.add_rules(number, streams.refused_rules.iter().cloned());
}
