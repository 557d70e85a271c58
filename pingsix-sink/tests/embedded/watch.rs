//! The Watch service over the wire.

use std::time::{Duration, Instant};

use crate::wire::{Served, WAIT_TIMEOUT, Watcher, events, watch_under};
use pingsix_sink::contract::documents::{desired, document, scope};
use pingsix_sink::embedded::Builder;
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Sink};
use pingsix_test_programs::proto::etcdserverpb::watch_create_request::FilterType;
use pingsix_test_programs::proto::etcdserverpb::{WatchCreateRequest, WatchResponse};
use prost::Message;
use tonic::Code;

async fn served_by(builder: Builder) -> Served {
    let served = Served::start(builder).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "A")])).await.unwrap();
    served.etcd.publish(&desired("/p/api", &[("routes/a", "A")])).await.unwrap();
    served.etcd.open();
    served
}

async fn served() -> Served {
    served_by(EmbeddedEtcd::builder()).await
}

fn revision(response: &WatchResponse) -> i64 {
    response.header.as_ref().unwrap().revision
}

#[tokio::test]
async fn a_publication_is_one_response_in_the_order_of_its_plan() {
    let served = served().await;
    let listed = served.list("/p/web/").await.unwrap().header.unwrap().revision;
    let mut watcher = served.watch().await;
    let created = watcher.create(watch_under("/p/web/", listed + 1)).await;
    assert_eq!((created.watch_id, created.canceled, revision(&created)), (0, false, listed));

    let web = desired("/p/web", &[("routes/b", "B"), ("services/s", "S"), ("upstreams/u", "U")]);
    let published = served.etcd.publish(&web).await.unwrap().revision.get();
    assert!(published > listed);
    let response = watcher.next().await;
    assert_eq!(
        events(&response),
        [
            "PUT /p/web/upstreams/u=U",
            "PUT /p/web/services/s=S",
            "PUT /p/web/routes/b=B",
            "DELETE /p/web/routes/a"
        ]
    );
    assert_eq!(revision(&response), published);
    for event in &response.events {
        assert_eq!(event.kv.as_ref().unwrap().mod_revision, published, "all events share one revision");
        assert!(event.prev_kv.is_none());
    }

    served.etcd.publish(&web).await.unwrap();
    served.etcd.publish(&desired("/p/api", &[])).await.unwrap();
    assert_eq!(watcher.settle().await, served.etcd.revision().get(), "nothing else was sent");

    served.etcd.withdraw(&scope("/p/web")).await.unwrap();
    assert_eq!(
        events(&watcher.next().await),
        ["DELETE /p/web/routes/b", "DELETE /p/web/services/s", "DELETE /p/web/upstreams/u"]
    );
}

#[tokio::test]
async fn a_watch_from_the_past_gets_the_difference_since() {
    let served = served().await;
    let listed = served.etcd.revision().get();
    let mut revisions = Vec::new();
    for value in ["1", "2", "3"] {
        let published = served.etcd.publish(&desired("/p/web", &[("routes/a", value)])).await.unwrap();
        revisions.push(published.revision.get());
        served.etcd.publish(&desired("/p/api", &[("routes/a", value)])).await.unwrap();
    }
    let mut watcher = served.watch().await;
    for start in [listed + 1, revisions[1], revisions[2]] {
        watcher.create(watch_under("/p/web/", start)).await;
        let response = watcher.next().await;
        assert_eq!(events(&response), ["PUT /p/web/routes/a=3"]);
        assert_eq!(response.events[0].kv.as_ref().unwrap().mod_revision, revisions[2]);
    }
    watcher.create(watch_under("/p/web/", revisions[2] + 1)).await;
    watcher.settle().await;
}

#[tokio::test]
async fn a_watch_before_the_history_is_cancelled_with_the_compaction_revision() {
    let served = served_by(EmbeddedEtcd::builder().history(2, 1 << 20)).await;
    let listed = served.etcd.revision().get();
    for value in ["1", "2", "3"] {
        // Without the state before a deletion, the server does not know what the client has to delete.
        served.etcd.publish(&desired("/p/web", &[(&format!("routes/{value}"), value)])).await.unwrap();
    }
    let compacted = served.etcd.stats().compacted;
    assert!(compacted > listed + 1);
    let mut watcher = served.watch().await;
    for start in [1, listed + 1, compacted - 1] {
        let id = watcher.create(watch_under("/p/web/", start)).await.watch_id;
        let response = watcher.next().await;
        assert!(response.canceled && !response.created, "{response:?}");
        assert_eq!((response.watch_id, response.compact_revision), (id, compacted));
        assert_eq!(response.cancel_reason, "etcdserver: mvcc: required revision has been compacted");
    }
    watcher.create(watch_under("/p/web/", compacted)).await;
    assert_eq!(
        events(&watcher.next().await),
        ["PUT /p/web/routes/3=3", "DELETE /p/web/routes/1"],
        "the history starts at that revision"
    );
    assert_eq!(served.etcd.stats().watches_compacted, 3);
}

#[tokio::test]
async fn one_stream_carries_several_watches_with_ids_of_their_own() {
    let served = served().await;
    let mut watcher = served.watch().await;
    let explicit = WatchCreateRequest { watch_id: 1, ..watch_under("/p/web/", 0) };
    assert_eq!(watcher.create(watch_under("/p/web/", 0)).await.watch_id, 0);
    assert_eq!(watcher.create(explicit.clone()).await.watch_id, 1);
    assert_eq!(watcher.create(watch_under("/p/api/", 0)).await.watch_id, 2);
    let duplicate = watcher.create(explicit).await;
    assert!(duplicate.canceled);
    assert_eq!(duplicate.watch_id, -1);
    assert_eq!(duplicate.cancel_reason, "mvcc: duplicate watch ID provided on the WatchStream");
    let backwards =
        watcher.create(WatchCreateRequest { range_end: "/p/a".into(), ..watch_under("/p/web/", 0) }).await;
    assert_eq!(backwards.cancel_reason, "mvcc: watcher range is empty");
    assert_eq!(served.etcd.stats().watches, 3);

    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    let mut told = vec![watcher.next().await.watch_id, watcher.next().await.watch_id];
    told.sort_unstable();
    assert_eq!(told, [0, 1]);

    watcher.cancel(0).await;
    let cancelled = watcher.next().await;
    assert!(cancelled.canceled && cancelled.watch_id == 0 && cancelled.compact_revision == 0);
    watcher.cancel(99).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "3")])).await.unwrap();
    assert_eq!(watcher.next().await.watch_id, 1);
    served.etcd.publish(&desired("/p/api", &[("routes/a", "3")])).await.unwrap();
    assert_eq!(watcher.next().await.watch_id, 2);
    assert_eq!(watcher.create(watch_under("/p/web/", 0)).await.watch_id, 3, "an id is not used twice");
}

#[tokio::test]
async fn previous_pairs_and_single_keys_are_honoured_and_filters_are_refused() {
    let served = served().await;
    let mut watcher = served.watch().await;
    let filters = vec![FilterType::Noput.into()];
    let filtered = WatchCreateRequest { filters, ..watch_under("/p/web/", 0) };
    let refused = watcher.create(filtered).await;
    assert_eq!((refused.canceled, &*refused.cancel_reason), (true, "filters of events are not supported"));

    let previous = WatchCreateRequest { prev_kv: true, ..watch_under("/p/web/", 0) };
    let previous = watcher.create(previous).await.watch_id;
    let one = WatchCreateRequest { key: "/p/web/routes/b".into(), ..WatchCreateRequest::default() };
    let one = watcher.create(one).await.watch_id;
    let everything = WatchCreateRequest { range_end: b"\0"[..].into(), ..WatchCreateRequest::default() };
    let everything = watcher.create(everything).await.watch_id;

    let mut told: Vec<(i64, Vec<String>, Vec<usize>)> = Vec::new();
    for value in ["1", "22"] {
        served.etcd.publish(&desired("/p/web", &[("routes/b", value)])).await.unwrap();
        for _ in 0..3 {
            let response = watcher.next().await;
            let before =
                response.events.iter().map(|event| event.prev_kv.as_ref().map_or(0, |kv| kv.value.len()));
            told.push((response.watch_id, events(&response), before.collect()));
        }
    }
    told.sort();
    let expected: [(i64, &[&str], &[usize]); 6] = [
        (previous, &["PUT /p/web/routes/b=1", "DELETE /p/web/routes/a"], &[0, 1]),
        (previous, &["PUT /p/web/routes/b=22"], &[1]),
        (one, &["PUT /p/web/routes/b=1"], &[0]),
        (one, &["PUT /p/web/routes/b=22"], &[0]),
        (everything, &["PUT /p/web/routes/b=1", "DELETE /p/web/routes/a"], &[0, 0]),
        (everything, &["PUT /p/web/routes/b=22"], &[0]),
    ];
    for ((id, events, before), expected) in told.iter().zip(expected) {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        assert_eq!((*id, &events[..], &before[..]), expected);
    }
}

#[tokio::test]
async fn progress_is_sent_on_request_and_periodically() {
    let served = served_by(EmbeddedEtcd::builder().progress_interval(Duration::from_millis(40))).await;
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", 0)).await;
    assert_eq!(watcher.settle().await, served.etcd.revision().get());
    let asking = WatchCreateRequest { progress_notify: true, ..watch_under("/p/web/", 0) };
    let asking = watcher.create(asking).await.watch_id;
    for _ in 0..3 {
        let progress = watcher.next().await;
        assert_eq!((progress.watch_id, progress.events.len()), (asking, 0));
        assert_eq!(revision(&progress), served.etcd.revision().get());
    }
    let elsewhere = served.etcd.publish(&desired("/p/api", &[])).await.unwrap().revision.get();
    let told =
        tokio::time::timeout(WAIT_TIMEOUT, async { while revision(&watcher.next().await) < elsewhere {} });
    told.await.expect("progress follows the changes of other scopes");
}

#[tokio::test]
async fn progress_never_overtakes_events() {
    let served = served().await;
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", 0)).await;
    let mut seen = 0;
    for round in 0..50 {
        let published =
            served.etcd.publish(&desired("/p/web", &[("routes/a", &round.to_string())])).await.unwrap();
        watcher.ask_progress().await;
        loop {
            let response = watcher.next().await;
            if response.watch_id == -1 {
                assert_eq!(revision(&response), published.revision.get());
                break;
            }
            seen += response.events.len();
        }
        assert_eq!(seen, round + 1);
    }
}

#[tokio::test]
async fn an_unknown_prefix_ends_its_stream_unless_that_has_other_watches() {
    let served = served().await;
    let mut alone = served.watch().await;
    alone.request(wire_create(watch_under("/q/", 0))).await;
    assert_eq!(alone.try_next().await.unwrap_err().code(), Code::Unavailable);

    let mut shared = served.watch().await;
    shared.create(watch_under("/p/web/", 0)).await;
    let refused = shared.create(watch_under("/q/", 0)).await;
    assert!(refused.canceled && !refused.cancel_reason.is_empty());
    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    assert_eq!(events(&shared.next().await), ["PUT /p/web/routes/a=2"]);
}

fn wire_create(
    request: WatchCreateRequest,
) -> pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion {
    pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion::CreateRequest(request)
}

#[tokio::test]
async fn a_publication_above_the_message_limit_is_cut_and_a_list_has_all_of_it() {
    const RESPONSE_LIMIT: usize = 3_584 * 1024;
    let served = served().await;
    served.etcd.publish(&desired("/p/web", &[("routes/gone", r#"{"host":"gone"}"#)])).await.unwrap();
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", 0)).await;
    let large = |fill: u8| {
        let documents = (0..200).map(|id| {
            let kind = ["upstreams", "services", "routes"][id % 3];
            // Routes of different hosts need not change at once.
            let pad = String::from_utf8(vec![fill; 60_000]).unwrap();
            document(&format!("{kind}/{id:03}"), format!(r#"{{"host":"{id}","desc":"{pad}"}}"#))
        });
        Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap())
    };
    let published = served.etcd.publish(&large(b'x')).await.unwrap();
    let (mut count, mut last, mut commands, mut responses) = (0, 0, Vec::new(), 0);
    while count < 201 {
        let response = watcher.next().await;
        assert!(response.encoded_len() <= RESPONSE_LIMIT, "{}", response.encoded_len());
        assert!(revision(&response) > last, "each part has a revision of its own");
        last = revision(&response);
        count += response.events.len();
        responses += 1;
        commands.extend(response.events.iter().map(|event| {
            let key = String::from_utf8_lossy(&event.kv.as_ref().unwrap().key).into_owned();
            ["upstreams", "services", "routes"].iter().position(|kind| key.contains(kind)).unwrap()
        }));
    }
    assert_eq!((last, responses), (published.revision.get(), 4));
    assert_eq!(commands.pop(), Some(2), "the delete comes last");
    assert!(commands.is_sorted());
    let whole = served.list("/p/web/").await.unwrap();
    assert_eq!((whole.count, whole.header.unwrap().revision), (200, last));

    let huge = Desired::new(
        scope("/p/web"),
        DocumentSet::new([document("routes/huge", vec![b'x'; RESPONSE_LIMIT])]).unwrap(),
    );
    let error = served.etcd.publish(&huge).await.unwrap_err();
    assert_eq!((error.category(), error.is_retryable()), ("document_too_large", false));
    assert!(error.to_string().len() < 200);
}

#[tokio::test]
async fn a_stuck_client_delays_no_other_and_is_cancelled() {
    let served =
        served_by(EmbeddedEtcd::builder().history(50, 64 << 20).stall_timeout(Duration::from_millis(300)))
            .await;
    let mut stuck = served.watch().await;
    stuck.create(watch_under("/p/web/", 0)).await;
    let mut lively = served.watch().await;
    lively.create(watch_under("/p/web/", 0)).await;

    let started = Instant::now();
    for round in 0..200 {
        let value = format!("{round}{}", "x".repeat(100_000));
        served.etcd.publish(&desired("/p/web", &[("routes/a", &value)])).await.unwrap();
        let response = lively.next().await;
        assert_eq!(response.events[0].kv.as_ref().unwrap().value, value.as_bytes());
    }
    assert!(started.elapsed() < WAIT_TIMEOUT);
    assert!(served.etcd.stats().history_commits <= 50);

    // The stuck client is either cancelled with the compaction revision or its stream has ended; no change is
    // skipped.
    let mut last = 0;
    loop {
        match stuck.try_next().await {
            Ok(Some(response)) if response.canceled => {
                assert!(response.compact_revision > last);
                break;
            }
            Ok(Some(response)) => last = revision(&response),
            Ok(None) | Err(_) => {
                assert_eq!(served.etcd.stats().streams_stalled, 1);
                break;
            }
        }
    }
    let stats = served.etcd.stats();
    assert_eq!(stats.streams_stalled + stats.watches_compacted, 1, "{stats:?}");
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed() {
    let served = served().await;
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", 0)).await;
    assert_eq!((served.etcd.stats().streams, served.etcd.stats().watches), (1, 1));
    drop(watcher);
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while served.etcd.stats().streams > 0 {
        assert!(Instant::now() < deadline, "the stream of a client that is gone ends");
        tokio::task::yield_now().await;
    }
    assert_eq!(served.etcd.stats().watches, 0);
}

#[tokio::test]
async fn a_shutdown_tells_watches_and_ends_in_time() {
    let served = served().await;
    let mut watcher = served.watch().await;
    watcher.create(watch_under("/p/web/", 0)).await;
    let started = Instant::now();
    let stopping = tokio::spawn(served.stop());
    assert_eq!(watcher.try_next().await.unwrap_err().code(), Code::Unavailable);
    drop(watcher);
    stopping.await.unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "well before the drain ends: {:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_watch_on_a_wider_range_sees_a_scope_that_appears() {
    let served = served().await;
    let mut watcher: Watcher = served.watch().await;
    watcher.create(watch_under("/p/", 0)).await;
    served.etcd.publish(&desired("/p/new", &[("routes/a", "1")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/new/routes/a=1"]);
}

#[tokio::test]
async fn a_watch_without_a_start_waits_for_the_first_document() {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    served.etcd.publish(&desired("/p/web", &[])).await.unwrap();
    served.etcd.open();
    let mut watcher: Watcher = served.watch().await;
    let created = watcher.create(watch_under("/p/web/", 0)).await;
    assert!(!created.canceled, "{created:?}");
    served.etcd.publish(&desired("/p/web", &[("routes/a", "1")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=1"]);
}

#[tokio::test]
async fn readers_are_counted_by_scope_while_their_watches_are_open() {
    let served = served().await;
    let readers = || [scope("/p/web"), scope("/p/api")].map(|scope| served.etcd.readers_of(&scope));
    let mut changed = served.etcd.readers_changed();
    assert_eq!(readers(), [0, 0]);
    let mut one = served.watch().await;
    one.create(watch_under("/p/web/", 0)).await;
    one.create(watch_under("/p/", 0)).await;
    let reached = tokio::time::timeout(WAIT_TIMEOUT, changed.wait_for(|_| readers() == [2, 1])).await.is_ok();
    assert!(reached, "{:?}", readers());
    drop(one);
    let reached = tokio::time::timeout(WAIT_TIMEOUT, changed.wait_for(|_| readers() == [0, 0])).await.is_ok();
    assert!(reached, "{:?}", readers());
}
