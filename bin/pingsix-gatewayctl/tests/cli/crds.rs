//! Definitions of our own kinds, compared with `crds/`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};

#[test]
fn the_files_are_what_the_types_say() {
    let output = Command::cargo_bin("pingsix-gatewayctl").unwrap().arg("crds").output().unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter(|path| !path.ends_with("kustomization.yaml"))
        .collect();
    files.sort();
    let kustomization = fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
    let kustomization: Value = serde_saphyr::from_str(&kustomization).unwrap();
    let names: Vec<_> = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(kustomization["resources"], json!(names));
    let files: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(files.join("---\n") == printed, "run `just crds`");
}

#[test]
fn each_policy_is_listed_with_its_target_and_its_acceptance() {
    let output = Command::cargo_bin("pingsix-gatewayctl").unwrap().arg("crds").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let definitions = printed.split("---\n").filter(|text| !text.trim().is_empty());
    let mut policies = 0;
    for definition in definitions.map(|text| serde_saphyr::from_str::<Value>(text).unwrap()) {
        let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
        let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
        let of_priority = |priority: u64| -> Vec<&str> {
            let has = |column: &&Value| column["priority"].as_u64().unwrap_or_default() == priority;
            columns.iter().filter(has).map(|column| column["name"].as_str().unwrap()).collect()
        };
        if kind.ends_with("Policy") {
            policies += 1;
            let expected: &[&str] = if kind == "BackendTrafficPolicy" {
                &["Target", "Accepted", "Age"]
            } else {
                &["Kind", "Target", "Accepted", "Age"]
            };
            assert_eq!((&*of_priority(0), &*of_priority(1)), (expected, &["Reason"][..]), "{kind}");
        }
        assert!(of_priority(0).contains(&"Age"), "{kind}");
    }
    assert_eq!(policies, 3);
}
