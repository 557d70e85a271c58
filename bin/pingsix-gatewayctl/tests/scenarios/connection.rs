//! Sample connections: their expectations, and the result of the stream documents.

use std::collections::BTreeMap;

use pingsix_translate::stream::{Arrival, Destination, RejectReason, StreamConfig};
use serde::Deserialize;

/// An entry of `connections.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    /// Protocol, port, and with `tls` the server name.
    connection: String,
    /// Nodes, as one text, with their weight; or why the share of a weight is rejected.
    targets: Option<BTreeMap<String, u32>>,
    /// No route accepts the connection.
    #[serde(default)]
    closed: bool,
}

/// The errors of sample connections, given the stream documents by prefix.
pub(crate) fn check(text: &str, planes: &[(String, StreamConfig)]) -> Vec<String> {
    let samples: Vec<Sample> = match serde_saphyr::from_str(text) {
        Ok(samples) => samples,
        Err(error) => return vec![format!("connections.yaml: {error}")],
    };
    let [(_, config)] = planes else {
        return vec![format!("connections.yaml: {} Gateways have stream documents", planes.len())];
    };
    samples.iter().filter_map(|sample| sample.fault(config)).collect()
}

impl Sample {
    fn fault(&self, config: &StreamConfig) -> Option<String> {
        let expected = match (&self.targets, self.closed) {
            (Some(targets), false) => Some(targets.clone()),
            (None, true) => None,
            _ => return Some(format!("{}: expect either targets or closed", self.connection)),
        };
        let found = targets(config, &self.connection);
        (found != expected).then(|| format!("{}: {found:?}, not {expected:?}", self.connection))
    }
}

/// The target of a connection; `None` without a route.
fn targets(config: &StreamConfig, connection: &str) -> Option<BTreeMap<String, u32>> {
    let words: Vec<&str> = connection.split(' ').collect();
    let (port, arrival) = match words.as_slice() {
        ["tcp", port] => (port, Arrival::Tcp),
        ["udp", port] => (port, Arrival::Udp),
        ["tls", port, name] => (port, Arrival::Tls(name)),
        _ => panic!("\"{connection}\" is neither tcp PORT, udp PORT nor tls PORT NAME"),
    };
    let (_, route) = config.route_for(port.parse().unwrap(), arrival)?;
    let targets = route.targets.iter().map(|target| {
        let end = match &target.to {
            Destination::Upstream(id) => {
                let nodes = config.upstream(id).unwrap().nodes.keys();
                nodes.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Destination::Reject(RejectReason::Invalid) => "invalid".to_owned(),
            Destination::Reject(RejectReason::NoEndpoints) => "no_endpoints".to_owned(),
            Destination::Reject(RejectReason::NoRoute) => "no_route".to_owned(),
        };
        (end, target.weight)
    });
    Some(targets.collect())
}
