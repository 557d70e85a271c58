//! How a change becomes transactions.

use std::collections::BTreeSet;

use pingsix_sink::desired::DesiredError;
use pingsix_sink::{Desired, DocumentSet, EtcdSink, Sink as _};

use super::lab::{Lab, PATIENCE, fails, held, many, publish_until_done, watched};
use crate::documents::{desired, document, scope};
use crate::relay::Failure;

#[tokio::test]
async fn a_change_that_fits_is_one_transaction_and_equal_content_none() {
    let Some(lab) = Lab::start().await else { return };
    let sink = lab.sink();
    // 111 documents, 16 records of what is ours, and the guard.
    let web = many("/p/web", 111, 300);
    let published = sink.publish(&web).await.unwrap();
    assert_eq!(lab.relay.taken(), 1);
    assert_eq!(published.revision.get(), lab.revision().await);
    let list = lab.list(web.scope()).await;
    assert!(list.kvs.iter().all(|kv| kv.mod_revision == published.revision.get()), "all at once");

    watched(&lab, &sink, &web).await;
    for sink in [&sink, &lab.sink()] {
        assert_eq!(sink.publish(&web).await.unwrap().revision, published.revision);
    }
    assert_eq!(lab.relay.taken(), 1);

    // Documents that change leave the records as they are: all 127 fit.
    let before = many("/p/web", 127, 300);
    sink.publish(&before).await.unwrap();
    let taken = lab.relay.taken();
    sink.publish(&many("/p/web", 127, 301)).await.unwrap();
    assert_eq!(lab.relay.taken(), taken + 1);
}

#[tokio::test]
async fn what_does_not_fit_is_cut_as_etcd_takes_it() {
    let Some(lab) = Lab::start().await else { return };
    let sink = lab.sink();
    let web = many("/p/web", 1_000, 300);
    sink.publish(&web).await.unwrap();
    assert_eq!(lab.held(web.scope()).await.len(), 1_000);
    assert!(lab.relay.taken() <= 10, "{} transactions", lab.relay.taken());

    // 10 MB, of which etcd takes 1.5 MiB at a time.
    let api = many("/p/api", 100, 100_000);
    sink.publish(&api).await.unwrap();
    assert_eq!(lab.held(api.scope()).await.len(), 100);
    let gone = sink.publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(gone.changed.deleted, 1_000);
    assert!(lab.held(web.scope()).await.is_empty());
}

#[tokio::test]
async fn the_largest_document_is_taken_and_a_larger_one_refused_before_anything_is_written() {
    let Some(lab) = Lab::start().await else { return };
    let sink = lab.sink();
    let one = |bytes: usize| {
        let documents = [document("upstreams/a", "a"), document("routes/r", "x".repeat(bytes))];
        Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap())
    };
    let error = fails(&sink, &one(1_600_000)).await;
    assert_eq!((error.category(), error.is_retryable()), ("document_too_large", false));
    assert_eq!(lab.relay.taken(), 0);
    let Some(DesiredError::DocumentTooLarge { bytes, limit, .. }) = error.downcast_ref() else {
        panic!("{error}")
    };
    let largest = 1_600_000 - (bytes - limit);
    assert_eq!(fails(&sink, &one(largest + 1)).await.category(), "document_too_large");
    sink.publish(&one(largest)).await.unwrap();
}

#[tokio::test]
async fn a_server_with_lower_limits_is_an_error_that_says_so() {
    let Some(etcd) = pingsix_test_programs::Etcd::start_with(&["--max-txn-ops", "20"]).await else { return };
    let web = many("/p/web", 30, 10);
    let sink = EtcdSink::builder([etcd.address().to_string()]).build().unwrap();
    let error = fails(&sink, &web).await;
    assert_eq!((error.category(), error.is_retryable()), ("etcd_limit", false), "{error}");
    let sink = EtcdSink::builder([etcd.address().to_string()]).max_txn_ops(20).build().unwrap();
    sink.publish(&web).await.unwrap();
}

#[tokio::test]
async fn a_transaction_whose_answer_is_lost_is_found_done() {
    let Some(lab) = Lab::start().await else { return };
    let sink = lab.sink();
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    lab.relay.fail_after(Some((0, Failure::UnexpectedResponse)));
    assert_eq!(fails(&sink, &web).await.category(), "etcd_unavailable");
    lab.relay.fail_after(None);
    let revision = lab.revision().await;
    let published = sink.publish(&web).await.unwrap();
    assert!(published.changed.is_empty());
    assert_eq!(published.revision.get(), revision);

    // A sink with another endpoint tries that one by itself.
    let addresses = [lab.relay.address.to_string(), lab.etcd.address().to_string()];
    let sink = EtcdSink::builder(addresses).build().unwrap();
    lab.relay.fail_after(Some((0, Failure::UnexpectedResponse)));
    let web = desired("/p/web", &[("upstreams/u", "2"), ("routes/r", "2")]);
    let published = sink.publish(&web).await.unwrap();
    assert_eq!(published.revision.get(), revision + 1, "written once");
    assert_eq!(held(&lab.list(web.scope()).await).len(), 2);
}

#[tokio::test]
async fn a_publication_that_is_dropped_half_way_harms_nothing() {
    let Some(lab) = Lab::start().await else { return };
    let sink = lab.sink();
    let (small, large) = (many("/p/web", 10, 10), many("/p/web", 1_500, 300));
    for millis in 0..12 {
        publish_until_done(&sink, &small).await;
        let dropped =
            tokio::time::timeout(std::time::Duration::from_millis(millis * 8), sink.publish(&large));
        drop(dropped.await);
    }
    publish_until_done(&sink, &large).await;
    assert_eq!(lab.held(large.scope()).await.len(), 1_500);
    publish_until_done(&sink, &small).await;
    assert_eq!(lab.held(small.scope()).await.len(), 10);
}

#[tokio::test]
async fn calls_for_one_scope_are_served_in_their_order() {
    let Some(lab) = Lab::start().await else { return };
    let sink = lab.sink();
    let states: Vec<Desired> = (0..20).map(|n| desired("/p/web", &[("routes/r", &n.to_string())])).collect();
    let publishing = futures::future::join_all(states.iter().map(|state| sink.publish(state)));
    let published = tokio::time::timeout(PATIENCE, publishing).await.expect("all are served");
    let revisions: Vec<i64> = published.into_iter().map(|one| one.unwrap().revision.get()).collect();
    assert!(revisions.is_sorted());
    assert_eq!(revisions.iter().collect::<BTreeSet<_>>().len(), 20);
    assert_eq!(lab.held(states[0].scope()).await["/p/web/routes/r"], "19");
}

#[tokio::test]
async fn names_of_what_stands_beside_the_documents_are_refused() {
    let Some(lab) = Lab::start().await else { return };
    let sink = lab.sink();
    for key in [".pingsix_graph_revision", ".pingsix_sink_owned.a"] {
        assert_eq!(fails(&sink, &desired("/p/web", &[(key, "1")])).await.category(), "invalid_key");
    }
    sink.publish(&desired("/p/web", &[(".pingsix_sink_owned.g", "1"), ("routes/.note", "1")])).await.unwrap();
}
