//! Rules of stream documents.
//!
//! Rules of single fields are `garde` attributes of the types, with their functions in [`rules`]; rules over several
//! documents are here.

use std::collections::BTreeMap;
use std::fmt;

use garde::Validate;

use super::key::is_id;
use super::{Destination, StreamConfig, StreamDocument, StreamKey, StreamKind, StreamProtocol, StreamRoute};

/// One fault of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamViolation {
    /// The document at fault. Of two conflicting ones, the later one by key.
    pub key: StreamKey,
    /// The field, for example `snis`; empty for the document itself.
    pub field: String,
    /// One full sentence with the fault. It quotes no secret.
    pub message: String,
}

impl fmt::Display for StreamViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, field, message } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, "{key}{colon}{field}: {message}")
    }
}

/// Every fault of a configuration, in the order of its documents.
pub fn validate(config: &StreamConfig) -> Vec<StreamViolation> {
    let mut violations = Vec::new();
    let mut places = TakenMatches::default();
    for (key, document) in config.iter() {
        let mut fault = |field: String, message: String| {
            violations.push(StreamViolation { key: key.clone(), field, message });
        };
        if !is_id(&key.id) {
            fault("id".to_owned(), "An id cannot be empty, start with a dot or contain a slash.".to_owned());
        }
        let fields = match document {
            StreamDocument::Upstream(upstream) => upstream.validate(),
            StreamDocument::Ssl(ssl) => ssl.validate(),
            StreamDocument::Ca(ca) => ca.validate(),
            StreamDocument::StreamRoute(route) => {
                check_references(config, route, &mut fault);
                if let Some((field, message)) = places.take(key, route) {
                    fault(field.to_owned(), message);
                }
                route.validate()
            }
        };
        if let Err(report) = fields {
            for (path, error) in report.iter() {
                fault(path.to_string(), sentence(error.message()));
            }
        }
    }
    violations
}

/// The texts of the rules below are sentences, and those of `garde` are not.
fn sentence(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("The value is refused: {text}.") }
}

fn check_references(config: &StreamConfig, route: &StreamRoute, fault: &mut impl FnMut(String, String)) {
    let mut check = |kind, id: &str, field: String| {
        let key = StreamKey::new(kind, id);
        if config.get(&key).is_none() {
            fault(field, format!("There is no document {key}."));
        }
    };
    for (index, id) in route.ssl_ids.iter().enumerate() {
        check(StreamKind::Ssl, id, format!("ssl_ids[{index}]"));
    }
    for (index, id) in route.client_auth.iter().flat_map(|auth| auth.ca_ids.iter().enumerate()) {
        check(StreamKind::Ca, id, format!("client_auth.ca_ids[{index}]"));
    }
    for (index, target) in route.targets.iter().enumerate() {
        if let Destination::Upstream(id) = &target.to {
            check(StreamKind::Upstream, id, format!("targets[{index}].upstream_id"));
        }
    }
}

/// The matches taken by routes.
#[derive(Default)]
struct TakenMatches<'a> {
    /// TCP ports, with the protocol they are used for.
    tcp: BTreeMap<u16, (StreamProtocol, &'a StreamKey)>,
    udp: BTreeMap<u16, &'a StreamKey>,
    names: BTreeMap<(u16, &'a str), &'a StreamKey>,
}

impl<'a> TakenMatches<'a> {
    /// Gives a route its match; the field and message if another route has it.
    fn take(&mut self, key: &'a StreamKey, route: &'a StreamRoute) -> Option<(&'static str, String)> {
        let port = route.server_port;
        match route.protocol {
            StreamProtocol::Udp => {
                let holder = *self.udp.entry(port).or_insert(key);
                (holder != key).then(|| ("server_port", format!("UDP port {port} is that of {holder}.")))
            }
            StreamProtocol::Tcp | StreamProtocol::Tls => {
                let (protocol, holder) = *self.tcp.entry(port).or_insert((route.protocol, key));
                if holder != key && (protocol, route.protocol) != (StreamProtocol::Tls, StreamProtocol::Tls) {
                    return Some(("server_port", format!("TCP port {port} is that of {holder}.")));
                }
                route.snis.iter().find_map(|name| {
                    let holder = *self.names.entry((port, name)).or_insert(key);
                    (holder != key).then(|| {
                        ("snis", format!("Server name \"{name}\" of port {port} is that of {holder}."))
                    })
                })
            }
        }
    }
}

/// Rules of single fields. `garde` fixes the shape of the functions here.
pub(super) mod rules {
    use std::collections::{BTreeMap, BTreeSet};
    use std::net::SocketAddr;

    use crate::model::Hostname;
    use crate::pingsix::validate::{check_authorities, check_for_sidecar};
    use crate::stream::{
        ANY_NAME, ClientAuth, ClientAuthMode, HTTP_PROTOCOLS, StreamProtocol, StreamTarget, TlsMode,
    };

    fn refuse(sentence: impl std::fmt::Display) -> garde::Result {
        Err(garde::Error::new(sentence))
    }

    /// The first of some values that stands twice.
    fn repeated<T: Ord>(values: impl IntoIterator<Item = T>) -> Option<T> {
        let mut seen = BTreeSet::new();
        values.into_iter().find_map(|value| seen.replace(value))
    }

    pub(in crate::stream) fn snis(
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
                    return refuse(
                        "Only a route that terminates TLS takes connections with any server name.",
                    );
                }
                match Hostname::parse(name) {
                    Ok(parsed) if parsed.as_str() == name => {}
                    Ok(_) => return refuse(format_args!("Server name \"{name}\" is not in lower case.")),
                    Err(flaw) => return refuse(format_args!("\"{name}\" is not a server name: {flaw}.")),
                }
            }
            match repeated(names) {
                Some(name) => refuse(format_args!("Server name \"{name}\" stands twice.")),
                None => Ok(()),
            }
        }
    }

    pub(in crate::stream) fn tls(
        protocol: StreamProtocol,
    ) -> impl FnOnce(&Option<TlsMode>, &()) -> garde::Result {
        move |mode, ()| match (protocol, mode) {
            (StreamProtocol::Tls, None) => refuse("A route for TLS says who terminates it."),
            (StreamProtocol::Tcp | StreamProtocol::Udp, Some(_)) => {
                refuse(format_args!("There is no TLS in {}.", protocol.as_str()))
            }
            (StreamProtocol::Tls, Some(_)) | (StreamProtocol::Tcp | StreamProtocol::Udp, None) => Ok(()),
        }
    }

    pub(in crate::stream) fn alpn(mode: Option<TlsMode>) -> impl FnOnce(&Vec<String>, &()) -> garde::Result {
        move |protocols, ()| {
            if !protocols.is_empty() && mode != Some(TlsMode::Terminate) {
                return refuse("Only a route that terminates TLS offers protocols.");
            }
            if let Some(other) =
                protocols.iter().find(|protocol| !HTTP_PROTOCOLS.contains(&protocol.as_str()))
            {
                return refuse(format_args!("\"{other}\" is neither h2 nor http/1.1."));
            }
            match repeated(protocols) {
                Some(protocol) => refuse(format_args!("Protocol {protocol} stands twice.")),
                None => Ok(()),
            }
        }
    }

    pub(in crate::stream) fn client_auth(
        mode: Option<TlsMode>,
    ) -> impl FnOnce(&Option<ClientAuth>, &()) -> garde::Result {
        move |auth, ()| {
            let Some(auth) = auth else { return Ok(()) };
            if mode != Some(TlsMode::Terminate) {
                return refuse("Only a route that terminates TLS asks for client certificates.");
            }
            if auth.mode == ClientAuthMode::RequireAndVerify && auth.ca_ids.is_empty() {
                return refuse("The validation of client certificates needs an authority.");
            }
            match repeated(&auth.ca_ids) {
                Some(id) => refuse(format_args!("Authority {id} stands twice.")),
                None => Ok(()),
            }
        }
    }

    pub(in crate::stream) fn ssl_ids(
        mode: Option<TlsMode>,
    ) -> impl FnOnce(&Vec<String>, &()) -> garde::Result {
        move |ids, ()| match (mode, ids.is_empty()) {
            (Some(TlsMode::Terminate), true) => refuse(
                "A stream route that terminates TLS needs a \
             certificate.",
            ),
            (Some(TlsMode::Passthrough) | None, false) => {
                refuse("Only a route that terminates TLS has certificates.")
            }
            (Some(TlsMode::Terminate), false) | (Some(TlsMode::Passthrough) | None, true) => {
                match repeated(ids) {
                    Some(id) => refuse(format_args!("Certificate {id} stands twice.")),
                    None => Ok(()),
                }
            }
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "garde fixes the shape")]
    pub(in crate::stream) fn targets(targets: &[StreamTarget], (): &()) -> garde::Result {
        if targets.is_empty() {
            return refuse("A route needs a target.");
        }
        if targets.iter().any(|target| target.weight == 0) {
            return refuse("A target has weight 0; weights start at 1.");
        }
        match repeated(targets.iter().map(|target| &target.to)) {
            Some(_) => refuse("Two targets are the same."),
            None => Ok(()),
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "garde fixes the shape")]
    pub(in crate::stream) fn nodes(nodes: &BTreeMap<String, u32>, (): &()) -> garde::Result {
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
    pub(in crate::stream) fn certs(certificates: &str, (): &()) -> garde::Result {
        match check_authorities(certificates) {
            Ok(()) => Ok(()),
            Err(_) => refuse("There must be at least one certificate, and well-formed certificates alone."),
        }
    }

    pub(in crate::stream) fn key(chain: &str) -> impl FnOnce(&String, &()) -> garde::Result {
        move |key, ()| match check_for_sidecar(chain, key) {
            Ok(()) => Ok(()),
            Err(fault) => refuse(format_args!("The certificate cannot be used: {fault}.")),
        }
    }
}
