//! Services, with the fields that translation reads.

use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ServicePort as WirePort, ServiceSpec};
use serde::{Deserialize, Serialize, Serializer};

use super::metadata::{Identified, metadata_of, name_in};
use super::pool::Pool;
use super::ports::ServicePort;
use super::wire;
use crate::model::ObjectName;

/// The type of a Service that is an alias of a DNS name.
const EXTERNAL_NAME: &str = "ExternalName";

/// A Service, with the fields that translation reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "wire::Service")]
pub struct Service {
    /// Namespace and name.
    pub name: ObjectName,
    /// Whether `spec.type` is `ExternalName`: an alias of a DNS name.
    pub is_external_name: bool,
    /// `spec.clusterIP`, if it is an address.
    pub cluster_ip: Option<IpAddr>,
    /// `spec.ports`, in order. Thousands of Services have the same ones.
    pub ports: Arc<[ServicePort]>,
}

impl From<wire::Service> for Service {
    fn from(service: wire::Service) -> Self {
        let spec = service.spec.as_ref();
        Self {
            name: name_in(&service.metadata),
            is_external_name: spec.and_then(|spec| spec.type_.as_deref()) == Some(EXTERNAL_NAME),
            // A headless Service has `None`.
            cluster_ip: spec.and_then(|spec| spec.cluster_ip.as_deref()?.parse().ok()),
            ports: spec.iter().flat_map(|spec| spec.ports.iter().flatten()).map(ServicePort::from).collect(),
        }
    }
}

impl Serialize for Service {
    /// Writes the shape of the API, with the fields that are kept.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let port = |port: &ServicePort| WirePort {
            name: port.name.as_deref().map(ToOwned::to_owned),
            port: port.port,
            protocol: Some(port.protocol.as_str().to_owned()),
            app_protocol: port.app_protocol.as_deref().map(ToOwned::to_owned),
            ..WirePort::default()
        };
        let spec = ServiceSpec {
            type_: self.is_external_name.then(|| EXTERNAL_NAME.to_owned()),
            cluster_ip: self.cluster_ip.map(|address| address.to_string()),
            ports: Some(self.ports.iter().map(port).collect()),
            ..ServiceSpec::default()
        };
        let service =
            wire::Service { metadata: metadata_of(&self.name), spec: Some(spec), ..wire::Service::default() };
        service.serialize(serializer)
    }
}

impl Identified for Service {
    type Wire = wire::Service;

    fn name(&self) -> ObjectName {
        self.name.clone()
    }

    fn generation(&self) -> i64 {
        0
    }

    fn share(&mut self, pool: &mut Pool) {
        pool.name(&mut self.name);
        pool.service_ports(&mut self.ports);
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
    use crate::snapshot::Protocol;
    use serde_json::json;

    #[test]
    fn pooled_parts_equal_the_original() {
        let written = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {"clusterIP": "10.96.0.1", "ports": [
                {"name": "web", "port": 80, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"},
                {"port": 53, "protocol": "UDP"},
            ]},
        });
        let service: Service = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&service).unwrap(), written);
        assert_eq!(service.ports[1].protocol, Protocol::Udp);
    }

    #[test]
    fn another_shape_is_refused_with_the_field() {
        let written = json!({"metadata": {"name": "cart"}, "spec": {"ports": [{"port": "eighty"}]}});
        let error = serde_path_to_error::deserialize::<_, Service>(&written).unwrap_err();
        assert_eq!(error.path().to_string(), "spec.ports[0].port");
        assert_eq!(error.inner().to_string(), "invalid type: string \"eighty\", expected i32");
    }
}
