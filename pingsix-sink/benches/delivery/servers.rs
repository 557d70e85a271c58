//! The embedded server and Debian's etcd, each with the same keys and a PingSIX that reads them.

use pingsix_sink::{Document, EmbeddedEtcd, Sink as _};
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::request_op::Request;
use pingsix_test_programs::proto::etcdserverpb::{PutRequest, RequestOp, TxnRequest};
use tonic::transport::Channel;

use crate::pingsix::PingSix;
use crate::routes::{Routes, pair};
use crate::wire::{Served, channel};

/// Operations of one etcd transaction.
const OPERATIONS_PER_TRANSACTION: usize = 100;

pub(crate) struct Servers {
    pub(crate) embedded: Embedded,
    pub(crate) etcd: Etcd,
}

/// Publications to the embedded server.
pub(crate) struct Embedded {
    pub(crate) routes: Routes,
    pub(crate) served: Served,
    pub(crate) pingsix: PingSix,
}

/// Puts into etcd, key by key.
pub(crate) struct Etcd {
    pub(crate) routes: Routes,
    pub(crate) pingsix: PingSix,
    kv: KvClient<Channel>,
    _process: pingsix_test_programs::Etcd,
}

impl Servers {
    /// Starts both; `None`, with a message, if a program is missing.
    pub(crate) async fn start(size: usize) -> Option<Self> {
        let binary = pingsix_test_programs::pingsix()?;
        let process = pingsix_test_programs::Etcd::start().await?;
        let served = Served::start(EmbeddedEtcd::builder()).await;
        let routes = Routes::new(size);
        let last = served.etcd.publish(&routes.desired()).await.unwrap().revision.get();
        served.etcd.open();
        let pingsix = PingSix::start(&binary, &format!("http://{}", served.address));
        pingsix.published(last).await;
        let embedded = Embedded { routes, served, pingsix };

        let routes = Routes::new(size);
        let mut kv = KvClient::new(channel(process.address()).await);
        let mut last = 0;
        for pairs in routes.pairs().chunks(OPERATIONS_PER_TRANSACTION) {
            let success =
                pairs.iter().cloned().map(|pair| RequestOp { request: Some(Request::RequestPut(put(pair))) });
            let request = TxnRequest { success: success.collect(), ..TxnRequest::default() };
            last = kv.txn(request).await.unwrap().into_inner().header.unwrap().revision;
        }
        let pingsix = PingSix::start(&binary, &process.url());
        pingsix.published(last).await;
        let etcd = Etcd { routes, pingsix, kv, _process: process };
        Some(Self { embedded, etcd })
    }

    pub(crate) fn size(&self) -> usize {
        self.etcd.routes.count()
    }
}

impl Embedded {
    /// Changes one route, and returns the revision.
    pub(crate) async fn change(&mut self, number: usize) -> i64 {
        self.change_all([number]).await
    }

    /// Changes routes in one publication, and returns the revision.
    pub(crate) async fn change_all(&mut self, numbers: impl IntoIterator<Item = usize>) -> i64 {
        for number in numbers {
            self.routes.change(number);
        }
        self.served.etcd.publish(&self.routes.desired()).await.unwrap().revision.get()
    }
}

impl Etcd {
    /// Changes one route, and returns the revision.
    pub(crate) async fn change(&mut self, number: usize) -> i64 {
        let document: Document = self.routes.change(number);
        self.kv.put(put(pair(&document))).await.unwrap().into_inner().header.unwrap().revision
    }
}

fn put((key, value): (bytes::Bytes, bytes::Bytes)) -> PutRequest {
    PutRequest { key, value, ..PutRequest::default() }
}
