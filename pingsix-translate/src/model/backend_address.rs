//! The addresses that backends may have.
//!
//! Authors of EndpointSlices choose addresses freely, and a data plane connects to them from its own network (see
//! CVE-2021-25740). Addresses that mean the machine of the data plane, its link or the services of its cloud are therefore
//! no addresses of backends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The rules for addresses of backends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendAddresses {
    /// Whether backends may have loopback addresses, for a PingSIX that runs beside its backends on one machine.
    pub loopback: bool,
    /// Networks without backends, such as those of nodes and of the API server.
    pub refused: Vec<IpNet>,
}

impl BackendAddresses {
    /// Whether a backend may have an address.
    pub(crate) fn admit(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_usable = is_backend_address(address) || self.loopback && address.is_loopback();
        let embedded = embedded_v4(address).map(IpAddr::V4);
        let is_refused = |network: &IpNet| {
            let network = canonical(*network);
            network.contains(&address) || embedded.is_some_and(|embedded| network.contains(&embedded))
        };
        is_usable && !self.refused.iter().any(is_refused)
    }
}

/// A network of mapped addresses as the IPv4 network that it means.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else { return network };
    let v4 = v6.network().to_ipv4_mapped().zip(v6.prefix_len().checked_sub(96));
    v4.and_then(|(address, length)| IpNet::new(IpAddr::V4(address), length).ok()).unwrap_or(network)
}

/// Whether an address can be that of a backend: it is none of this machine, of its link, of a group or of nobody, and none
/// at which a cloud serves metadata and credentials of its machines.
pub fn is_backend_address(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if embedded_v4(address).is_some_and(|v4| !is_backend_v4(v4)) {
        return false;
    }
    match address {
        IpAddr::V4(v4) => is_backend_v4(v4),
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
                || v6.is_unspecified()
                // Services of a machine at AWS.
                || matches!(v6.segments(), [0xfd00, 0xec2, ..])
                // Metadata at Google Cloud.
                || v6 == Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254))
        }
    }
}

fn is_backend_v4(v4: Ipv4Addr) -> bool {
    !(v4.is_loopback()
        // With the metadata of most clouds, 169.254.169.254.
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_broadcast()
        || v4.octets()[0] == 0
        // Services of a machine at Azure, Alibaba Cloud and Oracle Cloud.
        || [[168, 63, 129, 16], [100, 100, 100, 200], [192, 0, 0, 192]].contains(&v4.octets()))
}

/// The IPv4 address to which a network may translate an IPv6 address: IPv4-compatible addresses (RFC 4291), NAT64 (RFC 6052
/// and 8215) and 6to4 (RFC 3056).
fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let octets = v6.octets();
    let at = |first: usize| {
        Some(Ipv4Addr::new(octets[first], octets[first + 1], octets[first + 2], octets[first + 3]))
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, ..] if !v6.is_loopback() && !v6.is_unspecified() => at(12),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => at(12),
        [0x2002, ..] => at(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_machine_its_link_and_its_cloud_are_no_backends() {
        for text in [
            "127.0.0.1",
            "127.8.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.170.23",
            "224.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "::1",
            "::",
            "fe80::1",
            "fe80::a9fe:a9fe",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert!(!is_backend_address(address), "{text}");
            assert!(!BackendAddresses::default().admit(address), "{text}");
        }
        for text in [
            "10.0.0.1",
            "100.64.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "203.0.113.1",
            "240.0.0.1",
            "fd00::1",
            "2001:db8::1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::",
            "::ffff:10.0.0.1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert!(is_backend_address(address), "{text}");
            assert!(BackendAddresses::default().admit(address), "{text}");
        }
    }

    #[test]
    fn loopback_is_admitted_alone_and_networks_are_refused_in_every_form() {
        let on_laptop = BackendAddresses { loopback: true, refused: Vec::new() };
        for (text, is_admitted) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("64:ff9b::127.0.0.1", false),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(on_laptop.admit(text.parse().unwrap()), is_admitted, "{text}");
        }
        for network in ["192.0.2.0/24", "::ffff:192.0.2.0/120"] {
            let rules = BackendAddresses { loopback: false, refused: vec![network.parse().unwrap()] };
            for (text, is_admitted) in [
                ("192.0.2.9", false),
                ("::ffff:192.0.2.9", false),
                ("64:ff9b::192.0.2.9", false),
                ("192.0.3.9", true),
                ("fd00::1", true),
            ] {
                assert_eq!(rules.admit(text.parse().unwrap()), is_admitted, "{network} {text}");
            }
        }
    }
}
