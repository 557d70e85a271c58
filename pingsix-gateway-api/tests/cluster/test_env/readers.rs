//! A served feed, and clients that read it as PingSIX does and detect violations.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use pingsix_sink::EmbeddedEtcd;
use pingsix_test_programs::free_address;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::watch_client::WatchClient;
use pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion;
use pingsix_test_programs::proto::etcdserverpb::{
    RangeRequest, RangeResponse, WatchCreateRequest, WatchRequest,
};
use pingsix_test_programs::proto::mvccpb::event::EventType;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// A feed on a port of the loopback interface.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Served {
    pub(crate) async fn start(etcd: &EmbeddedEtcd, address: Option<SocketAddr>) -> Self {
        let address = address.unwrap_or_else(free_address);
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let (server, stop) = (etcd.clone(), shutdown.clone());
        let task = tokio::spawn(async move { server.serve(listener, stop).await.unwrap() });
        Self { address, shutdown, task }
    }

    /// Ends it, with all its connections.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
    }
}

fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

fn below(prefix: &str) -> (Bytes, Bytes) {
    (Bytes::from(format!("{prefix}/")), Bytes::from(format!("{prefix}0")))
}

/// All keys below a prefix.
pub(crate) async fn list(address: SocketAddr, prefix: &str) -> Result<RangeResponse, Status> {
    let (key, range_end) = below(prefix);
    let request = RangeRequest { key, range_end, ..RangeRequest::default() };
    Ok(KvClient::new(channel(address)).range(request).await?.into_inner())
}

/// Two readers of a prefix with a permanent document: one watches and lists again after each end, and one lists
/// repeatedly.
pub(crate) struct FeedObservers {
    seen: Arc<Observations>,
    is_over: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Observations {
    errors: parking_lot::Mutex<Vec<String>>,
    lists: AtomicUsize,
    watches: AtomicUsize,
    events: AtomicUsize,
}

impl Observations {
    fn failure(&self, what: String) {
        self.errors.lock().push(what);
    }

    /// Checks a list: the permanent document is present, and the revision does not decrease.
    fn list(&self, list: &RangeResponse, stays: &str, revision: &mut i64) {
        self.lists.fetch_add(1, Ordering::Relaxed);
        let header = list.header.as_ref().map_or(0, |header| header.revision);
        if header < *revision {
            self.failure(format!("a list is of revision {header}, and one before was of {revision}"));
        }
        *revision = header;
        if list.kvs.iter().any(|kv| kv.mod_revision > header) {
            self.failure(format!("a list of revision {header} has something newer"));
        }
        if !list.kvs.iter().any(|kv| String::from_utf8_lossy(&kv.value).contains(stays)) {
            self.failure(format!("{stays} is not among the {} documents of a list", list.kvs.len()));
        }
    }
}

impl FeedObservers {
    /// `stays` is part of a document that must not disappear.
    pub(crate) fn start(address: SocketAddr, prefix: &str, stays: &str) -> Self {
        let seen = Arc::new(Observations::default());
        let is_over = Arc::new(AtomicBool::new(false));
        let tasks = vec![
            tokio::spawn(lister(address, prefix.to_owned(), stays.to_owned(), seen.clone(), is_over.clone())),
            tokio::spawn(watcher(address, prefix.to_owned(), stays.to_owned(), seen.clone())),
        ];
        Self { seen, is_over, tasks }
    }

    /// The number of lists, of watches, and of observed changes.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let read = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (read(&self.seen.lists), read(&self.seen.watches), read(&self.seen.events))
    }

    /// The errors.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.seen.errors.lock().clone()
    }
}

impl Drop for FeedObservers {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn lister(
    address: SocketAddr,
    prefix: String,
    stays: String,
    seen: Arc<Observations>,
    is_over: Arc<AtomicBool>,
) {
    let mut revision = 0;
    while !is_over.load(Ordering::Relaxed) {
        // The feed must not answer before the initial lists.
        if let Ok(found) = list(address, &prefix).await {
            seen.list(&found, &stays, &mut revision);
        }
        sleep(Duration::from_millis(30)).await;
    }
}

async fn watcher(address: SocketAddr, prefix: String, stays: String, seen: Arc<Observations>) {
    let mut revision = 0;
    loop {
        if let Ok(found) = list(address, &prefix).await {
            seen.list(&found, &stays, &mut revision);
            // Ids of the documents that must not be deleted.
            let kept: Vec<Bytes> = found
                .kvs
                .iter()
                .filter(|kv| String::from_utf8_lossy(&kv.value).contains(&*stays))
                .map(|kv| kv.key.clone())
                .collect();
            let _ = follow(address, &prefix, &mut revision, &kept, &seen).await;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Watches until the watch ends.
async fn follow(
    address: SocketAddr,
    prefix: &str,
    revision: &mut i64,
    kept: &[Bytes],
    seen: &Observations,
) -> Result<(), Status> {
    let (key, range_end) = below(prefix);
    let create =
        WatchCreateRequest { key, range_end, start_revision: *revision + 1, ..WatchCreateRequest::default() };
    let first = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let requests = futures::stream::iter([first]).chain(futures::stream::pending());
    let mut responses = WatchClient::new(channel(address)).watch(requests).await?.into_inner();
    seen.watches.fetch_add(1, Ordering::Relaxed);
    while let Some(response) = responses.message().await? {
        let header = response.header.as_ref().map_or(0, |header| header.revision);
        if header < *revision {
            seen.failure(format!("a watch is at revision {header}, and was at {revision}"));
        }
        *revision = header;
        for event in &response.events {
            seen.events.fetch_add(1, Ordering::Relaxed);
            let key = event.kv.as_ref().map(|kv| kv.key.clone()).unwrap_or_default();
            if event.r#type() == EventType::Delete && kept.contains(&key) {
                seen.failure(format!("{} is deleted", String::from_utf8_lossy(&key)));
            }
        }
        if response.canceled {
            break;
        }
    }
    Ok(())
}
