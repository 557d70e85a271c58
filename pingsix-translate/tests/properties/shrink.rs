//! Makes a failing table smaller: drops whatever can be dropped while it keeps failing.

use serde_json::Value;

/// Drops objects, then elements of their lists, greedily and repeatedly.
pub(crate) fn shrink(mut objects: Vec<Value>, fails: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    loop {
        let before = size(&objects);
        let mut index = 0;
        while index < objects.len() {
            let mut smaller = objects.clone();
            let removed = smaller.remove(index);
            // A Namespace that is gone has no labels, except for the one that every Namespace has.
            let stays = ["Gateway", "IngressClass", "Namespace"].iter().any(|kind| removed["kind"] == *kind);
            if !stays && fails(&smaller) {
                objects = smaller;
            } else {
                index += 1;
            }
        }
        for index in 0..objects.len() {
            for pointer in removable(&objects[index], "") {
                let mut smaller = objects.clone();
                // Earlier removals may have taken the place away.
                if remove(&mut smaller[index], &pointer) && fails(&smaller) {
                    objects = smaller;
                }
            }
        }
        if size(&objects) == before {
            return objects;
        }
    }
}

fn size(objects: &[Value]) -> usize {
    objects.iter().map(|object| object.to_string().len()).sum()
}

/// Everything inside `spec` that is optional: list elements last first, so that their indexes stay right, and
/// optional members.
fn removable(value: &Value, at: &str) -> Vec<String> {
    let mut pointers = Vec::new();
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate().rev() {
                let pointer = format!("{at}/{index}");
                pointers.push(pointer.clone());
                pointers.extend(removable(element, &pointer));
            }
        }
        Value::Object(members) => {
            const REQUIRED: [&str; 8] =
                ["name", "listeners", "parentRefs", "rules", "kind", "apiVersion", "metadata", "spec"];
            for (name, member) in members {
                let pointer = format!("{at}/{name}");
                let is_optional = [
                    "host",
                    "http",
                    "tls",
                    "defaultBackend",
                    "hostname",
                    "hostnames",
                    "matches",
                    "headers",
                    "queryParams",
                    "method",
                    "appProtocol",
                    "path",
                    "backendRefs",
                    "filters",
                    "sectionName",
                    "port",
                    "weight",
                    "creationTimestamp",
                    "type",
                    "kinds",
                    "scheme",
                    "timeouts",
                    "retry",
                    "set",
                    "add",
                    "remove",
                ]
                .contains(&name.as_str());
                if is_optional && !REQUIRED.contains(&name.as_str()) {
                    pointers.push(pointer.clone());
                }
                pointers.extend(removable(member, &pointer));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    pointers
}

fn remove(object: &mut Value, pointer: &str) -> bool {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    // A port of a listener, a Service, a slice or an Ingress's backend is not optional.
    let has_port = ["/listeners/", "/ports/", "/service"];
    if last == "port" && has_port.into_iter().any(|owner| parent.contains(owner)) {
        return false;
    }
    // An HTTPS listener without it is not valid.
    if last == "tls" && parent.contains("/listeners/") {
        return false;
    }
    if last == "type" && (!parent.starts_with("/spec/rules") || parent.contains("/filters/")) {
        return false;
    }
    match object.pointer_mut(parent) {
        Some(Value::Array(elements)) => {
            let index: usize = last.parse().unwrap();
            if index >= elements.len() || elements.len() == 1 {
                return false;
            }
            elements.remove(index);
            true
        }
        Some(Value::Object(members)) => members.remove(last).is_some(),
        _ => false,
    }
}
