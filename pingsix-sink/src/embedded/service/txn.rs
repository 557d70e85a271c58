//! Read-only transactions.
//!
//! A transaction with a write in any branch is refused, regardless of its comparisons. Otherwise a writer would learn
//! of the refusal only when its condition holds.

use tonic::Status;

use super::range::{self, Cost, RangeError};
use super::refusal;
use crate::embedded::store::{KeyRange, Record, Store};
use crate::proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::proto::etcdserverpb::request_op::Request as Operation;
use crate::proto::etcdserverpb::response_op::Response as Outcome;
use crate::proto::etcdserverpb::{Compare, ResponseOp, TxnRequest, TxnResponse};

/// etcd's default limit, per branch.
const MAX_OPERATIONS: usize = 128;

/// Limit of the comparisons and operations in a transaction and all nested ones. The limit per branch alone would let
/// them multiply with every level.
const MAX_NESTED_OPERATIONS: usize = 1_024;

/// Refuses invalid transactions as etcd does, every write, and too many operations.
pub(super) fn check(request: &TxnRequest) -> Result<(), Status> {
    check_level(request, &mut 0)
}

/// Checks a transaction and all nested ones; `sum` is the count so far.
fn check_level(request: &TxnRequest, sum: &mut usize) -> Result<(), Status> {
    let lengths = [request.compare.len(), request.success.len(), request.failure.len()];
    if lengths.iter().any(|length| *length > MAX_OPERATIONS) {
        return Err(Status::invalid_argument("etcdserver: too many operations in txn request"));
    }
    *sum += lengths.iter().sum::<usize>();
    if *sum > MAX_NESTED_OPERATIONS {
        return Err(Status::resource_exhausted(format!(
            "a transaction has more than {MAX_NESTED_OPERATIONS} comparisons and operations in all of its levels"
        )));
    }
    for compare in &request.compare {
        if compare.key.is_empty() {
            return Err(refusal::empty_key());
        }
        refusal::check_key_length([&compare.key, &compare.range_end])?;
    }
    for operation in request.success.iter().chain(&request.failure) {
        match &operation.request {
            Some(Operation::RequestRange(range)) if range.key.is_empty() => return Err(refusal::empty_key()),
            Some(Operation::RequestRange(range)) => {
                refusal::check_key_length([&range.key, &range.range_end])?;
            }
            None => {}
            Some(Operation::RequestTxn(inner)) => check_level(inner, sum)?,
            Some(Operation::RequestPut(_) | Operation::RequestDeleteRange(_)) => {
                return Err(refusal::read_only());
            }
        }
    }
    Ok(())
}

/// All ranges that a transaction may read, in all branches.
pub(super) fn ranges(request: &TxnRequest) -> Box<dyn Iterator<Item = KeyRange> + '_> {
    let compared = request.compare.iter();
    let compared = compared.map(|compare| KeyRange::new(&compare.key, &compare.range_end));
    let operations = request.success.iter().chain(&request.failure);
    let read = operations.flat_map(|operation| match &operation.request {
        Some(Operation::RequestRange(request)) => Box::new(std::iter::once(range::range_of(request))),
        Some(Operation::RequestTxn(inner)) => ranges(inner),
        Some(Operation::RequestPut(_) | Operation::RequestDeleteRange(_)) | None => {
            Box::new(std::iter::empty()) as Box<dyn Iterator<Item = KeyRange>>
        }
    });
    Box::new(compared.chain(read))
}

/// The response to a transaction that passed [`check`], from one state of the store.
pub(super) fn respond(store: &Store, request: &TxnRequest) -> Result<TxnResponse, RangeError> {
    respond_level(store, request, &mut Cost::default())
}

/// The response to a transaction and its nested ones; `cost` is the cost so far.
fn respond_level(store: &Store, request: &TxnRequest, cost: &mut Cost) -> Result<TxnResponse, RangeError> {
    let mut succeeded = true;
    for compare in &request.compare {
        succeeded &= holds(store, compare, cost)?;
    }
    let mut responses = Vec::new();
    for operation in if succeeded { &request.success } else { &request.failure } {
        let response = match &operation.request {
            Some(Operation::RequestRange(request)) => {
                Some(Outcome::ResponseRange(range::respond(store, request, cost)?))
            }
            Some(Operation::RequestTxn(inner)) => {
                Some(Outcome::ResponseTxn(respond_level(store, inner, cost)?))
            }
            Some(Operation::RequestPut(_) | Operation::RequestDeleteRange(_)) | None => None,
        };
        responses.push(ResponseOp { response });
    }
    Ok(TxnResponse { header: Some(super::header(store.header())), succeeded, responses })
}

/// Whether a comparison holds for every key of its range. A missing key has zero for its numbers, and fails every
/// comparison of values.
fn holds(store: &Store, compare: &Compare, cost: &mut Cost) -> Result<bool, RangeError> {
    let range = KeyRange::new(&compare.key, &compare.range_end);
    let records = store.admit(&range).and_then(|()| store.select(&range, None));
    let records = records.map_err(|refusal| RangeError::Range(range, refusal))?;
    cost.examine(records.scopes + records.len())?;
    if records.len() == 0 {
        let missing = Record {
            key: Box::from(&*compare.key),
            value: bytes::Bytes::new(),
            create_revision: 0,
            mod_revision: 0,
            version: 0,
            ordinal: 0,
        };
        return Ok(compare.target() != CompareTarget::Value && holds_for(compare, &missing));
    }
    Ok(records.iter().all(|record| holds_for(compare, record)))
}

fn holds_for(compare: &Compare, record: &Record) -> bool {
    let operand = compare.target_union.as_ref();
    // As in etcd, an operand of the wrong type counts as zero or empty.
    let ordering = match compare.target() {
        CompareTarget::Version => {
            record.version.cmp(&if let Some(TargetUnion::Version(number)) = operand { *number } else { 0 })
        }
        CompareTarget::Create => {
            record.create_revision.cmp(&if let Some(TargetUnion::CreateRevision(number)) = operand {
                *number
            } else {
                0
            })
        }
        CompareTarget::Mod => record
            .mod_revision
            .cmp(&if let Some(TargetUnion::ModRevision(number)) = operand { *number } else { 0 }),
        CompareTarget::Value => {
            (*record.value).cmp(if let Some(TargetUnion::Value(value)) = operand { value } else { &[] })
        }
        // Keys have no leases.
        CompareTarget::Lease => {
            0.cmp(&if let Some(TargetUnion::Lease(number)) = operand { *number } else { 0 })
        }
    };
    match compare.result() {
        CompareResult::Equal => ordering.is_eq(),
        CompareResult::NotEqual => ordering.is_ne(),
        CompareResult::Greater => ordering.is_gt(),
        CompareResult::Less => ordering.is_lt(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::embedded::store::testing::Publisher;
    use crate::proto::etcdserverpb::{RangeRequest, RequestOp};

    fn operation(operation: Operation) -> RequestOp {
        RequestOp { request: Some(operation) }
    }

    /// Nested transactions with the maximum of historical lists.
    fn nested(add_list: &RangeRequest) -> TxnRequest {
        let inner = TxnRequest {
            success: vec![operation(Operation::RequestRange(add_list.clone())); MAX_OPERATIONS - 1],
            ..TxnRequest::default()
        };
        let success = vec![operation(Operation::RequestTxn(inner)); 7];
        TxnRequest { success, ..TxnRequest::default() }
    }

    #[test]
    fn historical_lists_of_a_transaction_cost_their_keys() {
        let mut publisher = Publisher::new(1 << 20);
        let mut state: BTreeMap<u8, u8> = (0..=u8::MAX).map(|id| (id, 0)).collect();
        publisher.publish(&state);
        publisher.store.complete();
        let oldest = publisher.store.header();
        for round in 0..200 {
            state.insert(round, 1);
            publisher.publish(&state);
        }
        let add_list = RangeRequest {
            key: "/p/web/".into(),
            range_end: "/p/web0".into(),
            revision: oldest,
            limit: 1,
            ..RangeRequest::default()
        };
        let examined = |request: &RangeRequest| {
            let (mut cost, txn) = (Cost::default(), nested(request));
            check(&txn).unwrap();
            let respond = respond_level(&publisher.store, &txn, &mut cost);
            respond.is_ok().then(|| cost.examined())
        };
        let lists = 7 * (MAX_OPERATIONS - 1);
        // The scope and a key.
        assert_eq!(examined(&add_list), Some(2 * lists));
        assert_eq!(examined(&RangeRequest { count_only: true, ..add_list.clone() }), Some(lists));
        assert_eq!(
            examined(&RangeRequest { limit: 0, keys_only: true, ..add_list.clone() }),
            Some(257 * lists)
        );
        let history = range::respond(&publisher.store, &add_list, &mut Cost::default()).unwrap();
        assert_eq!((history.count, history.more, history.kvs[0].mod_revision), (256, true, oldest));

        // A filter examines every key, which is refused for too many keys.
        let mut cost = Cost::default();
        let filtered = RangeRequest { min_mod_revision: i64::MAX, ..add_list };
        for _ in 0..1_020 {
            range::respond(&publisher.store, &filtered, &mut cost).unwrap();
        }
        assert_eq!(range::respond(&publisher.store, &filtered, &mut cost), Err(RangeError::TooLarge));
    }
}
