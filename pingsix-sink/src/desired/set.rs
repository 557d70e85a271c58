//! Documents, held so that sets which differ little share what they have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::document::{Document, Key};
use crate::error::SinkError;

/// Documents of a chunk. One that grows to twice as many is cut, one that shrinks to a quarter goes up in the next.
const CHUNK: usize = 128;

type Chunk = Arc<[Document]>;

/// Documents sorted by key, each key once.
///
/// Copies share their documents, and a copy [with changes](Self::with_changes) shares all but those near them: what a
/// publication costs then depends on what is different, not on how much there is.
#[derive(Clone, Default)]
pub struct DocumentSet {
    /// None is empty.
    chunks: Arc<[Chunk]>,
    len: usize,
}

impl DocumentSet {
    /// Sorts `documents`.
    ///
    /// # Errors
    /// [`SinkError::DuplicateKey`] when two documents have one key.
    pub fn new(documents: impl IntoIterator<Item = Document>) -> Result<Self, SinkError> {
        let mut documents: Vec<Document> = documents.into_iter().collect();
        documents.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(pair) = documents.windows(2).find(|pair| pair[0].key == pair[1].key) {
            let owners = [pair[0].owner.clone(), pair[1].owner.clone()];
            return Err(SinkError::DuplicateKey { key: pair[0].key.clone(), owners });
        }
        let mut chunks = Vec::new();
        cut(documents, &mut chunks);
        Ok(Self::of(chunks))
    }

    fn of(chunks: Vec<Chunk>) -> Self {
        let len = chunks.iter().map(|chunk| chunk.len()).sum();
        Self { chunks: chunks.into(), len }
    }

    /// The same documents but for some keys: each with what stands there now, or nothing.
    #[must_use]
    pub fn with_changes(&self, changes: BTreeMap<Key, Option<Document>>) -> Self {
        if changes.is_empty() {
            return self.clone();
        }
        let mut changes = changes.into_iter().peekable();
        let mut chunks = Vec::with_capacity(self.chunks.len() + 1);
        // What was left of a chunk, and is too little to be one.
        let mut rest: Vec<Document> = Vec::new();
        for (index, chunk) in self.chunks.iter().enumerate() {
            let next = self.chunks.get(index + 1).map(|next| &next[0].key);
            let is_here = |key: &Key| next.is_none_or(|next| key < next);
            if rest.is_empty() && !changes.peek().is_some_and(|(key, _)| is_here(key)) {
                chunks.push(chunk.clone());
                continue;
            }
            let mut kept = &chunk[..];
            while let Some((key, document)) = changes.next_if(|(key, _)| is_here(key)) {
                let (before, after) = kept.split_at(kept.partition_point(|other| other.key < key));
                rest.extend_from_slice(before);
                let is_replaced = after.first().is_some_and(|document| document.key == key);
                kept = if is_replaced { &after[1..] } else { after };
                rest.extend(document.map(|document| Document { key, ..document }));
            }
            rest.extend_from_slice(kept);
            if rest.len() >= CHUNK / 4 {
                cut(std::mem::take(&mut rest), &mut chunks);
            }
        }
        // There were none before.
        rest.extend(changes.filter_map(|(key, document)| Some(Document { key, ..document? })));
        cut(rest, &mut chunks);
        Self::of(chunks)
    }

    /// The document with this key.
    pub fn get(&self, key: &Key) -> Option<&Document> {
        let after = self.chunks.partition_point(|chunk| chunk[0].key <= *key);
        let chunk = self.chunks.get(after.checked_sub(1)?)?;
        chunk.binary_search_by(|document| document.key.cmp(key)).ok().map(|index| &chunk[index])
    }

    /// The documents in the order of their keys.
    pub fn iter(&self) -> Documents<'_> {
        Documents { chunks: self.chunks.iter(), documents: [].iter() }
    }

    /// How many documents there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether both have the same keys with the same values, whatever their order hints and owners.
    pub fn same_content(&self, other: &Self) -> bool {
        let (ours, theirs) = self.unshared(other);
        self.len == other.len && ours.map(content).eq(theirs.map(content))
    }

    /// The documents of either set that it does not visibly share with the other, each in the order of their keys. Equal
    /// documents may be among them.
    pub(crate) fn unshared<'s>(
        &'s self,
        other: &'s Self,
    ) -> (impl Iterator<Item = &'s Document>, impl Iterator<Item = &'s Document>) {
        (self.without(other), other.without(self))
    }

    fn without(&self, other: &Self) -> impl Iterator<Item = &Document> {
        let shared: BTreeSet<*const Document> = other.chunks.iter().map(|chunk| chunk.as_ptr()).collect();
        let own = self.chunks.iter().filter(move |chunk| !shared.contains(&chunk.as_ptr()));
        own.flat_map(|chunk| chunk.iter())
    }
}

/// What a client sees of a document.
fn content(document: &Document) -> (&Key, &[u8]) {
    (&document.key, &document.value)
}

/// Adds documents, in order, as chunks.
fn cut(documents: Vec<Document>, chunks: &mut Vec<Chunk>) {
    if documents.len() < 2 * CHUNK {
        if !documents.is_empty() {
            chunks.push(documents.into());
        }
        return;
    }
    let mut documents = documents.into_iter();
    while documents.len() > 0 {
        chunks.push(documents.by_ref().take(CHUNK).collect());
    }
}

impl PartialEq for DocumentSet {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = self.unshared(other);
        self.len == other.len && ours.eq(theirs)
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
pub struct Documents<'a> {
    chunks: std::slice::Iter<'a, Chunk>,
    documents: std::slice::Iter<'a, Document>,
}

impl<'a> Iterator for Documents<'a> {
    type Item = &'a Document;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(document) = self.documents.next() {
                return Some(document);
            }
            self.documents = self.chunks.next()?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{OrderHint, Owner};

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
