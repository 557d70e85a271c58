//! A served instance and clients generated from the same protocol files.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::Builder;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::watch_client::WatchClient;
use pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion;
use pingsix_test_programs::proto::etcdserverpb::{
    RangeRequest, RangeResponse, WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest,
    WatchResponse,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// Timeout of all waits, longer than any of them takes.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A server on an ephemeral port of the loopback interface; dropping it stops it.
pub(crate) struct Served {
    pub(crate) etcd: EmbeddedEtcd,
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
    shutdown: DropGuard,
}

impl Served {
    pub(crate) async fn start(builder: Builder) -> Self {
        Self::serve(builder.start().await.unwrap()).await
    }

    pub(crate) async fn serve(etcd: EmbeddedEtcd) -> Self {
        Self::serve_on(etcd, "127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn serve_on(etcd: EmbeddedEtcd, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = CancellationToken::new();
        let server = etcd.clone();
        let serving = token.clone();
        let task = tokio::spawn(async move { server.serve(listener, serving).await.unwrap() });
        Self { etcd, address, task, shutdown: token.drop_guard() }
    }

    /// Stops serving and returns the server after all connections have ended.
    pub(crate) async fn stop(self) -> EmbeddedEtcd {
        drop(self.shutdown);
        tokio::time::timeout(WAIT_TIMEOUT, self.task).await.expect("the server ends").unwrap();
        self.etcd
    }

    pub(crate) async fn channel(&self) -> Channel {
        channel(self.address).await
    }

    pub(crate) async fn kv(&self) -> KvClient<Channel> {
        KvClient::new(self.channel().await).max_decoding_message_size(64 << 20)
    }

    /// All keys under `prefix`, which ends with a slash.
    pub(crate) async fn list(&self, prefix: &str) -> Result<RangeResponse, Status> {
        Ok(self.kv().await.range(under(prefix)).await?.into_inner())
    }

    pub(crate) async fn watch(&self) -> Watcher {
        Watcher::open(self.channel().await).await.unwrap()
    }
}

/// A connection of a client.
pub(crate) async fn channel(address: SocketAddr) -> Channel {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap()
}

/// A range over all keys that start with `prefix`, as clients make it.
pub(crate) fn under(prefix: &str) -> RangeRequest {
    RangeRequest { key: Bytes::from(prefix.to_owned()), range_end: end_of(prefix), ..RangeRequest::default() }
}

pub(crate) fn end_of(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().unwrap() += 1;
    end.into()
}

pub(crate) fn watch_under(prefix: &str, start_revision: i64) -> WatchCreateRequest {
    WatchCreateRequest {
        key: Bytes::from(prefix.to_owned()),
        range_end: end_of(prefix),
        start_revision,
        ..WatchCreateRequest::default()
    }
}

/// A watch stream.
pub(crate) struct Watcher {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
}

impl Watcher {
    pub(crate) async fn open(channel: Channel) -> Result<Self, Status> {
        Self::open_with(channel, None).await
    }

    /// Opens a stream whose first request precedes the call, because etcd sends no headers before it.
    pub(crate) async fn open_with(
        channel: Channel,
        first: Option<WatchCreateRequest>,
    ) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::channel(16);
        if let Some(first) = first {
            let request_union = Some(RequestUnion::CreateRequest(first));
            requests.send(WatchRequest { request_union }).await.unwrap();
        }
        let mut client = WatchClient::new(channel).max_decoding_message_size(64 << 20);
        let opening = client.watch(ReceiverStream::new(receiver));
        let responses =
            tokio::time::timeout(WAIT_TIMEOUT, opening).await.expect("headers in time")?.into_inner();
        Ok(Self { requests, responses })
    }

    pub(crate) async fn request(&self, request: RequestUnion) {
        assert!(self.try_request(request).await, "the stream goes on");
    }

    /// Whether the stream accepted the request.
    pub(crate) async fn try_request(&self, request: RequestUnion) -> bool {
        self.requests.send(WatchRequest { request_union: Some(request) }).await.is_ok()
    }

    pub(crate) async fn create(&mut self, request: WatchCreateRequest) -> WatchResponse {
        self.request(RequestUnion::CreateRequest(request)).await;
        let created = self.next().await;
        assert!(created.created, "{created:?}");
        created
    }

    pub(crate) async fn cancel(&mut self, watch_id: i64) {
        self.request(RequestUnion::CancelRequest(WatchCancelRequest { watch_id })).await;
    }

    pub(crate) async fn ask_progress(&mut self) {
        self.request(RequestUnion::ProgressRequest(WatchProgressRequest {})).await;
    }

    pub(crate) async fn next(&mut self) -> WatchResponse {
        self.try_next().await.unwrap().expect("the stream goes on")
    }

    pub(crate) async fn try_next(&mut self) -> Result<Option<WatchResponse>, Status> {
        tokio::time::timeout(WAIT_TIMEOUT, self.responses.message()).await.expect("a response in time")
    }

    /// Waits until the server has processed earlier requests, whether it cancelled the watch or not.
    pub(crate) async fn settle_or_cancelled(&mut self) {
        self.ask_progress().await;
        while self.next().await.watch_id != -1 {}
    }

    /// The progress after all publications so far; panics if another response comes first.
    pub(crate) async fn settle(&mut self) -> i64 {
        self.ask_progress().await;
        let response = self.next().await;
        assert_eq!((response.watch_id, response.events.len()), (-1, 0), "{response:?}");
        response.header.unwrap().revision
    }
}

/// `PUT key=value` or `DELETE key`, for each event.
pub(crate) fn events(response: &WatchResponse) -> Vec<String> {
    response
        .events
        .iter()
        .map(|event| {
            let kv = event.kv.as_ref().unwrap();
            let key = String::from_utf8_lossy(&kv.key);
            match event.r#type().as_str_name() {
                "PUT" => format!("PUT {key}={}", String::from_utf8_lossy(&kv.value)),
                kind => format!("{kind} {key}"),
            }
        })
        .collect()
}

/// `key=value` for each pair.
pub(crate) fn pairs(response: &RangeResponse) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    response.kvs.iter().map(|kv| format!("{}={}", text(&kv.key), text(&kv.value))).collect()
}
