//! Documents of the promises, for further tests of a sink.

use bytes::Bytes;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::document::{Document, Key, OrderHint, Owner};

/// The scope of a prefix, such as `/p/web`.
///
/// # Panics
///
/// When the prefix is not one of a scope.
pub fn scope(prefix: &str) -> Scope {
    Scope::new(prefix).unwrap()
}

/// A document whose hint follows from its kind: `upstreams`, `services`, `routes`, in this order.
///
/// # Panics
///
/// When the key is not one of a document.
pub fn document(key: &str, value: impl Into<Bytes>) -> Document {
    let order = match key.split('/').next() {
        Some("upstreams") => 0,
        Some("services") => 1,
        _ => 2,
    };
    Document {
        key: Key::new(key).unwrap(),
        value: value.into(),
        order: OrderHint(order),
        owner: Owner::new("test"),
    }
}

/// The desired state of a scope, from keys and values.
///
/// # Panics
///
/// When a prefix or a key is invalid, or a key is there twice.
pub fn desired(prefix: &str, documents: &[(&str, &str)]) -> Desired {
    let documents = documents.iter().map(|(key, value)| document(key, (*value).to_owned()));
    Desired::new(scope(prefix), DocumentSet::new(documents).unwrap())
}
