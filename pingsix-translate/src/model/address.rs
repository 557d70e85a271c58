//! Addresses of data planes.

use std::net::IpAddr;

use serde_json::{Value, json};

/// An address of data planes, as a status names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// An IP address.
    Ip(IpAddr),
    /// A DNS name.
    Hostname(String),
}

impl Address {
    /// An entry of `status.addresses` of a Gateway.
    pub fn to_gateway_status(&self) -> Value {
        match self {
            Self::Ip(ip) => json!({ "type": "IPAddress", "value": ip.to_string() }),
            Self::Hostname(name) => json!({ "type": "Hostname", "value": name }),
        }
    }

    /// An entry of `status.loadBalancer.ingress` of an Ingress.
    pub fn to_ingress_status(&self) -> Value {
        match self {
            Self::Ip(ip) => json!({ "ip": ip.to_string() }),
            Self::Hostname(name) => json!({ "hostname": name }),
        }
    }
}
