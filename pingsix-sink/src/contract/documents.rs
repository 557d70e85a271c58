//! Documents of the promises.

use bytes::Bytes;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::document::{Document, Key, OrderHint, Owner};

pub(super) fn scope(prefix: &str) -> Scope {
    Scope::new(prefix).unwrap()
}

/// A document whose hint follows from its kind: `upstreams`, `services`, `routes`, in this order.
pub(super) fn document(key: &str, value: impl Into<Bytes>) -> Document {
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

pub(super) fn desired(prefix: &str, documents: &[(&str, &str)]) -> Desired {
    let documents = documents.iter().map(|(key, value)| document(key, (*value).to_owned()));
    Desired::new(scope(prefix), DocumentSet::new(documents).unwrap())
}
