//! Filters, timeouts and retries. A table has a few sets of filters that its rules share, so that rules which are
//! decided among often agree.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

use super::{one_in, pick, route};

const REPLACEMENTS: [&str; 7] = ["/", "", "/new", "/new/", "new", "//new", "/a%20b"];

/// Gives rules of routes filters, timeouts and retries.
pub(super) fn decorate(rng: &mut SmallRng, routes: &mut [Value]) {
    // Some tables have no filters, half of the others hardly more than one set of them.
    let rare = match rng.random_range(0..5) {
        0 => return,
        1 | 2 => 12,
        _ => 2,
    };
    let sets: Vec<Vec<Value>> = (0..2).map(|_| set(rng)).collect();
    for route in routes {
        let is_grpc = route["kind"] == "GRPCRoute";
        for rule in route["spec"]["rules"].as_array_mut().unwrap() {
            let rule = rule.as_object_mut().unwrap();
            let mut filters = match rng.random_range(0..6) {
                0 => Vec::new(),
                1..5 if !one_in(rng, rare) => sets[0].clone(),
                1..5 => sets.choose(rng).unwrap().clone(),
                _ => set(rng),
            };
            if is_grpc {
                // The other types are none of its schema.
                filters.retain(|filter| filter["type"].as_str().unwrap().ends_with("HeaderModifier"));
            } else {
                exchange(rng, rule);
            }
            place(rng, rule, filters, is_grpc);
        }
    }
}

/// Puts filters into a rule, where they need it with the match they ask for and without backends.
fn place(rng: &mut SmallRng, rule: &mut Map<String, Value>, filters: Vec<Value>, is_grpc: bool) {
    let text = Value::from(filters.clone()).to_string();
    if text.contains("ReplacePrefixMatch")
        && !one_in(rng, 8)
        && let Some(matches) = rule.get_mut("matches").and_then(Value::as_array_mut)
    {
        matches.truncate(1);
        if matches[0]["path"]["type"] == "Exact" {
            matches[0]["path"]["type"] = json!("PathPrefix");
        }
    }
    if text.contains("RequestRedirect") && !one_in(rng, 10) {
        rule.remove("backendRefs");
    }
    if !filters.is_empty() {
        let own = rule.entry("filters").or_insert_with(|| json!([]));
        own.as_array_mut().unwrap().extend(filters);
    }
    if one_in(rng, 10)
        && let Some(backends) = rule.get_mut("backendRefs").and_then(Value::as_array_mut)
        && let Some(backend) = backends.first_mut()
    {
        let filter = match rng.random_range(0..6) {
            0 if !is_grpc => json!({ "type": "CORS", "cors": cors(rng) }),
            1 if !is_grpc => json!({ "type": "URLRewrite", "urlRewrite": rewrite(rng) }),
            2 => unsupported(rng, is_grpc),
            other => header_modifier(rng, other < 4),
        };
        backend["filters"] = json!([filter]);
        if !one_in(rng, 3) {
            backends.truncate(1);
        }
    }
}

fn set(rng: &mut SmallRng) -> Vec<Value> {
    let mut set = Vec::new();
    if one_in(rng, 2) {
        set.push(header_modifier(rng, true));
    }
    if one_in(rng, 2) {
        set.push(header_modifier(rng, false));
    }
    match rng.random_range(0..6) {
        0..3 => set.push(json!({ "type": "URLRewrite", "urlRewrite": rewrite(rng) })),
        3 => set.push(json!({ "type": "RequestRedirect", "requestRedirect": redirect(rng) })),
        _ => {}
    }
    if one_in(rng, 3) {
        set.push(json!({ "type": "CORS", "cors": cors(rng) }));
    }
    if one_in(rng, 20) {
        set.push(unsupported(rng, false));
    }
    if one_in(rng, 30) && !set.is_empty() {
        set.push(set[0].clone());
    }
    // Their order says nothing.
    if one_in(rng, 2) {
        set.reverse();
    }
    set
}

fn unsupported(rng: &mut SmallRng, is_grpc: bool) -> Value {
    let backend = json!({ "name": "one", "port": 80 });
    match rng.random_range(0..4) {
        0 => json!({ "type": "RequestMirror", "requestMirror": { "backendRef": mirror(rng) } }),
        1 if !is_grpc => json!({
            "type": "ExternalAuth",
            "externalAuth": { "protocol": "HTTP", "backendRef": backend, "http": { "path": "/" } },
        }),
        2 => json!({
            "type": "ResponseHeaderModifier",
            "responseHeaderModifier": { "set": [{ "name": "X-Peer", "value": "is $remote_addr" }] },
        }),
        _ => json!({
            "type": "RequestHeaderModifier",
            "requestHeaderModifier": { "remove": [pick(rng, &["Host", "connection", "X-Pingsix-Redirect"])] },
        }),
    }
}

/// A backendRef of a mirror, which has no weight.
fn mirror(rng: &mut SmallRng) -> Value {
    let mut backend = route::backend(rng);
    backend.as_object_mut().unwrap().remove("weight");
    backend
}

fn header_modifier(rng: &mut SmallRng, of_request: bool) -> Value {
    // A few that requests and answers have, and that conditions are about.
    let names: &[&str] = if of_request {
        &["X-Env", "x-env", "X-New", "X-Drop"]
    } else {
        &["X-Keep", "x-keep", "X-New", "x-drop"]
    };
    let mut modifier = Map::new();
    for list in ["set", "add"] {
        if one_in(rng, 2) {
            let headers = (0..rng.random_range(1..=2)).map(|_| {
                json!({ "name": pick(rng, names), "value": pick(rng, &["1", "a, b", "c:d $1", "three"]) })
            });
            modifier.insert(list.to_owned(), headers.collect());
        }
    }
    if one_in(rng, 2) {
        modifier.insert("remove".to_owned(), json!([pick(rng, names)]));
    }
    if of_request {
        json!({ "type": "RequestHeaderModifier", "requestHeaderModifier": modifier })
    } else {
        json!({ "type": "ResponseHeaderModifier", "responseHeaderModifier": modifier })
    }
}

fn rewrite(rng: &mut SmallRng) -> Value {
    let mut rewrite = Map::new();
    if one_in(rng, 2) {
        rewrite.insert("hostname".to_owned(), json!(pick(rng, &["backend.test", "a.example.com"])));
    }
    if rewrite.is_empty() || one_in(rng, 2) {
        rewrite.insert("path".to_owned(), path(rng));
    }
    Value::Object(rewrite)
}

fn path(rng: &mut SmallRng) -> Value {
    if one_in(rng, 3) {
        json!({ "type": "ReplaceFullPath", "replaceFullPath": pick(rng, &["/full", "/", "full", "/f/$1"]) })
    } else {
        let replacement = if one_in(rng, 20) { "/cost/$5" } else { pick(rng, &REPLACEMENTS) };
        json!({ "type": "ReplacePrefixMatch", "replacePrefixMatch": replacement })
    }
}

fn redirect(rng: &mut SmallRng) -> Value {
    let mut redirect = Map::new();
    if one_in(rng, 3) {
        redirect.insert("scheme".to_owned(), json!(pick(rng, &["https", "https", "http"])));
    }
    if one_in(rng, 3) {
        redirect.insert("hostname".to_owned(), json!(pick(rng, &["elsewhere.test", "a.example.com"])));
    }
    if one_in(rng, 4) {
        redirect.insert("port".to_owned(), json!(pick(rng, &[&80, &443, &8443])));
    }
    if one_in(rng, 2) {
        redirect.insert("path".to_owned(), path(rng));
    }
    if one_in(rng, 2) {
        redirect.insert("statusCode".to_owned(), json!(pick(rng, &[&301, &302, &303, &307, &308])));
    }
    Value::Object(redirect)
}

pub(super) fn cors(rng: &mut SmallRng) -> Value {
    let mut cors = Map::new();
    let mut list = |rng: &mut SmallRng, name: &str, values: &[&str]| {
        if !one_in(rng, 3) {
            let values: Vec<&str> = (0..rng.random_range(1..=2)).map(|_| pick(rng, values)).collect();
            cors.insert(name.to_owned(), json!(values));
        }
    };
    list(rng, "allowOrigins", &["*", "https://a.test", "http://b.test:8080", "https://*.w.test"]);
    list(rng, "allowMethods", &["*", "GET", "PUT", "PUT", "DELETE"]);
    list(rng, "allowHeaders", &["*", "X-A", "x-a", "x-b"]);
    list(rng, "exposeHeaders", &["*", "X-E", "x-f", "x-e"]);
    if one_in(rng, 2) {
        cors.insert("allowCredentials".to_owned(), json!(one_in(rng, 2)));
    }
    if one_in(rng, 3) {
        cors.insert("maxAge".to_owned(), json!(600));
    }
    if one_in(rng, 20) {
        cors.insert("allowMethods".to_owned(), json!(["TRACE"]));
    }
    Value::Object(cors)
}

fn exchange(rng: &mut SmallRng, rule: &mut Map<String, Value>) {
    if one_in(rng, 6) {
        let mut timeouts = Map::new();
        for name in ["request", "backendRequest"] {
            if one_in(rng, 2) {
                let text = pick(rng, &["10s", "500ms", "1m30s", "0s", "2h", "1s1ms"]);
                timeouts.insert(name.to_owned(), json!(text));
            }
        }
        rule.insert("timeouts".to_owned(), Value::Object(timeouts));
    }
    if one_in(rng, 8) {
        let mut retry = Map::new();
        if !one_in(rng, 6) {
            retry.insert("attempts".to_owned(), json!(pick(rng, &[&0, &1, &3, &100])));
        }
        match rng.random_range(0..12) {
            0 => drop(retry.insert("codes".to_owned(), json!([503]))),
            1 => drop(retry.insert("backoff".to_owned(), json!("100ms"))),
            _ => {}
        }
        rule.insert("retry".to_owned(), Value::Object(retry));
    }
    if one_in(rng, 40) {
        rule.insert("sessionPersistence".to_owned(), json!({ "sessionName": "s" }));
    }
}
