//! EndpointSlices to the addresses that take traffic.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::Endpoint;

use crate::snapshot::EndpointSlice;

/// Addresses that take traffic: at least one, sorted, without repetitions.
///
/// As address and port: a [`SocketAddr`] has room for what only those of IPv6 have, and there are many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints(Box<[(IpAddr, u16)]>);

impl Endpoints {
    /// Merges the slices of a Service for one of its ports.
    ///
    /// Ready endpoints take traffic; when there are none, those that are terminating but still serve do, as
    /// kube-proxy has it (`EndpointConditions`). An unset condition counts as ready.
    pub(crate) fn ready(slices: &[Arc<EndpointSlice>], port_name: &str) -> Option<Self> {
        let mut ready = BTreeSet::new();
        let mut terminating = BTreeSet::new();
        for slice in slices {
            if holds_names(slice) {
                continue;
            }
            let port = slice
                .ports
                .iter()
                .flatten()
                .find(|port| port.name.as_deref().unwrap_or_default() == port_name)
                .and_then(|port| port.port)
                .and_then(|port| u16::try_from(port).ok())
                .filter(|port| *port > 0);
            let Some(port) = port else { continue };
            for endpoint in slice.endpoints.listed() {
                let conditions = endpoint.conditions.as_ref();
                let is_ready = conditions.and_then(|conditions| conditions.ready).unwrap_or(true);
                let is_serving = conditions.and_then(|conditions| conditions.serving).unwrap_or(is_ready);
                let is_terminating =
                    conditions.and_then(|conditions| conditions.terminating).unwrap_or(false);
                let set = match (is_ready, is_serving && is_terminating) {
                    (true, _) => &mut ready,
                    (false, true) => &mut terminating,
                    (false, false) => continue,
                };
                // Kubernetes gives no meaning to addresses beyond the first (`Endpoint.addresses`).
                set.extend(endpoint.addresses.first().and_then(|address| socket_address(address, port)));
            }
        }
        let endpoints = if ready.is_empty() { terminating } else { ready };
        let endpoints = endpoints.into_iter().map(|address: SocketAddr| (address.ip(), address.port()));
        Some(Self(endpoints.collect())).filter(|endpoints| !endpoints.0.is_empty())
    }

    /// Whether the slices hold endpoints, but DNS names instead of addresses.
    pub(crate) fn are_names(slices: &[Arc<EndpointSlice>]) -> bool {
        let has_endpoints = |slice: &EndpointSlice| !slice.endpoints.listed().is_empty();
        slices.iter().any(|slice| holds_names(slice) && has_endpoints(slice))
            && !slices.iter().any(|slice| !holds_names(slice) && has_endpoints(slice))
    }

    /// The addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|(address, port)| SocketAddr::new(*address, *port))
    }
}

/// The endpoints of a slice: of one type up to Kubernetes 1.35, and of another from 1.36 on. The program that uses this
/// crate says which it is (`k8s-openapi`).
trait Listed {
    fn listed(&self) -> &[Endpoint];
}

impl Listed for Vec<Endpoint> {
    fn listed(&self) -> &[Endpoint] {
        self
    }
}

impl Listed for Option<Vec<Endpoint>> {
    fn listed(&self) -> &[Endpoint] {
        self.as_deref().unwrap_or_default()
    }
}

/// A name that does not resolve would freeze PingSIX.
fn holds_names(slice: &EndpointSlice) -> bool {
    slice.address_type == "FQDN"
}

/// PingSIX takes neither zone identifiers nor IPv4 addresses written as IPv6 (`src/config/mod.rs`, node keys).
fn socket_address(address: &str, port: u16) -> Option<SocketAddr> {
    let address: IpAddr = address.parse().ok()?;
    Some(SocketAddr::new(address.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn slice(value: serde_json::Value) -> Arc<EndpointSlice> {
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn addresses(slices: &[Arc<EndpointSlice>], port_name: &str) -> Vec<String> {
        Endpoints::ready(slices, port_name)
            .map(|endpoints| endpoints.iter().map(|endpoint| endpoint.to_string()).collect())
            .unwrap_or_default()
    }

    #[test]
    fn slices_are_merged_and_endpoints_listed_once() {
        let slices = [
            slice(json!({"addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [
                {"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]})),
            slice(json!({"addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [
                {"addresses": ["10.0.0.1"]}]})),
            slice(json!({"addressType": "IPv6", "ports": [{"port": 8080}], "endpoints": [
                {"addresses": ["fd00::1"]}, {"addresses": ["::ffff:10.0.0.3"]}]})),
        ];
        assert_eq!(
            addresses(&slices, ""),
            ["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080", "[fd00::1]:8080"]
        );
    }

    #[test]
    fn terminating_endpoints_serve_only_when_no_ready_one_is_left() {
        let ready = json!({"addresses": ["10.0.0.1"], "conditions": {"ready": true}});
        let going = json!({"addresses": ["10.0.0.2"],
            "conditions": {"ready": false, "serving": true, "terminating": true}});
        let gone = json!({"addresses": ["10.0.0.3"],
            "conditions": {"ready": false, "serving": false, "terminating": true}});
        let starting = json!({"addresses": ["10.0.0.4"], "conditions": {"ready": false}});
        let with = |endpoints: serde_json::Value| {
            [slice(json!({"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": endpoints}))]
        };
        assert_eq!(addresses(&with(json!([ready, going, gone, starting])), ""), ["10.0.0.1:80"]);
        assert_eq!(addresses(&with(json!([going, gone, starting])), ""), ["10.0.0.2:80"]);
        assert!(addresses(&with(json!([gone, starting])), "").is_empty());
    }

    #[test]
    fn ports_are_found_by_name() {
        let slices = [slice(json!({"addressType": "IPv4",
            "ports": [{"name": "admin", "port": 9000}, {"name": "web", "port": 8080}],
            "endpoints": [{"addresses": ["10.0.0.1"]}]}))];
        assert_eq!(addresses(&slices, "web"), ["10.0.0.1:8080"]);
        assert!(addresses(&slices, "").is_empty());
    }

    #[test]
    fn names_and_nonsense_are_no_endpoints() {
        let slices = [
            slice(
                json!({"addressType": "FQDN", "ports": [{"port": 80}], "endpoints": [{"addresses": ["a.b"]}]}),
            ),
            slice(
                json!({"addressType": "IPv4", "ports": [{"port": 70000}], "endpoints": [{"addresses": ["10.0.0.1"]}]}),
            ),
            slice(
                json!({"addressType": "IPv6", "ports": [{"port": 80}], "endpoints": [{"addresses": ["fe80::1%eth0"]}]}),
            ),
        ];
        assert!(addresses(&slices, "").is_empty());
    }
}
