//! The infrastructure of an owner whose data planes the controller runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attach::{Listener, Protocol};
use crate::infrastructure::{
    INGRESS_PORTS, Infrastructure, InfrastructurePort, ManagedParameters, PortProtocol, RequestedAddress,
    RequestedAddressKind, StreamInfrastructure,
};
use crate::lower::data_plane_of;
use crate::model::{DataPlaneKey, Layout, ObjectKey};
use crate::snapshot::{Gateway, IngressClass, proxy_of_ingress_class};
use crate::status::is_usable_address;

/// The infrastructure of a Gateway that is not refused.
pub(super) fn of_gateway(
    key: &Arc<ObjectKey>,
    gateway: &Gateway,
    listeners: &[Listener],
    parameters: &Arc<ManagedParameters>,
) -> Infrastructure {
    let served = listeners.iter().filter_map(|listener| {
        let protocol = match listener.protocol? {
            Protocol::Http => PortProtocol::Plaintext,
            Protocol::Https if listener.is_fronted() => PortProtocol::Fronted,
            Protocol::Https => PortProtocol::Tls,
            Protocol::Tls | Protocol::Tcp | Protocol::Udp => return None,
        };
        let data_plane = data_plane_of(&key.name, listener, Layout::PerPort)?;
        Some((listener.port, InfrastructurePort { protocol, data_plane }))
    });
    let streams = |protocols: &[Protocol]| {
        let is_one = |listener: &&Listener| {
            listener.is_fronted() && protocols.contains(&Protocol::Tls)
                || listener.protocol.is_some_and(|protocol| protocols.contains(&protocol))
        };
        let listeners = listeners.iter().filter(|listener| listener.is_served());
        listeners.filter(is_one).map(|listener| listener.port).collect()
    };
    let infrastructure = gateway.spec.infrastructure.as_ref();
    let allowed = |metadata: Option<&BTreeMap<String, String>>| {
        let metadata = metadata.into_iter().flatten().filter(|(key, _)| parameters.allows_key(key));
        metadata.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    Infrastructure {
        owner: key.clone(),
        uid: gateway.metadata.uid.as_deref().map(Arc::from),
        namespace: key.name.namespace.clone(),
        class: gateway.spec.gateway_class_name.as_str().into(),
        ports: served.collect(),
        streams: Some(StreamInfrastructure {
            data_plane: DataPlaneKey::Stream { gateway: key.name.clone() },
            tcp: streams(&[Protocol::Tcp, Protocol::Tls]),
            udp: streams(&[Protocol::Udp]),
        }),
        labels: allowed(infrastructure.and_then(|infrastructure| infrastructure.labels.as_ref())),
        annotations: allowed(infrastructure.and_then(|infrastructure| infrastructure.annotations.as_ref())),
        addresses: requested_addresses(gateway),
        parameters: parameters.clone(),
    }
}

/// The infrastructure of an IngressClass that is served.
pub(super) fn of_ingress_class(
    key: &Arc<ObjectKey>,
    class: &IngressClass,
    parameters: &Arc<ManagedParameters>,
) -> Infrastructure {
    let class_name: Arc<str> = Arc::from(&*key.name.name);
    let ports = INGRESS_PORTS.map(|(port, protocol)| {
        let data_plane = DataPlaneKey::Ingress { class: class_name.clone(), port: Some(port) };
        (port, InfrastructurePort { protocol, data_plane })
    });
    Infrastructure {
        owner: key.clone(),
        uid: class.metadata.uid.as_deref().map(Arc::from),
        namespace: proxy_of_ingress_class(class).map(|proxy| proxy.namespace.clone()).unwrap_or_default(),
        class: class_name,
        ports: ports.into(),
        streams: None,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        addresses: Vec::new(),
        parameters: parameters.clone(),
    }
}

fn requested_addresses(gateway: &Gateway) -> Vec<RequestedAddress> {
    let addresses = gateway.spec.addresses.iter().flatten().enumerate();
    let usable = addresses.filter(|(index, _)| is_usable_address(gateway, *index));
    let requested = usable.filter_map(|(index, address)| {
        let kind = match address.r#type.as_deref().unwrap_or("IPAddress") {
            "IPAddress" => RequestedAddressKind::IpAddress,
            "Hostname" => RequestedAddressKind::Hostname,
            _ => return None,
        };
        let value = address.value.clone().filter(|value| !value.is_empty());
        Some(RequestedAddress { index, kind, value })
    });
    requested.collect()
}
