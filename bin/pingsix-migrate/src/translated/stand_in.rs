//! Objects that the input lacks because it is a part of a cluster. They are taken for usable, so that verdicts are about the
//! objects that are there.
//!
//! No object of the input is replaced: a Service of type `ExternalName` has no endpoints, and none are made up for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::num::NonZeroU16;
use std::sync::Arc;

use pingsix_translate::manifest::{Decoded, decode_known_fields};
use pingsix_translate::snapshot::{
    Endpoint, EndpointPort, EndpointSlice, EndpointState, Object, Protocol, Service, ServicePort,
    service_of_slice,
};
use pingsix_translate::{Kind, ObjectKey, ObjectName, Objects, Options};
use serde_json::{Value, json};

/// A certificate for the host `example.invalid`, and its key. Of all keys, those of Ed25519 are checked in the shortest time.
const CERTIFICATE: &str = include_str!("stand_in/certificate.pem");
const KEY: &str = include_str!("stand_in/key.pem");

/// The objects to which the output refers.
#[derive(Default)]
struct Wanted {
    /// With the ports, by number or name.
    services: BTreeMap<ObjectName, BTreeSet<String>>,
    certificates: BTreeSet<ObjectName>,
    /// Secrets with a user and a password.
    users: BTreeSet<ObjectName>,
    gateways: BTreeSet<ObjectName>,
    gateway_classes: BTreeSet<String>,
}

/// Adds the objects that are missing.
pub(super) fn complete(output: &[(ObjectKey, Arc<Value>)], objects: &mut Objects, options: &Options) {
    let mut wanted = Wanted::default();
    for (key, value) in output {
        wanted.read(key, value);
    }
    wanted.gateways.retain(|name| !has(objects, Kind::Gateway, name));
    for name in &wanted.gateways {
        let secret = ObjectName::new(&*name.namespace, "stand-in");
        let routes = json!({ "namespaces": { "from": "All" } });
        let spec = json!({ "gatewayClassName": "stand-in", "listeners": [
            { "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": routes },
            { "name": "https", "port": 443, "protocol": "HTTPS", "allowedRoutes": routes,
              "tls": { "certificateRefs": [{ "name": &*secret.name }] } },
        ]});
        add(objects, Kind::Gateway, name, json!({ "spec": spec }));
        wanted.gateway_classes.insert("stand-in".to_owned());
        wanted.certificates.insert(secret);
    }
    for class in &wanted.gateway_classes {
        let spec = json!({ "controllerName": options.controller_name });
        add(objects, Kind::GatewayClass, &ObjectName::new("", class.as_str()), json!({ "spec": spec }));
    }
    for name in &wanted.certificates {
        let data = json!({ "tls.crt": CERTIFICATE, "tls.key": KEY });
        add(objects, Kind::Secret, name, json!({ "stringData": data }));
    }
    for name in &wanted.users {
        let data = json!({ "username": "user", "password": "password" });
        let fields = json!({ "type": "kubernetes.io/basic-auth", "stringData": data });
        add(objects, Kind::Secret, name, fields);
    }
    for (name, ports) in &wanted.services {
        if !has(objects, Kind::Service, name) {
            objects.insert(Object::Service(Arc::new(service(name, ports))));
        }
    }
    let slices: Vec<EndpointSlice> = endpoints(&wanted.services, objects).collect();
    for slice in slices {
        objects.insert(Object::EndpointSlice(Arc::new(slice)));
    }
}

fn has(objects: &Objects, kind: Kind, name: &ObjectName) -> bool {
    objects.contains(&ObjectKey { kind, name: name.clone() })
}

/// Adds an object, unless there is one with its name.
fn add(objects: &mut Objects, kind: Kind, name: &ObjectName, mut fields: Value) {
    if has(objects, kind, name) {
        return;
    }
    fields["apiVersion"] = json!(kind.api_version());
    fields["kind"] = json!(kind.as_str());
    fields["metadata"] = json!({ "name": &*name.name });
    if kind.is_namespaced() {
        fields["metadata"]["namespace"] = json!(&*name.namespace);
    }
    if let Decoded::Object { object, .. } = decode_known_fields(fields) {
        objects.insert(object);
    }
}

/// A Service with these ports, by number or name.
fn service(name: &ObjectName, ports: &BTreeSet<String>) -> Service {
    let ports = (60_000..65_000).cycle().zip(ports).map(|(unused, port)| {
        let (name, port) = match port.parse::<u16>() {
            Ok(number) => (format!("port-{number}"), number.into()),
            // The numbers of ports with names are of no consequence.
            Err(_) => (port.clone(), unused),
        };
        ServicePort { name: Some(name.into()), port, protocol: Protocol::Tcp, app_protocol: None }
    });
    Service { name: name.clone(), is_external_name: false, cluster_ip: None, ports: ports.collect() }
}

/// Endpoints for the Services without any. A Service for a name has none.
fn endpoints(
    wanted: &BTreeMap<ObjectName, BTreeSet<String>>,
    objects: &Objects,
) -> impl Iterator<Item = EndpointSlice> {
    let takes_traffic = |slice: &EndpointSlice| {
        slice.holds_names || slice.endpoints.iter().any(|endpoint| endpoint.state != EndpointState::Down)
    };
    let slices = objects.endpoint_slices().filter(move |(_, slice)| takes_traffic(slice));
    let served: BTreeSet<ObjectName> = slices.filter_map(|(_, slice)| service_of_slice(slice)).collect();
    let services = objects.services().filter(move |(name, service)| {
        wanted.contains_key(name) && !served.contains(name) && !service.is_external_name
    });
    services.map(|(name, service)| {
        let port = |port: &ServicePort| EndpointPort { name: port.name.clone(), port: NonZeroU16::new(8080) };
        EndpointSlice {
            name: ObjectName::new(name.namespace.clone(), format!("{}-stand-in", name.name)),
            service: Some(name.clone()),
            holds_names: false,
            ports: service.ports.iter().map(port).collect(),
            endpoints: Box::new([Endpoint {
                address: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
                state: EndpointState::Ready,
            }]),
        }
    })
}

impl Wanted {
    /// Notes the references of an object.
    fn read(&mut self, key: &ObjectKey, value: &Value) {
        let Some(spec) = value.get("spec") else { return };
        let namespace = &*key.name.namespace;
        let text = |field: &str| spec.get(field).and_then(Value::as_str);
        if key.kind == Kind::Gateway {
            self.gateway_classes.extend(text("gatewayClassName").map(str::to_owned));
        }
        if key.kind == Kind::Ingress {
            self.users.extend(user_of_ingress(namespace, value));
        }
        self.walk(namespace, spec);
    }

    /// Notes the references below a value, by the names of the fields.
    fn walk(&mut self, namespace: &str, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.walk(namespace, item)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    match name.as_str() {
                        "parentRefs" | "backendRefs" | "certificateRefs" => {
                            for reference in field.as_array().into_iter().flatten() {
                                self.note(name, namespace, reference);
                            }
                        }
                        "parentRef" | "backendRef" | "service" | "basicAuth" => {
                            self.note(name, namespace, field);
                        }
                        "secretName" => {
                            let secret = field.as_str().map(|secret| ObjectName::new(namespace, secret));
                            self.certificates.extend(secret);
                        }
                        _ => self.walk(namespace, field),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Notes a reference.
    fn note(&mut self, field: &str, own: &str, reference: &Value) {
        let reference = reference.get("secretRef").unwrap_or(reference);
        let text = |field: &str| reference.get(field).and_then(Value::as_str);
        let Some(name) = text("name") else { return };
        let object = ObjectName::new(text("namespace").unwrap_or(own), name);
        let is = |kind: Kind| text("kind").is_none_or(|written| written == kind.as_str());
        match field {
            "parentRef" | "parentRefs" if is(Kind::Gateway) => {
                self.gateways.insert(object);
            }
            "backendRef" | "backendRefs" | "service" if is(Kind::Service) => {
                let port = reference.get("port");
                let port = port.map(|port| port.get("number").or_else(|| port.get("name")).unwrap_or(port));
                let port = port.map(|port| port.as_str().map_or_else(|| port.to_string(), str::to_owned));
                self.services.entry(object).or_default().extend(port);
            }
            "certificateRefs" if is(Kind::Secret) => {
                self.certificates.insert(object);
            }
            "basicAuth" => {
                self.users.insert(object);
            }
            _ => {}
        }
    }
}

/// The Secret with the user of an Ingress of ingress-nginx.
fn user_of_ingress(namespace: &str, ingress: &Value) -> Option<ObjectName> {
    let annotations = ingress.pointer("/metadata/annotations")?;
    let secret = annotations.get("nginx.ingress.kubernetes.io/auth-secret")?.as_str()?.trim();
    Some(match secret.split_once('/') {
        Some((namespace, name)) => ObjectName::new(namespace, name),
        None => ObjectName::new(namespace, secret),
    })
}
