//! From backendRefs to ports of Services and their protocols.

use crate::model::{Capability, FieldPath, Kind, ObjectKey, ObjectName, Reason, Refusal, Traffic};
use crate::normalise::{BackendRef, OtherKind};
use crate::quarantine::refuse_service;
use crate::references::References;
use crate::snapshot::ServicePort;

/// The protocol of a backend, apart from TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AppProtocol {
    /// HTTP/1.1.
    Http,
    /// HTTP/1.1 with connections that stay open (WebSocket).
    WebSocket,
    /// HTTP/2 with prior knowledge.
    H2c,
}

impl AppProtocol {
    /// Reads `appProtocol`, which is empty if absent. `None` is a protocol that cannot carry the traffic, or one with TLS
    /// for connections without.
    pub(super) fn of(written: &str, traffic: Traffic, has_tls: bool) -> Option<Self> {
        match (written, traffic) {
            ("", Traffic::Grpc) | ("kubernetes.io/h2c" | "grpc", Traffic::Http | Traffic::Grpc) => {
                Some(Self::H2c)
            }
            // Connections are passed on unchanged, whatever their protocol.
            ("" | "http" | "kubernetes.io/http", Traffic::Http)
            | (_, Traffic::Tcp | Traffic::Tls | Traffic::Udp) => Some(Self::Http),
            ("kubernetes.io/ws", Traffic::Http) => Some(Self::WebSocket),
            ("https", Traffic::Http) if has_tls => Some(Self::Http),
            ("kubernetes.io/wss", Traffic::Http) if has_tls => Some(Self::WebSocket),
            _ => None,
        }
    }
}

/// The refusal of a Service port, before the path of the reference is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PortRefusal {
    pub(super) field: &'static str,
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl PortRefusal {
    fn missing(service: &ObjectName) -> Self {
        let message = format!("Service {service} does not exist.");
        Self { field: "name", reason: Reason::BackendNotFound, message }
    }

    /// The refusal of a reference.
    pub(super) fn at(self, reference: &FieldPath) -> Refusal {
        Refusal::new(reference.child(self.field), self.reason, self.message)
    }
}

impl References<'_> {
    /// The Service that a backendRef names, existing or not, if the referrer may use it.
    pub(crate) fn service_of(
        &self,
        referrer: &ObjectKey,
        backend: &BackendRef,
        at: impl Fn() -> FieldPath,
    ) -> Result<ObjectName, Refusal> {
        if let Some(OtherKind { group, kind }) = backend.other.as_deref() {
            let group = if group.is_empty() { "the core group" } else { group };
            let field = if kind == Kind::Service.as_str() { "group" } else { "kind" };
            return Err(Refusal::new(
                at().child(field),
                Reason::InvalidKind,
                format!("A backend of kind {kind} of {group} is not supported."),
            ));
        }
        let service = ObjectKey { kind: Kind::Service, name: backend.name.clone() };
        if service.name.namespace != referrer.name.namespace {
            self.check_permission(referrer, &service, &at())?;
        }
        Ok(service.name)
    }

    /// The number of the port of this name, which no other port of the Service has (`ServicePort.name`).
    pub(super) fn port_named(
        &self,
        service: &ObjectName,
        port: &str,
        traffic: Traffic,
    ) -> Result<i32, PortRefusal> {
        let refuse = |reason, message| PortRefusal { field: "port", reason, message };
        let object = self.referents().services.get(service).ok_or_else(|| PortRefusal::missing(service))?;
        let mut ports = object.ports.iter();
        match ports.find(|candidate| candidate.name.as_deref() == Some(port)) {
            // The lookup by number refuses it.
            _ if object.is_external_name => Ok(0),
            None => Err(refuse(
                Reason::BackendNotFound,
                format!("Service {service} has no port named \"{port}\"."),
            )),
            Some(named) if named.protocol.as_str() != traffic.transport() => Err(refuse(
                Reason::UnsupportedProtocol,
                format!("Port \"{port}\" of Service {service} is not a {} port.", traffic.transport()),
            )),
            Some(named) => Ok(named.port),
        }
    }

    /// The port of a Service that a backendRef means.
    pub(super) fn service_port(
        &self,
        name: &ObjectName,
        port: i32,
        traffic: Traffic,
    ) -> Result<&ServicePort, PortRefusal> {
        let refuse = |field, reason, message| Err(PortRefusal { field, reason, message });
        let Some(service) = self.referents().services.get(name) else {
            return Err(PortRefusal::missing(name));
        };
        // Stream connections do not pass PingSIX, so its quarantine has no effect on them.
        if traffic.has_requests() && !self.referents().quarantine.is_empty() {
            let key = ObjectKey { kind: Kind::Service, name: name.clone() };
            if let Some(message) = refuse_service(&self.referents().quarantine, &key) {
                return refuse("name", Reason::Quarantined, message);
            }
        }
        if service.is_external_name {
            return refuse(
                "name",
                Reason::UnsupportedValue,
                match traffic {
                    Traffic::Http | Traffic::Grpc => Capability::ExternalName,
                    Traffic::Tcp | Traffic::Tls | Traffic::Udp => Capability::ExternalNameOfConnections,
                }
                .message(&[&name.to_string()]),
            );
        }
        // A Service may have one port of this number for each protocol (`ServiceSpec.ports`).
        let transport = traffic.transport();
        let with_number = || service.ports.iter().filter(|candidate| candidate.port == port);
        match with_number().find(|port| port.protocol.as_str() == transport) {
            Some(service_port) => Ok(service_port),
            None if with_number().next().is_some() => refuse(
                "port",
                Reason::UnsupportedProtocol,
                format!("Port {port} of Service {name} is not a {transport} port."),
            ),
            None => refuse("port", Reason::BackendNotFound, format!("Service {name} has no port {port}.")),
        }
    }
}
