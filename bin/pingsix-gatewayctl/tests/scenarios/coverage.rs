//! The scenarios together show every word of a status and every row of the mapping.

use std::collections::BTreeSet;
use std::fs;

use pingsix_translate::verdict::{ConditionType, Reason};
use serde_json::Value;

use crate::case::{cases, root};

/// Reasons that translation alone cannot give, and who does.
const REASONS_OF_OTHERS: [(&str, &str); 4] = [
    ("Programmed", "delivery: some PingSIX has the configuration"),
    (
        "Quarantined",
        "the bridge: PingSIX would refuse what translation made, which is a fault of translation",
    ),
    ("SupportedVersion", "the controller, which alone sees the installed CRDs"),
    ("UnsupportedVersion", "the controller, which alone sees the installed CRDs"),
];

/// Condition types that translation alone cannot give, and who does.
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
    let mut faults = Vec::new();
    for word in known {
        match (others.contains(word), found.contains(*word)) {
            (false, false) => faults.push(format!("no scenario shows {what} {word}")),
            (true, true) => faults.push(format!("a scenario shows {what} {word}, which others give")),
            (true, false) | (false, true) => {}
        }
    }
    let gone = others.iter().filter(|word| !known.contains(word));
    faults.extend(gone.map(|word| format!("there is no {what} {word}")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
    let document = fs::read_to_string(root().join("docs/mapping.md")).unwrap();
    let mut faults = Vec::new();
    let mut rows = 0;
    let mut in_fields = false;
    for line in document.lines() {
        if let Some(header) = line.strip_prefix("| field |") {
            in_fields = true;
            if !header.ends_with("| scenario |") {
                faults.push(format!("the last column is not scenario: {line}"));
            }
        } else if !line.starts_with('|') {
            in_fields = false;
        } else if in_fields && !line.starts_with("|-") {
            rows += 1;
            let cell = line.trim_end_matches('|').rsplit('|').next().unwrap();
            let shown: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
            if shown.is_empty() {
                faults.push(format!("no scenario: {line}"));
            }
            let unknown = shown.iter().filter(|name| !names.contains(**name));
            faults.extend(unknown.map(|name| format!("there is no scenario {name}: {line}")));
        }
    }
    assert!(rows > 30, "the tables of the mapping are missing");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
