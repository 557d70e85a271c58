use proptest::prelude::*;

use super::super::store::testing::{Publisher, everything, state};
use super::super::store::{EVENT_OVERHEAD, Unseen};
use super::*;
use crate::proto::mvccpb::KeyValue;
use crate::proto::mvccpb::event::EventType;

/// The decoded events of a batch: a pair that is, or a key that is gone.
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
    /// A client that applies batches has, after each, exactly what the store had at the revision it was told.
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
                let batch = Batch::of(&commits, &everything(), limit);
                let told = &commits[..batch.commits];
                revision = told.last().unwrap().revision;

                let events = events(&batch);
                let bytes = batch.events.len();
                prop_assert!(bytes <= limit || told.len() == 1, "{} of {}", bytes, limit);
                prop_assert_eq!(events.len(), batch.told);
                let changes: usize = told.iter().map(|commit| commit.changes.len()).sum();
                prop_assert_eq!(batch.told + batch.merged, changes);
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

#[test]
fn of_each_key_the_last_change_is_told_and_of_what_came_and_went_nothing() {
    let mut publisher = Publisher::new(10_000);
    publisher.publish(&[(1, 1), (2, 1)].into());
    let start = publisher.store.header() + 1;
    publisher.publish(&[(1, 2), (2, 1), (3, 1)].into());
    publisher.publish(&[(1, 3), (3, 1)].into());
    publisher.publish(&[(1, 3)].into());
    let commits = publisher.store.unseen(&everything(), start, usize::MAX).unwrap().commits;
    let batch = Batch::of(&commits, &everything(), 10_000);
    let [put, deleted, closing]: [_; 3] = events(&batch).try_into().unwrap();
    assert_eq!((put.0, put.1.unwrap().value.len()), (commits[1].revision, 3));
    assert!(deleted.0 == commits[1].revision && deleted.1.unwrap_err().ends_with(b"k/2"));
    assert!(closing.0 == commits[2].revision && closing.1.unwrap_err().ends_with(b"k/3"));
    assert_eq!((batch.told, batch.merged, batch.commits), (3, 2, 3));

    let batch = Batch::of(&commits[..2], &everything(), 10_000);
    assert_eq!((batch.told, batch.merged), (3, 1), "what is there is told though it will go");

    publisher.publish(&[(1, 3), (9, 9)].into());
    publisher.publish(&[(1, 3)].into());
    let commits = publisher.store.unseen(&everything(), commits[2].revision + 1, usize::MAX).unwrap().commits;
    let batch = Batch::of(&commits, &everything(), 10_000);
    assert_eq!(events(&batch).len(), 1, "nothing has changed in the end but the revision");
    assert_eq!((batch.told, batch.merged, batch.commits), (1, 1, 2));

    let other = KeyRange::new(Bytes::from_static(b"/q"), Bytes::from_static(b"/r"));
    assert!(Batch::of(&commits, &other, 10_000).events.is_empty(), "nothing of it is wanted");
}

#[test]
fn what_does_not_fit_is_cut_between_commits_as_late_as_it_can_be() {
    let limit = 3 * (EVENT_OVERHEAD + 100);
    let mut publisher = Publisher::new(limit);
    let start = publisher.store.header() + 1;
    publisher.publish(&[(1, 100)].into());
    publisher.publish(&[(1, 100), (2, 100)].into());
    publisher.publish(&[(1, 100), (2, 100), (3, 100)].into());
    publisher.publish(&[(3, 100)].into());
    let commits = publisher.store.unseen(&everything(), start, usize::MAX).unwrap().commits;
    assert_eq!(Batch::of(&commits[..3], &everything(), limit).commits, 2, "all three are too large");
    assert_eq!(Batch::of(&commits, &everything(), limit).commits, 4, "with the last they are small again");
}

#[test]
fn watches_that_are_told_the_same_share_what_is_encoded() {
    let mut publisher = Publisher::new(1 << 20);
    publisher.publish(&[(1, 1)].into());
    let start = publisher.store.header() + 1;
    publisher.publish(&[(1, 2)].into());
    let commits = publisher.store.unseen(&everything(), start, usize::MAX).unwrap().commits;
    let batches = Batches::default();
    let (one, made) = batches.get(&commits, &everything(), 1 << 20).unwrap();
    assert!(made);
    let (two, made) = batches.get(&commits, &everything(), 1 << 20).unwrap();
    assert!(!made && Arc::ptr_eq(&one, &two));
    let other = KeyRange::new(Bytes::from_static(b"/"), Bytes::from_static(b"0"));
    assert!(batches.get(&commits, &other, 1 << 20).unwrap().1, "another range is told something else");
    assert!(batches.get(&[], &other, 1 << 20).is_none());

    for round in 0..2 * Batches::MOST {
        let value = u8::try_from(round).unwrap();
        publisher.publish(&[(1, value + 10)].into());
        let commits = publisher.store.unseen(&everything(), start, usize::MAX).unwrap().commits;
        batches.get(&commits, &everything(), 1 << 20).unwrap();
        assert!(batches.recent.lock().len() <= Batches::MOST);
    }
}
