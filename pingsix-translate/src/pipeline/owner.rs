//! What Gateways and IngressClasses differ in: where routes come from, what these are attached to, and what is told.
//!
//! Everything else is the same for both ([`super::Attached`] from nothing, [`super::cache`] by what is different).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use super::JudgedRoute;
use super::Translation;
use super::diff::ReferentsDiff;
use super::route_slab::{RouteSlab, Source};
use super::shared::Shared;
use crate::attach::Listener;
use crate::backends::Backends;
use crate::lower::{DataPlane, Listened, LoweredPlane, Plane, RouteInput, Stale, StreamPlane};
use crate::model::{DataPlaneKey, ObjectKey, Options, Problem};
use crate::normalise::Route;
use crate::policy::Policies;
use crate::references::References;
use crate::shared_map::SharedMap;
use crate::snapshot::Referents;
use crate::status::{Refusals, RouteVerdict};

/// An owner of data planes, with everything that is not part of a route or of what one refers to.
pub(super) trait Owner: Debug + Sized {
    /// What translation may look at for it.
    type Snapshot: Debug;

    /// What its objects refer to.
    fn referents(snapshot: &Self::Snapshot) -> &Referents;

    fn new(snapshot: &Self::Snapshot, references: &References<'_>, options: &Options) -> Self;

    /// Hands over its routes, in the order of the snapshot.
    fn take_routes(&mut self, snapshot: &Self::Snapshot, take: impl FnMut(&Self, Route));

    /// Its policies.
    fn policies(&self) -> &Policies;

    /// Its data planes.
    fn planes(&self) -> &[Plane];

    /// What routes are attached to.
    fn listeners(&self) -> &[Listener];

    /// What stream documents are for; `None` if it has none.
    fn listened(&self) -> Option<Listened<'_>>;

    /// Whether it serves nothing at all, so that its data planes come to hold nothing.
    fn is_refused(&self) -> bool;

    /// Attaches a route and resolves what it refers to.
    fn attach(
        &self,
        route: Route,
        references: &References<'_>,
        backends_and_shared: (&mut Backends, &mut Shared),
        problems: &mut Vec<Problem>,
    ) -> RouteInput;

    /// Judges a route. Routes of some kinds have no verdicts.
    fn judge(
        &self,
        index: usize,
        input: &RouteInput,
        refusals: &Refusals,
        shared: &mut Shared,
    ) -> (Option<RouteVerdict>, JudgedRoute);

    /// Makes of it what it is by another snapshot, certificates of data planes included. The caller sees to the Services that
    /// routes refer to.
    fn update(&mut self, update: Update<'_, Self>) -> Result<Updated, Stale>;

    /// The objects that policies target.
    fn targets(&self) -> impl Iterator<Item = &ObjectKey>;

    /// Puts everything together.
    fn translation(
        &mut self,
        snapshot: &Self::Snapshot,
        references: &References<'_>,
        served: Served<'_>,
    ) -> Translation;
}

/// What is different about an owner.
#[derive(Debug)]
pub(super) struct Updated {
    /// Sources that are new or other ones, with their routes; none if a source is gone.
    pub(super) routes: Vec<(Source, Vec<Route>)>,
    /// Whether anything is that is not part of routes.
    pub(super) is_reframed: bool,
    /// Inherited policies with other contents, which count for the same routes.
    pub(super) policies: BTreeSet<Arc<ObjectKey>>,
}

/// What an owner is brought up to date by.
#[derive(Debug)]
pub(super) struct Update<'a, O: Owner> {
    pub(super) snapshot: &'a O::Snapshot,
    pub(super) diff: &'a ReferentsDiff,
    pub(super) references: &'a References<'a>,
    pub(super) options: &'a Options,
    /// How many routes may be done again for less than a full translation.
    pub(super) most: usize,
    pub(super) slab: &'a RouteSlab,
    /// In the order of [`Owner::planes`].
    pub(super) planes: &'a mut [LoweredPlane],
    /// Gets the routes that are the same but have to be attached again.
    pub(super) again: &'a mut BTreeSet<usize>,
}

/// What came of the routes.
#[derive(Debug)]
pub(super) struct Served<'a> {
    pub(super) data_planes: BTreeMap<DataPlaneKey, DataPlane>,
    pub(super) stream_planes: BTreeMap<DataPlaneKey, StreamPlane>,
    /// All routes in the order of the snapshot, or those of them that refer to [`Owner::targets`].
    pub(super) inputs: &'a [Arc<RouteInput>],
    /// How many accepted routes each listener has.
    pub(super) counts: &'a [i32],
    pub(super) verdicts: SharedMap<Arc<ObjectKey>, RouteVerdict>,
    /// What is wrong with routes and data planes.
    pub(super) problems: Vec<Problem>,
}

/// Changes the certificates of data planes whose zones stay. The slices have the same data planes in the same order.
pub(super) fn change_certificates(
    lowered: &mut [LoweredPlane],
    before: &[Plane],
    now: &[Plane],
) -> Result<(), Stale> {
    for (lowered, (before, now)) in lowered.iter_mut().zip(before.iter().zip(now)) {
        lowered.change_certificates(&before.certificates, &now.certificates)?;
    }
    Ok(())
}
