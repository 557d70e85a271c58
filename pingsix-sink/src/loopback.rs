//! Loopback hosts, to which plaintext is safe.

use std::net::IpAddr;

/// Whether the host of a URL is this machine, by name or address without DNS.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_by_name_and_address() {
        for host in ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "[::1]", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "etcd", "localhost.example", "127.0.0.1.example", "10.0.0.1", "0.0.0.0", "[::]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
