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

/// The printed value of a variable.
fn option<'a>(printed: &'a Value, variable: &str) -> Option<&'a Value> {
    let name = variable.strip_prefix("PINGSIX_GATEWAY_")?;
    let of = |key: &str| key.to_uppercase().replace('-', "_");
    printed.as_object()?.iter().find_map(|(key, value)| match of(key) {
        whole if whole == name => Some(value),
        section => {
            let rest = name.strip_prefix(&section)?.strip_prefix('_')?;
            option(value, &format!("PINGSIX_GATEWAY_{rest}"))
        }
    })
}

/// The content of a folder's ConfigMap, with the one below.
fn variables(folder: &str) -> BTreeMap<String, String> {
    let of = |config: &Value| -> BTreeMap<String, String> {
        serde_json::from_value(config["data"].clone()).unwrap()
    };
    let below = match folder {
        "own" | "managed" => "cluster-wide",
        "second" => "namespaced",
        folder => return of(&manifest(&format!("{folder}/configuration.yaml"))),
    };
    let kustomization = manifest(&format!("{folder}/kustomization.yaml"));
    let mut variables = variables(below);
    if kustomization["resources"].as_array().unwrap().iter().any(|resource| resource == "../data-planes") {
        variables.extend(of(&manifest("data-planes/configuration.yaml")));
    }
    if folder == "managed" {
        return variables;
    }
    let patches = kustomization["patches"].as_array().unwrap().iter();
    let texts = patches.map(|patch| patch["patch"].as_str().unwrap());
    let patches: Vec<Value> = texts
        .filter(|text| text.contains("kind: ConfigMap"))
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .collect();
    let [config] = patches.as_slice() else { panic!("{folder}: {patches:?}") };
    variables.extend(of(config));
    variables
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
    for folder in ["cluster-wide", "managed", "namespaced", "own", "second"] {
        let variables = variables(folder);
        let output =
            program().args(&arguments).arg("--print-config").envs(&own).envs(&variables).output().unwrap();
        assert!(output.status.success(), "{folder}: {}", String::from_utf8_lossy(&output.stderr));
        let printed: Value = serde_saphyr::from_slice(&output.stdout).unwrap();
        assert_eq!(printed["leader"]["namespace"], "one", "the Pod's own");
        // A variable that is none is not refused, because Services set such as well: so each has to show.
        for (variable, value) in &variables {
            let found = option(&printed, variable).unwrap_or_else(|| panic!("{variable} is no option"));
            assert!(found == value || found[0] == **value, "{variable} is {found}");
        }
    }
}
