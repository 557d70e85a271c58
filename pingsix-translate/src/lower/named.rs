//! Ids of documents that Routes share, each with the number of Routes that use the document.

use std::collections::BTreeMap;

use super::id::Ids;
use crate::packed::pack;
use crate::pingsix::{DocumentKey, ResourceKind};

/// The documents of one kind, by the attributes they stand for.
#[derive(Debug)]
pub(super) struct SharedDocuments<K> {
    kind: ResourceKind,
    by_key: BTreeMap<K, Entry>,
}

#[derive(Debug)]
struct Entry {
    id: Box<str>,
    routes: usize,
}

impl<K: Ord + Clone> SharedDocuments<K> {
    pub(super) const fn new(kind: ResourceKind) -> Self {
        Self { kind, by_key: BTreeMap::new() }
    }

    /// The id of a document, made when first asked for. `None` if no id is made.
    pub(super) fn id(&mut self, key: &K, make: impl FnOnce() -> Option<String>) -> Option<&str> {
        if !self.by_key.contains_key(key) {
            let entry = Entry { id: make()?.into(), routes: 0 };
            self.by_key.insert(key.clone(), entry);
        }
        self.by_key.get(key).map(|entry| &*entry.id)
    }

    /// The key of a document, if its id was ever asked for.
    pub(super) fn document_key(&self, key: &K) -> Option<DocumentKey> {
        Some(DocumentKey { kind: self.kind, id: self.by_key.get(key)?.id.to_string() })
    }

    /// The documents with an id.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.by_key.keys()
    }

    /// Releases the id of a document that is not used any more. Returns the key of the document, if it had an id.
    pub(super) fn release(&mut self, key: &K, ids: &mut Ids) -> Option<DocumentKey> {
        let id = self.by_key.remove(key)?.id;
        ids.release(&id);
        Some(DocumentKey { kind: self.kind, id: id.into() })
    }

    /// Counts one Route more that uses a document. A document without an id does not exist, so no Route uses it.
    pub(super) fn add_use(&mut self, key: &K) {
        if let Some(entry) = self.by_key.get_mut(key) {
            entry.routes += 1;
        }
    }

    /// Counts one Route less.
    pub(super) fn drop_use(&mut self, key: &K) {
        if let Some(entry) = self.by_key.get_mut(key) {
            entry.routes = entry.routes.saturating_sub(1);
        }
    }

    /// Whether a Route uses a document.
    pub(super) fn is_used(&self, key: &K) -> bool {
        self.by_key.get(key).is_some_and(|entry| entry.routes > 0)
    }

    /// Releases spare memory.
    pub(super) fn pack(&mut self) {
        pack(&mut self.by_key);
    }
}
