//! The answers of annotated Ingresses are those that the documentation of their annotations promises.
//!
//! The model says which Ingress has a request, and its answer: closed, redirected, a method refused, or backends with their
//! shares, the path and the Host that they see, the headers and the status of responses, and the demands on clients.
//! Annotations for connections and limits, `service-upstream` and the details of CORS are not in it, nor aliases where hosts
//! belong to namespaces, nor Ingresses with annotations of two dialects.

mod expanded;
mod expected;
mod given;
mod meaning;

use std::collections::{BTreeMap, BTreeSet};

use pingsix_translate::pingsix::RouteTable;
use pingsix_translate::{Layout, Options};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use self::expanded::name_of;
use self::expected::{HEADER, Promise, USER};
use self::given::{Answered, Given, given};
use self::meaning::{Meaning, OF_APISIX, OF_NGINX, Setting};
use super::annotated::{NGINX, switch_on};
use super::{Case, LAYOUTS, arriving_at, generate, options, report};
use crate::answer::RESPONDER;
use crate::cases;
use crate::generate::{NAMESPACES, hosts, one_in, pick};
use crate::probe::Probe;

/// By dialect.
const SETTINGS: [&[Setting]; 2] = [OF_NGINX, OF_APISIX];

/// The field of an Ingress with the settings that its annotations are made of.
const NOTED: &str = "settings";

/// The paths of Ingresses with regular expressions; the fourth and the fifth stand for no prefix.
const PATTERNS: [&str; 7] =
    ["/foo(/|$)(.*)", "/foo/(.*)", "/fo/?(.*)", "/(a|b)", "/foo/[0-9]+", "/(.*)", "/foo/bar(/.*)?"];

const REQUESTED: [&str; 12] = [
    "/",
    "/foo",
    "/foo/",
    "/foo/x",
    "/foo/bar",
    "/foo/bar/baz",
    "/fo",
    "/fo/o",
    "/fooo",
    "/FOO",
    "/other",
    "/app",
];

/// A table with annotations whose meaning is known.
fn table(rng: &mut SmallRng) -> Vec<Value> {
    let mut objects = generate::table(rng);
    switch_on(&mut objects);
    for object in &mut objects {
        if let Some(ingress) = object.pointer_mut("/spec/ingress").and_then(Value::as_object_mut) {
            ingress.remove("hostOwnership");
        }
    }
    // PingSIX rewrites no path for backends that speak HTTP/2.
    for ports in objects.iter_mut().filter_map(|object| object.pointer_mut("/spec/ports")?.as_array_mut()) {
        for port in ports.iter_mut().filter_map(Value::as_object_mut) {
            port.remove("appProtocol");
        }
    }
    for namespace in NAMESPACES {
        for (name, kind) in [("user", "kubernetes.io/basic-auth"), ("htpasswd", "Opaque")] {
            objects.push(json!({
                "apiVersion": "v1", "kind": "Secret", "type": kind,
                "metadata": { "namespace": namespace, "name": name },
                "stringData": { "username": USER, "password": "open-sesame", "auth": "alice:$apr1$x$y" },
            }));
        }
        objects.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": namespace, "name": "headers" },
            "data": { HEADER: namespace, "Content-Length": "1" },
        }));
    }
    for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
        use_services(ingress);
        if !one_in(rng, 4) {
            annotate(rng, ingress);
        }
    }
    objects
}

/// Replaces backends that are no Services: a rule with one answers 500 whatever the annotations are.
fn use_services(value: &mut Value) {
    match value {
        Value::Object(members) if members.contains_key("resource") => {
            *value = json!({ "service": { "name": "one", "port": { "number": 80 } } });
        }
        Value::Object(members) => members.values_mut().for_each(use_services),
        Value::Array(elements) => elements.iter_mut().for_each(use_services),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Notes settings for an Ingress, with or without being given up, and gives it some patterns if its paths are regular
/// expressions.
fn annotate(rng: &mut SmallRng, ingress: &mut Value) {
    let dialect = usize::from(one_in(rng, 3));
    let mut settings: Vec<(usize, bool)> = Vec::new();
    let mut names = BTreeSet::new();
    for _ in 0..rng.random_range(1..5) {
        let index = rng.random_range(0..SETTINGS[dialect].len());
        let Setting { annotations, means, .. } = &SETTINGS[dialect][index];
        let mut alone = Meaning::default();
        means(&mut alone);
        // A closed Ingress has one answer, whatever its other annotations are.
        if alone.is_closed && !one_in(rng, 4) {
            continue;
        }
        if annotations.iter().all(|(name, _)| !names.contains(name)) {
            names.extend(annotations.iter().map(|(name, _)| *name));
            settings.push((index, one_in(rng, 10)));
        }
    }
    ingress[NOTED] =
        json!(settings.iter().map(|(index, is_ignored)| (dialect, index, is_ignored)).collect::<Vec<_>>());
    if !meaning_of(ingress).has_patterns() {
        return;
    }
    let rules = ingress["spec"]["rules"].as_array_mut().into_iter().flatten();
    for path in rules.filter_map(|rule| rule.pointer_mut("/http/paths")?.as_array_mut()).flatten() {
        if one_in(rng, 2) {
            path["path"] = json!(pick(rng, &PATTERNS));
            path["pathType"] = json!("ImplementationSpecific");
        }
    }
}

/// The noted settings of an Ingress, and whether it gives them up.
fn settings_of(ingress: &Value) -> Vec<(&'static Setting, bool)> {
    let noted: Vec<(usize, usize, bool)> = serde_json::from_value(ingress[NOTED].clone()).unwrap_or_default();
    noted.into_iter().map(|(dialect, index, is_ignored)| (&SETTINGS[dialect][index], is_ignored)).collect()
}

/// The objects with the annotations that are noted.
fn annotated(objects: &[Value]) -> Vec<Value> {
    let mut objects = objects.to_vec();
    for ingress in objects.iter_mut().filter(|object| object["kind"] == "Ingress") {
        let mut given_up = Vec::new();
        for (Setting { domain, annotations, .. }, is_ignored) in settings_of(ingress) {
            for (name, value) in *annotations {
                ingress["metadata"]["annotations"][format!("{domain}/{name}")] = json!(value);
                given_up.extend(is_ignored.then_some(*name));
            }
        }
        if !given_up.is_empty() {
            ingress["metadata"]["annotations"]["pingsix.io/ignored-annotations"] = json!(given_up.join(", "));
        }
    }
    objects
}

/// The meaning of the noted settings, without those that the Ingress gives up.
fn meaning_of(ingress: &Value) -> Meaning {
    let mut meaning = Meaning::default();
    for (Setting { domain, means, .. }, _) in
        settings_of(ingress).iter().filter(|(_, is_ignored)| !is_ignored)
    {
        meaning.is_of_nginx |= *domain == NGINX;
        means(&mut meaning);
    }
    meaning.together()
}

/// A request around the hosts and paths of the table.
fn probe(rng: &mut SmallRng, hosts: &[String]) -> Probe {
    let mut probe = Probe {
        host: Some(hosts.choose(rng).map_or_else(|| "a.example.com".to_owned(), Clone::clone)),
        path: pick(rng, &REQUESTED).to_owned(),
        method: pick(rng, &["GET", "GET", "GET", "POST", "DELETE", "OPTIONS"]).to_owned(),
        ..Probe::default()
    };
    let mut add = |name: &str, value: &str| probe.headers.push((name.to_owned(), value.to_owned()));
    if one_in(rng, 2) {
        add("X-Canary", pick(rng, &["always", "never", "eu", "other"]));
    }
    if one_in(rng, 2) {
        add("Origin", "https://script.test");
        if one_in(rng, 2) {
            add("Access-Control-Request-Method", "GET");
            "OPTIONS".clone_into(&mut probe.method);
        }
    }
    if one_in(rng, 3) {
        probe.queries.push(("q".to_owned(), "1".to_owned()));
    }
    probe
}

/// The number of requests by the answer.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    not_found: u64,
    closed: u64,
    refused: u64,
    redirects: u64,
    preflights: u64,
    plain: u64,
    /// Backends that see another request or change the response.
    changed: u64,
}

impl Tally {
    fn count(&mut self, answered: &Answered, probe: &Probe) {
        let count = match &answered.answer {
            _ if answered.ingress.is_none() => &mut self.not_found,
            Given::Status(503) => &mut self.closed,
            Given::Status(_) | Given::Statuses(_) => &mut self.refused,
            Given::Redirect { .. } => &mut self.redirects,
            Given::Preflight => &mut self.preflights,
            Given::Backends(delivery) if delivery.is_plain(probe) => &mut self.plain,
            Given::Backends(_) => &mut self.changed,
        };
        *count += 1;
    }

    const fn counts(&self) -> [u64; 7] {
        let Self { not_found, closed, refused, redirects, preflights, plain, changed } = *self;
        [not_found, closed, refused, redirects, preflights, plain, changed]
    }
}

/// The first answer that differs from the promised one.
fn difference(noted: &[Value], layout: Layout, probes: &[Probe], tally: &mut Tally) -> Option<String> {
    // A smaller table of the search for a cause may have no parameters for its class.
    noted.iter().find(|object| object.pointer("/spec/ingress/annotations/1").is_some())?;
    let objects = annotated(noted);
    let case = Case::with(&objects, &Options { responder: Some(RESPONDER), ..options(layout) });
    let ingresses = noted.iter().filter(|object| object["kind"] == "Ingress");
    let meanings: BTreeMap<String, Meaning> =
        ingresses.map(|ingress| (name_of(ingress), meaning_of(ingress))).collect();
    let promise = Promise::new(&case.world, &objects, meanings, layout);
    case.planes().find_map(|(key, plane)| {
        let table = RouteTable::new(&plane.config);
        let router = table.insert_in(0..table.len()).ok()?;
        probes.iter().map(|probe| arriving_at(key, probe)).find_map(|probe| {
            let promised = promise.answer(&probe);
            tally.count(&promised, &probe);
            let given = given(&case.world, plane, &router, &probe);
            (given.as_ref() != Ok(&promised))
                .then(|| format!("{key}, {probe:?}:\npromised is {promised:?},\nand given {given:?}"))
        })
    })
}

#[test]
fn annotated_ingresses_answer_as_their_documentation_promises() {
    let mut tally = Tally::default();
    for seed in 0..cases() * 2 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let objects = table(&mut rng);
        let names = hosts_of(&objects);
        let probes: Vec<Probe> = (0..80).map(|_| probe(&mut rng, &names)).collect();
        for (layout, _) in LAYOUTS {
            if difference(&objects, layout, &probes, &mut tally).is_some() {
                report(seed, objects, |objects| difference(objects, layout, &probes, &mut Tally::default()));
            }
        }
    }
    println!("{tally:?}");
    let all: u64 = tally.counts().iter().sum();
    assert!(tally.counts().iter().all(|count| count * 500 > all), "the answers are all alike: {tally:?}");
}

/// Names that the hosts of a table cover, aliases, and hosts with `www.`.
fn hosts_of(objects: &[Value]) -> Vec<String> {
    let mut names = hosts(&generate::hostnames(objects));
    let with_www: Vec<String> = names.iter().map(|name| format!("www.{name}")).collect();
    names.extend(with_www.into_iter().step_by(2));
    names.extend(["alias.test", "deep.alias.test", "a.example.com", "elsewhere.org"].map(str::to_owned));
    names
}
