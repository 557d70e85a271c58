//! The scenarios together show every status reason and every row of the mapping.

use std::collections::BTreeSet;
use std::fs;

use pingsix_translate::status::{ConditionType, Reason};
use serde_json::Value;

use crate::case::{cases, root};

/// Reasons that translation alone cannot set, and the component that does.
const REASONS_OF_OTHERS: [(&str, &str); 5] = [
    ("AddressNotAssigned", "the controller, which alone sees the Service of a managed data plane"),
    ("NoResources", "the controller, which alone sees what it may make for a managed data plane"),
    ("Programmed", "delivery: some PingSIX has the configuration"),
    (
        "Quarantined",
        "the bridge and the controller: PingSIX refuses what translation made, which is a fault of translation",
    ),
    ("SupportedVersion", "the controller, which alone sees the installed CRDs"),
];

/// Condition types that translation alone cannot set, and the component that does.
const TYPES_OF_OTHERS: [(&str, &str); 1] =
    [("SupportedVersion", "the controller, which alone sees the installed CRDs")];

/// Collects the texts of a field, at any depth.
fn collect(value: &Value, field: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(field).and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check(what: &str, known: &[&str], field: &str, others: &[(&str, &str)]) {
    let mut found = BTreeSet::new();
    for case in cases() {
        let status: Value = serde_saphyr::from_str(&case.read("status.yaml").unwrap_or_default()).unwrap();
        collect(&status, field, &mut found);
    }
    let others: BTreeSet<&str> = others.iter().map(|(word, _)| *word).collect();
    let mut problems = Vec::new();
    for word in known {
        match (others.contains(word), found.contains(*word)) {
            (false, false) => problems.push(format!("no scenario shows {what} {word}")),
            (true, true) => problems.push(format!("a scenario shows {what} {word}, which others give")),
            (true, false) | (false, true) => {}
        }
    }
    let gone = others.iter().filter(|word| !known.contains(word));
    problems.extend(gone.map(|word| format!("there is no {what} {word}")));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_reason_that_translation_gives_is_shown() {
    let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    check("reason", &known, "reason", &REASONS_OF_OTHERS);
}

#[test]
fn every_condition_type_that_translation_gives_is_shown() {
    let known: Vec<&str> = ConditionType::ALL.iter().map(|kind| kind.as_str()).collect();
    check("condition type", &known, "type", &TYPES_OF_OTHERS);
}

#[test]
fn every_row_of_the_mapping_names_a_scenario() {
    let names: BTreeSet<String> = cases().iter().map(crate::Case::name).collect();
    let document = fs::read_to_string(root().join("docs/reference/mapping.md")).unwrap();
    let mut problems = Vec::new();
    let mut rows = 0;
    let mut in_fields = false;
    for line in document.lines() {
        if let Some(header) = line.strip_prefix("| field |") {
            in_fields = true;
            if !header.ends_with("| scenario |") {
                problems.push(format!("the last column is not scenario: {line}"));
            }
        } else if !line.starts_with('|') {
            in_fields = false;
        } else if in_fields && !line.starts_with("|-") {
            rows += 1;
            let cell = line.trim_end_matches('|').rsplit('|').next().unwrap();
            let shown: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
            if shown.is_empty() {
                problems.push(format!("no scenario: {line}"));
            }
            let unknown = shown.iter().filter(|name| !names.contains(**name));
            problems.extend(unknown.map(|name| format!("there is no scenario {name}: {line}")));
        }
    }
    assert!(rows > 30, "the tables of the mapping are missing");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Scenarios with a problem that concerns everything there is.
const WITHOUT_NEIGHBOURS: [&str; 3] = ["budget/not-even-guards", "class/missing", "ingress/parameters"];

/// Whether a sample request reaches a Service or a redirect, as its author wants.
fn is_served(sample: &Value) -> bool {
    let backends = sample["backends"].as_object();
    let has_service = backends.is_some_and(|shares| shares.keys().any(|name| name.contains('/')));
    has_service || sample.get("location").is_some()
}

#[test]
fn every_refusal_has_a_served_neighbour() {
    let mut errors = Vec::new();
    // Streams have no requests.
    for case in cases().iter().filter(|case| !case.name().starts_with("stream/")) {
        let status: Value = serde_saphyr::from_str(&case.read("status.yaml").unwrap_or_default()).unwrap();
        let mut problems = status["problems"].as_array().into_iter().flatten();
        if !problems.any(|problem| problem["severity"] == "error") {
            continue;
        }
        let samples = case.read("requests.yaml").unwrap_or_else(|| "[]".to_owned());
        let samples: Value = serde_saphyr::from_str(&samples).unwrap();
        let served = samples.as_array().into_iter().flatten().any(is_served);
        match (served, WITHOUT_NEIGHBOURS.contains(&case.name().as_str())) {
            (false, false) => errors.push(format!("{}: no request is served", case.name())),
            (true, true) => errors.push(format!("{}: a request is served", case.name())),
            (true, false) | (false, true) => {}
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
