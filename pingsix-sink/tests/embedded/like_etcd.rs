//! The same requests to a real etcd and to the embedded server have the same responses. Runs when `etcd` is on the
//! PATH.
//!
//! Revisions differ in value; they are compared as the number of their publication.

use crate::wire::{Served, Watcher, channel, under, watch_under};
use bytes::Bytes;
use pingsix_sink::contract::documents::desired;
use pingsix_sink::embedded::Pace;
use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Sink, Step, plan};
use pingsix_test_programs::Etcd;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::range_request::SortOrder;
use pingsix_test_programs::proto::etcdserverpb::request_op::Request as Operation;
use pingsix_test_programs::proto::etcdserverpb::{
    DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest, WatchCreateRequest, WatchResponse,
};
use pingsix_test_programs::proto::mvccpb::{Event, KeyValue};
use tonic::Status;
use tonic::transport::Channel;

/// One of the two servers, and the revision of each publication on it.
struct ServerUnderTest {
    channel: Channel,
    revisions: Vec<i64>,
}

impl ServerUnderTest {
    /// The number of the publication with this revision; revisions between two publications have none.
    fn number(&self, revision: i64) -> Option<usize> {
        self.revisions.iter().position(|known| *known == revision)
    }

    fn describe(&self, kv: &KeyValue) -> String {
        format!(
            "{}={} v{} created {:?} changed {:?}",
            String::from_utf8_lossy(&kv.key),
            String::from_utf8_lossy(&kv.value),
            kv.version,
            self.number(kv.create_revision),
            self.number(kv.mod_revision),
        )
    }

    async fn range(&self, request: RangeRequest) -> Result<(Vec<String>, i64, bool, Option<usize>), Status> {
        let response = KvClient::new(self.channel.clone()).range(request).await?.into_inner();
        let kvs = response.kvs.iter().map(|kv| self.describe(kv)).collect();
        Ok((kvs, response.count, response.more, self.number(response.header.unwrap().revision)))
    }

    /// The events of a response, in its order.
    fn events(&self, response: &WatchResponse) -> Vec<String> {
        let event = |event: &Event| {
            let kv = self.describe(event.kv.as_ref().unwrap());
            let before = event.prev_kv.as_ref().map(|kv| self.describe(kv));
            format!("{} {kv} before {before:?}", event.r#type().as_str_name())
        };
        response.events.iter().map(event).collect()
    }
}

fn states() -> Vec<Desired> {
    let states: [&[(&str, &str)]; 5] = [
        &[("upstreams/u", "1"), ("routes/a", "z"), ("routes/b", "y")],
        &[("upstreams/u", "2"), ("routes/a", "z"), ("routes/c", "x")],
        &[("upstreams/u", "2"), ("upstreams/w", "5"), ("routes/b", "again"), ("routes/c", "x")],
        &[("upstreams/w", "6"), ("routes/b", "again"), ("routes/c", "xx"), ("services/s", "s")],
        &[("upstreams/w", "6"), ("routes/b", "again"), ("routes/c", "xx"), ("services/s", "t")],
    ];
    states.into_iter().map(|documents| desired("/p/web", documents)).collect()
}

/// Writes a state to etcd in one transaction with the operations of its plan, and returns its revision.
async fn write_state(channel: &Channel, current: &DocumentSet, state: &Desired) -> i64 {
    let steps = plan(current, state.documents());
    let operations = steps.iter().map(|step| {
        let key = Bytes::from(state.scope().full_key(step.key()));
        let request = match step {
            Step::Create(document) | Step::Update(document) => Operation::RequestPut(PutRequest {
                key,
                value: document.value.clone(),
                ..PutRequest::default()
            }),
            Step::Delete { .. } => {
                Operation::RequestDeleteRange(DeleteRangeRequest { key, ..DeleteRangeRequest::default() })
            }
        };
        RequestOp { request: Some(request) }
    });
    let request = TxnRequest { success: operations.collect(), ..TxnRequest::default() };
    let response = KvClient::new(channel.clone()).txn(request).await.unwrap();
    response.into_inner().header.unwrap().revision
}

/// Writes the states to etcd.
async fn write(channel: Channel) -> ServerUnderTest {
    let mut revisions = Vec::new();
    let mut current = DocumentSet::default();
    for state in states() {
        revisions.push(write_state(&channel, &current, &state).await);
        current = state.documents().clone();
    }
    ServerUnderTest { channel, revisions }
}

async fn publish(served: &Served) -> ServerUnderTest {
    let mut revisions = Vec::new();
    served.etcd.publish(&desired("/p/web", &[])).await.unwrap();
    served.etcd.open();
    for state in states() {
        revisions.push(served.etcd.publish(&state).await.unwrap().revision.get());
    }
    ServerUnderTest { channel: served.channel().await, revisions }
}

/// Requests over the keys, with revisions of one side.
fn requests(server: &ServerUnderTest) -> Vec<RangeRequest> {
    let all = || under("/p/web/");
    let mut requests = vec![
        all(),
        under("/p/web/routes/"),
        RangeRequest { key: "/p/web/routes/b".into(), ..RangeRequest::default() },
        RangeRequest { key: "/p/web/routes/none".into(), ..RangeRequest::default() },
        RangeRequest {
            key: "/p/web/routes/c".into(),
            range_end: b"\0"[..].into(),
            ..RangeRequest::default()
        },
        RangeRequest { key: "health".into(), ..RangeRequest::default() },
        RangeRequest::default(),
        RangeRequest { keys_only: true, ..all() },
        RangeRequest { count_only: true, ..all() },
        RangeRequest { count_only: true, limit: 1, ..all() },
        RangeRequest { serializable: true, ..all() },
        RangeRequest { revision: server.revisions[4] + 1_000_000_000_000, ..all() },
    ];
    for limit in 0..6 {
        requests.push(RangeRequest { limit, ..all() });
        requests.push(RangeRequest { limit, sort_order: SortOrder::Ascend.into(), ..all() });
        requests.push(RangeRequest { limit, revision: server.revisions[4], ..all() });
    }
    requests
}

#[tokio::test]
async fn ranges_are_answered_like_etcd_answers_them() {
    let Some(real) = Etcd::start().await else { return };
    let served = Served::start(EmbeddedEtcd::builder()).await;
    let theirs = write(channel(real.address()).await).await;
    let ours = publish(&served).await;

    let pairs: Vec<_> = requests(&theirs).into_iter().zip(requests(&ours)).collect();
    assert!(pairs.len() > 20);
    for (their_request, our_request) in pairs {
        match (theirs.range(their_request).await, ours.range(our_request.clone()).await) {
            (Ok(expected), Ok(answer)) => assert_eq!(answer, expected, "{our_request:?}"),
            (Err(expected), Err(answer)) => {
                assert_eq!(
                    (answer.code(), answer.message()),
                    (expected.code(), expected.message()),
                    "{our_request:?}"
                );
            }
            (expected, answer) => panic!("{our_request:?}: {answer:?} but etcd says {expected:?}"),
        }
    }
}

/// A client that has read the response to the previous publication is told each publication as by etcd.
#[tokio::test]
async fn a_watch_is_told_each_publication_like_etcd_tells_it() {
    let Some(real) = Etcd::start().await else { return };
    let served = Served::start(EmbeddedEtcd::builder().pace(Pace::NONE)).await;
    served.etcd.publish(&desired("/p/web", &[])).await.unwrap();
    served.etcd.open();
    let mut theirs = ServerUnderTest { channel: channel(real.address()).await, revisions: Vec::new() };
    let mut ours = ServerUnderTest { channel: served.channel().await, revisions: Vec::new() };
    let mut watchers = Vec::new();
    for prev_kv in [false, true] {
        for server in [&theirs, &ours] {
            let request = WatchCreateRequest { prev_kv, ..watch_under("/p/web/", 0) };
            let mut watcher = Watcher::open_with(server.channel.clone(), Some(request)).await.unwrap();
            assert!(watcher.next().await.created);
            watchers.push(watcher);
        }
    }
    let mut current = DocumentSet::default();
    for state in states() {
        theirs.revisions.push(write_state(&theirs.channel, &current, &state).await);
        ours.revisions.push(served.etcd.publish(&state).await.unwrap().revision.get());
        current = state.documents().clone();
        for pair in watchers.as_chunks_mut::<2>().0 {
            let [their_watcher, our_watcher] = pair;
            let expected = theirs.events(&their_watcher.next().await);
            assert_eq!(ours.events(&our_watcher.next().await), expected);
        }
    }
}

/// The control responses of a watch stream without revisions.
async fn controls(channel: Channel) -> Vec<String> {
    let with_id = |watch_id| WatchCreateRequest { watch_id, ..watch_under("/p/web/", 0) };
    let mut watcher = Watcher::open_with(channel, Some(with_id(0))).await.unwrap();
    let mut told = Vec::new();
    let mut tell = |response: WatchResponse| {
        told.push(format!(
            "{} created {} canceled {} {:?} compacted {}",
            response.watch_id,
            response.created,
            response.canceled,
            response.cancel_reason,
            response.compact_revision
        ));
    };
    tell(watcher.next().await);
    for id in [0, 7, 7, 0] {
        tell(watcher.create(with_id(id)).await);
    }
    watcher.cancel(1).await;
    tell(watcher.next().await);
    watcher.cancel(99).await;
    watcher.ask_progress().await;
    tell(watcher.next().await);
    tell(watcher.create(with_id(0)).await);
    told
}

#[tokio::test]
async fn a_watch_stream_is_controlled_like_one_of_etcd() {
    let Some(real) = Etcd::start().await else { return };
    let served = Served::start(EmbeddedEtcd::builder()).await;
    write(channel(real.address()).await).await;
    publish(&served).await;
    assert_eq!(controls(served.channel().await).await, controls(channel(real.address()).await).await);
}
