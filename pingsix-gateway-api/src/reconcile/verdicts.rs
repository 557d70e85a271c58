//! The verdicts and problems of the last translation of each owner.

use std::collections::BTreeMap;
use std::sync::Arc;

use pingsix_translate::infrastructure::{AttachedParameters, Infrastructure};
use pingsix_translate::status::{
    Delivery, PolicyVerdict, Problem, Problems, RouteVerdict, Verdicts, with_delivery,
};
use pingsix_translate::{DataPlane, DataPlaneKey, ObjectKey, StreamPlane};

use super::Reconciler;
use crate::pipeline::merged_route;

impl Reconciler {
    /// Whether the parameters of an owner cannot be used. Its previous publication stays.
    pub fn is_kept(&self, owner: &ObjectKey) -> bool {
        self.owners.get(owner).is_some_and(|entry| entry.is_kept)
    }

    /// The verdicts on a Gateway and its ListenerSets, with the delivery of its data planes; `None` if the Gateway is
    /// not ours. Verdicts on routes and policies are [elsewhere](Self::route), because Gateways share them.
    pub fn verdicts(
        &self,
        owner: &ObjectKey,
        delivery: &BTreeMap<DataPlaneKey, Delivery>,
    ) -> Option<Verdicts> {
        let Verdicts { gateway, listener_sets, ingresses, .. } = self.owners.get(owner)?.verdicts.as_ref()?;
        let own = Verdicts {
            gateway: gateway.clone(),
            listener_sets: listener_sets.clone(),
            ingresses: ingresses.clone(),
            ..Verdicts::default()
        };
        Some(with_delivery(own, delivery))
    }

    /// The verdicts of an owner's last translation on all objects, with the delivery of its data planes; `None` before the
    /// first translation. For pages.
    pub(crate) fn all_verdicts(
        &self,
        owner: &ObjectKey,
        delivery: &BTreeMap<DataPlaneKey, Delivery>,
    ) -> Option<Verdicts> {
        Some(with_delivery(self.owners.get(owner)?.verdicts.clone()?, delivery))
    }

    /// The verdict of all Gateways on a route; `None` without any.
    pub fn route(&self, route: &ObjectKey) -> Option<RouteVerdict> {
        merged_route(self.verdicts_on(route).filter_map(|verdicts| verdicts.routes.get(route)))
    }

    /// The owners whose translation judges a Gateway, ListenerSet or Ingress; empty if none serves it.
    pub(crate) fn judging_owners(&self, object: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.owner_index.of(object)
    }

    /// The verdict of each Gateway and IngressClass on a policy.
    pub fn policy(&self, policy: &ObjectKey) -> Vec<PolicyVerdict> {
        self.verdicts_on(policy).filter_map(|verdicts| verdicts.policies.get(policy)).cloned().collect()
    }

    /// The verdict of each owner on an object.
    fn verdicts_on(&self, object: &ObjectKey) -> impl Iterator<Item = &Verdicts> {
        self.owner_index.of(object).filter_map(|owner| self.owners.get(owner)?.verdicts.as_ref())
    }

    /// The infrastructure of an owner with managed data planes.
    pub fn infrastructure(&self, owner: &ObjectKey) -> Option<&Arc<Infrastructure>> {
        self.owners.get(owner)?.infrastructure.as_ref()
    }

    /// The parameters of an owner with attached data planes.
    pub fn attached(&self, owner: &ObjectKey) -> Option<&Arc<AttachedParameters>> {
        self.owners.get(owner)?.attached.as_ref()
    }

    /// The share of one core that each process of an owner's data planes may spend on changes, in percent; `None` if it is
    /// unknown.
    pub fn feed_cpu_percent(&self, owner: &ObjectKey) -> Option<u8> {
        self.owners.get(owner)?.feed_cpu_percent
    }

    /// All problems of the objects of an owner.
    pub fn problems(&self, owner: &ObjectKey) -> Problems {
        self.owners.get(owner).map(|entry| entry.problems.clone()).unwrap_or_default()
    }

    /// The last translation of a data plane, before the quarantine. For dumps.
    pub fn data_plane(&self, owner: &ObjectKey, key: &DataPlaneKey) -> Option<&DataPlane> {
        self.owners.get(owner)?.planes.get(key)
    }

    /// The last translation of stream documents, before the quarantine. For dumps.
    pub(crate) fn stream_plane(&self, owner: &ObjectKey, key: &DataPlaneKey) -> Option<&Arc<StreamPlane>> {
        self.owners.get(owner)?.streams.get(key)
    }

    /// All problems of the objects of all owners.
    pub(crate) fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.owners.values().flat_map(|entry| entry.problems.iter())
    }

    /// The charged part of the budget of the fullest data plane. The charge of stream documents is their size.
    pub(crate) fn most_charged(&self) -> f64 {
        let budget = self.options.budget;
        let parts = self.owners.values().flat_map(|entry| {
            let of_streams = entry.streams.values().map(|plane| plane.size.ratio_of(budget));
            entry.planes.values().map(|plane| plane.charged_ratio).chain(of_streams)
        });
        parts.fold(0.0, f64::max)
    }

    /// The data planes of an owner.
    pub fn data_planes(&self, owner: &ObjectKey) -> Vec<DataPlaneKey> {
        let planes = self.owners.get(owner).into_iter();
        planes.flat_map(|entry| entry.planes.keys().chain(entry.streams.keys())).cloned().collect()
    }
}
