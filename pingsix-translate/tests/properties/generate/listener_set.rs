//! ListenerSets: whether the Gateway allows them, what they have in common with it and with one another, and the routes
//! that attach to them.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::{NAMESPACES, Taste, gateway, one_in, pick, route};

const NAMES: [&str; 3] = ["s0", "s1", "s2"];

/// Adds ListenerSets to a table, and lets parentRefs of its routes name them.
pub(crate) fn add(rng: &mut SmallRng, taste: Taste, objects: &mut Vec<Value>) {
    let mut written: Vec<Value> = Vec::new();
    for object in objects.iter_mut().filter(|object| object["kind"] == "Gateway") {
        written.extend(object["spec"]["listeners"].as_array().unwrap().iter().cloned());
        // Without the field, none is allowed.
        if !one_in(rng, 12) {
            object["spec"]["allowedListeners"] = allowed(rng);
        }
    }
    let mut sets: Vec<Value> = Vec::new();
    for name in &NAMES[..rng.random_range(1..=NAMES.len())] {
        let set = listener_set(rng, taste, name, &written);
        written.extend(set["spec"]["listeners"].as_array().unwrap().iter().cloned());
        sets.push(set);
    }
    for object in objects.iter_mut() {
        if let Some(parents) = object["spec"].get_mut("parentRefs").and_then(Value::as_array_mut) {
            attach(rng, parents, &sets);
        }
    }
    objects.extend(gateway::certificates("app"));
    objects.extend(grant(rng));
    objects.extend(sets);
}

fn allowed(rng: &mut SmallRng) -> Value {
    match rng.random_range(0..12) {
        0 => json!({}),
        1 => json!({ "namespaces": { "from": "None" } }),
        2 => json!({ "namespaces": { "from": "Same" } }),
        3 | 4 => {
            let selector = json!({ "matchLabels": { "team": "shop" } });
            json!({ "namespaces": { "from": "Selector", "selector": selector } })
        }
        _ => json!({ "namespaces": { "from": "All" } }),
    }
}

/// A ListenerSet, usually of the Gateway; some of its listeners are like ones that are written already.
fn listener_set(rng: &mut SmallRng, taste: Taste, name: &str, written: &[Value]) -> Value {
    let namespace = pick(rng, &NAMESPACES);
    let count = rng.random_range(1..=3);
    let mut listeners: Vec<Value> = (0..count).map(|index| listener(rng, taste, index)).collect();
    for listener in &mut listeners {
        if let Some(model) = written.choose(rng).filter(|_| one_in(rng, 4)) {
            let own_name = listener["name"].take();
            listener.clone_from(model);
            listener["name"] = own_name;
        }
    }
    let mut parent = json!({ "name": if one_in(rng, 12) { "private" } else { "public" } });
    if namespace != "infra" || one_in(rng, 2) {
        // Without a namespace it is the ListenerSet's own, where there is no such Gateway.
        if !one_in(rng, 16) {
            parent["namespace"] = json!("infra");
        }
    }
    let mut metadata = json!({ "namespace": namespace, "name": name, "generation": rng.random_range(1..9) });
    if !one_in(rng, 6) {
        metadata["creationTimestamp"] = json!(pick(rng, &route::AGES));
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ListenerSet",
        "metadata": metadata,
        "spec": { "parentRef": parent, "listeners": listeners },
    })
}

/// A listener that may want a port for itself, or a certificate of another namespace.
fn listener(rng: &mut SmallRng, taste: Taste, index: usize) -> Value {
    let mut listener = gateway::listener(rng, taste, index);
    if one_in(rng, 12) {
        let port = listener["port"].clone();
        return json!({ "name": listener["name"], "port": port, "protocol": "TCP" });
    }
    for reference in
        listener.pointer_mut("/tls/certificateRefs").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if one_in(rng, 2) {
            reference["namespace"] = json!("infra");
        }
    }
    listener
}

/// Lets parentRefs to the Gateway name a ListenerSet instead, or one as well.
fn attach(rng: &mut SmallRng, parents: &mut Vec<Value>, sets: &[Value]) {
    for index in 0..parents.len() {
        if parents[index]["name"] != "public" || one_in(rng, 3) {
            continue;
        }
        let set = &sets.choose(rng).unwrap()["metadata"];
        let mut parent = parents[index].clone();
        parent["kind"] = json!("ListenerSet");
        parent["name"] = set["name"].clone();
        parent["namespace"] = set["namespace"].clone();
        if one_in(rng, 3) {
            parents.push(parent);
        } else {
            parents[index] = parent;
        }
    }
}

/// Lets listeners of one namespace have certificates of the Gateway's, if their kind is right.
fn grant(rng: &mut SmallRng) -> Option<Value> {
    let kind = if one_in(rng, 4) { "Gateway" } else { "ListenerSet" };
    let mut to = json!({ "group": "", "kind": "Secret" });
    if one_in(rng, 2) {
        to["name"] = json!("certificate");
    }
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1",
        "kind": "ReferenceGrant",
        "metadata": { "namespace": "infra", "name": "certificates" },
        "spec": {
            "from": [{ "group": "gateway.networking.k8s.io", "kind": kind, "namespace": pick(rng, &NAMESPACES) }],
            "to": [to],
        },
    });
    (!one_in(rng, 3)).then_some(grant)
}
