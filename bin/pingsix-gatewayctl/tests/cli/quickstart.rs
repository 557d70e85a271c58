//! The sample requests of `testdata/quickstart`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::{quickstart, run};

#[test]
fn every_sample_request_ends_where_it_should() {
    let text = fs::read_to_string(quickstart().with_extension("requests.yaml")).unwrap();
    let readme = fs::read_to_string(quickstart().join("README.md")).unwrap();
    let samples: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
    assert!(samples.len() > 10);
    for sample in samples {
        let request = sample["request"].as_str().unwrap();
        let (method, url) = request.split_once(' ').unwrap();
        assert!(readme.contains(&format!("`{request}`")), "{request} is not in README.md");
        let mut arguments = vec!["explain".to_owned(), quickstart().display().to_string()];
        arguments.extend([method.to_owned(), url.to_owned(), "-o".to_owned(), "json".to_owned()]);
        for (name, value) in sample["headers"].as_object().into_iter().flatten() {
            arguments.extend(["-H".to_owned(), format!("{name}: {}", value.as_str().unwrap())]);
        }
        let run = run(&arguments);
        let explanations = run.json();
        let [explanation] = explanations.as_array().unwrap().as_slice() else {
            panic!("{request}: {explanations}")
        };
        check(request, &sample, explanation);
        assert_eq!(run.code, i32::from(sample.get("status").is_some()), "{request}");
    }
}

fn check(request: &str, sample: &Value, explanation: &Value) {
    let answer = &explanation["answer"];
    if let Some(status) = sample.get("status") {
        assert_eq!(
            (answer["kind"].as_str(), status.as_u64()),
            (Some("notFound"), Some(404)),
            "{request}: {explanation}"
        );
        assert_eq!(answer["cause"], sample["cause"], "{request}: {explanation}");
        return;
    }
    let step =
        explanation["steps"].as_array().unwrap().iter().find(|step| step["result"] == "decides").unwrap();
    let source = &step["source"];
    let rule = format!("{} {}", source["object"].as_str().unwrap(), source["field"].as_str().unwrap());
    assert_eq!(rule, sample["rule"].as_str().unwrap(), "{request}");
    let backends = answer["backends"].as_array().unwrap();
    let weights: BTreeMap<&str, u64> = backends
        .iter()
        .map(|backend| (backend["service"].as_str().unwrap(), backend["weight"].as_u64().unwrap()))
        .collect();
    let expected = sample["backends"].as_object().unwrap();
    let expected: BTreeMap<&str, u64> =
        expected.iter().map(|(name, weight)| (name.as_str(), weight.as_u64().unwrap())).collect();
    assert_eq!(weights, expected, "{request}");
    if let Some(endpoints) = sample.get("endpoints") {
        let found: Vec<&String> =
            backends.iter().flat_map(|backend| backend["endpoints"].as_object().unwrap().keys()).collect();
        assert_eq!(serde_json::json!(found), *endpoints, "{request}");
    }
}

#[test]
fn the_manifests_are_without_fault_and_pingsix_would_accept_them() {
    let manifests = quickstart();
    let manifests = manifests.to_str().unwrap();
    run(["check", "--strict", manifests]).exits(0).prints("0 errors, 0 warnings");
    for layout in ["shared", "per-port"] {
        let translated = run(["translate", manifests, "--layout", layout]).exits(0);
        crate::support::run_with(&translated.out, ["check", "--strict", "--pingsix", "-"]).exits(0);
    }
}
