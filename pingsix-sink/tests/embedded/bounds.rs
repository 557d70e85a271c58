//! Limits of one client's use of the server.

use std::time::{Duration, Instant};

use crate::wire::{Served, WAIT_TIMEOUT, Watcher, under, watch_under};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use pingsix_sink::contract::documents::desired;
use pingsix_sink::embedded::{Builder, Stats};
use pingsix_sink::{EmbeddedEtcd, Sink};
use pingsix_test_programs::proto::etcdserverpb::request_op::Request as Operation;
use pingsix_test_programs::proto::etcdserverpb::{
    Compare, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse, WatchCreateRequest,
};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

/// The limit of unread bytes per connection.
const UNREAD_BYTES_PER_CONNECTION: u64 = 16 << 20;

async fn served(builder: Builder, value: &str) -> Served {
    let served = Served::start(builder).await;
    let documents = [("routes/a", value), ("routes/b", value), ("routes/c", value)];
    served.etcd.publish(&desired("/p/web", &documents)).await.unwrap();
    served.etcd.open();
    served
}

/// A connection whose client receives so many bytes of each response before it reads.
async fn slow_channel(served: &Served, window: u32) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{}", served.address)).unwrap();
    endpoint.initial_stream_window_size(window).connect().await.unwrap()
}

/// Sends a request, and returns its unread response.
async fn send_unread<Q, A>(channel: Channel, method: &'static str, request: Q) -> Result<Streaming<A>, Status>
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let mut client = tonic::client::Grpc::new(channel).max_decoding_message_size(64 << 20);
    client.ready().await.map_err(|_| Status::unavailable("the connection is closed"))?;
    let codec = tonic_prost::ProstCodec::<Q, A>::default();
    let path = PathAndQuery::from_static(method);
    Ok(client.server_streaming(Request::new(request), path, codec).await?.into_inner())
}

const RANGE: &str = "/etcdserverpb.KV/Range";
const TXN: &str = "/etcdserverpb.KV/Txn";

/// A list that is encoded for each client.
fn limited_list() -> RangeRequest {
    RangeRequest { limit: 1_000, ..under("/p/web/") }
}

fn txn() -> TxnRequest {
    let read = RequestOp { request: Some(Operation::RequestRange(under("/p/web/"))) };
    TxnRequest { success: vec![read], ..TxnRequest::default() }
}

/// Waits until the counters satisfy the condition.
async fn until(served: &Served, reached: impl Fn(&Stats) -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !reached(&served.etcd.stats()) {
        assert!(Instant::now() < deadline, "{:?}", served.etcd.stats());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Lets a client request three megabytes twenty times without reading.
async fn request_without_reading<Q, A>(method: &'static str, request: Q)
where
    Q: prost::Message + Clone + 'static,
    A: prost::Message + Default + 'static,
{
    const REQUESTS: usize = 20;
    let served = served(EmbeddedEtcd::builder(), &"x".repeat(1 << 20)).await;
    let channel = slow_channel(&served, 65_535).await;
    let mut asking: FuturesUnordered<_> =
        (0..REQUESTS).map(|_| send_unread::<Q, A>(channel.clone(), method, request.clone())).collect();
    let mut unread = Vec::new();
    let filling = async {
        while let Some(answer) = asking.next().await {
            unread.push(answer.unwrap());
        }
    };
    // The absence of a response has no event to wait for.
    assert!(
        tokio::time::timeout(Duration::from_secs(2), filling).await.is_err(),
        "{:?}",
        served.etcd.stats()
    );
    assert!((1..=5).contains(&unread.len()), "{} answers are unread", unread.len());
    assert!(
        served.etcd.stats().answer_bytes_unread <= UNREAD_BYTES_PER_CONNECTION,
        "{:?}",
        served.etcd.stats()
    );
    // Other clients are not affected.
    assert_eq!(served.list("/p/web/").await.unwrap().count, 3);
    assert_eq!(served.kv().await.txn(txn()).await.unwrap().get_ref().responses.len(), 1);

    // A client that reads receives all responses.
    let mut read = 0;
    let reading = async {
        loop {
            while let Some(mut answer) = unread.pop() {
                assert!(answer.message().await.unwrap().is_some());
                read += 1;
            }
            let Some(answer) = asking.next().await else { break };
            unread.push(answer.unwrap());
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, reading).await.expect("each has its turn");
    assert_eq!(read, REQUESTS);
    until(&served, |stats| stats.answer_bytes_unread == 0).await;
}

#[tokio::test]
async fn lists_that_are_not_read_are_made_as_far_as_there_is_room_for_them() {
    request_without_reading::<_, RangeResponse>(RANGE, limited_list()).await;
}

#[tokio::test]
async fn lists_that_are_shared_are_too() {
    request_without_reading::<_, RangeResponse>(RANGE, under("/p/web/")).await;
}

#[tokio::test]
async fn transactions_are_too() {
    request_without_reading::<_, TxnResponse>(TXN, txn()).await;
}

#[tokio::test]
async fn a_client_that_leaves_a_response_unread_is_closed() {
    const TIMEOUT: Duration = Duration::from_millis(500);
    let builder = EmbeddedEtcd::builder().stall_timeout(TIMEOUT);
    let served = served(builder, &"x".repeat(20_000)).await;
    for (place, method) in [RANGE, TXN].into_iter().enumerate() {
        let (channel, from) = (slow_channel(&served, 1_024).await, Instant::now());
        let unread = if method == RANGE {
            send_unread::<_, RangeResponse>(channel, method, under("/p/web/")).await.map(keep_alive)
        } else {
            send_unread::<_, TxnResponse>(channel, method, txn()).await.map(keep_alive)
        };
        let unread = unread.unwrap();
        until(&served, |stats| stats.streams_stalled == place as u64 + 1 && stats.connections == 0).await;
        assert!(from.elapsed() >= TIMEOUT);
        drop(unread);
    }
    assert_eq!(served.etcd.stats().answer_bytes_unread, 0);
    // A client that reads may wait arbitrarily long before its next request.
    let mut kv = served.kv().await;
    for _ in 0..2 {
        assert_eq!(kv.range(under("/p/web/")).await.unwrap().get_ref().count, 3);
        tokio::time::sleep(TIMEOUT * 2).await;
    }
    assert_eq!(served.etcd.stats().streams_stalled, 2);
}

fn keep_alive<T: Send + 'static>(unread: Streaming<T>) -> Box<dyn std::any::Any + Send> {
    Box::new(unread)
}

#[tokio::test]
async fn an_overlong_key_is_refused_as_a_request_that_is_too_large() {
    let served = served(EmbeddedEtcd::builder(), "0").await;
    let mut kv = served.kv().await;
    let key = |length: usize| Bytes::from(format!("/p/web/{}", "x".repeat(length - "/p/web/".len())));
    let end = Bytes::from_static(b"/p/web0");
    let range = |key: Bytes, range_end: Bytes| RangeRequest { key, range_end, ..RangeRequest::default() };
    let (longest, longer) = (key(4_096), key(4_097));
    assert_eq!(kv.range(range(longest.clone(), end.clone())).await.unwrap().get_ref().count, 0);
    let long = [range(longer.clone(), end), range(Bytes::from_static(b"/p/web/"), longer.clone())];
    let mut refusals = Vec::new();
    for request in long {
        refusals.push(kv.range(request.clone()).await.unwrap_err());
        let success = vec![RequestOp { request: Some(Operation::RequestRange(request)) }];
        refusals.push(kv.txn(TxnRequest { success, ..TxnRequest::default() }).await.unwrap_err());
    }
    let compare = vec![Compare { key: longer.clone(), ..Compare::default() }];
    refusals.push(kv.txn(TxnRequest { compare, ..TxnRequest::default() }).await.unwrap_err());
    for refusal in refusals {
        let output = (refusal.code(), refusal.message());
        assert_eq!(output, (Code::InvalidArgument, "etcdserver: request is too large"));
    }
    let mut watcher = served.watch().await;
    let mut create = watch_under("/p/web/", 0);
    create.key = longer;
    let refused = watcher.create(create.clone()).await;
    assert_eq!((refused.canceled, &*refused.cancel_reason), (true, "etcdserver: request is too large"));
    create.key = longest;
    assert!(!watcher.create(create).await.canceled);
}

#[tokio::test]
async fn a_connection_has_so_many_watches_on_all_of_its_streams() {
    let served = served(EmbeddedEtcd::builder(), "0").await;
    let channel = served.channel().await;
    let mut streams = Vec::new();
    for stream in 0..2 {
        let mut watcher = Watcher::open(channel.clone()).await.unwrap();
        for watch in 0..128 {
            let created = watcher.create(watch_under("/p/web/", 0)).await;
            assert!(!created.canceled, "{stream} {watch}: {}", created.cancel_reason);
        }
        streams.push(watcher);
    }
    let refused = streams[0].create(watch_under("/p/web/", 0)).await;
    assert_eq!((refused.canceled, &*refused.cancel_reason), (true, "too many watches"));
    let mut other = served.watch().await;
    assert!(!other.create(watch_under("/p/web/", 0)).await.canceled, "another connection has its own");
    streams[1].cancel(7).await;
    assert!(streams[1].next().await.canceled);
    assert!(!streams[0].create(watch_under("/p/web/", 0)).await.canceled);
    drop(streams);
    until(&served, |stats| stats.watches == 1).await;
}

/// The limit of all unread bytes in the tests below, and the size of one response there.
const UNREAD_BYTES: u64 = 8 << 20;
const VALUE_LEN: usize = 200_000;

/// Publishes a large document with new content.
async fn publish_large(served: &Served, round: usize) {
    let value = format!("{round:0>3}{}", "x".repeat(VALUE_LEN - 3));
    served.etcd.publish(&desired("/p/web", &[("routes/a", &value)])).await.unwrap();
}

/// Waits until the remaining connections are within the limit, and some read.
async fn wait_for_closed_connections(served: &Served, reading: u64) {
    let most = UNREAD_BYTES / VALUE_LEN as u64 + reading;
    until(served, |stats| stats.connections <= most && stats.answer_bytes_unread <= UNREAD_BYTES).await;
}

/// A watch with previous values of a range that no other watch has.
fn watch_with_previous(number: u64) -> WatchCreateRequest {
    let range_end = format!("/p/web/s{number}").into();
    WatchCreateRequest { prev_kv: true, range_end, ..watch_under("/p/web/", 0) }
}

/// The response of a watch of a range of its own is encoded for that watch alone.
#[tokio::test]
async fn the_slowest_of_a_hundred_stalled_watches_with_prev_kv_are_closed() {
    const WATCHES: u64 = 100;
    let served = served(EmbeddedEtcd::builder().unread_limit(8 << 20), "0").await;
    let mut stalled = Vec::new();
    for number in 0..WATCHES {
        let mut watcher = Watcher::open(slow_channel(&served, 1_024).await).await.unwrap();
        assert!(!watcher.create(watch_with_previous(number)).await.canceled);
        stalled.push(watcher);
    }
    publish_large(&served, 0).await;
    wait_for_closed_connections(&served, 0).await;
    let evicted = served.etcd.stats().connections_evicted;
    assert!(evicted >= WATCHES - UNREAD_BYTES / VALUE_LEN as u64, "{evicted}");

    // A client that reads receives every change, whatever others do.
    let mut reading_watch = served.watch().await;
    reading_watch.create(watch_with_previous(WATCHES)).await;
    for round in 1..5 {
        publish_large(&served, round).await;
        let response = reading_watch.next().await;
        assert_eq!(response.events[0].prev_kv.as_ref().unwrap().value.len(), VALUE_LEN);
        assert!(served.etcd.stats().answer_bytes_unread <= UNREAD_BYTES, "{:?}", served.etcd.stats());
    }
    wait_for_closed_connections(&served, 1).await;
    drop(stalled);
    until(&served, |stats| stats.answer_bytes_unread == 0).await;
}

/// Clients share the bytes of one list, and lists of different states share none.
#[tokio::test]
async fn the_slowest_of_three_hundred_stalled_lists_are_closed() {
    const LISTS: usize = 300;
    let served = served(EmbeddedEtcd::builder().unread_limit(8 << 20), "0").await;
    let mut stalled = Vec::new();
    for round in 0..LISTS {
        publish_large(&served, round).await;
        let channel = slow_channel(&served, 1_024).await;
        stalled.push(send_unread::<_, RangeResponse>(channel, RANGE, under("/p/web/")).await.unwrap());
        assert!(served.etcd.stats().answer_bytes_unread <= UNREAD_BYTES, "{:?}", served.etcd.stats());
        assert_eq!(served.list("/p/web/").await.unwrap().count, 1, "a client that reads gets its list");
    }
    wait_for_closed_connections(&served, 1).await;
    let evicted = served.etcd.stats().connections_evicted;
    assert!(evicted >= LISTS as u64 - UNREAD_BYTES / VALUE_LEN as u64 - 1, "{evicted}");
    drop(stalled);
    until(&served, |stats| stats.answer_bytes_unread == 0).await;
}
