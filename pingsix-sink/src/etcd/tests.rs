//! Properties of batches and scope states, against a model of etcd's store.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;

use super::batch::{Batch, Limits, MIN_OPERATIONS, check};
use super::scope_state::ScopeState;
use crate::desired::{DocumentSet, Scope};
use crate::document::{Document, Key, OrderHint, Owner};
use crate::plan::plan;
use crate::proto::etcdserverpb::compare::TargetUnion;
use crate::proto::etcdserverpb::request_op::Request;
use crate::proto::etcdserverpb::{RangeResponse, ResponseHeader, TxnRequest};
use crate::proto::mvccpb::event::EventType;
use crate::proto::mvccpb::{Event, KeyValue};

/// Keys and revisions of an etcd.
#[derive(Debug, Default)]
struct Store {
    revision: i64,
    keys: BTreeMap<Bytes, KeyValue>,
}

impl Store {
    /// Applies a transaction if its comparisons hold, and returns its events.
    fn txn(&mut self, request: &TxnRequest) -> Option<Vec<Event>> {
        let holds = request.compare.iter().all(|compare| {
            let kv = self.keys.get(&compare.key).cloned().unwrap_or_default();
            match compare.target_union {
                Some(TargetUnion::CreateRevision(revision)) => kv.create_revision == revision,
                Some(TargetUnion::ModRevision(revision)) => kv.mod_revision == revision,
                _ => unreachable!("nothing else is compared"),
            }
        });
        let operations = request.success.iter().filter_map(|operation| operation.request.as_ref());
        holds.then(|| {
            self.revision += 1;
            operations
                .map(|operation| match operation {
                    Request::RequestPut(put) => self.put(&put.key, &put.value),
                    Request::RequestDeleteRange(delete) => self.delete(&delete.key),
                    Request::RequestRange(_) | Request::RequestTxn(_) => unreachable!("nothing is read"),
                })
                .collect()
        })
    }

    fn put(&mut self, key: &Bytes, value: &Bytes) -> Event {
        let create_revision = self.keys.get(key).map_or(self.revision, |kv| kv.create_revision);
        let kv = KeyValue {
            key: key.clone(),
            value: value.clone(),
            create_revision,
            mod_revision: self.revision,
            ..KeyValue::default()
        };
        self.keys.insert(key.clone(), kv.clone());
        Event { r#type: EventType::Put.into(), kv: Some(kv), prev_kv: None }
    }

    fn delete(&mut self, key: &Bytes) -> Event {
        self.keys.remove(key);
        let kv = KeyValue { key: key.clone(), mod_revision: self.revision, ..KeyValue::default() };
        Event { r#type: EventType::Delete.into(), kv: Some(kv), prev_kv: None }
    }

    fn list(&self) -> RangeResponse {
        let header = Some(ResponseHeader { revision: self.revision, ..ResponseHeader::default() });
        RangeResponse { header, kvs: self.keys.values().cloned().collect(), ..RangeResponse::default() }
    }
}

fn scope() -> Scope {
    Scope::new("/p/web").unwrap()
}

fn documents() -> impl Strategy<Value = DocumentSet> {
    let key = (0u8..3, 0u8..12);
    prop::collection::btree_map(key, (0usize..400, any::<u8>()), 0..24).prop_map(|documents| {
        DocumentSet::new(documents.into_iter().map(|((kind, id), (length, byte))| Document {
            key: Key::new(format!("{}/{id}", ["z", "m", "a"][usize::from(kind)])).unwrap(),
            value: Bytes::from(vec![byte; length]),
            order: OrderHint(u32::from(kind) + u32::from(byte % 2)),
            owner: Owner::new("test"),
        }))
        .unwrap()
    })
}

/// Foreign writes between two publications.
fn interference() -> impl Strategy<Value = Vec<(u8, u8, Option<u8>)>> {
    prop::collection::vec((0u8..3, 0u8..14, prop::option::of(any::<u8>())), 0..4)
}

fn contents(documents: &DocumentSet) -> BTreeMap<Key, Bytes> {
    documents.iter().map(|document| (document.key.clone(), document.value.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn batches_keep_the_limits_and_reach_the_desired_documents(
        states in prop::collection::vec((documents(), interference()), 1..5),
        operations in MIN_OPERATIONS..40,
        bytes in 1_200usize..6_000,
    ) {
        let (scope, limits) = (scope(), Limits { operations, bytes });
        let mut store = Store { revision: 1, ..Store::default() };
        let mut scope_state = ScopeState::of(&scope, &store.list());
        for (desired, interference) in states {
            let steps = plan(&scope_state.documents(), &desired);
            check(&scope_state, &scope, steps.as_slice(), limits).unwrap();
            let mut rest = steps.as_slice();
            let mut echoes = Vec::new();
            while !rest.is_empty() {
                let fitting = Batch::fitting(&scope_state, &scope, rest, limits);
                prop_assert!(fitting > 0);
                // A unit may have fewer steps than fit.
                let (taken, after) = rest.split_at(fitting.div_ceil(1 + rest.len() % 2));
                let batch = Batch::of(&scope_state, &scope, taken);
                let request = &batch.request;
                prop_assert!(request.compare.len() <= operations && request.success.len() <= operations);
                prop_assert!(request.encoded_len() <= bytes, "{} bytes", request.encoded_len());
                echoes.push(store.txn(request).expect("the scope_state is right"));
                scope_state.apply_commit(store.revision, batch.change);
                rest = after;
            }
            prop_assert_eq!(contents(&scope_state.documents()), contents(&desired));

            // Events of own transactions change nothing, and a restart finds the same state.
            for events in &echoes {
                prop_assert!(!scope_state.apply(events));
            }
            let listed = ScopeState::of(&scope, &store.list());
            prop_assert_eq!(listed.documents(), scope_state.documents());
            prop_assert_eq!(listed.revision(), scope_state.revision());
            prop_assert_eq!(listed.foreign(), scope_state.foreign());
            scope_state.record_published(desired.clone());
            prop_assert_eq!(scope_state.revision(), listed.revision());

            for (kind, id, value) in interference {
                let key = Bytes::from(format!("/p/web/{}/{id}", ["z", "m", "a"][usize::from(kind)]));
                store.revision += 1;
                let event = match value {
                    Some(byte) => store.put(&key, &Bytes::from(vec![byte])),
                    None => store.delete(&key),
                };
                prop_assert!(scope_state.apply(&[event]));
            }
            let listed = ScopeState::of(&scope, &store.list());
            prop_assert!(listed.documents().same_content(&scope_state.documents()));
            prop_assert_eq!(listed.revision(), scope_state.revision());
            prop_assert_eq!(listed.foreign(), scope_state.foreign());
        }
    }

    #[test]
    fn a_stale_scope_state_changes_nothing(
        before in documents(), other in documents(), after in documents(),
    ) {
        let scope = scope();
        let mut store = Store { revision: 1, ..Store::default() };
        let publish = |store: &mut Store, scope_state: &mut ScopeState, desired: &DocumentSet| {
            let steps = plan(&scope_state.documents(), desired);
            if steps.is_empty() {
                return None;
            }
            let batch = Batch::of(scope_state, &scope, steps.as_slice());
            let is_done = store.txn(&batch.request).is_some();
            if is_done {
                scope_state.apply_commit(store.revision, batch.change);
            }
            Some(is_done)
        };
        let mut scope_state = ScopeState::of(&scope, &store.list());
        publish(&mut store, &mut scope_state, &before);
        let mut stale = ScopeState::of(&scope, &store.list());
        let is_changed = publish(&mut store, &mut scope_state, &other).is_some();
        if is_changed {
            prop_assert_ne!(publish(&mut store, &mut stale, &after), Some(true));
            prop_assert_eq!(contents(&ScopeState::of(&scope, &store.list()).documents()), contents(&other));
        }
    }
}

/// The writers share neither a key nor a mark; only the guard reveals one to the other.
#[test]
fn writers_without_a_common_key_detect_each_other() {
    let scope = scope();
    let set = |a: &'static str, b: &'static str| {
        DocumentSet::new([("routes/a", a), ("routes/b", b)].map(|(key, value)| Document {
            key: Key::new(key).unwrap(),
            value: Bytes::from_static(value.as_bytes()),
            order: OrderHint(0),
            owner: Owner::new("test"),
        }))
        .unwrap()
    };
    let batch = |store: &Store, desired: &DocumentSet| {
        let scope_state = ScopeState::of(&scope, &store.list());
        let steps = plan(&scope_state.documents(), desired);
        Batch::of(&scope_state, &scope, steps.as_slice())
    };
    let mut store = Store { revision: 1, ..Store::default() };
    let first = batch(&store, &set("1", "1"));
    assert!(store.txn(&first.request).is_some());
    let (one, other) = (batch(&store, &set("2", "1")), batch(&store, &set("1", "2")));
    assert!(one.change.marks.is_empty() && other.change.marks.is_empty());
    assert!(store.txn(&one.request).is_some());
    assert!(store.txn(&other.request).is_none());
}
