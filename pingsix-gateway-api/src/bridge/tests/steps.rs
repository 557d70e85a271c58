//! The steps of a plan for a configuration.
//!
//! The contract tests use this file too.

use pingsix_sink::Step;
use pingsix_translate::pingsix::{Config, Document, DocumentKey};

/// Takes some steps of a plan.
pub(super) fn apply(config: &mut Config, steps: &[Step]) {
    for step in steps {
        let key = DocumentKey::parse(step.key().as_str()).unwrap().unwrap();
        match step {
            Step::Create(document) | Step::Update(document) => {
                let value = serde_json::from_slice(&document.value).unwrap();
                config.insert(key.id, Document::decode(key.kind, &value).unwrap());
            }
            Step::Delete { .. } => {
                config.remove(&key);
            }
        }
    }
}
