//! The known content of a scope.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::fence::FENCE;
use super::mark::{KeyDigest, MARK_COUNT, Mark};
use super::{GUARD, PUBLISHER};
use crate::desired::{DocumentSet, Scope};
use crate::document::{Document, Key, OrderHint, Owner};
use crate::proto::etcdserverpb::RangeResponse;
use crate::proto::mvccpb::event::EventType;
use crate::proto::mvccpb::{Event, KeyValue};
use crate::revision::Revision;

/// The guard values of PingSIX's Admin API: the current one and that of its first version.
pub(super) const GUARD_VALUES: [&[u8]; 2] = [b"pingsix-graph-v1", b"1"];

/// A scope as of a list, updated by events and own transactions.
#[derive(Debug)]
pub(super) struct ScopeState {
    scope: Scope,
    /// The revision of the list; earlier events are known.
    listed: i64,
    /// The revisions of own transactions since the list, whose events are known.
    ours: BTreeSet<i64>,
    entries: BTreeMap<Key, Entry>,
    /// Keys that no document can have; they are foreign.
    invalid_keys: BTreeSet<Bytes>,
    marks: [StoredMark; MARK_COUNT],
    guard: Guard,
    /// The publisher and the fence, by their keys.
    records: BTreeMap<&'static str, Record>,
    published: Option<PublishedDocuments>,
}

/// The documents after a publication, until another writer changes them. They share memory with the next publication,
/// so that a diff costs only the changes.
#[derive(Debug)]
struct PublishedDocuments {
    documents: DocumentSet,
    revision: Revision,
}

/// A key of the scope.
#[derive(Debug)]
struct Entry {
    name: KeyDigest,
    value: Bytes,
    modified: i64,
}

/// A mark with its last write; zero means absent.
#[derive(Debug, Default)]
pub(super) struct StoredMark {
    pub(super) mark: Mark,
    pub(super) modified: i64,
}

/// A value that the sink keeps beside the documents; absent if `modified` is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) value: Bytes,
    pub(super) modified: i64,
}

/// The key by which writers of one scope detect each other; absent if `modified` is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) modified: i64,
    pub(super) is_known: bool,
}

impl ScopeState {
    /// The state from a list.
    pub(super) fn of(scope: &Scope, list: &RangeResponse) -> Self {
        let mut scope_state = Self {
            scope: scope.clone(),
            listed: list.header.as_ref().map_or(0, |header| header.revision),
            ours: BTreeSet::new(),
            entries: BTreeMap::new(),
            invalid_keys: BTreeSet::new(),
            marks: Default::default(),
            guard: Guard { modified: 0, is_known: true },
            records: BTreeMap::new(),
            published: None,
        };
        for kv in &list.kvs {
            scope_state.put(kv);
        }
        scope_state
    }

    /// The revision after which a watch continues.
    pub(super) fn listed(&self) -> i64 {
        self.listed
    }

    pub(super) fn guard(&self) -> Guard {
        self.guard
    }

    /// The record under this key: the publisher or the fence.
    pub(super) fn record(&self, name: &str) -> Record {
        self.records.get(name).cloned().unwrap_or_default()
    }

    /// Whether no document is owned.
    pub(super) fn is_empty(&self) -> bool {
        !self.entries.values().any(|held| self.order(held.name).is_some())
    }

    /// Applies an own transaction that wrote or deleted a record.
    pub(super) fn apply_record(&mut self, revision: i64, name: &'static str, value: Option<Bytes>) {
        self.ours.insert(revision);
        self.guard = Guard { modified: revision, is_known: true };
        match value {
            Some(value) => self.records.insert(name, Record { value, modified: revision }),
            None => self.records.remove(name),
        };
    }

    pub(super) fn mark(&self, index: usize) -> &StoredMark {
        &self.marks[index % MARK_COUNT]
    }

    /// The revision of the last write of a key; zero if it is absent.
    pub(super) fn modified(&self, key: &Key) -> i64 {
        self.entries.get(key).map_or(0, |held| held.modified)
    }

    /// The order hint in the record of an owned key.
    pub(super) fn order(&self, name: KeyDigest) -> Option<OrderHint> {
        self.mark(name.mark()).mark.order(name)
    }

    /// The owned documents. Foreign documents are left out, so a desired document in their place counts as new.
    pub(super) fn documents(&self) -> DocumentSet {
        if let Some(published) = &self.published {
            return published.documents.clone();
        }
        let owner = Owner::new("an earlier publication");
        let ours = self.entries.iter().filter_map(|(key, held)| {
            let (order, value) = (self.order(held.name)?, held.value.clone());
            Some(Document { key: key.clone(), value, order, owner: owner.clone() })
        });
        DocumentSet::new(ours).expect("keys of a map are different")
    }

    /// The foreign keys under the scope, except those that PingSIX does not read.
    pub(super) fn foreign(&self) -> BTreeSet<String> {
        let held = self.entries.iter().filter(|(_, held)| self.order(held.name).is_none());
        let invalid_keys =
            self.invalid_keys.iter().map(|key| String::from_utf8_lossy(key).escape_default().to_string());
        held.map(|(key, _)| self.scope.full_key(key))
            .chain(invalid_keys)
            .filter(|key| !key.rsplit('/').next().is_some_and(|leaf| leaf.starts_with('.')))
            .collect()
    }

    /// The revision of the last change of the owned documents.
    ///
    /// A put has the document's own revision, and a deletion has the revision of its mark. A mark is never written alone. A
    /// scope without a write has the smallest revision.
    pub(super) fn revision(&self) -> Revision {
        if let Some(published) = &self.published {
            return published.revision;
        }
        let documents = self.entries.values().filter(|held| self.order(held.name).is_some());
        let marks = self.marks.iter().map(|marked| marked.modified);
        let last = documents.map(|held| held.modified).chain(marks).max();
        last.and_then(Revision::new).unwrap_or(Revision::MIN)
    }

    /// The bytes of keys and values that PingSIX reads in one list.
    pub(super) fn size(&self) -> usize {
        let prefix = self.scope.as_str().len() + 1;
        let held: usize = self.entries.iter().map(|(key, held)| key.as_str().len() + held.value.len()).sum();
        let marks: usize = self.marks.iter().map(|marked| marked.mark.size()).sum();
        held + marks + self.entries.len() * (prefix + KEY_OVERHEAD)
    }

    /// Applies events, and returns whether one of them was foreign.
    pub(super) fn apply(&mut self, events: &[Event]) -> bool {
        let mut is_foreign = false;
        for event in events {
            let Some(kv) = &event.kv else { continue };
            if kv.mod_revision <= self.listed || self.ours.contains(&kv.mod_revision) {
                continue;
            }
            is_foreign = true;
            self.published = None;
            match event.r#type() {
                EventType::Put => self.put(kv),
                EventType::Delete => self.delete(&kv.key),
            }
        }
        if let Some(last) = events.iter().filter_map(|event| Some(event.kv.as_ref()?.mod_revision)).max() {
            self.ours = self.ours.split_off(&last);
        }
        is_foreign
    }

    /// Applies an own transaction.
    pub(super) fn apply_commit(&mut self, revision: i64, change: Change) {
        self.ours.insert(revision);
        self.published = None;
        self.guard = Guard { modified: revision, is_known: true };
        for (key, value) in change.documents {
            match value {
                Some(value) => {
                    let name = KeyDigest::of(&key);
                    self.entries.insert(key, Entry { name, value, modified: revision });
                }
                None => {
                    self.entries.remove(&key);
                }
            }
        }
        for (index, mark) in change.marks {
            self.marks[index % MARK_COUNT] = StoredMark { mark, modified: revision };
        }
    }

    /// Records that the owned documents are now these.
    pub(super) fn record_published(&mut self, documents: DocumentSet) {
        let revision = self.revision();
        self.published = Some(PublishedDocuments { documents, revision });
    }

    /// The digests of the present keys.
    pub(super) fn names(&self) -> BTreeSet<KeyDigest> {
        self.entries.values().map(|held| held.name).collect()
    }

    fn put(&mut self, kv: &KeyValue) {
        match self.role(&kv.key) {
            KeyRole::Guard => {
                let is_known = GUARD_VALUES.contains(&&*kv.value);
                self.guard = Guard { modified: kv.mod_revision, is_known };
            }
            KeyRole::Record(name) => {
                self.records.insert(name, Record { value: kv.value.clone(), modified: kv.mod_revision });
            }
            KeyRole::Mark(index) => {
                let mark = Mark::decode(&kv.value).unwrap_or_else(|| {
                    let key = String::from_utf8_lossy(&kv.key);
                    tracing::warn!(scope = %self.scope, %key, "an ownership record is damaged");
                    Mark::default()
                });
                self.marks[index] = StoredMark { mark, modified: kv.mod_revision };
            }
            KeyRole::Document(key) => {
                let name = KeyDigest::of(&key);
                self.entries.insert(key, Entry { name, value: kv.value.clone(), modified: kv.mod_revision });
            }
            KeyRole::Invalid => {
                self.invalid_keys.insert(kv.key.clone());
            }
        }
    }

    fn delete(&mut self, key: &Bytes) {
        match self.role(key) {
            KeyRole::Guard => self.guard = Guard { modified: 0, is_known: true },
            KeyRole::Record(name) => {
                self.records.remove(name);
            }
            KeyRole::Mark(index) => self.marks[index] = StoredMark::default(),
            KeyRole::Document(key) => {
                self.entries.remove(&key);
            }
            KeyRole::Invalid => {
                self.invalid_keys.remove(key);
            }
        }
    }

    fn role(&self, key: &[u8]) -> KeyRole {
        let inside = std::str::from_utf8(key)
            .ok()
            .and_then(|key| key.strip_prefix(self.scope.as_str())?.strip_prefix('/'));
        match inside {
            Some(GUARD) => KeyRole::Guard,
            Some(PUBLISHER) => KeyRole::Record(PUBLISHER),
            Some(FENCE) => KeyRole::Record(FENCE),
            Some(inside) => match (Mark::index(inside), Key::new(inside)) {
                (Some(index), _) => KeyRole::Mark(index),
                (None, Ok(key)) => KeyRole::Document(key),
                (None, Err(_)) => KeyRole::Invalid,
            },
            None => KeyRole::Invalid,
        }
    }
}

/// Bytes of a pair in a list besides key and value.
const KEY_OVERHEAD: usize = 25;

/// The change of a transaction.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Put and deleted documents.
    pub(super) documents: Vec<(Key, Option<Bytes>)>,
    pub(super) marks: BTreeMap<usize, Mark>,
}

/// The role of a key under the scope.
enum KeyRole {
    Guard,
    Record(&'static str),
    Mark(usize),
    Document(Key),
    Invalid,
}
