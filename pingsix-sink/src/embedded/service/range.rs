//! A range request, answered from the store.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::embedded::store::{KeyRange, Record, Refusal, Store};
use crate::proto::etcdserverpb::range_request::{SortOrder, SortTarget};
use crate::proto::etcdserverpb::{RangeRequest, RangeResponse};

/// What `etcdctl endpoint health` reads; it wants an answer, not a value.
const HEALTH_KEY: &[u8] = b"health";

/// The keys that `request` asks for.
pub(super) fn range_of(request: &RangeRequest) -> KeyRange {
    KeyRange::new(&request.key, &request.range_end)
}

/// Whether `request` wants several keys as they are, all of them and nothing else, so that others may want the same.
pub(super) fn is_plain(request: &RangeRequest) -> bool {
    let plain = RangeRequest {
        key: request.key.clone(),
        range_end: request.range_end.clone(),
        serializable: request.serializable,
        ..RangeRequest::default()
    };
    !request.range_end.is_empty() && *request == plain
}

/// Answers `request` as etcd does: the count is that of the range, filters come before the sort, the limit comes last.
pub(super) fn answer(store: &Store, request: &RangeRequest) -> Result<RangeResponse, Refusal> {
    let range = range_of(request);
    match store.admit(&range) {
        Err(Refusal::UnknownScope) if range == KeyRange::new(HEALTH_KEY, b"") => {}
        admission => admission?,
    }
    let revision = (request.revision > 0).then_some(request.revision);
    let mut records = store.select(&range, revision)?;
    let mut response = RangeResponse {
        header: Some(super::header(store.header())),
        count: i64::try_from(records.len()).unwrap_or(i64::MAX),
        ..RangeResponse::default()
    };
    if request.count_only {
        return Ok(response);
    }

    records.retain(|record| {
        within(record.mod_revision, request.min_mod_revision, request.max_mod_revision)
            && within(record.create_revision, request.min_create_revision, request.max_create_revision)
    });
    sort(&mut records, request.sort_target(), request.sort_order());
    if let Ok(limit) = usize::try_from(request.limit)
        && limit > 0
        && records.len() > limit
    {
        records.truncate(limit);
        response.more = true;
    }
    response.kvs = records
        .iter()
        .map(|record| {
            let mut kv = record.to_proto();
            if request.keys_only {
                kv.value.clear();
            }
            kv
        })
        .collect();
    Ok(response)
}

/// Whether `number` lies between two bounds, of which zero is none.
fn within(number: i64, least: i64, most: i64) -> bool {
    (least == 0 || number >= least) && (most == 0 || number <= most)
}

/// Sorts records that are in the order of their keys. Without an order only a target other than the key sorts.
fn sort(records: &mut [Arc<Record>], target: SortTarget, order: SortOrder) {
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

fn sort_by_number(records: &mut [Arc<Record>], number: impl Fn(&Record) -> i64, descending: bool) {
    if descending {
        records.sort_by_key(|record| Reverse(number(record)));
    } else {
        records.sort_by_key(|record| number(record));
    }
}
