//! Networks of clients.

use std::net::IpAddr;
use std::str::FromStr;

/// A network, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    length: u8,
}

impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, length) = text.split_once('/').map_or((text, None), |(one, other)| (one, Some(other)));
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(most), |length| length.parse().map_err(|_| ()))?;
        if length > most { Err(()) } else { Ok(Self { address, length }) }
    }
}

impl Network {
    /// The networks of a list with commas.
    pub(super) fn list(text: &str) -> Result<Vec<Self>, ()> {
        text.split(',').map(|item| item.trim().parse()).collect()
    }

    pub(super) fn has(&self, client: IpAddr) -> bool {
        let differing = match (self.address, client) {
            (IpAddr::V4(own), IpAddr::V4(other)) => u128::from(own.to_bits() ^ other.to_bits()) << 96,
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        u32::from(self.length) <= differing.leading_zeros()
    }
}
