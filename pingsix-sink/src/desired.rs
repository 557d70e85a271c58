//! What one data plane shall hold.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::document::{Document, Key};
use crate::error::SinkError;

/// The prefix of one data plane, such as `/pingsix/shop/web`.
///
/// It starts with a slash and does not end with one; no segment is empty and none holds a control character.
/// The keys of the scope are those below `<scope>/`, so `/x` and `/xy` have nothing in common while `/x/y` lies inside
/// `/x`. A sink holds no two scopes of which one lies inside the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(Arc<str>);

impl Scope {
    /// Checks a prefix.
    ///
    /// # Errors
    /// [`SinkError::InvalidScope`] names the prefix and the rule it breaks.
    pub fn new(prefix: impl Into<Arc<str>>) -> Result<Self, SinkError> {
        let prefix = prefix.into();
        let problem = match prefix.strip_prefix('/') {
            None => "it does not start with a slash",
            Some("") => "it has no segment",
            Some(path) if path.ends_with('/') => "it ends with a slash",
            Some(path) if path.split('/').any(str::is_empty) => "it has an empty segment",
            Some(path) if path.chars().any(char::is_control) => "it has a control character",
            Some(_) => return Ok(Self(prefix)),
        };
        Err(SinkError::InvalidScope { scope: prefix.escape_default().to_string(), problem })
    }

    /// The prefix as written, without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What every key of the scope starts with: the prefix and a slash.
    pub fn key_prefix(&self) -> String {
        format!("{}/", self.0)
    }

    /// The key of a document as a key-value store sees it.
    pub fn full_key(&self, key: &Key) -> String {
        format!("{}/{key}", self.0)
    }

    /// Whether one of the two lies inside the other, or both are the same.
    pub fn overlaps(&self, other: &Scope) -> bool {
        let (short, long) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        long.0.strip_prefix(&*short.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Documents sorted by key, each key once. Cloning shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentSet(Arc<[Document]>);

impl DocumentSet {
    /// Sorts `documents`.
    ///
    /// # Errors
    /// [`SinkError::DuplicateKey`] when two documents have one key.
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Result<Self, SinkError> {
        let mut documents: Vec<Document> = documents.into_iter().collect();
        documents.sort_by(|a, b| a.key.cmp(&b.key));
        match documents.windows(2).find(|pair| pair[0].key == pair[1].key) {
            Some(pair) => Err(SinkError::DuplicateKey {
                key: pair[0].key.clone(),
                owners: [pair[0].owner.clone(), pair[1].owner.clone()],
            }),
            None => Ok(Self(documents.into())),
        }
    }

    /// The same documents but for some keys: each with what stands there now, or nothing.
    #[must_use]
    pub fn with_changes(&self, changes: BTreeMap<Key, Option<Document>>) -> Self {
        if changes.is_empty() {
            return self.clone();
        }
        let mut documents = Vec::with_capacity(self.len() + changes.len());
        let mut rest = self.as_slice();
        for (key, document) in changes {
            let (before, after) = rest.split_at(rest.partition_point(|other| other.key < key));
            documents.extend_from_slice(before);
            rest = match after.split_first() {
                Some((replaced, rest)) if replaced.key == key => rest,
                Some(_) | None => after,
            };
            documents.extend(document.map(|document| Document { key, ..document }));
        }
        documents.extend_from_slice(rest);
        Self(documents.into())
    }

    /// The document with this key.
    pub fn get(&self, key: &Key) -> Option<&Document> {
        self.0.binary_search_by(|document| document.key.cmp(key)).ok().map(|index| &self.0[index])
    }

    /// The documents in the order of their keys.
    pub fn as_slice(&self) -> &[Document] {
        &self.0
    }

    /// The documents in the order of their keys.
    pub fn iter(&self) -> std::slice::Iter<'_, Document> {
        self.0.iter()
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both have the same keys with the same values, whatever their order hints and owners.
    pub fn same_content(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().zip(other.iter()).all(|(a, b)| a.key == b.key && a.value == b.value)
    }
}

impl<'a> IntoIterator for &'a DocumentSet {
    type Item = &'a Document;
    type IntoIter = std::slice::Iter<'a, Document>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Everything one data plane shall hold, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    scope: Scope,
    documents: DocumentSet,
}

impl Desired {
    /// The wish that `scope` holds `documents`.
    pub fn new(scope: Scope, documents: DocumentSet) -> Self {
        Self { scope, documents }
    }

    /// The wish that `scope` holds nothing.
    pub fn empty(scope: Scope) -> Self {
        Self { scope, documents: DocumentSet::default() }
    }

    /// Where the documents belong.
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
    use crate::document::{OrderHint, Owner};

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

    #[test]
    fn changes_of_a_set_are_as_if_it_had_been_made_with_them() {
        let document = |key: &str, value: &str| Document {
            key: Key::new(key).unwrap(),
            value: bytes::Bytes::from(value.to_owned()),
            order: OrderHint(0),
            owner: Owner::new("owner"),
        };
        let set = |documents: &[(&str, &str)]| {
            DocumentSet::new(documents.iter().map(|(key, value)| document(key, value))).unwrap()
        };
        let before = set(&[("a/1", "one"), ("a/2", "two"), ("b/1", "three")]);
        let changes = |changes: &[(&str, Option<&str>)]| {
            let changes = changes
                .iter()
                .map(|(key, value)| (Key::new(*key).unwrap(), value.map(|value| document(key, value))));
            before.with_changes(changes.collect())
        };
        assert_eq!(changes(&[]), before);
        assert_eq!(
            changes(&[("a/3", None), ("a/2", Some("2"))]),
            set(&[("a/1", "one"), ("a/2", "2"), ("b/1", "three")])
        );
        assert_eq!(
            changes(&[("a/0", Some("0")), ("a/1", None), ("c", Some("c"))]),
            set(&[("a/0", "0"), ("a/2", "two"), ("b/1", "three"), ("c", "c")])
        );
        assert_eq!(changes(&[("a/1", None), ("a/2", None), ("b/1", None)]), DocumentSet::default());
    }

    #[test]
    fn a_key_given_twice_is_refused_with_both_owners() {
        let document = |owner: &str| Document {
            key: Key::new("routes/a").unwrap(),
            value: bytes::Bytes::new(),
            order: OrderHint(0),
            owner: Owner::new(owner),
        };
        let error = DocumentSet::new([document("one"), document("two")]).unwrap_err();
        assert_eq!(error.to_string(), "key routes/a is given twice, by one and by two");
    }
}
