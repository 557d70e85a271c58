//! What policies demand of the connections that carry a route's requests.

use super::BackendTlsPolicies;
use crate::attach::Hostname;
use crate::object::{ObjectKey, ObjectName};

/// Policies as they apply to requests of one route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InEffect<'a> {
    pub(super) policies: &'a BackendTlsPolicies,
    /// The Host all of the requests reach a backend with; `None` when there may be several.
    pub(super) host: Option<&'a Hostname>,
}

/// What a policy demands of connections to a Service port.
#[derive(Debug)]
pub(crate) struct Demand<'a> {
    /// Index into [`BackendTlsPolicies`].
    pub(crate) policy: usize,
    /// TLS, with the name to ask for and to verify; or why there can be no connection, in one sentence.
    pub(crate) tls: Result<&'a Hostname, String>,
}

impl<'a> InEffect<'a> {
    /// The policies as they apply to a rule that sends this Host instead of the client's, if it does.
    pub(crate) fn rewritten(self, host: Option<&'a Hostname>) -> Self {
        Self { host: host.or(self.host), ..self }
    }

    /// What the policy that counts for a port of a Service demands; nothing when there is none.
    pub(crate) fn demand(self, service: &ObjectName, port: Option<&str>) -> Option<Demand<'a>> {
        let (index, policy) = self.policies.of_port(service, port)?;
        let tls = match &policy.verified {
            // PingSIX sends one name as Host and as server name, and verifies it. To send another Host than the
            // client did would change the request, so both have to be the same from the start.
            Ok(hostname) if self.host == Some(hostname) => Ok(hostname),
            Ok(hostname) => Err(other_host(&policy.key, service, hostname)),
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
        Some(Demand { policy: index, tls })
    }
}

fn other_host(policy: &ObjectKey, service: &ObjectName, hostname: &Hostname) -> String {
    format!(
        "{policy} has Service {service} verified as {hostname} (spec.validation.hostname), which PingSIX can do only \
         for requests that all have this Host; {hostname} has to be the only host of the route, or the hostname of a \
         URLRewrite filter of the rule. This share of \
         requests is answered with an error, neither in plaintext nor unverified."
    )
}
