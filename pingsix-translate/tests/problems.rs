//! A change of one object takes the same work beside two hundred and beside two thousand problems of other objects.
//!
//! Work is counted in allocations, because whatever is copied or built for a problem allocates.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that says what it measures")]

use std::sync::Arc;

use pingsix_translate::{Object, ObjectName, Objects, Options, Translation, TranslationMode, Translator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// The additional allocations of a change beside ten times as many problems: parts of persistent maps and of their indexes.
const MAX_FURTHER_ALLOCATIONS: u64 = 60;

/// Objects of one owner of data planes.
struct Case {
    name: &'static str,
    /// The owner.
    owner: fn() -> Vec<Object>,
    /// The object with this number, which has a problem.
    faulty: fn(usize) -> Vec<Object>,
    /// An object of this name without a problem.
    sound: fn(&str) -> Object,
    translate: fn(&mut Translator, &Objects) -> Measured,
}

/// A translation, with its allocations.
type Measured = (Translation, u64);

fn object<T: DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn gateway() -> Vec<Object> {
    let spec = json!({"gatewayClassName": "pingsix", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]});
    vec![Object::Gateway(object(
        json!({"metadata": {"namespace": "shop", "name": "gateway", "generation": 1}, "spec": spec}),
    ))]
}

fn ingress_class() -> Vec<Object> {
    let spec = json!({"controller": "pingsix.io/gateway-controller"});
    let class = Object::IngressClass(object(json!({"metadata": {"name": "pingsix"}, "spec": spec})));
    let service = Object::Service(object(
        json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"ports": [{"port": 80}]}}),
    ));
    let slice = Object::EndpointSlice(object(json!({
        "metadata": {"namespace": "shop", "name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    })));
    vec![class, service, slice]
}

fn http_route(name: &str, host: &str, rules: &Value) -> Object {
    let spec = json!({"parentRefs": [{"name": "gateway"}], "hostnames": [host], "rules": rules});
    Object::HttpRoute(object(
        json!({"metadata": {"namespace": "shop", "name": name, "generation": 1}, "spec": spec}),
    ))
}

fn redirect() -> Value {
    json!({"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]})
}

/// With a backend that exists, unless the host says otherwise.
fn ingress(name: &str, host: &str, created: u64) -> Object {
    let service = if host.starts_with("missing") { "missing" } else { "web" };
    let backend = json!({"service": {"name": service, "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "Prefix", "backend": backend});
    let created = format!("2026-01-01T00:00:0{created}Z");
    Object::Ingress(object(json!({
        "metadata": {"namespace": "shop", "name": name, "generation": 1, "creationTimestamp": created},
        "spec": {"ingressClassName": "pingsix", "rules": [{"host": host, "http": {"paths": [path]}}]},
    })))
}

fn measured(translate: impl FnOnce() -> Translation) -> Measured {
    let profiler = dhat::Profiler::builder().testing().trim_backtraces(Some(0)).build();
    let translation = translate();
    let blocks = dhat::HeapStats::get().total_blocks;
    drop(profiler);
    (translation, blocks)
}

fn translate_gateway(translator: &mut Translator, objects: &Objects) -> Measured {
    let snapshot = objects.snapshot(&ObjectName::new("shop", "gateway")).unwrap();
    measured(|| translator.translate(&snapshot))
}

fn translate_ingress(translator: &mut Translator, objects: &Objects) -> Measured {
    let snapshot = objects.ingress_snapshot("pingsix").unwrap();
    measured(|| translator.translate_ingress(&snapshot))
}

const CASES: [Case; 4] = [
    Case {
        name: "HTTPRoutes with a Service that does not exist",
        owner: gateway,
        faulty: |number| {
            let rules = json!([{"backendRefs": [{"name": "missing", "port": 80}]}]);
            vec![http_route(&format!("r{number}"), &format!("h{number}.test"), &rules)]
        },
        sound: |name| http_route(name, "sound.test", &json!([redirect()])),
        translate: translate_gateway,
    },
    Case {
        name: "HTTPRoutes with a rule that is never reached",
        owner: gateway,
        faulty: |number| {
            let rule =
                json!({"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]});
            vec![http_route(&format!("r{number}"), &format!("h{number}.test"), &json!([rule, rule]))]
        },
        sound: |name| http_route(name, "sound.test", &json!([redirect()])),
        translate: translate_gateway,
    },
    Case {
        name: "Ingresses with a Service that does not exist",
        owner: ingress_class,
        faulty: |number| vec![ingress(&format!("i{number}"), &format!("missing-{number}.test"), 0)],
        sound: |name| ingress(name, "sound.test", 0),
        translate: translate_ingress,
    },
    Case {
        name: "Ingresses with a path that is never reached",
        owner: ingress_class,
        faulty: |number| {
            let host = format!("h{number}.test");
            vec![ingress(&format!("i{number}"), &host, 0), ingress(&format!("j{number}"), &host, 1)]
        },
        sound: |name| ingress(name, "sound.test", 0),
        translate: translate_ingress,
    },
];

impl Case {
    /// The allocations of the translation after one more object, beside so many.
    fn allocations(&self, count: usize) -> u64 {
        let mut objects = Objects::default();
        let faulty = (0..count).flat_map(|number| (self.faulty)(number));
        for object in (self.owner)().into_iter().chain(faulty) {
            objects.insert(object);
        }
        let mut translator = Translator::new(Options::default());
        let (translation, _) = (self.translate)(&mut translator, &objects);
        assert!(
            translation.verdicts.problems.len() >= count,
            "{}: {:?}",
            self.name,
            translation.verdicts.problems
        );
        objects.insert((self.sound)("sound"));
        let (after, allocations) = (self.translate)(&mut translator, &objects);
        assert_eq!(translator.last_mode(), TranslationMode::Incremental { routes: 1 }, "{}", self.name);
        assert_eq!(after.verdicts.problems, translation.verdicts.problems, "{}", self.name);
        allocations
    }
}

/// The cases run in sequence, because the allocator counts for the whole process.
#[test]
fn a_change_costs_the_same_beside_ten_times_as_many_problems() {
    println!("| problems of | allocations beside 200 | beside 2,000 |\n|---|---|---|");
    for case in &CASES {
        let (few, many) = (case.allocations(200), case.allocations(2_000));
        println!("| {} | {few} | {many} |", case.name);
        assert!(many <= few + MAX_FURTHER_ALLOCATIONS, "{}: {few} and {many} allocations", case.name);
    }
}
