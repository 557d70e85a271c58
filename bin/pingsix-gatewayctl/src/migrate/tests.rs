//! Random inputs: what `check` refuses, or `explain` answers with an error, has a loss in the report.

use std::collections::BTreeMap;

use pingsix_gateway_api::explain::{Answer, Inquiry};
use pingsix_migrate::{Choices, Input, Report, ReportFormat, migrate};
use pingsix_translate::Layout;
use pingsix_translate::pingsix::Request;
use rand::prelude::*;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::arguments::TranslationArguments;
use crate::finding::Level;
use crate::manifest::{FileObjects, Manifests};
use crate::plane::Translated;

/// An object of the input, in a namespace of its own.
struct Case {
    namespace: String,
    value: Value,
    requests: Vec<Request>,
}

fn pick<'t, T: ?Sized>(rng: &mut StdRng, values: &[&'t T]) -> &'t T {
    values[rng.random_range(0..values.len())]
}

const PATHS: [&str; 9] = ["/", "/a", "/a/", "/a/b", "/a.b", "/a-b/c", "/%61", "/*", "/a/*"];
const PATTERNS: [(&str, &str); 8] = [
    ("^/a/(.*)", "/b/$1"),
    ("^/a", "/b"),
    ("/a/(.*)", "/b/$1"),
    ("a", "/b"),
    ("(.*)", "/$1"),
    ("^/(a)(b)?", "/$2$1"),
    ("[a-z]+", "/x"),
    ("(", "/x"),
];
const NETWORKS: [&str; 6] = ["10.0.0.0/8", "10.1.2.3/8", "192.0.2.1", "fe80::1/10", "::/0", "10.0.0.0/33"];

/// The port of a Service; some Services have no such port.
fn port(rng: &mut StdRng) -> u16 {
    if rng.random_ratio(1, 5) { 81 } else { 80 }
}

fn requests(host: &str, path: &str) -> Vec<Request> {
    let path = path.replace('*', "x");
    vec![Request::get(host, &path), Request::get(host, &path).over_tls()]
}

/// Services of all sorts: with endpoints, without ports in common, and for a name.
fn services(rng: &mut StdRng, namespace: &str) -> Vec<Value> {
    let metadata = |name: &str| json!({ "name": name, "namespace": namespace });
    let ports = json!([{ "name": "http", "port": 80 }]);
    let spec = match rng.random_range(0..5) {
        0 => json!({ "type": "ExternalName", "externalName": "backend.example.com", "ports": ports }),
        1 => json!({ "type": "ExternalName", "externalName": "backend.example.com" }),
        _ => json!({ "ports": ports }),
    };
    let mut slice = metadata("s-1");
    slice["labels"] = json!({ "kubernetes.io/service-name": "s" });
    let kind = if rng.random_ratio(1, 8) { "FQDN" } else { "IPv4" };
    let address = if kind == "FQDN" { "backend.example.com" } else { "10.0.0.1" };
    vec![
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata("s"), "spec": spec }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice,
            "addressType": kind, "ports": [{ "name": "http", "port": 8080 }],
            "endpoints": [{ "addresses": [address] }],
        }),
    ]
}

fn ingress(rng: &mut StdRng, namespace: String) -> Case {
    let host = format!("{namespace}.example.com");
    let is_apisix = rng.random();
    let domain = if is_apisix { "k8s.apisix.apache.org" } else { "nginx.ingress.kubernetes.io" };
    let mut annotations = BTreeMap::new();
    let mut set = |name: &str, value: &str| annotations.insert(format!("{domain}/{name}"), value.to_owned());
    let mut path = pick(rng, &PATHS).to_owned();
    match (rng.random_range(0..6), is_apisix) {
        (0, true) => {
            let (pattern, template) = PATTERNS[rng.random_range(0..PATTERNS.len())];
            set("rewrite-target-regex", pattern);
            set("rewrite-target-regex-template", template);
        }
        (0, false) => {
            pick(rng, &["/a(/|$)(.*)", "/a/(.*)", "/(a|b)", "/a.*", "/a$"]).clone_into(&mut path);
            set("rewrite-target", pick(rng, &["/$1", "/$2", "/b", "/b/$1x"]));
        }
        (1, true) => drop(set("allowlist-source-range", pick(rng, &NETWORKS))),
        (1, false) => drop(set("whitelist-source-range", pick(rng, &NETWORKS))),
        (2, true) => drop(set("http-to-https", "true")),
        (2, false) => drop(set("force-ssl-redirect", "true")),
        (3, true) => drop(set("upstream-scheme", pick(rng, &["http", "https", "grpc", "x"]))),
        (3, false) => drop(set("backend-protocol", pick(rng, &["HTTP", "HTTPS", "GRPC", "FCGI"]))),
        _ => {}
    }
    let kind = pick(rng, &["Exact", "Prefix", "ImplementationSpecific"]);
    let mut spec = json!({
        "ingressClassName": if is_apisix { "apisix" } else { "nginx" },
        "rules": [{ "host": host, "http": { "paths": [{
            "path": path, "pathType": kind,
            "backend": { "service": { "name": "s", "port": { "number": port(rng) } } },
        }] } }],
    });
    if rng.random_ratio(1, 4) {
        spec["tls"] = json!([{ "hosts": [host], "secretName": "absent" }]);
    }
    let value = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": "i", "namespace": namespace, "annotations": annotations }, "spec": spec,
    });
    let plain = path.split(['(', '$', '.']).next().unwrap_or_default().to_owned();
    let requests = if path.contains('(') || path.contains('$') || path.contains(".*") {
        requests(&host, &plain)
    } else {
        requests(&host, &path)
    };
    Case { namespace, value, requests }
}

fn apisix_route(rng: &mut StdRng, namespace: String) -> Case {
    let host = format!("{namespace}.example.com");
    let path = pick(rng, &PATHS).to_owned();
    let rule = |rng: &mut StdRng, name: &str| {
        let mut matching = json!({ "hosts": [host], "paths": [path] });
        let mut plugins = Vec::new();
        match rng.random_range(0..6) {
            0 | 1 => {
                let subject = json!({ "scope": pick(rng, &["Header", "Query", "Cookie"]), "name": "x-beta" });
                matching["exprs"] = json!([{ "subject": subject, "op": "Equal", "value": "1" }]);
            }
            2 => matching["remoteAddrs"] = json!([pick(rng, &NETWORKS)]),
            3 => matching["methods"] = json!([pick(rng, &["GET", "POST", "PURGE"])]),
            _ => {}
        }
        match rng.random_range(0..5) {
            0 | 1 => {
                let (pattern, template) = PATTERNS[rng.random_range(0..PATTERNS.len())];
                plugins.push(json!({ "name": "proxy-rewrite", "enable": true, "config": { "regex_uri": [pattern, template] } }));
            }
            2 => plugins.push(json!({
                "name": "ip-restriction", "enable": true, "config": { "whitelist": [pick(rng, &NETWORKS)] },
            })),
            3 => plugins
                .push(json!({ "name": "redirect", "enable": true, "config": { "http_to_https": true } })),
            _ => {}
        }
        json!({
            "name": name, "match": matching, "plugins": plugins,
            "backends": [{ "serviceName": "s", "servicePort": port(rng) }],
        })
    };
    let mut rules = vec![rule(rng, "one")];
    if rng.random() {
        rules.push(rule(rng, "two"));
    }
    let value = json!({
        "apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute",
        "metadata": { "name": "i", "namespace": namespace }, "spec": { "http": rules },
    });
    // Requests that fit all conditions.
    let query = |mut request: Request| {
        request.query = Some("x-beta=1".to_owned());
        request.header("x-beta", "1")
    };
    let mut methods = rules.iter().filter_map(|rule| rule.pointer("/match/methods/0")?.as_str());
    let method = methods.next_back().unwrap_or("GET").to_owned();
    let requests = requests(&host, &path).into_iter().map(|request| query(request).method(&method)).collect();
    Case { namespace, value, requests }
}

/// The numbers of losses and of other verdicts of each object, and the report.
fn losses(report: &Report) -> (BTreeMap<String, usize>, String) {
    let text = report.render(ReportFormat::Json, true);
    let value: Value = serde_json::from_str(&text).unwrap();
    let mut losses = BTreeMap::new();
    for entry in value["entries"].as_array().unwrap() {
        let namespace = entry["object"].as_str().unwrap().split([' ', '/']).nth(1).unwrap().to_owned();
        let is_loss = matches!(entry["verdict"].as_str(), Some("impossible" | "withheld" | "weaker"));
        *losses.entry(namespace).or_default() += usize::from(is_loss);
    }
    (losses, text)
}

#[test]
fn an_object_with_errors_in_check_or_explain_has_a_loss() {
    let mut refused = 0;
    for seed in 0..60 {
        let mut rng = StdRng::seed_from_u64(seed);
        let cases: Vec<Case> = (0..12)
            .map(|number| {
                let namespace = format!("n{number}");
                if rng.random() { ingress(&mut rng, namespace) } else { apisix_route(&mut rng, namespace) }
            })
            .collect();
        let mut values: Vec<Value> = cases.iter().map(|case| case.value.clone()).collect();
        values.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": { "name": "pingsix" },
            "spec": { "controllerName": pingsix_translate::DEFAULT_CONTROLLER_NAME },
        }));
        for case in &cases {
            values.extend(services(&mut rng, &case.namespace));
        }
        let choices = Choices { keep_ingress: rng.random_ratio(1, 3), ..Choices::default() };
        let options = TranslationArguments::defaults().unwrap().options();
        let migration = migrate(Input::of_values(values).unwrap(), &choices, options.clone());
        let (losses, text) = losses(migration.report());

        // As `check` and `explain` have it.
        let written = migration.objects().iter().map(|(_, object)| Value::clone(object)).collect();
        let manifests = Manifests::collect([FileObjects::of_values("output", written)], &[]);
        let options = pingsix_translate::Options { layout: Layout::PerPort, ..options };
        let checked = Translated::new(&manifests, &options);
        let names = |object: &str, case: &Case| object.contains(&format!(" {}/", case.namespace));
        for case in &cases {
            let mut problems: Vec<String> = Vec::new();
            let errors = checked.findings.iter().filter(|one| one.severity == Level::Error);
            // A Secret that the input lacks may be in the cluster.
            let errors = errors.filter(|one| !one.message.contains("Secret") && names(&one.object, case));
            problems.extend(errors.map(ToString::to_string));
            for request in &case.requests {
                let explained = checked.output.explain(&Inquiry::from(request.clone())).unwrap();
                let is_error = |answer: &Answer| {
                    matches!(answer, Answer::Status { status: 500 | 503, .. } | Answer::NotFound { .. })
                };
                // Another Gateway, or the class of Ingresses, may have a listener for the host, too.
                if !request.tls && explained.iter().all(|one| is_error(&one.answer)) {
                    problems.extend(explained.iter().map(ToString::to_string));
                }
            }
            if problems.is_empty() {
                continue;
            }
            refused += 1;
            let count = losses.get(&case.namespace).copied().unwrap_or_default();
            assert!(count > 0, "seed {seed}: {:#}\n{}\n{text}", case.value, problems.join("\n"));
        }
    }
    assert!(refused > 100, "{refused} objects");
}
