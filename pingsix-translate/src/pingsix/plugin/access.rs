//! `ip-restriction`: access by client address.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::pingsix::omit;

/// Address lists; a miss of a non-empty whitelist or a hit of the blacklist answers 403.
/// PingSIX: `src/plugins/ip_restriction.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpRestriction {
    /// The allowed networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whitelist: Vec<String>,
    /// The denied networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blacklist: Vec<String>,
    /// The body of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The networks of trusted proxies, whose forwarding headers count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
    /// Whether forwarding headers count.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub use_forwarded_headers: bool,
    /// The handling of an invalid `X-Forwarded-For` of a trusted proxy.
    #[serde(default, skip_serializing_if = "omit::default")]
    pub forwarded_header_error_policy: ForwardedHeaderErrorPolicy,
}

impl IpRestriction {
    /// Whether the lists admit a client.
    #[must_use]
    pub fn admits(&self, client: IpAddr) -> bool {
        !has_address(&self.blacklist, client)
            && (self.whitelist.is_empty() || has_address(&self.whitelist, client))
    }
}

/// Whether a list of networks and addresses has an address.
pub(in crate::pingsix) fn has_address(list: &[String], address: IpAddr) -> bool {
    list.iter().any(|item| match item.parse::<IpNet>() {
        Ok(network) => network.contains(&address),
        Err(_) => item.parse() == Ok(address),
    })
}

/// The handling of an invalid forwarding header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardedHeaderErrorPolicy {
    /// The peer's address is used.
    #[default]
    Direct,
    /// The request is refused.
    Deny,
}
