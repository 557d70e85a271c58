//! Status: the second output of translation, verdicts for the authors of objects.
//!
//! Verdicts have no times and no delivery state. [`with_delivery()`] adds the delivery state, and the status writer adds times.

mod affected;
mod bundle;
mod condition;
mod gateway;
mod gateway_class;
mod ingress_class;
mod limited;
mod listener;
mod listener_set;
mod merge;
mod merge_status;
mod pingsix_proxy;
mod policy;
mod programmed;
mod route;
mod target;
mod to_status;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::Arc;

pub(crate) use condition::ConditionContent;
pub use condition::{Condition, ConditionStatus, Conditions};
pub(crate) use gateway::{is_usable_address, judge_gateway, refuse_gateway};
pub use gateway_class::{GatewayClassVerdict, judge_gateway_class};
pub use ingress_class::{IngressClassVerdict, judge_ingress_class};
pub(crate) use listener::{GatewayState, attached_to};
pub(crate) use listener_set::judge_listener_sets;
pub use merge_status::StatusMerge;
pub use pingsix_proxy::{PingsixProxyVerdict, judge_pingsix_proxy};
pub(crate) use policy::{JudgedPolicies, judge_policies, judge_policies_of_ingresses};
pub use programmed::{Delivery, with_delivery};
pub(crate) use route::{Refusals, judge_route};
pub use target::{JudgedTargets, judge_targets};

pub use crate::model::{
    Address, ConditionType, Problem, ProblemChanges, Problems, Reason, RouteKind, SHARE_OF_DEFAULT, Severity,
};
use crate::model::{DataPlaneKey, Layout, ObjectKey, ObjectName, ParentRef};
use crate::shared_map::SharedMap;

/// Verdicts on every object of a snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdicts {
    /// The Gateway; `None` for a snapshot of an IngressClass.
    pub gateway: Option<GatewayVerdict>,
    /// Every ListenerSet whose parentRef is the Gateway.
    pub listener_sets: BTreeMap<Arc<ObjectKey>, ListenerSetVerdict>,
    /// Every route that names the Gateway or one of its ListenerSets.
    pub routes: SharedMap<Arc<ObjectKey>, RouteVerdict>,
    /// Every policy with a target that attached routes of the Gateway use, or that is an Ingress of the IngressClass.
    pub policies: BTreeMap<Arc<ObjectKey>, PolicyVerdict>,
    /// Every Ingress that the IngressClass serves, also with refused parts: its `status.loadBalancer` gets the addresses of
    /// the data plane. Empty for a snapshot of a Gateway.
    pub ingresses: SharedMap<Arc<ObjectKey>, ()>,
    /// All problems, with object and field: the source of the conditions' messages, and the only output for kinds without
    /// conditions.
    pub problems: Problems,
}

impl Verdicts {
    /// Every listener of the Gateway and of its ListenerSets.
    pub fn listeners(&self) -> impl Iterator<Item = &ListenerVerdict> {
        let of_gateway = self.gateway.iter().flat_map(|gateway| &gateway.listeners);
        of_gateway.chain(self.listener_sets.values().flat_map(|set| &set.listeners))
    }
}

/// Verdict on a Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayVerdict {
    /// The Gateway.
    pub key: Arc<ObjectKey>,
    /// `metadata.generation` of the judged object; 0 if it has none.
    pub generation: i64,
    /// The layout of its data planes.
    pub layout: Layout,
    /// Gateway conditions.
    pub conditions: Conditions,
    /// `Programmed`, if the Gateway asks for something that no delivery can provide, such as an unusable address.
    pub obstacle: Option<Condition>,
    /// One entry per listener of the spec, in its order.
    pub listeners: Vec<ListenerVerdict>,
    /// The number of accepted ListenerSets.
    pub attached_listener_sets: i32,
}

/// Verdict on a ListenerSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSetVerdict {
    /// The ListenerSet.
    pub key: Arc<ObjectKey>,
    /// `metadata.generation` of the judged object; 0 if it has none.
    pub generation: i64,
    /// ListenerSet conditions.
    pub conditions: Conditions,
    /// One entry per listener of the spec, in its order.
    pub listeners: Vec<ListenerVerdict>,
}

/// Verdict on a policy with respect to one ancestor.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyVerdict {
    /// The policy.
    pub key: Arc<ObjectKey>,
    /// `metadata.generation` of the judged object; 0 if it has none.
    pub generation: i64,
    /// The subject of the verdict (Gateway API, `PolicyAncestorStatus.ancestorRef`).
    pub ancestor: Ancestor,
    /// Policy conditions.
    pub conditions: Conditions,
}

/// The subject of a verdict on a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ancestor {
    /// A Gateway or IngressClass through which the policy takes effect.
    Owner(Arc<ObjectKey>),
    /// A target without an owner, because it does not exist or cannot be a target.
    Target(Box<UnresolvedTarget>),
}

/// An entry of `spec.targetRefs` that leads to no object, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedTarget {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name, in the namespace of the policy.
    pub name: ObjectName,
    /// A part of the object.
    pub section_name: Option<String>,
}

/// Verdict on a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerVerdict {
    /// `spec.listeners[].name`
    pub name: String,
    /// `spec.listeners[].port`, as written.
    pub port: i32,
    /// `spec.listeners[].protocol`, as written.
    pub protocol: String,
    /// `spec.listeners[].hostname` in lower case; `None` is every host.
    pub hostname: Option<String>,
    /// Kinds of routes that may attach.
    pub supported_kinds: Vec<RouteKind>,
    /// Accepted routes that select this listener.
    pub attached_routes: i32,
    /// Listener conditions.
    pub conditions: Conditions,
    /// Whether the listener keeps its hosts from listeners with wider hostnames, served or not.
    pub keeps_hosts: bool,
    /// The data plane that serves the listener, if any.
    pub data_plane: Option<DataPlaneKey>,
    /// The sidecar's part, if the sidecar terminates TLS in front of that data plane.
    pub front: Option<ListenerFront>,
}

/// The part of the sidecar in a listener for which it terminates TLS in front of PingSIX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerFront {
    /// The stream documents with the listener.
    pub data_plane: DataPlaneKey,
    /// The address at which PingSIX gets the requests of the listener.
    pub address: SocketAddrV4,
}

/// Verdict on a route, with an entry for each parentRef to the Gateway or its ListenerSets.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteVerdict {
    /// The route.
    pub key: Arc<ObjectKey>,
    /// `metadata.generation` of the judged object; 0 if it has none.
    pub generation: i64,
    /// The entries, in spec order. They are shared, because many routes have the same ones.
    pub parents: Arc<[ParentVerdict]>,
}

/// Verdict on a route with respect to one parentRef.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParentVerdict {
    /// The parentRef, verbatim.
    pub parent_ref: ParentRef,
    /// Route conditions.
    pub conditions: Conditions,
}

#[cfg(test)]
mod tests;
