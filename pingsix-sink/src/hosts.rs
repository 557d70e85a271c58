//! The names under which HTTP servers answer that are for operators and developers alone.
//!
//! A web page of a stranger can have its own name resolve to an address of such a server (DNS rebinding), and a browser on a
//! machine that reaches the server then lets the page read the answers. The page cannot choose the `Host` of its requests:
//! it is the stranger's name. So a request is answered only when its `Host` is no name that a stranger can have: an address,
//! a name of a single label, or one below a domain that cannot be registered.

use std::net::IpAddr;

use http::uri::Authority;
use http::{Request, header};

/// Domains that cannot be registered: of one machine, one network or one cluster (RFC 6761, RFC 9476). A neighbour can claim
/// any other name below `.local` by multicast (RFC 6762).
const LOCAL_DOMAINS: [&str; 5] = [".localhost", ".cluster.local", ".internal", ".svc", ".test"];

/// The message for requests under a foreign name.
pub const ASK_LOCALLY: &str = "ask by IP address, by a name without dots, or by one that ends in .localhost, .cluster.local, .internal, .svc or .test\n";

/// Whether a request names no host that a stranger can have, in its target or in `Host`.
///
/// Browsers always name a host, so a request that names none is not of a browser.
pub fn is_local<B>(request: &Request<B>) -> bool {
    let named = request.headers().get_all(header::HOST).iter().all(|host| {
        host.to_str()
            .ok()
            .and_then(|host| host.parse().ok())
            .is_some_and(|host: Authority| is_local_name(&host))
    });
    named && request.uri().authority().is_none_or(is_local_name)
}

fn is_local_name(authority: &Authority) -> bool {
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = bare.strip_suffix('.').unwrap_or(bare).to_ascii_lowercase();
    bare.parse::<IpAddr>().is_ok()
        || !name.is_empty() && !name.contains('.')
        || LOCAL_DOMAINS.iter().any(|domain| name.len() > domain.len() && name.ends_with(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_stranger_can_have_are_told_from_others() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("10.2.3.4:8080", true),
            ("[::1]:8080", true),
            ("localhost:8080", true),
            ("LOCALHOST.", true),
            ("controller.localhost", true),
            ("pingsix-gateway-controller", true),
            ("pingsix-gateway-controller.pingsix-system.svc:8080", true),
            ("pingsix-gateway-controller.pingsix-system.svc.cluster.local", true),
            ("evil.example.com", false),
            ("127.0.0.1.evil.example.com", false),
            ("localhost.evil.example.com:8080", false),
            ("svc.example.com", false),
            ("evil-svc.example", false),
            ("user@evil.example.com", false),
            ("evil.example.com:80@127.0.0.1", true),
            ("neighbour.local", false),
            (".cluster.local", false),
            ("", false),
            ("a b", false),
        ] {
            let request = Request::get("/").header(header::HOST, host).body(()).unwrap();
            assert_eq!(is_local(&request), expected, "{host}");
        }
        assert!(is_local(&Request::get("/").body(()).unwrap()));
        let two =
            Request::get("/").header(header::HOST, "localhost").header(header::HOST, "evil.example.com");
        assert!(!is_local(&two.body(()).unwrap()));
        // HTTP/2 names the host in the target.
        for (target, expected) in [("http://127.0.0.1/", true), ("http://evil.example.com/", false)] {
            assert_eq!(is_local(&Request::get(target).body(()).unwrap()), expected, "{target}");
        }
    }
}
