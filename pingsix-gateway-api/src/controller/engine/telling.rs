//! What there is to say about each object, to the board of statuses.

use pingsix_translate::snapshot::{GatewayClass, Ingress};
use pingsix_translate::{Kind, ObjectKey};

use super::Engine;
use crate::controller::Feed;
use crate::status::Wanted;

impl<F: Feed> Engine<F> {
    /// Says what there is to say about an object of a kind that owners judge.
    pub(super) fn tell(&self, object: &ObjectKey) {
        if self.parts.reconciler.world().contains(object) {
            self.parts.status.set(object.clone(), self.wanted(object).unwrap_or(Wanted::Released));
        }
    }

    /// What there is to say about an object, if it is one that owners say something about.
    pub(super) fn wanted(&self, object: &ObjectKey) -> Option<Wanted> {
        let reconciler = &self.parts.reconciler;
        match object.kind {
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute => {
                reconciler.route(object).map(Wanted::Route)
            }
            Kind::BackendTlsPolicy => {
                Some(reconciler.policy(object)).filter(|v| !v.is_empty()).map(Wanted::Policy)
            }
            Kind::Gateway | Kind::ListenerSet | Kind::Ingress => self.wanted_by_owner(object),
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

    fn wanted_by_owner(&self, object: &ObjectKey) -> Option<Wanted> {
        let reconciler = &self.parts.reconciler;
        let owner = reconciler.owners_that_speak_of(object).next()?;
        let addresses = self.parts.addresses.borrow().clone();
        if object.kind == Kind::Ingress {
            return addresses.map(|addresses| Wanted::Ingress { addresses });
        }
        let planes = reconciler.data_planes(owner);
        let verdicts = reconciler.verdicts(owner, &self.deliveries.of(&planes))?;
        if object.kind == Kind::Gateway {
            return verdicts.gateway.map(|verdict| Wanted::Gateway { verdict, addresses });
        }
        let set = verdicts.listener_sets.into_iter().find(|(key, _)| **key == *object);
        set.map(|(_, verdict)| Wanted::ListenerSet(verdict))
    }

    pub(super) fn tell_class(&self, class: &ObjectKey) {
        if self.parts.reconciler.world().get::<GatewayClass>(&class.name).is_none() {
            return;
        }
        let verdict = self.parts.reconciler.class(class).cloned();
        let problems = verdict.as_ref().map(|verdict| verdict.problems.clone()).unwrap_or_default();
        self.parts.events.set(class, problems);
        if let Some(verdict) = verdict {
            let verdict = verdict.with_bundles(self.parts.bundles.borrow().as_ref());
            self.parts.status.set(class.clone(), Wanted::GatewayClass(verdict));
        }
    }

    pub(super) fn tell_classes(&self) {
        for class in self.parts.reconciler.world().keys::<GatewayClass>() {
            self.tell_class(&class);
        }
    }

    /// Addresses are in the statuses of Gateways and Ingresses.
    pub(super) fn tell_everybody(&self) {
        for key in self.parts.status.keys() {
            if matches!(key.kind, Kind::Gateway | Kind::Ingress) {
                self.tell(&key);
            }
        }
        // Ingresses of which nothing could be said without an address.
        for key in self.parts.reconciler.world().keys::<Ingress>() {
            if self.parts.reconciler.owners_that_speak_of(&key).next().is_some() {
                self.tell(&key);
            }
        }
    }

    /// Says how far the data planes of an owner have come.
    pub(super) fn tell_delivery(&self, owner: &ObjectKey) {
        if owner.kind != Kind::Gateway {
            return;
        }
        let planes = self.parts.reconciler.data_planes(owner);
        let Some(verdicts) = self.parts.reconciler.verdicts(owner, &self.deliveries.of(&planes)) else {
            return;
        };
        self.tell(owner);
        for (set, verdict) in verdicts.listener_sets {
            self.parts.status.set((*set).clone(), Wanted::ListenerSet(verdict));
        }
    }
}
