//! The inputs of a listener's verdict: the listener as written, its Gateway, and the support of its data planes.

use std::sync::Arc;

use gateway_api::gateways as api;

use super::protocol::Protocol;
use crate::model::{Age, Executors, FieldPath, ObjectKey};
use crate::references::References;
use crate::snapshot::{ExtraListenerFields, GatewaySpec};

/// A listener as written, with its position.
#[derive(Clone, Debug)]
pub(super) struct ListenerSource<'a> {
    pub(super) owner: &'a Arc<ObjectKey>,
    pub(super) age: Age,
    pub(super) index: usize,
    pub(super) at: FieldPath,
    pub(super) written: &'a api::GatewayListeners,
    pub(super) extra: Option<&'a ExtraListenerFields>,
}

/// The support of data planes for listeners.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerSupport {
    pub(crate) executors: Executors,
    /// The number of ports of HTTP that all listeners together may have.
    pub(crate) max_ports: usize,
}

#[cfg(test)]
impl ListenerSupport {
    /// Nothing terminates TLS in front of PingSIX.
    pub(crate) const fn unfronted(serves_streams: bool, max_ports: usize) -> Self {
        let executors = Executors { responder: true, stream_proxy: serves_streams, tls_front: false };
        Self { executors, max_ports }
    }
}

/// The inputs of a listener's verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origins<'a> {
    pub(super) gateway_key: &'a Arc<ObjectKey>,
    pub(super) gateway: &'a GatewaySpec,
    pub(super) references: &'a References<'a>,
    pub(super) support: ListenerSupport,
}

impl Origins<'_> {
    /// Whether the sidecar terminates TLS in front of PingSIX for listeners with a protocol.
    pub(super) fn fronts(&self, protocol: Option<Protocol>) -> bool {
        self.support.executors.tls_front && protocol == Some(Protocol::Https)
    }
}
