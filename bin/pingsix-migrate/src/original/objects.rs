//! The objects of the input, as the controllers of the originals see them in the API server.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
    pub(super) creation_timestamp: Option<String>,
}

impl Metadata {
    pub(super) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

/// An object with a spec.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Object<S> {
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) spec: S,
}

/// `spec` of an Ingress.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct IngressSpec {
    pub(super) ingress_class_name: Option<String>,
    pub(super) default_backend: Option<IngressBackend>,
    pub(super) rules: Option<Vec<IngressRule>>,
    pub(super) tls: Option<Vec<IngressTls>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IngressRule {
    pub(super) host: Option<String>,
    pub(super) http: Option<IngressHttp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IngressHttp {
    pub(super) paths: Vec<IngressPath>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct IngressPath {
    pub(super) path: Option<String>,
    pub(super) path_type: Option<String>,
    pub(super) backend: IngressBackend,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IngressBackend {
    pub(super) service: Option<ServiceReference>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct ServiceReference {
    pub(super) name: String,
    #[serde(default)]
    pub(super) port: PortReference,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PortReference {
    number: Option<u16>,
    name: Option<String>,
}

impl PortReference {
    /// The number or the name.
    pub(super) fn text(&self) -> String {
        self.number.map(|number| number.to_string()).or_else(|| self.name.clone()).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct IngressTls {
    pub(super) hosts: Option<Vec<String>>,
    pub(super) secret_name: Option<String>,
}

/// `spec` of an IngressClass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClassSpec {
    pub(super) controller: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceSpec {
    r#type: Option<String>,
    #[serde(rename = "clusterIP")]
    cluster_ip: Option<String>,
    ports: Option<Vec<ServicePort>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServicePort {
    name: Option<String>,
    port: u16,
    target_port: Option<Value>,
}

/// An EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Slice {
    metadata: Metadata,
    ports: Option<Vec<SlicePort>>,
    endpoints: Option<Vec<Endpoint>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SlicePort {
    name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    addresses: Vec<String>,
    conditions: Option<Conditions>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

/// A kind with its objects decoded. The API server refuses an object that cannot be decoded, so no controller sees it.
pub(super) fn of_kind<T: DeserializeOwned>(objects: &[Value], group: &str, kind: &str) -> Vec<T> {
    let is_one = |object: &&Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let of_group = version.split_once('/').map_or("", |(group, _)| group);
        object["kind"] == kind && of_group == group
    };
    objects.iter().filter(is_one).filter_map(|object| T::deserialize(object).ok()).collect()
}

/// A port of a Service, as far as the input tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Backend {
    /// The Service has the port.
    Port { number: u16, has_endpoints: bool },
    /// The Service has no such port.
    NoPort,
    /// The input lacks the Service, which is taken for usable. Its port has a number if no name is written.
    NoService(Option<u16>),
}

/// The Services of the input with their endpoints.
#[derive(Debug, Default)]
pub(super) struct Services {
    specs: BTreeMap<(String, String), ServiceSpec>,
    /// The names of ports with a ready endpoint, by Service.
    ready: BTreeMap<(String, String), Vec<String>>,
    /// Whether every Service is taken for one with endpoints.
    are_ready: bool,
    secrets: BTreeMap<(String, String), Vec<String>>,
}

impl Services {
    pub(super) fn read(objects: &[Value], are_ready: bool) -> Self {
        let services = of_kind::<Object<ServiceSpec>>(objects, "", "Service").into_iter();
        let services = services
            .map(|service| ((service.metadata.namespace().to_owned(), service.metadata.name), service.spec));
        let slices: Vec<Slice> = of_kind(objects, "discovery.k8s.io", "EndpointSlice");
        let mut ready: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for slice in &slices {
            let labels = slice.metadata.labels.as_ref();
            let Some(service) = labels.and_then(|labels| labels.get("kubernetes.io/service-name")) else {
                continue;
            };
            let mut endpoints = slice.endpoints.iter().flatten();
            let is_ready = endpoints.any(|endpoint| {
                let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
                !endpoint.addresses.is_empty() && ready != Some(false)
            });
            if is_ready {
                let key = (slice.metadata.namespace().to_owned(), service.clone());
                let names = slice.ports.iter().flatten().map(|port| port.name.clone().unwrap_or_default());
                ready.entry(key).or_default().extend(names);
            }
        }
        let mut secrets = BTreeMap::new();
        for secret in objects.iter().filter(|object| object["kind"] == "Secret") {
            let Ok(metadata) = Metadata::deserialize(&secret["metadata"]) else { continue };
            let entries = ["data", "stringData"].into_iter().filter_map(|field| secret[field].as_object());
            let entries = entries.flat_map(|entries| entries.keys().cloned()).collect();
            secrets.insert((metadata.namespace().to_owned(), metadata.name), entries);
        }
        Self { specs: services.collect(), ready, are_ready: are_ready || slices.is_empty(), secrets }
    }

    /// The port of a Service by number or name, or by the port of its Pods.
    pub(super) fn backend(&self, namespace: &str, name: &str, port: &str) -> Backend {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(service) = self.specs.get(&key) else { return Backend::NoService(port.parse().ok()) };
        if service.r#type.as_deref() == Some("ExternalName") {
            return match port.parse() {
                Ok(number) => Backend::Port { number, has_endpoints: true },
                Err(_) => Backend::NoPort,
            };
        }
        let target = |port: &ServicePort| match &port.target_port {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => port.port.to_string(),
        };
        let mut ports = service.ports.iter().flatten();
        let found = ports.find(|one| {
            one.port.to_string() == port || one.name.as_deref() == Some(port) || target(one) == port
        });
        let Some(found) = found else { return Backend::NoPort };
        let name = found.name.clone().unwrap_or_default();
        let has_endpoints = self.are_ready || self.ready.get(&key).is_some_and(|names| names.contains(&name));
        Backend::Port { number: found.port, has_endpoints }
    }

    /// The first port of a Service.
    pub(super) fn first_port(&self, namespace: &str, name: &str) -> Option<u16> {
        let service = self.specs.get(&(namespace.to_owned(), name.to_owned()))?;
        Some(service.ports.iter().flatten().next()?.port)
    }

    /// Whether a Service has an address of its own. The API server adds one unless the Service is headless.
    pub(super) fn has_address(&self, namespace: &str, name: &str) -> bool {
        let service = self.specs.get(&(namespace.to_owned(), name.to_owned()));
        service.is_some_and(|service| {
            service.cluster_ip.as_deref() != Some("None") && service.r#type.as_deref() != Some("ExternalName")
        })
    }

    /// The names of the entries of a Secret; `None` if the input lacks it.
    pub(super) fn secret(&self, namespace: &str, name: &str) -> Option<&[String]> {
        self.secrets.get(&(namespace.to_owned(), name.to_owned())).map(Vec::as_slice)
    }
}
