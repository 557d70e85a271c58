//! Coalescing: a change is sent at once to an idle watch, and changes during a response become one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::wire::{Served, Watcher, events, watch_under};
use bytes::Bytes;
use pingsix_sink::contract::documents::{desired, document, scope};
use pingsix_sink::embedded::{Builder, Pace};
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Revision, Sink};
use pingsix_test_programs::proto::etcdserverpb::WatchResponse;
use pingsix_test_programs::proto::mvccpb::KeyValue;
use prost::Message;

/// The pace of a client that needs this time for each document.
fn pace(per_document: Duration) -> Pace {
    Pace::per_document(per_document)
}

/// Documents of which the first ones have values of their own.
fn numbered(values: &[usize], others: usize) -> Desired {
    let changing =
        values.iter().enumerate().map(|(id, value)| document(&format!("routes/{id}"), value.to_string()));
    let same = (0..others).map(|id| document(&format!("upstreams/{id}"), "same"));
    Desired::new(scope("/p/web"), DocumentSet::new(changing.chain(same)).unwrap())
}

async fn served(builder: Builder) -> Served {
    let served = Served::start(builder).await;
    served.etcd.publish(&numbered(&[0], 9)).await.unwrap();
    served.etcd.publish(&desired("/p/api", &[])).await.unwrap();
    served.etcd.open();
    served
}

async fn watcher(served: &Served) -> Watcher {
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", 0)).await;
    watcher
}

fn revision(response: &WatchResponse) -> i64 {
    response.header.as_ref().unwrap().revision
}

#[tokio::test]
async fn an_idle_watch_receives_a_change_at_once_and_a_burst_as_one_response() {
    const REST: Duration = Duration::from_millis(600);
    let served = served(EmbeddedEtcd::builder().pace(pace(REST / 10))).await;
    let mut watcher = watcher(&served).await;

    let started = Instant::now();
    served.etcd.publish(&numbered(&[1], 9)).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/0=1"]);
    assert!(started.elapsed() < REST / 2, "at once: {:?}", started.elapsed());

    let mut last = 0;
    for value in 2..=101 {
        last = served.etcd.publish(&numbered(&[value], 9)).await.unwrap().revision.get();
    }
    let response = watcher.next().await;
    assert!(started.elapsed() >= REST, "{:?}", started.elapsed());
    assert_eq!(events(&response), ["PUT /p/web/routes/0=101"]);
    assert_eq!(revision(&response), last);
    assert_eq!(response.events[0].kv.as_ref().unwrap().mod_revision, last);
    let stats = served.etcd.stats();
    assert_eq!((stats.watch_responses, stats.watch_events, stats.changes_merged), (2, 2, 99));

    // A scope without watches causes neither a response nor a rest.
    served.etcd.publish(&desired("/p/api", &[("routes/a", "1")])).await.unwrap();
    watcher.settle().await;
    tokio::time::sleep(REST).await;
    let started = Instant::now();
    served.etcd.publish(&numbered(&[102], 9)).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/0=102"]);
    assert!(started.elapsed() < REST / 2, "it had rested long enough: {:?}", started.elapsed());
}

#[tokio::test]
async fn a_confirmed_watch_does_not_rest_within_its_burst() {
    const REST: Duration = Duration::from_mins(10);
    /// A change that does not wait is sent within this time.
    const SHORT_WAIT: Duration = Duration::from_millis(30);
    let pace = pace(REST / 10).burst(REST * 100);
    let served = served(EmbeddedEtcd::builder().pace(pace)).await;
    let mut watcher = watcher(&served).await;
    let scope = scope("/p/web");
    let confirm = |revision| served.etcd.confirm(&scope, Revision::new(revision).unwrap());
    for value in 1..20 {
        let published = served.etcd.publish(&numbered(&[value], 9)).await.unwrap().revision.get();
        if value % 2 == 0 {
            // The change waits for the confirmation of the one before. One of another revision does not count.
            confirm(published - 2);
            tokio::time::sleep(SHORT_WAIT).await;
            assert_eq!(served.etcd.stats().watch_responses, value as u64 - 1);
            confirm(published - 1);
        }
        assert_eq!(events(&watcher.next().await), [format!("PUT /p/web/routes/0={value}")]);
        if value % 2 == 0 {
            confirm(published);
        }
    }
    // A revision that was never issued confirms nothing of the future.
    confirm(i64::MAX);
    served.etcd.publish(&numbered(&[20], 9)).await.unwrap();
    watcher.next().await;
    served.etcd.publish(&numbered(&[21], 9)).await.unwrap();
    tokio::time::sleep(SHORT_WAIT).await;
    assert_eq!(served.etcd.stats().watch_responses, 20);
}

#[tokio::test]
async fn a_confirmed_watch_rests_after_its_burst() {
    const REST: Duration = Duration::from_millis(600);
    for burst in 0..3 {
        let pace = pace(REST / 10).burst(REST * burst);
        let served = served(EmbeddedEtcd::builder().pace(pace)).await;
        let mut watcher = watcher(&served).await;
        let started = Instant::now();
        for value in 1..=burst as usize + 2 {
            let published = served.etcd.publish(&numbered(&[value], 9)).await.unwrap().revision;
            assert_eq!(events(&watcher.next().await), [format!("PUT /p/web/routes/0={value}")]);
            served.etcd.confirm(&scope("/p/web"), published);
            let has_rested = started.elapsed() >= REST;
            assert_eq!(has_rested, value > burst as usize + 1, "{burst}: {value}: {:?}", started.elapsed());
        }
    }
}

#[tokio::test]
async fn a_cpu_limit_makes_the_rests_of_its_scope_longer() {
    const REST: Duration = Duration::from_millis(300);
    for (limited, factor) in [("/p/web", 3), ("/p/api", 1)] {
        let served = served(EmbeddedEtcd::builder().pace(pace(REST / 10).burst(Duration::ZERO))).await;
        served.etcd.limit_cpu(&scope(limited), 33);
        let mut watcher = watcher(&served).await;
        served.etcd.publish(&numbered(&[1], 9)).await.unwrap();
        watcher.next().await;
        let started = Instant::now();
        let published = served.etcd.publish(&numbered(&[2], 9)).await.unwrap().revision;
        served.etcd.confirm(&scope("/p/web"), published);
        watcher.next().await;
        let rests = started.elapsed().as_secs_f64() / REST.as_secs_f64();
        assert!((f64::from(factor) - 0.5..f64::from(factor) + 1.5).contains(&rests), "{limited}: {rests}");
    }
}

#[tokio::test]
async fn a_resting_watch_receives_the_state_without_a_history() {
    const REST: Duration = Duration::from_millis(600);
    let served = served(EmbeddedEtcd::builder().pace(pace(REST / 11)).history(1, 1)).await;
    let mut watcher = watcher(&served).await;
    served.etcd.publish(&numbered(&[0, 0], 9)).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/1=0"]);
    // The first route is deleted, and hundreds are created and deleted.
    served.etcd.publish(&numbered(&[0], 9)).await.unwrap();
    for value in 1..=100 {
        served.etcd.publish(&numbered(&[value], 9)).await.unwrap();
        let coming = desired("/p/web", &[(&format!("routes/{value}"), "0"), ("upstreams/0", "same")]);
        served.etcd.publish(&coming).await.unwrap();
    }
    served.etcd.publish(&desired("/p/web", &[("upstreams/0", "same"), ("routes/0", "last")])).await.unwrap();
    let response = watcher.next().await;
    let listed = served.list("/p/web/").await.unwrap();
    assert_eq!(revision(&response), listed.header.unwrap().revision);
    let told = events(&response);
    assert_eq!(told.iter().filter(|event| event.starts_with("PUT")).count(), 1, "{told:?}");
    assert!(told.contains(&"PUT /p/web/routes/0=last".to_owned()), "{told:?}");
    assert!(told.contains(&"DELETE /p/web/routes/1".to_owned()), "{told:?}");
    assert!((1..9).all(|id| told.contains(&format!("DELETE /p/web/upstreams/{id}"))), "{told:?}");
    assert_eq!(served.etcd.stats().watches_compacted, 0);
}

#[tokio::test]
async fn progress_does_not_precede_resting_changes() {
    let served = served(EmbeddedEtcd::builder().pace(pace(Duration::from_millis(20)))).await;
    let mut watcher = watcher(&served).await;
    for value in 1..20 {
        let published = served.etcd.publish(&numbered(&[value], 9)).await.unwrap().revision.get();
        watcher.ask_progress().await;
        let response = watcher.next().await;
        assert_eq!(events(&response), [format!("PUT /p/web/routes/0={value}")]);
        let progress = watcher.next().await;
        assert_eq!((progress.watch_id, revision(&progress)), (-1, published));
    }
}

#[tokio::test]
async fn a_short_lived_key_is_sent_only_as_the_last_event() {
    let served = served(EmbeddedEtcd::builder().pace(pace(Duration::from_millis(30)))).await;
    let mut watcher = watcher(&served).await;
    served.etcd.publish(&numbered(&[1], 9)).await.unwrap();
    watcher.next().await;
    served.etcd.publish(&numbered(&[1, 5], 9)).await.unwrap();
    served.etcd.publish(&numbered(&[1], 9)).await.unwrap();
    served.etcd.publish(&numbered(&[2], 9)).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/0=2"]);

    // PingSIX reports the highest revision of its events, and the publisher waits for that.
    served.etcd.publish(&numbered(&[2, 5], 9)).await.unwrap();
    let last = served.etcd.publish(&numbered(&[2], 9)).await.unwrap().revision.get();
    let response = watcher.next().await;
    assert_eq!(events(&response), ["DELETE /p/web/routes/1"]);
    assert_eq!((revision(&response), response.events[0].kv.as_ref().unwrap().mod_revision), (last, last));
    assert_eq!(served.etcd.stats().watch_responses, 3);
}

#[tokio::test]
async fn while_a_response_is_unread_the_changes_after_it_become_one() {
    const ROUNDS: usize = 60;
    let served = served(EmbeddedEtcd::builder().pace(Pace::NONE)).await;
    let mut watcher = watcher(&served).await;
    // Several times the data that HTTP/2 sends to a client that does not read.
    let large = |round: usize| desired("/p/web", &[("routes/a", &format!("{round}{}", "x".repeat(500_000)))]);
    let mut last = 0;
    for round in 0..ROUNDS {
        last = served.etcd.publish(&large(round)).await.unwrap().revision.get();
        tokio::task::yield_now().await;
    }
    let mut responses = 0;
    let mut seen = 0;
    while seen < last {
        let response = watcher.next().await;
        assert!(response.encoded_len() < 600_000, "one version of the document");
        seen = revision(&response);
        responses += 1;
    }
    assert!(responses <= ROUNDS / 4, "{responses} responses for {ROUNDS} changes");
    assert!(served.etcd.stats().changes_merged > 0);
}

#[tokio::test]
async fn watches_that_are_told_the_same_share_what_was_encoded() {
    const WATCHES: u64 = 30;
    let served = served(EmbeddedEtcd::builder()).await;
    let mut watchers = Vec::new();
    for _ in 0..WATCHES {
        watchers.push(watcher(&served).await);
    }
    let before = served.etcd.stats();
    for value in 1..=5 {
        served.etcd.publish(&numbered(&[value], 9)).await.unwrap();
        for watcher in &mut watchers {
            assert_eq!(events(&watcher.next().await), [format!("PUT /p/web/routes/0={value}")]);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let after = served.etcd.stats();
    assert_eq!(after.watch_responses - before.watch_responses, 5 * WATCHES);
    assert_eq!(after.batches - before.batches, 5);
}

#[tokio::test]
async fn a_backlog_above_the_message_limit_comes_in_states_that_were() {
    const RESPONSE_LIMIT: usize = 6_000;
    let builder = EmbeddedEtcd::builder().response_limit(RESPONSE_LIMIT).pace(pace(Duration::from_millis(5)));
    let served = served(builder).await;
    let listed = served.list("/p/web/").await.unwrap();
    let mut states: BTreeMap<i64, BTreeMap<Bytes, KeyValue>> = BTreeMap::new();
    for round in 0..30_usize {
        let documents = (0..12_usize).filter(|id| (round + id) % 5 != 0).map(|id| {
            let value = if (round + id) % 3 == 0 { round } else { 0 };
            document(&format!("routes/{id}"), format!("{value:0>width$}", width = 300 + 40 * id))
        });
        let desired = Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap());
        let revision = served.etcd.publish(&desired).await.unwrap().revision.get();
        let list = served.list("/p/web/").await.unwrap();
        states.insert(revision, list.kvs.into_iter().map(|kv| (kv.key.clone(), kv)).collect());
    }

    let listed_at = listed.header.unwrap().revision;
    let mut mirror: BTreeMap<Bytes, KeyValue> =
        listed.kvs.into_iter().map(|kv| (kv.key.clone(), kv)).collect();
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", listed_at + 1)).await;
    let last = *states.last_key_value().unwrap().0;
    let (mut seen, mut responses) = (listed_at, 0_i64);
    while seen < last {
        let response = watcher.next().await;
        assert!(response.encoded_len() <= RESPONSE_LIMIT, "{}", response.encoded_len());
        assert!(revision(&response) > seen);
        seen = revision(&response);
        for event in response.events {
            let kv = event.kv.unwrap();
            assert!(kv.mod_revision <= seen);
            if kv.create_revision == 0 {
                mirror.remove(&kv.key)
            } else {
                mirror.insert(kv.key.clone(), kv)
            };
        }
        // A publication above the limit has intermediate revisions without a list.
        if let Some(listed) = states.get(&seen) {
            assert_eq!(mirror, *listed, "at {seen}");
        }
        responses += 1;
    }
    assert_eq!(mirror, states[&last]);
    let commits = last - listed_at;
    assert!(responses > 1 && responses < commits / 2, "{responses} responses for {commits} commits");
}
