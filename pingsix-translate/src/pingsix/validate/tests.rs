//! Every refusal that was measured on PingSIX, every configuration it accepts and gets wrong, and look-alikes
//! that it takes.

use serde_json::{Value, json};

use super::*;

mod closed;
mod fields;
mod material;
mod plugins;
mod tables;

/// The violations of further documents in a prefix with one valid upstream, `u`.
fn violations(documents: &Value) -> Vec<Violation> {
    violations_with(documents, &ValidateOptions::default())
}

fn violations_with(documents: &Value, options: &ValidateOptions) -> Vec<Violation> {
    let mut all = vec![("upstreams/u".to_owned(), json!({"nodes": {"127.0.0.1:80": 1}}))];
    let documents = documents.as_object().expect("documents by key").clone();
    all.extend(documents);
    assert_check_agrees(&all, options);
    validate_raw(all, options)
}

/// The violations of documents by their keys below the prefix.
fn validate_raw(
    documents: impl IntoIterator<Item = (impl std::fmt::Display, Value)>,
    options: &ValidateOptions,
) -> Vec<Violation> {
    let stored =
        documents.into_iter().map(|(key, value)| (format!("{}/{key}", options.prefix), value.to_string()));
    validate_pairs(stored, options)
}

/// Asserts that the check by changed documents has the answer of [`validate`] while documents come and go. The check leaves
/// entangled documents to `validate`.
#[track_caller]
fn assert_check_agrees(pairs: &[(String, Value)], options: &ValidateOptions) {
    let texts = pairs.iter().map(|(key, value)| (key, value.to_string()));
    let pairs: Vec<(String, String)> = texts.map(|(key, value)| (format!("/pingsix/{key}"), value)).collect();
    let options = ValidateOptions {
        bytes_budget: options.bytes_budget,
        entries_budget: options.entries_budget,
        ..ValidateOptions::default()
    };
    let mut check = AcceptanceCheck::default();
    let count = pairs.len();
    let growing = (1..=count).map(|end| 0..end);
    for range in growing.chain((1..count).map(|start| start..count)) {
        let Ok(config) = Config::from_pairs("/pingsix", pairs[range].iter().cloned()) else { return };
        // Encoded documents have the summary that a translation gives them.
        let encoded: Config =
            config.iter().map(|(key, document)| (key.clone(), encode(key, document))).collect();
        check.update(&encoded);
        let violations = validate(&config, &options);
        let expected = violations.iter().all(Violation::is_intended);
        let is_entangled =
            encoded.documents().iter().any(|(key, document)| inspect::summary(key, document).is_entangled);
        let passed = check.is_passed(&options);
        assert!(passed == expected || (!passed && is_entangled), "{passed}: {config:?} {violations:?}");
        let mut anew = AcceptanceCheck::default();
        anew.update(&config);
        assert_eq!(anew.is_passed(&options), passed, "{config:?}");
    }
}

/// The worst that a list of violations leads to, with its rule.
fn worst(violations: &[Violation]) -> Option<(Severity, Rule)> {
    violations
        .iter()
        .map(|violation| (violation.severity, violation.rule))
        .max_by_key(|(severity, _)| *severity)
}

/// A route at `/` to the upstream `u`, with some fields replaced; a null in `fields` takes a field away.
fn route(fields: &Value) -> Value {
    json!({"routes/r": overlay(json!({"uri": "/", "upstream_id": "u"}), fields)})
}

fn upstream(fields: &Value) -> Value {
    json!({"upstreams/x": overlay(json!({"nodes": {"127.0.0.1:80": 1}}), fields)})
}

fn overlay(mut base: Value, fields: &Value) -> Value {
    let object = base.as_object_mut().expect("an object");
    for (name, value) in fields.as_object().expect("an object") {
        if value == "<absent>" {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
    base
}

fn plugin(name: &str, config: &Value) -> Value {
    route(&json!({"plugins": {name: config}}))
}

#[track_caller]
fn assert_worst(documents: &Value, expected: Option<(Severity, Rule)>) {
    let found = violations(documents);
    assert_eq!(worst(&found), expected, "{documents}: {found:#?}");
    for violation in &found {
        assert!(violation.message.ends_with('.'), "{violation}");
        assert!(violation.source().starts_with("src/"), "{violation}");
    }
}

#[track_caller]
fn refused(documents: &Value, rule: Rule) {
    assert_worst(documents, Some((Severity::Rejected, rule)));
}

#[track_caller]
fn refused_late(documents: &Value, rule: Rule) {
    assert_worst(documents, Some((Severity::RejectedLate, rule)));
}

#[track_caller]
fn misbehaves(documents: &Value, rule: Rule) {
    assert_worst(documents, Some((Severity::Misbehaves, rule)));
}

#[track_caller]
fn accepted(documents: &Value) {
    assert_worst(documents, None);
}
