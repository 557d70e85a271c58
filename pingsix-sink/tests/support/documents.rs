//! Builders shared by the tests.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use bytes::Bytes;
use pingsix_sink::{Desired, Document, DocumentSet, Key, OrderHint, Owner, Scope};

pub(crate) fn scope(prefix: &str) -> Scope {
    Scope::new(prefix).unwrap()
}

/// A document whose hint follows from its kind: `upstreams`, `services`, `routes`, in this order.
pub(crate) fn document(key: &str, value: impl Into<Bytes>) -> Document {
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

pub(crate) fn desired(prefix: &str, documents: &[(&str, &str)]) -> Desired {
    let documents = documents.iter().map(|(key, value)| document(key, value.to_string()));
    Desired::new(scope(prefix), DocumentSet::new(documents).unwrap())
}
