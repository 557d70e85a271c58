//! Endpoints given on the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use pingsix_translate::snapshot::{EndpointSlice, Object, Objects, ServicePort, service_of_slice};
use pingsix_translate::{Kind, ObjectName};
use serde_json::json;

use super::key;
use crate::finding::{Finding, Level, reason};

/// `NS/SVC[:PORT]=IP:PORT[,IP:PORT]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuppliedEndpoints {
    pub(crate) service: ObjectName,
    /// The port of the Service; every port without a value.
    pub(crate) port: Option<u16>,
    pub(crate) addresses: BTreeSet<SocketAddr>,
}

/// The reverse of `FromStr`.
impl fmt::Display for SuppliedEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        write!(f, "{}{port}={}", self.service, addresses.join(","))
    }
}

impl FromStr for SuppliedEndpoints {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected NAMESPACE/SERVICE[:PORT]=IP:PORT[,IP:PORT...]";
        let (service, addresses) = text.split_once('=').ok_or(expected)?;
        let (namespace, name) = service.split_once('/').ok_or(expected)?;
        let (name, port) = match name.split_once(':') {
            Some((name, port)) => {
                (name, Some(port.parse().map_err(|_| format!("\"{port}\" is not a port; {expected}"))?))
            }
            None => (name, None),
        };
        if namespace.is_empty() || name.is_empty() {
            return Err(expected.to_owned());
        }
        let addresses = addresses
            .split(',')
            .map(|address| {
                address
                    .parse()
                    .map_err(|_| format!("\"{address}\" is not an address with a port; {expected}"))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { service: ObjectName::new(namespace, name), port, addresses })
    }
}

/// The objects of endpoints that were given.
#[derive(Clone, Debug, Default)]
pub(super) struct SuppliedObjects {
    /// EndpointSlices that stand in the place of those the Services have. Those become empty.
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
                made.findings.push(Finding {
                    place: None,
                    object: key.to_string(),
                    field: String::new(),
                    severity: Level::Error,
                    reason: reason::NO_SERVICE.to_owned(),
                    message: format!("Endpoints are given for it, but there is no such Service{port}."),
                });
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
