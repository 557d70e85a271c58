//! Transactions that only read.
//!
//! A transaction with a write in any branch is refused, whichever branch its comparisons would choose: a writer must
//! not learn that it is one only when its condition happens to hold.

use prost::Message as _;
use tonic::Status;

use super::{range, refusal};
use crate::embedded::LIST_LIMIT;
use crate::embedded::store::{KeyRange, Record, Refusal, Store};
use crate::proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::proto::etcdserverpb::request_op::Request as Operation;
use crate::proto::etcdserverpb::response_op::Response as Outcome;
use crate::proto::etcdserverpb::{Compare, ResponseOp, TxnRequest, TxnResponse};

/// etcd's own default limit, per branch.
const MOST_OPERATIONS: usize = 128;

/// How many comparisons and operations a transaction may have with all that are nested in it, in all branches. The
/// limit per branch alone would let them multiply with every level.
const MOST_OF_ALL_LEVELS: usize = 1_024;

/// How many bytes of lists one answer may hold; they are all in memory at once.
const MOST_LISTED: usize = 16 * LIST_LIMIT;

/// How many keys a transaction may look at, in all of its comparisons and lists. Nobody else gets on meanwhile.
const MOST_LOOKED_AT: usize = 1 << 18;

/// Why a transaction is not answered.
pub(super) enum Unanswered {
    /// A range in it is refused.
    Range(KeyRange, Refusal),
    /// It lists more than one answer may hold, or looks at more than one should.
    TooLarge,
}

/// Refuses what etcd would refuse, every write, and what is more than anybody needs.
pub(super) fn check(request: &TxnRequest) -> Result<(), Status> {
    check_level(request, &mut 0)
}

/// Checks a transaction and all that are nested in it; `sum` is what was counted before.
fn check_level(request: &TxnRequest, sum: &mut usize) -> Result<(), Status> {
    let lengths = [request.compare.len(), request.success.len(), request.failure.len()];
    if lengths.iter().any(|length| *length > MOST_OPERATIONS) {
        return Err(Status::invalid_argument("etcdserver: too many operations in txn request"));
    }
    *sum += lengths.iter().sum::<usize>();
    if *sum > MOST_OF_ALL_LEVELS {
        return Err(Status::resource_exhausted(format!(
            "a transaction has more than {MOST_OF_ALL_LEVELS} comparisons and operations in all of its levels"
        )));
    }
    for compare in &request.compare {
        if compare.key.is_empty() {
            return Err(refusal::empty_key());
        }
        refusal::too_long([&compare.key, &compare.range_end])?;
    }
    for operation in request.success.iter().chain(&request.failure) {
        match &operation.request {
            Some(Operation::RequestRange(range)) if range.key.is_empty() => return Err(refusal::empty_key()),
            Some(Operation::RequestRange(range)) => refusal::too_long([&range.key, &range.range_end])?,
            None => {}
            Some(Operation::RequestTxn(inner)) => check_level(inner, sum)?,
            Some(Operation::RequestPut(_) | Operation::RequestDeleteRange(_)) => {
                return Err(refusal::read_only());
            }
        }
    }
    Ok(())
}

/// All that a transaction may read, in whichever branch.
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

/// Answers a transaction that [`check`] let pass, all of it from one state of the store.
pub(super) fn answer(store: &Store, request: &TxnRequest) -> Result<TxnResponse, Unanswered> {
    answer_level(store, request, &mut Cost::default())
}

/// What a transaction has cost so far.
#[derive(Default)]
struct Cost {
    /// The bytes of its lists.
    listed: usize,
    /// The keys it looked at.
    looked_at: usize,
}

impl Cost {
    fn add(&mut self, keys: usize, bytes: usize) -> Result<(), Unanswered> {
        self.looked_at += keys;
        self.listed += bytes;
        let is_fine = self.looked_at <= MOST_LOOKED_AT && self.listed <= MOST_LISTED;
        is_fine.then_some(()).ok_or(Unanswered::TooLarge)
    }
}

/// Answers a transaction and those nested in it; `cost` is that of what came before.
fn answer_level(store: &Store, request: &TxnRequest, cost: &mut Cost) -> Result<TxnResponse, Unanswered> {
    let mut succeeded = true;
    for compare in &request.compare {
        succeeded &= holds(store, compare, cost)?;
    }
    let mut responses = Vec::new();
    for operation in if succeeded { &request.success } else { &request.failure } {
        let response = match &operation.request {
            Some(Operation::RequestRange(request)) => {
                let list = range::answer(store, request)
                    .map_err(|refusal| Unanswered::Range(range::range_of(request), refusal))?;
                // All of the range was looked at, whatever is shown of it.
                cost.add(usize::try_from(list.count).unwrap_or(usize::MAX), list.encoded_len())?;
                Some(Outcome::ResponseRange(list))
            }
            Some(Operation::RequestTxn(inner)) => {
                Some(Outcome::ResponseTxn(answer_level(store, inner, cost)?))
            }
            Some(Operation::RequestPut(_) | Operation::RequestDeleteRange(_)) | None => None,
        };
        responses.push(ResponseOp { response });
    }
    Ok(TxnResponse { header: Some(super::header(store.header())), succeeded, responses })
}

/// Whether a comparison holds for every key of its range. A missing key counts as one whose numbers are zero, and
/// fails every comparison of values.
fn holds(store: &Store, compare: &Compare, cost: &mut Cost) -> Result<bool, Unanswered> {
    let range = KeyRange::new(&compare.key, &compare.range_end);
    let records = store.admit(&range).and_then(|()| store.select(&range, None));
    let records = records.map_err(|refusal| Unanswered::Range(range, refusal))?;
    cost.add(records.len(), 0)?;
    if records.is_empty() {
        let missing = Record {
            key: Box::from(&*compare.key),
            value: bytes::Bytes::new(),
            create_revision: 0,
            mod_revision: 0,
            version: 0,
        };
        return Ok(compare.target() != CompareTarget::Value && holds_for(compare, &missing));
    }
    Ok(records.iter().all(|record| holds_for(compare, record)))
}

fn holds_for(compare: &Compare, record: &Record) -> bool {
    let operand = compare.target_union.as_ref();
    // As in etcd, an operand of another kind than the target counts as zero or empty.
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
        // No key has a lease.
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
