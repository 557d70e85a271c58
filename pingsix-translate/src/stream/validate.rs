//! Rules of stream documents.
//!
//! Rules of single fields are `garde` attributes of the types, with their functions in `document/rules.rs`;
//! rules over several documents are here.

use std::collections::BTreeMap;
use std::fmt;

use garde::Validate;

use super::key::is_id;
use super::{Destination, StreamConfig, StreamDocument, StreamKey, StreamKind, StreamProtocol, StreamRoute};

/// One violation of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamViolation {
    /// The document. Of two conflicting ones, the later one by key.
    pub key: StreamKey,
    /// The field, for example `snis`; empty for the document itself.
    pub field: String,
    /// One full sentence. It quotes no secret.
    pub message: String,
}

impl fmt::Display for StreamViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, field, message } = self;
        let colon = if field.is_empty() { "" } else { ": " };
        write!(f, "{key}{colon}{field}: {message}")
    }
}

/// Every violation of a configuration, in the order of its documents.
pub fn validate(config: &StreamConfig) -> Vec<StreamViolation> {
    let mut violations = Vec::new();
    let mut places = TakenMatches::default();
    for (key, document) in config.iter() {
        let mut violation = |field: String, message: String| {
            violations.push(StreamViolation { key: key.clone(), field, message });
        };
        if !is_id(&key.id) {
            violation(
                "id".to_owned(),
                "An id cannot be empty, start with a dot or contain a slash.".to_owned(),
            );
        }
        let fields = match document {
            StreamDocument::Upstream(upstream) => upstream.validate(),
            StreamDocument::Ssl(ssl) => ssl.validate(),
            StreamDocument::Ca(ca) => ca.validate(),
            StreamDocument::StreamRoute(route) => {
                check_references(config, route, &mut violation);
                if let Some((field, message)) = places.take(key, route) {
                    violation(field.to_owned(), message);
                }
                route.validate()
            }
        };
        if let Err(report) = fields {
            for (path, error) in report.iter() {
                violation(path.to_string(), sentence(error.message()));
            }
        }
    }
    violations
}

/// The texts of those functions are sentences, and those of `garde` are not.
fn sentence(text: &str) -> String {
    if text.ends_with('.') { text.to_owned() } else { format!("The value is refused: {text}.") }
}

fn check_references(config: &StreamConfig, route: &StreamRoute, violation: &mut impl FnMut(String, String)) {
    let mut check = |kind, id: &str, field: String| {
        let key = StreamKey::new(kind, id);
        if config.get(&key).is_none() {
            violation(field, format!("There is no document {key}."));
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
