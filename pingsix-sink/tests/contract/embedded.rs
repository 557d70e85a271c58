//! The embedded server: its target is itself.

use pingsix_sink::contract::{Ability, Contents, TestTarget};
use pingsix_sink::{EmbeddedEtcd, Scope};

use crate::target::{contents, replay};
use crate::wire::{Served, Watcher, under, watch_under};

pub(crate) struct Embedded {
    served: Served,
    /// The revision before the first publication, from which watches start.
    start: i64,
}

impl TestTarget for Embedded {
    type Sink = EmbeddedEtcd;

    const MISSING: &'static [(Ability, &'static str)] = &[
        (Ability::IsPersistent, "the embedded server is the target, and begins empty and closed"),
        (Ability::HasOtherWriters, "the embedded server refuses writes"),
        (Ability::CanFail, "the embedded server publishes in its own memory"),
        (Ability::LosesResponses, "the embedded server publishes in its own memory"),
        (Ability::CanStall, "the embedded server waits for no reader"),
    ];

    /// Responses are so small that a publication needs several.
    async fn start() -> Option<Self> {
        let served = Served::start(EmbeddedEtcd::builder().response_limit(1_024)).await;
        served.etcd.open();
        let start = served.etcd.revision().get();
        Some(Self { served, start })
    }

    async fn open(&self) -> EmbeddedEtcd {
        self.served.etcd.clone()
    }

    async fn read(&self, scope: &Scope) -> Contents {
        let list = self.served.kv().await.range(under(scope.key_prefix())).await.unwrap().into_inner();
        contents(&list, scope)
    }

    async fn states(&self, scope: &Scope) -> Vec<Contents> {
        let request = watch_under(scope.key_prefix(), self.start + 1);
        let channel = self.served.channel().await;
        let mut watcher = Watcher::open_with(channel, Some(request)).await.unwrap();
        watcher.ask_progress().await;
        replay(&mut watcher, scope, |response| response.watch_id == -1).await
    }
}
