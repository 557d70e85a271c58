//! The differences between Gateways and IngressClasses: the source of routes, their attachment, and the verdicts.
//!
//! Everything else is common ([`super::cache`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use super::RouteOutcome;
use super::Translation;
use super::current_problems::CurrentProblems;
use super::diff::ReferentsDiff;
use super::route_slab::{RouteSlab, Source};
use super::shared::Interners;
use crate::attach::Listener;
use crate::backends::Backends;
use crate::lower::{DataPlane, LoweredPlane, Plane, RouteInput, StreamListeners, StreamPlane};
use crate::model::{DataPlaneKey, ObjectKey, Options, Problem};
use crate::normalise::Route;
use crate::policy::Policies;
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::Referents;
use crate::status::{Refusals, RouteVerdict};

/// An owner of data planes: all state that is neither part of a route nor of its references.
pub(super) trait Owner: Debug + Sized {
    /// The objects that a translation of the owner may read.
    type Snapshot: Debug + Clone;

    /// The objects that its own objects refer to.
    fn referents(snapshot: &Self::Snapshot) -> &Referents;

    fn new(snapshot: &Self::Snapshot, references: &References<'_>, options: &Options) -> Self;

    /// Passes all sources with their routes to `take`, in the order of the snapshot.
    fn take_routes(&mut self, snapshot: &Self::Snapshot, take: impl FnMut(&Self, Source, Vec<Route>));

    /// Its policies.
    fn policies(&self) -> &Policies;

    /// Its data planes.
    fn planes(&self) -> &[Plane];

    /// The listeners that routes are attached to.
    fn listeners(&self) -> &[Listener];

    /// The listeners for stream documents; `None` if nothing serves them.
    fn stream_listeners(&self) -> Option<StreamListeners<'_>>;

    /// Whether the owner serves nothing at all, so that its data planes become empty.
    fn is_refused(&self) -> bool;

    /// Attaches a route and resolves what it refers to.
    fn attach(
        &self,
        route: Route,
        references: &References<'_>,
        backends_and_shared: (&mut Backends, &mut Interners),
        problems: &mut Vec<Problem>,
    ) -> RouteInput;

    /// Judges the policies that routes depend on. `inputs` are the routes of [`Self::targets`] in the order of the
    /// snapshot. Returns the objects with other policies than before.
    fn judge_policies(
        &mut self,
        inputs: &[Arc<RouteInput>],
        references: &References<'_>,
    ) -> BTreeSet<ObjectKey>;

    /// Judges a route, after the policies. Routes of some kinds have no verdicts.
    fn judge(
        &self,
        index: usize,
        input: &RouteInput,
        refusals: &Refusals,
        shared: &mut Interners,
    ) -> (Option<RouteVerdict>, RouteOutcome);

    /// Updates the owner to another snapshot, certificates of data planes included. The caller handles the Services
    /// that routes refer to.
    fn update(&mut self, update: OwnerUpdate<'_, Self>) -> Result<OwnerDiff, FullTranslationNeeded>;

    /// The objects that policies target.
    fn targets(&self) -> impl Iterator<Item = &ObjectKey>;

    /// Assembles the translation.
    fn translation(
        &mut self,
        snapshot: &Self::Snapshot,
        references: &References<'_>,
        served: RouteResults<'_>,
    ) -> Translation;
}

/// The cache does not help with a snapshot, or a full translation is cheaper.
#[derive(Clone, Copy, Debug)]
pub(super) struct FullTranslationNeeded;

/// The difference of an owner.
#[derive(Debug)]
pub(super) struct OwnerDiff {
    /// New and changed sources with their routes; no routes if a source is gone.
    pub(super) routes: Vec<(Source, Vec<Route>)>,
    /// Whether anything changed apart from routes.
    pub(super) has_new_context: bool,
    /// Inherited policies with other contents. They apply to the same routes as before.
    pub(super) policies: BTreeSet<Arc<ObjectKey>>,
}

/// The inputs and outputs of [`Owner::update`].
#[derive(Debug)]
pub(super) struct OwnerUpdate<'a, O: Owner> {
    /// The snapshot of the last translation.
    pub(super) before: &'a O::Snapshot,
    pub(super) snapshot: &'a O::Snapshot,
    pub(super) diff: &'a ReferentsDiff,
    pub(super) references: &'a References<'a>,
    pub(super) options: &'a Options,
    /// The number of routes that may be attached again before a full translation is cheaper.
    pub(super) limit: usize,
    pub(super) slab: &'a RouteSlab,
    /// In the order of [`Owner::planes`].
    pub(super) planes: &'a mut [LoweredPlane],
    /// The output: unchanged routes that have to be attached again.
    pub(super) to_attach: &'a mut BTreeSet<usize>,
}

/// The results of the routes.
#[derive(Debug)]
pub(super) struct RouteResults<'a> {
    pub(super) data_planes: BTreeMap<DataPlaneKey, DataPlane>,
    pub(super) stream_planes: BTreeMap<DataPlaneKey, StreamPlane>,
    /// The number of accepted routes of each listener.
    pub(super) counts: &'a [i32],
    pub(super) verdicts: SharedMap<Arc<ObjectKey>, RouteVerdict>,
    pub(super) slab: &'a RouteSlab,
    /// The problems of the last translation, those of routes changed already.
    pub(super) problems: &'a mut CurrentProblems,
    /// The problems of data planes, which are computed for each translation.
    pub(super) recomputed: Vec<Problem>,
}

/// Changes the certificates of data planes whose zones stay. The slices have the same data planes in the same order.
pub(super) fn change_certificates(lowered: &mut [LoweredPlane], before: &[Plane], now: &[Plane]) {
    for (lowered, (before, now)) in lowered.iter_mut().zip(before.iter().zip(now)) {
        lowered.change_certificates(&before.certificates, &now.certificates);
    }
}
