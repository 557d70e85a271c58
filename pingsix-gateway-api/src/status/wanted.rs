//! The wanted status of an object.

use std::sync::Arc;

use pingsix_translate::ObjectKey;
use pingsix_translate::status::{
    Address, GatewayClassVerdict, GatewayVerdict, ListenerSetVerdict, PingsixProxyVerdict, PolicyVerdict,
    RouteVerdict, StatusMerge,
};
use serde_json::Value;

use super::live::LiveObject;

/// The wanted status of an object. Each route has one, so rare parts are boxed.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// The status of a GatewayClass.
    GatewayClass(Box<GatewayClassVerdict>),
    /// The status of a PingsixProxy.
    PingsixProxy(Box<PingsixProxyVerdict>),
    /// The status of a Gateway.
    Gateway {
        /// The verdict, with the delivery.
        verdict: Box<GatewayVerdict>,
        /// The addresses of its data planes; `None` if another program writes them.
        addresses: Option<Vec<Address>>,
    },
    /// The status of a ListenerSet.
    ListenerSet(Box<ListenerSetVerdict>),
    /// The status of a route, merged from all its Gateways ([`RouteVerdict::merge`]).
    Route(RouteVerdict),
    /// The status of a policy, with a verdict for each Gateway.
    Policy(Vec<PolicyVerdict>),
    /// The status of an Ingress.
    Ingress {
        /// The addresses of its data plane.
        addresses: Vec<Address>,
    },
    /// The status of an object that this controller no longer manages, without our entries. See
    /// [`StatusMerge::release_gateway`] for kinds whose conditions do not carry the controller's name.
    Released,
}

impl Wanted {
    /// The object, if the status names it.
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
pub(super) struct StatusEntry {
    pub(super) wanted: Wanted,
    /// The last status before [`Wanted::Released`], for kinds whose status does not carry our name.
    pub(super) before: Option<Box<Wanted>>,
    /// Whether the status is outdated and must not be written.
    pub(super) is_held: bool,
}

impl StatusEntry {
    /// The merge with the next wanted status.
    pub(super) fn replaced_by(&self, wanted: Wanted) -> Self {
        // Entries carry our name. The controller of a class is immutable, so another controller means another object.
        let is_nameless =
            matches!(self.wanted, Wanted::Gateway { .. } | Wanted::ListenerSet(_) | Wanted::Ingress { .. });
        let before = (wanted == Wanted::Released && is_nameless).then(|| Box::new(self.wanted.clone()));
        Self { wanted, before, is_held: false }
    }

    /// Whether the release ends with the first status without our parts. Entries with our name are removed whenever
    /// they reappear, for example by a delayed write. Other parts are removed once: later, equal parts may be those of
    /// another installation.
    pub(super) fn is_one_time_release(&self) -> bool {
        self.wanted == Wanted::Released && self.before.is_some() && !self.is_held
    }

    /// The live status with our parts.
    pub(super) fn merge(&self, merge: &StatusMerge, live: &LiveObject) -> Value {
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

    fn release(&self, merge: &StatusMerge, live: &LiveObject) -> Value {
        let current = &live.status;
        // Entries with our name are ours, of any kind and of any replica.
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

    /// Whether the live object has a verdict of ours on a newer generation.
    pub(super) fn is_behind(&self, controller_name: &str, live: &LiveObject) -> bool {
        let Some(judged) = self.judged_generation() else { return false };
        judged < live.generation
            && self
                .observed_generation(controller_name, &live.status)
                .is_some_and(|observed| judged < observed && observed <= live.generation)
    }

    /// The judged generation.
    fn judged_generation(&self) -> Option<i64> {
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

    /// The newest `observedGeneration` of our parts of a status.
    fn observed_generation(&self, controller_name: &str, status: &Value) -> Option<i64> {
        let list = match &self.wanted {
            Wanted::GatewayClass(_)
            | Wanted::PingsixProxy(_)
            | Wanted::Gateway { .. }
            | Wanted::ListenerSet(_) => {
                return accepted_generation(&status["conditions"]);
            }
            Wanted::Route(_) => "parents",
            Wanted::Policy(_) => "ancestors",
            Wanted::Ingress { .. } | Wanted::Released => return None,
        };
        let entries = status[list].as_array().into_iter().flatten();
        let ours = entries.filter(|entry| entry["controllerName"] == *controller_name);
        ours.filter_map(|entry| accepted_generation(&entry["conditions"])).max()
    }
}

/// The `observedGeneration` of `Accepted`, which every verdict has.
fn accepted_generation(conditions: &Value) -> Option<i64> {
    let conditions = conditions.as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == *"Accepted")
        .filter_map(|condition| condition["observedGeneration"].as_i64())
        .max()
}
