//! Versions of keys and changes between them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use prost::encoding::{encoded_len_varint, key_len};

use crate::proto::mvccpb::event::EventType;
use crate::proto::mvccpb::{Event, KeyValue};

/// Upper bound of the bytes that a message adds to the key and the value of one event.
pub(in crate::embedded) const EVENT_OVERHEAD: usize = 64;

/// One version of one key.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::embedded) struct Record {
    /// Copied for each response: shared bytes would cost as much for their reference count.
    pub(in crate::embedded) key: Box<[u8]>,
    pub(in crate::embedded) value: Bytes,
    pub(in crate::embedded) create_revision: i64,
    pub(in crate::embedded) mod_revision: i64,
    pub(in crate::embedded) version: i64,
    /// The number of its change among all changes of the scope.
    pub(in crate::embedded) ordinal: u64,
}

impl Record {
    /// The record as a protobuf message; the value is shared.
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

    /// The bytes of the record in the response to a list.
    pub(in crate::embedded) fn listed_bytes(&self) -> usize {
        let length = self.to_proto().encoded_len();
        key_len(2) + encoded_len_varint(length as u64) + length
    }

    /// Upper bound of the bytes of the record in a watch response.
    pub(in crate::embedded) fn event_bytes(&self) -> usize {
        self.key.len() + self.value.len() + EVENT_OVERHEAD
    }
}

/// One version of a key: a value or a deletion.
pub(in crate::embedded) trait Version {
    fn key(&self) -> &[u8];
    fn revision(&self) -> i64;
    fn ordinal(&self) -> &u64;
}

impl Version for Record {
    fn key(&self) -> &[u8] {
        &self.key
    }

    fn revision(&self) -> i64 {
        self.mod_revision
    }

    fn ordinal(&self) -> &u64 {
        &self.ordinal
    }
}

impl Version for Deletion {
    fn key(&self) -> &[u8] {
        &self.key
    }

    fn revision(&self) -> i64 {
        self.revision
    }

    fn ordinal(&self) -> &u64 {
        &self.ordinal
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} ({} bytes)", self.key.escape_ascii(), self.mod_revision, self.value.len())
    }
}

/// The change of one key.
#[derive(Clone, Debug)]
pub(in crate::embedded) enum Change {
    /// The key has a new value.
    Put { record: Arc<Record>, before: Option<Arc<Record>> },
    /// The key is deleted.
    Delete { deletion: Arc<Deletion>, before: Option<Arc<Record>> },
}

/// A deleted key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Deletion {
    pub(in crate::embedded) key: Box<[u8]>,
    /// The revision of the deletion.
    pub(in crate::embedded) revision: i64,
    /// The number of the deletion among all changes of the scope.
    pub(in crate::embedded) ordinal: u64,
}

impl Deletion {
    /// Upper bound of the bytes of the deletion in a watch response.
    pub(in crate::embedded) fn event_bytes(&self) -> usize {
        self.key.len() + EVENT_OVERHEAD
    }

    pub(in crate::embedded) fn to_proto(&self) -> KeyValue {
        let key = Bytes::copy_from_slice(&self.key);
        KeyValue { key, mod_revision: self.revision, ..KeyValue::default() }
    }
}

impl Change {
    pub(in crate::embedded) fn key(&self) -> &[u8] {
        match self {
            Self::Put { record, .. } => &record.key,
            Self::Delete { deletion, .. } => &deletion.key,
        }
    }

    pub(in crate::embedded) fn before(&self) -> Option<&Arc<Record>> {
        match self {
            Self::Put { before, .. } | Self::Delete { before, .. } => before.as_ref(),
        }
    }

    /// The bytes of the change in the history: those of the replaced version, and its own. The new version belongs to
    /// the current state or is replaced by a later change.
    fn kept_bytes(&self) -> usize {
        let own = match self {
            Self::Put { .. } => 0,
            Self::Delete { deletion, .. } => deletion.event_bytes(),
        };
        size_of::<Self>() + own + self.before().map_or(0, |before| before.event_bytes())
    }

    pub(in crate::embedded) fn to_proto(&self, with_before: bool) -> Event {
        let prev_kv = self.before().filter(|_| with_before).map(|before| before.to_proto());
        match self {
            Self::Put { record, .. } => {
                Event { r#type: EventType::Put.into(), kv: Some(record.to_proto()), prev_kv }
            }
            Self::Delete { deletion, .. } => {
                Event { r#type: EventType::Delete.into(), kv: Some(deletion.to_proto()), prev_kv }
            }
        }
    }
}

/// The changes of one revision, in an order that is valid at every step.
#[derive(Debug)]
pub(in crate::embedded) struct Commit {
    pub(in crate::embedded) revision: i64,
    pub(in crate::embedded) changes: Vec<Change>,
}

impl Commit {
    /// The bytes of the changes in the history.
    pub(super) fn kept_bytes(&self) -> usize {
        self.changes.iter().map(Change::kept_bytes).sum()
    }
}
