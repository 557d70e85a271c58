//! The translation of one snapshot, stage by stage.

mod cache;
mod diff;
mod gateway;
mod gateway_context;
mod infrastructure;
mod ingress;
mod owner;
mod protected_services;
mod route_slab;
mod shadowed_rules;
mod shared;
mod translation;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use ingress::{read_annotations, read_custom_headers, read_regex_uri};
pub use translation::Translation;

use self::cache::TranslationCache;
use self::gateway::GatewayOwner;
use self::ingress::{IngressClassOwner, of_another_controller};
use self::owner::{Owner, RouteResults};
use self::protected_services::ProtectedServices;
use self::shared::Interners;
#[cfg(doc)]
use crate::SharedMap;
use crate::attach::Listener;
use crate::backends::Backends;
use crate::lower::{
    DataPlane, Lowered, LoweredStreams, Lowering, Plane, RouteInput, StreamPlane, lower_plane,
    lower_plane_incremental, lower_streams,
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
    translate_full::<GatewayOwner>(snapshot, options)
}

/// Translates what one IngressClass may see into PingSIX configuration and verdicts.
///
/// As [`translate`], it is total and deterministic. A class of another controller has no data plane; one of ours that
/// cannot be served has an empty one.
pub fn translate_ingress(snapshot: &IngressSnapshot, options: &Options) -> Translation {
    of_another_controller(snapshot, options)
        .unwrap_or_else(|| translate_full::<IngressClassOwner>(snapshot, options))
}

fn translate_full<O: Owner>(snapshot: &O::Snapshot, options: &Options) -> Translation {
    let attached = AttachedRoutes::<O>::new(snapshot, options);
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
    cache: Option<AnyTranslationCache>,
    mode: TranslationMode,
}

/// The cache of the last translation, by the kind of its owner.
#[derive(Debug)]
enum AnyTranslationCache {
    Gateway(Box<TranslationCache<GatewayOwner>>),
    IngressClass(Box<TranslationCache<IngressClassOwner>>),
}

/// The mode of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslationMode {
    /// A full translation.
    Full,
    /// An incremental translation.
    Incremental {
        /// The number of routes that were attached and whose references were resolved.
        routes: usize,
    },
}

impl Translator {
    /// A translator without a last translation.
    pub const fn new(options: Options) -> Self {
        Self { options, cache: None, mode: TranslationMode::Full }
    }

    /// As [`translate`].
    pub fn translate(&mut self, snapshot: &Snapshot) -> Translation {
        let cache = match self.cache.take() {
            Some(AnyTranslationCache::Gateway(cache)) => Some(cache),
            Some(AnyTranslationCache::IngressClass(_)) | None => None,
        };
        let (translation, cache, mode) = translate_incrementally_or_full(cache, snapshot, &self.options);
        (self.cache, self.mode) = (Some(AnyTranslationCache::Gateway(cache)), mode);
        translation
    }

    /// As [`translate_ingress`].
    pub fn translate_ingress(&mut self, snapshot: &IngressSnapshot) -> Translation {
        let cache = match self.cache.take() {
            Some(AnyTranslationCache::IngressClass(cache)) => Some(cache),
            Some(AnyTranslationCache::Gateway(_)) | None => None,
        };
        if let Some(translation) = of_another_controller(snapshot, &self.options) {
            self.mode = TranslationMode::Full;
            return translation;
        }
        let (translation, cache, mode) = translate_incrementally_or_full(cache, snapshot, &self.options);
        (self.cache, self.mode) = (Some(AnyTranslationCache::IngressClass(cache)), mode);
        translation
    }

    /// The mode of the last translation.
    pub const fn last_mode(&self) -> TranslationMode {
        self.mode
    }

    /// The number of Route documents that the last translation wrote again; 0 after a full translation.
    pub fn routes_written(&self) -> usize {
        match &self.cache {
            Some(AnyTranslationCache::Gateway(cache)) => cache.routes_written(),
            Some(AnyTranslationCache::IngressClass(cache)) => cache.routes_written(),
            None => 0,
        }
    }
}

/// Translates incrementally if the cache allows it, and in full otherwise. Returns the new cache.
fn translate_incrementally_or_full<O: Owner>(
    cache: Option<Box<TranslationCache<O>>>,
    snapshot: &O::Snapshot,
    options: &Options,
) -> (Translation, Box<TranslationCache<O>>, TranslationMode) {
    if let Some(mut cache) = cache
        && let Ok((translation, routes)) = cache.change(snapshot, options)
    {
        return (translation, cache, TranslationMode::Incremental { routes });
    }
    let attached = AttachedRoutes::<O>::new(snapshot, options);
    let planes = attached.owner.planes().iter();
    let lowered = planes.map(|plane| lower_plane_incremental(&attached.lowering(plane, options)));
    let (lowered, planes): (Vec<Lowered>, Vec<_>) = lowered.unzip();
    let (translation, judged) = attached.judge(snapshot, options, lowered);
    let cache = Box::new(TranslationCache::new(snapshot, judged, planes, &translation));
    (translation, cache, TranslationMode::Full)
}

/// The results of all stages before lowering.
#[derive(Debug)]
struct AttachedRoutes<O> {
    reference_cache: Arc<ReferenceCache>,
    owner: O,
    backends: Backends,
    shared: Interners,
    protected: ProtectedServices,
    /// In the order of the snapshot.
    inputs: Vec<Arc<RouteInput>>,
    /// The problems of each route so far.
    problems: Vec<Vec<Problem>>,
}

/// A full translation with the results of its stages.
#[derive(Debug)]
struct FullTranslation<O> {
    attached: AttachedRoutes<O>,
    streams: Option<LoweredStreams>,
    /// By route: further problems, and the listeners that count the route.
    judged: Vec<RouteOutcome>,
}

/// The side results of a verdict on a route.
#[derive(Debug, Default)]
struct RouteOutcome {
    problems: Vec<Problem>,
    /// The listeners that count the route as attached.
    counted: SmallSet<usize>,
}

impl<O: Owner> AttachedRoutes<O> {
    fn new(snapshot: &O::Snapshot, options: &Options) -> Self {
        let references = References::new(O::referents(snapshot));
        let mut owner = O::new(snapshot, &references, options);
        let mut backends = Backends::new(options.backend_addresses.clone());
        let mut shared = Interners::default();
        let (mut inputs, mut problems) = (Vec::new(), Vec::new());
        owner.take_routes(snapshot, |owner, route| {
            let mut of_route = Vec::new();
            let route = shared.route(route);
            let input = owner.attach(route, &references, (&mut backends, &mut shared), &mut of_route);
            inputs.push(Arc::new(input));
            problems.push(of_route);
        });
        let protected = ProtectedServices::new(&mut inputs, owner.listeners(), &backends);
        Self {
            reference_cache: references.reference_cache().clone(),
            owner,
            backends,
            shared,
            protected,
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
    ) -> (Translation, FullTranslation<O>) {
        let Self { reference_cache, owner, inputs, backends, shared, problems: of_routes, .. } = &mut self;
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
            refusals.add_plane(number, plane.served_listeners(owner.listeners()));
            let data_plane = add_refusals(&mut refusals, number, owner.listeners(), lowered);
            // An owner that is not accepted serves nothing, and its data planes must come to hold nothing.
            data_planes.insert(plane.key.clone(), if is_refused { DataPlane::default() } else { data_plane });
        }
        let mut problems: Vec<Problem> = of_routes.iter().flatten().cloned().chain(of_planes).collect();
        let mut stream_planes: BTreeMap<DataPlaneKey, StreamPlane> = BTreeMap::new();
        let stream_listeners = owner.stream_listeners();
        let streams = stream_listeners
            .map(|stream_listeners| lower_streams(&stream_listeners, inputs, backends, options));
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
        let served = RouteResults { data_planes, stream_planes, counts: &counts, verdicts, problems };
        let translation = owner.translation(snapshot, &references, served);
        (translation, FullTranslation { attached: self, streams, judged })
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
