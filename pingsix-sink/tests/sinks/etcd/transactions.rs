//! Transactions of a change.

use std::collections::BTreeSet;
use std::time::Duration;

use pingsix_sink::desired::DesiredError;
use pingsix_sink::{Desired, DocumentSet, EtcdSink, Sink as _};

use super::etcd_test::{
    EtcdTest, WAIT_TIMEOUT, contents, publish_error, publish_until_done, routes_of, wait_for_watch,
};
use crate::relay::Failure;
use pingsix_sink::contract::documents::{desired, document, scope};

#[tokio::test]
async fn a_change_that_fits_is_one_transaction_and_equal_content_none() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    // 111 documents, 16 ownership records, and the guard.
    let web = routes_of("/p/web", 111, 300);
    let published = sink.publish(&web).await.unwrap();
    assert_eq!(etcd_test.relay.forwarded(), 1);
    assert_eq!(published.revision.get(), etcd_test.revision().await);
    let list = etcd_test.list(web.scope()).await;
    assert!(list.kvs.iter().all(|kv| kv.mod_revision == published.revision.get()), "all at once");

    wait_for_watch(&etcd_test, &sink, &web).await;
    for sink in [&sink, &etcd_test.sink()] {
        assert_eq!(sink.publish(&web).await.unwrap().revision, published.revision);
    }
    assert_eq!(etcd_test.relay.forwarded(), 1);

    // Changed documents leave the records unchanged: all 127 fit.
    let before = routes_of("/p/web", 127, 300);
    sink.publish(&before).await.unwrap();
    let forwarded = etcd_test.relay.forwarded();
    sink.publish(&routes_of("/p/web", 127, 301)).await.unwrap();
    assert_eq!(etcd_test.relay.forwarded(), forwarded + 1);
}

#[tokio::test]
async fn an_oversized_change_is_split_at_the_limits_of_etcd() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    // A busy machine needs its time for megabytes in a debug build.
    let sink = etcd_test.builder().timeout(Duration::from_mins(1)).build().unwrap();
    let web = routes_of("/p/web", 1_000, 300);
    sink.publish(&web).await.unwrap();
    assert_eq!(etcd_test.contents(web.scope()).await.len(), 1_000);
    assert!(etcd_test.relay.forwarded() <= 10, "{} transactions", etcd_test.relay.forwarded());

    // 10 MB, of which etcd accepts 1.5 MiB at a time.
    let api = routes_of("/p/api", 100, 100_000);
    sink.publish(&api).await.unwrap();
    assert_eq!(etcd_test.contents(api.scope()).await.len(), 100);
    let gone = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(gone.changed.deleted, 1_000);
    assert!(etcd_test.contents(web.scope()).await.is_empty());
}

#[tokio::test]
async fn the_largest_document_is_written_and_a_larger_one_refused_in_advance() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let one = |bytes: usize| {
        let documents = [document("upstreams/a", "a"), document("routes/r", "x".repeat(bytes))];
        Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap())
    };
    let error = publish_error(&sink, &one(1_600_000)).await;
    assert_eq!((error.category(), error.is_retryable()), ("document_too_large", false));
    assert_eq!(etcd_test.relay.forwarded(), 0);
    let Some(DesiredError::DocumentTooLarge { bytes, limit, .. }) = error.downcast_ref() else {
        panic!("{error}")
    };
    let largest = 1_600_000 - (bytes - limit);
    assert_eq!(publish_error(&sink, &one(largest + 1)).await.category(), "document_too_large");
    sink.publish(&one(largest)).await.unwrap();
}

#[tokio::test]
async fn a_server_with_lower_limits_is_an_error_that_says_so() {
    let Some(etcd) = pingsix_test_programs::Etcd::start_with(&["--max-txn-ops", "20"]).await else { return };
    let web = routes_of("/p/web", 30, 10);
    let sink = EtcdSink::builder([etcd.address().to_string()]).build().unwrap();
    let error = publish_error(&sink, &web).await;
    assert_eq!((error.category(), error.is_retryable()), ("etcd_limit", false), "{error}");
    let sink = EtcdSink::builder([etcd.address().to_string()]).max_txn_ops(20).build().unwrap();
    sink.publish(&web).await.unwrap();
}

#[tokio::test]
async fn a_transaction_whose_answer_is_lost_is_found_done() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    etcd_test.relay.fail_after(Some((0, Failure::Response)));
    assert_eq!(publish_error(&sink, &web).await.category(), "etcd_unavailable");
    etcd_test.relay.fail_after(None);
    let revision = etcd_test.revision().await;
    let published = sink.publish(&web).await.unwrap();
    assert!(published.changed.is_empty());
    assert_eq!(published.revision.get(), revision);

    // A sink with another endpoint tries that one by itself.
    let addresses = [etcd_test.relay.address.to_string(), etcd_test.etcd.address().to_string()];
    let sink = EtcdSink::builder(addresses).build().unwrap();
    etcd_test.relay.fail_after(Some((0, Failure::Response)));
    let web = desired("/p/web", &[("upstreams/u", "2"), ("routes/r", "2")]);
    let published = sink.publish(&web).await.unwrap();
    assert_eq!(published.revision.get(), revision + 1, "written once");
    assert_eq!(contents(&etcd_test.list(web.scope()).await).len(), 2);
}

#[tokio::test]
async fn a_publication_that_is_dropped_half_way_harms_nothing() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let (small, large) = (routes_of("/p/web", 10, 10), routes_of("/p/web", 1_500, 300));
    for millis in 0..12 {
        publish_until_done(&sink, &small).await;
        let dropped =
            tokio::time::timeout(std::time::Duration::from_millis(millis * 8), sink.publish(&large));
        drop(dropped.await);
    }
    publish_until_done(&sink, &large).await;
    assert_eq!(etcd_test.contents(large.scope()).await.len(), 1_500);
    publish_until_done(&sink, &small).await;
    assert_eq!(etcd_test.contents(small.scope()).await.len(), 10);
}

#[tokio::test]
async fn calls_for_one_scope_are_served_in_their_order() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let states: Vec<Desired> = (0..20).map(|n| desired("/p/web", &[("routes/r", &n.to_string())])).collect();
    let publishing = futures::future::join_all(states.iter().map(|state| sink.publish(state)));
    let published = tokio::time::timeout(WAIT_TIMEOUT, publishing).await.expect("all are served");
    let revisions: Vec<i64> = published.into_iter().map(|one| one.unwrap().revision.get()).collect();
    assert!(revisions.is_sorted());
    assert_eq!(revisions.iter().collect::<BTreeSet<_>>().len(), 20);
    assert_eq!(etcd_test.contents(states[0].scope()).await["/p/web/routes/r"], "19");
}

#[tokio::test]
async fn reserved_keys_are_refused() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    for key in [".pingsix_graph_revision", ".pingsix_sink_owned.a"] {
        assert_eq!(publish_error(&sink, &desired("/p/web", &[(key, "1")])).await.category(), "invalid_key");
    }
    sink.publish(&desired("/p/web", &[(".pingsix_sink_owned.g", "1"), ("routes/.note", "1")])).await.unwrap();
}
