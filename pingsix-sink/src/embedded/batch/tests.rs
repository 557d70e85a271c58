use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::store::testing::{Publisher, everything, state};
use super::super::store::{EVENT_OVERHEAD, Unseen};
use super::*;
use crate::proto::mvccpb::KeyValue;
use crate::proto::mvccpb::event::EventType;

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
            publisher.store.select(&everything(), Some(revision)).unwrap().iter().map(|it| it.to_proto()).collect()
        };
        let mut revision = publisher.store.header();
        let mut mirror: Vec<KeyValue> = select(&publisher, revision);
        for (state, reads) in &states[1..] {
            publisher.publish(state);
            if !*reads { continue; }
            loop {
                let Unseen { commits, .. } =
                    publisher.store.unseen(&everything(), revision + 1, usize::MAX).unwrap();
                if commits.is_empty() { break; }
                let batch = Batch::of(&publisher.store, &everything(), revision + 1, limit).unwrap();
                let event_count: Vec<_> = commits.iter().filter(|commit| commit.revision <= batch.reached).collect();
                revision = event_count.last().unwrap().revision;
                prop_assert_eq!((revision, batch.more), (batch.reached, event_count.len() < commits.len()));

                let events = events(&batch);
                let bytes = batch.events.len();
                prop_assert!(bytes <= limit || event_count.len() == 1, "{} of {}", bytes, limit);
                prop_assert_eq!(events.len(), batch.event_count);
                let changes: usize = event_count.iter().map(|commit| commit.changes.len()).sum();
                prop_assert_eq!(batch.event_count + batch.merged, changes);
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
        let list = |publisher: &Publisher| -> BTreeMap<Bytes, KeyValue> {
            let now = publisher.store.select(&everything(), None).unwrap();
            now.iter().map(|record| record.to_proto()).map(|kv| (kv.key.clone(), kv)).collect()
        };
        let mut mirror = list(&publisher);
        for (state, reads) in &states[1..] {
            publisher.publish_needed(state, if rests { next } else { i64::MAX });
            if !*reads { continue; }
            if let Ok(batch) = Batch::of(&publisher.store, &everything(), next, 10_000) {
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
    let commits = publisher.store.unseen(&everything(), start, usize::MAX).unwrap().commits;
    let batch = Batch::of(&publisher.store, &everything(), start, 10_000).unwrap();
    let [put, deleted, last_commit]: [_; 3] = events(&batch).try_into().unwrap();
    assert_eq!((put.0, put.1.unwrap().value.len()), (commits[1].revision, 3));
    assert!(deleted.0 == commits[1].revision && deleted.1.unwrap_err().ends_with(b"k/2"));
    assert!(last_commit.0 == commits[2].revision && last_commit.1.unwrap_err().ends_with(b"k/3"));
    assert_eq!((batch.event_count, batch.merged, batch.reached), (3, 2, commits[2].revision));

    let batch = StoreDiff::between(&publisher.store, &everything(), start, commits[1].revision).unwrap();
    let batch = batch.encode(commits[1].revision, true);
    assert_eq!((batch.event_count, batch.merged), (3, 1), "what is there is told though it will go");

    publisher.publish(&[(1, 3), (9, 9)].into());
    publisher.publish(&[(1, 3)].into());
    let next = commits[2].revision + 1;
    let batch = Batch::of(&publisher.store, &everything(), next, 10_000).unwrap();
    assert_eq!(events(&batch).len(), 1, "nothing has changed in the end but the revision");
    assert_eq!((batch.event_count, batch.merged, batch.reached), (1, 1, publisher.store.header()));

    let other = KeyRange::new(Bytes::from_static(b"/q"), Bytes::from_static(b"/r"));
    assert!(
        Batch::of(&publisher.store, &other, next, 10_000).unwrap().events.is_empty(),
        "nothing of it is wanted"
    );
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
    let batch = Batch::of(&publisher.store, &everything(), start, limit).unwrap();
    assert_eq!((batch.reached, batch.more), (two, true), "all three are too large");
    publisher.publish(&[(3, 100)].into());
    let batch = Batch::of(&publisher.store, &everything(), start, limit).unwrap();
    assert_eq!(
        (batch.reached, batch.more),
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
    let batches = BatchCache::default();
    let get = |publisher: &Publisher, range: &KeyRange, next: i64| {
        batches.get(&publisher.store, range, next, 1 << 20).unwrap()
    };
    let (one, made) = get(&publisher, &everything(), start).unwrap();
    assert!(made);
    let (two, made) = get(&publisher, &everything(), start).unwrap();
    assert!(!made && Arc::ptr_eq(&one, &two));
    let other = KeyRange::new(Bytes::from_static(b"/"), Bytes::from_static(b"0"));
    assert!(get(&publisher, &other, start).unwrap().1, "another range is told something else");
    assert!(get(&publisher, &other, publisher.store.header() + 1).is_none());

    for round in 0..2 * BatchCache::MAX_ENTRIES {
        let value = u8::try_from(round).unwrap();
        publisher.publish(&[(1, value + 10)].into());
        get(&publisher, &everything(), start).unwrap();
        assert!(batches.recent.lock().len() <= BatchCache::MAX_ENTRIES);
    }
}
