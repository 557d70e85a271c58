//! The addresses of PingSIX behind a sidecar that terminates TLS.
//!
//! PingSIX cannot see the server name of a connection whose TLS ends before it. It does see the address that the
//! connection was made to (`server_addr`), so it listens on several, and the sidecar has one for each listener.

use std::net::{Ipv4Addr, SocketAddrV4};

/// The number of addresses for each port of clients.
pub const FRONT_SLOTS: u8 = 64;

/// The port of all of these addresses.
pub const FRONT_PORT: u16 = 7087;

/// The address of PingSIX for a port of clients and a slot, from 1 to [`FRONT_SLOTS`]. The address has the port of clients
/// in it, so that the processes of a Pod never share one: port 443 with slot 7 is at `127.1.187.7`.
pub const fn front_address(port: u16, slot: u8) -> SocketAddrV4 {
    let [high, low] = port.to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(127, high, low, slot), FRONT_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_port_and_the_slot() {
        assert_eq!(front_address(443, 7).to_string(), "127.1.187.7:7087");
        assert_eq!(front_address(u16::MAX, FRONT_SLOTS).to_string(), "127.255.255.64:7087");
    }
}
