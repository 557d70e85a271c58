//! Versions of keys.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use prost::encoding::{encoded_len_varint, key_len};

use crate::chunks::Sorted;
use crate::document::OrderHint;
use crate::proto::mvccpb::KeyValue;

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
    /// The order of its event among those of one revision.
    pub(in crate::embedded) order: OrderHint,
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

impl Sorted for Arc<Record> {
    type SortKey = [u8];

    fn sort_key(&self) -> &[u8] {
        &self.key
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} ({} bytes)", self.key.escape_ascii(), self.mod_revision, self.value.len())
    }
}
