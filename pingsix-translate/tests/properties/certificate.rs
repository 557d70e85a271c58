//! Which certificate a client gets to see.

use std::collections::BTreeSet;

use pingsix_translate::pingsix::{Config, Ssl};

use crate::case::Case;
use crate::generate::{CERTIFICATES, HOSTNAMES, secret_of};

/// Every host for which a data plane of a port shows a certificate that is not its listener's, or one that is not
/// valid although the listener has one that is.
pub(crate) fn violations(case: &Case) -> Vec<String> {
    let mut found = Vec::new();
    for (port, plane) in case.planes() {
        let (Some(port), Some(plane)) = (port, plane) else { continue };
        for host in hosts() {
            let Some(index) = case.world.listener_for(port, Some(&host)) else { continue };
            // Without a certificate of its own, a listener leaves the handshake to others and answers nothing.
            if !case.world.serves(index) {
                continue;
            }
            let listener = &case.world.listeners[index];
            if listener.protocol != "HTTPS" {
                continue;
            }
            let own = case.world.certificates(listener);
            let Some(shown) = shown(&plane.config, &host).and_then(|ssl| secret_of(&ssl.cert)) else {
                found.push(format!("port {port}: {host} has no certificate"));
                continue;
            };
            if !own.contains(&shown) {
                found.push(format!("port {port}: {host} gets {shown} and not one of {own:?}"));
            }
            if !is_valid(shown, &host) && own.iter().any(|secret| is_valid(secret, &host)) {
                found
                    .push(format!("port {port}: {host} gets {shown}, which is not valid for it, of {own:?}"));
            }
        }
    }
    found
}

/// The result of PingSIX's lookup: an exact name, or else the longest wildcard, which covers any number of labels.
pub(crate) fn shown<'c>(config: &'c Config, host: &str) -> Option<&'c Ssl> {
    let is_match = |name: &str| match name.strip_prefix('*') {
        Some(suffix) => host.ends_with(suffix) && host.len() > suffix.len(),
        None => name == host,
    };
    let names = config.ssls().flat_map(|(_, ssl)| ssl.snis.iter().map(move |name| (name, ssl)));
    let matching = names.filter(|(name, _)| is_match(name));
    matching.max_by_key(|(name, _)| (!name.starts_with('*'), name.len())).map(|(_, ssl)| ssl)
}

/// Whether a client that asks for the host believes in the certificate of a Secret.
fn is_valid(secret: &str, host: &str) -> bool {
    let certificates = CERTIFICATES.iter().filter(|(name, _)| *name == secret);
    certificates.flat_map(|(_, names)| *names).any(|name| match name.strip_prefix("*.") {
        Some(parent) => host.split_once('.').is_some_and(|(_, rest)| rest == parent),
        None => *name == host,
    })
}

/// Hosts for everything that listeners and certificates name.
fn hosts() -> BTreeSet<String> {
    let names = CERTIFICATES.iter().flat_map(|(_, names)| *names).chain(&HOSTNAMES);
    names
        .flat_map(|name| match name.strip_prefix('*') {
            Some(suffix) => vec![format!("a{suffix}"), format!("zz{suffix}"), format!("deep.er{suffix}")],
            None => vec![(*name).to_owned(), format!("zz.{name}")],
        })
        .collect()
}
