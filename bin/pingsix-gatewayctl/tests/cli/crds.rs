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
