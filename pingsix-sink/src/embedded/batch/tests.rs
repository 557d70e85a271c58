use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::store::EVENT_OVERHEAD;
use super::super::store::testing::{Publisher, everything, records_at, state};
use super::*;
use crate::proto::mvccpb::KeyValue;
use crate::proto::mvccpb::event::EventType;

fn wanted(range: KeyRange) -> Wanted {
    Wanted { range, with_previous: false }
}

/// The batch for a watch of everything that has seen everything below `next`, by the history.
fn batch(store: &Store, next: i64, limit: usize) -> Result<Batch, Compacted> {
    let position = store.position(&everything(), next, None)?;
    Batch::of(store, &position, &wanted(everything()), next, limit)
}

/// The revisions of the commits from `next` on.
fn commits(store: &Store, next: i64) -> Vec<i64> {
    store.position(&everything(), next, None).unwrap().revisions(next)
}

/// The decoded events of a batch: a pair, or the key of a deletion.
fn events(batch: &Batch) -> Vec<(i64, Result<KeyValue, Bytes>)> {
    let response = WatchResponse::decode(&*batch.events).unwrap();
    assert!(response.header.is_none() && response.watch_id == 0, "nothing but events is encoded");
    let event = |event: crate::proto::mvccpb::Event| {
        let (kind, kv) = (event.r#type(), event.kv.unwrap());
        (kv.mod_revision, if kind == EventType::Put { Ok(kv) } else { Err(kv.key) })
    };
    response.events.into_iter().map(event).collect()
}

proptest! {
    /// A client that applies batches has, after each, exactly the store's state at the batch's revision.
    #[test]
    fn a_batch_leads_from_one_state_to_a_later_one(
        states in prop::collection::vec((state(), any::<bool>()), 2..14), limit in 80usize..600,
    ) {
        let mut publisher = Publisher::new(limit);
        publisher.publish(&states[0].0);
        publisher.store.complete();
        let select = |publisher: &Publisher, revision| {
            records_at(&publisher.store, revision).unwrap().iter().map(|it| it.to_proto()).collect()
        };
        let mut revision = publisher.store.header();
        let mut mirror: Vec<KeyValue> = select(&publisher, revision);
        for (state, reads) in &states[1..] {
            publisher.publish(state);
            if !*reads { continue; }
            loop {
                let commits = commits(&publisher.store, revision + 1);
                if commits.is_empty() { break; }
                let batch = batch(&publisher.store, revision + 1, limit).unwrap();
                let told = commits.iter().filter(|commit| **commit <= batch.reached).count();
                revision = commits[told - 1];
                prop_assert_eq!((revision, batch.more), (batch.reached, told < commits.len()));

                let events = events(&batch);
                let bytes = batch.events.len();
                prop_assert!(bytes <= limit || told == 1, "{} of {}", bytes, limit);
                prop_assert_eq!(events.len(), batch.event_count);
                prop_assert!(events.is_sorted_by_key(|(revision, _)| *revision));
                prop_assert_eq!(events.last().map(|(last, _)| *last), Some(revision), "the last commit is reached");
                let last = events.len() - 1;
                for (place, (_, event)) in events.into_iter().enumerate() {
                    let key = event.as_ref().map_or_else(|key| key, |kv| &kv.key).clone();
                    let known = mirror.binary_search_by(|kv| kv.key.cmp(&key));
                    match (event, known) {
                        (Ok(kv), Ok(place)) => mirror[place] = kv,
                        (Ok(kv), Err(place)) => mirror.insert(place, kv),
                        (Err(_), Ok(place)) => { mirror.remove(place); }
                        (Err(key), Err(_)) => prop_assert!(place == last, "{:?} was never told", key),
                    }
                }
                prop_assert_eq!(&mirror, &select(&publisher, revision));
            }
        }
    }
}

proptest! {
    /// A resting watch receives the current state although the history is forgotten meanwhile. Another watch receives
    /// the changes or is cancelled.
    #[test]
    fn a_batch_after_a_rest_needs_no_history(
        states in prop::collection::vec((state(), any::<bool>()), 2..14), rests in any::<bool>(),
    ) {
        let mut publisher = Publisher::forgetful(10_000);
        publisher.publish(&states[0].0);
        publisher.store.complete();
        let mut next = publisher.store.header() + 1;
        let mut held = publisher.store.states(&everything());
        let list = |publisher: &Publisher| -> BTreeMap<Bytes, KeyValue> {
            let now = publisher.store.select(&everything());
            now.iter().map(|record| record.to_proto()).map(|kv| (kv.key.clone(), kv)).collect()
        };
        let mut mirror = list(&publisher);
        for (state, reads) in &states[1..] {
            publisher.publish(state);
            if !*reads { continue; }
            let position = publisher.store.position(&everything(), next, Some(&held).filter(|_| rests));
            if let Ok(position) = position {
                let batch =
                    Batch::of(&publisher.store, &position, &wanted(everything()), next, 10_000).unwrap();
                for (_, event) in events(&batch) {
                    match event {
                        Ok(kv) => mirror.insert(kv.key.clone(), kv),
                        Err(key) => mirror.remove(&key),
                    };
                }
            } else {
                prop_assert!(!rests);
                mirror = list(&publisher);
            }
            prop_assert_eq!(&mirror, &list(&publisher));
            next = publisher.store.header() + 1;
            held = publisher.store.states(&everything());
        }
    }
}

#[test]
fn a_batch_has_the_last_change_of_each_key_and_no_short_lived_keys() {
    let mut publisher = Publisher::new(10_000);
    publisher.publish(&[(1, 1), (2, 1)].into());
    let start = publisher.store.header() + 1;
    publisher.publish(&[(1, 2), (2, 1), (3, 1)].into());
    publisher.publish(&[(1, 3), (3, 1)].into());
    publisher.publish(&[(1, 3)].into());
    let commits = commits(&publisher.store, start);
    let whole = batch(&publisher.store, start, 10_000).unwrap();
    let [put, deleted]: [_; 2] = events(&whole).try_into().unwrap();
    assert_eq!((put.0, put.1.unwrap().value.len()), (commits[1], 3));
    assert!(deleted.0 == commits[2] && deleted.1.unwrap_err().ends_with(b"k/2"));
    assert_eq!((whole.event_count, whole.merged, whole.reached), (2, 3, commits[2]));

    let position = publisher.store.position(&everything(), start, None).unwrap();
    let diff = StateDiff::until(&position, &everything(), commits[1]).unwrap();
    let part = diff.encode(&wanted(everything()), commits[1], true);
    assert_eq!(
        (part.event_count, part.merged),
        (3, 1),
        "a present key is sent although its deletion follows"
    );

    publisher.publish(&[(1, 3), (9, 9)].into());
    publisher.publish(&[(1, 3)].into());
    let next = commits[2] + 1;
    let last = batch(&publisher.store, next, 10_000).unwrap();
    assert_eq!(events(&last).len(), 1, "nothing has changed in the end but the revision");
    assert_eq!((last.event_count, last.merged, last.reached), (1, 1, publisher.store.header()));

    let other = KeyRange::new(Bytes::from_static(b"/q"), Bytes::from_static(b"/r"));
    let position = publisher.store.position(&other, next, None).unwrap();
    let nothing = Batch::of(&publisher.store, &position, &wanted(other), next, 10_000).unwrap();
    assert!(nothing.events.is_empty(), "nothing of it is wanted");
}

#[test]
fn previous_versions_are_those_that_the_client_had() {
    let mut publisher = Publisher::new(10_000);
    publisher.publish(&[(1, 1), (2, 2)].into());
    let start = publisher.store.header() + 1;
    publisher.publish(&[(1, 3), (2, 2)].into());
    publisher.publish(&[(1, 4), (5, 5)].into());
    let position = publisher.store.position(&everything(), start, None).unwrap();
    let wanted = Wanted { range: everything(), with_previous: true };
    let batch = Batch::of(&publisher.store, &position, &wanted, start, 10_000).unwrap();
    let response = WatchResponse::decode(&*batch.events).unwrap();
    let lengths = |event: &crate::proto::mvccpb::Event| {
        let before = event.prev_kv.as_ref().map(|kv| kv.value.len());
        (event.kv.as_ref().unwrap().value.len(), before)
    };
    let told: Vec<_> = response.events.iter().map(lengths).collect();
    assert_eq!(told, [(4, Some(1)), (5, None), (0, Some(2))]);
}

#[test]
fn an_oversized_batch_is_cut_between_commits_as_late_as_possible() {
    let limit = 3 * (EVENT_OVERHEAD + 100);
    let mut publisher = Publisher::new(limit);
    let start = publisher.store.header() + 1;
    publisher.publish(&[(1, 100)].into());
    publisher.publish(&[(1, 100), (2, 100)].into());
    let two = publisher.store.header();
    publisher.publish(&[(1, 100), (2, 100), (3, 100)].into());
    let cut = batch(&publisher.store, start, limit).unwrap();
    assert_eq!((cut.reached, cut.more), (two, true), "all three are too large");
    publisher.publish(&[(3, 100)].into());
    let whole = batch(&publisher.store, start, limit).unwrap();
    assert_eq!(
        (whole.reached, whole.more),
        (publisher.store.header(), false),
        "with the last they are small again"
    );
}

#[test]
fn watches_with_the_same_changes_share_encoded_bytes() {
    let mut publisher = Publisher::new(1 << 20);
    publisher.publish(&[(1, 1)].into());
    let start = publisher.store.header() + 1;
    publisher.publish(&[(1, 2)].into());
    let batches = BatchCache::new(BATCH_CACHE_BYTES);
    let get = |publisher: &Publisher, range: &KeyRange, next: i64| {
        Batch::shared(&batches, &publisher.store, &wanted(range.clone()), (next, None), 1 << 20).unwrap()
    };
    let (one, made) = get(&publisher, &everything(), start).unwrap();
    assert!(made);
    let (two, made) = get(&publisher, &everything(), start).unwrap();
    assert!(!made && Arc::ptr_eq(&one, &two));
    let other = KeyRange::new(Bytes::from_static(b"/"), Bytes::from_static(b"0"));
    assert!(get(&publisher, &other, start).unwrap().1, "another range is told something else");
    assert!(get(&publisher, &other, publisher.store.header() + 1).is_none());
}
