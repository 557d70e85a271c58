//! What a scope holds, as far as we have been told.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::fence::{FENCE, Fence};
use super::mark::{MARKS, Mark, Name};
use super::{GUARD, PUBLISHER};
use crate::desired::{DocumentSet, Scope};
use crate::document::{Document, Key, OrderHint, Owner};
use crate::proto::etcdserverpb::RangeResponse;
use crate::proto::mvccpb::event::EventType;
use crate::proto::mvccpb::{Event, KeyValue};
use crate::revision::Revision;

/// The value of the guard that PingSIX's Admin API writes, and that of its first version.
pub(super) const GUARD_VALUES: [&[u8]; 2] = [b"pingsix-graph-v1", b"1"];

/// A scope as of a list, and of every event and every transaction of ours since.
#[derive(Debug)]
pub(super) struct ScopeState {
    scope: Scope,
    /// The revision of the list: events up to it say nothing new.
    listed: i64,
    /// The revisions of our transactions since, whose events say nothing new either.
    ours: BTreeSet<i64>,
    entries: BTreeMap<Key, Entry>,
    /// Keys that no document could have: they are somebody else's.
    strange: BTreeSet<Bytes>,
    marks: [Marked; MARKS],
    guard: Guard,
    publisher: Publisher,
    fence: Fence,
    settled: Option<Settled>,
}

/// What the documents became by a publication, for as long as nobody has written since. It shares what it has in common
/// with the next one, so that telling them apart costs what is different.
#[derive(Debug)]
struct Settled {
    documents: DocumentSet,
    revision: Revision,
}

/// A key that is there.
#[derive(Debug)]
struct Entry {
    name: Name,
    value: Bytes,
    modified: i64,
}

/// A mark and when it was written; never, as long as that is zero.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub(super) mark: Mark,
    pub(super) modified: i64,
}

/// Who has published what is there; not there, as long as `modified` is zero.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    pub(super) name: Option<Bytes>,
    pub(super) modified: i64,
}

/// The key by which writers of one scope notice each other; not there, as long as `modified` is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) modified: i64,
    pub(super) is_known: bool,
}

impl ScopeState {
    /// Reads a list.
    pub(super) fn of(scope: &Scope, list: &RangeResponse) -> Self {
        let mut scope_state = Self {
            scope: scope.clone(),
            listed: list.header.as_ref().map_or(0, |header| header.revision),
            ours: BTreeSet::new(),
            entries: BTreeMap::new(),
            strange: BTreeSet::new(),
            marks: Default::default(),
            guard: Guard { modified: 0, is_known: true },
            publisher: Publisher::default(),
            fence: Fence::default(),
            settled: None,
        };
        for kv in &list.kvs {
            scope_state.put(kv);
        }
        scope_state
    }

    /// The revision that a watch goes on after.
    pub(super) fn listed(&self) -> i64 {
        self.listed
    }

    pub(super) fn guard(&self) -> Guard {
        self.guard
    }

    pub(super) const fn publisher(&self) -> &Publisher {
        &self.publisher
    }

    pub(super) const fn fence(&self) -> Fence {
        self.fence
    }

    /// Takes note that a transaction of ours has taken the fence.
    pub(super) fn fenced(&mut self, revision: i64, term: u64) {
        self.ours.insert(revision);
        self.guard = Guard { modified: revision, is_known: true };
        self.fence = Fence { term, modified: revision };
    }

    /// Whether nothing is ours.
    pub(super) fn is_empty(&self) -> bool {
        !self.entries.values().any(|held| self.order(held.name).is_some())
    }

    /// Takes note that a transaction of ours has written who publishes.
    pub(super) fn claimed(&mut self, revision: i64, publisher: Option<Bytes>) {
        self.ours.insert(revision);
        self.guard = Guard { modified: revision, is_known: true };
        let modified = if publisher.is_some() { revision } else { 0 };
        self.publisher = Publisher { name: publisher, modified };
    }

    pub(super) fn mark(&self, index: usize) -> &Marked {
        &self.marks[index % MARKS]
    }

    /// When a key was last written; zero if it is not there.
    pub(super) fn modified(&self, key: &Key) -> i64 {
        self.entries.get(key).map_or(0, |held| held.modified)
    }

    /// The order hint in the record of a key, if it is ours.
    pub(super) fn order(&self, name: Name) -> Option<OrderHint> {
        self.mark(name.mark()).mark.order(name)
    }

    /// Our documents. What is somebody else's is as if it were not there: a document that is wanted in its place is
    /// new to us.
    pub(super) fn documents(&self) -> DocumentSet {
        if let Some(settled) = &self.settled {
            return settled.documents.clone();
        }
        let owner = Owner::new("an earlier publication");
        let ours = self.entries.iter().filter_map(|(key, held)| {
            let (order, value) = (self.order(held.name)?, held.value.clone());
            Some(Document { key: key.clone(), value, order, owner: owner.clone() })
        });
        DocumentSet::new(ours).expect("keys of a map are different")
    }

    /// The keys under the scope that are somebody else's, without those that PingSIX does not read.
    pub(super) fn foreign(&self) -> BTreeSet<String> {
        let held = self.entries.iter().filter(|(_, held)| self.order(held.name).is_none());
        let strange =
            self.strange.iter().map(|key| String::from_utf8_lossy(key).escape_default().to_string());
        held.map(|(key, _)| self.scope.full_key(key))
            .chain(strange)
            .filter(|key| !key.rsplit('/').next().is_some_and(|leaf| leaf.starts_with('.')))
            .collect()
    }

    /// The revision that brought our documents to what they are.
    ///
    /// A put is told by the document's own revision and a deletion by that of its mark, which is never written alone.
    /// A scope that was never written has been as it is from the beginning.
    pub(super) fn revision(&self) -> Revision {
        if let Some(settled) = &self.settled {
            return settled.revision;
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
        held + marks + self.entries.len() * (prefix + PER_KEY)
    }

    /// Takes note of events, and says whether one of them was not our doing.
    pub(super) fn apply(&mut self, events: &[Event]) -> bool {
        let mut is_foreign = false;
        for event in events {
            let Some(kv) = &event.kv else { continue };
            if kv.mod_revision <= self.listed || self.ours.contains(&kv.mod_revision) {
                continue;
            }
            is_foreign = true;
            self.settled = None;
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

    /// Takes note of a transaction of ours.
    pub(super) fn committed(&mut self, revision: i64, change: Change) {
        self.ours.insert(revision);
        self.settled = None;
        self.guard = Guard { modified: revision, is_known: true };
        for (key, value) in change.documents {
            match value {
                Some(value) => {
                    let name = Name::of(&key);
                    self.entries.insert(key, Entry { name, value, modified: revision });
                }
                None => {
                    self.entries.remove(&key);
                }
            }
        }
        for (index, mark) in change.marks {
            self.marks[index % MARKS] = Marked { mark, modified: revision };
        }
    }

    /// Takes note that our documents are these now.
    pub(super) fn settle(&mut self, documents: DocumentSet) {
        let revision = self.revision();
        self.settled = Some(Settled { documents, revision });
    }

    /// The names of the keys that are there.
    pub(super) fn names(&self) -> BTreeSet<Name> {
        self.entries.values().map(|held| held.name).collect()
    }

    fn put(&mut self, kv: &KeyValue) {
        match self.place(&kv.key) {
            KeyRole::Guard => {
                let is_known = GUARD_VALUES.contains(&&*kv.value);
                self.guard = Guard { modified: kv.mod_revision, is_known };
            }
            KeyRole::Publisher => {
                self.publisher = Publisher { name: Some(kv.value.clone()), modified: kv.mod_revision };
            }
            KeyRole::Fence => self.fence = Fence::read(&kv.value, kv.mod_revision),
            KeyRole::Mark(index) => {
                let mark = Mark::decode(&kv.value).unwrap_or_else(|| {
                    let key = String::from_utf8_lossy(&kv.key);
                    tracing::warn!(scope = %self.scope, %key, "the record of what is ours is damaged");
                    Mark::default()
                });
                self.marks[index] = Marked { mark, modified: kv.mod_revision };
            }
            KeyRole::Document(key) => {
                let name = Name::of(&key);
                self.entries.insert(key, Entry { name, value: kv.value.clone(), modified: kv.mod_revision });
            }
            KeyRole::Strange => {
                self.strange.insert(kv.key.clone());
            }
        }
    }

    fn delete(&mut self, key: &Bytes) {
        match self.place(key) {
            KeyRole::Guard => self.guard = Guard { modified: 0, is_known: true },
            KeyRole::Publisher => self.publisher = Publisher::default(),
            KeyRole::Fence => self.fence = Fence::default(),
            KeyRole::Mark(index) => self.marks[index] = Marked::default(),
            KeyRole::Document(key) => {
                self.entries.remove(&key);
            }
            KeyRole::Strange => {
                self.strange.remove(key);
            }
        }
    }

    fn place(&self, key: &[u8]) -> KeyRole {
        let inside = std::str::from_utf8(key)
            .ok()
            .and_then(|key| key.strip_prefix(self.scope.as_str())?.strip_prefix('/'));
        match inside {
            Some(GUARD) => KeyRole::Guard,
            Some(PUBLISHER) => KeyRole::Publisher,
            Some(FENCE) => KeyRole::Fence,
            Some(inside) => match (Mark::index(inside), Key::new(inside)) {
                (Some(index), _) => KeyRole::Mark(index),
                (None, Ok(key)) => KeyRole::Document(key),
                (None, Err(_)) => KeyRole::Strange,
            },
            None => KeyRole::Strange,
        }
    }
}

/// What a pair costs in a list beside its bytes.
const PER_KEY: usize = 25;

/// What a transaction changes.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Documents put, and deleted.
    pub(super) documents: Vec<(Key, Option<Bytes>)>,
    pub(super) marks: BTreeMap<usize, Mark>,
}

/// What a key under the scope is for.
enum KeyRole {
    Guard,
    Publisher,
    Fence,
    Mark(usize),
    Document(Key),
    Strange,
}
