//! The desired documents of one data plane.

mod error;
mod fingerprint;
mod set;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
pub use error::DesiredError;
pub use fingerprint::Fingerprint;
pub use set::{DocumentSet, Documents};

use crate::document::Key;
use crate::error::SinkError;

/// PingSIX's limit of one message, in bytes. PingSIX cannot read a scope whose list is larger.
pub const LIST_LIMIT: usize = 4 * 1024 * 1024;

/// The prefix of one data plane, such as `/pingsix/shop/web`.
///
/// A scope starts with a slash and does not end with one. Its segments are not empty and have no control characters.
/// The keys of the scope are those below `<scope>/`, so `/x` and `/xy` have nothing in common while `/x/y` lies inside
/// `/x`. A sink holds no two scopes of which one lies inside the other.
///
/// Scopes are ordered as their keys are: `/web-2` comes before `/web`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The prefix and a slash.
    key_prefix: Arc<str>,
}

impl Scope {
    /// Validates a prefix.
    ///
    /// # Errors
    /// [`DesiredError::InvalidScope`] names the prefix and the rule it breaks.
    pub fn new(prefix: impl AsRef<str>) -> Result<Self, SinkError> {
        let prefix = prefix.as_ref();
        let problem = match prefix.strip_prefix('/') {
            None => "it does not start with a slash",
            Some("") => "it has no segment",
            Some(path) if path.ends_with('/') => "it ends with a slash",
            Some(path) if path.split('/').any(str::is_empty) => "it has an empty segment",
            Some(path) if path.chars().any(char::is_control) => "it has a control character",
            Some(_) => return Ok(Self { key_prefix: [prefix, "/"].concat().into() }),
        };
        Err(DesiredError::InvalidScope { scope: prefix.escape_default().to_string(), problem }.into())
    }

    /// The prefix as written, without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.key_prefix[..self.key_prefix.len() - 1]
    }

    /// The prefix of every key of the scope: the scope's prefix and a slash.
    pub fn key_prefix(&self) -> &str {
        &self.key_prefix
    }

    /// Key and range end in etcd's form of all keys of the scope. The byte after a slash is a zero.
    pub(crate) fn key_range(&self) -> (Bytes, Bytes) {
        (Bytes::from(self.key_prefix().to_owned()), Bytes::from(format!("{self}0")))
    }

    /// The full key of a document in a key-value store.
    pub fn full_key(&self, key: &Key) -> String {
        // An exact allocation, because the string may live as long as the document.
        [self.key_prefix(), key.as_str()].concat()
    }

    /// Whether one scope contains the other; true for equal scopes.
    pub fn overlaps(&self, other: &Scope) -> bool {
        self.key_prefix.starts_with(other.key_prefix()) || other.key_prefix.starts_with(self.key_prefix())
    }

    /// Checks that the scope is one of the `held` scopes or overlaps none of them.
    pub(crate) fn check_overlap<'h>(
        &self,
        held: impl IntoIterator<Item = &'h Scope>,
    ) -> Result<(), SinkError> {
        match held.into_iter().find(|held| *held != self && held.overlaps(self)) {
            Some(held) => Err(DesiredError::ScopeOverlap { scope: self.clone(), held: held.clone() }.into()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The complete set of documents of one data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    scope: Scope,
    documents: DocumentSet,
    owner: Option<Arc<str>>,
}

impl Desired {
    /// The desired state in which `scope` holds `documents`.
    pub fn new(scope: Scope, documents: DocumentSet) -> Self {
        Self { scope, documents, owner: None }
    }

    /// The desired state in which `scope` holds nothing.
    pub fn empty(scope: Scope) -> Self {
        Self { scope, documents: DocumentSet::default(), owner: None }
    }

    /// Sets the owner, such as the UID of a Kubernetes object. The owner distinguishes objects that have had the same
    /// scope one after another.
    ///
    /// Only the embedded server uses the owner: a certificate with a URI for exactly this scope gives access if the
    /// URI names the same owner, or no owner if this has none. The server closes connections of other owners before
    /// it serves the documents. A publication without documents changes no owner: readers of the scope then read that
    /// it is empty.
    #[must_use]
    pub fn owned_by(self, owner: Option<Arc<str>>) -> Self {
        Self { owner, ..self }
    }

    /// The owner; see [`owned_by`](Self::owned_by).
    pub fn owner(&self) -> Option<&Arc<str>> {
        self.owner.as_ref()
    }

    /// The scope of the documents.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The documents.
    pub fn documents(&self) -> &DocumentSet {
        &self.documents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(prefix: &str) -> Scope {
        Scope::new(prefix).unwrap()
    }

    #[test]
    fn scopes_are_absolute_prefixes_without_a_slash_at_the_end() {
        for good in ["/pingsix", "/pingsix/shop/web", "/pingsix/shop/web:8080"] {
            assert_eq!(scope(good).as_str(), good);
        }
        for bad in ["", "/", "pingsix", "/pingsix/", "//a", "/a//b", "/a\u{7}"] {
            assert_eq!(Scope::new(bad).unwrap_err().category(), "invalid_scope", "{bad:?}");
        }
    }

    #[test]
    fn scopes_overlap_only_at_a_segment_boundary() {
        assert!(scope("/x").overlaps(&scope("/x")));
        assert!(scope("/x").overlaps(&scope("/x/y")));
        assert!(scope("/x/y").overlaps(&scope("/x")));
        assert!(!scope("/x").overlaps(&scope("/xy")));
        assert!(!scope("/x/web").overlaps(&scope("/x/web:80")));
    }
}
