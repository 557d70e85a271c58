//! Networks of IP addresses.

use std::fmt;
use std::net::IpAddr;

/// A network in CIDR notation, or a single address. Displays as `10.0.0.0/8`, or `10.1.2.3` for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

/// The bits of an IPv6 address before an IPv4 address that is mapped into it, `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2).
const MAPPED_PREFIX_BITS: u8 = 96;

impl Network {
    /// Reads a network without bits behind the length of its prefix.
    ///
    /// # Errors
    ///
    /// The reason why the text is no such network, as the end of a sentence about the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let network = Self::read(text)?;
        if network.masked() == network {
            Ok(network)
        } else {
            Err("has bits of a host behind the length of its prefix")
        }
    }

    /// Reads a network and drops the bits behind the length of its prefix, as Go's `net.ParseCIDR` and APISIX do.
    ///
    /// # Errors
    ///
    /// The reason why the text is no such network, as the end of a sentence about the text.
    pub fn parse_masked(text: &str) -> Result<Self, &'static str> {
        Self::read(text).map(Self::masked)
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err("is no network in CIDR notation");
        };
        let most = width(address);
        let Some(length) = length else { return Ok(Self { address, length: most }) };
        let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
        match length.parse::<u8>() {
            Ok(length) if is_number && length <= most => Ok(Self { address, length }),
            Ok(_) | Err(_) => Err("has no length of a prefix behind the slash"),
        }
    }

    fn masked(self) -> Self {
        let host_bits = u32::from(width(self.address) - self.length);
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or_default();
                IpAddr::V4((u32::from(address) & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or_default();
                IpAddr::V6((u128::from(address) & mask).into())
            }
        };
        Self { address, ..self }
    }

    /// The first address.
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// The length of the prefix in bits.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// The same clients in the other notation: a socket of IPv6 shows clients of IPv4 by mapped addresses. `None` for networks
    /// of IPv6 that are no mapped network of IPv4.
    pub(crate) fn in_other_notation(self) -> Option<Self> {
        match self.address {
            IpAddr::V4(address) => Some(Self {
                address: IpAddr::V6(address.to_ipv6_mapped()),
                length: self.length + MAPPED_PREFIX_BITS,
            }),
            IpAddr::V6(address) => {
                let length = self.length.checked_sub(MAPPED_PREFIX_BITS)?;
                Some(Self { address: IpAddr::V4(address.to_ipv4_mapped()?), length })
            }
        }
    }

    /// Whether the network is one of IPv6 that contains every mapped address.
    pub(crate) fn contains_mapped(self) -> bool {
        let first = Self { address: IpAddr::V6(std::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped()), ..self };
        self.address.is_ipv6() && self.length < MAPPED_PREFIX_BITS && first.masked() == self.masked()
    }
}

/// The number of bits of an address.
const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, length } = *self;
        if length == width(address) { write!(f, "{address}") } else { write!(f, "{address}/{length}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_behind_the_prefix_are_an_error_or_dropped() {
        for (written, masked) in [
            ("193.243.131.172/24", "193.243.131.0/24"),
            ("10.0.0.1/0", "0.0.0.0/0"),
            ("10.0.0.1/08", "10.0.0.0/8"),
            ("2001:db8::1/32", "2001:db8::/32"),
            ("::1/0", "::/0"),
            ("::ffff:10.1.2.3/104", "::ffff:10.0.0.0/104"),
        ] {
            assert_eq!(Network::parse(written), Err("has bits of a host behind the length of its prefix"));
            assert_eq!(Network::parse_masked(written).unwrap().to_string(), masked, "{written}");
            assert_eq!(Network::parse(masked).unwrap().to_string(), masked);
        }
        for address in ["10.1.2.3", "::1", "::ffff:10.1.2.3"] {
            assert_eq!(Network::parse(address).unwrap().to_string(), address);
            assert_eq!(
                Network::parse(&format!("{address}/{}", width(address.parse().unwrap())))
                    .unwrap()
                    .to_string(),
                address
            );
        }
    }

    #[test]
    fn other_texts_are_no_networks() {
        for text in [
            "",
            " ",
            "10.0.0.0/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "10.0.0/8",
            "010.0.0.0/8",
            " 10.0.0.0/8",
            "10.0.0.0 /8",
            "fe80::1%eth0",
            "fe80::1%eth0/64",
            "10.0.0.0/255.0.0.0",
            "10.0.0.0/256",
            "localhost",
            "10.*",
            "[::1]",
            "10.0.0.1:80",
        ] {
            assert!(Network::parse(text).is_err() && Network::parse_masked(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn networks_of_ipv4_have_two_notations() {
        for (ipv4, mapped) in [
            ("127.0.0.0/8", "::ffff:127.0.0.0/104"),
            ("203.0.113.9", "::ffff:203.0.113.9"),
            ("0.0.0.0/0", "::ffff:0.0.0.0/96"),
        ] {
            let [one, other] = [ipv4, mapped].map(|text| Network::parse(text).unwrap());
            assert_eq!((one.in_other_notation(), other.in_other_notation()), (Some(other), Some(one)));
            assert!(!one.contains_mapped() && !other.contains_mapped());
        }
        for (text, contains_mapped) in [
            ("::/0", true),
            ("::/80", true),
            ("::fffe:0:0/95", true),
            ("2001:db8::/32", false),
            ("::1", false),
        ] {
            let network = Network::read(text).unwrap();
            assert_eq!(
                (network.in_other_notation(), network.contains_mapped()),
                (None, contains_mapped),
                "{text}"
            );
        }
    }
}
