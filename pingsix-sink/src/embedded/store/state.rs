//! The state of a scope at one revision, and the difference between two of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::record::{EVENT_OVERHEAD, Record};
use super::{KeyRange, ScopeSize};
use crate::chunks::Chunks;
use crate::desired::Scope;
use crate::plan::{Step, net_steps};
use crate::proto::mvccpb::event::EventType;
use crate::proto::mvccpb::{Event, KeyValue};

/// The documents of a scope at one revision. Consecutive states and clones share memory.
#[derive(Clone, Debug, Default)]
pub(in crate::embedded) struct State {
    records: Chunks<Arc<Record>>,
    size: ScopeSize,
    /// The revision of the commit that made the state; zero before the first.
    pub(super) revision: i64,
    /// The number of changes since the scope appeared.
    changes: u64,
    /// The last deletion: its revision, and the key.
    last_deletion: Option<(i64, Arc<[u8]>)>,
}

/// The documents of a scope that a client has.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum Seen {
    /// This state.
    State(State),
    /// Everything below this revision; the history has lost the state. There were no deletions since.
    Below(i64),
}

impl Seen {
    /// The revision of the last change that the client has, or an upper bound of it.
    pub(in crate::embedded) const fn revision(&self) -> i64 {
        match self {
            Self::State(state) => state.revision,
            Self::Below(next) => *next - 1,
        }
    }
}

/// The change of a key from one state to a later one.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct KeyChange<'s> {
    pub(in crate::embedded) key: &'s [u8],
    /// The revision of the new version; of a deletion, the revision of the later state.
    pub(in crate::embedded) revision: i64,
    /// The version in the earlier state, if that is known.
    pub(in crate::embedded) before: Option<&'s Arc<Record>>,
    /// The version in the later state; `None` for a deletion.
    pub(in crate::embedded) after: Option<&'s Arc<Record>>,
}

impl<'s> KeyChange<'s> {
    /// The change between two versions, with the revision of a deletion. `None` without a version.
    fn of(before: Option<&'s Arc<Record>>, after: Option<&'s Arc<Record>>, deleted: i64) -> Option<Self> {
        let key = &after.or(before)?.key;
        let revision = after.map_or(deleted, |record| record.mod_revision);
        Some(Self { key, revision, before, after })
    }

    /// The change as an event without the previous version.
    pub(in crate::embedded) fn to_event(self) -> Event {
        let kind = if self.after.is_some() { EventType::Put } else { EventType::Delete };
        let deletion = || {
            let key = Bytes::copy_from_slice(self.key);
            KeyValue { key, mod_revision: self.revision, ..KeyValue::default() }
        };
        let kv = self.after.map_or_else(deletion, |record| record.to_proto());
        Event { r#type: kind.into(), kv: Some(kv), prev_kv: None }
    }

    /// Upper bound of the bytes of the event.
    pub(in crate::embedded) fn event_bytes(&self) -> usize {
        self.after.map_or(self.key.len() + EVENT_OVERHEAD, |record| record.event_bytes())
    }

    /// Sorts changes by revision, and those of one revision as a plan does: puts in ascending order of their hint,
    /// then deletions in descending order.
    pub(in crate::embedded) fn sort(changes: &mut [Self]) {
        changes.sort_by_key(|change| {
            let rank = match change.after {
                Some(record) => (false, record.order.0),
                None => (true, change.before.map_or(0, |before| u32::MAX - before.order.0)),
            };
            (change.revision, rank, change.key)
        });
    }
}

impl State {
    pub(in crate::embedded) const fn size(&self) -> ScopeSize {
        self.size
    }

    pub(in crate::embedded) const fn revision(&self) -> i64 {
        self.revision
    }

    pub(in crate::embedded) const fn records(&self) -> &Chunks<Arc<Record>> {
        &self.records
    }

    /// The changes in `range` that a client does not have. The cost is that of the chunks that the two states do not
    /// share, or of all documents if the history has lost the state of the client.
    pub(in crate::embedded) fn since<'s>(&'s self, seen: &'s Seen, range: &KeyRange) -> Vec<KeyChange<'s>> {
        let is_wanted = |change: &KeyChange<'_>| range.contains(change.key);
        let change = |(before, after)| KeyChange::of(before, after, self.revision);
        match seen {
            Seen::State(state) => {
                let changed = self.records.pairs(&state.records).filter(|(before, after)| before != after);
                changed.filter_map(change).filter(is_wanted).collect()
            }
            Seen::Below(next) => {
                let new = self.records.iter().filter(|record| record.mod_revision >= *next);
                new.map(|record| (None, Some(record))).filter_map(change).filter(is_wanted).collect()
            }
        }
    }

    /// The number of changes that a client does not have, if the state of the client is known.
    pub(in crate::embedded) fn changes_since(&self, seen: &Seen) -> u64 {
        match seen {
            Seen::State(state) => self.changes - state.changes,
            Seen::Below(_) => 0,
        }
    }

    /// The last deletion from `revision` on.
    pub(in crate::embedded) fn deletion_since(&self, revision: i64) -> Option<KeyChange<'_>> {
        let (deleted, key) = self.last_deletion.as_ref().filter(|(deleted, _)| *deleted >= revision)?;
        Some(KeyChange { key, revision: *deleted, before: None, after: None })
    }

    /// The state after the steps of one commit, and the bytes that this state then keeps alone.
    pub(super) fn with(&self, scope: &Scope, steps: &[Step], revision: i64) -> (Self, usize) {
        let (mut size, mut changes, mut bytes) = (self.size, self.changes, 0);
        let mut last_deletion = self.last_deletion.clone();
        let mut edits: BTreeMap<Box<[u8]>, Option<Arc<Record>>> = BTreeMap::new();
        for step in net_steps(steps) {
            let key = scope.full_key(step.key()).into_bytes().into_boxed_slice();
            let before = self.records.get(&key);
            if let Some(before) = before {
                size.documents -= 1;
                size.bytes -= before.listed_bytes();
                bytes += before.event_bytes();
            }
            changes += 1;
            let record = match step {
                Step::Create(document) | Step::Update(document) => Some(Arc::new(Record {
                    key: key.clone(),
                    value: document.value.clone(),
                    create_revision: before.map_or(revision, |before| before.create_revision),
                    mod_revision: revision,
                    version: before.map_or(1, |before| before.version + 1),
                    order: document.order,
                })),
                Step::Delete { .. } => None,
            };
            if let Some(record) = &record {
                size.documents += 1;
                size.bytes += record.listed_bytes();
            } else {
                last_deletion = Some((revision, key.clone().into()));
            }
            edits.insert(key, record);
        }
        bytes += self.records.bytes_of_changes(edits.len());
        let records = self.records.with_changes(edits);
        (Self { records, size, revision, changes, last_deletion }, bytes)
    }
}
