//! What was made of an owner, and what there is to say because of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_sink::Revision;
use pingsix_translate::infrastructure::{AttachedParameters, Infrastructure};
use pingsix_translate::snapshot::OwnAddresses;
use pingsix_translate::status::{Delivery, PolicyVerdict, Problem, RouteVerdict, Verdicts, finish};
use pingsix_translate::{DataPlane, DataPlaneKey, ObjectKey, SharedMap};
use tokio::time::Instant;

use super::Reconciler;
use super::job::OwnerCache;
use super::waits::Waits;
use crate::acceptance::{Acceptance, DraftNumber, Heard, Reception, named_sources};
use crate::world::{Changed, Extract, OwnerSnapshot};

/// What was made of an owner.
#[derive(Debug, Default)]
pub(super) struct Owned {
    /// Without what delivery adds.
    pub(super) verdicts: Option<Verdicts>,
    pub(super) problems: Vec<Problem>,
    pub(super) planes: BTreeMap<DataPlaneKey, DataPlane>,
    pub(super) streams: BTreeSet<DataPlaneKey>,
    /// What it takes to run its data planes, if the controller is to.
    pub(super) infrastructure: Option<Arc<Infrastructure>>,
    /// How they are reached, if somebody else runs them and it is said.
    pub(super) attached: Option<Arc<AttachedParameters>>,
    /// Where they are reached.
    pub(super) own_addresses: OwnAddresses,
    /// The Secrets and ConfigMaps it refers to.
    pub(super) referenced: BTreeSet<ObjectKey>,
    /// The snapshot that was translated last; `None` before the first translation.
    pub(super) seen: Option<OwnerSnapshot>,
    /// The objects that wait for their references; the owner itself before the first translation.
    pub(super) waits: Waits,
    /// What it might see when that was last asked.
    pub(super) extract: Option<Extract>,
    /// What came, went or changed since.
    pub(super) changed: Changed,
    /// While a [job](super::job::Job) runs, that has it.
    pub(super) cache: OwnerCache,
    pub(super) acceptance: Acceptance,
    /// What is published in the place of `planes`, during a trial.
    pub(super) tried: BTreeMap<DataPlaneKey, DataPlane>,
    /// Its parameters cannot be used: what was published before stays.
    pub(super) is_kept: bool,
}

/// What PingSIX makes of publications.
impl Reconciler {
    /// A draft of an owner was published.
    pub fn published(
        &mut self,
        owner: &ObjectKey,
        draft: DraftNumber,
        data_plane: &DataPlaneKey,
        revision: Revision,
    ) -> Heard {
        let made = self.owners.get_mut(owner);
        made.map_or(Heard::Nothing, |made| made.acceptance.published(draft, data_plane, revision))
    }

    /// Takes in how PingSIX takes what a data plane is given; nothing when there is no instance that says so.
    pub fn hears(&mut self, data_plane: &DataPlaneKey, reception: Option<Reception>) -> Heard {
        let Some(made) = self.owners.get_mut(&data_plane.owner()) else { return Heard::Nothing };
        let said = reception.as_ref().and_then(|reception| reception.refused.as_ref());
        let plane = made.tried.get(data_plane).or_else(|| made.planes.get(data_plane));
        let named = said.zip(plane).map(|((_, said), plane)| named_sources(said, plane)).unwrap_or_default();
        made.acceptance.hears(data_plane, reception, &named)
    }

    /// Does what the time has come for in how PingSIX takes publications. Returns the owners of which something else is to be
    /// published.
    pub fn beat(&mut self, now: Instant) -> Vec<(ObjectKey, Heard)> {
        let owners = self.owners.iter_mut();
        let heard = owners.map(|(owner, made)| (owner.clone(), made.acceptance.beat(now)));
        heard.filter(|(_, heard)| *heard != Heard::Nothing).collect()
    }

    /// What PingSIX makes of the publications of an owner.
    pub fn acceptance(&self, owner: &ObjectKey) -> Option<&Acceptance> {
        Some(&self.owners.get(owner)?.acceptance)
    }

    /// Gives up what is being found out about an owner: nobody listens to PingSIX any more. Returns whether something was.
    pub fn give_up(&mut self, owner: &ObjectKey) -> bool {
        self.owners.get_mut(owner).is_some_and(|made| made.acceptance.give_up())
    }
}

/// What there is to say.
impl Reconciler {
    /// Whether the parameters of an owner cannot be used, so that what was published before stays as it is.
    pub fn is_kept(&self, owner: &ObjectKey) -> bool {
        self.owners.get(owner).is_some_and(|made| made.is_kept)
    }

    /// The verdicts on a Gateway and its ListenerSets, with what is known of the delivery of its data planes; `None` when
    /// it is not ours. Those on routes and policies are [elsewhere](Self::route), for other Gateways share them.
    pub fn verdicts(
        &self,
        owner: &ObjectKey,
        delivery: &BTreeMap<DataPlaneKey, Delivery>,
    ) -> Option<Verdicts> {
        let Verdicts { gateway, listener_sets, ingresses, .. } = self.owners.get(owner)?.verdicts.as_ref()?;
        let own = Verdicts {
            gateway: gateway.clone(),
            listener_sets: listener_sets.clone(),
            routes: SharedMap::new(),
            policies: BTreeMap::new(),
            ingresses: ingresses.clone(),
            problems: Vec::new(),
        };
        Some(finish(own, delivery))
    }

    /// What all Gateways together say of a route; `None` when none has anything to say.
    pub fn route(&self, route: &ObjectKey) -> Option<RouteVerdict> {
        let mut verdicts = self.verdicts_on(route).filter_map(|verdicts| verdicts.routes.get(route));
        let mut merged = verdicts.next()?.clone();
        for verdict in verdicts {
            merged.merge(verdict);
        }
        Some(merged)
    }

    /// The owners whose translation speaks of a Gateway, ListenerSet or Ingress: none when nobody serves it.
    pub fn owners_that_speak_of(&self, object: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.speakers.of(object)
    }

    /// What each Gateway says of a policy.
    pub fn policy(&self, policy: &ObjectKey) -> Vec<PolicyVerdict> {
        self.verdicts_on(policy).filter_map(|verdicts| verdicts.policies.get(policy)).cloned().collect()
    }

    /// What each owner that speaks of an object says.
    fn verdicts_on(&self, object: &ObjectKey) -> impl Iterator<Item = &Verdicts> {
        self.speakers.of(object).filter_map(|owner| self.owners.get(owner)?.verdicts.as_ref())
    }

    /// What it takes to run the data planes of an owner, if the controller is to.
    pub fn infrastructure(&self, owner: &ObjectKey) -> Option<&Arc<Infrastructure>> {
        self.owners.get(owner)?.infrastructure.as_ref()
    }

    /// How the data planes of an owner are reached, if somebody else runs them and it is said.
    pub fn attached(&self, owner: &ObjectKey) -> Option<&Arc<AttachedParameters>> {
        self.owners.get(owner)?.attached.as_ref()
    }

    /// Everything that is wrong with the objects of an owner.
    pub fn problems(&self, owner: &ObjectKey) -> &[Problem] {
        self.owners.get(owner).map(|made| made.problems.as_slice()).unwrap_or_default()
    }

    /// What was made for a data plane of an owner last, before what PingSIX would refuse was taken out. For dumps.
    pub fn data_plane(&self, owner: &ObjectKey, key: &DataPlaneKey) -> Option<&DataPlane> {
        self.owners.get(owner)?.planes.get(key)
    }

    /// Everything that is wrong with the objects of all owners.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.owners.values().flat_map(|made| &made.problems)
    }

    /// The data planes of an owner.
    pub fn data_planes(&self, owner: &ObjectKey) -> Vec<DataPlaneKey> {
        let planes = self.owners.get(owner).into_iter();
        planes.flat_map(|made| made.planes.keys().chain(&made.streams)).cloned().collect()
    }
}
