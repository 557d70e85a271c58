//! EndpointSlices, with the fields that translation reads.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::{
    Endpoint as WireEndpoint, EndpointConditions, EndpointPort as WirePort,
};
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize, Serializer};

use super::metadata::{Identified, metadata_of, name_in, share_namespace};
use super::pool::Pool;
use super::ports::EndpointPort;
use super::wire;
use crate::model::ObjectName;

/// The label that names the Service of an EndpointSlice.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// The type of addresses that are names.
const FQDN: &str = "FQDN";

/// An EndpointSlice, with the fields that translation reads. A cluster has at least as many EndpointSlices as Services.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "wire::EndpointSlice")]
pub struct EndpointSlice {
    /// Namespace and name.
    pub name: ObjectName,
    /// The Service that its label names.
    pub service: Option<ObjectName>,
    /// Whether its endpoints are DNS names. Names are not resolved and not kept.
    pub holds_names: bool,
    /// `ports`, in order. Thousands of slices have the same ones.
    pub ports: Arc<[EndpointPort]>,
    /// `endpoints`, in order.
    pub endpoints: Box<[Endpoint]>,
}

/// An endpoint of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The first of its addresses; Kubernetes gives no meaning to the others (`Endpoint.addresses`). An IPv4 address written
    /// as IPv6 becomes one of IPv4. `None` is an invalid address, or one with a zone identifier.
    pub address: Option<IpAddr>,
    /// Whether it takes traffic.
    pub state: EndpointState,
}

/// Whether an endpoint takes traffic (`EndpointConditions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointState {
    /// The endpoint takes traffic. An unset condition counts as ready.
    Ready,
    /// The endpoint is terminating and still serves: it takes traffic in the absence of ready ones.
    Leaving,
    /// The endpoint takes no traffic.
    Down,
}

impl EndpointState {
    fn of(conditions: Option<&EndpointConditions>) -> Self {
        let is_ready = conditions.and_then(|conditions| conditions.ready).unwrap_or(true);
        let is_serving = conditions.and_then(|conditions| conditions.serving).unwrap_or(is_ready);
        let is_terminating = conditions.and_then(|conditions| conditions.terminating).unwrap_or(false);
        match (is_ready, is_serving && is_terminating) {
            (true, _) => Self::Ready,
            (false, true) => Self::Leaving,
            (false, false) => Self::Down,
        }
    }

    fn to_conditions(self) -> EndpointConditions {
        let is_leaving = (self == Self::Leaving).then_some(true);
        EndpointConditions { ready: Some(self == Self::Ready), serving: is_leaving, terminating: is_leaving }
    }
}

/// The endpoints of a slice. Their type differs between Kubernetes 1.35 and 1.36; the program that uses this crate chooses
/// the version (`k8s-openapi`).
trait Listed: From<Vec<WireEndpoint>> {
    fn listed(&self) -> &[WireEndpoint];
}

impl Listed for Vec<WireEndpoint> {
    fn listed(&self) -> &[WireEndpoint] {
        self
    }
}

impl Listed for Option<Vec<WireEndpoint>> {
    fn listed(&self) -> &[WireEndpoint] {
        self.as_deref().unwrap_or_default()
    }
}

impl From<&WireEndpoint> for Endpoint {
    fn from(endpoint: &WireEndpoint) -> Self {
        // PingSIX takes neither zone identifiers nor IPv4 addresses written as IPv6 (`src/config/mod.rs`, node keys).
        let address = endpoint.addresses.first().and_then(|address| address.parse::<IpAddr>().ok());
        Self {
            address: address.map(|address| address.to_canonical()),
            state: EndpointState::of(endpoint.conditions.as_ref()),
        }
    }
}

impl From<wire::EndpointSlice> for EndpointSlice {
    fn from(slice: wire::EndpointSlice) -> Self {
        let labels = slice.metadata.labels.as_ref();
        let service = labels.and_then(|labels| labels.get(SERVICE_NAME_LABEL));
        let name = name_in(&slice.metadata);
        Self {
            service: service.map(|service| ObjectName::new(name.namespace.clone(), service)),
            name,
            holds_names: slice.address_type == FQDN,
            ports: slice.ports.iter().flatten().map(EndpointPort::from).collect(),
            endpoints: slice.endpoints.listed().iter().map(Endpoint::from).collect(),
        }
    }
}

impl Serialize for EndpointSlice {
    /// Writes the shape of the API, with the fields that are kept.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let labels = self
            .service
            .as_ref()
            .map(|service| BTreeMap::from([(SERVICE_NAME_LABEL.to_owned(), String::from(&*service.name))]));
        let port = |port: &EndpointPort| WirePort {
            name: port.name.as_deref().map(ToOwned::to_owned),
            port: port.port.map(|port| port.get().into()),
            ..WirePort::default()
        };
        let endpoint = |endpoint: &Endpoint| WireEndpoint {
            addresses: endpoint.address.iter().map(ToString::to_string).collect(),
            conditions: Some(endpoint.state.to_conditions()),
            ..WireEndpoint::default()
        };
        let is_ipv6 = self.endpoints.iter().any(|endpoint| endpoint.address.is_some_and(|ip| ip.is_ipv6()));
        let address_type = match (self.holds_names, is_ipv6) {
            (true, _) => FQDN,
            (false, true) => "IPv6",
            (false, false) => "IPv4",
        };
        let slice = wire::EndpointSlice {
            metadata: ObjectMeta { labels, ..metadata_of(&self.name) },
            address_type: address_type.to_owned(),
            ports: Some(self.ports.iter().map(port).collect()),
            endpoints: self.endpoints.iter().map(endpoint).collect::<Vec<_>>().into(),
        };
        slice.serialize(serializer)
    }
}

impl Identified for EndpointSlice {
    type Wire = wire::EndpointSlice;

    fn name(&self) -> ObjectName {
        self.name.clone()
    }

    fn generation(&self) -> i64 {
        0
    }

    fn share(&mut self, pool: &mut Pool) {
        share_namespace(&mut self.name, pool);
        self.service.iter_mut().for_each(|service| pool.name(service));
        pool.endpoint_ports(&mut self.ports);
    }

    fn has_equal_content(&self, other: &Self) -> bool {
        self == other
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pooled_parts_equal_the_original() {
        let written = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "cart-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}},
            "addressType": "IPv6", "ports": [{"name": "web", "port": 8080}],
            "endpoints": [
                {"addresses": ["fd00::1"], "conditions": {"ready": true}},
                {"addresses": ["fd00::2"], "conditions": {"ready": false}},
                {"addresses": ["fd00::3"], "conditions": {"ready": false, "serving": true, "terminating": true}},
            ],
        });
        let slice: EndpointSlice = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&slice).unwrap(), written);
    }

    #[test]
    fn an_endpoint_is_small() {
        assert!(size_of::<Endpoint>() <= 18);
    }

    #[test]
    fn another_shape_is_refused_with_the_field() {
        let written =
            json!({"metadata": {"name": "cart-1"}, "addressType": "IPv4", "endpoints": [{"addresses": 7}]});
        let error = serde_path_to_error::deserialize::<_, EndpointSlice>(&written).unwrap_err();
        assert_eq!(error.path().to_string(), "endpoints[0].addresses");
    }
}
