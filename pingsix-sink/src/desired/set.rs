//! Sets of documents that share memory with similar sets.

use std::collections::BTreeMap;
use std::fmt;

use super::DesiredError;
use crate::chunks::{ChunkIter, Chunks, Sorted};
use crate::document::{Document, Key};
use crate::error::SinkError;

impl Sorted for Document {
    type SortKey = Key;

    fn sort_key(&self) -> &Key {
        &self.key
    }
}

/// Documents sorted by key, each key once.
///
/// Copies share their documents. A copy [with changes](Self::with_changes) shares all documents but those near a
/// change, so the cost of a publication depends on the difference alone.
#[derive(Clone, Default)]
pub struct DocumentSet(Chunks<Document>);

impl DocumentSet {
    /// Sorts `documents`.
    ///
    /// # Errors
    /// [`DesiredError::DuplicateKey`] when two documents have one key.
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Result<Self, SinkError> {
        let mut documents: Vec<Document> = documents.into_iter().collect();
        documents.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(pair) = documents.windows(2).find(|pair| pair[0].key == pair[1].key) {
            let owners = [pair[0].owner.clone(), pair[1].owner.clone()];
            return Err(DesiredError::DuplicateKey { key: pair[0].key.clone(), owners }.into());
        }
        Ok(Self(Chunks::sorted(documents)))
    }

    /// A copy with `changes`: each key gets a document or, as `None`, loses it.
    #[must_use]
    pub fn with_changes(&self, changes: BTreeMap<Key, Option<Document>>) -> Self {
        let changes = changes.into_iter().map(|(key, document)| {
            let document = document.map(|document| Document { key: key.clone(), ..document });
            (key, document)
        });
        Self(self.0.with_changes(changes))
    }

    /// The document with this key.
    pub fn get(&self, key: &Key) -> Option<&Document> {
        self.0.get(key)
    }

    /// The documents in the order of their keys.
    pub fn iter(&self) -> Documents<'_> {
        Documents(self.0.iter())
    }

    /// The number of documents.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both sets have the same keys and values. Order hints and owners are ignored.
    pub fn same_content(&self, other: &Self) -> bool {
        self.changes(other).next().is_none()
    }

    /// The keys with another value than in an earlier set, in order: the former and the present document. Order hints and
    /// owners are ignored.
    pub(crate) fn changes<'s>(
        &'s self,
        before: &'s Self,
    ) -> impl Iterator<Item = (Option<&'s Document>, Option<&'s Document>)> {
        let value = |document: Option<&'s Document>| document.map(|document| &document.value);
        self.pairs(before).filter(move |(old, new)| value(*old) != value(*new))
    }

    /// The former and the present document of each key, in order, without those that both sets share.
    pub(crate) fn pairs<'s>(
        &'s self,
        before: &'s Self,
    ) -> impl Iterator<Item = (Option<&'s Document>, Option<&'s Document>)> {
        self.0.pairs(&before.0)
    }
}

impl PartialEq for DocumentSet {
    fn eq(&self, other: &Self) -> bool {
        self.pairs(other).all(|(old, new)| old == new)
    }
}

impl Eq for DocumentSet {}

impl fmt::Debug for DocumentSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<'a> IntoIterator for &'a DocumentSet {
    type Item = &'a Document;
    type IntoIter = Documents<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The documents of a [`DocumentSet`] in the order of their keys.
#[derive(Clone, Debug)]
pub struct Documents<'a>(ChunkIter<'a, Document>);

impl<'a> Iterator for Documents<'a> {
    type Item = &'a Document;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{OrderHint, Owner};

    #[test]
    fn a_set_with_changes_equals_a_new_set() {
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
