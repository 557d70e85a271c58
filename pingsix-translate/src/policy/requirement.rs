//! Requirements of policies for the connections from a route to its backends.

use std::sync::Arc;

use super::Policies;
use super::backend_tls::BackendTlsEffect;
use super::backend_traffic::{BackendTrafficEffect, TrafficSettings};
use crate::attach::{Attachment, Listener, attached_listeners};
use crate::model::{Capability, Hostname, Kind, ObjectKey, ObjectName, Refusal, Traffic};

/// The traffic of a route to its backends, as policies distinguish it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    /// Requests, and the Host with which all of them reach a backend; `None` when the Host may vary.
    Requests(Option<&'a Hostname>),
    /// Connections in plaintext. A policy may require their encryption.
    Plaintext,
    /// Connections that clients encrypt for the backend, and datagrams: policies have no effect on them.
    Opaque,
}

impl<'a> Payload<'a> {
    /// The payload of a route. `host` is the one Host of all its requests, if there is one.
    pub(crate) fn of(
        traffic: Traffic,
        parents: &[Attachment],
        listeners: &[Listener],
        host: Option<&'a Hostname>,
    ) -> Self {
        match traffic {
            Traffic::Http | Traffic::Grpc => Self::Requests(host),
            Traffic::Udp => Self::Opaque,
            Traffic::Tcp => Self::Plaintext,
            // A rule is resolved once for all listeners, so one listener that terminates TLS counts for the others.
            Traffic::Tls => {
                let mut attached = attached_listeners(parents).map(|listener| &listeners[listener]);
                if attached.any(|listener| !listener.terminates_with().is_empty()) {
                    Self::Plaintext
                } else {
                    Self::Opaque
                }
            }
        }
    }
}

/// The policies as they apply to one route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoutePolicies<'a> {
    pub(super) policies: &'a Policies,
    pub(super) payload: Payload<'a>,
    /// Whether PingSIX does not know the addresses of the clients of some requests.
    pub(super) is_fronted: bool,
    /// The settings of connections by the annotations of an Ingress.
    pub(super) annotations: Option<&'a Arc<TrafficSettings>>,
    /// The route or Ingress, whose authors read messages.
    pub(super) reader: &'a ObjectKey,
}

/// The requirement of a BackendTLSPolicy for connections to a Service port.
#[derive(Debug)]
pub(crate) struct TlsRequirement<'a> {
    pub(crate) policy: &'a Arc<ObjectKey>,
    /// The server name to send and to verify; or one sentence on why PingSIX can make no connection.
    pub(crate) tls: Result<&'a Hostname, String>,
}

/// The requirement of a BackendTrafficPolicy for connections to a Service port.
#[derive(Debug)]
pub(crate) struct TrafficRequirement<'a> {
    pub(crate) policy: &'a Arc<ObjectKey>,
    /// The settings; or one sentence on why PingSIX can make no connection.
    pub(crate) settings: Result<&'a Arc<TrafficSettings>, String>,
}

impl<'a> RoutePolicies<'a> {
    /// The policies as they apply to a rule, which may replace the client's Host by this one.
    pub(crate) fn with_host(self, host: Option<&'a Hostname>) -> Self {
        let payload = match self.payload {
            Payload::Requests(own) => Payload::Requests(host.or(own)),
            other @ (Payload::Plaintext | Payload::Opaque) => other,
        };
        Self { payload, ..self }
    }

    /// The settings of connections by the annotations of an Ingress. A policy for the Service replaces each of them.
    pub(crate) fn settings_of_annotations(self) -> Option<&'a Arc<TrafficSettings>> {
        self.annotations
    }

    /// The requirement of the BackendTLSPolicy that counts for a port of a Service, if there is such a policy.
    pub(crate) fn tls(self, service: &ObjectName, port: Option<&str>) -> Option<TlsRequirement<'a>> {
        let target = ObjectKey { kind: Kind::Service, name: service.clone() };
        let policy = self.policies.backend_tls.effective(target, port)?;
        let host = match self.payload {
            Payload::Requests(host) => host,
            Payload::Opaque => return None,
            Payload::Plaintext => {
                return Some(TlsRequirement {
                    policy: &policy.key,
                    tls: Err(no_tls(&self.named(&policy.key), service)),
                });
            }
        };
        let tls = match &policy.spec.effect {
            // PingSIX sends one name as Host and as server name, and verifies this name. Another Host than the client's
            // would change the request, so both have to be equal from the start.
            Ok(BackendTlsEffect { hostname }) if host == Some(hostname) => Ok(hostname),
            Ok(BackendTlsEffect { hostname }) => Err(other_host(&self.named(&policy.key), service, hostname)),
            Err(refusals) => Err(format!(
                "{} for Service {service} cannot be honoured{}. This share of requests is answered with an error, \
                     because a connection to the backend would be unverified.",
                self.named(&policy.key),
                self.refusal(&policy.key, refusals),
            )),
        };
        Some(TlsRequirement { policy: &policy.key, tls })
    }

    /// The requirement of the BackendTrafficPolicy that counts for a port of a Service, if the policy has an effect there.
    /// `encrypted` tells whether PingSIX reaches the port over TLS.
    pub(crate) fn traffic(
        self,
        service: &ObjectName,
        port: Option<&str>,
        encrypted: bool,
    ) -> Option<TrafficRequirement<'a>> {
        let target = ObjectKey { kind: Kind::Service, name: service.clone() };
        let policy = self.policies.backend_traffic.effective(target, port)?;
        let encrypted = match self.payload {
            Payload::Requests(_) => encrypted,
            // The settings apply to requests. PingSIX presents no certificate on other connections.
            Payload::Plaintext if policy.spec.protects => false,
            Payload::Plaintext | Payload::Opaque => return None,
        };
        let settings = match &policy.spec.effect {
            // A policy without protection has no effect if PingSIX cannot honour it.
            Err(_) if !policy.spec.protects => return None,
            Err(refusals) => {
                Err(unhonoured(&self.named(&policy.key), service, &self.refusal(&policy.key, refusals)))
            }
            Ok(_) if policy.spec.protects && !encrypted => {
                Err(no_certificate(&self.named(&policy.key), service))
            }
            Ok(effect) if self.is_fronted && effect.settings.hashes_addresses() => {
                Err(no_address(&self.named(&policy.key), service))
            }
            Ok(BackendTrafficEffect { settings }) => Ok(settings),
        };
        Some(TrafficRequirement { policy: &policy.key, settings })
    }
}

impl RoutePolicies<'_> {
    /// The policy at the beginning of a sentence.
    fn named(&self, policy: &ObjectKey) -> String {
        policy.introduced_to(self.reader)
    }

    /// The first refusal of a policy in parentheses. A refusal of a policy of another namespace may name objects there.
    fn refusal(&self, policy: &ObjectKey, refusals: &[Refusal]) -> String {
        let refusal = refusals.first().filter(|_| policy.is_known_to(self.reader)).map(ToString::to_string);
        refusal.map(|refusal| format!(" ({})", refusal.trim_end_matches('.'))).unwrap_or_default()
    }
}

fn unhonoured(policy: &str, service: &ObjectName, refusal: &str) -> String {
    format!(
        "{policy} requires a client certificate for Service {service} and cannot be honoured{refusal}. This share of traffic \
         is answered with an error."
    )
}

fn no_certificate(policy: &str, service: &ObjectName) -> String {
    Capability::CertificateForBackends.message_to_routes(&[policy, &service.to_string()])
}

fn no_address(policy: &str, service: &ObjectName) -> String {
    Capability::AddressHashBehindFront.message_to_routes(&[policy, &service.to_string()])
}

fn no_tls(policy: &str, service: &ObjectName) -> String {
    Capability::TlsOfConnections.message_to_routes(&[policy, &service.to_string()])
}

fn other_host(policy: &str, service: &ObjectName, hostname: &Hostname) -> String {
    let (service, hostname) = (service.to_string(), hostname.as_str());
    Capability::BackendNameBesideHost.message_to_routes(&[policy, &service, hostname, hostname])
}
