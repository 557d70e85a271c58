//! What there is to say about each object, to the boards of statuses and Events.

use std::collections::BTreeMap;

use pingsix_translate::crd::PingsixProxy;
use pingsix_translate::snapshot::{GatewayClass, Ingress};
use pingsix_translate::status::{Address, GatewayVerdict, Problem, Verdicts, judge_pingsix_proxy};
use pingsix_translate::{Kind, ObjectKey};

use super::Engine;
use crate::controller::Feed;
use crate::status::Wanted;

impl<F: Feed + 'static> Engine<F> {
    /// Says what there is to say about objects of kinds that owners judge.
    pub(super) fn tell<'o>(&self, objects: impl IntoIterator<Item = &'o ObjectKey>) {
        for (object, wanted) in self.wanted(objects) {
            self.say(object, wanted.unwrap_or(Wanted::Released));
        }
    }

    /// Of what is gone nothing is said, whoever still speaks of it.
    pub(super) fn say(&self, object: &ObjectKey, wanted: Wanted) {
        if !self.parts.reconciler.world().contains(object) || self.waits_for_publication(object) {
            return;
        }
        if self.is_too_early(object) {
            // Who comes to lead must not write what was said before.
            self.parts.status.hold(object);
        } else {
            self.parts.status.set(object.clone(), wanted);
        }
    }

    /// Whether it is said of an object whether it is programmed, and that is about to be something else.
    fn waits_for_publication(&self, object: &ObjectKey) -> bool {
        matches!(object.kind, Kind::Gateway | Kind::ListenerSet)
            && self.speaker(object).is_some_and(|owner| self.is_quiet(owner))
    }

    /// What there is to say about each of these objects, where owners say something about it. What an owner says of its
    /// Gateway and of all its ListenerSets is put together once.
    pub(super) fn wanted<'o>(
        &self,
        objects: impl IntoIterator<Item = &'o ObjectKey>,
    ) -> Vec<(&'o ObjectKey, Option<Wanted>)> {
        let mut verdicts = BTreeMap::new();
        objects.into_iter().map(|object| (object, self.wanted_of(object, &mut verdicts))).collect()
    }

    fn wanted_of<'e>(
        &'e self,
        object: &ObjectKey,
        verdicts: &mut BTreeMap<&'e ObjectKey, Option<Verdicts>>,
    ) -> Option<Wanted> {
        let reconciler = &self.parts.reconciler;
        match object.kind {
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute => {
                reconciler.route(object).map(Wanted::Route)
            }
            Kind::BackendTlsPolicy => {
                Some(reconciler.policy(object)).filter(|v| !v.is_empty()).map(Wanted::Policy)
            }
            Kind::Gateway | Kind::ListenerSet => {
                let owner = self.speaker(object)?;
                let verdicts = verdicts.entry(owner).or_insert_with(|| self.verdicts(owner)).as_ref()?;
                if object.kind == Kind::Gateway {
                    verdicts.gateway.clone().map(|verdict| self.wanted_gateway(verdict))
                } else {
                    verdicts.listener_sets.get(object).cloned().map(Box::new).map(Wanted::ListenerSet)
                }
            }
            Kind::Ingress => {
                let addresses = self.addresses_of(self.speaker(object)?)?;
                Some(Wanted::Ingress { addresses })
            }
            Kind::PingsixProxy => {
                let proxy = reconciler.world().get::<PingsixProxy>(&object.name)?;
                Some(Wanted::PingsixProxy(Box::new(judge_pingsix_proxy(&proxy))))
            }
            Kind::GatewayClass
            | Kind::ReferenceGrant
            | Kind::IngressClass
            | Kind::Service
            | Kind::EndpointSlice
            | Kind::Secret
            | Kind::ConfigMap
            | Kind::Namespace => None,
        }
    }

    /// Whose translation speaks of a Gateway, a ListenerSet or an Ingress.
    pub(super) fn speaker(&self, object: &ObjectKey) -> Option<&ObjectKey> {
        self.parts.reconciler.owners_that_speak_of(object).next()
    }

    /// What an owner says of its Gateway and its ListenerSets, as far as they have come.
    fn verdicts(&self, owner: &ObjectKey) -> Option<Verdicts> {
        #[cfg(test)]
        self.put_together.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let planes = self.parts.reconciler.data_planes(owner);
        self.parts.reconciler.verdicts(owner, &self.deliveries.of(&planes))
    }

    fn wanted_gateway(&self, mut verdict: GatewayVerdict) -> Wanted {
        self.hinder(&mut verdict);
        let addresses = self.addresses_of(&verdict.key);
        Wanted::Gateway { verdict: Box::new(verdict), addresses }
    }

    /// Where the data planes of an owner are reached: at their Service if the controller runs them, else as its parameters
    /// say, else as the options do. `None` as long as that is not known.
    pub(super) fn addresses_of(&self, owner: &ObjectKey) -> Option<Vec<Address>> {
        let reconciler = &self.parts.reconciler;
        if reconciler.infrastructure(owner).is_some() {
            return self.addresses_of_service(owner);
        }
        let said = reconciler.attached(owner).map(|attached| &attached.addresses);
        let said = said.filter(|addresses| !addresses.is_empty()).cloned();
        said.or_else(|| self.parts.addresses.borrow().clone())
    }

    /// Takes note of whether an object can be decoded, and has whoever made it told if it cannot.
    pub(super) fn note_shape(&mut self, object: &ObjectKey, problem: Option<Problem>) {
        if self.undecodable.get(object) == problem.as_ref() {
            return;
        }
        match &problem {
            Some(problem) => {
                tracing::warn!(%object, field = %problem.field, error = problem.message, "an object cannot be decoded");
                self.undecodable.insert(object.clone(), problem.clone());
            }
            None => {
                self.undecodable.remove(object);
            }
        }
        self.parts.events.undecodable(object, problem);
    }

    pub(super) fn tell_class(&self, class: &ObjectKey) {
        if self.parts.reconciler.world().get::<GatewayClass>(&class.name).is_none() {
            return;
        }
        let verdict = self.parts.reconciler.class(class).cloned();
        let problems = verdict.as_ref().map(|verdict| verdict.problems.clone()).unwrap_or_default();
        self.parts.events.set(class, problems);
        if let Some(verdict) = verdict {
            let runs_none = self.parts.provisioning.is_none();
            let verdict = if runs_none { verdict.without_data_planes() } else { verdict };
            let verdict = verdict.with_bundles(self.parts.bundles.borrow().as_ref());
            self.parts.status.set(class.clone(), Wanted::GatewayClass(Box::new(verdict)));
        }
    }

    /// Nobody but itself has anything to say about a PingsixProxy.
    pub(super) fn tell_proxy(&self, key: &ObjectKey) {
        let Some(proxy) = self.parts.reconciler.world().get::<PingsixProxy>(&key.name) else { return };
        let verdict = judge_pingsix_proxy(&proxy);
        self.parts.events.set(key, verdict.problems.clone());
        self.parts.status.set(key.clone(), Wanted::PingsixProxy(Box::new(verdict)));
    }

    pub(super) fn tell_classes(&self) {
        for class in self.parts.reconciler.world().keys::<GatewayClass>() {
            self.tell_class(&class);
        }
    }

    /// Addresses are in the statuses of Gateways and Ingresses.
    pub(super) fn tell_everybody(&self) {
        let told = self.parts.status.keys();
        // Of an Ingress nothing could be said without an address.
        let ingresses = self.parts.reconciler.world().keys::<Ingress>();
        let spoken_of = ingresses.iter().filter(|key| self.speaker(key).is_some());
        self.tell(
            told.iter().filter(|key| matches!(key.kind, Kind::Gateway | Kind::Ingress)).chain(spoken_of),
        );
    }

    /// Says how far the data planes of an owner have come.
    pub(super) fn tell_delivery(&self, owner: &ObjectKey) {
        if self.is_quiet(owner) {
            return;
        }
        let Some(Verdicts { gateway: Some(gateway), listener_sets, .. }) = self.verdicts(owner) else {
            return;
        };
        self.say(owner, self.wanted_gateway(gateway));
        for (set, verdict) in listener_sets {
            if self.speaker(&set) == Some(owner) {
                self.say(&set, Wanted::ListenerSet(Box::new(verdict)));
            }
        }
    }
}
