//! Servers that do not keep the protocol, and connections that are cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use pingsix_sink::error::SinkErrorSource as _;
use pingsix_sink::etcd::{EtcdError, EtcdReader};
use pingsix_test_programs::proto::etcdserverpb::kv_server::{Kv, KvServer};
use pingsix_test_programs::proto::etcdserverpb::watch_server::{Watch, WatchServer};
use pingsix_test_programs::proto::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, ResponseHeader, TxnRequest, TxnResponse, WatchRequest, WatchResponse,
};
use pingsix_test_programs::proto::mvccpb::{Event, KeyValue};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use crate::reading::{builder, content, next, owned, shown, until, web};

/// A server with scripted answers, the last of which is repeated.
#[derive(Clone, Default)]
struct Scripted {
    lists: Arc<Mutex<Vec<Result<RangeResponse, Status>>>>,
    /// Each watch gets one list of responses, and stays open.
    watches: Arc<Mutex<Vec<Vec<WatchResponse>>>>,
    requests: Arc<Mutex<Vec<RangeRequest>>>,
    /// The time that each list takes.
    delay: Duration,
}

fn pop<T: Clone>(answers: &Mutex<Vec<T>>) -> Option<T> {
    let mut answers = answers.lock();
    if answers.len() > 1 { Some(answers.remove(0)) } else { answers.first().cloned() }
}

impl Scripted {
    async fn start(
        lists: Vec<Result<RangeResponse, Status>>,
        watches: Vec<Vec<WatchResponse>>,
    ) -> (Self, SocketAddr) {
        Self::start_slowly(Duration::ZERO, lists, watches).await
    }

    async fn start_slowly(
        delay: Duration,
        lists: Vec<Result<RangeResponse, Status>>,
        watches: Vec<Vec<WatchResponse>>,
    ) -> (Self, SocketAddr) {
        let scripted = Self {
            lists: Arc::new(Mutex::new(lists)),
            watches: Arc::new(Mutex::new(watches)),
            requests: Arc::default(),
            delay,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::builder()
            .add_service(KvServer::new(scripted.clone()))
            .add_service(WatchServer::new(scripted.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        (scripted, address)
    }
}

#[tonic::async_trait]
impl Kv for Scripted {
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        self.requests.lock().push(request.into_inner());
        tokio::time::sleep(self.delay).await;
        pop(&self.lists).unwrap_or_else(|| Err(Status::unavailable("no answer"))).map(Response::new)
    }

    async fn put(&self, _: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_range(
        &self,
        _: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn txn(&self, _: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn compact(&self, _: Request<CompactionRequest>) -> Result<Response<CompactionResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl Watch for Scripted {
    type WatchStream = BoxStream<'static, Result<WatchResponse, Status>>;

    async fn watch(
        &self,
        _: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let responses = pop(&self.watches).unwrap_or_default();
        Ok(Response::new(stream::iter(responses.into_iter().map(Ok)).chain(stream::pending()).boxed()))
    }
}

fn kv(key: &str, revision: i64) -> KeyValue {
    KeyValue { key: key.to_owned().into(), value: "v".into(), mod_revision: revision, ..KeyValue::default() }
}

fn list(revision: i64, keys: &[&str], more: bool) -> RangeResponse {
    RangeResponse {
        header: Some(ResponseHeader { revision, ..ResponseHeader::default() }),
        kvs: keys.iter().map(|key| kv(key, 1)).collect(),
        more,
        ..RangeResponse::default()
    }
}

fn created() -> WatchResponse {
    WatchResponse { created: true, ..WatchResponse::default() }
}

fn change(kvs: Vec<Option<KeyValue>>) -> WatchResponse {
    let events = kvs.into_iter().map(|kv| Event { kv, ..Event::default() }).collect();
    WatchResponse { events, ..WatchResponse::default() }
}

#[tokio::test]
async fn lists_against_the_protocol_are_refused() {
    for (list, problem) in [
        (RangeResponse::default(), "no revision"),
        (list(-1, &[], false), "no revision"),
        (list(5, &["/s/webinar/a"], false), "outside"),
        (list(5, &["/s/web/a"], true), "incomplete"),
    ] {
        let (_, address) = Scripted::start(vec![Ok(list)], vec![vec![created()]]).await;
        let mut reader = builder(address).reader(web()).unwrap();
        let error = next(&mut reader).await.unwrap_err();
        assert_eq!((error.category(), error.is_retryable()), ("etcd_protocol", true), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
        assert_eq!(reader.content().revision, 0);
    }
}

#[tokio::test]
async fn watches_against_the_protocol_change_nothing() {
    let lists = vec![Ok(list(5, &["/s/web/a"], false))];
    for (response, category) in [
        (change(vec![Some(kv("/s/web/b", 6)), None]), "etcd_protocol"),
        (change(vec![Some(kv("/s/web/b", 6)), Some(kv("/elsewhere", 6))]), "etcd_protocol"),
        (change(vec![Some(kv("/s/web/b", 7)), Some(kv("/s/web/c", 6))]), "etcd_protocol"),
        (
            WatchResponse { canceled: true, cancel_reason: "why not".to_owned(), ..WatchResponse::default() },
            "etcd_unavailable",
        ),
        (
            WatchResponse {
                canceled: true,
                cancel_reason: "rpc error: permission denied".to_owned(),
                ..WatchResponse::default()
            },
            "etcd_permission_denied",
        ),
    ] {
        let good = change(vec![Some(kv("/s/web/good", 6))]);
        let watches = vec![vec![created(), response], vec![created(), good]];
        let (_, address) = Scripted::start(lists.clone(), watches).await;
        let mut reader = builder(address).reader(web()).unwrap();
        content(&mut reader).await;
        let error = next(&mut reader).await.unwrap_err();
        assert_eq!(error.category(), category, "{error}");
        assert_eq!(shown(reader.content()), (5, owned(&[("a", "v")])));
        until(&mut reader, &[("a", "v"), ("good", "v")]).await;
    }
}

#[tokio::test]
async fn a_compacted_watch_is_listed_again_without_an_error() {
    let lists = vec![Ok(list(5, &["/s/web/a"], false)), Ok(list(9, &["/s/web/b"], false))];
    let compacted = WatchResponse { canceled: true, compact_revision: 8, ..WatchResponse::default() };
    let (_, address) = Scripted::start(lists, vec![vec![created(), compacted], vec![created()]]).await;
    let mut reader = builder(address).reader(web()).unwrap();
    assert_eq!(content(&mut reader).await, (5, owned(&[("a", "v")])));
    assert_eq!(content(&mut reader).await, (9, owned(&[("b", "v")])));
}

#[tokio::test]
async fn a_watch_that_is_never_created_is_a_timeout() {
    let (_, address) = Scripted::start(vec![Ok(list(5, &["/s/web/a"], false))], vec![vec![]]).await;
    let mut reader = builder(address).timeout(Duration::from_millis(300)).reader(web()).unwrap();
    content(&mut reader).await;
    assert_eq!(next(&mut reader).await.unwrap_err().category(), "etcd_timeout");
}

#[tokio::test]
async fn a_dropped_wait_loses_nothing() {
    let changes = (6..60).map(|revision| change(vec![Some(kv(&format!("/s/web/{revision}"), revision))]));
    let watch: Vec<_> = std::iter::once(created()).chain(changes).collect();
    let lists = vec![Ok(list(5, &["/s/web/1", "/s/web/2"], false))];
    let (scripted, address) = Scripted::start_slowly(Duration::from_millis(50), lists, vec![watch]).await;
    let mut reader = builder(address).reader(web()).unwrap();
    let all = async {
        while reader.content().revision < 59 {
            // Far too short for most steps.
            let _ = tokio::time::timeout(Duration::from_micros(700), reader.changed()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.expect("each call continues");
    assert_eq!(reader.content().by_key.len(), 56);
    assert_eq!(scripted.requests.lock().len(), 1, "the list was not read twice");
}

/// Waits for the next error in short waits, which other work interrupts.
async fn interrupted_error(reader: &mut EtcdReader) -> EtcdError {
    let error = async {
        loop {
            let wait = Duration::from_millis(20);
            if let Ok(Err(error)) = tokio::time::timeout(wait, reader.changed()).await {
                return error;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), error).await.expect("each call continues")
}

#[tokio::test]
async fn a_pause_goes_on_over_dropped_waits() {
    let mut reader = builder("127.0.0.1:1".parse().unwrap()).reader(web()).unwrap();
    for _ in 0..3 {
        assert_eq!(interrupted_error(&mut reader).await.category(), "etcd_unavailable");
    }
}

/// The response of the server arrives while nothing reads it.
#[tokio::test]
async fn a_caller_may_be_away_for_longer_than_the_timeout() {
    let watch = vec![created(), change(vec![Some(kv("/s/web/b", 6))])];
    let (_, address) = Scripted::start(vec![Ok(list(5, &["/s/web/a"], false))], vec![watch]).await;
    let mut reader = builder(address).timeout(Duration::from_millis(200)).reader(web()).unwrap();
    content(&mut reader).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(content(&mut reader).await, (6, owned(&[("a", "v"), ("b", "v")])));
}

#[tokio::test]
async fn a_watch_that_is_never_created_is_a_timeout_over_dropped_waits() {
    let (_, address) = Scripted::start(vec![Ok(list(5, &["/s/web/a"], false))], vec![vec![]]).await;
    let mut reader = builder(address).timeout(Duration::from_millis(300)).reader(web()).unwrap();
    content(&mut reader).await;
    assert_eq!(interrupted_error(&mut reader).await.category(), "etcd_timeout");
}

#[tokio::test]
async fn noise_in_place_of_a_protocol_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
        loop {
            let Ok((mut connection, _)) = listener.accept().await else { return };
            let noise: Vec<u8> = (0..4096)
                .map(|_| {
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    seed.to_le_bytes()[0]
                })
                .collect();
            let _ = connection.write_all(&noise).await;
        }
    });
    let mut reader = builder(address).reader(web()).unwrap();
    for _ in 0..3 {
        let error = next(&mut reader).await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
    }
}
