//! The addresses of clients: the networks of a policy, and the plugins for them.

use std::collections::BTreeSet;

use super::Reader;
use crate::crd;
use crate::model::{Capability, FieldPath, Network, Refusal};
use crate::pingsix::Plugins;
use crate::pingsix::plugin::{ForwardedHeaderErrorPolicy, IpRestriction, PluginConfig as _, RequestId};
use crate::policy::inherited::FieldValue;

/// The most networks of a list. PingSIX gets twice as many at most.
const MAX_NETWORKS: usize = 256;

impl Reader<'_> {
    pub(super) fn check_addresses(&mut self, spec: &crd::SecurityPolicySpec, at: &FieldPath) {
        if let Some(authorization) = &spec.authorization {
            let at = at.child("authorization");
            if authorization.allow.is_empty() && authorization.deny.is_empty() {
                self.refuse(at.clone(), "The field needs networks in allow or in deny.");
            }
            self.check_networks(&authorization.allow, &at.child("allow"));
            self.check_networks(&authorization.deny, &at.child("deny"));
        }
        if let Some(client_ip) = &spec.client_ip {
            let at = at.child("clientIP").child("trustedProxies");
            if client_ip.trusted_proxies.is_empty() {
                self.refuse(at.clone(), "The list is empty.");
            }
            self.check_networks(&client_ip.trusted_proxies, &at);
        }
    }

    fn check_networks(&mut self, networks: &[String], at: &FieldPath) {
        if networks.len() > MAX_NETWORKS {
            self.refuse(at.clone(), format!("The list has more than {MAX_NETWORKS} networks."));
        }
        for (index, network) in networks.iter().enumerate() {
            if let Err(why) = Network::parse(network) {
                self.refuse(at.index(index), format!("\"{network}\" {why}."));
            }
        }
    }
}

impl FieldValue for crd::Authorization {
    fn plugin_names(&self) -> &'static [&'static str] {
        &[IpRestriction::NAME]
    }

    fn add_to(&self, plugins: &mut Plugins) {
        plugins.insert(&IpRestriction {
            whitelist: in_both_notations(&self.allow),
            blacklist: in_both_notations(&self.deny),
            ..IpRestriction::default()
        });
    }
}

/// Refines the check of addresses.
///
/// Of a trusted proxy, PingSIX takes the address in `X-Forwarded-For`. Without a readable line of that header, PingSIX takes
/// the address in `X-Real-IP`, and without one, the address of the proxy (`src/plugins/ip_restriction.rs`). A client behind
/// the proxy may cause both, by a byte that is not ASCII in the line that the proxy extends. So `request-id`, which runs
/// first, puts an empty header in the place of a missing or unreadable one. Its other fields have no effect. An empty header
/// has no address, and PingSIX refuses requests of trusted proxies without one.
impl FieldValue for crd::ClientIp {
    fn plugin_names(&self) -> &'static [&'static str] {
        &[RequestId::NAME]
    }

    fn add_to(&self, plugins: &mut Plugins) {
        let Some(Ok(restriction)) = plugins.get::<IpRestriction>() else { return };
        plugins.insert(&IpRestriction {
            trusted_proxies: in_both_notations(&self.trusted_proxies),
            use_forwarded_headers: true,
            forwarded_header_error_policy: ForwardedHeaderErrorPolicy::Deny,
            ..restriction
        });
        plugins.insert(&RequestId::empty_forwarded_for());
    }
}

/// Networks with those of IPv4 in both notations: PingSIX compares addresses as the sockets show them.
fn in_both_notations(networks: &[String]) -> Vec<String> {
    let parsed: Vec<Option<Network>> = networks.iter().map(|text| Network::parse(text).ok()).collect();
    let mut known: BTreeSet<String> = parsed.iter().flatten().map(ToString::to_string).collect();
    let others = parsed.iter().flatten().filter_map(|network| network.in_other_notation());
    let others = others.map(|network| network.to_string()).filter(|text| known.insert(text.clone()));
    networks.iter().cloned().chain(others).collect()
}

/// The differences between the author's intent and what PingSIX does.
pub(super) fn limitations(spec: &crd::SecurityPolicySpec) -> Vec<Refusal> {
    let at = FieldPath::new("spec");
    let mut limitations = Vec::new();
    let mut limit_networks = |networks: &[String], at: &FieldPath| {
        for (index, text) in networks.iter().enumerate() {
            if Network::parse(text).is_ok_and(Network::contains_mapped) {
                limitations.push(Capability::NetworkOfIpv6Alone.limit_with(at.index(index), &[text]));
            }
        }
    };
    if let Some(authorization) = &spec.authorization {
        limit_networks(&authorization.allow, &at.child("authorization").child("allow"));
    }
    let at = at.child("clientIP");
    if let Some(client_ip) = &spec.client_ip {
        limit_networks(&client_ip.trusted_proxies, &at.child("trustedProxies"));
        let of_proxies = [Capability::ForwardedForLines, Capability::RequestIdBesideAddresses];
        limitations.extend(of_proxies.map(|capability| capability.limit(at.clone())));
    }
    limitations
}
