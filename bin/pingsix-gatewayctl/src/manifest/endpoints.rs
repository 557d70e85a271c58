//! The objects of endpoints that are given on the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pingsix_translate::snapshot::{EndpointSlice, Object, Objects, ServicePort, service_of_slice};
use pingsix_translate::{Kind, ObjectName};
use serde_json::json;

use super::key;
use crate::arguments::SuppliedEndpoints;
use crate::finding::{Finding, Level, reason};

/// The objects of endpoints that were given.
#[derive(Clone, Debug, Default)]
pub(super) struct SuppliedObjects {
    /// Supplied EndpointSlices, and empty versions of the slices that they replace.
    pub(super) objects: Vec<Object>,
    pub(super) findings: Vec<Finding>,
}

impl SuppliedObjects {
    pub(super) fn new(objects: &Objects, supplied: &[SuppliedEndpoints]) -> Self {
        let mut made = Self::default();
        let mut replaced = BTreeSet::new();
        for (index, given) in supplied.iter().enumerate() {
            let key = key(Kind::Service, &given.service);
            let ports: Vec<ServicePort> = match objects.get(&key) {
                Some(Object::Service(service)) => {
                    let is_wanted =
                        |port: &&ServicePort| given.port.is_none_or(|wanted| i32::from(wanted) == port.port);
                    service.ports.iter().filter(is_wanted).cloned().collect()
                }
                Some(_) | None => Vec::new(),
            };
            if ports.is_empty() {
                let port = given.port.map(|port| format!(" with port {port}")).unwrap_or_default();
                let message = format!("Endpoints are given for it, but there is no such Service{port}.");
                made.findings.push(Finding::new(Level::Error, reason::NO_SERVICE, message).about(&key, None));
                continue;
            }
            if replaced.insert(&given.service) {
                made.objects.extend(without_endpoints(objects, &given.service));
            }
            made.add(index, given, &ports);
        }
        made
    }

    /// One slice per port number and family, for a slice has one of each.
    fn add(&mut self, index: usize, given: &SuppliedEndpoints, ports: &[ServicePort]) {
        let mut groups: BTreeMap<(bool, u16), Vec<String>> = BTreeMap::new();
        for address in &given.addresses {
            groups.entry((address.is_ipv6(), address.port())).or_default().push(address.ip().to_string());
        }
        for ((is_ipv6, number), addresses) in groups {
            let family = if is_ipv6 { "IPv6" } else { "IPv4" };
            let ports: Vec<_> = ports
                .iter()
                .map(|port| json!({ "name": port.name.as_deref().unwrap_or_default(), "port": number, "protocol": "TCP" }))
                .collect();
            let endpoints: Vec<_> =
                addresses.iter().map(|address| json!({ "addresses": [address] })).collect();
            let slice = json!({
                "metadata": {
                    "namespace": &*given.service.namespace, "name": format!("supplied-{index}-{family}-{number}"),
                    "labels": { "kubernetes.io/service-name": &*given.service.name },
                },
                "addressType": family, "ports": ports, "endpoints": endpoints,
            });
            if let Ok(slice) = serde_json::from_value(slice) {
                self.objects.push(Object::EndpointSlice(Arc::new(slice)));
            }
        }
    }
}

/// The EndpointSlices of a Service, without their endpoints.
fn without_endpoints(objects: &Objects, service: &ObjectName) -> impl Iterator<Item = Object> {
    let slices = objects.endpoint_slices();
    let own = slices.filter(move |(_, slice)| service_of_slice(slice).as_ref() == Some(service));
    own.map(|(_, slice)| {
        let mut empty = EndpointSlice::clone(slice);
        empty.endpoints = Box::default();
        Object::EndpointSlice(Arc::new(empty))
    })
}
