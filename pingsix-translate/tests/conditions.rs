//! `docs/reference/conditions.md` lists exactly the condition types and reasons there are.

use pingsix_translate::status::{ConditionType, Reason};

/// First cells of the table under a heading.
fn rows(heading: &str) -> Vec<&'static str> {
    let text = include_str!("../../docs/reference/conditions.md");
    let section = text.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_default();
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

#[test]
fn every_condition_type_is_explained() {
    let known: Vec<&str> = ConditionType::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(rows("Types"), known);
}

#[test]
fn every_reason_is_explained() {
    let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(rows("Reasons"), known);
}
