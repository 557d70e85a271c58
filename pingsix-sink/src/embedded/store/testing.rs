//! Publications to a store alone.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::super::publication::{commits, split};
use super::*;
use crate::desired::DocumentSet;
use crate::document::{Document, Key, OrderHint, Owner};
use crate::plan::plan;
use crate::revision::Revision;

pub(in crate::embedded) fn block(first: i64, last: i64) -> Block {
    Block { first: Revision::new(first).unwrap(), last: Revision::new(last).unwrap() }
}

/// A document for each number, with a value of the given length.
pub(in crate::embedded) fn documents(ids: &BTreeMap<u8, u8>) -> DocumentSet {
    DocumentSet::new(ids.iter().map(|(id, value)| Document {
        key: Key::new(format!("k/{id}")).unwrap(),
        value: Bytes::from(vec![b'v'; usize::from(*value)]),
        order: OrderHint(u32::from(*id % 3)),
        owner: Owner::new("test"),
    }))
    .unwrap()
}

pub(in crate::embedded) fn publish(
    store: &mut Store,
    scope: &Scope,
    from: &DocumentSet,
    to: &DocumentSet,
    limit: usize,
) {
    store.add_scope(scope);
    let (steps, parts) = split(scope, plan(from, to), from, limit).unwrap();
    let revisions = store.next_revisions(parts.len()).unwrap();
    store.commit(scope, &commits(&steps, &parts, revisions));
}

pub(in crate::embedded) fn everything() -> KeyRange {
    KeyRange::new(Bytes::from_static(b"\0"), Bytes::from_static(b"\0"))
}

/// All records as of a revision, if the history has it.
pub(in crate::embedded) fn records_at(store: &Store, revision: i64) -> Option<Vec<Arc<Record>>> {
    let states: Option<Vec<_>> = store.scopes.iter().map(|log| log.at(revision)).collect();
    Some(states?.into_iter().flat_map(|state| state.records().iter().cloned()).collect())
}

pub(in crate::embedded) fn state() -> impl Strategy<Value = BTreeMap<u8, u8>> {
    prop::collection::btree_map(0u8..8, 0u8..4, 0..8)
}

/// A store with one scope and a long history.
pub(in crate::embedded) struct Publisher {
    pub(in crate::embedded) store: Store,
    scope: Scope,
    held: DocumentSet,
    limit: usize,
}

impl Publisher {
    pub(in crate::embedded) fn new(limit: usize) -> Self {
        Self {
            store: Store::new(block(100, 100_000), HistoryBounds { commits: 10_000, bytes: 1 << 30 }),
            scope: Scope::new("/p/web").unwrap(),
            held: DocumentSet::default(),
            limit,
        }
    }

    /// A store that keeps only the newest publication.
    pub(in crate::embedded) fn forgetful(limit: usize) -> Self {
        let mut publisher = Self::new(limit);
        publisher.store = Store::new(block(100, 100_000), HistoryBounds { commits: 1, bytes: 1 });
        publisher
    }

    pub(in crate::embedded) fn publish(&mut self, state: &BTreeMap<u8, u8>) {
        let documents = documents(state);
        publish(&mut self.store, &self.scope, &self.held, &documents, self.limit);
        self.held = documents;
    }
}
