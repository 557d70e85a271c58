//! The claims of the documentation name checks that exist.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

mod examples;
mod generated;
mod guide;
mod links;
mod outside;
mod release;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// For each row of the table under a heading: the row, and what its last column has in backticks.
fn named_checks<'a>(document: &'a str, heading: &str) -> Vec<(&'a str, Vec<&'a str>)> {
    document
        .lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let cell = line.trim_end_matches('|').rsplit('|').next().unwrap();
            (line, cell.split('`').skip(1).step_by(2).collect())
        })
        .collect()
}

#[test]
fn every_invariant_names_a_check_that_exists() {
    let document = fs::read_to_string(root().join("docs/explanation/architecture.md")).unwrap();
    let checks = named_checks(&document, "## Invariants");
    assert!(checks.len() >= 10, "the table of invariants is missing");
    for (index, (line, check)) in checks.into_iter().enumerate() {
        assert!(line.starts_with(&format!("| {} |", index + 1)), "{} comes next: {line}", index + 1);
        assert!(check.first().is_some_and(|first| is_file(first)), "no check: {line}");
        let (mut file, mut text) = ("", String::new());
        for name in check {
            if is_file(name) {
                file = name;
                text = fs::read_to_string(root().join(file))
                    .unwrap_or_else(|_| panic!("no file {file}: {line}"));
            } else {
                assert!(text.contains(&format!("fn {name}(")), "no test {name} in {file}");
            }
        }
    }
}

/// Tests have names without dots and slashes.
fn is_file(name: &str) -> bool {
    name.contains(['.', '/'])
}

#[test]
fn invariants_are_numbered_in_order() {
    let document = fs::read_to_string(root().join("docs/explanation/architecture.md")).unwrap();
    for (index, (line, _)) in named_checks(&document, "## Invariants").into_iter().enumerate() {
        assert!(
            line.starts_with(&format!("| {} |", index + 1)),
            "this should be number {}: {line}",
            index + 1
        );
    }
}

/// The fields of a schema by their paths. A type of Kubernetes is one field, and so is a list.
fn fields(schema: &Value, path: &str, found: &mut Vec<String>) {
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) if !path.ends_with(".resources") => {
            for (name, schema) in properties {
                fields(schema, &format!("{path}.{name}"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn every_field_of_our_own_kinds_is_in_the_mapping() {
    let kinds = [
        ("BackendTrafficPolicy", "backendtrafficpolicies", 21),
        ("HTTPRouteFilter", "httproutefilters", 5),
        ("PingsixProxy", "pingsixproxies", 26),
        ("SecurityPolicy", "securitypolicies", 28),
        ("TrafficPolicy", "trafficpolicies", 23),
    ];
    for (kind, plural, least) in kinds {
        every_field_of(kind, plural, least);
    }
}

fn every_field_of(kind: &str, plural: &str, least: usize) {
    let definition = fs::read_to_string(root().join(format!("crds/pingsix.io_{plural}.yaml"))).unwrap();
    let definition: Value = serde_saphyr::from_str(&definition).unwrap();
    let spec = definition.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec").unwrap();
    let mut known = Vec::new();
    fields(spec, "spec", &mut known);
    assert!(known.len() >= least, "{known:?}");
    let document = fs::read_to_string(root().join("docs/reference/mapping.md")).unwrap();
    let section = document.lines().skip_while(|line| **line != format!("## {kind}")).skip(1);
    let rows = section.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with('|'));
    let named: BTreeSet<&str> =
        rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect();
    let missing: Vec<&String> = known
        .iter()
        .filter(|field| {
            // An object that is described as a whole has all its fields.
            let mut paths = field
                .match_indices('.')
                .map(|(end, _)| &field[..end])
                .filter(|path| path.matches('.').count() > 1);
            !named.contains(field.as_str()) && !paths.any(|path| named.contains(path))
        })
        .collect();
    assert!(missing.is_empty(), "no row names {missing:?}");
    for row in named.iter().filter(|name| name.starts_with("spec.")) {
        let is_known = known.iter().any(|field| field == row || field.starts_with(&format!("{row}.")));
        assert!(is_known, "there is no field {row}");
    }
}

/// Registries show the README of a crate outside of the repository.
#[test]
fn links_of_what_is_published_lead_into_the_repository() {
    let files = [
        "pingsix-translate",
        "pingsix-sink",
        "pingsix-gateway-api",
        "bin/pingsix-gatewayctl",
        "bin/pingsix-gateway-controller",
        "bin/pingsix-gateway-sidecar",
        "bin/pingsix-migrate",
    ];
    let repository = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");
    let mut found = 0;
    for file in files {
        let text = fs::read_to_string(root().join(file).join("README.md")).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(link, _)| link)) {
            let Some(path) = link.strip_prefix(repository) else {
                assert!(
                    link.starts_with("https://"),
                    "{file} has a link to {link}, which leads nowhere on a registry"
                );
                continue;
            };
            let path = path.split_once('#').map_or(path, |(path, _)| path);
            assert!(root().join(path).is_file(), "{file} has a link to {path}, which is not there");
            found += 1;
        }
    }
    assert!(found > 3, "{found}");
}

#[test]
fn every_deviation_names_a_test_that_shows_it() {
    let document = fs::read_to_string(root().join("docs/reference/mapping.md")).unwrap();
    let tests = fs::read_to_string(root().join("pingsix-translate/tests/deviations.rs")).unwrap();
    let deviations = named_checks(&document, "## Deviations");
    assert!(!deviations.is_empty());
    for (line, names) in &deviations {
        let [name] = names.as_slice() else { panic!("no test: {line}") };
        assert!(tests.contains(&format!("fn {name}(")), "no test {name}");
    }
    assert_eq!(tests.matches("#[test]").count(), deviations.len(), "a test has no row");
}

/// The list of the adversary for requests, and the table of the guide.
#[test]
fn the_guide_has_a_row_for_each_limit_of_protection() {
    let list = root().join("pingsix-gateway-api/tests/contract/hostile/limits.yaml");
    let list = fs::read_to_string(list).unwrap();
    let known: BTreeSet<&str> = list
        .lines()
        .filter_map(|line| line.strip_prefix("  row: "))
        .map(|row| row.trim_matches('\''))
        .collect();
    let guide = fs::read_to_string(root().join("docs/how-to/protect-a-route.md")).unwrap();
    let heading = "### Known limits";
    let rows = guide.lines().skip_while(|line| *line != heading).skip(1);
    let rows = rows.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with('|')).skip(2);
    let rows: BTreeSet<&str> = rows.map(|row| row.split('|').nth(1).unwrap().trim()).collect();
    assert!(!known.is_empty());
    assert_eq!(known, rows, "limits.yaml, and the table of protect-a-route.md");
}

#[test]
fn every_change_is_one_entry_of_a_list() {
    let changes = root().join("changes");
    let names_in = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let readers = ["authors", "libraries", "operators"];
    let mut expected: BTreeSet<String> = readers.iter().map(|reader| (*reader).to_owned()).collect();
    expected.insert("README.md".to_owned());
    assert_eq!(names_in(&changes), expected, "a folder for each reader");
    for reader in readers {
        let folder = changes.join(reader);
        for name in names_in(&folder) {
            let slug = name.strip_suffix(".md").unwrap_or_else(|| panic!("{name} is no page"));
            assert!(slug.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'), "{name}");
            let text = fs::read_to_string(folder.join(&name)).unwrap();
            assert!(text.starts_with("- ") && text.ends_with('\n'), "{name} is no entry");
            assert_eq!(text.lines().count(), 1, "{name} has more than one line");
        }
    }
}
