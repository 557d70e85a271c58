//! `migrate`: the goldens of `testdata/migrations`, and the command line.
//!
//! `UPDATE_MIGRATIONS=1` writes the present output and report beside the inputs; read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pingsix_translate::stream::StreamConfig;
use serde_json::Value;

use crate::support::{Manifests, Run, command, run, run_with};
use crate::{connection, sample};

/// The directory of the goldens.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/migrations")
}

/// A directory with `input.yaml`, `output.yaml`, `report.txt` and `requests.yaml`, and of some `summary.txt`.
struct Case {
    directory: PathBuf,
}

fn cases() -> Vec<Case> {
    let entries = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut directories: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories.into_iter().map(|directory| Case { directory }).collect()
}

impl Case {
    fn name(&self) -> String {
        self.directory.file_name().unwrap().to_str().unwrap().to_owned()
    }

    fn read(&self, file: &str) -> String {
        let path = self.directory.join(file);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The words behind a mark in the first lines of the input.
    fn words(&self, mark: &str) -> Vec<String> {
        let input = self.read("input.yaml");
        let line = input.lines().find_map(|line| line.strip_prefix(&format!("# {mark}: ")));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    fn run(&self, arguments: &[String]) -> Run {
        let output = command().current_dir(&self.directory).args(arguments).output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn migrate(&self, arguments: &[&str]) -> Run {
        let mut all = vec!["migrate".to_owned(), "input.yaml".to_owned()];
        all.extend(self.words("Arguments"));
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self.run(&all)
    }

    /// Runs a subcommand on the output, with the options of the translation.
    fn on_output(&self, subcommand: &str, arguments: &[String]) -> Run {
        let mut all = vec![subcommand.to_owned(), "output.yaml".to_owned()];
        all.extend(arguments.iter().cloned());
        all.extend(self.words("Options"));
        self.run(&all)
    }

    /// The stream documents of the output by prefix.
    fn streams(&self) -> Vec<(String, StreamConfig)> {
        let stored = self.on_output("translate", &["-o".to_owned(), "etcd-json".to_owned()]).json();
        let mut planes: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for (key, value) in stored.as_object().unwrap() {
            let prefix: Vec<&str> = key.split('/').take(4).collect();
            if key.starts_with("/pingsix-stream/") {
                planes.entry(prefix.join("/")).or_default().push((key.clone(), value.to_string()));
            }
        }
        let planes = planes.into_iter();
        planes
            .map(|(prefix, pairs)| (prefix.clone(), StreamConfig::from_pairs(&prefix, pairs).unwrap()))
            .collect()
    }

    fn problems(&self, update: bool) -> Vec<String> {
        let mut problems = Vec::new();
        let migrated = self.migrate(&["--all"]);
        let mut files = vec![("output.yaml", migrated.out.clone()), ("report.txt", migrated.err.clone())];
        if self.directory.join("summary.txt").exists() {
            files.push(("summary.txt", self.migrate(&[]).err));
        }
        for (file, text) in files {
            let path = self.directory.join(file);
            let held = fs::read_to_string(&path).unwrap_or_default();
            if held == text {
                continue;
            }
            if update {
                fs::write(&path, text).unwrap();
            } else {
                problems.push(format!("{file} should be:\n{text}"));
            }
        }
        if migrated.code != i32::from(has_losses(&migrated.err)) {
            problems.push(format!("the exit code is {}", migrated.code));
        }
        // The output of a second run on the output is the output: what is ours stays as it is.
        let checked = self.on_output("check", &[]);
        let expected = self.words("Check").join(" ");
        if expected.is_empty() && checked.code != 0 {
            problems.push(format!("check finds:\n{}{}", checked.out, checked.err));
        } else if !expected.is_empty() && !checked.out.contains(&expected) {
            problems.push(format!("check does not find {expected:?}:\n{}", checked.out));
        }
        let explain = |arguments: &[String]| {
            let run = self.on_output("explain", arguments);
            assert!(run.code < 2, "{}: {}", self.name(), run.err);
            run.out
        };
        problems.extend(sample::check(&self.read("requests.yaml"), &explain));
        if let Ok(text) = fs::read_to_string(self.directory.join("connections.yaml")) {
            problems.extend(connection::check(&text, &self.streams()));
        }
        for secret in self.words("Secrets") {
            if migrated.err.contains(&secret) {
                problems.push(format!("the report has the secret {secret}"));
            }
            if outside_of_secrets(&migrated.out, &secret) {
                problems.push(format!("an object other than a Secret has the secret {secret}"));
            }
        }
        problems
    }
}

/// Whether a report of all fields has something withheld, or impossible in an object that may not be weaker.
fn has_losses(report: &str) -> bool {
    // The line of an object has no blank at its beginning.
    let mut objects: Vec<BTreeSet<&str>> = Vec::new();
    for line in report.lines() {
        match (line.strip_prefix("  "), objects.last_mut()) {
            (Some(field), Some(verdicts)) => {
                verdicts.extend(field.split_whitespace().next());
            }
            _ => objects.push(BTreeSet::new()),
        }
    }
    objects.iter().any(|verdicts| {
        verdicts.contains("withheld") || (verdicts.contains("impossible") && !verdicts.contains("weaker"))
    })
}

/// Whether a text stands in an object that is not a Secret.
fn outside_of_secrets(stream: &str, secret: &str) -> bool {
    stream.split("\n---\n").any(|document| {
        document.contains(secret) && !document.lines().any(|line| line.trim() == "kind: Secret")
    })
}

#[test]
fn every_migration_becomes_what_its_files_say() {
    let update = std::env::var_os("UPDATE_MIGRATIONS").is_some_and(|value| !value.is_empty());
    let mut problems = Vec::new();
    for case in cases() {
        let found = case.problems(update);
        if !found.is_empty() {
            problems.push(format!("== {}\n{}", case.name(), found.join("\n")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn every_migration_says_what_it_shows() {
    for case in cases() {
        let first = case.read("input.yaml").lines().next().unwrap_or_default().to_owned();
        let sentence = first.strip_prefix("# Shows: ").unwrap_or_default();
        assert!(sentence.len() > 20 && sentence.ends_with('.'), "{}: {first:?}", case.name());
    }
}

#[test]
fn there_are_enough_migrations() {
    let names: BTreeSet<String> = cases().iter().map(Case::name).collect();
    assert!(names.len() >= 25, "{} migrations", names.len());
}

/// The plugins of the services that PingSIX gets, by name.
fn plugins(manifests: &str) -> Vec<(String, Value)> {
    let run = run_with(manifests, ["translate", "-", "-o", "etcd-json"]);
    let documents = run.json();
    let documents = documents.as_object().unwrap().iter();
    let services =
        documents.filter(|(key, _)| key.contains("/services/") && !key.contains("/services/status-"));
    let plugins = services.filter_map(|(_, service)| service["plugins"].as_object());
    plugins.flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[test]
fn every_key_of_a_consumer_is_admitted_and_none_is_refused() {
    let case = Case { directory: root().join("keys") };
    let found = plugins(&case.migrate(&[]).exits(0).out);
    let [(name, config)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(name, "key-auth");
    let mut keys: Vec<&str> =
        config["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["alices-key", "bobs-key"]);
    assert_eq!(config["query"], "apikey");
}

const ROUTE: &str = r"
apiVersion: apisix.apache.org/v2
kind: ApisixRoute
metadata: { name: cart, namespace: shop }
spec:
  http:
  - name: cart
    match: { paths: [/cart] }
    backends: [{ serviceName: cart, servicePort: 80 }]
";

/// A route that only consumers with signatures may use.
fn protected() -> String {
    format!("{ROUTE}    authentication: {{ enable: true, type: hmacAuth }}\n")
}

#[test]
fn a_migration_without_losses_succeeds() {
    run_with(ROUTE, ["migrate", "-"])
        .exits(0)
        .prints("kind: HTTPRoute\n")
        .prints("kind: Gateway\n")
        .prints_error("0 impossible (1 object)");
}

#[test]
fn a_route_whose_protection_would_be_lost_is_withheld_until_it_is_named() {
    let withheld = run_with(&protected(), ["migrate", "-"])
        .exits(1)
        .prints_error("Impossible: PingSIX has no counterpart.\n  spec.http[0].authentication.hmacAuth: ")
        .prints_error("  spec.http[0]: The rule is not written")
        .prints_error("--allow-weaker ApisixRoute/shop/cart");
    assert!(!withheld.out.contains("backendRefs"), "{}", withheld.out);
    run_with(&protected(), ["migrate", "-", "--allow-weaker", "ApisixRoute/shop/cart"])
        .exits(0)
        .prints("backendRefs")
        .prints_error("Weaker: ")
        .prints_error("  The object is written without");
    // Another name, or another kind, changes nothing.
    for other in ["ApisixRoute/shop/carts", "ApisixTls/shop/cart"] {
        let run = run_with(&protected(), ["migrate", "-", "--allow-weaker", other]).exits(1);
        assert!(!run.out.contains("backendRefs"), "{}", run.out);
        run.prints_error("--allow-weaker has no effect on the object.");
    }
}

#[test]
fn an_unknown_field_is_a_loss_wherever_it_is() {
    for (from, to, field) in [
        (
            "    match: { paths: [/cart] }",
            "    match: { paths: [/cart], cookies: [a] }",
            "spec.http[0].match.cookies",
        ),
        ("  http:\n", "  owner: me\n  http:\n", "spec.owner"),
        ("    backends:", "    tenants: [a]\n    backends:", "spec.http[0].tenants"),
        ("servicePort: 80 }", "servicePort: 80, zone: a }", "spec.http[0].backends[0].zone"),
    ] {
        let run = run_with(&ROUTE.replace(from, to), ["migrate", "-"]).exits(1);
        assert!(!run.out.contains("backendRefs"), "{field}: {}", run.out);
        run.prints_error(&format!("  {field}: The field is not understood"));
    }
}

#[test]
fn the_report_has_three_formats_and_no_secret() {
    let input = format!(
        "{ROUTE}    plugins:\n    - name: jwt-auth\n      config: {{ secret: hunter2, key: [hunter2] }}\n\
         ---\napiVersion: apisix.apache.org/v2\nkind: ApisixConsumer\nmetadata: {{ name: alice, namespace: shop }}\n\
         spec:\n  authParameter:\n    keyAuth: {{ value: {{ key: hunter2, hunter: [hunter2] }} }}\n    \
         basicAuth: {{ value: {{ username: hunter2, password: {{ a: hunter2 }} }} }}\n"
    );
    for (format, mark) in
        [("text", "Impossible: "), ("markdown", "## Impossible\n"), ("json", "\"verdict\": \"impossible\"")]
    {
        let run = run_with(&input, ["migrate", "-", "--report", format]).exits(1).prints_error(mark);
        assert!(!run.err.contains("hunter2"), "{}", run.err);
        assert!(!outside_of_secrets(&run.out, "hunter2"), "{}", run.out);
    }
    let run = run_with(&input, ["migrate", "-", "--report", "json"]);
    let report: Value = serde_json::from_str(&run.err).unwrap();
    let entries = report["entries"].as_array().unwrap();
    let texts = ["object", "field", "verdict", "reason", "message"];
    assert!(entries.iter().all(|entry| texts.iter().all(|text| entry[text].is_string())));
    let causes = report["causes"].as_array().unwrap();
    assert!(causes.iter().all(|cause| cause["reason"].is_string() && cause["verdict"] != "exact"));
    let places: usize = causes.iter().map(|cause| cause["places"].as_array().unwrap().len()).sum();
    let exact = entries.iter().filter(|entry| entry["verdict"] == "exact").count();
    assert_eq!(report["counts"]["exact"], exact);
    assert_eq!(places + exact, entries.len());
}

#[test]
fn many_objects_with_one_problem_are_named_once_unless_all_are_asked_for() {
    let ingress = |number: usize| {
        format!(
            "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{ name: x{number}, namespace: ns, annotations: \
             {{ nginx.ingress.kubernetes.io/affinity: cookie }} }}\nspec: {{ rules: [{{ host: a.example, http: {{ paths: \
             [{{ path: /{number}, pathType: Prefix, backend: {{ service: {{ name: s, port: {{ number: 80 }} }} }} }}] }} }}] }}\n"
        )
    };
    let input = (0..42).map(ingress).collect::<Vec<_>>().concat();
    let summary = run_with(&input, ["migrate", "-"]).exits(1);
    assert_eq!(summary.err.matches("nginx.ingress.kubernetes.io/affinity: ").count(), 1, "{}", summary.err);
    summary
        .prints_error("\n    42 Ingresses: ns/x0, ns/x1, ns/x10, ns/x11, ns/x12 and 37 more\n")
        .prints_error(" exact, 0 limited, 42 impossible (42 objects)\n")
        .prints_error("how-to/from-ingress-nginx.md\n");
    let all = run_with(&input, ["migrate", "-", "--all"]).exits(1);
    assert_eq!(all.err.matches("nginx.ingress.kubernetes.io/affinity]: ").count(), 42, "{}", all.err);
    let markdown = run_with(&input, ["migrate", "-", "--all", "--report", "markdown"]).exits(1);
    markdown.prints_error("ns/x8, ns/x9 |\n").prints_error("\n### Ingress ns/x41\n");
}

#[test]
fn an_impossible_feature_is_accepted_by_the_name_of_its_object() {
    let affinity = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: { name: NAME, namespace: shop, annotations: \
                    { nginx.ingress.kubernetes.io/affinity: cookie } }\nspec: { rules: [{ host: a.example, http: { paths: \
                    [{ path: /NAME, pathType: Prefix, backend: { service: { name: s, port: { number: 80 } } } }] } }] }\n";
    let (a, b) = (affinity.replace("NAME", "a"), affinity.replace("NAME", "b"));
    let both = format!("{a}---\n{b}");
    run_with(&a, ["migrate", "-"]).exits(1).prints_error("Decide on what is withheld or impossible");
    run_with(&a, ["migrate", "-", "--allow-weaker", "Ingress/shop/a"])
        .exits(0)
        .prints_error("Test the manifests with check and explain");
    run_with(&both, ["migrate", "-", "--allow-weaker", "Ingress/shop/a"]).exits(1);
}

#[test]
fn manifests_and_report_go_to_files() {
    let files = Manifests::new(&[("in/route.yaml", ROUTE)]);
    let path = |name: &str| files.path().join(name);
    let (out, report) = (path("out"), path("report.md"));
    let run = command()
        .arg("migrate")
        .arg(path("in"))
        .args(["--report", "markdown", "--output-dir"])
        .arg(&out)
        .arg("--report-file")
        .arg(&report)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0));
    assert!(run.stdout.is_empty() && run.stderr.is_empty());
    let mut names: Vec<String> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["gateway_shop_pingsix.yaml", "httproute_shop_cart.yaml"]);
    assert!(fs::read_to_string(report).unwrap().starts_with("# Migration\n\n"));
}

#[test]
fn unusable_arguments_and_files_are_told_apart_from_losses() {
    run(["migrate"]).exits(2);
    run(["migrate", "/no/such/file"]).exits(2);
    run_with("a: [", ["migrate", "-"]).exits(2).prints_error("not valid YAML");
    run_with("a: 1", ["migrate", "-"]).exits(2);
    run_with("", ["migrate", "-"]).exits(2);
    for wrong in ["ApisixRoute", "ApisixRoute/cart", "/shop/cart"] {
        run_with(ROUTE, ["migrate", "-", "--allow-weaker", wrong]).exits(2);
    }
}

#[test]
fn a_secret_in_a_document_that_is_no_yaml_is_not_shown() {
    let run = run_with("key: \"hunter2\nb: [\n", ["migrate", "-"]).exits(2);
    assert!(!run.err.contains("hunter2"), "{}", run.err);
}

#[test]
fn hostile_input_is_refused_within_bounds() {
    // A product of lists that would be a million matches.
    let many = (0..1000).map(|number| format!("v{number}")).collect::<Vec<_>>().join(", ");
    let exprs = ["A", "B"]
        .map(|name| format!("{{ subject: {{ scope: Header, name: {name} }}, op: In, set: [{many}] }}"));
    let input = ROUTE.replace("paths: [/cart]", &format!("paths: [/cart], exprs: [{}]", exprs.join(", ")));
    run_with(&input, ["migrate", "-"]).exits(1).prints_error("more than 1024 matches");
    // A thousand rules with one name, path and different plugins.
    let rules: Vec<String> = (0..1000)
        .map(|number| {
            format!(
                "{{ name: x, priority: {number}, match: {{ paths: [/x] }}, backends: [{{ serviceName: s, servicePort: 80 }}], \
                 plugins: [{{ name: response-rewrite, config: {{ headers: {{ a: \"{number}\" }} }} }}] }}"
            )
        })
        .collect();
    let input = format!(
        "apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {{ name: x, namespace: ns }}\nspec: {{ http: [{}] }}\n",
        rules.join(", ")
    );
    run_with(&input, ["migrate", "-"]).exits(1).prints_error("Too many rules have the path");
}

#[test]
fn names_that_would_lead_out_of_a_directory_are_refused() {
    for name in ["../../evil", "a/b", ".", "UPPER", "a b"] {
        let input = ROUTE.replace("name: cart, namespace", &format!("name: \"{name}\", namespace"));
        let files = Manifests::new(&[("route.yaml", &input)]);
        let out = files.path().join("out");
        let run = command()
            .arg("migrate")
            .arg(files.path().join("route.yaml"))
            .arg("--output-dir")
            .arg(&out)
            .output();
        assert_eq!(run.unwrap().status.code(), Some(1), "{name}");
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_namespace_that_is_not_a_text_is_refused() {
    let run = run_with(&ROUTE.replace("namespace: shop", "namespace: true"), ["migrate", "-"]).exits(1);
    assert!(run.out.is_empty(), "{}", run.out);
    run.prints_error("metadata.namespace is the boolean true. Write it in quotes");
}

#[test]
fn nested_lists_and_values_of_wrong_types_do_no_harm() {
    // Lists within lists.
    let nested = (0..20)
        .fold("[]".to_owned(), |items, _| format!("[{{ apiVersion: v1, kind: List, items: {items} }}]"));
    run_with(&format!("apiVersion: v1\nkind: List\nitems: {nested}\n"), ["migrate", "-"]).exits(2);
    // Values of every wrong type, everywhere.
    for value in ["7", "[]", "{}", "true", "null", "\"\"", "[[]]", "[{}]", "[null]", "-1"] {
        for field in
            ["name", "match", "backends", "plugins", "authentication", "priority", "timeout", "upstreams"]
        {
            let input = format!(
                "apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {{ name: x, namespace: ns }}\n\
                 spec: {{ http: [{{ {field}: {value} }}], stream: [{{ {field}: {value} }}] }}\n"
            );
            let run = run_with(&input, ["migrate", "-"]);
            assert!(matches!(run.code, 0 | 1), "{field}: {value}: {} {}", run.code, run.err);
        }
    }
}

#[test]
fn plugins_with_nonsensical_configurations_do_no_harm() {
    let plugins = [
        "key-auth",
        "basic-auth",
        "jwt-auth",
        "csrf",
        "ip-restriction",
        "real-ip",
        "cors",
        "limit-count",
        "proxy-rewrite",
        "response-rewrite",
        "redirect",
        "fault-injection",
        "mocking",
        "gzip",
        "brotli",
        "request-id",
        "grpc-web",
        "proxy-cache",
        "prometheus",
        "file-logger",
    ];
    let fields = [
        "header",
        "query",
        "key",
        "whitelist",
        "trusted_addresses",
        "allow_origins",
        "max_age",
        "count",
        "time_window",
        "policy",
        "uri",
        "regex_uri",
        "host",
        "headers",
        "ret_code",
        "delay",
        "abort",
        "response_status",
        "comp_level",
        "header_name",
        "cache_ttl",
        "cache_method",
        "cache_http_status",
        "_meta",
    ];
    for value in ["7", "[[]]", "{ a: [] }", "\"\"", "18446744073709551615", "-1", "1.5", "[\"^(\", \"/$9\"]"]
    {
        let config: Vec<String> = fields.iter().map(|field| format!("{field}: {value}")).collect();
        let rules: Vec<String> = plugins
            .iter()
            .map(|name| {
                let plugin = format!("{{ name: {name}, config: {{ {} }} }}", config.join(", "));
                format!("{{ name: {name}, match: {{ paths: [/{name}] }}, plugins: [{plugin}] }}")
            })
            .collect();
        let input = format!(
            "apiVersion: apisix.apache.org/v2\nkind: ApisixRoute\nmetadata: {{ name: x, namespace: ns }}\n\
             spec: {{ http: [{}] }}\n",
            rules.join(", ")
        );
        run_with(&input, ["migrate", "-"]).exits(1);
    }
}

#[test]
fn control_characters_of_the_input_do_not_reach_a_terminal() {
    let run =
        run_with(&ROUTE.replace("paths: [/cart]", "paths: [\"/\\u001b[2J\"]"), ["migrate", "-"]).exits(1);
    assert!(!run.err.contains('\u{1b}'));
}

#[test]
fn the_output_of_a_migration_stays_as_it_is() {
    let first = run_with(ROUTE, ["migrate", "-"]).exits(0);
    let second = run_with(&first.out, ["migrate", "-"]).exits(0);
    assert_eq!(first.out, second.out);
}

/// A Gateway and an HTTPRoute of another controller, and objects of this one.
const OTHERS: &str = r"
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: web, namespace: shop }
spec: { gatewayClassName: apisix, listeners: [{ name: http, port: 80, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: own, namespace: shop }
spec: { gatewayClassName: pingsix, listeners: [{ name: http, port: 80, protocol: HTTP }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: both, namespace: shop }
spec: { parentRefs: [{ name: web }, { name: own }], rules: [{ backendRefs: [{ name: site, port: 80 }] }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: own, namespace: shop }
spec: { parentRefs: [{ name: own }], rules: [{ backendRefs: [{ name: site, port: 80 }] }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: both-next, namespace: shop }
spec: { parentRefs: [{ name: own }], rules: [{ backendRefs: [{ name: site, port: 80 }] }] }
";

#[test]
fn copies_have_new_names_and_parents_and_replace_nothing() {
    let arguments = ["migrate", "-", "--only-converted", "--name-suffix", "-next"];
    let run = run_with(OTHERS, arguments).exits(0);
    let documents = serde_saphyr::from_multiple::<Value>(&run.out).unwrap();
    let names: Vec<&str> =
        documents.iter().map(|document| document["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web-next", "both-next-2"]);
    assert_eq!(documents[0]["spec"]["gatewayClassName"], "pingsix");
    assert_eq!(documents[1]["spec"]["parentRefs"], serde_json::json!([{ "name": "web-next" }]));
    for wrong in ["", "-", "Next", "-next.", "../x"] {
        run_with(OTHERS, ["migrate", "-", "--name-suffix", wrong]).exits(2);
    }
}

#[test]
fn routes_of_a_gateway_that_is_withheld_stay_as_they_are() {
    let proxy = "---\napiVersion: apisix.apache.org/v1alpha1\nkind: GatewayProxy\nmetadata: { name: proxy, namespace: shop }\n\
                 spec: { plugins: [{ name: openid-connect, enabled: true, config: {} }] }\n";
    let web = "spec: { gatewayClassName: apisix, ";
    let parameters =
        "infrastructure: { parametersRef: { group: apisix.apache.org, kind: GatewayProxy, name: proxy } }, ";
    let input = OTHERS.replace(web, &format!("{web}{parameters}"));
    let arguments = ["migrate", "-", "--only-converted", "--name-suffix", "-next"];
    let run = run_with(&format!("{input}{proxy}"), arguments).exits(1);
    assert!(run.out.is_empty(), "{}", run.out);
    run.prints_error("The object has no copy, because its parents have none.");
}

#[test]
fn a_policy_of_the_input_is_not_for_a_copy_by_itself() {
    let policy = "---\napiVersion: pingsix.io/v1alpha1\nkind: SecurityPolicy\nmetadata: { name: keys, namespace: shop }\n\
                  spec:\n  targetRefs: [{ group: gateway.networking.k8s.io, kind: HTTPRoute, name: both }]\n  \
                  authorization: { allow: [192.0.2.0/24] }\n";
    run_with(&format!("{OTHERS}{policy}"), ["migrate", "-", "--name-suffix", "-copy"])
        .exits(1)
        .prints_error("The policy is for HTTPRoute shop/both. Add its copy both-copy to the targets.");
}

#[test]
fn objects_that_stay_as_they_are_can_be_left_out() {
    let input = fs::read_to_string(root().join("keys/input.yaml")).unwrap();
    let run = run_with(&input, ["migrate", "-", "--only-converted"]).exits(0);
    for kind in ["GatewayClass", "Service", "EndpointSlice"] {
        assert!(!run.out.contains(&format!("kind: {kind}\n")), "{}", run.out);
    }
    run.prints("kind: HTTPRoute\n").prints("kind: SecurityPolicy\n").prints("name: consumer-keys-apisix\n");
}

#[test]
fn lists_of_kubectl_are_read() {
    let item: Value = serde_saphyr::from_str(ROUTE).unwrap();
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": [item] });
    let run = run_with(&list.to_string(), ["migrate", "-"]).exits(0);
    assert_eq!(run.out, run_with(ROUTE, ["migrate", "-"]).out);
}
