//! The KV service over the wire.

use crate::wire;
use crate::wire::{Served, pairs, under};
use bytes::Bytes;
use pingsix_sink::contract::documents::{desired, document, scope};
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Sink};
use pingsix_test_programs::proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use pingsix_test_programs::proto::etcdserverpb::range_request::{SortOrder, SortTarget};
use pingsix_test_programs::proto::etcdserverpb::request_op::Request as Operation;
use pingsix_test_programs::proto::etcdserverpb::response_op::Response as Outcome;
use pingsix_test_programs::proto::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
};
use tonic::Code;

/// Two scopes; `/p/web/routes/b` has three versions.
async fn served() -> Served {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    for value in ["1", "22", "0"] {
        let web = desired(
            "/p/web",
            &[("upstreams/u", "U"), ("routes/a", "A"), ("routes/b", value), ("routes/c", "C")],
        );
        served.etcd.publish(&web).await.unwrap();
    }
    served.etcd.publish(&desired("/p/webinar", &[("routes/z", "Z")])).await.unwrap();
    served.etcd.open();
    served
}

fn keys(request: &str) -> RangeRequest {
    RangeRequest { keys_only: true, ..under(request) }
}

#[tokio::test]
async fn requests_are_unavailable_before_the_first_complete_publication() {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    for prefix in ["/p/web/", "/", "health"] {
        assert_eq!(served.list(prefix).await.unwrap_err().code(), Code::Unavailable);
    }
    assert_eq!(wire::Watcher::open(served.channel().await).await.err().unwrap().code(), Code::Unavailable);
    served.etcd.publish(&desired("/p/web", &[("routes/a", "A")])).await.unwrap();
    assert_eq!(served.list("/p/web/").await.unwrap_err().code(), Code::Unavailable);
    assert!(!served.etcd.is_open());
    served.etcd.open();
    assert_eq!(pairs(&served.list("/p/web/").await.unwrap()), ["/p/web/routes/a=A"]);
}

#[tokio::test]
async fn a_scope_is_unavailable_until_its_own_first_publication_alone() {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    served.etcd.open();
    for prefix in ["/p/web/", "/p/blog/"] {
        assert_eq!(served.list(prefix).await.unwrap_err().code(), Code::Unavailable);
    }
    served.etcd.publish(&desired("/p/web", &[("routes/a", "A")])).await.unwrap();
    assert_eq!(pairs(&served.list("/p/web/").await.unwrap()), ["/p/web/routes/a=A"]);
    assert_eq!(served.list("/p/blog/").await.unwrap_err().code(), Code::Unavailable);
    served.etcd.publish(&desired("/p/blog", &[("routes/b", "B")])).await.unwrap();
    assert_eq!(pairs(&served.list("/p/blog/").await.unwrap()), ["/p/blog/routes/b=B"]);
}

#[tokio::test]
async fn an_unknown_prefix_is_unavailable_and_a_withdrawn_one_is_empty() {
    let served = served().await;
    for unknown in ["/p/api/", "/p/web:80/", "/q/", "/p/web/routes/x"] {
        let answer = served.list(unknown).await;
        match unknown {
            "/p/web/routes/x" => assert!(answer.unwrap().kvs.is_empty()),
            _ => assert_eq!(answer.unwrap_err().code(), Code::Unavailable, "{unknown}"),
        }
    }
    assert_eq!(served.etcd.stats().refused, 3);
    let before = served.etcd.revision();
    let withdrawn = served.etcd.withdraw(&scope("/p/webinar")).await.unwrap();
    assert!(withdrawn.revision > before);
    let empty = served.list("/p/webinar/").await.unwrap();
    assert_eq!((empty.count, empty.header.unwrap().revision), (0, withdrawn.revision.get()));
    served.etcd.publish(&desired("/p/api", &[("routes/a", "A")])).await.unwrap();
    assert_eq!(served.list("/p/api/").await.unwrap().count, 1, "a scope appears with its first publication");
}

#[tokio::test]
async fn a_prefix_ends_at_its_slash_and_a_wider_range_covers_several_scopes() {
    let served = served().await;
    let web = served.list("/p/web/").await.unwrap();
    assert_eq!(
        pairs(&web),
        ["/p/web/routes/a=A", "/p/web/routes/b=0", "/p/web/routes/c=C", "/p/web/upstreams/u=U"]
    );
    assert_eq!(served.list("/p/web").await.unwrap().count, 5);
    let from_key =
        RangeRequest { key: b"\0"[..].into(), range_end: b"\0"[..].into(), ..RangeRequest::default() };
    assert_eq!(served.kv().await.range(from_key).await.unwrap().into_inner().count, 5);
    let one = RangeRequest { key: "/p/web/routes/b".into(), ..RangeRequest::default() };
    let one = served.kv().await.range(one).await.unwrap().into_inner();
    let kv = &one.kvs[0];
    assert_eq!((one.count, &*kv.value, kv.version, kv.lease), (1, b"0".as_slice(), 3, 0));
    assert_eq!(kv.mod_revision, kv.create_revision + 2);
    let backwards = RangeRequest { range_end: "/p/a".into(), ..under("/p/web/") };
    assert_eq!(served.kv().await.range(backwards).await.unwrap_err().code(), Code::Unavailable);
    let header = web.header.unwrap();
    assert!(header.revision > kv.mod_revision, "{header:?}");
    assert!(header.cluster_id != 0 && header.member_id != 0 && header.raft_term != 0);
}

#[tokio::test]
async fn limit_count_and_keys_only_follow_etcd() {
    let served = served().await;
    let mut kv = served.kv().await;
    let limited = kv.range(RangeRequest { limit: 2, ..keys("/p/web/") }).await.unwrap().into_inner();
    assert_eq!(pairs(&limited), ["/p/web/routes/a=", "/p/web/routes/b="]);
    assert!(limited.more);
    assert_eq!(limited.count, 4, "the count is that of the range");
    let exact = kv.range(RangeRequest { limit: 4, ..keys("/p/web/") }).await.unwrap().into_inner();
    assert!(!exact.more);
    let counted = kv.range(RangeRequest { count_only: true, ..under("/p/web/") }).await.unwrap().into_inner();
    assert_eq!((counted.count, counted.kvs.len(), counted.more), (4, 0, false));
    let serializable = kv.range(RangeRequest { serializable: true, ..under("/p/web/") }).await.unwrap();
    assert_eq!(serializable.into_inner().count, 4);
    let empty = kv.range(RangeRequest::default()).await.unwrap_err();
    assert_eq!((empty.code(), empty.message()), (Code::InvalidArgument, "etcdserver: key is not provided"));
}

#[tokio::test]
async fn other_orders_and_filters_are_refused() {
    let served = served().await;
    let mut kv = served.kv().await;
    for request in [
        RangeRequest { sort_order: SortOrder::Descend.into(), ..under("/p/web/") },
        RangeRequest { sort_target: SortTarget::Mod.into(), ..under("/p/web/") },
        RangeRequest { min_mod_revision: 1, ..under("/p/web/") },
        RangeRequest { max_create_revision: 1, ..under("/p/web/") },
    ] {
        assert_eq!(kv.range(request.clone()).await.unwrap_err().code(), Code::Unimplemented);
        let success = vec![RequestOp { request: Some(Operation::RequestRange(request)) }];
        let transaction = TxnRequest { success, ..TxnRequest::default() };
        assert_eq!(kv.txn(transaction).await.unwrap_err().code(), Code::Unimplemented);
    }
    let ascending = RangeRequest { sort_order: SortOrder::Ascend.into(), ..under("/p/web/") };
    assert_eq!(kv.range(ascending).await.unwrap().into_inner().count, 4);
}

#[tokio::test]
async fn only_the_present_is_read_and_other_revisions_are_refused_as_by_etcd() {
    let served = served().await;
    let mut kv = served.kv().await;
    let newest = served.etcd.revision().get();
    let mut at = async |revision| {
        kv.range(RangeRequest { revision, ..under("/p/web/") }).await.map(tonic::Response::into_inner)
    };
    assert_eq!(at(newest).await.unwrap().count, 4);
    let compacted = at(newest - 1).await.unwrap_err();
    assert_eq!(compacted.code(), Code::OutOfRange);
    assert_eq!(compacted.message(), "etcdserver: mvcc: required revision has been compacted");
    let future = at(newest + 1).await.unwrap_err();
    assert_eq!(future.code(), Code::OutOfRange);
    assert_eq!(future.message(), "etcdserver: mvcc: required revision is a future revision");
}

#[tokio::test]
async fn every_write_is_refused_and_says_that_the_server_is_read_only() {
    let served = served().await;
    let mut kv = served.kv().await;
    let put = PutRequest { key: "/p/web/routes/a".into(), value: "x".into(), ..PutRequest::default() };
    let delete = DeleteRangeRequest { key: "/p/web/routes/a".into(), ..DeleteRangeRequest::default() };
    let operation = |request| RequestOp { request: Some(request) };
    let in_success =
        TxnRequest { success: vec![operation(Operation::RequestPut(put.clone()))], ..Default::default() };
    let in_failure = TxnRequest {
        failure: vec![operation(Operation::RequestDeleteRange(delete.clone()))],
        ..Default::default()
    };
    let refusals = [
        kv.put(put).await.unwrap_err(),
        kv.delete_range(delete).await.unwrap_err(),
        kv.compact(CompactionRequest { revision: 1, physical: false }).await.unwrap_err(),
        kv.txn(in_success).await.unwrap_err(),
        kv.txn(in_failure).await.unwrap_err(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.code(), Code::FailedPrecondition);
        assert!(refusal.message().contains("read-only"), "{refusal}");
    }
    assert_eq!(served.list("/p/web/").await.unwrap().count, 4);
}

fn compare(key: &str, target: CompareTarget, result: CompareResult, operand: TargetUnion) -> Compare {
    Compare {
        key: key.to_owned().into(),
        target: target.into(),
        result: result.into(),
        target_union: Some(operand),
        range_end: Bytes::new(),
    }
}

#[tokio::test]
async fn a_reading_transaction_compares_and_answers_the_branch() {
    let served = served().await;
    let mut kv = served.kv().await;
    let revision = served.list("/p/web/").await.unwrap().kvs[1].mod_revision;
    let b = "/p/web/routes/b";
    let cases = [
        (compare(b, CompareTarget::Version, CompareResult::Equal, TargetUnion::Version(3)), true),
        (compare(b, CompareTarget::Version, CompareResult::Greater, TargetUnion::Version(3)), false),
        (compare(b, CompareTarget::Mod, CompareResult::Equal, TargetUnion::ModRevision(revision)), true),
        (compare(b, CompareTarget::Mod, CompareResult::Less, TargetUnion::ModRevision(revision)), false),
        (compare(b, CompareTarget::Create, CompareResult::NotEqual, TargetUnion::CreateRevision(0)), true),
        (compare(b, CompareTarget::Value, CompareResult::Equal, TargetUnion::Value("0".into())), true),
        (compare(b, CompareTarget::Lease, CompareResult::Equal, TargetUnion::Lease(0)), true),
        (
            compare(
                "/p/web/none",
                CompareTarget::Create,
                CompareResult::Equal,
                TargetUnion::CreateRevision(0),
            ),
            true,
        ),
        (
            compare(
                "/p/web/none",
                CompareTarget::Value,
                CompareResult::NotEqual,
                TargetUnion::Value("x".into()),
            ),
            false,
        ),
        (
            Compare {
                range_end: wire::end_of("/p/web/"),
                ..compare("/p/web/", CompareTarget::Version, CompareResult::Greater, TargetUnion::Version(0))
            },
            true,
        ),
        (
            Compare {
                range_end: wire::end_of("/p/web/"),
                ..compare("/p/web/", CompareTarget::Version, CompareResult::Equal, TargetUnion::Version(1))
            },
            false,
        ),
    ];
    let read = |prefix: &str| RequestOp { request: Some(Operation::RequestRange(under(prefix))) };
    for (compare, holds) in cases {
        let request = TxnRequest {
            compare: vec![compare.clone()],
            success: vec![read("/p/web/"), read("/p/web/routes/a")],
            failure: vec![read("/p/webinar/")],
        };
        let response = kv.txn(request).await.unwrap().into_inner();
        assert_eq!(response.succeeded, holds, "{compare:?}");
        let counts: Vec<i64> = response
            .responses
            .iter()
            .map(|response| match response.response.as_ref().unwrap() {
                Outcome::ResponseRange(range) => range.count,
                other @ (Outcome::ResponsePut(_)
                | Outcome::ResponseDeleteRange(_)
                | Outcome::ResponseTxn(_)) => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(counts, if holds { vec![4, 1] } else { vec![1] });
    }
    let unknown = TxnRequest { success: vec![read("/q/")], ..Default::default() };
    assert_eq!(kv.txn(unknown).await.unwrap_err().code(), Code::Unavailable);
    let many = TxnRequest { success: vec![read("/p/web/"); 129], ..Default::default() };
    assert_eq!(kv.txn(many).await.unwrap_err().message(), "etcdserver: too many operations in txn request");
}

/// The lists of a transaction are in memory together.
#[tokio::test]
async fn a_transaction_is_bounded_by_the_bytes_of_its_lists_and_holds_no_other() {
    let served = served().await;
    let mut kv = served.kv().await;
    let read = RequestOp { request: Some(Operation::RequestRange(under("/p/webinar/"))) };
    let inner = TxnRequest { success: vec![read.clone()], ..Default::default() };
    let nested = vec![RequestOp { request: Some(Operation::RequestTxn(inner)) }];
    let nested = TxnRequest { failure: nested, ..Default::default() };
    assert_eq!(kv.txn(nested).await.unwrap_err().code(), Code::Unimplemented);

    let large = "x".repeat(1 << 20);
    served.etcd.publish(&desired("/p/webinar", &[("routes/z", &large)])).await.unwrap();
    let lists = |times: usize| TxnRequest { success: vec![read.clone(); times], ..Default::default() };
    kv.txn(lists(60)).await.unwrap();
    assert_eq!(kv.txn(lists(64)).await.unwrap_err().code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn the_size_of_a_scope_is_that_of_its_list() {
    use prost::Message;
    let served = served().await;
    let mut list = served.list("/p/web/").await.unwrap();
    list.header = None;
    list.count = 0;
    let size = served.etcd.size_of(&scope("/p/web")).unwrap();
    assert_eq!((size.documents, size.bytes), (4, list.encoded_len()));
    assert!(served.etcd.size_of(&scope("/p/none")).is_none());
    assert_eq!(served.etcd.scopes().len(), 2);
    let stats = served.etcd.stats();
    assert_eq!(stats.lists, 1);
    assert!(usize::try_from(stats.list_bytes).unwrap() > size.bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_list_the_same_at_once_share_what_was_encoded() {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    let state = |round: usize| {
        let documents =
            (0..2_000).map(|id| document(&format!("routes/{id:04}"), format!("{round} {id:0>1000}")));
        Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap())
    };
    served.etcd.publish(&state(0)).await.unwrap();
    served.etcd.open();
    for round in 0..3 {
        let published = state(round);
        served.etcd.publish(&published).await.unwrap();
        let before = served.etcd.stats();
        let lists = futures::future::join_all((0..20).map(|_| served.list("/p/web/"))).await;
        for list in lists {
            let list = list.unwrap();
            assert_eq!(list.header.unwrap().revision, served.etcd.revision().get());
            assert_eq!(list.count, 2_000);
            assert!(list.kvs.iter().map(|kv| &kv.value).eq(published.documents().iter().map(|it| &it.value)));
        }
        let after = served.etcd.stats();
        assert_eq!((after.lists - before.lists, after.lists_encoded - before.lists_encoded), (20, 1));
        let bytes = u64::try_from(served.etcd.size_of(published.scope()).unwrap().bytes).unwrap();
        let listed = (after.list_bytes - before.list_bytes) / 20;
        assert!((bytes..bytes + 64).contains(&listed), "{listed} for {bytes}");
    }
}
