//! The Service in front of the Pods.

use pingsix_translate::crd::ServiceType;
use serde_json::{Value, json};

use super::Plan;
use super::addresses::requested_address;

/// The Service without metadata.
pub(super) fn service(plan: &Plan<'_>) -> Value {
    let parameters = &plan.infrastructure.parameters.service;
    let mut ports: Vec<Value> = plan
        .processes
        .iter()
        .filter(|process| process.ports.traffic.is_some())
        .map(|process| {
            let name = format!("port-{}", process.listener);
            // By its name: Pods of before and after a change may listen elsewhere.
            json!({ "name": name, "port": process.listener, "protocol": "TCP", "targetPort": name })
        })
        .collect();
    // By number: a port of the container with a name would replace Pods.
    let stream_port = |protocol: &'static str, port: u16, listening: u16| {
        let name = format!("{}-{port}", protocol.to_lowercase());
        json!({ "name": name, "port": port, "protocol": protocol, "targetPort": listening })
    };
    if let Some(streams) = &plan.streams {
        let tcp = streams.tcp().map(|(port, listening)| stream_port("TCP", port, listening));
        let udp = streams.udp().map(|(port, listening)| stream_port("UDP", port, listening));
        ports.extend(tcp.chain(udp));
    }
    let mut spec = json!({ "type": parameters.kind.as_str(), "selector": plan.selector(), "ports": ports });
    if let Some(policy) =
        parameters.external_traffic_policy.filter(|_| parameters.kind != ServiceType::ClusterIp)
    {
        spec["externalTrafficPolicy"] = json!(policy.as_str());
    }
    if parameters.kind == ServiceType::LoadBalancer {
        if let Some(class) = &parameters.load_balancer_class {
            spec["loadBalancerClass"] = json!(class);
        }
        let asked = requested_address(&plan.infrastructure.addresses);
        if let Some(ip) = asked.and_then(|address| address.value.as_deref()) {
            // The judgement comes from the addresses of the Service then.
            spec["loadBalancerIP"] = json!(ip);
        }
    }
    json!({ "spec": spec })
}
