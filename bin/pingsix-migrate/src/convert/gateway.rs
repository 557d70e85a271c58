//! The Gateway of the routes: one of the input or of the cluster, or one that is written.
//!
//! ```text
//! certificates, ports, hosts whose TLS passes through ──► Parent ──► finish ──► Gateway, its ListenerSets, parentRefs of routes
//! ```
//!
//! Routes are written with the Gateway as their parent. In the end, listeners beyond those of a Gateway go to ListenerSets, and
//! routes for their hosts get these as parents.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::{Kind, ObjectKey, ObjectName, PINGSIX_GROUP};
use serde_json::{Map, Value, json};

use super::covering::covering;
use super::rules::Section;
use super::{Choices, Conversion, ingress};
use crate::report::{Place, Reason};
use crate::source::{SourceKind, Sources};
use crate::words::counted;

/// The most listeners of a Gateway, and of a ListenerSet.
const LISTENERS: usize = 64;

/// The most parents of a route.
const PARENTS: usize = 32;

/// The name of a Gateway that is written.
const NAME: &str = "pingsix";

/// The kinds whose objects decide about the namespace of the Gateway.
const KINDS: [SourceKind; 2] = [SourceKind::ApisixRoute, SourceKind::ApisixTls];

/// A listener for HTTPS.
struct HttpsListener {
    place: Place,
    /// Empty for all hosts.
    host: String,
    certificate: ObjectName,
}

/// A listener that is written, with the field that asks for it, and its certificate.
struct Listener {
    place: Place,
    value: Value,
    certificate: Option<ObjectName>,
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
    /// The routes that are written.
    routes: Vec<ObjectKey>,
    https: Vec<HttpsListener>,
    /// The hosts with a listener for HTTPS, as far as that is known; an empty one stands for all hosts.
    https_hosts: BTreeSet<String>,
    /// The certificate of a listener for all hosts.
    default_certificate: Option<ObjectName>,
    /// Listeners for TCP and UDP, with the field that asks for them.
    layer4: Vec<(Place, Value)>,
    /// The names of the listeners for TCP and UDP.
    layer4_names: BTreeSet<String>,
    /// The name of a Gateway beside this one.
    beside: ObjectName,
    /// The Gateway of hosts whose TLS passes through, and its listeners for them.
    passthrough: Option<(ObjectName, Vec<(Place, Value)>)>,
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
            is_needed: sources.has(SourceKind::ApisixRoute),
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

/// The name of a listener.
fn name_of(listener: &Value) -> &str {
    listener.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The hostname of a listener; empty for all hosts.
fn hostname(listener: &Value) -> String {
    listener.get("hostname").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Writes the Gateway, or adds its listeners.
pub(super) fn finish(conversion: &mut Conversion) {
    let (listeners, beside) = listeners(conversion);
    let telemetry = std::mem::take(&mut conversion.telemetry);
    if let Some((name, listeners)) = beside {
        write(&name, Origin::Written, listeners, conversion);
    }
    let Parent { name, origin, .. } = &conversion.parent;
    let (name, origin) = (name.clone(), *origin);
    if conversion.parent.is_needed || !listeners.is_empty() || !telemetry.is_empty() {
        write(&name, origin, listeners, conversion);
        add_telemetry(&ObjectKey { kind: Kind::Gateway, name }, &telemetry, conversion);
    }
}

/// Writes a Gateway, or adds listeners to one of the input. Listeners for which it has no room go to ListenerSets.
fn write(name: &ObjectName, origin: Origin, listeners: Vec<Listener>, conversion: &mut Conversion) {
    let key = ObjectKey { kind: Kind::Gateway, name: name.clone() };
    let http = json!({ "name": "http", "port": conversion.parent.http_port, "protocol": "HTTP" });
    let http = with_routes(http, conversion);
    let known = match origin {
        Origin::Cluster => {
            for Listener { place, .. } in &listeners {
                let message =
                    format!("Gateway {name} is not among the input. Give it, too, and it gets the listener.");
                conversion.report.impossible(place, Reason::MissingReferent, message);
            }
            return;
        }
        Origin::Input => conversion.output.get_mut(&key).and_then(listeners_of).cloned().unwrap_or_default(),
        Origin::Written => vec![http],
    };
    let identity = |one: &Value| (one.get("port").and_then(Value::as_u64), hostname(one));
    let taken: BTreeSet<(Option<u64>, String)> = known.iter().map(identity).collect();
    let is_new = |one: &Listener| origin == Origin::Written || !taken.contains(&identity(&one.value));
    let mut listeners: Vec<Listener> = listeners.into_iter().filter(is_new).collect();
    for Listener { place, value, .. } in &listeners {
        conversion.output.origins.note_listener(&key, name_of(value), place);
    }
    let further = listeners.split_off(listeners.len().min(LISTENERS.saturating_sub(known.len())));
    for Listener { certificate, .. } in &listeners {
        if let Some(secret) = certificate {
            conversion.output.grant((Kind::Gateway, &name.namespace), Kind::Secret, secret);
        }
    }
    let mut all = known;
    all.extend(listeners.into_iter().map(|listener| listener.value));
    if origin == Origin::Written {
        let class = &conversion.choices.gateway_class;
        let spec = json!({ "gatewayClassName": class, "listeners": all });
        conversion.output.add(Kind::Gateway, &name.namespace, &name.name, ("spec", spec));
    } else if let Some(list) = conversion.output.get_mut(&key).and_then(listeners_of) {
        list.clone_from(&all);
    }
    if !further.is_empty() {
        write_sets(&key, &all, further, conversion);
    }
}

fn listeners_of(gateway: &mut Value) -> Option<&mut Vec<Value>> {
    gateway.pointer_mut("/spec/listeners").and_then(Value::as_array_mut)
}

/// Writes ListenerSets, and makes them parents of the routes that need their listeners.
fn write_sets(gateway: &ObjectKey, own: &[Value], further: Vec<Listener>, conversion: &mut Conversion) {
    let (namespace, name) = (&*gateway.name.namespace, &*gateway.name.name);
    if let Some(spec) = conversion.output.get_mut(gateway).and_then(|gateway| gateway.get_mut("spec")) {
        let admits = spec.pointer("/allowedListeners/namespaces/from").and_then(Value::as_str);
        if !matches!(admits, Some("Same" | "All")) {
            spec["allowedListeners"] = json!({ "namespaces": { "from": "Same" } });
        }
    }
    let mut holders = Holders::default();
    holders.add(None, own);
    let mut further = further.into_iter().peekable();
    while further.peek().is_some() {
        let chunk: Vec<Listener> = further.by_ref().take(LISTENERS).collect();
        for Listener { certificate, .. } in &chunk {
            if let Some(secret) = certificate {
                conversion.output.grant((Kind::ListenerSet, namespace), Kind::Secret, secret);
            }
        }
        let values: Vec<&Value> = chunk.iter().map(|listener| &listener.value).collect();
        let spec = json!({ "parentRef": { "name": name }, "listeners": values });
        let wanted = format!("{name}-more");
        let set = conversion.output.add(Kind::ListenerSet, namespace, &wanted, ("spec", spec));
        let key = ObjectKey::new(Kind::ListenerSet, namespace, set.as_str());
        for Listener { place, value, .. } in &chunk {
            conversion.output.origins.note_listener(&key, name_of(value), place);
            let message =
                format!("A Gateway has at most {LISTENERS} listeners, so ListenerSet {set} has this one.");
            conversion.report.exact(place, message);
        }
        let values: Vec<Value> = chunk.into_iter().map(|listener| listener.value).collect();
        holders.add(Some(set), &values);
    }
    for route in conversion.parent.routes.clone() {
        let Some(spec) = conversion.output.get_mut(&route).and_then(|route| route.get_mut("spec")) else {
            continue;
        };
        let Some(left_out) = holders.attach(&gateway.name, &route, spec) else { continue };
        let message = format!(
            "A route has at most {PARENTS} parents, so it lacks the listeners of {}.",
            counted(left_out, "ListenerSet")
        );
        conversion.report.impossible(&Place::object(route.to_string()), Reason::TooMany, message);
    }
}

/// The Gateway and its ListenerSets, by their listeners.
#[derive(Default)]
struct Holders {
    /// The names of ListenerSets; `None` is the Gateway.
    names: Vec<Option<String>>,
    /// By the name of a listener.
    by_section: BTreeMap<String, usize>,
    /// By the hostname of a listener, with its port.
    by_host: BTreeMap<String, BTreeSet<(usize, u64)>>,
    /// Likewise, by the hostnames that cover the one of a listener.
    below: BTreeMap<String, BTreeSet<(usize, u64)>>,
}

impl Holders {
    fn add(&mut self, name: Option<String>, listeners: &[Value]) {
        let index = self.names.len();
        self.names.push(name);
        for listener in listeners {
            let section = listener.get("name").and_then(Value::as_str).unwrap_or_default();
            self.by_section.insert(section.to_owned(), index);
            let port = listener.get("port").and_then(Value::as_u64).unwrap_or_default();
            let hostname = hostname(listener);
            for covering in covering(&hostname) {
                self.below.entry(covering.into_owned()).or_default().insert((index, port));
            }
            self.by_host.entry(hostname).or_default().insert((index, port));
        }
    }

    /// The holders of listeners for some of the hosts, or for any if there is no host.
    fn of_hosts(&self, hosts: &[&str], port: Option<u64>) -> BTreeSet<usize> {
        let mut found: BTreeSet<&(usize, u64)> = BTreeSet::new();
        for host in hosts {
            found.extend(covering(host).filter_map(|host| self.by_host.get(&*host)).flatten());
        }
        // Listeners below a wildcard, or below all hosts.
        let wide = hosts.iter().copied().filter(|host| host.starts_with('*'));
        let wide = wide.chain(hosts.is_empty().then_some(""));
        found.extend(wide.filter_map(|host| self.below.get(host)).flatten());
        let found = found.into_iter().filter(|(_, known)| port.is_none_or(|port| port == *known));
        found.map(|(index, _)| *index).collect()
    }

    /// Gives a route the parents with listeners for its hosts, in place of the Gateway. Returns the number of parents
    /// beyond those that a route may have.
    fn attach(&self, gateway: &ObjectName, route: &ObjectKey, spec: &mut Value) -> Option<usize> {
        let hosts: Vec<String> = spec
            .get("hostnames")
            .and_then(Value::as_array)
            .map(|hosts| hosts.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let references = spec.get_mut("parentRefs").and_then(Value::as_array_mut)?;
        let mut all = Vec::new();
        for reference in references.drain(..) {
            let text = |field: &str| reference.get(field).and_then(Value::as_str);
            let is_meant = text("name") == Some(&*gateway.name)
                && text("namespace").unwrap_or(&route.name.namespace) == &*gateway.namespace;
            if !is_meant {
                all.push(reference);
                continue;
            }
            let found: BTreeSet<usize> = match text("sectionName") {
                Some(section) => self.by_section.get(section).copied().into_iter().collect(),
                None => self.of_hosts(&hosts, reference.get("port").and_then(Value::as_u64)),
            };
            if found.is_empty() {
                all.push(reference);
                continue;
            }
            for holder in found {
                let mut reference = reference.clone();
                if let Some(Some(set)) = self.names.get(holder) {
                    reference["kind"] = json!(Kind::ListenerSet.as_str());
                    reference["name"] = json!(set);
                }
                all.push(reference);
            }
        }
        let left_out = all.len().saturating_sub(PARENTS);
        all.truncate(PARENTS);
        *references = all;
        (left_out > 0).then_some(left_out)
    }
}

/// The listeners that are missing, and the Gateway of hosts whose TLS passes through, if that is another one.
fn listeners(conversion: &mut Conversion) -> (Vec<Listener>, Option<(ObjectName, Vec<Listener>)>) {
    let https = std::mem::take(&mut conversion.parent.https);
    let layer4 = std::mem::take(&mut conversion.parent.layer4);
    let passthrough = conversion.parent.passthrough.take();
    let default_certificate =
        conversion.parent.default_certificate.take().filter(|_| conversion.parent.is_needed);
    let gateway = conversion.parent.name.clone();
    let port = conversion.parent.https_port;
    let https_listener = |name: String, place: Place, host: &str, certificate: ObjectName| {
        let mut reference = json!({ "name": &*certificate.name });
        if certificate.namespace != gateway.namespace {
            reference["namespace"] = json!(&*certificate.namespace);
        }
        let tls = json!({ "certificateRefs": [reference] });
        let mut value = json!({ "name": name, "port": port, "protocol": "HTTPS", "tls": tls });
        if !host.is_empty() {
            value["hostname"] = json!(host);
        }
        Listener { place, value: with_routes(value, conversion), certificate: Some(certificate) }
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for (index, HttpsListener { place, host, certificate }) in https.into_iter().enumerate() {
        listeners.push(https_listener(format!("https-{}", index + 1), place, &host, certificate));
    }
    if let Some(certificate) = default_certificate {
        let place = Place::object(format!("Secret {certificate}"));
        listeners.push(https_listener("https-default".to_owned(), place, "", certificate));
    }
    let without_certificate = |(place, value): (Place, Value)| {
        let value = with_routes(value, conversion);
        Listener { place, value, certificate: None }
    };
    listeners.extend(layer4.into_iter().map(without_certificate));
    let passthrough = passthrough
        .map(|(name, listeners)| (name, listeners.into_iter().map(without_certificate).collect::<Vec<_>>()));
    match passthrough {
        Some((name, of_own)) if name == gateway => {
            listeners.extend(of_own);
            (listeners, None)
        }
        other => (listeners, other),
    }
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
