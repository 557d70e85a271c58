//! Events and bytes of a change.

use pingsix_sink::{Document, EmbeddedEtcd, Sink as _};
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::request_op::Request;
use pingsix_test_programs::proto::etcdserverpb::{PutRequest, RequestOp, TxnRequest};
use prost::Message as _;
use tonic::transport::Channel;

use crate::routes::{PREFIX, Routes, pair};
use crate::wire::{Served, Watcher, channel, watch_under};

/// Number of publications without a change.
const UNCHANGED_PUBLICATIONS: usize = 200;

/// A watch of Debian's etcd for comparison; absent without etcd.
struct Etcd {
    kv: KvClient<Channel>,
    watcher: Watcher,
    _process: pingsix_test_programs::Etcd,
}

impl Etcd {
    async fn start() -> Option<Self> {
        let process = pingsix_test_programs::Etcd::start().await?;
        let kv = KvClient::new(channel(process.address()).await);
        let first = watch_under(&format!("{PREFIX}/"), 0);
        let mut watcher = Watcher::open_with(channel(process.address()).await, Some(first)).await.unwrap();
        assert!(watcher.next().await.created);
        Some(Self { kv, watcher, _process: process })
    }

    /// Puts all documents at once, and counts the bytes of the response.
    async fn bytes(&mut self, documents: &[Document]) -> usize {
        let put = |document: &Document| {
            let (key, value) = pair(document);
            RequestOp {
                request: Some(Request::RequestPut(PutRequest { key, value, ..PutRequest::default() })),
            }
        };
        let success = documents.iter().map(put).collect();
        self.kv.txn(TxnRequest { success, ..TxnRequest::default() }).await.unwrap();
        let response = self.watcher.next().await;
        assert_eq!(response.events.len(), documents.len());
        response.encoded_len()
    }
}

/// B6: exactly the changed keys, with few bytes besides their values; nothing without a change.
pub(crate) async fn bytes_and_events(size: usize) {
    let mut routes = Routes::new(size);
    let served = Served::start(EmbeddedEtcd::builder()).await;
    served.etcd.publish(&routes.desired()).await.unwrap();
    served.etcd.open();
    let mut watcher = served.watch().await;
    watcher.create(watch_under(&format!("{PREFIX}/"), 0)).await;
    let mut etcd = Etcd::start().await;
    for keys in [1, 10, 100].into_iter().filter(|keys| *keys <= size) {
        let changed = routes.change_many((0..keys).map(|number| number * 3));
        let count = changed.len();
        let values: usize = changed.iter().map(|document| document.value.len()).sum();
        let names: usize = changed.iter().map(|document| pair(document).0.len()).sum();
        served.etcd.publish(&routes.desired()).await.unwrap();
        let response = watcher.next().await;
        let each = |bytes: usize| format!("{:.0}", (bytes - values) as f64 / count as f64);
        let theirs = match &mut etcd {
            Some(etcd) => each(etcd.bytes(&changed).await),
            None => "?".to_owned(),
        };
        println!(
            "| B6 | {size} | events of {count} keys that change; bytes beyond a value, embedded / etcd / its key alone | {}; {} / {theirs} / {} | | {count}; <= 64 beyond key and value |",
            response.events.len(),
            each(response.encoded_len()),
            names / count,
        );
    }
    for _ in 0..UNCHANGED_PUBLICATIONS {
        served.etcd.publish(&routes.unshared()).await.unwrap();
    }
    let before = served.etcd.stats().watch_events;
    watcher.settle().await;
    println!(
        "| B6 | {size} | events of {UNCHANGED_PUBLICATIONS} publications of the same, made anew | {} | | 0 |",
        served.etcd.stats().watch_events - before
    );
}
