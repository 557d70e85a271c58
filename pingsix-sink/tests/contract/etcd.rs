//! The sink for an external etcd, on a real one behind a relay with injected failures.

use std::time::Duration;

use pingsix_sink::contract::{Ability, Contents, TestTarget};
use pingsix_sink::etcd::Builder;
use pingsix_sink::{EtcdSink, Scope};
use pingsix_test_programs::Signal;
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::{DeleteRangeRequest, PutRequest, RangeRequest};
use tonic::transport::Channel;

use crate::relay::{Failure, Relay};
use crate::target::{contents, replay};
use crate::wire::{Watcher, channel, under, watch_under};

pub(crate) struct Etcd {
    server: pingsix_test_programs::Etcd,
    channel: Channel,
    relay: Relay,
}

impl Etcd {
    /// Options with the smallest transactions: one new or deleted document, or two changed ones.
    pub(crate) fn builder(&self) -> Builder {
        let sink = EtcdSink::builder([self.relay.address.to_string()]).max_txn_ops(3);
        // Long enough for an etcd that syncs its disk beside other tests.
        sink.timeout(Duration::from_secs(5))
    }
}

impl TestTarget for Etcd {
    type Sink = EtcdSink;

    const MISSING: &'static [(Ability, &'static str)] = &[];

    async fn start() -> Option<Self> {
        let server = pingsix_test_programs::Etcd::start().await?;
        let channel = channel(server.address()).await;
        let relay = Relay::start(channel.clone()).await;
        Some(Self { server, channel, relay })
    }

    async fn open(&self) -> EtcdSink {
        self.builder().build().unwrap()
    }

    async fn read(&self, scope: &Scope) -> Contents {
        let list = KvClient::new(self.channel.clone()).range(under(scope.key_prefix())).await;
        contents(&list.unwrap().into_inner(), scope)
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        // Every transaction puts the guard.
        let guard = RangeRequest {
            key: format!("{scope}/.pingsix_graph_revision").into(),
            ..RangeRequest::default()
        };
        let guard = KvClient::new(self.channel.clone()).range(guard).await.unwrap().into_inner();
        let Some(guard) = guard.kvs.first() else { return vec![Contents::new()] };
        let request = watch_under(scope.key_prefix(), 1);
        let mut watcher = Watcher::open_with(self.channel.clone(), Some(request)).await.unwrap();
        replay(&mut watcher, scope, |response| {
            response.events.iter().any(|event| event.kv.as_ref().unwrap().mod_revision >= guard.mod_revision)
        })
        .await
    }

    async fn write_foreign(&self, scope: &Scope, key: &str, value: Option<&str>) {
        let (mut kv, key) = (KvClient::new(self.channel.clone()), format!("{scope}/{key}").into());
        match value {
            Some(value) => {
                let value = value.to_owned().into();
                kv.put(PutRequest { key, value, ..PutRequest::default() }).await.unwrap();
            }
            None => {
                kv.delete_range(DeleteRangeRequest { key, ..DeleteRangeRequest::default() }).await.unwrap();
            }
        }
    }

    fn fail_after(&self, writes: Option<usize>) {
        self.relay.fail_after(writes.map(|writes| (writes, Failure::Request)));
    }

    fn lose_responses_after(&self, writes: Option<usize>) {
        self.relay.fail_after(writes.map(|writes| (writes, Failure::Response)));
    }

    fn stall(&self, is_stalled: bool) {
        self.server.signal(if is_stalled { Signal::Pause } else { Signal::Continue });
    }
}

impl Drop for Etcd {
    /// A paused process would not end.
    fn drop(&mut self) {
        self.server.signal(Signal::Continue);
    }
}
