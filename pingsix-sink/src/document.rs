//! Documents: key, canonical bytes, order hint and owner.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::error::{SinkError, SinkErrorSource};

/// The name of a document inside its scope, such as `routes/abc`.
///
/// One or more segments between single slashes; no segment is empty and none holds a control character.
/// Keys compare as their bytes do, which is the order of an etcd range.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Checks a key.
    ///
    /// # Errors
    /// The error has the category `invalid_key`, and names the key and the rule that it breaks.
    pub fn new(key: impl Into<Arc<str>>) -> Result<Self, SinkError> {
        let key = key.into();
        let problem = if key.is_empty() {
            "it is empty"
        } else if key.split('/').any(str::is_empty) {
            "it has an empty segment"
        } else if key.chars().any(char::is_control) {
            "it has a control character"
        } else {
            return Ok(Self(key));
        };
        Err(InvalidKey { key: key.escape_default().to_string(), problem }.into())
    }

    /// The key as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A key breaks the rules of [`Key`].
#[derive(Debug, thiserror::Error)]
#[error("key \"{key}\" is not valid: {problem}")]
pub(crate) struct InvalidKey {
    /// The key, with unprintable characters escaped.
    pub(crate) key: String,
    /// The rule it breaks.
    pub(crate) problem: &'static str,
}

impl SinkErrorSource for InvalidKey {
    fn category(&self) -> &'static str {
        "invalid_key"
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// Position in the order of writes: lower hints are written earlier and deleted later.
///
/// A document may refer only to documents with a lower hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderHint(pub u32);

/// The owner of a document, opaque to this crate. Owners with equal names are equal.
///
/// The name is formatted on demand, because every document has an owner.
#[derive(Clone)]
pub struct Owner(Arc<dyn fmt::Display + Send + Sync>);

impl Owner {
    /// An owner with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arc::new(name.into()))
    }

    /// A shared owner, whose name is its `Display` form.
    pub fn shared(owner: Arc<impl fmt::Display + Send + Sync + 'static>) -> Self {
        Self(owner)
    }

    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.to_string() == other.to_string()
    }
}

impl Eq for Owner {}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

/// SHA-256 of a value, for places that must not show the value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// The digest of `value`.
    pub(crate) fn of(value: &[u8]) -> Self {
        Self(Sha256::digest(value).into())
    }

    /// The 32 bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One document.
///
/// Key and value are delivered. Order hint and owner control the delivery.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// The name inside the scope.
    pub key: Key,
    /// The canonical bytes: equal documents have equal bytes.
    pub value: Bytes,
    /// The position in the order of writes.
    pub order: OrderHint,
    /// The owner.
    pub owner: Owner,
}

impl Document {
    /// The digest of the value, computed at each call.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.value)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("key", &self.key)
            .field("bytes", &self.value.len())
            .field("digest", &self.digest())
            .field("order", &self.order.0)
            .field("owner", &self.owner)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_paths_without_empty_segments() {
        for good in ["routes/a", "a", "a/b/c", "routes/.meta", "routes/ä b:{}"] {
            assert_eq!(Key::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "/", "/routes/a", "routes/", "a//b", "a\0b", "a\nb"] {
            assert_eq!(Key::new(bad).unwrap_err().category(), "invalid_key", "{bad:?}");
        }
    }

    #[test]
    fn debug_shows_length_and_digest_but_never_the_value() {
        let document = Document {
            key: Key::new("ssls/a").unwrap(),
            value: Bytes::from_static(b"-----BEGIN PRIVATE KEY-----"),
            order: OrderHint(3),
            owner: Owner::new("secret/shop/tls"),
        };
        let text = format!("{document:?}");
        assert!(text.contains("bytes: 27"), "{text}");
        assert!(!text.contains("PRIVATE"), "{text}");
        assert!(document.digest().to_string().starts_with(&format!("{:?}", document.digest())));
    }
}
