//! Range requests.

use bytes::Bytes;
use prost::Message as _;

use crate::embedded::LIST_LIMIT;
use crate::embedded::replica::ListCache;
use crate::embedded::store::{KeyRange, Store, StoreError};
use crate::proto::etcdserverpb::{RangeRequest, RangeResponse};

/// The key that `etcdctl endpoint health` reads. Any response will do.
const HEALTH_KEY: &[u8] = b"health";

/// Byte limit of the lists in one response; they are in memory together.
pub(super) const MAX_LIST_BYTES: usize = 16 * LIST_LIMIT;

/// Limit of the keys and scopes that a request may examine in all its comparisons and lists.
const MAX_EXAMINED_KEYS: usize = 1 << 18;

/// Reason why a range or a transaction fails.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RangeError {
    /// A range in the request is refused.
    Range(KeyRange, StoreError),
    /// The request is for an earlier state.
    Compacted,
    /// The request is for a later state.
    Future,
    /// The response exceeds the byte limit, or the request examines too many keys.
    TooLarge,
}

/// The accumulated cost of a request.
#[derive(Debug, Default)]
pub(super) struct Cost {
    /// The bytes of its lists.
    listed: usize,
    /// The number of examined keys and scopes.
    examined: usize,
}

impl Cost {
    /// Counts keys and scopes before they are examined.
    pub(super) fn examine(&mut self, count: usize) -> Result<(), RangeError> {
        self.examined += count;
        (self.examined <= MAX_EXAMINED_KEYS).then_some(()).ok_or(RangeError::TooLarge)
    }

    fn add_list(&mut self, bytes: usize) -> Result<(), RangeError> {
        self.listed += bytes;
        (self.listed <= MAX_LIST_BYTES).then_some(()).ok_or(RangeError::TooLarge)
    }
}

/// The key range of `request`.
pub(super) fn range_of(request: &RangeRequest) -> KeyRange {
    KeyRange::new(&request.key, &request.range_end)
}

/// Whether `request` is a plain list of several keys, whose response clients can share.
pub(super) fn is_plain(request: &RangeRequest) -> bool {
    let plain = RangeRequest {
        key: request.key.clone(),
        range_end: request.range_end.clone(),
        serializable: request.serializable,
        ..RangeRequest::default()
    };
    !request.range_end.is_empty() && *request == plain
}

/// The encoded fields `kvs` and `count` of the response to a plain list, and whether this call encoded them.
pub(super) fn plain(store: &Store, range: &KeyRange, lists: &ListCache) -> Result<(Bytes, bool), RangeError> {
    store.admit(range).map_err(|refusal| RangeError::Range(range.clone(), refusal))?;
    let records = store.select(range);
    let (list, is_new) = lists.get((range.clone(), store.changed(range)), || {
        let mut bytes = 0;
        let fits = records.iter().all(|record| {
            bytes += record.event_bytes();
            bytes <= MAX_LIST_BYTES
        });
        let list = fits.then(|| {
            let kvs = records.iter().map(|record| record.to_proto()).collect();
            let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
            Bytes::from(RangeResponse { kvs, count, ..RangeResponse::default() }.encode_to_vec())
        });
        let bytes = list.as_ref().map_or(0, Bytes::len);
        (list, bytes)
    });
    Ok((list.ok_or(RangeError::TooLarge)?, is_new))
}

/// The response to a `request` that is [valid](super::refusal::check_range), as in etcd: the count is that of the range.
///
/// The cost is that of the listed keys, because the count of a range is known.
pub(super) fn respond(
    store: &Store,
    request: &RangeRequest,
    cost: &mut Cost,
) -> Result<RangeResponse, RangeError> {
    let range = range_of(request);
    match store.admit(&range) {
        Err(StoreError::UnknownScope) if range == KeyRange::new(HEALTH_KEY, b"") => {}
        admission => admission.map_err(|refusal| RangeError::Range(range.clone(), refusal))?,
    }
    if request.revision > store.header() {
        return Err(RangeError::Future);
    }
    // The present documents are those of each revision since their last change. So a client can read page after page.
    let is_present = request.revision >= store.changed(&range).max(store.compacted());
    if request.revision > 0 && !(is_present && store.has_issued(request.revision)) {
        return Err(RangeError::Compacted);
    }
    let selection = store.select(&range);
    cost.examine(selection.scopes)?;
    let mut response = RangeResponse {
        header: Some(super::header(store.header())),
        count: i64::try_from(selection.len()).unwrap_or(i64::MAX),
        ..RangeResponse::default()
    };
    if request.count_only {
        return Ok(response);
    }
    let limit = usize::try_from(request.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    cost.examine(selection.len().min(limit))?;
    response.more = selection.len() > limit;
    for record in selection.iter().take(limit) {
        let mut kv = record.to_proto();
        if request.keys_only {
            kv.value.clear();
        }
        cost.add_list(kv.encoded_len())?;
        response.kvs.push(kv);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::replica::LIST_CACHE_BYTES;
    use crate::embedded::store::testing::{Publisher, everything};

    #[test]
    fn a_plain_list_is_made_once_for_each_state_of_its_range() {
        let mut publisher = Publisher::new(1 << 20);
        publisher.publish(&[(1, 1)].into());
        publisher.store.complete();
        let lists = ListCache::new(LIST_CACHE_BYTES);
        for is_first in [true, false] {
            let (list, is_new) = plain(&publisher.store, &everything(), &lists).unwrap();
            let response = RangeResponse::decode(&*list).unwrap();
            assert_eq!((response.count, response.kvs.len(), response.header), (1, 1, None));
            assert_eq!(is_new, is_first);
        }
        publisher.publish(&[(1, 1), (2, 1)].into());
        let (list, is_new) = plain(&publisher.store, &everything(), &lists).unwrap();
        assert_eq!((RangeResponse::decode(&*list).unwrap().count, is_new), (2, true));

        let elsewhere = KeyRange::new(b"/q/", b"/q0");
        let refused = plain(&publisher.store, &elsewhere, &lists).unwrap_err();
        assert_eq!(refused, RangeError::Range(elsewhere, StoreError::UnknownScope));
    }

    #[test]
    fn a_list_is_of_each_revision_since_its_last_change() {
        let mut publisher = Publisher::new(1 << 20);
        publisher.publish(&[(1, 1)].into());
        publisher.store.complete();
        publisher.publish(&[(1, 1), (2, 1)].into());
        let changed = publisher.store.changed(&everything());
        publisher.store.raise(changed + 2);
        let list = |revision| {
            let request = RangeRequest {
                key: "/p/web/".into(),
                range_end: "/p/web0".into(),
                revision,
                ..RangeRequest::default()
            };
            respond(&publisher.store, &request, &mut Cost::default()).map(|response| response.count)
        };
        for revision in [0, changed, changed + 1, changed + 2] {
            assert_eq!(list(revision), Ok(2), "{revision}");
        }
        assert_eq!(list(changed - 1), Err(RangeError::Compacted));
        assert_eq!(list(changed + 3), Err(RangeError::Future));
    }

    #[test]
    fn a_list_costs_the_keys_that_it_shows() {
        let mut publisher = Publisher::new(1 << 20);
        publisher.publish(&(0..=u8::MAX).map(|id| (id, 0)).collect());
        publisher.store.complete();
        let list = RangeRequest {
            key: "/p/web/".into(),
            range_end: "/p/web0".into(),
            limit: 1,
            ..RangeRequest::default()
        };
        let examined = |request: &RangeRequest| {
            let mut cost = Cost::default();
            respond(&publisher.store, request, &mut cost).unwrap();
            cost.examined
        };
        // The scope and a key.
        assert_eq!(examined(&list), 2);
        assert_eq!(examined(&RangeRequest { count_only: true, ..list.clone() }), 1);
        let keys = RangeRequest { limit: 0, keys_only: true, ..list };
        assert_eq!(examined(&keys), 257);

        // Too many keys in one transaction are refused.
        let mut cost = Cost::default();
        for _ in 0..1_020 {
            respond(&publisher.store, &keys, &mut cost).unwrap();
        }
        assert_eq!(respond(&publisher.store, &keys, &mut cost), Err(RangeError::TooLarge));
    }
}
