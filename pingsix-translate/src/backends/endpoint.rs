//! From EndpointSlices to the addresses that take traffic.

use std::collections::BTreeSet;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use crate::snapshot::{EndpointSlice, EndpointState};
use thin_vec::ThinVec;

/// Addresses that take traffic: at least one, sorted, without repetitions.
///
/// IPv4 addresses have a list of their own, because each would need four times the memory in a list of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    v4: Box<[SocketAddrV4]>,
    v6: ThinVec<SocketAddrV6>,
}

impl Endpoints {
    /// Merges the slices of a Service for one of its ports, without the endpoints that `admit` refuses.
    ///
    /// Ready endpoints take traffic. Without any, terminating endpoints that still serve do, as in kube-proxy.
    pub(crate) fn ready(
        slices: &[Arc<EndpointSlice>],
        port_name: &str,
        mut admit: impl FnMut(SocketAddr) -> bool,
    ) -> Option<Self> {
        let mut ready = BTreeSet::new();
        let mut leaving = BTreeSet::new();
        for slice in slices {
            if slice.holds_names {
                continue;
            }
            let mut ports = slice.ports.iter();
            let port = ports.find(|port| port.name.as_deref().unwrap_or_default() == port_name);
            let Some(port) = port.and_then(|port| port.port) else { continue };
            for endpoint in &slice.endpoints {
                let set = match endpoint.state {
                    EndpointState::Ready => &mut ready,
                    EndpointState::Leaving => &mut leaving,
                    EndpointState::Down => continue,
                };
                let address = endpoint.address.map(|address| SocketAddr::new(address, port.get()));
                set.extend(address.filter(|address| admit(*address)));
            }
        }
        let endpoints = if ready.is_empty() { leaving } else { ready };
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for endpoint in &endpoints {
            match endpoint {
                SocketAddr::V4(address) => v4.push(*address),
                SocketAddr::V6(address) => v6.push(*address),
            }
        }
        (!endpoints.is_empty()).then(|| Self { v4: v4.into(), v6: v6.into() })
    }

    /// One address.
    pub(crate) fn one(address: SocketAddr) -> Self {
        match address {
            SocketAddr::V4(address) => Self { v4: Box::from([address]), v6: ThinVec::new() },
            SocketAddr::V6(address) => Self { v4: Box::default(), v6: ThinVec::from([address]) },
        }
    }

    /// Whether the slices have endpoints, and all of them are DNS names.
    pub(crate) fn are_names(slices: &[Arc<EndpointSlice>]) -> bool {
        // A name that does not resolve would freeze PingSIX.
        let mut with_endpoints = slices.iter().filter(|slice| !slice.endpoints.is_empty()).peekable();
        with_endpoints.peek().is_some() && with_endpoints.all(|slice| slice.holds_names)
    }

    /// The addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        let v6 = self.v6.iter().copied().map(SocketAddr::V6);
        self.v4.iter().copied().map(SocketAddr::V4).chain(v6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn slice(value: serde_json::Value) -> Arc<EndpointSlice> {
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn addresses(slices: &[Arc<EndpointSlice>], port_name: &str) -> Vec<String> {
        Endpoints::ready(slices, port_name, |_| true)
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
