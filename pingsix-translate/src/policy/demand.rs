//! Demands of policies on the connections from a route to its backends.

use std::sync::Arc;

use super::Policies;
use super::backend_tls::BackendTls;
use super::backend_traffic::{BackendTraffic, TrafficSettings};
use crate::attach::{Attachment, Listener, attached_listeners};
use crate::model::{Hostname, Kind, ObjectKey, ObjectName, Refusal, Traffic};

/// The traffic of a route to its backends, as far as policies are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    /// Requests, and the Host with which all of them reach a backend; `None` when the Host may vary.
    Requests(Option<&'a Hostname>),
    /// Connections in plaintext, which a policy may want encrypted.
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
}

/// The demand of a policy on connections to a Service port.
#[derive(Debug)]
pub(crate) struct Demand<'a> {
    pub(crate) policy: &'a Arc<ObjectKey>,
    /// The name to ask for and to verify over TLS; or one sentence on why PingSIX can make no connection.
    pub(crate) tls: Result<&'a Hostname, String>,
}

/// The demand of a BackendTrafficPolicy on connections to a Service port.
#[derive(Debug)]
pub(crate) struct TrafficDemand<'a> {
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

    /// The demand of the policy that counts for a port of a Service, if there is such a policy.
    pub(crate) fn demand(self, service: &ObjectName, port: Option<&str>) -> Option<Demand<'a>> {
        let target = ObjectKey { kind: Kind::Service, name: service.clone() };
        let policy = self.policies.backend_tls.effective(target, port)?;
        let host = match self.payload {
            Payload::Requests(host) => host,
            Payload::Opaque => return None,
            Payload::Plaintext => {
                return Some(Demand { policy: &policy.key, tls: Err(no_tls(&policy.key, service)) });
            }
        };
        let tls = match &policy.spec.effect {
            // PingSIX sends one name as Host and as server name, and verifies this name. Another Host than the client's
            // would change the request, so both have to be equal from the start.
            Ok(BackendTls { hostname }) if host == Some(hostname) => Ok(hostname),
            Ok(BackendTls { hostname }) => Err(other_host(&policy.key, service, hostname)),
            Err(flaws) => {
                let flaw = flaws.first().map(ToString::to_string).unwrap_or_default();
                Err(format!(
                    "{} for Service {service} cannot be honoured ({}), so this share of requests is answered with \
                     an error, neither in plaintext nor unverified.",
                    policy.key,
                    flaw.trim_end_matches('.'),
                ))
            }
        };
        Some(Demand { policy: &policy.key, tls })
    }

    /// The demand of the BackendTrafficPolicy that counts for a port of a Service, if the policy has an effect there.
    /// `encrypted` tells whether PingSIX reaches the port over TLS.
    pub(crate) fn traffic(
        self,
        service: &ObjectName,
        port: Option<&str>,
        encrypted: bool,
    ) -> Option<TrafficDemand<'a>> {
        let target = ObjectKey { kind: Kind::Service, name: service.clone() };
        let policy = self.policies.backend_traffic.effective(target, port)?;
        let encrypted = match self.payload {
            Payload::Requests(_) => encrypted,
            // The settings are for requests. A certificate cannot be shown.
            Payload::Plaintext if policy.spec.protects => false,
            Payload::Plaintext | Payload::Opaque => return None,
        };
        let settings = match &policy.spec.effect {
            // A policy that asks for no protection leaves the traffic as it would be without the policy.
            Err(_) if !policy.spec.protects => return None,
            Err(flaws) => Err(unhonoured(&policy.key, service, flaws)),
            Ok(_) if policy.spec.protects && !encrypted => Err(no_certificate(&policy.key, service)),
            Ok(BackendTraffic { settings }) => Ok(settings),
        };
        Some(TrafficDemand { policy: &policy.key, settings })
    }
}

fn unhonoured(policy: &ObjectKey, service: &ObjectName, flaws: &[Refusal]) -> String {
    let flaw = flaws.first().map(ToString::to_string).unwrap_or_default();
    format!(
        "{policy} wants a client certificate for Service {service} and cannot be honoured ({}), so this share of traffic \
         is answered with an error.",
        flaw.trim_end_matches('.')
    )
}

fn no_certificate(policy: &ObjectKey, service: &ObjectName) -> String {
    format!(
        "{policy} wants a client certificate for Service {service}, which PingSIX shows only to endpoints that it reaches \
         with requests over TLS; a route of Gateway API and a BackendTLSPolicy for the Service are needed. This share of \
         traffic is answered with an error."
    )
}

fn no_tls(policy: &ObjectKey, service: &ObjectName) -> String {
    format!(
        "{policy} has connections to Service {service} encrypted and verified, which is done for requests alone, so \
         this share of connections is closed, not passed on in plaintext."
    )
}

fn other_host(policy: &ObjectKey, service: &ObjectName, hostname: &Hostname) -> String {
    format!(
        "{policy} has Service {service} verified as {hostname} (spec.validation.hostname), which PingSIX can do only \
         for requests that all have this Host; {hostname} has to be the only host of the route, or the hostname of a \
         URLRewrite filter of the rule. This share of \
         requests is answered with an error, neither in plaintext nor unverified."
    )
}
