//! An etcd that is down, slow, full, compacted, or lost.

use std::time::{Duration, Instant};

use pingsix_sink::{Desired, DocumentSet, EtcdSink, Sink as _};
use pingsix_test_programs::{Etcd, Signal};

use super::etcd_test::{
    EtcdTest, WAIT_TIMEOUT, publish_error, publish_until_done, routes_of, wait_for_drift, wait_for_watch,
};
use crate::log;
use crate::relay::Relay;
use crate::wire::channel;
use pingsix_sink::contract::documents::{desired, document, scope};

fn web(value: &str) -> Desired {
    desired("/p/web", &[("upstreams/u", "1"), ("routes/r", value)])
}

#[tokio::test]
async fn an_etcd_that_is_stopped_and_started_again_is_caught_up_with() {
    let Some(mut etcd_test) = EtcdTest::start().await else { return };
    let sink = EtcdSink::builder([etcd_test.etcd.address().to_string()]).build().unwrap();
    let first = sink.publish(&web("1")).await.unwrap();
    wait_for_watch(&etcd_test, &sink, &web("1")).await;
    etcd_test.etcd.kill().await;
    for _ in 0..3 {
        let begun = Instant::now();
        assert_eq!(publish_error(&sink, &web("2")).await.category(), "etcd_unavailable");
        assert!(begun.elapsed() < Duration::from_secs(5), "a port that is closed is known at once");
    }
    etcd_test.etcd.start_again().await;
    let second = publish_until_done(&sink, &web("2")).await;
    assert!(second.revision > first.revision);
    assert_eq!(etcd_test.contents(&scope("/p/web")).await["/p/web/routes/r"], "2");

    // The watch reconnects, and finds the changes of the meantime.
    etcd_test.put("/p/web/routes/r", "hacked").await;
    wait_for_drift(&sink, &["/p/web"]).await;
    assert_eq!(publish_until_done(&sink, &web("2")).await.changed.updated, 1);
}

#[tokio::test]
async fn a_publication_waits_for_a_slow_etcd_and_gives_up_on_a_silent_one() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = EtcdSink::builder([etcd_test.etcd.address().to_string()])
        .timeout(Duration::from_secs(3))
        .build()
        .unwrap();
    sink.publish(&web("1")).await.unwrap();
    etcd_test.etcd.signal(Signal::Pause);
    let slow = async {
        tokio::time::sleep(Duration::from_millis(800)).await;
        etcd_test.etcd.signal(Signal::Continue);
    };
    let ((), published) = futures::future::join(slow, sink.publish(&web("2"))).await;
    assert_eq!(published.unwrap().changed.updated, 1);

    etcd_test.etcd.signal(Signal::Pause);
    let begun = Instant::now();
    let error = publish_error(&sink, &web("3")).await;
    assert_eq!(error.category(), "etcd_timeout", "{error}");
    assert!(begun.elapsed() < Duration::from_secs(8));
    etcd_test.etcd.signal(Signal::Continue);
    publish_until_done(&sink, &web("3")).await;
    assert_eq!(etcd_test.contents(&scope("/p/web")).await["/p/web/routes/r"], "3");
}

#[tokio::test]
async fn another_endpoint_serves_when_one_does_not() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let (first, second) = (Relay::start(channel(etcd_test.etcd.address()).await).await, &etcd_test.relay);
    let addresses = ["127.0.0.1:1".to_owned(), first.address.to_string(), second.address.to_string()];
    let sink = EtcdSink::builder(addresses).timeout(Duration::from_secs(2)).build().unwrap();
    sink.publish(&web("1")).await.unwrap();
    assert_eq!((first.forwarded(), second.forwarded()), (1, 0));
    wait_for_watch(&etcd_test, &sink, &web("1")).await;
    first.stop();
    publish_until_done(&sink, &web("2")).await;
    assert!(second.forwarded() > 0);
    etcd_test.put("/p/web/routes/r", "hacked").await;
    wait_for_drift(&sink, &["/p/web"]).await;
}

#[tokio::test]
async fn compaction_loses_no_change_of_others() {
    let Some(mut etcd_test) = EtcdTest::start().await else { return };
    let sink = EtcdSink::builder([etcd_test.etcd.address().to_string()]).build().unwrap();
    sink.publish(&web("1")).await.unwrap();
    for round in 0..3 {
        wait_for_watch(&etcd_test, &sink, &web("1")).await;
        // The start of the watch is compacted when it reconnects.
        etcd_test.etcd.kill().await;
        etcd_test.etcd.start_again().await;
        for n in 0..5 {
            etcd_test.put("/p/web/routes/r", &format!("{round} {n}")).await;
        }
        let revision = etcd_test.revision().await.to_string();
        etcd_test.etcd.control(&["compact", &revision]).await;
        wait_for_drift(&sink, &["/p/web"]).await;
        publish_until_done(&sink, &web("1")).await;
        assert_eq!(etcd_test.contents(&scope("/p/web")).await["/p/web/routes/r"], "1");
    }
}

#[tokio::test]
async fn a_watch_that_begins_too_late_is_followed_by_a_list() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    etcd_test.relay.refuse_watches(true);
    sink.publish(&web("1")).await.unwrap();
    for n in 0..5 {
        etcd_test.put("/p/web/routes/r", &n.to_string()).await;
    }
    etcd_test.etcd.control(&["compact", &etcd_test.revision().await.to_string()]).await;
    etcd_test.relay.refuse_watches(false);
    wait_for_drift(&sink, &["/p/web"]).await;
    publish_until_done(&sink, &web("1")).await;
    wait_for_watch(&etcd_test, &sink, &web("1")).await;
}

#[tokio::test]
async fn an_etcd_that_is_full_says_so_and_is_written_again_when_it_has_room() {
    let Some(etcd) = Etcd::start_with(&["--quota-backend-bytes", "4000000"]).await else { return };
    let sink = EtcdSink::builder([etcd.address().to_string()]).build().unwrap();
    let large = |seed: usize| {
        let value = format!("{seed}").repeat(400_000);
        Desired::new(scope("/p/web"), DocumentSet::new([document("routes/r", value)]).unwrap())
    };
    let filling = async {
        let mut seed = 10;
        loop {
            match sink.publish(&large(seed)).await {
                Ok(_) => seed += 1,
                Err(error) => return error,
            }
        }
    };
    let error = tokio::time::timeout(WAIT_TIMEOUT, filling).await.expect("it is full soon");
    assert_eq!((error.category(), error.is_retryable()), ("etcd_no_space", true), "{error}");
    assert_eq!(publish_error(&sink, &web("1")).await.category(), "etcd_no_space");

    let status = etcd.control(&["endpoint", "status", "--write-out", "json"]).await;
    let revision: String =
        status.split("\"revision\":").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    etcd.control(&["compact", &revision, "--physical"]).await;
    etcd.control(&["defrag"]).await;
    etcd.control(&["alarm", "disarm"]).await;
    publish_until_done(&sink, &web("2")).await;
}

#[tokio::test]
async fn a_store_that_was_lost_is_filled_again_and_its_lower_revision_reported() {
    log::keep();
    let Some(mut etcd_test) = EtcdTest::start().await else { return };
    let sink = EtcdSink::builder([etcd_test.etcd.address().to_string()]).build().unwrap();
    let lost = desired("/p/lost", &[("upstreams/u", "1"), ("routes/r", "1")]);
    for n in 0..5 {
        sink.publish(&desired("/p/lost", &[("routes/r", &n.to_string())])).await.unwrap();
    }
    sink.publish(&lost).await.unwrap();
    etcd_test.etcd.kill().await;
    etcd_test.etcd.start_empty().await;
    wait_for_drift(&sink, &["/p/lost"]).await;
    publish_until_done(&sink, &lost).await;
    assert_eq!(etcd_test.contents(lost.scope()).await.len(), 2);
    let reported = log::all().lines().any(|line| line.contains(" ERROR ") && line.contains("/p/lost"));
    assert!(reported, "the log does not report that PingSIX misses changes");
}

#[tokio::test]
async fn a_sink_that_is_dropped_leaves_its_documents_and_ends_its_watches() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let web = routes_of("/p/web", 10, 10);
    sink.publish(&web).await.unwrap();
    wait_for_watch(&etcd_test, &sink, &web).await;
    let mut drift = sink.drift();
    drop(sink);
    let ended = async { while drift.changed().await.is_ok() {} };
    tokio::time::timeout(WAIT_TIMEOUT, ended).await.expect("the watch has not ended");
    assert_eq!(etcd_test.contents(web.scope()).await.len(), 10);
}
