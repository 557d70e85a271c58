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

use super::Draft;
use super::covering::covering;
use super::parent::{HttpsListener, Origin, Parent, hostname};
use crate::objects::Objects;
use crate::report::{Place, Reason};
use crate::words::counted;

/// The most listeners of a Gateway, and of a ListenerSet.
const MAX_LISTENERS: usize = 64;

/// The most parents of a route.
const MAX_PARENTS: usize = 32;

/// A listener that is written, with the field that asks for it, and its certificate.
struct Listener {
    place: Place,
    value: Value,
    certificate: Option<ObjectName>,
}

/// The name of a listener.
fn name_of(listener: &Value) -> &str {
    listener.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Writes the Gateway, or adds its listeners.
pub(super) fn finish(draft: &mut Draft<'_>) {
    let (listeners, beside) = listeners(&mut draft.output.gateway);
    let telemetry = std::mem::take(&mut draft.output.telemetry);
    if let Some((name, listeners)) = beside {
        write(&name, Origin::Written, listeners, draft);
    }
    let Parent { name, origin, .. } = &draft.output.gateway;
    let (name, origin) = (name.clone(), *origin);
    if draft.output.gateway.is_needed || !listeners.is_empty() || !telemetry.is_empty() {
        write(&name, origin, listeners, draft);
        add_telemetry(&ObjectKey { kind: Kind::Gateway, name }, &telemetry, draft);
    }
}

/// Writes a Gateway, or adds listeners to one of the input. Listeners for which it has no room go to ListenerSets.
fn write(name: &ObjectName, origin: Origin, listeners: Vec<Listener>, draft: &mut Draft<'_>) {
    let context = draft.context;
    let key = ObjectKey { kind: Kind::Gateway, name: name.clone() };
    let http = json!({ "name": "http", "port": draft.output.gateway.http_port, "protocol": "HTTP" });
    let http = with_routes(http, &draft.output.gateway);
    let known = match origin {
        Origin::Cluster => {
            for Listener { place, .. } in &listeners {
                let message =
                    format!("Gateway {name} is not among the input. Give it, too, and it gets the listener.");
                draft.report.impossible(place, Reason::MissingReferent, message);
            }
            return;
        }
        Origin::Input => {
            draft.output.objects.get_mut(&key).and_then(listeners_of).cloned().unwrap_or_default()
        }
        Origin::Written => vec![http],
    };
    let identity = |one: &Value| (one.get("port").and_then(Value::as_u64), hostname(one));
    let taken: BTreeSet<(Option<u64>, String)> = known.iter().map(identity).collect();
    let is_new = |one: &Listener| origin == Origin::Written || !taken.contains(&identity(&one.value));
    let mut listeners: Vec<Listener> = listeners.into_iter().filter(is_new).collect();
    for Listener { place, value, .. } in &listeners {
        draft.output.objects.origins.note_listener(&key, name_of(value), place);
    }
    let further = listeners.split_off(listeners.len().min(MAX_LISTENERS.saturating_sub(known.len())));
    for Listener { certificate, .. } in &listeners {
        if let Some(secret) = certificate {
            draft.output.objects.grant((Kind::Gateway, &name.namespace), Kind::Secret, secret);
        }
    }
    let mut all = known;
    all.extend(listeners.into_iter().map(|listener| listener.value));
    if origin == Origin::Written {
        let class = &context.choices.gateway_class;
        let spec = json!({ "gatewayClassName": class, "listeners": all });
        draft.output.objects.add(Kind::Gateway, &name.namespace, &name.name, spec);
    } else if let Some(list) = draft.output.objects.get_mut(&key).and_then(listeners_of) {
        list.clone_from(&all);
    }
    if !further.is_empty() {
        write_sets(&key, &all, further, draft);
    }
}

fn listeners_of(gateway: &mut Value) -> Option<&mut Vec<Value>> {
    gateway.pointer_mut("/spec/listeners").and_then(Value::as_array_mut)
}

/// Writes ListenerSets, and makes them parents of the routes that need their listeners.
fn write_sets(gateway: &ObjectKey, own: &[Value], further: Vec<Listener>, draft: &mut Draft<'_>) {
    let (namespace, name) = (&*gateway.name.namespace, &*gateway.name.name);
    if let Some(spec) = draft.output.objects.get_mut(gateway).and_then(|gateway| gateway.get_mut("spec")) {
        let admits = spec.pointer("/allowedListeners/namespaces/from").and_then(Value::as_str);
        if !matches!(admits, Some("Same" | "All")) {
            spec["allowedListeners"] = json!({ "namespaces": { "from": "Same" } });
        }
    }
    let mut holders = Holders::default();
    holders.add(None, own);
    let mut further = further.into_iter().peekable();
    while further.peek().is_some() {
        let chunk: Vec<Listener> = further.by_ref().take(MAX_LISTENERS).collect();
        for Listener { certificate, .. } in &chunk {
            if let Some(secret) = certificate {
                draft.output.objects.grant((Kind::ListenerSet, namespace), Kind::Secret, secret);
            }
        }
        let values: Vec<&Value> = chunk.iter().map(|listener| &listener.value).collect();
        let spec = json!({ "parentRef": { "name": name }, "listeners": values });
        let wanted = format!("{name}-more");
        let set = draft.output.objects.add(Kind::ListenerSet, namespace, &wanted, spec);
        let key = ObjectKey::new(Kind::ListenerSet, namespace, set.as_str());
        for Listener { place, value, .. } in &chunk {
            draft.output.objects.origins.note_listener(&key, name_of(value), place);
            let message = format!(
                "A Gateway has at most {MAX_LISTENERS} listeners, so ListenerSet {set} has this one."
            );
            draft.report.exact(place, message);
        }
        let values: Vec<Value> = chunk.into_iter().map(|listener| listener.value).collect();
        holders.add(Some(set), &values);
    }
    for route in draft.output.gateway.routes.clone() {
        let Some(spec) = draft.output.objects.get_mut(&route).and_then(|route| route.get_mut("spec")) else {
            continue;
        };
        let Some(left_out) = holders.attach(&gateway.name, &route, spec) else { continue };
        let message = format!(
            "A route has at most {MAX_PARENTS} parents, so it lacks the listeners of {}.",
            counted(left_out, "ListenerSet")
        );
        draft.report.impossible(&Place::object(route.to_string()), Reason::TooMany, message);
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
        let left_out = all.len().saturating_sub(MAX_PARENTS);
        all.truncate(MAX_PARENTS);
        *references = all;
        (left_out > 0).then_some(left_out)
    }
}

/// The listeners that are missing, and the Gateway of hosts whose TLS passes through, if that is another one.
fn listeners(gateway: &mut Parent) -> (Vec<Listener>, Option<(ObjectName, Vec<Listener>)>) {
    let https = std::mem::take(&mut gateway.https);
    let layer4 = std::mem::take(&mut gateway.layer4);
    let passthrough = gateway.passthrough.take();
    let default_certificate = gateway.default_certificate.take().filter(|_| gateway.is_needed);
    let own = gateway.name.clone();
    let port = gateway.https_port;
    let https_listener = |name: String, place: Place, host: &str, certificate: ObjectName| {
        let mut reference = json!({ "name": &*certificate.name });
        if certificate.namespace != own.namespace {
            reference["namespace"] = json!(&*certificate.namespace);
        }
        let tls = json!({ "certificateRefs": [reference] });
        let mut value = json!({ "name": name, "port": port, "protocol": "HTTPS", "tls": tls });
        if !host.is_empty() {
            value["hostname"] = json!(host);
        }
        Listener { place, value: with_routes(value, gateway), certificate: Some(certificate) }
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
        let value = with_routes(value, gateway);
        Listener { place, value, certificate: None }
    };
    listeners.extend(layer4.into_iter().map(without_certificate));
    let passthrough = passthrough
        .map(|(name, listeners)| (name, listeners.into_iter().map(without_certificate).collect::<Vec<_>>()));
    match passthrough {
        Some((name, further)) if name == own => {
            listeners.extend(further);
            (listeners, None)
        }
        other => (listeners, other),
    }
}

/// A listener that admits the routes of all namespaces, if that is necessary.
fn with_routes(mut listener: Value, gateway: &Parent) -> Value {
    let own = &*gateway.name.namespace;
    if gateway.namespaces.iter().any(|namespace| namespace != own) {
        listener["allowedRoutes"] = json!({ "namespaces": { "from": "All" } });
    }
    listener
}

/// Whether the class of a Gateway has managed data planes. `None` if the output does not have the class.
fn runs_data_planes(gateway: &ObjectKey, objects: &mut Objects) -> Option<bool> {
    let class = objects.get_mut(gateway)?.pointer("/spec/gatewayClassName")?.as_str()?.to_owned();
    let class = objects.get_mut(&ObjectKey::new(Kind::GatewayClass, "", class))?;
    let Some(reference) = class.pointer("/spec/parametersRef") else { return Some(false) };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let proxy = ObjectKey::new(Kind::PingsixProxy, text("namespace"), text("name"));
    Some(objects.get_mut(&proxy)?.pointer("/spec/managed").is_some())
}

/// Gives the Gateway parameters with telemetry.
fn add_telemetry(key: &ObjectKey, telemetry: &Map<String, Value>, draft: &mut Draft<'_>) {
    if telemetry.is_empty() {
        return;
    }
    let place = Place::object(key.to_string());
    let is_free = draft
        .output
        .objects
        .get_mut(key)
        .is_some_and(|gateway| gateway.pointer("/spec/infrastructure/parametersRef").is_none());
    if !is_free {
        let message =
            "The Gateway has parameters or is not among the output. Set telemetry in its PingsixProxy.";
        return draft.report.impossible(&place, Reason::ManualStep, message);
    }
    let managed = runs_data_planes(key, &mut draft.output.objects);
    if managed.is_none() {
        let message = "The GatewayClass is not among the input. If it has managed data planes, replace attached by managed in the \
             PingsixProxy.";
        draft.report.limited(&place, Reason::MissingReferent, message);
    }
    let way = if managed == Some(true) { "managed" } else { "attached" };
    let spec = json!({ way: {}, "telemetry": telemetry });
    let name = &key.name;
    let proxy = draft.output.objects.add(Kind::PingsixProxy, &name.namespace, &name.name, spec);
    if let Some(Value::Object(spec)) =
        draft.output.objects.get_mut(key).and_then(|gateway| gateway.get_mut("spec"))
    {
        let infrastructure = spec.entry("infrastructure").or_insert_with(|| json!({}));
        if let Value::Object(infrastructure) = infrastructure {
            let reference =
                json!({ "group": PINGSIX_GROUP, "kind": Kind::PingsixProxy.as_str(), "name": proxy });
            infrastructure.insert("parametersRef".to_owned(), reference);
        }
    }
}
