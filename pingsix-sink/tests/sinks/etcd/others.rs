//! Other writers.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use pingsix_sink::etcd::EtcdError;
use pingsix_sink::{Changed, Desired, EtcdSink, Sink as _, plan};
use pingsix_test_programs::proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use pingsix_test_programs::proto::etcdserverpb::request_op::Request as Operation;
use pingsix_test_programs::proto::etcdserverpb::{Compare, PutRequest, RangeResponse, RequestOp, TxnRequest};
use pingsix_test_programs::proto::mvccpb::event::EventType;

use super::etcd_test::{
    EtcdTest, WAIT_TIMEOUT, publish_error, publish_until_done, routes_of, wait_for_drift, wait_for_watch,
};
use crate::relay::Failure;
use crate::wire::{Watcher, channel, watch_under};
use pingsix_sink::contract::documents::{desired, scope};

const GUARD: &str = "/p/web/.pingsix_graph_revision";

/// Puts a key as PingSIX's Admin API does: reads everything, then compares and puts the key and the guard. Returns
/// false after a conflict.
async fn admin_put(etcd_test: &EtcdTest, key: &str, value: &str) -> bool {
    let list = etcd_test.list(&scope("/p/web")).await;
    admin_put_after(&list, etcd_test, key, value).await
}

/// [`admin_put`] with an earlier list.
async fn admin_put_after(list: &RangeResponse, etcd_test: &EtcdTest, key: &str, value: &str) -> bool {
    let unchanged = |key: &str| {
        let (target, operand) = match list.kvs.iter().find(|kv| kv.key == key.as_bytes()) {
            None => (CompareTarget::Create, TargetUnion::CreateRevision(0)),
            Some(kv) => (CompareTarget::Mod, TargetUnion::ModRevision(kv.mod_revision)),
        };
        Compare {
            result: CompareResult::Equal.into(),
            target: target.into(),
            key: key.to_owned().into(),
            target_union: Some(operand),
            ..Compare::default()
        }
    };
    let put = |key: &str, value: &str| {
        let value = Bytes::from(value.to_owned());
        let put = PutRequest { key: key.to_owned().into(), value, ..PutRequest::default() };
        RequestOp { request: Some(Operation::RequestPut(put)) }
    };
    let request = TxnRequest {
        compare: vec![unchanged(key), unchanged(GUARD)],
        success: vec![put(key, value), put(GUARD, "pingsix-graph-v1")],
        failure: Vec::new(),
    };
    etcd_test.kv().txn(request).await.unwrap().into_inner().succeeded
}

#[tokio::test]
async fn writers_of_the_admin_api_and_the_sink_overwrite_no_unseen_change() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let states = [
        desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]),
        desired("/p/web", &[("upstreams/u", "2"), ("routes/s", "1")]),
    ];
    let admin = async {
        let (mut done, mut conflicts) = (0, 0);
        while done < 40 {
            if admin_put(&etcd_test, &format!("/p/web/routes/admin-{done}"), "a").await {
                done += 1;
            } else {
                conflicts += 1;
            }
        }
        conflicts
    };
    let publishing = async {
        for n in 0..40 {
            publish_until_done(&sink, &states[n % 2]).await;
        }
    };
    let both = futures::future::join(admin, publishing);
    let (conflicts, ()) = tokio::time::timeout(WAIT_TIMEOUT, both).await.expect("both get on");
    assert!(conflicts + etcd_test.relay.forwarded() - 40 > 0, "they met, and one of them had to try again");

    let contents = etcd_test.contents(&scope("/p/web")).await;
    assert_eq!(contents.len(), 42);
    assert_eq!(contents["/p/web/upstreams/u"], "2");
    let guard =
        etcd_test.list(&scope("/p/web")).await.kvs.into_iter().find(|kv| kv.key == GUARD.as_bytes()).unwrap();
    assert_eq!(&*guard.value, b"pingsix-graph-v1");

    wait_for_watch(&etcd_test, &sink, &states[1]).await;
    let foreign: BTreeSet<String> = (0..40).map(|id| format!("/p/web/routes/admin-{id}")).collect();
    assert_eq!(sink.foreign(&scope("/p/web")).await, foreign);
    assert!(sink.drift().borrow().is_empty(), "the own documents have not changed");
}

#[tokio::test]
async fn the_admin_api_notices_every_change_of_the_sink() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let states = [
        desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]),
        desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "2")]),
        desired("/p/web", &[("upstreams/u", "1")]),
        Desired::empty(scope("/p/web")),
    ];
    for state in &states {
        // The list has the upstream of its route, which may be deleted before the write.
        let list = etcd_test.list(state.scope()).await;
        sink.publish(state).await.unwrap();
        assert!(
            !admin_put_after(&list, &etcd_test, "/p/web/routes/admin", "u").await,
            "409, and it looks again"
        );
    }
    let list = etcd_test.list(&scope("/p/web")).await;
    assert!(admin_put_after(&list, &etcd_test, "/p/web/routes/admin", "a").await);
}

#[tokio::test]
async fn two_sinks_that_disagree_take_turns_and_never_mix() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sinks = [etcd_test.sink(), etcd_test.sink()];
    let states = [
        desired("/p/web", &[("upstreams/a", "1"), ("services/s", "a"), ("routes/r", "a")]),
        desired("/p/web", &[("upstreams/b", "1"), ("services/s", "b"), ("routes/r", "b")]),
    ];
    let written = [Cell::new(0), Cell::new(0)];
    let publishing = |n: usize| {
        let (sinks, states, written) = (&sinks, &states, &written);
        async move {
            while written.iter().any(|written| written.get() < 10) {
                let published = publish_until_done(&sinks[n], &states[n]).await;
                written[n].set(written[n].get() + usize::from(!published.changed.is_empty()));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    let both = futures::future::join(publishing(0), publishing(1));
    tokio::time::timeout(WAIT_TIMEOUT, both).await.expect("each gets its turn");

    let last = etcd_test.revision().await;
    let mut watcher =
        Watcher::open_with(channel(etcd_test.etcd.address()).await, Some(watch_under("/p/web/", 1)))
            .await
            .unwrap();
    let (mut state, mut revision, mut seen) = (BTreeSet::new(), 0, 0);
    while revision < last {
        for event in watcher.next().await.events {
            let kv = event.kv.as_ref().unwrap();
            if kv.mod_revision != revision && revision != 0 {
                seen += 1;
                let (a, b) = (state.contains("/p/web/upstreams/a"), state.contains("/p/web/upstreams/b"));
                assert!(state.len() == 3 && a != b, "{state:?}");
            }
            revision = kv.mod_revision;
            let key = String::from_utf8(kv.key.to_vec()).unwrap();
            if key.contains("/.") {
                continue;
            }
            match event.r#type() {
                EventType::Put => state.insert(key),
                EventType::Delete => state.remove(&key),
            };
        }
    }
    assert!(seen >= 19, "each state was seen");
}

#[tokio::test]
async fn two_sinks_that_agree_write_once() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let (one, other) = (etcd_test.sink(), etcd_test.sink());
    for n in 0..10 {
        let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", &n.to_string())]);
        let before = etcd_test.revision().await;
        let (first, second) = futures::future::join(one.publish(&web), other.publish(&web)).await;
        assert_eq!(first.unwrap().revision, second.unwrap().revision);
        assert_eq!(etcd_test.revision().await, before + 1);
    }
}

#[tokio::test]
async fn drift_is_reported_and_repaired_by_another_publication() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    let api = desired("/p/api", &[("routes/r", "1")]);
    for scope in [&web, &api] {
        sink.publish(scope).await.unwrap();
        wait_for_watch(&etcd_test, &sink, scope).await;
    }
    wait_for_drift(&sink, &[]).await;
    etcd_test.put("/p/web/routes/r", "hacked").await;
    wait_for_drift(&sink, &["/p/web"]).await;
    etcd_test.delete("/p/api/routes/r").await;
    wait_for_drift(&sink, &["/p/api", "/p/web"]).await;
    assert_eq!(sink.publish(&web).await.unwrap().changed.updated, 1);
    wait_for_drift(&sink, &["/p/api"]).await;
    etcd_test.put("/p/api/routes/r", "1").await;
    wait_for_drift(&sink, &[]).await;
    assert!(sink.publish(&api).await.unwrap().changed.is_empty(), "put back by hand, it is still the sink's");

    etcd_test.put("/p/api/routes/r", "hacked").await;
    wait_for_drift(&sink, &["/p/api"]).await;
    sink.forget(api.scope());
    wait_for_drift(&sink, &[]).await;
}

#[tokio::test]
async fn drift_is_reported_also_after_a_failed_publication() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = etcd_test.sink();
    let (web, next) = (desired("/p/web", &[("routes/r", "1")]), desired("/p/web", &[("routes/r", "2")]));
    let noticed = async || {
        etcd_test.put("/p/web/routes/r", "hacked").await;
        wait_for_drift(&sink, &["/p/web"]).await;
    };
    sink.publish(&web).await.unwrap();
    wait_for_watch(&etcd_test, &sink, &web).await;

    assert_eq!(publish_error(&sink, &routes_of("/p/web", 1, 2 << 20)).await.category(), "document_too_large");
    noticed().await;

    publish_until_done(&sink, &web).await;
    wait_for_drift(&sink, &[]).await;
    etcd_test.put(GUARD, "pingsix-graph-v2").await;
    assert_eq!(publish_error(&sink, &next).await.category(), "etcd_guard");
    noticed().await;
    etcd_test.put(GUARD, "pingsix-graph-v1").await;

    publish_until_done(&sink, &web).await;
    wait_for_drift(&sink, &[]).await;
    etcd_test.relay.fail_after(Some((0, Failure::Request)));
    assert_eq!(publish_error(&sink, &next).await.category(), "etcd_unavailable");
    noticed().await;
    etcd_test.relay.fail_after(None);
    publish_until_done(&sink, &web).await;
    wait_for_drift(&sink, &[]).await;
}

#[tokio::test]
async fn without_a_record_a_document_is_foreign_until_desired() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let web = routes_of("/p/web", 40, 10);
    let sink = etcd_test.sink();
    sink.publish(&web).await.unwrap();
    wait_for_watch(&etcd_test, &sink, &web).await;
    for index in 0..16 {
        let key = format!("/p/web/.pingsix_sink_owned.{index:x}");
        if index % 2 == 0 { etcd_test.delete(&key).await } else { etcd_test.put(&key, "damaged").await }
    }
    wait_for_drift(&sink, &["/p/web"]).await;
    let emptied = etcd_test.sink().publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(emptied.changed.total(), 0, "a document of an unknown writer stays");

    let repaired = sink.publish(&web).await.unwrap();
    assert_eq!(repaired.changed.created, 40);
    let gone = etcd_test.sink().publish(&Desired::empty(scope("/p/web"))).await.unwrap();
    assert_eq!(gone.changed.deleted, 40);
}

#[tokio::test]
async fn a_scope_guarded_by_an_unknown_protocol_is_left_alone() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let web = desired("/p/web", &[("routes/r", "1")]);
    etcd_test.put(GUARD, "pingsix-graph-v2").await;
    let sink = etcd_test.sink();
    let error = publish_error(&sink, &web).await;
    assert_eq!(
        (error.category(), error.is_retryable()),
        ("etcd_guard", true),
        "somebody may mend it: {error}"
    );
    assert_eq!(etcd_test.relay.forwarded(), 0);
    for known in ["1", "pingsix-graph-v1"] {
        etcd_test.put(GUARD, known).await;
        publish_until_done(&sink, &desired("/p/web", &[("routes/r", known)])).await;
    }
}

#[tokio::test]
async fn the_diff_is_available_without_a_publication() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let (before, after) = (routes_of("/p/web", 10, 10), routes_of("/p/web", 12, 11));
    assert!(etcd_test.sink().documents(before.scope()).await.unwrap().is_empty());
    etcd_test.sink().publish(&before).await.unwrap();
    etcd_test.put("/p/web/routes/manual", "m").await;
    let reader = etcd_test.sink();
    let contents = reader.documents(before.scope()).await.unwrap();
    assert!(contents.same_content(before.documents()), "foreign keys are left out");
    let steps = plan(&contents, after.documents());
    assert_eq!(reader.publish(&after).await.unwrap().changed, Changed::of(&steps));
}

#[tokio::test]
async fn a_sink_without_watch_looks_each_time() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let sink = pingsix_sink::EtcdSink::builder([etcd_test.etcd.address().to_string()])
        .without_watch()
        .build()
        .unwrap();
    let web = desired("/p/web", &[("routes/r", "1")]);
    sink.publish(&web).await.unwrap();
    etcd_test.put("/p/web/routes/r", "hacked").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(sink.drift().borrow().is_empty());
    assert_eq!(sink.publish(&web).await.unwrap().changed.updated, 1);
}

#[tokio::test]
async fn a_scope_says_who_published_it_from_its_first_document_to_its_last() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let (one, two, placeholder) = (etcd_test.sink(), etcd_test.sink(), etcd_test.sink());
    one.publish_as("one");
    one.publish_as("the first call counts");
    two.publish_as("two");
    let own = async |sink: &EtcdSink| sink.own_scopes(&scope("/p")).await.unwrap();
    let scopes = |names: &[&str]| names.iter().map(|name| scope(name)).collect::<BTreeSet<_>>();
    let web = desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]);
    // So many keys that they need several pages.
    let api = routes_of("/p/api", 1_500, 8);
    let first = one.publish(&web).await.unwrap();
    two.publish(&api).await.unwrap();
    placeholder.publish(&desired("/p/other", &[("upstreams/u", "1")])).await.unwrap();
    one.publish(&desired("/elsewhere", &[("upstreams/u", "1")])).await.unwrap();
    assert_eq!(own(&one).await, scopes(&["/p/web"]));
    assert_eq!(own(&two).await, scopes(&["/p/api"]));
    assert_eq!(own(&placeholder).await, scopes(&[]));
    // A later process of the same name finds the documents of an earlier one.
    let later = etcd_test.sink();
    later.publish_as("one");
    assert_eq!(own(&later).await, scopes(&["/p/web"]));

    // A publication with any content changes the publisher, and an unchanged publisher is not written.
    let same = two.publish(&web).await.unwrap();
    assert!(same.changed.is_empty() && same.revision == first.revision, "{same:?}");
    assert_eq!(own(&one).await, scopes(&[]));
    assert_eq!(own(&two).await, scopes(&["/p/api", "/p/web"]));
    assert!(one.drift().borrow().is_empty());
    let again = two.publish(&web).await.unwrap();
    assert_eq!(again, same);

    two.publish(&Desired::empty(scope("/p/api"))).await.unwrap();
    assert_eq!(own(&two).await, scopes(&["/p/web"]));
    let left = etcd_test.list(&scope("/p/api")).await;
    assert!(left.kvs.iter().all(|kv| !kv.key.ends_with(b".pingsix_sink_publisher")));
    // Foreign documents say nothing about the publisher.
    two.publish(&Desired::empty(scope("/p/api"))).await.unwrap();
    assert_eq!(own(&two).await, scopes(&["/p/web"]));
}

/// Two leaders, of which the earlier one does not know that its term has ended.
#[tokio::test]
async fn writes_of_an_earlier_term_are_refused() {
    let Some(etcd_test) = EtcdTest::start().await else { return };
    let (first, second) = (etcd_test.sink(), etcd_test.sink());
    let states = [
        desired("/p/web", &[("upstreams/u", "1"), ("routes/r", "1")]),
        desired("/p/web", &[("upstreams/u", "2"), ("routes/s", "1")]),
    ];
    first.fence(7);
    publish_until_done(&first, &states[0]).await;
    // The next leader has nothing to change, and takes the fence nevertheless.
    second.fence(8);
    let published = publish_until_done(&second, &states[0]).await;
    assert!(published.changed.is_empty());
    let list = etcd_test.list(&scope("/p/web")).await;
    let fence = list.kvs.iter().find(|kv| kv.key == "/p/web/.pingsix_sink_fence").unwrap();
    assert_eq!(fence.value, "8");

    for _ in 0..2 {
        let error = publish_error(&first, &states[1]).await;
        assert!(matches!(error.downcast_ref(), Some(EtcdError::Fenced { held: 8, own: 7, .. })), "{error}");
        assert!(!error.is_retryable());
    }
    assert_eq!(etcd_test.list(&scope("/p/web")).await.kvs, list.kvs, "nothing was written");
    first.fence(3);
    assert!(
        publish_error(&first, &states[1]).await.to_string().contains("ours 7"),
        "a term never gets lower"
    );

    publish_until_done(&second, &states[1]).await;
    // The first one leads again, in a later term.
    first.fence(9);
    publish_until_done(&first, &states[0]).await;
    assert!(matches!(
        publish_error(&second, &states[1]).await.downcast_ref(),
        Some(EtcdError::Fenced { .. })
    ));
    // Without a term, no fence applies.
    publish_until_done(&etcd_test.sink(), &states[1]).await;
}
