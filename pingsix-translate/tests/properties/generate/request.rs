//! Requests around everything a table can ask for.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::Value;

use super::{grpc, one_in, pick};
use crate::probe::Probe;

const HOSTS: [&str; 19] = [
    "a.example.com",
    "A.Example.COM",
    "a.example.com:8080",
    "b.example.com",
    "c.d.example.com",
    "b.a.example.com",
    "c.a.example.com",
    "x.b.example.com",
    "example.com",
    "example.org",
    "sub.other.test",
    "other.test",
    "another.test",
    "notexample.com",
    "com",
    "10.0.0.1",
    // Spelled like patterns, which they are not to be taken for.
    "*.example.com",
    "{*subdomain}.com",
    "*",
];

const PATHS: [&str; 23] = [
    "/",
    "//",
    "/foo",
    "/foo/",
    "/foo//",
    "/foo/x",
    "/foo/x/",
    "/foo/bar",
    "/foo/bar/",
    "/foo/bar/baz",
    "/foo/bar/baz/",
    "/foo/bar/baz/deep/er",
    "/foo/barn",
    "/fo",
    "/fo/o",
    "/fooo",
    "/FOO",
    "/other",
    "//foo",
    "*",
    "/{*p}",
    "/foo/{*p}",
    "/foo/{bar}/baz",
];

/// A host or two for every hostname of the listeners and routes of a table.
pub(crate) fn hosts(objects: &[Value]) -> Vec<String> {
    let mut hosts = Vec::new();
    let specs = objects.iter().map(|object| &object["spec"]);
    for spec in specs {
        let listeners = spec["listeners"].as_array().into_iter().flatten();
        let of_listeners = listeners.filter_map(|listener| listener["hostname"].as_str());
        let of_route = spec["hostnames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for hostname in of_listeners.chain(of_route) {
            match hostname.strip_prefix('*') {
                Some(suffix) => hosts.extend([format!("a{suffix}"), format!("deep.er{suffix}")]),
                None => hosts.push(hostname.to_owned()),
            }
        }
    }
    hosts
}

/// A random request, usually to one of these hosts.
pub(crate) fn probe(rng: &mut SmallRng, hosts: &[String]) -> Probe {
    let likely = hosts.choose(rng).filter(|_| !one_in(rng, 4)).cloned();
    let mut probe = Probe {
        host: likely.or_else(|| (!one_in(rng, 12)).then(|| pick(rng, &HOSTS).to_owned())),
        path: if one_in(rng, 4) { pick(rng, &grpc::PATHS) } else { pick(rng, &PATHS) }.to_owned(),
        method: pick(rng, &["GET", "GET", "GET", "POST", "OPTIONS", "DELETE", "PURGE"]).to_owned(),
        ..Probe::default()
    };
    if one_in(rng, 2) {
        push(&mut probe.headers, pick(rng, &["X-Env", "x-env"]), rng);
    }
    if one_in(rng, 3) {
        push(&mut probe.headers, pick(rng, &["version", "VERSION"]), rng);
    }
    if one_in(rng, 2) {
        push(&mut probe.queries, "q", rng);
    }
    if one_in(rng, 3) {
        push(&mut probe.queries, "Q", rng);
    }
    if one_in(rng, 6) {
        push(&mut probe.queries, "unrelated", rng);
    }
    // Of a repeated parameter the first counts.
    if one_in(rng, 6) {
        push(&mut probe.queries, pick(rng, &["q", "Q"]), rng);
    }
    if one_in(rng, 2) {
        probe.queries.reverse();
    }
    if one_in(rng, 6) {
        probe.headers.push(("X-Drop".to_owned(), "me".to_owned()));
    }
    if one_in(rng, 3) {
        of_script(rng, &mut probe);
    }
    probe.http2 = one_in(rng, 3);
    probe
}

/// Makes it a request of a script of some origin, or the preflight for one.
fn of_script(rng: &mut SmallRng, probe: &mut Probe) {
    const ORIGINS: [&str; 8] = [
        "https://a.test",
        "http://b.test:8080",
        "https://x.w.test",
        "https://x.y.w.test",
        "https://w.test",
        "https://a.test:8443",
        "http://a.test",
        "null",
    ];
    let mut add = |name: &str, value: &str| probe.headers.push((name.to_owned(), value.to_owned()));
    add("Origin", pick(rng, &ORIGINS));
    if one_in(rng, 2) {
        "OPTIONS".clone_into(&mut probe.method);
        add("Access-Control-Request-Method", pick(rng, &["GET", "POST", "PUT", "DELETE", "PATCH"]));
        if one_in(rng, 2) {
            add("Access-Control-Request-Headers", pick(rng, &["x-a", "x-a,x-b", "x-c"]));
        }
    }
}

fn push(to: &mut Vec<(String, String)>, name: &str, rng: &mut SmallRng) {
    let value = if one_in(rng, 12) { "" } else { pick(rng, &["one", "two", "ONE"]) };
    to.push((name.to_owned(), value.to_owned()));
}
