//! The documents below a stream prefix.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The documents below a stream prefix at one revision.
#[derive(Clone, Debug, Default)]
pub struct Documents {
    /// The revision of the store.
    pub revision: i64,
    /// Each value by its key relative to the prefix, for example `stream_routes/<id>`.
    pub by_key: BTreeMap<String, Bytes>,
}
