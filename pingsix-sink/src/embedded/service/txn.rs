//! Read-only transactions.
//!
//! A transaction with a write in any branch is refused, regardless of its comparisons. Otherwise a writer would learn
//! of the refusal only when its condition holds.

use tonic::Status;

use super::range::{self, Cost, RangeError};
use super::refusal;
use crate::document::OrderHint;
use crate::embedded::store::{KeyRange, Record, Store};
use crate::proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::proto::etcdserverpb::request_op::Request as Operation;
use crate::proto::etcdserverpb::response_op::Response as Outcome;
use crate::proto::etcdserverpb::{Compare, RangeRequest, RequestOp, ResponseOp, TxnRequest, TxnResponse};

/// etcd's default limit, per branch.
const MAX_OPERATIONS: usize = 128;

/// Refuses invalid transactions as etcd does, every write, and transactions within transactions, which neither PingSIX
/// nor `etcdctl` sends.
pub(super) fn check(request: &TxnRequest) -> Result<(), Status> {
    let lengths = [request.compare.len(), request.success.len(), request.failure.len()];
    if lengths.iter().any(|length| *length > MAX_OPERATIONS) {
        return Err(Status::invalid_argument("etcdserver: too many operations in txn request"));
    }
    for compare in &request.compare {
        if compare.key.is_empty() {
            return Err(refusal::empty_key());
        }
        refusal::check_key_length([&compare.key, &compare.range_end])?;
    }
    for operation in request.success.iter().chain(&request.failure) {
        match &operation.request {
            Some(Operation::RequestRange(range)) => refusal::check_range(range)?,
            None => {}
            Some(Operation::RequestTxn(_)) => {
                return Err(Status::unimplemented("a transaction within a transaction is not supported"));
            }
            Some(Operation::RequestPut(_) | Operation::RequestDeleteRange(_)) => {
                return Err(refusal::read_only());
            }
        }
    }
    Ok(())
}

/// The list of an operation; [`check`] leaves no others.
fn read(operation: &RequestOp) -> Option<&RangeRequest> {
    match &operation.request {
        Some(Operation::RequestRange(request)) => Some(request),
        Some(Operation::RequestPut(_) | Operation::RequestDeleteRange(_) | Operation::RequestTxn(_))
        | None => None,
    }
}

/// All ranges that a transaction may read, in both branches.
pub(super) fn ranges(request: &TxnRequest) -> impl Iterator<Item = KeyRange> {
    let compared = request.compare.iter().map(|compare| KeyRange::new(&compare.key, &compare.range_end));
    let operations = request.success.iter().chain(&request.failure);
    compared.chain(operations.filter_map(read).map(range::range_of))
}

/// The response to a transaction that passed [`check`], from one state of the store.
pub(super) fn respond(store: &Store, request: &TxnRequest) -> Result<TxnResponse, RangeError> {
    let cost = &mut Cost::default();
    let mut succeeded = true;
    for compare in &request.compare {
        succeeded &= holds(store, compare, cost)?;
    }
    let mut responses = Vec::new();
    for operation in if succeeded { &request.success } else { &request.failure } {
        let response = read(operation).map(|request| range::respond(store, request, cost)).transpose()?;
        responses.push(ResponseOp { response: response.map(Outcome::ResponseRange) });
    }
    Ok(TxnResponse { header: Some(super::header(store.header())), succeeded, responses })
}

/// Whether a comparison holds for every key of its range. A missing key has zero for its numbers, and fails every
/// comparison of values.
fn holds(store: &Store, compare: &Compare, cost: &mut Cost) -> Result<bool, RangeError> {
    let range = KeyRange::new(&compare.key, &compare.range_end);
    store.admit(&range).map_err(|refusal| RangeError::Range(range.clone(), refusal))?;
    let records = store.select(&range);
    cost.examine(records.scopes + records.len())?;
    if records.len() == 0 {
        let missing = Record {
            key: Box::from(&*compare.key),
            value: bytes::Bytes::new(),
            create_revision: 0,
            mod_revision: 0,
            version: 0,
            order: OrderHint(0),
        };
        return Ok(compare.target() != CompareTarget::Value && holds_for(compare, &missing));
    }
    Ok(records.iter().all(|record| holds_for(compare, record)))
}

fn holds_for(compare: &Compare, record: &Record) -> bool {
    // As in etcd, an operand of the wrong type counts as zero or empty.
    let (number, value): (i64, &[u8]) = match (compare.target(), &compare.target_union) {
        (CompareTarget::Version, Some(TargetUnion::Version(number)))
        | (CompareTarget::Create, Some(TargetUnion::CreateRevision(number)))
        | (CompareTarget::Mod, Some(TargetUnion::ModRevision(number)))
        | (CompareTarget::Lease, Some(TargetUnion::Lease(number))) => (*number, &[]),
        (CompareTarget::Value, Some(TargetUnion::Value(value))) => (0, value),
        _ => (0, &[]),
    };
    let ordering = match compare.target() {
        CompareTarget::Version => record.version.cmp(&number),
        CompareTarget::Create => record.create_revision.cmp(&number),
        CompareTarget::Mod => record.mod_revision.cmp(&number),
        CompareTarget::Value => (*record.value).cmp(value),
        // Keys have no leases.
        CompareTarget::Lease => 0.cmp(&number),
    };
    match compare.result() {
        CompareResult::Equal => ordering.is_eq(),
        CompareResult::NotEqual => ordering.is_ne(),
        CompareResult::Greater => ordering.is_gt(),
        CompareResult::Less => ordering.is_lt(),
    }
}
