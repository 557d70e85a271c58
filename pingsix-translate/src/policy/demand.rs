//! What policies demand of the connections that carry a route's requests.

use std::sync::Arc;

use super::Policies;
use super::backend_tls::BackendTls;
use crate::attach::{Attachment, Listener, attached_listeners};
use crate::model::{Hostname, Kind, ObjectKey, ObjectName, Traffic};

/// What a route carries to backends, as far as policies are concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload<'a> {
    /// Requests, and the Host all of them reach a backend with; `None` when there may be several.
    Requests(Option<&'a Hostname>),
    /// What clients send, which is for us to encrypt.
    Bytes,
    /// What clients encrypt for the backend, or send as datagrams: there is nothing for us to encrypt.
    Sealed,
}

impl<'a> Payload<'a> {
    /// What a route carries; requests that all have this host, or may have several.
    pub(crate) fn by(
        traffic: Traffic,
        parents: &[Attachment],
        listeners: &[Listener],
        host: Option<&'a Hostname>,
    ) -> Self {
        match traffic {
            Traffic::Http | Traffic::Grpc => Self::Requests(host),
            Traffic::Udp => Self::Sealed,
            Traffic::Tcp => Self::Bytes,
            // A rule is resolved once for all listeners, so that one which terminates counts for the others.
            Traffic::Tls => {
                let mut attached = attached_listeners(parents).map(|listener| &listeners[listener]);
                if attached.any(|listener| !listener.terminates_with().is_empty()) {
                    Self::Bytes
                } else {
                    Self::Sealed
                }
            }
        }
    }
}

/// Policies as they apply to what one route carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InEffect<'a> {
    pub(super) policies: &'a Policies,
    pub(super) payload: Payload<'a>,
}

/// What a policy demands of connections to a Service port.
#[derive(Debug)]
pub(crate) struct Demand<'a> {
    pub(crate) policy: &'a Arc<ObjectKey>,
    /// TLS, with the name to ask for and to verify; or why there can be no connection, in one sentence.
    pub(crate) tls: Result<&'a Hostname, String>,
}

impl<'a> InEffect<'a> {
    /// The policies as they apply to a rule that sends this Host instead of the client's, if it does.
    pub(crate) fn rewritten(self, host: Option<&'a Hostname>) -> Self {
        let payload = match self.payload {
            Payload::Requests(own) => Payload::Requests(host.or(own)),
            other @ (Payload::Bytes | Payload::Sealed) => other,
        };
        Self { payload, ..self }
    }

    /// What the policy that counts for a port of a Service demands; nothing when there is none.
    pub(crate) fn demand(self, service: &ObjectName, port: Option<&str>) -> Option<Demand<'a>> {
        let target = ObjectKey { kind: Kind::Service, name: service.clone() };
        let policy = self.policies.backend_tls.effective(target, port)?;
        let host = match self.payload {
            Payload::Requests(host) => host,
            Payload::Sealed => return None,
            Payload::Bytes => {
                return Some(Demand { policy: &policy.key, tls: Err(no_tls(&policy.key, service)) });
            }
        };
        let tls = match &policy.spec.effect {
            // PingSIX sends one name as Host and as server name, and verifies it. To send another Host than the
            // client did would change the request, so both have to be the same from the start.
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
