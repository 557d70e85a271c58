//! For sinks of PingSIX's resources: the texts of the suite as JSON objects, and its kinds as PingSIX's.

use pingsix_sink::{Desired, Document, DocumentSet, Effect, Key, Published, Sink, SinkError};
use serde_json::{Value, json};

/// A sink that receives the documents of the suite.
#[derive(Debug)]
pub(crate) struct Resources<S>(pub(crate) S);

impl<S: Sink> Sink for Resources<S> {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let documents = desired.documents().iter().map(|document| Document {
            key: Key::new(to_resource(document.key.as_str())).unwrap(),
            value: value(std::str::from_utf8(&document.value).unwrap()).to_string().into(),
            ..document.clone()
        });
        let documents = DocumentSet::new(documents).unwrap();
        self.0.publish(&Desired::new(desired.scope().clone(), documents)).await
    }

    fn effect(&self) -> Effect {
        self.0.effect()
    }
}

/// The suite has a kind of its own for documents that refer to others; no other document has this kind.
pub(crate) fn to_resource(key: &str) -> String {
    key.replace("zones/", "global_rules/")
}

pub(crate) fn from_resource(key: &str) -> String {
    key.replace("global_rules/", "zones/")
}

pub(crate) fn value(text: &str) -> Value {
    json!({ "text": text })
}

pub(crate) fn text(value: &Value) -> String {
    value["text"].as_str().unwrap().to_owned()
}
