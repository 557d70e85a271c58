//! An etcd, a relay before it, and another writer.

use std::collections::BTreeMap;
use std::time::Duration;

use pingsix_sink::etcd::Builder;
use pingsix_sink::{Desired, DocumentSet, EtcdSink, Published, Scope, Sink as _, SinkError};
use pingsix_test_programs::Etcd;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeResponse};
use pingsix_test_programs::proto::mvccpb::KeyValue;
use tonic::transport::Channel;

use crate::relay::Relay;
use crate::wire::{channel, under};
use pingsix_sink::contract::documents::{document, scope};

/// Timeout of all waits, longer than any of them takes.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct EtcdTest {
    pub(crate) etcd: Etcd,
    pub(crate) relay: Relay,
    channel: Channel,
}

impl EtcdTest {
    pub(crate) async fn start() -> Option<Self> {
        let etcd = Etcd::start().await?;
        let channel = channel(etcd.address()).await;
        let relay = Relay::start(channel.clone()).await;
        Some(Self { etcd, relay, channel })
    }

    /// A sink that goes through the relay.
    pub(crate) fn sink(&self) -> EtcdSink {
        self.builder().build().unwrap()
    }

    /// The options of [`sink`](Self::sink).
    pub(crate) fn builder(&self) -> Builder {
        EtcdSink::builder([self.relay.address.to_string()]).timeout(Duration::from_secs(2))
    }

    pub(crate) fn kv(&self) -> KvClient<Channel> {
        KvClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    pub(crate) async fn list(&self, scope: &Scope) -> RangeResponse {
        self.kv().range(under(scope.key_prefix())).await.unwrap().into_inner()
    }

    /// The keys of a scope without those whose last segment starts with a dot.
    pub(crate) async fn contents(&self, scope: &Scope) -> BTreeMap<String, String> {
        contents(&self.list(scope).await)
    }

    pub(crate) async fn revision(&self) -> i64 {
        self.list(&scope("/nothing")).await.header.unwrap().revision
    }

    pub(crate) async fn put(&self, key: &str, value: &str) {
        let (key, value) = (key.to_owned().into(), value.to_owned().into());
        self.kv().put(PutRequest { key, value, ..PutRequest::default() }).await.unwrap();
    }

    pub(crate) async fn delete(&self, key: &str) {
        let key = key.to_owned().into();
        self.kv().delete_range(DeleteRangeRequest { key, ..DeleteRangeRequest::default() }).await.unwrap();
    }
}

pub(crate) fn contents(list: &RangeResponse) -> BTreeMap<String, String> {
    let is_shown = |kv: &&KeyValue| !kv.key.rsplit(|byte| *byte == b'/').next().unwrap().starts_with(b".");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    list.kvs.iter().filter(is_shown).map(|kv| (text(&kv.key), text(&kv.value))).collect()
}

/// So many routes of so many bytes each.
pub(crate) fn routes_of(prefix: &str, count: usize, bytes: usize) -> Desired {
    let routes = (0..count).map(|id| document(&format!("routes/r{id:05}"), "x".repeat(bytes)));
    Desired::new(scope(prefix), DocumentSet::new(routes).unwrap())
}

/// Publishes until it succeeds, as a controller does.
pub(crate) async fn publish_until_done(sink: &EtcdSink, desired: &Desired) -> Published {
    let publishing = async {
        loop {
            match sink.publish(desired).await {
                Ok(published) => return published,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, publishing).await.expect("it is published in time")
}

pub(crate) async fn publish_error(sink: &EtcdSink, desired: &Desired) -> SinkError {
    let answer = tokio::time::timeout(WAIT_TIMEOUT, sink.publish(desired)).await.expect("it gives up");
    answer.expect_err("it fails")
}

/// Waits until the sink reports drift of these scopes.
pub(crate) async fn wait_for_drift(sink: &EtcdSink, scopes: &[&str]) {
    let mut drift = sink.drift();
    let is_expected = |drifted: &std::collections::BTreeSet<Scope>| {
        drifted.iter().map(Scope::as_str).eq(scopes.iter().copied())
    };
    let waiting = drift.wait_for(is_expected);
    tokio::time::timeout(WAIT_TIMEOUT, waiting).await.expect("it is noticed in time").unwrap();
}

/// Waits until the watch of a scope is established.
pub(crate) async fn wait_for_watch(etcd_test: &EtcdTest, sink: &EtcdSink, desired: &Desired) {
    let key = format!("{}/probes/p", desired.scope());
    etcd_test.put(&key, "p").await;
    let noticing = async {
        while !sink.foreign(desired.scope()).await.contains(&key) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, noticing).await.expect("it is watched in time");
    etcd_test.delete(&key).await;
    let noticing = async {
        while sink.foreign(desired.scope()).await.contains(&key) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, noticing).await.expect("it is watched in time");
}
