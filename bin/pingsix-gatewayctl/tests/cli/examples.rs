//! `testdata/examples`: manifest sets of users, the output of `check` for each, and the destinations of requests.
//!
//! `UPDATE_EXAMPLES=1` writes the present output of `check` beside the sets; read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::sample;
use crate::support::{Run, command, run_with};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/examples")
}

/// A directory of manifests.
struct Set {
    name: String,
}

fn sets() -> Vec<Set> {
    let entries = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names.into_iter().map(|name| Set { name }).collect()
}

impl Set {
    fn read(&self, kind: &str) -> String {
        let path = root().join(format!("{}.{kind}", self.name));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The flags of the line `# Options:` of the requests.
    fn options(&self) -> Vec<String> {
        let requests = self.read("requests.yaml");
        let line = requests.lines().find_map(|line| line.strip_prefix("# Options: "));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    /// Runs a command on the set from the directory above it, so that files are named as in the expectations.
    fn run(&self, subcommand: &str, arguments: &[String]) -> Run {
        let output = command()
            .current_dir(root())
            .args([subcommand, &self.name])
            .args(arguments)
            .args(self.options())
            .output()
            .unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn check(&self, arguments: &[&str]) -> Run {
        self.run("check", &arguments.iter().map(|argument| (*argument).to_owned()).collect::<Vec<_>>())
    }

    /// Compares output with its expectation file, or rewrites the file.
    fn expect(&self, kind: &str, found: &str) {
        let path = root().join(format!("{}.{kind}", self.name));
        if std::env::var_os("UPDATE_EXAMPLES").is_some_and(|value| !value.is_empty()) {
            fs::write(&path, found).unwrap();
        }
        let held = fs::read_to_string(&path).unwrap_or_default();
        assert!(held == found, "{} should be:\n{found}", path.display());
    }

    fn report(&self) -> Value {
        self.check(&["-o", "json"]).json()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn there_are_sets_of_every_kind_and_the_readme_says_what_check_says() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let sets = sets();
    assert!(sets.len() > 12, "{} sets", sets.len());
    for set in &sets {
        let summary = set.read("check.txt").lines().last().unwrap().to_owned();
        let (tally, _) = summary.split_once(" (").unwrap();
        let row = readme.lines().find(|line| line.starts_with(&format!("| [{0}]({0}) |", set.name)));
        let row = row.unwrap_or_else(|| panic!("README.md does not tell of {}", set.name));
        assert!(row.ends_with(&format!("| {tally} |")), "{row} should end with {tally}");
    }
    let manifests = sets.iter().flat_map(|set| ingredients(&root().join(&set.name)));
    let manifests: String = manifests.collect();
    for kind in pingsix_translate::Kind::ALL {
        assert!(manifests.contains(&format!("kind: {kind}\n")), "no set has a {kind}");
    }
}

/// The texts of all files below a directory.
fn ingredients(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(
            |path| {
                if path.is_dir() { ingredients(&path) } else { vec![fs::read_to_string(path).unwrap()] }
            },
        )
        .collect()
}

#[test]
fn check_says_of_every_set_what_is_expected() {
    for set in sets() {
        let checked = set.check(&[]);
        set.expect("check.txt", &checked.out);
        let report = set.report();
        let count = |level: &str| report[level].as_u64().unwrap();
        let (errors, warnings) = (count("errors"), count("warnings"));
        assert_eq!(errors > 0, set.name == "mistakes", "{}:\n{}", set.name, checked.out);
        assert_eq!((checked.code, &*checked.err), (i32::from(errors > 0), ""), "{}", set.name);
        let strict = set.check(&["--strict"]);
        assert_eq!(strict.code, i32::from(errors + warnings > 0), "{}", set.name);
        assert_eq!(strict.out, checked.out, "{}", set.name);
    }
}

#[test]
fn every_finding_has_a_file_and_a_line_and_those_about_objects_name_them() {
    for set in sets() {
        for finding in set.report()["findings"].as_array().unwrap() {
            let file = root().join(text(&finding["file"]));
            let lines = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{finding}")).lines().count();
            let line = usize::try_from(finding["line"].as_u64().unwrap()).unwrap();
            assert!((1..=lines).contains(&line), "{finding}");
            let of_a_document =
                matches!(text(&finding["reason"]), "NotYaml" | "NotAManifest" | "UnknownKind");
            assert_eq!(finding.get("object").is_none(), of_a_document, "{finding}");
            for field in ["severity", "reason", "message"] {
                assert!(!text(&finding[field]).is_empty(), "{finding}");
            }
            let message = text(&finding["message"]);
            assert!(message.ends_with(['.', '?']), "{message}");
        }
    }
}

#[test]
fn the_readme_has_every_field_of_a_report() {
    let readme = include_str!("../../README.md");
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let report = Set { name: "mistakes".to_owned() }.report();
    let findings = report["findings"].as_array().unwrap();
    let fields: BTreeSet<String> = findings.iter().flat_map(names).chain(names(&report)).collect();
    let rows = readme
        .lines()
        .skip_while(|line| !line.starts_with("## The report"))
        .filter(|line| line.starts_with("| `"));
    let documented: BTreeSet<String> = rows
        .filter_map(|row| row.split(" | ").next())
        .flat_map(|names| names.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect();
    assert_eq!(fields, documented);
}

#[test]
fn the_report_of_mistakes_is_what_a_pipeline_relies_on() {
    let set = Set { name: "mistakes".to_owned() };
    set.expect("check.json", &set.check(&["-o", "json"]).exits(1).out);
}

#[test]
fn pingsix_accepts_what_every_set_becomes() {
    for set in sets() {
        for layout in ["shared", "per-port"] {
            let translated = set.run("translate", &["--layout".to_owned(), layout.to_owned()]);
            assert_eq!(
                translated.code,
                i32::from(set.name == "mistakes"),
                "{}: {}",
                set.name,
                translated.err
            );
            let documents = translated.out.split("---\n# data plane");
            let for_pingsix: Vec<_> =
                documents.filter(|text| !text.contains("# for a stream proxy, not for PingSIX")).collect();
            run_with(&for_pingsix.join("---\n#"), ["check", "--strict", "--pingsix", "-"]).exits(0);
        }
    }
}

#[test]
fn every_sample_request_ends_where_it_should() {
    let problems = sets().into_iter().flat_map(|set| {
        let problems =
            sample::check(&set.read("requests.yaml"), &|arguments| set.run("explain", arguments).out);
        problems.into_iter().map(move |problem| format!("{}: {problem}", set.name))
    });
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The fields that an API server adds to an object.
fn as_api_server_returns(mut object: Value) -> Value {
    let applied = object.to_string();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.insert("uid".to_owned(), json!("0c9f3a52-9d1e-4f0b-8f7b-3f3f6a2b7a11"));
        metadata.insert("resourceVersion".to_owned(), json!("4711"));
        metadata.insert("generation".to_owned(), json!(3));
        metadata.insert("creationTimestamp".to_owned(), json!("2026-03-01T08:00:00Z"));
        metadata.insert(
            "managedFields".to_owned(),
            json!([{ "manager": "kubectl-client-side-apply", "operation": "Update", "fieldsType": "FieldsV1",
                "time": "2026-03-01T08:00:00Z", "fieldsV1": { "f:metadata": { "f:annotations": {} }, "f:spec": {} } }]),
        );
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations["kubectl.kubernetes.io/last-applied-configuration"] = json!(applied);
    }
    match object["kind"].as_str().unwrap() {
        "Service" => {
            object["spec"]["clusterIP"] = json!("10.96.0.7");
            object["spec"]["clusterIPs"] = json!(["10.96.0.7"]);
            object["spec"]["internalTrafficPolicy"] = json!("Cluster");
            object["spec"]["ipFamilies"] = json!(["IPv4"]);
            object["spec"]["ipFamilyPolicy"] = json!("SingleStack");
            object["spec"]["sessionAffinity"] = json!("None");
            object["spec"]["type"] = json!("ClusterIP");
            object["status"] = json!({ "loadBalancer": {} });
        }
        "HTTPRoute" | "GRPCRoute" => {
            let condition = json!({ "type": "Accepted", "status": "False", "reason": "Pending", "message": "-",
                "lastTransitionTime": "2026-03-01T08:00:00Z", "observedGeneration": 2 });
            let parent = json!({ "controllerName": "gateways.example/controller", "parentRef": { "name": "front" },
                "conditions": [condition] });
            object["status"] = json!({ "parents": [parent] });
        }
        "Gateway" | "GatewayClass" | "ListenerSet" => {
            object["status"] = json!({ "conditions": [], "listeners": [] });
        }
        "Namespace" => {
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["status"] = json!({ "phase": "Active" });
        }
        _ => {}
    }
    object
}

#[test]
fn output_of_kubectl_is_checked_like_the_applied_files() {
    for set in sets().into_iter().filter(|set| set.name != "mistakes") {
        let objects = ingredients(&root().join(&set.name)).into_iter().flat_map(|text| {
            let documents = text.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
            documents.collect::<Vec<_>>()
        });
        let kinds: BTreeMap<String, Vec<Value>> = objects
            .filter(|object| object.get("kind").is_some_and(|kind| kind != "Kustomization"))
            .fold(BTreeMap::new(), |mut kinds, object| {
                let kind = text(&object["kind"]).to_owned();
                kinds.entry(kind).or_insert_with(Vec::new).push(as_api_server_returns(object));
                kinds
            });
        let items: Vec<Value> = kinds.into_values().flatten().collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "" }, "items": items });
        let list = serde_saphyr::to_string(&list).unwrap();
        let mut arguments = vec!["check".to_owned(), "-".to_owned(), "-o".to_owned(), "json".to_owned()];
        arguments.extend(set.options());
        let given_out = run_with(&list, &arguments).exits(0).json();
        // Positions, and documents of other formats, are not in the cluster.
        let without_positions = |report: &Value| {
            let findings = report["findings"].as_array().unwrap().iter();
            let mut without_positions: Vec<Value> = findings
                .filter(|finding| finding["severity"] != "info")
                .map(|finding| {
                    json!([finding["object"], finding["field"], finding["reason"], finding["message"]])
                })
                .collect();
            without_positions.sort_by_key(Value::to_string);
            without_positions
        };
        assert_eq!(without_positions(&given_out), without_positions(&set.report()), "{}", set.name);
        let lines: Vec<&Value> =
            given_out["findings"].as_array().unwrap().iter().map(|finding| &finding["line"]).collect();
        assert!(lines.iter().all(|line| line.as_u64() > Some(1)), "{}: {lines:?}", set.name);
    }
}
