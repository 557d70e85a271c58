//! Documents in the form of PingSIX's Admin API and static configuration: a kind, an id and a JSON object.
//!
//! The embedded server and etcd deliver any key and any bytes. These interfaces do not, so invalid documents are
//! refused before the first write.

mod keyring;
mod sealed;
mod secret;

use std::fmt;

use serde_json::{Map, Value};

use crate::document::{Document, Key, Owner};
use crate::error::SinkErrorSource;

pub use keyring::{Keyring, KeyringError};
pub use sealed::Sealer;
pub(crate) use sealed::opened;
pub(crate) use secret::{Agreement, compare, conceal, masked_by_key};
pub use secret::{MASK, masked};

/// A kind of PingSIX's resources, declared in the order of their references: a resource refers only to earlier kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// `upstreams`
    Upstream,
    /// `services`
    Service,
    /// `global_rules`
    GlobalRule,
    /// `routes`
    Route,
    /// `ssls`
    Ssl,
}

impl ResourceKind {
    /// Every kind, in the order of their references.
    pub const ALL: [Self; 5] = [Self::Upstream, Self::Service, Self::GlobalRule, Self::Route, Self::Ssl];

    /// The name in keys, in paths of the Admin API and in the static configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upstream => "upstreams",
            Self::Service => "services",
            Self::GlobalRule => "global_rules",
            Self::Route => "routes",
            Self::Ssl => "ssls",
        }
    }

    /// The kind and the id in a key.
    ///
    /// # Errors
    /// The error of the key.
    pub fn of(key: &Key) -> Result<(Self, &str), &'static str> {
        let Some((kind, id)) = key.as_str().split_once('/') else {
            return Err("its key has no id");
        };
        let Some(kind) = Self::ALL.into_iter().find(|known| known.as_str() == kind) else {
            return Err("PingSIX has no such kind of resource");
        };
        // PingSIX accepts neither in an id (`src/config/etcd.rs`, `physical_key_to_resource_key`).
        if id.contains('/') || id.starts_with('.') {
            return Err("its id has a slash, or begins with a dot");
        }
        Ok((kind, id))
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A document cannot be expressed in this interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("document {key} of {owner} is no PingSIX resource: {problem}")]
pub(crate) struct ResourceError {
    /// The key of the document.
    pub(crate) key: Key,
    /// The owner of the document.
    pub(crate) owner: Owner,
    /// The error.
    pub(crate) problem: &'static str,
}

impl SinkErrorSource for ResourceError {
    fn category(&self) -> &'static str {
        "resource"
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// A decoded document.
#[derive(Clone)]
pub(crate) struct Resource<'a> {
    pub(crate) kind: ResourceKind,
    pub(crate) id: &'a str,
    pub(crate) fields: Map<String, Value>,
    pub(crate) document: &'a Document,
}

impl<'a> Resource<'a> {
    pub(crate) fn decode(document: &'a Document) -> Result<Self, ResourceError> {
        let refused =
            |problem| ResourceError { key: document.key.clone(), owner: document.owner.clone(), problem };
        let (kind, id) = ResourceKind::of(&document.key).map_err(refused)?;
        // The message of serde_json is left out, because it quotes the value.
        match serde_json::from_slice(&document.value) {
            Ok(Value::Object(fields)) => Ok(Self { kind, id, fields, document }),
            Ok(_) | Err(_) => Err(refused("its value is no JSON object")),
        }
    }
}

/// The fields are left out.
impl fmt::Debug for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("document", self.document).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::document::OrderHint;

    #[test]
    fn an_invalid_document_is_refused_with_its_owner_and_without_its_value() {
        let document = |key: &str, value: &str| Document {
            key: Key::new(key).unwrap(),
            value: Bytes::from(value.to_owned()),
            order: OrderHint(0),
            owner: Owner::new("HTTPRoute shop/cart"),
        };
        let good = document("routes/a", r#"{"uri":"/a"}"#);
        assert_eq!(Resource::decode(&good).unwrap().kind, ResourceKind::Route);
        for (key, value, problem) in [
            ("routes", "{}", "its key has no id"),
            ("stream_routes/a", "{}", "PingSIX has no such kind of resource"),
            ("routes/a/b", "{}", "its id has a slash, or begins with a dot"),
            ("routes/.a", "{}", "its id has a slash, or begins with a dot"),
            ("routes/a", "[\"sesame\"]", "its value is no JSON object"),
            ("routes/a", "{\"sesame\"", "its value is no JSON object"),
        ] {
            let document = document(key, value);
            let error = Resource::decode(&document).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("document {key} of HTTPRoute shop/cart is no PingSIX resource: {problem}")
            );
        }
    }
}
