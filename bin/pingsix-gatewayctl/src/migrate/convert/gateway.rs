//! The Gateway of the routes: one of the input or of the cluster, or one that is written.

use std::collections::BTreeSet;

use pingsix_translate::{Kind, ObjectKey, ObjectName, PINGSIX_GROUP};
use serde_json::{Map, Value, json};

use super::rules::Section;
use super::tls::covers;
use super::{Choices, Conversion, ingress};
use crate::migrate::report::{Place, Reason};
use crate::migrate::source::{SourceKind, Sources};

/// The most listeners of a Gateway.
const LISTENERS: usize = 64;

/// The name of a Gateway that is written.
const NAME: &str = "pingsix";

/// The kinds whose objects decide about the namespace of the Gateway.
const KINDS: [SourceKind; 2] = [SourceKind::ApisixRoute, SourceKind::ApisixTls];

/// A listener for a host.
pub(super) struct HttpsListener {
    pub(super) place: Place,
    pub(super) host: String,
    pub(super) certificate: Value,
}

/// Where the Gateway comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// It is written.
    Written,
    /// The input has it, and it gets further listeners.
    Input,
    /// The cluster has it, and it stays as it is.
    Cluster,
}

/// The Gateway of the routes.
pub(super) struct Parent {
    pub(super) name: ObjectName,
    origin: Origin,
    is_needed: bool,
    namespaces: BTreeSet<String>,
    https: Vec<HttpsListener>,
    /// Listeners for TCP and UDP, with the field that asks for them.
    layer4: Vec<(Place, Value)>,
    http_port: u16,
    https_port: u16,
}

impl Parent {
    /// The Gateway that the user names, or a new one beside the objects of the input.
    pub(super) fn choose(sources: &Sources, choices: &Choices) -> Self {
        let name = choices.gateway.clone().unwrap_or_else(|| {
            let mut namespaces = sources.namespaces(&KINDS);
            namespaces.extend(ingress::namespaces(sources));
            let namespaces: Vec<String> = namespaces.into_iter().collect();
            let [namespace] = namespaces.as_slice() else { return ObjectName::new("default", NAME) };
            ObjectName::new(namespace.as_str(), NAME)
        });
        let key = ObjectKey { kind: Kind::Gateway, name: name.clone() };
        let kept = sources.kept.get(&key);
        let origin = match (kept, &choices.gateway) {
            (Some(_), _) => Origin::Input,
            (None, Some(_)) => Origin::Cluster,
            (None, None) => Origin::Written,
        };
        let port = |protocol: &str, default: u16| {
            let listeners = kept.and_then(|gateway| gateway.pointer("/spec/listeners")?.as_array());
            let mut listeners = listeners.into_iter().flatten();
            let found = listeners.find(|one| one.get("protocol").and_then(Value::as_str) == Some(protocol));
            let port = found.and_then(|listener| listener.get("port")?.as_u64());
            port.and_then(|port| u16::try_from(port).ok()).unwrap_or(default)
        };
        Self {
            name,
            origin,
            is_needed: sources.has(SourceKind::ApisixRoute),
            namespaces: BTreeSet::new(),
            https: Vec::new(),
            layer4: Vec::new(),
            http_port: port("HTTP", 80),
            https_port: port("HTTPS", 443),
        }
    }

    /// An item of `parentRefs`.
    pub(super) fn reference(&self, namespace: &str, section: Section) -> Value {
        let mut reference = json!({ "name": &*self.name.name });
        if namespace != &*self.name.namespace {
            reference["namespace"] = json!(&*self.name.namespace);
        }
        match section {
            Section::All => {}
            Section::Http => reference["port"] = json!(self.http_port),
            Section::Https => reference["port"] = json!(self.https_port),
        }
        reference
    }

    /// Notes that there is a route in a namespace.
    pub(super) fn note_route(&mut self, namespace: &str) {
        self.is_needed = true;
        self.namespaces.insert(namespace.to_owned());
    }

    /// Whether there are listeners for HTTPS, as far as that is known.
    pub(super) fn serves_https(&self, hosts: &[String]) -> bool {
        let is_served = |host: &String| self.https.iter().any(|listener| covers(&listener.host, host));
        self.origin != Origin::Written || (!self.https.is_empty() && hosts.iter().all(is_served))
    }

    /// Whether the Gateway gets a listener for HTTPS of the host.
    pub(super) fn has_listener(&self, host: &str) -> bool {
        self.https.iter().any(|listener| listener.host == host)
    }

    /// Notes that the Gateway has policies.
    pub(super) fn note_policy(&mut self) {
        self.is_needed = true;
    }

    pub(super) fn listen_https(&mut self, listener: HttpsListener) {
        self.is_needed = true;
        self.https.push(listener);
    }

    /// Adds a listener for TCP or UDP. Returns its name.
    pub(super) fn listen(&mut self, place: &Place, protocol: &str, port: u16) -> String {
        self.is_needed = true;
        let name = format!("{}-{port}", protocol.to_ascii_lowercase());
        let is_known = self.layer4.iter().any(|(_, known)| known.get("name") == Some(&json!(name)));
        if !is_known {
            let listener = json!({ "name": name, "port": port, "protocol": protocol });
            self.layer4.push((place.clone(), listener));
        }
        name
    }
}

/// Writes the Gateway, or adds its listeners.
pub(super) fn finish(conversion: &mut Conversion) {
    let namespace = conversion.parent.name.namespace.to_string();
    let listeners = listeners(conversion);
    let telemetry = std::mem::take(&mut conversion.telemetry);
    if !conversion.parent.is_needed && listeners.is_empty() && telemetry.is_empty() {
        return;
    }
    let Parent { name, origin, .. } = &conversion.parent;
    let (name, origin) = (name.clone(), *origin);
    let key = ObjectKey { kind: Kind::Gateway, name: name.clone() };
    match origin {
        Origin::Cluster => {
            for (place, _) in &listeners {
                conversion.report.impossible(
                    place,
                    Reason::MissingReferent,
                    format!("Gateway {name} is not among the input. Give it, too, and it gets the listener."),
                );
            }
        }
        Origin::Input => {
            let gateway = conversion.output.get_mut(&key);
            let list = gateway.and_then(|gateway| gateway.pointer_mut("/spec/listeners"));
            if let Some(Value::Array(list)) = list {
                let is_known = |listener: &Value, list: &[Value]| {
                    list.iter().any(|one| {
                        one.get("port") == listener.get("port")
                            && one.get("hostname") == listener.get("hostname")
                    })
                };
                for (_, listener) in listeners {
                    if !is_known(&listener, list) {
                        list.push(listener);
                    }
                }
            }
        }
        Origin::Written => {
            let http = json!({ "name": "http", "port": conversion.parent.http_port, "protocol": "HTTP" });
            let mut all = vec![with_routes(http, conversion)];
            all.extend(listeners.into_iter().map(|(_, listener)| listener));
            let class = &conversion.choices.gateway_class;
            let spec = json!({ "gatewayClassName": class, "listeners": all });
            conversion.output.add(Kind::Gateway, &namespace, &name.name, ("spec", spec));
        }
    }
    add_telemetry(&key, &telemetry, conversion);
}

/// The listeners that are missing, with the fields that ask for them.
fn listeners(conversion: &mut Conversion) -> Vec<(Place, Value)> {
    let https = std::mem::take(&mut conversion.parent.https);
    let layer4 = std::mem::take(&mut conversion.parent.layer4);
    let mut listeners: Vec<(Place, Value)> = Vec::new();
    for (index, HttpsListener { place, host, certificate }) in https.into_iter().enumerate() {
        let listener = json!({
            "name": format!("https-{}", index + 1), "port": conversion.parent.https_port, "protocol": "HTTPS",
            "hostname": host, "tls": { "certificateRefs": [certificate] },
        });
        listeners.push((place, with_routes(listener, conversion)));
    }
    for (place, listener) in layer4 {
        listeners.push((place, with_routes(listener, conversion)));
    }
    // One of them is for HTTP.
    if listeners.len() > LISTENERS - 1 {
        for (place, _) in listeners.drain(LISTENERS - 1..) {
            let message =
                format!("A Gateway has at most {LISTENERS} listeners. Add the host in a ListenerSet.");
            conversion.report.impossible(&place, Reason::TooMany, message);
        }
    }
    listeners
}

/// A listener that admits the routes of all namespaces, if that is necessary.
fn with_routes(mut listener: Value, conversion: &Conversion) -> Value {
    let own = &*conversion.parent.name.namespace;
    if conversion.parent.namespaces.iter().any(|namespace| namespace != own) {
        listener["allowedRoutes"] = json!({ "namespaces": { "from": "All" } });
    }
    listener
}

/// Whether the class of a Gateway has managed data planes. `None` if the output does not have the class.
fn runs_data_planes(gateway: &ObjectKey, conversion: &mut Conversion) -> Option<bool> {
    let output = &mut conversion.output;
    let class = output.get_mut(gateway)?.pointer("/spec/gatewayClassName")?.as_str()?.to_owned();
    let class = output.get_mut(&ObjectKey::new(Kind::GatewayClass, "", class))?;
    let Some(reference) = class.pointer("/spec/parametersRef") else { return Some(false) };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let proxy = ObjectKey::new(Kind::PingsixProxy, text("namespace"), text("name"));
    Some(output.get_mut(&proxy)?.pointer("/spec/managed").is_some())
}

/// Gives the Gateway parameters with telemetry.
fn add_telemetry(key: &ObjectKey, telemetry: &Map<String, Value>, conversion: &mut Conversion) {
    if telemetry.is_empty() {
        return;
    }
    let place = Place::object(key.to_string());
    let is_free = conversion
        .output
        .get_mut(key)
        .is_some_and(|gateway| gateway.pointer("/spec/infrastructure/parametersRef").is_none());
    if !is_free {
        conversion.report.impossible(
            &place,
            Reason::ManualStep,
            "The Gateway has parameters or is not among the output. Set telemetry in its PingsixProxy.",
        );
        return;
    }
    let managed = runs_data_planes(key, conversion);
    if managed.is_none() {
        conversion.report.limited(
            &place,
            Reason::MissingReferent,
            "The GatewayClass is not among the input. If it has managed data planes, replace attached by managed in the \
             PingsixProxy.",
        );
    }
    let way = if managed == Some(true) { "managed" } else { "attached" };
    let spec = json!({ way: {}, "telemetry": telemetry });
    let name = &key.name;
    let proxy = conversion.output.add(Kind::PingsixProxy, &name.namespace, &name.name, ("spec", spec));
    if let Some(Value::Object(spec)) =
        conversion.output.get_mut(key).and_then(|gateway| gateway.get_mut("spec"))
    {
        let infrastructure = spec.entry("infrastructure").or_insert_with(|| json!({}));
        if let Value::Object(infrastructure) = infrastructure {
            let reference =
                json!({ "group": PINGSIX_GROUP, "kind": Kind::PingsixProxy.as_str(), "name": proxy });
            infrastructure.insert("parametersRef".to_owned(), reference);
        }
    }
}
