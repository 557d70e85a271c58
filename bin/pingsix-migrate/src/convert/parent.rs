//! The Gateway of the routes while they are written: which one it is, and the listeners that they need.

use std::collections::BTreeSet;

use pingsix_translate::{Kind, ObjectKey, ObjectName};
use serde_json::{Value, json};

use super::covering::covering;
use crate::choices::Choices;
use crate::report::Place;
use crate::source::{Predecessors, SourceKind, Sources};

/// The name of a Gateway that is written.
const NAME: &str = "pingsix";

/// The kinds whose objects decide about the namespace of the Gateway.
const KINDS: [SourceKind; 2] = [SourceKind::ApisixRoute, SourceKind::ApisixTls];

/// The listeners of an HTTPRoute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    All,
    Http,
    Https,
    /// The one for plaintext beside those whose TLS passes through.
    Plaintext,
}

/// A listener for HTTPS.
pub(super) struct HttpsListener {
    pub(super) place: Place,
    /// Empty for all hosts.
    pub(super) host: String,
    pub(super) certificate: ObjectName,
}

/// Where the Gateway comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
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
    pub(super) origin: Origin,
    pub(super) is_needed: bool,
    pub(super) namespaces: BTreeSet<String>,
    /// The routes that are written.
    pub(super) routes: Vec<ObjectKey>,
    pub(super) https: Vec<HttpsListener>,
    /// The hosts with a listener for HTTPS, as far as that is known; an empty one stands for all hosts.
    https_hosts: BTreeSet<String>,
    /// The certificate of a listener for all hosts.
    pub(super) default_certificate: Option<ObjectName>,
    /// Listeners for TCP and UDP, with the field that asks for them.
    pub(super) layer4: Vec<(Place, Value)>,
    /// The names of the listeners for TCP and UDP.
    layer4_names: BTreeSet<String>,
    /// The name of a Gateway beside this one.
    beside: ObjectName,
    /// The Gateway of hosts whose TLS passes through, and its listeners for them.
    pub(super) passthrough: Option<(ObjectName, Vec<(Place, Value)>)>,
    pub(super) http_port: u16,
    pub(super) https_port: u16,
}

impl Parent {
    /// The Gateway that the user names, or a new one beside the objects of the input: `of_ingresses` are the namespaces of the
    /// Ingresses that are converted.
    pub(super) fn choose(
        predecessors: &Predecessors,
        of_ingresses: impl Iterator<Item = String>,
        sources: &Sources,
        choices: &Choices,
    ) -> Self {
        let name = choices.gateway.clone().unwrap_or_else(|| {
            let mut namespaces = predecessors.namespaces(&KINDS);
            namespaces.extend(of_ingresses);
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
        let listeners = || {
            let listeners = kept.and_then(|gateway| gateway.pointer("/spec/listeners")?.as_array());
            listeners.into_iter().flatten()
        };
        let has = |one: &Value, protocol: &str| one.get("protocol").and_then(Value::as_str) == Some(protocol);
        let port = |protocol: &str, default: u16| {
            let found = listeners().find(|one| has(one, protocol));
            let port = found.and_then(|listener| listener.get("port")?.as_u64());
            port.and_then(|port| u16::try_from(port).ok()).unwrap_or(default)
        };
        let mut https_hosts: BTreeSet<String> =
            listeners().filter(|one| has(one, "HTTPS")).map(hostname).collect();
        https_hosts.extend(choices.default_certificate.iter().map(|_| String::new()));
        let is_free = |name: &ObjectName| {
            !sources.kept.contains_key(&ObjectKey { kind: Kind::Gateway, name: name.clone() })
        };
        let mut beside = ObjectName::new(&*name.namespace, format!("{}-passthrough", name.name));
        while !is_free(&beside) {
            beside = ObjectName::new(&*name.namespace, format!("{}-next", beside.name));
        }
        Self {
            name,
            origin,
            beside,
            is_needed: predecessors.has(SourceKind::ApisixRoute),
            namespaces: BTreeSet::new(),
            routes: Vec::new(),
            https: Vec::new(),
            https_hosts,
            default_certificate: choices.default_certificate.clone().filter(|_| !choices.keep_ingress),
            layer4: Vec::new(),
            layer4_names: BTreeSet::new(),
            passthrough: None,
            http_port: port("HTTP", 80),
            https_port: port("HTTPS", 443),
        }
    }

    /// An item of `parentRefs`.
    pub(super) fn reference(&self, namespace: &str, section: Section) -> Value {
        let name = match (section, &self.passthrough) {
            (Section::Plaintext, Some((name, _))) => name,
            (Section::All | Section::Http | Section::Https | Section::Plaintext, _) => &self.name,
        };
        let mut reference = json!({ "name": &*name.name });
        if namespace != &*name.namespace {
            reference["namespace"] = json!(&*name.namespace);
        }
        match section {
            Section::All => {}
            Section::Http | Section::Plaintext => reference["port"] = json!(self.http_port),
            Section::Https => reference["port"] = json!(self.https_port),
        }
        reference
    }

    /// Notes that there is a route.
    pub(super) fn note_route(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.is_needed = true;
        self.namespaces.insert(namespace.to_owned());
        self.routes.push(ObjectKey::new(kind, namespace, name));
    }

    /// Whether all of the hosts, or all hosts if there is none, have listeners for HTTPS, as far as that is known.
    pub(super) fn serves_https(&self, hosts: &[String]) -> bool {
        if hosts.is_empty() {
            return self.https_hosts.contains("");
        }
        let is_served = |host: &String| covering(host).any(|covering| self.https_hosts.contains(&*covering));
        self.origin == Origin::Cluster || hosts.iter().all(is_served)
    }

    /// Whether all listeners of the Gateway are known.
    pub(super) fn is_known(&self) -> bool {
        self.origin != Origin::Cluster
    }

    /// Whether the Gateway gets a listener for HTTPS of the host.
    pub(super) fn has_listener(&self, host: &str) -> bool {
        self.https_hosts.contains(host)
    }

    /// Notes that the Gateway has policies.
    pub(super) fn note_policy(&mut self) {
        self.is_needed = true;
    }

    /// Adds a listener for HTTPS; an empty host means all hosts.
    pub(super) fn listen_https(&mut self, place: Place, host: String, certificate: ObjectName) {
        self.is_needed = true;
        self.https_hosts.insert(host.clone());
        self.https.push(HttpsListener { place, host, certificate });
    }

    /// Adds a listener for TCP or UDP. Returns its name.
    pub(super) fn listen(&mut self, place: &Place, protocol: &str, port: u16) -> String {
        self.is_needed = true;
        let name = format!("{}-{port}", protocol.to_ascii_lowercase());
        if self.layer4_names.insert(name.clone()) {
            let listener = json!({ "name": name, "port": port, "protocol": protocol });
            self.layer4.push((place.clone(), listener));
        }
        name
    }

    /// Adds a listener for a host whose TLS passes through. Call this after the listeners for HTTPS are known: one program
    /// serves a port, so the host has a Gateway of its own beside them. Returns the name of the listener.
    pub(super) fn pass_through(&mut self, place: &Place, host: &str) -> String {
        let is_alone = self.https_hosts.is_empty() && self.is_known();
        let gateway = if is_alone { &self.name } else { &self.beside };
        let (_, listeners) = self.passthrough.get_or_insert_with(|| (gateway.clone(), Vec::new()));
        let name = format!("tls-{}", listeners.len() + 1);
        let listener = json!({
            "name": name, "port": self.https_port, "protocol": "TLS", "hostname": host,
            "tls": { "mode": "Passthrough" },
        });
        listeners.push((place.clone(), listener));
        name
    }

    /// The Gateway of hosts whose TLS passes through, if another one has the listeners for HTTPS.
    pub(super) fn beside(&self) -> Option<&ObjectName> {
        self.passthrough.as_ref().map(|(name, _)| name).filter(|name| **name != self.name)
    }
}

/// The hostname of a listener; empty for all hosts.
pub(super) fn hostname(listener: &Value) -> String {
    listener.get("hostname").and_then(Value::as_str).unwrap_or_default().to_owned()
}
