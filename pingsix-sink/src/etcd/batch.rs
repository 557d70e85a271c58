//! Steps as etcd transactions.
//!
//! ```text
//! if    guard, keys and marks are as we saw them
//! then  put or delete the keys, put the marks of those that come or go, put the guard
//! ```
//!
//! The guard is compared and put as PingSIX's Admin API does, so that both writers detect each other. The keys are
//! compared because of writers that ignore the guard.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;

use super::GUARD;
use super::mark::{KeyDigest, MARK_COUNT, Mark, RECORD_LEN};
use super::scope_state::{Change, GUARD_VALUES, ScopeState};
use crate::desired::{DesiredError, Scope};
use crate::error::SinkError;
use crate::plan::{Step, net_steps};
use crate::proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::proto::etcdserverpb::request_op::Request as Operation;
use crate::proto::etcdserverpb::{Compare, DeleteRangeRequest, PutRequest, RequestOp, TxnRequest};

/// Limits of one transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Limit of operations, and of comparisons.
    pub(super) operations: usize,
    /// Byte limit of the request.
    pub(super) bytes: usize,
}

/// One document, its mark and the guard.
pub(super) const MIN_OPERATIONS: usize = 3;

/// Upper bound of the encoding of an operation and its comparison, besides keys and value.
const OPERATION_OVERHEAD: usize = 64;

/// Steps as one transaction.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) request: TxnRequest,
    pub(super) change: Change,
}

/// Refuses documents that exceed any transaction, before the first write.
pub(super) fn check(
    scope_state: &ScopeState,
    scope: &Scope,
    steps: &[Step],
    limits: Limits,
) -> Result<(), SinkError> {
    let mut marks: Vec<usize> = (0..MARK_COUNT).map(|index| scope_state.mark(index).mark.size()).collect();
    for name in
        steps.iter().filter(|step| matches!(step, Step::Create(_))).map(|step| KeyDigest::of(step.key()))
    {
        marks[name.mark()] += RECORD_LEN;
    }
    for step in steps {
        let mark = marks[KeyDigest::of(step.key()).mark()];
        let bytes = guard_bytes(scope) + cost(scope, step) + cost_of_mark(scope, mark);
        if bytes > limits.bytes {
            let (scope, key) = (scope.clone(), step.key().clone());
            return Err(DesiredError::DocumentTooLarge { scope, key, bytes, limit: limits.bytes }.into());
        }
    }
    Ok(())
}

impl Batch {
    /// The number of leading steps that fit into one transaction; at least one, if there is any.
    pub(super) fn fitting(scope_state: &ScopeState, scope: &Scope, steps: &[Step], limits: Limits) -> usize {
        let mut touched = BTreeSet::new();
        let (mut operations, mut bytes) = (1, guard_bytes(scope));
        let fitting = steps.iter().take_while(|step| {
            let mut more = (1, cost(scope, step));
            let mark = touched_mark(scope_state, step);
            if let Some(index) = mark {
                more.1 += RECORD_LEN;
                if !touched.contains(&index) {
                    more.0 += 1;
                    more.1 += cost_of_mark(scope, scope_state.mark(index).mark.size());
                }
            }
            let fits = operations + more.0 <= limits.operations && bytes + more.1 <= limits.bytes;
            (operations, bytes) = (operations + more.0, bytes + more.1);
            touched.extend(mark);
            fits
        });
        fitting.count().max(1).min(steps.len())
    }

    /// A batch of all steps.
    pub(super) fn of(scope_state: &ScopeState, scope: &Scope, steps: &[Step]) -> Self {
        let touched = touched_marks(scope_state, steps);
        let change = Change { documents: documents(steps), marks: marks(scope_state, steps, &touched) };
        let guard = reserved_key(scope, GUARD);
        let mut request = TxnRequest::default();
        for (key, value) in &change.documents {
            request.compare.push(unchanged(scope.full_key(key), scope_state.modified(key)));
            request.success.push(match value {
                Some(value) => put(scope.full_key(key), value.clone()),
                None => delete(scope.full_key(key)),
            });
        }
        for (index, mark) in &change.marks {
            let key = reserved_key(scope, &Mark::key(*index));
            request.compare.push(unchanged(key.clone(), scope_state.mark(*index).modified));
            request.success.push(put(key, mark.encode()));
        }
        request.compare.push(unchanged(guard.clone(), scope_state.guard().modified));
        request.success.push(put(guard, Bytes::from_static(GUARD_VALUES[0])));
        Self { request, change }
    }

    /// The bytes of the request.
    pub(super) fn bytes(&self) -> usize {
        self.request.encoded_len()
    }
}

/// A transaction that writes or deletes one [record](ScopeState::record), and the guard, which every other transaction
/// compares.
pub(super) fn record(
    scope_state: &ScopeState,
    scope: &Scope,
    name: &'static str,
    value: Option<Bytes>,
) -> TxnRequest {
    let (key, guard) = (reserved_key(scope, name), reserved_key(scope, GUARD));
    let compare = vec![
        unchanged(key.clone(), scope_state.record(name).modified),
        unchanged(guard.clone(), scope_state.guard().modified),
    ];
    let write = match value {
        Some(value) => put(key, value),
        None => delete(key),
    };
    let success = vec![write, put(guard, Bytes::from_static(GUARD_VALUES[0]))];
    TxnRequest { compare, success, failure: Vec::new() }
}

fn documents(steps: &[Step]) -> Vec<(crate::Key, Option<Bytes>)> {
    net_steps(steps)
        .map(|step| match step {
            Step::Create(document) | Step::Update(document) => {
                (document.key.clone(), Some(document.value.clone()))
            }
            Step::Delete { key, .. } => (key.clone(), None),
        })
        .collect()
}

/// The marks after the steps. Marks that are written also lose the records of keys that other writers deleted.
fn marks(scope_state: &ScopeState, steps: &[Step], touched: &BTreeSet<usize>) -> BTreeMap<usize, Mark> {
    if touched.is_empty() {
        return BTreeMap::new();
    }
    let present = scope_state.names();
    let mut marks: BTreeMap<usize, Mark> = touched
        .iter()
        .map(|index| {
            let mut mark = scope_state.mark(*index).mark.clone();
            mark.retain(|name| present.contains(&name));
            (*index, mark)
        })
        .collect();
    for step in steps {
        let name = KeyDigest::of(step.key());
        let Some(mark) = marks.get_mut(&name.mark()) else { continue };
        match step {
            Step::Create(document) | Step::Update(document) => mark.insert(name, document.order),
            Step::Delete { .. } => mark.remove(name),
        }
    }
    marks
}

/// The mark that a step changes; `None` for a document that is recorded with the same hint.
fn touched_mark(scope_state: &ScopeState, step: &Step) -> Option<usize> {
    let name = KeyDigest::of(step.key());
    let is_changed = match step {
        Step::Create(document) | Step::Update(document) => scope_state.order(name) != Some(document.order),
        Step::Delete { .. } => true,
    };
    is_changed.then_some(name.mark())
}

fn touched_marks(scope_state: &ScopeState, steps: &[Step]) -> BTreeSet<usize> {
    steps.iter().filter_map(|step| touched_mark(scope_state, step)).collect()
}

/// The full key of an entry that the sink keeps beside the documents.
fn reserved_key(scope: &Scope, key: &str) -> String {
    format!("{scope}/{key}")
}

/// The bytes of the guard.
fn guard_bytes(scope: &Scope) -> usize {
    2 * (scope.as_str().len() + 1 + GUARD.len()) + GUARD_VALUES[0].len() + OPERATION_OVERHEAD
}

fn cost(scope: &Scope, step: &Step) -> usize {
    let value = match step {
        Step::Create(document) | Step::Update(document) => document.value.len(),
        Step::Delete { .. } => 0,
    };
    2 * (scope.as_str().len() + 1 + step.key().as_str().len()) + value + OPERATION_OVERHEAD
}

fn cost_of_mark(scope: &Scope, size: usize) -> usize {
    2 * (scope.as_str().len() + 1 + Mark::key(0).len()) + size + OPERATION_OVERHEAD
}

/// A comparison that holds if the key was last written at this revision; zero means an absent key.
fn unchanged(key: String, modified: i64) -> Compare {
    let (target, operand) = match modified {
        0 => (CompareTarget::Create, TargetUnion::CreateRevision(0)),
        modified => (CompareTarget::Mod, TargetUnion::ModRevision(modified)),
    };
    Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: key.into(),
        target_union: Some(operand),
        ..Compare::default()
    }
}

fn put(key: String, value: Bytes) -> RequestOp {
    let put = PutRequest { key: key.into(), value, ..PutRequest::default() };
    RequestOp { request: Some(Operation::RequestPut(put)) }
}

fn delete(key: String) -> RequestOp {
    let delete = DeleteRangeRequest { key: key.into(), ..DeleteRangeRequest::default() };
    RequestOp { request: Some(Operation::RequestDeleteRange(delete)) }
}
