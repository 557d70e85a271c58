//! The table against itself and against the documentation.

use std::collections::BTreeSet;

use super::*;
use crate::model::FieldPath;

const LIMITS: &str = include_str!("../../../../docs/explanation/limits.md");
const CONFORMANCE: &str = include_str!("../../../../docs/reference/conformance.md");

/// The rows of the table in a section of a document.
fn rows_of<'d>(document: &'d str, heading: &str) -> impl Iterator<Item = &'d str> {
    let section = document.lines().skip_while(move |line| *line != heading).skip(1);
    let table = section.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.skip(2)
}

/// The first cell of a row.
fn first_cell(row: &str) -> &str {
    row.trim_start_matches("| ").split(" | ").next().unwrap_or_default()
}

#[test]
fn every_row_has_fields_and_a_message() {
    for capability in Capability::ALL {
        let row = capability.row();
        assert!(!row.fields.is_empty(), "{capability:?}");
        assert!(!row.message.is_empty(), "{capability:?}");
        assert!(!row.fields.contains('|') && !capability.summary().contains('|'), "{capability:?}");
        assert!(row.executors.iter().all(|(_, cost)| !cost.is_empty()), "{capability:?}");
        let names: Vec<Executor> = row.executors.iter().map(|(executor, _)| *executor).collect();
        assert!(names.is_sorted_by(|one, other| one < other), "{capability:?}");
    }
    let names: BTreeSet<&str> = Capability::ALL.iter().map(|capability| capability.summary()).collect();
    assert_eq!(names.len(), Capability::ALL.len());
}

#[test]
fn values_replace_placeholders_in_order() {
    assert_eq!(fill("a {} b {}.", &["1", "{}"]), "a 1 b {}.");
    assert_eq!(fill("{}", &[]), "");
    let refusal = Capability::VariableInHeader.refuse_with(FieldPath::new("spec"), &["$scheme", "x-a"]);
    assert_eq!(refusal.to_string(), "spec: PingSIX would replace $scheme in the value of header x-a.");
    assert_eq!(
        (refusal.reason, refusal.capability),
        (Reason::UnsupportedValue, Some(Capability::VariableInHeader))
    );
}

/// Each capability here has a lowering of its executor, and its value is in the model.
#[test]
fn a_capability_is_served_by_an_executor_of_its_row() {
    let none = Executors::default();
    assert!(Capability::ALL.iter().all(|capability| !capability.is_served(none)), "PingSIX alone lacks all");
    let served = |executors: Executors| -> Vec<Capability> {
        Capability::ALL.iter().copied().filter(|capability| capability.is_served(executors)).collect()
    };
    assert_eq!(served(Executors { stream_proxy: true, ..none }), [Capability::StreamProtocol]);
    assert_eq!(
        served(Executors { tls_front: true, ..none }),
        [Capability::IntermediateCertificates, Capability::ClientCertificates]
    );
    assert_eq!(
        served(Executors { responder: true, ..none }),
        [Capability::MisdirectedRequests, Capability::ChosenAnswer]
    );
}

#[test]
fn limits_of_the_documentation_are_those_of_the_table() {
    let rows: Vec<&str> = rows_of(LIMITS, "# Limits of PingSIX").collect();
    for capability in Capability::ALL {
        let row = capability.row();
        if row.limit.is_empty() {
            continue;
        }
        let documented: Vec<&&str> = rows.iter().filter(|text| first_cell(text) == row.limit).collect();
        assert_eq!(documented.len(), 1, "limits.md has no row \"{}\" of {capability:?}", row.limit);
        for (executor, word) in [
            (Executor::Responder, "responder"),
            (Executor::StreamProxy, "sidecar"),
            (Executor::TlsFront, "sidecar"),
        ] {
            let serves = row.executors.iter().any(|(of_row, _)| *of_row == executor);
            assert!(!serves || documented[0].contains(word), "{capability:?}: {}", documented[0]);
        }
    }
}

#[test]
fn executors_of_the_documentation_are_those_of_the_table() {
    let mut rows = rows_of(LIMITS, "## Executors");
    for capability in Capability::ALL {
        let CapabilityRow { fields, executors, reason, .. } = capability.row();
        let executors: Vec<String> =
            executors.iter().map(|(executor, cost)| format!("{}: {cost}", executor.name())).collect();
        let executors = if executors.is_empty() { "none".to_owned() } else { executors.join("; ") };
        let row = format!("| {} | {fields} | {executors} | `{reason}` |", capability.summary());
        assert_eq!(rows.next(), Some(row.as_str()));
    }
    assert_eq!(rows.next(), None);
}

#[test]
fn features_without_a_capability_are_documented_and_not_claimed() {
    let documented: String = rows_of(CONFORMANCE, "## What is not claimed").map(first_cell).collect();
    for feature in Capability::ALL.iter().flat_map(|capability| capability.row().unclaimed) {
        assert!(documented.contains(&format!("`{feature}`")), "{feature}");
    }
}
