//! The wanted status of an object.

use std::sync::Arc;

use pingsix_translate::ObjectKey;
use pingsix_translate::status::{
    Address, GatewayClassVerdict, GatewayVerdict, ListenerSetVerdict, PingsixProxyVerdict, PolicyVerdict,
    RouteVerdict, StatusMerge,
};
use serde_json::Value;

use super::live::Live;

/// The wanted status of an object. Each route has one, so rare parts are boxed.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// Of a GatewayClass.
    GatewayClass(Box<GatewayClassVerdict>),
    /// Of a PingsixProxy.
    PingsixProxy(Box<PingsixProxyVerdict>),
    /// Of a Gateway.
    Gateway {
        /// The verdict, with what is known about delivery.
        verdict: Box<GatewayVerdict>,
        /// The addresses of its data planes; `None` if another program writes them.
        addresses: Option<Vec<Address>>,
    },
    /// Of a ListenerSet.
    ListenerSet(Box<ListenerSetVerdict>),
    /// Of a route, by all Gateways together ([`RouteVerdict::merge`]).
    Route(RouteVerdict),
    /// Of a policy, one for each Gateway.
    Policy(Vec<PolicyVerdict>),
    /// Of an Ingress.
    Ingress {
        /// The addresses of its data plane.
        addresses: Vec<Address>,
    },
    /// We have stopped managing the object: nothing of ours. What that is for kinds whose conditions do not carry the
    /// controller's name, [`StatusMerge::release_gateway`] says.
    Released,
}

impl Wanted {
    /// The object, if this says which.
    pub(super) fn key(&self) -> Option<&Arc<ObjectKey>> {
        match self {
            Self::GatewayClass(verdict) => Some(&verdict.key),
            Self::PingsixProxy(verdict) => Some(&verdict.key),
            Self::Gateway { verdict, .. } => Some(&verdict.key),
            Self::Route(verdict) => Some(&verdict.key),
            Self::ListenerSet(_) | Self::Policy(_) | Self::Ingress { .. } | Self::Released => None,
        }
    }
}

/// A wanted status, and the former one before its release.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    pub(super) wanted: Wanted,
    /// When this is [`Wanted::Released`] and the status does not carry our name: what we said last.
    pub(super) before: Option<Box<Wanted>>,
    /// The status is out of date, and must not be written.
    pub(super) is_held: bool,
}

impl Stated {
    /// The merge with the next wanted status.
    pub(super) fn followed_by(&self, wanted: Wanted) -> Self {
        let before = match (&wanted, &self.wanted) {
            (
                Wanted::Released,
                before @ (Wanted::Gateway { .. } | Wanted::ListenerSet(_) | Wanted::Ingress { .. }),
            ) => Some(Box::new(before.clone())),
            // Entries carry our name, and a class is another object when its controller changes: the field is immutable.
            (
                _,
                Wanted::GatewayClass(_)
                | Wanted::PingsixProxy(_)
                | Wanted::Gateway { .. }
                | Wanted::ListenerSet(_)
                | Wanted::Route(_)
                | Wanted::Policy(_)
                | Wanted::Ingress { .. }
                | Wanted::Released,
            ) => None,
        };
        Self { wanted, before, is_held: false }
    }

    /// Whether it is done with once the object says so. What carries our name must not come back, not even by a write
    /// that was thought lost. Of anything else we take out what is certainly ours at this time, once: later, the same words
    /// may be those of another installation.
    pub(super) fn is_done_once(&self) -> bool {
        self.wanted == Wanted::Released && self.before.is_some() && !self.is_held
    }

    /// The live status with ours in it.
    pub(super) fn merge(&self, merge: &StatusMerge, live: &Live) -> Value {
        let current = &live.status;
        match &self.wanted {
            Wanted::GatewayClass(verdict) => merge.gateway_class(current, verdict),
            Wanted::PingsixProxy(verdict) => merge.pingsix_proxy(current, verdict),
            Wanted::Gateway { verdict, addresses } => {
                let status = merge.gateway(current, verdict);
                match addresses {
                    Some(addresses) => merge.gateway_addresses(&status, addresses),
                    None => status,
                }
            }
            Wanted::ListenerSet(verdict) => merge.listener_set(current, verdict),
            Wanted::Route(verdict) => merge.route(current, verdict),
            Wanted::Policy(verdicts) => merge.policy(current, verdicts),
            Wanted::Ingress { addresses } => merge.ingress(current, addresses),
            Wanted::Released => self.release(merge, live),
        }
    }

    fn release(&self, merge: &StatusMerge, live: &Live) -> Value {
        let current = &live.status;
        // Entries that carry our name are ours, whatever the kind and whoever of us wrote them.
        let entries = merge.release_entries(current);
        match self.before.as_deref() {
            Some(Wanted::Gateway { verdict, addresses }) => {
                let addresses = addresses.as_deref().unwrap_or_default();
                merge.release_gateway(&entries, live.generation, verdict, addresses)
            }
            Some(Wanted::ListenerSet(verdict)) => {
                merge.release_listener_set(&entries, live.generation, verdict)
            }
            Some(Wanted::Ingress { addresses }) => merge.release_ingress(&entries, addresses),
            Some(
                Wanted::GatewayClass(_)
                | Wanted::PingsixProxy(_)
                | Wanted::Route(_)
                | Wanted::Policy(_)
                | Wanted::Released,
            )
            | None => entries,
        }
    }

    /// Whether the live object already has a verdict of ours on a newer generation than this one is about.
    pub(super) fn is_behind(&self, controller_name: &str, live: &Live) -> bool {
        let Some(judged) = self.judged() else { return false };
        judged < live.generation
            && self
                .said(controller_name, &live.status)
                .is_some_and(|said| judged < said && said <= live.generation)
    }

    /// The generation that was judged.
    fn judged(&self) -> Option<i64> {
        match &self.wanted {
            Wanted::GatewayClass(verdict) => Some(verdict.generation),
            Wanted::PingsixProxy(verdict) => Some(verdict.generation),
            Wanted::Gateway { verdict, .. } => Some(verdict.generation),
            Wanted::ListenerSet(verdict) => Some(verdict.generation),
            Wanted::Route(verdict) => Some(verdict.generation),
            Wanted::Policy(verdicts) => verdicts.iter().map(|verdict| verdict.generation).max(),
            Wanted::Ingress { .. } | Wanted::Released => None,
        }
    }

    /// The newest generation that a status speaks of in our name.
    fn said(&self, controller_name: &str, status: &Value) -> Option<i64> {
        let list = match &self.wanted {
            Wanted::GatewayClass(_)
            | Wanted::PingsixProxy(_)
            | Wanted::Gateway { .. }
            | Wanted::ListenerSet(_) => {
                return newest(&status["conditions"]);
            }
            Wanted::Route(_) => "parents",
            Wanted::Policy(_) => "ancestors",
            Wanted::Ingress { .. } | Wanted::Released => return None,
        };
        let entries = status[list].as_array().into_iter().flatten();
        let ours = entries.filter(|entry| entry["controllerName"] == *controller_name);
        ours.filter_map(|entry| newest(&entry["conditions"])).max()
    }
}

/// The generation of `Accepted`, the one condition that every verdict has.
fn newest(conditions: &Value) -> Option<i64> {
    let conditions = conditions.as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == *"Accepted")
        .filter_map(|condition| condition["observedGeneration"].as_i64())
        .max()
}
