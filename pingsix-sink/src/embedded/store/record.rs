//! One version of one key, and the changes between versions.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use prost::encoding::{encoded_len_varint, key_len};

use crate::desired::Scope;
use crate::proto::mvccpb::event::EventType;
use crate::proto::mvccpb::{Event, KeyValue};

/// The most that a message adds to the key and the value of one event.
pub(in crate::embedded) const EVENT_OVERHEAD: usize = 64;

/// One version of one key.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::embedded) struct Record {
    /// Copied whenever it is told: shared, every one would take as much again for who else has it.
    pub(in crate::embedded) key: Box<[u8]>,
    pub(in crate::embedded) value: Bytes,
    pub(in crate::embedded) create_revision: i64,
    pub(in crate::embedded) mod_revision: i64,
    pub(in crate::embedded) version: i64,
}

impl Record {
    /// The record on the wire; the value is shared, not copied.
    pub(in crate::embedded) fn to_proto(&self) -> KeyValue {
        KeyValue {
            key: Bytes::copy_from_slice(&self.key),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            value: self.value.clone(),
            lease: 0,
        }
    }

    /// The bytes the record takes in the response to a list.
    pub(in crate::embedded) fn listed_bytes(&self) -> usize {
        let length = self.to_proto().encoded_len();
        key_len(2) + encoded_len_varint(length as u64) + length
    }

    /// No less than the bytes the record takes in a watch response.
    pub(in crate::embedded) fn event_bytes(&self) -> usize {
        self.key.len() + self.value.len() + EVENT_OVERHEAD
    }
}

/// A record in the order of keys, which it has itself.
#[derive(Debug)]
pub(in crate::embedded) struct ByKey(pub(in crate::embedded) Arc<Record>);

impl Borrow<[u8]> for ByKey {
    fn borrow(&self) -> &[u8] {
        &self.0.key
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} ({} bytes)", self.key.escape_ascii(), self.mod_revision, self.value.len())
    }
}

/// What happened to one key.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum Change {
    /// The key has a new value.
    Put { record: Arc<Record>, before: Option<Arc<Record>> },
    /// The key is gone.
    Delete { gone: Box<Gone>, before: Option<Arc<Record>> },
}

/// A key that is gone.
#[derive(Clone, Debug)]
pub(in crate::embedded) struct Gone {
    pub(in crate::embedded) key: Box<[u8]>,
    pub(in crate::embedded) revision: i64,
}

impl Change {
    pub(in crate::embedded) fn key(&self) -> &[u8] {
        match self {
            Self::Put { record, .. } => &record.key,
            Self::Delete { gone, .. } => &gone.key,
        }
    }

    pub(in crate::embedded) fn before(&self) -> Option<&Arc<Record>> {
        match self {
            Self::Put { before, .. } | Self::Delete { before, .. } => before.as_ref(),
        }
    }

    /// No less than the bytes the change takes in a watch response, without the pair before it.
    pub(in crate::embedded) fn event_bytes(&self) -> usize {
        match self {
            Self::Put { record, .. } => record.event_bytes(),
            Self::Delete { gone, .. } => gone.key.len() + EVENT_OVERHEAD,
        }
    }

    /// The bytes that keeping the change keeps in memory.
    fn kept_bytes(&self) -> usize {
        self.event_bytes() + self.before().map_or(0, |before| before.event_bytes())
    }

    pub(in crate::embedded) fn to_proto(&self, with_before: bool) -> Event {
        let prev_kv = self.before().filter(|_| with_before).map(|before| before.to_proto());
        match self {
            Self::Put { record, .. } => {
                Event { r#type: EventType::Put.into(), kv: Some(record.to_proto()), prev_kv }
            }
            Self::Delete { gone, .. } => {
                let Gone { key, revision } = &**gone;
                let key = Bytes::copy_from_slice(key);
                let kv = KeyValue { key, mod_revision: *revision, ..KeyValue::default() };
                Event { r#type: EventType::Delete.into(), kv: Some(kv), prev_kv }
            }
        }
    }
}

/// The changes of one revision, in the order in which they are valid one by one.
#[derive(Debug)]
pub(in crate::embedded) struct Commit {
    pub(in crate::embedded) revision: i64,
    pub(in crate::embedded) scope: Scope,
    pub(in crate::embedded) changes: Vec<Change>,
    /// What keeping the commit costs.
    pub(in crate::embedded) bytes: usize,
}

impl Commit {
    pub(in crate::embedded) fn new(revision: i64, scope: Scope, changes: Vec<Change>) -> Self {
        let bytes = changes.iter().map(Change::kept_bytes).sum();
        Self { revision, scope, changes, bytes }
    }
}
