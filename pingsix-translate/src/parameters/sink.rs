//! The refusal of the sink in parameters.

use std::net::IpAddr;

use garde::Validate as _;
use http::uri::Authority;

use crate::crd::{AttachedSink, SinkScheme};

/// A field of the sink with its refusal.
pub(super) fn refusal(sink: &AttachedSink) -> Option<(&'static str, &'static str)> {
    // The validation of the field reports an invalid URL.
    let (SinkScheme { is_admin, is_tls, .. }, hosts) =
        SinkScheme::split(&sink.url).filter(|_| sink.validate().is_ok())?;
    let hosts: Vec<&str> = hosts.strip_suffix('/').unwrap_or(hosts).split(',').collect();
    if is_admin && hosts.len() > 1 {
        return Some(("url", "An Admin API is at one address."));
    }
    if is_tls && sink.allow_plaintext {
        return Some(("allowPlaintext", "The field is for URLs without TLS."));
    }
    if !is_tls && !sink.allow_plaintext && !hosts.into_iter().all(is_loopback) {
        return Some((
            "url",
            "Secrets would leave the machine in plaintext: use TLS, or set allowPlaintext for a network that \
             encrypts by itself.",
        ));
    }
    if sink.credentials_secret_ref.is_some() {
        return None;
    }
    match (is_admin, is_tls) {
        (true, _) => Some(("credentialsSecretRef", "An Admin API needs a Secret with its apiKey.")),
        (false, true) => Some((
            "credentialsSecretRef",
            "TLS needs a Secret with ca.crt, which the server's certificate is verified with.",
        )),
        (false, false) => None,
    }
}

/// Whether a host is this machine, by its name or address and without asking DNS.
fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
