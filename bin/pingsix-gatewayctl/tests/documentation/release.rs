//! The workflows run pinned actions with named permissions, and the chart names its definitions.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::root;

/// The workflows, by their names.
fn workflows() -> Vec<(String, String)> {
    let folder = root().join(".github/workflows");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    files
        .map(|file| (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap()))
        .collect()
}

/// Whether a line names an action by its commit, with the version in a comment, or a workflow of this repository.
fn is_pinned(uses: &str) -> bool {
    if uses.starts_with("./") {
        return true;
    }
    let Some((action, version)) = uses.split_once(" # v") else { return false };
    let commit = action.split_once('@').map(|(_, commit)| commit).unwrap_or_default();
    commit.len() == 40
        && commit.chars().all(|character| character.is_ascii_hexdigit())
        && version.starts_with(|character: char| character.is_ascii_digit())
}

#[test]
fn every_action_is_pinned_by_its_commit() {
    let mut found = 0;
    for (name, text) in workflows() {
        for line in text.lines() {
            let Some(uses) = line.trim_start().trim_start_matches("- ").strip_prefix("uses: ") else {
                continue;
            };
            assert!(is_pinned(uses), "{name}: {uses}");
            found += 1;
        }
        assert_eq!(text.matches("uses:").count(), text.matches("uses: ").count(), "{name}");
    }
    assert!(found > 4, "{found}");
    assert!(!is_pinned("actions/checkout@v7"));
    assert!(!is_pinned("actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1"));
    assert!(!is_pinned("actions/checkout@3d3c42e # v7"));
}

#[test]
fn every_workflow_and_every_job_names_its_permissions() {
    for (name, text) in workflows() {
        let workflow: Value = serde_saphyr::from_str(&text).unwrap();
        let read_at_most = |permissions: &Value| {
            let permissions = permissions.as_object().unwrap_or_else(|| panic!("{name}: {permissions}"));
            permissions.values().all(|right| right == "read")
        };
        assert!(read_at_most(&workflow["permissions"]), "{name}");
        for (job, definition) in workflow["jobs"].as_object().unwrap() {
            let is_publication = name == "release.yml" && job == "publish";
            assert!(is_publication || read_at_most(&definition["permissions"]), "{name}: {job}");
            assert!(definition["permissions"].is_object(), "{name}: {job}");
        }
        // The token of the run is enough.
        assert!(!text.contains("secrets."), "{name}");
        assert!(!text.contains("pull_request_target"), "{name}");
    }
}

/// The kind, the version and the name of a definition.
type Definition = (String, String, String);

#[test]
fn the_chart_tells_artifact_hub_every_definition() {
    let read = |path: &str| -> Value {
        serde_saphyr::from_str(&fs::read_to_string(root().join(path)).unwrap()).unwrap()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let chart = read("deploy/charts/pingsix-gateway/Chart.yaml");
    let told: Vec<Value> =
        serde_saphyr::from_str(chart["annotations"]["artifacthub.io/crds"].as_str().unwrap()).unwrap();
    let told: BTreeSet<Definition> =
        told.iter().map(|crd| (text(&crd["kind"]), text(&crd["version"]), text(&crd["name"]))).collect();
    let files = fs::read_dir(root().join("crds")).unwrap().map(|entry| entry.unwrap().file_name());
    let files = files.map(|name| name.into_string().unwrap()).filter(|name| name.starts_with("pingsix.io_"));
    let known: BTreeSet<Definition> = files
        .map(|name| {
            let crd = read(&format!("crds/{name}"));
            let version = text(&crd["spec"]["versions"][0]["name"]);
            (text(&crd["spec"]["names"]["kind"]), version, text(&crd["metadata"]["name"]))
        })
        .collect();
    assert_eq!(told, known);
}
