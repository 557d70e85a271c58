//! Lists that clients share.
//!
//! After a restart of the server, all clients list the same range at once. The server encodes the list once, and all
//! responses share the bytes.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message as _;

use super::LIST_LIMIT;
use super::store::{KeyRange, Refusal, Selection, Store};
use crate::proto::etcdserverpb::RangeResponse;

/// The records of a range and their encoding.
#[derive(Debug)]
pub(super) struct List {
    range: KeyRange,
    /// The revision of the last change in the range.
    changed: i64,
    records: Selection,
    encoded: OnceLock<Bytes>,
}

impl List {
    /// The encoded fields `kvs` and `count` of the response; the first caller encodes them.
    pub(super) fn encoded(&self, on_encode: impl FnOnce()) -> &Bytes {
        self.encoded.get_or_init(|| {
            on_encode();
            let kvs = self.records.iter().map(|record| record.to_proto()).collect();
            let count = i64::try_from(self.records.len()).unwrap_or(i64::MAX);
            RangeResponse { kvs, count, ..RangeResponse::default() }.encode_to_vec().into()
        })
    }

    /// Whether the list has at most so many bytes.
    pub(super) fn is_within(&self, bytes: usize) -> bool {
        let mut sum = 0;
        self.encoded.get().is_some()
            || self.records.iter().all(|record| {
                sum += record.event_bytes();
                sum <= bytes
            })
    }

    fn bytes(&self) -> usize {
        self.encoded.get().map_or(0, Bytes::len)
    }
}

/// Cache of recent lists.
#[derive(Debug, Default)]
pub(super) struct ListCache {
    recent: Mutex<VecDeque<Arc<List>>>,
}

impl ListCache {
    /// Limit of cached lists: one for each of some data planes that restart together.
    const MAX_ENTRIES: usize = 16;

    /// Byte limit of cached lists besides the newest: two full lists.
    const MAX_BYTES: usize = 2 * LIST_LIMIT;

    /// The current list of `range`.
    pub(super) fn get(&self, store: &Store, range: &KeyRange) -> Result<Arc<List>, Refusal> {
        store.admit(range)?;
        let changed = store.changed(range);
        let mut recent = self.recent.lock();
        if let Some(place) = recent.iter().position(|list| list.range == *range) {
            if let Some(list) = recent.get(place).filter(|list| list.changed == changed) {
                return Ok(Arc::clone(list));
            }
            recent.remove(place);
        }
        let records = store.select(range, None)?;
        let list = Arc::new(List { range: range.clone(), changed, records, encoded: OnceLock::new() });
        recent.push_back(Arc::clone(&list));
        let mut all: usize = recent.iter().map(|list| list.bytes()).sum();
        while recent.len() > Self::MAX_ENTRIES || (all > Self::MAX_BYTES && recent.len() > 1) {
            all -= recent.pop_front().map_or(0, |list| list.bytes());
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::testing::{Publisher, everything};
    use super::*;

    #[test]
    fn a_list_is_made_once_for_each_state_of_its_range() {
        let mut publisher = Publisher::new(1 << 20);
        publisher.publish(&[(1, 1)].into());
        publisher.store.complete();
        let lists = ListCache::default();
        let first = lists.get(&publisher.store, &everything()).unwrap();
        assert!(Arc::ptr_eq(&first, &lists.get(&publisher.store, &everything()).unwrap()));
        let mut on_encode = 0;
        for _ in 0..2 {
            let response = RangeResponse::decode(&**first.encoded(|| on_encode += 1)).unwrap();
            assert_eq!((response.count, response.kvs.len(), response.header), (1, 1, None));
        }
        assert_eq!(on_encode, 1);

        publisher.publish(&[(1, 1), (2, 1)].into());
        let second = lists.get(&publisher.store, &everything()).unwrap();
        assert_eq!(RangeResponse::decode(&**second.encoded(|| ())).unwrap().count, 2);
        assert_eq!(lists.recent.lock().len(), 1, "what is no longer so is forgotten");

        let elsewhere = KeyRange::new(Bytes::from_static(b"/q/"), Bytes::from_static(b"/q0"));
        assert_eq!(lists.get(&publisher.store, &elsewhere).unwrap_err(), Refusal::UnknownScope);
        for part in 0..2 * ListCache::MAX_ENTRIES {
            let key = format!("/p/web/k/{part}");
            lists.get(&publisher.store, &KeyRange::new(key, Bytes::from_static(b"/p/web0"))).unwrap();
            assert!(lists.recent.lock().len() <= ListCache::MAX_ENTRIES);
        }
    }
}
