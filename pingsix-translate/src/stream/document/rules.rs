//! Rules of single fields, for the `garde` attributes on the types. `garde` fixes the shape of the functions here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::{ANY_NAME, ClientAuth, ClientAuthMode, HTTP_PROTOCOLS, StreamProtocol, StreamTarget, TlsMode};
use crate::model::Hostname;
use crate::pingsix::validate::{check_authorities, check_for_sidecar};

fn refuse(sentence: impl std::fmt::Display) -> garde::Result {
    Err(garde::Error::new(sentence))
}

/// Refuses the first of some values that stands twice.
fn check_once<T: Ord>(
    values: impl IntoIterator<Item = T>,
    sentence: impl FnOnce(T) -> String,
) -> garde::Result {
    let mut seen = BTreeSet::new();
    let repeated = values.into_iter().find_map(|value| seen.replace(value));
    repeated.map_or(Ok(()), |value| refuse(sentence(value)))
}

pub(super) fn snis(
    protocol: StreamProtocol,
    mode: Option<TlsMode>,
) -> impl FnOnce(&Vec<String>, &()) -> garde::Result {
    move |names, ()| {
        match (protocol, names.is_empty()) {
            (StreamProtocol::Tls, true) => return refuse("A route for TLS needs a server name."),
            (StreamProtocol::Tcp | StreamProtocol::Udp, false) => {
                return refuse(format_args!("There are no server names in {}.", protocol.as_str()));
            }
            (StreamProtocol::Tls, false) | (StreamProtocol::Tcp | StreamProtocol::Udp, true) => {}
        }
        for name in names {
            if name == ANY_NAME {
                if mode == Some(TlsMode::Terminate) {
                    continue;
                }
                return refuse("Only a route that terminates TLS takes connections with any server name.");
            }
            match Hostname::parse(name) {
                Ok(parsed) if parsed.as_str() == name => {}
                Ok(_) => return refuse(format_args!("Server name \"{name}\" is not in lower case.")),
                Err(error) => return refuse(format_args!("\"{name}\" is not a server name: {error}.")),
            }
        }
        check_once(names, |name| format!("Server name \"{name}\" stands twice."))
    }
}

pub(super) fn tls(protocol: StreamProtocol) -> impl FnOnce(&Option<TlsMode>, &()) -> garde::Result {
    move |mode, ()| match (protocol, mode) {
        (StreamProtocol::Tls, None) => refuse("A route for TLS says who terminates it."),
        (StreamProtocol::Tcp | StreamProtocol::Udp, Some(_)) => {
            refuse(format_args!("There is no TLS in {}.", protocol.as_str()))
        }
        (StreamProtocol::Tls, Some(_)) | (StreamProtocol::Tcp | StreamProtocol::Udp, None) => Ok(()),
    }
}

pub(super) fn alpn(mode: Option<TlsMode>) -> impl FnOnce(&Vec<String>, &()) -> garde::Result {
    move |protocols, ()| {
        if !protocols.is_empty() && mode != Some(TlsMode::Terminate) {
            return refuse("Only a route that terminates TLS offers protocols.");
        }
        if let Some(other) = protocols.iter().find(|protocol| !HTTP_PROTOCOLS.contains(&protocol.as_str())) {
            return refuse(format_args!("\"{other}\" is neither h2 nor http/1.1."));
        }
        check_once(protocols, |protocol| format!("Protocol {protocol} stands twice."))
    }
}

pub(super) fn client_auth(mode: Option<TlsMode>) -> impl FnOnce(&Option<ClientAuth>, &()) -> garde::Result {
    move |auth, ()| {
        let Some(auth) = auth else { return Ok(()) };
        if mode != Some(TlsMode::Terminate) {
            return refuse("Only a route that terminates TLS asks for client certificates.");
        }
        if auth.mode == ClientAuthMode::RequireAndVerify && auth.ca_ids.is_empty() {
            return refuse("The validation of client certificates needs an authority.");
        }
        check_once(&auth.ca_ids, |id| format!("Authority {id} stands twice."))
    }
}

pub(super) fn ssl_ids(mode: Option<TlsMode>) -> impl FnOnce(&Vec<String>, &()) -> garde::Result {
    move |ids, ()| match (mode, ids.is_empty()) {
        (Some(TlsMode::Terminate), true) => refuse(
            "A stream route that terminates TLS needs a \
         certificate.",
        ),
        (Some(TlsMode::Passthrough) | None, false) => {
            refuse("Only a route that terminates TLS has certificates.")
        }
        (Some(TlsMode::Terminate), false) | (Some(TlsMode::Passthrough) | None, true) => {
            check_once(ids, |id| format!("Certificate {id} stands twice."))
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde fixes the shape")]
pub(super) fn targets(targets: &[StreamTarget], (): &()) -> garde::Result {
    if targets.is_empty() {
        return refuse("A route needs a target.");
    }
    if targets.iter().any(|target| target.weight == 0) {
        return refuse("A target has weight 0; weights start at 1.");
    }
    check_once(targets.iter().map(|target| &target.to), |_| "Two targets are the same.".to_owned())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde fixes the shape")]
pub(super) fn nodes(nodes: &BTreeMap<String, u32>, (): &()) -> garde::Result {
    if nodes.is_empty() {
        return refuse("There must be at least one node.");
    }
    for (node, weight) in nodes {
        if !node.parse::<SocketAddr>().is_ok_and(|address| address.port() > 0) {
            return refuse(format_args!("Node \"{node}\" is no IP address with a port from 1."));
        }
        if *weight == 0 {
            return refuse(format_args!("Node \"{node}\" has weight 0; weights start at 1."));
        }
    }
    Ok(())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "garde fixes the shape")]
pub(super) fn certs(certificates: &str, (): &()) -> garde::Result {
    match check_authorities(certificates) {
        Ok(()) => Ok(()),
        Err(_) => refuse("There must be at least one certificate, and well-formed certificates alone."),
    }
}

pub(super) fn key(chain: &str) -> impl FnOnce(&String, &()) -> garde::Result {
    move |key, ()| match check_for_sidecar(chain, key) {
        Ok(()) => Ok(()),
        Err(error) => refuse(format_args!("The certificate cannot be used: {error}.")),
    }
}
