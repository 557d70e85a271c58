//! Range requests.

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use crate::embedded::LIST_LIMIT;
use crate::embedded::replica::ListCache;
use crate::embedded::store::{KeyRange, Record, Store, StoreError};
use crate::proto::etcdserverpb::range_request::{SortOrder, SortTarget};
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
    let refused = |refusal| RangeError::Range(range.clone(), refusal);
    store.admit(range).map_err(refused)?;
    let records = store.select(range, None).map_err(refused)?;
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

/// The response to `request` as in etcd: the count is that of the range, filters precede the sort, the limit comes
/// last.
///
/// Without filters and sort, the cost is that of the listed keys, because the count of a range is known.
pub(super) fn respond(
    store: &Store,
    request: &RangeRequest,
    cost: &mut Cost,
) -> Result<RangeResponse, RangeError> {
    let range = range_of(request);
    let refused = |refusal| RangeError::Range(range.clone(), refusal);
    match store.admit(&range) {
        Err(StoreError::UnknownScope) if range == KeyRange::new(HEALTH_KEY, b"") => {}
        admission => admission.map_err(refused)?,
    }
    let revision = (request.revision > 0).then_some(request.revision);
    let selection = store.select(&range, revision).map_err(refused)?;
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
    let (records, all): (Vec<&Arc<Record>>, usize) = if is_in_order(request) {
        cost.examine(selection.len().min(limit))?;
        (selection.iter().take(limit).collect(), selection.len())
    } else {
        cost.examine(selection.len())?;
        let mut records: Vec<_> = selection.iter().filter(|record| is_wanted(request, record)).collect();
        sort(&mut records, request.sort_target(), request.sort_order());
        let all = records.len();
        records.truncate(limit);
        (records, all)
    };
    response.more = all > records.len();
    for record in records {
        let mut kv = record.to_proto();
        if request.keys_only {
            kv.value.clear();
        }
        cost.add_list(kv.encoded_len())?;
        response.kvs.push(kv);
    }
    Ok(response)
}

/// Whether `request` asks for all keys of its range in key order.
fn is_in_order(request: &RangeRequest) -> bool {
    let bounds = [
        request.min_mod_revision,
        request.max_mod_revision,
        request.min_create_revision,
        request.max_create_revision,
    ];
    let is_by_key = request.sort_target() == SortTarget::Key && request.sort_order() != SortOrder::Descend;
    is_by_key && bounds == [0; 4]
}

fn is_wanted(request: &RangeRequest, record: &Record) -> bool {
    within(record.mod_revision, request.min_mod_revision, request.max_mod_revision)
        && within(record.create_revision, request.min_create_revision, request.max_create_revision)
}

/// Whether `number` lies between two bounds; zero is no bound.
fn within(number: i64, least: i64, most: i64) -> bool {
    (least == 0 || number >= least) && (most == 0 || number <= most)
}

/// Sorts records in key order. Without a sort order, only a sort target other than the key sorts.
fn sort(records: &mut [&Arc<Record>], target: SortTarget, order: SortOrder) {
    let descending = match order {
        SortOrder::None | SortOrder::Ascend => false,
        SortOrder::Descend => true,
    };
    match target {
        SortTarget::Key if descending => records.reverse(),
        SortTarget::Key => {}
        SortTarget::Version => sort_by_number(records, |record| record.version, descending),
        SortTarget::Create => sort_by_number(records, |record| record.create_revision, descending),
        SortTarget::Mod => sort_by_number(records, |record| record.mod_revision, descending),
        SortTarget::Value if descending => records.sort_by(|a, b| b.value.cmp(&a.value)),
        SortTarget::Value => records.sort_by(|a, b| a.value.cmp(&b.value)),
    }
}

fn sort_by_number(records: &mut [&Arc<Record>], number: impl Fn(&Record) -> i64, descending: bool) {
    if descending {
        records.sort_by_key(|record| Reverse(number(record)));
    } else {
        records.sort_by_key(|record| number(record));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
    fn a_list_costs_the_keys_that_it_shows_at_every_revision() {
        let mut publisher = Publisher::new(1 << 20);
        let mut state: BTreeMap<u8, u8> = (0..=u8::MAX).map(|id| (id, 0)).collect();
        publisher.publish(&state);
        publisher.store.complete();
        let oldest = publisher.store.header();
        for round in 0..200 {
            state.insert(round, 1);
            publisher.publish(&state);
        }
        let list = RangeRequest {
            key: "/p/web/".into(),
            range_end: "/p/web0".into(),
            revision: oldest,
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
        assert_eq!(examined(&RangeRequest { limit: 0, keys_only: true, ..list.clone() }), 257);

        let past = respond(&publisher.store, &list, &mut Cost::default()).unwrap();
        assert_eq!((past.count, past.more, past.kvs[0].mod_revision), (256, true, oldest));

        // A filter examines every key, which is refused for too many keys.
        let mut cost = Cost::default();
        let filtered = RangeRequest { min_mod_revision: i64::MAX, ..list };
        for _ in 0..1_020 {
            respond(&publisher.store, &filtered, &mut cost).unwrap();
        }
        assert_eq!(respond(&publisher.store, &filtered, &mut cost), Err(RangeError::TooLarge));
    }
}
