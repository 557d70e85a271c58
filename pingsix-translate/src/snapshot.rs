//! Snapshot: the closed set of objects one owner of data planes may see.

mod authority_ref;
mod endpoint_slice;
mod frontend;
mod ingress;
mod kinds;
mod metadata;
mod objects;
mod owner;
mod part;
mod policy_object;
mod pool;
mod ports;
mod references;
mod referents;
mod route_spec;
mod routes;
mod service;
pub mod wire;

use std::sync::Arc;

pub(crate) use authority_ref::AuthorityRef;
pub use endpoint_slice::{Endpoint, EndpointSlice, EndpointState};
pub(crate) use frontend::FrontendValidation;
pub use gateway_api::gateways::{GatewayListeners, GatewaySpec};
pub use ingress::{IngressSnapshot, class_of_ingress, class_or_default, default_ingress_classes};
pub use kinds::*;
pub(crate) use metadata::key_of;
pub use metadata::{Identified, Metadata, OfKind};
pub use objects::{FromObject, Object, Objects};
pub use owner::OwnerSnapshot;
pub(crate) use part::Part;
pub(crate) use policy_object::PolicyObject;
pub use policy_object::{AnyPolicy, TargetRef, policies_have_references};
pub use pool::Pool;
pub use ports::{EndpointPort, Protocol, ServicePort};
pub(crate) use references::{AUTH_SECRET, CUSTOM_HEADERS, DEFAULT_BACKEND, named_referent, secret_named_by};
pub use references::{
    proxy_of_class, proxy_of_gateway, proxy_of_ingress_class, references_of_gateway, references_of_ingress,
    references_of_listener_set, references_of_proxy, service_of_slice, services_of_ingress,
};
pub use referents::{OwnAddress, OwnAddresses, Pending, Proxies, Quarantine, Referents};
pub use route_spec::{AnyRoute, GrpcRoute, HttpRoute, TcpRoute, TlsRoute, UdpRoute};
pub use routes::{RouteObject, RouteSpec};
pub use service::Service;

use crate::model::{GATEWAY_GROUP, Kind, ObjectKey, ObjectName};
use crate::shared_map::SharedMap;

/// The input of translation for one Gateway, from [`Objects::snapshot`] or an [`Extract`](crate::selection::Extract).
///
/// A [`Translator`](crate::Translator) finds the differences from the last snapshot by [`SharedMap::changes`], which is
/// cheap if one map is a changed copy of the other. Only the cost depends on that.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The Gateway.
    pub gateway: Arc<Gateway>,
    /// The GatewayClass, if it exists.
    pub class: Option<Arc<GatewayClass>>,
    /// ListenerSets whose parentRef is the Gateway, by name.
    pub listener_sets: SharedMap<ObjectName, Arc<ListenerSet>>,
    /// Routes of all kinds with a parentRef to the Gateway or one of its ListenerSets, by kind, then by name.
    pub routes: SharedMap<ObjectKey, AnyRoute>,
    /// Policies of all kinds that target the Gateway, one of its ListenerSets, one of the routes or a Service to which one of
    /// them refers, by kind, then by name.
    pub policies: SharedMap<ObjectKey, AnyPolicy>,
    /// The objects to which all of these refer.
    pub referents: Referents,
}

impl Snapshot {
    /// Whether a ListenerSet is in a namespace.
    pub(crate) fn has_listener_set_in(&self, namespace: &Arc<str>) -> bool {
        let first = ObjectName::new(namespace.clone(), "");
        let mut sets = self.listener_sets.from_key(&first);
        sets.next().is_some_and(|(name, _)| name.namespace == *namespace)
    }
}

/// The Gateway of a ListenerSet; `None` if its parentRef names another kind.
pub fn parent_of_listener_set(name: &ObjectName, set: &ListenerSet) -> Option<ObjectName> {
    let parent = &set.spec.parent_ref;
    let names_gateway = parent.group.as_deref().unwrap_or(GATEWAY_GROUP) == GATEWAY_GROUP
        && parent.kind.as_deref().unwrap_or(Kind::Gateway.as_str()) == Kind::Gateway.as_str();
    names_gateway.then(|| {
        let namespace = parent.namespace.as_deref().map_or_else(|| name.namespace.clone(), Arc::from);
        ObjectName::new(namespace, parent.name.as_str())
    })
}
