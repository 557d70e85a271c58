//! The manifests of `deploy/` ask for what the program takes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::program;

/// The only document of a file of `deploy/`.
fn manifest(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name);
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn arguments_and_variables_of_the_manifests_can_be_used() {
    let deployment = manifest("base/deployment.yaml");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    let mut own = BTreeMap::new();
    for variable in container["env"].as_array().unwrap() {
        own.insert(variable["name"].as_str().unwrap(), "one");
    }
    for folder in ["cluster-wide", "namespaced"] {
        let config = manifest(&format!("{folder}/configuration.yaml"));
        let variables: BTreeMap<String, String> = serde_json::from_value(config["data"].clone()).unwrap();
        let output =
            program().args(&arguments).arg("--print-config").envs(&own).envs(&variables).output().unwrap();
        assert!(output.status.success(), "{folder}: {}", String::from_utf8_lossy(&output.stderr));
        let printed: Value = serde_saphyr::from_slice(&output.stdout).unwrap();
        assert_eq!(printed["leader"]["namespace"], "one", "the Pod's own");
        // A variable that is none is not refused, because Services set such as well: so each has to show.
        for (variable, value) in &variables {
            let key = variable.strip_prefix("PINGSIX_GATEWAY_").unwrap().to_lowercase().replace('_', "/");
            let found =
                printed.pointer(&format!("/{key}")).unwrap_or_else(|| panic!("{variable} is no option"));
            assert!(found == value || found[0] == **value, "{variable} is {found}");
        }
    }
}
