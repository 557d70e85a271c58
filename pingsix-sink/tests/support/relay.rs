//! A proxy of an etcd member with injected failures.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::net::SocketAddr;
use std::sync::Arc;

use futures::future;
use futures::stream::{BoxStream, StreamExt as _};
use parking_lot::Mutex;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::kv_server::{Kv, KvServer};
use pingsix_test_programs::proto::etcdserverpb::watch_client::WatchClient;
use pingsix_test_programs::proto::etcdserverpb::watch_server::{Watch, WatchServer};
use pingsix_test_programs::proto::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    RangeRequest, RangeResponse, TxnRequest, TxnResponse, WatchRequest, WatchResponse,
};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

/// The failure after some more transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A transaction does not arrive.
    Request,
    /// A transaction is committed, and its response is lost.
    Response,
}

/// Forwards requests until an injected failure; dropping it stops it.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
    stopped: CancellationToken,
    _server: DropGuard,
}

#[derive(Debug, Default)]
struct Plan {
    failure: Option<(usize, Failure)>,
    refuses_watches: bool,
    /// The number of forwarded transactions.
    forwarded: usize,
}

impl Relay {
    pub(crate) async fn start(etcd: Channel) -> Self {
        let plan = Arc::new(Mutex::new(Plan::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stopped = CancellationToken::new();
        let member = Member { etcd, plan: Arc::clone(&plan), stopped: stopped.clone() };
        let server = Server::builder()
            .add_service(KvServer::new(member.clone()).max_decoding_message_size(64 << 20))
            .add_service(WatchServer::new(member));
        let serving = server.serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(stopped.clone().run_until_cancelled_owned(serving));
        Self { address, plan, stopped: stopped.clone(), _server: stopped.drop_guard() }
    }

    /// Fails all transactions after so many more.
    pub(crate) fn fail_after(&self, failure: Option<(usize, Failure)>) {
        self.plan.lock().failure = failure;
    }

    /// Refuses new watches, or no longer.
    pub(crate) fn refuse_watches(&self, refuses: bool) {
        self.plan.lock().refuses_watches = refuses;
    }

    /// Ends all watches and answers no further request.
    pub(crate) fn stop(&self) {
        self.stopped.cancel();
    }

    /// The number of transactions that reached etcd.
    pub(crate) fn forwarded(&self) -> usize {
        self.plan.lock().forwarded
    }
}

#[derive(Clone)]
struct Member {
    etcd: Channel,
    plan: Arc<Mutex<Plan>>,
    stopped: CancellationToken,
}

impl Member {
    fn kv(&self) -> Result<KvClient<Channel>, Status> {
        if self.stopped.is_cancelled() {
            return Err(Status::unavailable("the relay was stopped"));
        }
        Ok(KvClient::new(self.etcd.clone()).max_decoding_message_size(64 << 20))
    }
}

#[tonic::async_trait]
impl Kv for Member {
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        self.kv()?.range(request).await
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        self.kv()?.put(request).await
    }

    async fn delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        self.kv()?.delete_range(request).await
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let failure = {
            let mut plan = self.plan.lock();
            match &mut plan.failure {
                Some((0, failure)) => Some(*failure),
                Some((left, _)) => {
                    *left -= 1;
                    None
                }
                None => None,
            }
        };
        if failure != Some(Failure::Request) {
            self.plan.lock().forwarded += 1;
            let answer = self.kv()?.txn(request).await;
            if failure.is_none() {
                return answer;
            }
        }
        Err(Status::unavailable("the relay was told to fail"))
    }

    async fn compact(
        &self,
        request: Request<CompactionRequest>,
    ) -> Result<Response<CompactionResponse>, Status> {
        self.kv()?.compact(request).await
    }
}

#[tonic::async_trait]
impl Watch for Member {
    type WatchStream = BoxStream<'static, Result<WatchResponse, Status>>;

    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.kv()?;
        if self.plan.lock().refuses_watches {
            return Err(Status::unavailable("the relay was told to refuse watches"));
        }
        let request = request.map(|requests| requests.filter_map(|request| future::ready(request.ok())));
        let answer = WatchClient::new(self.etcd.clone()).watch(request).await?;
        Ok(answer.map(|stream| stream.take_until(self.stopped.clone().cancelled_owned()).boxed()))
    }
}
