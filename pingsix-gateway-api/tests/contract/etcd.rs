//! The embedded server that PingSIX reads its configuration from.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use pingsix_sink::embedded::{Builder, Stats};
use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink as _};
use pingsix_translate::pingsix::Config;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A served instance; dropping it stops it.
pub(crate) struct Etcd {
    server: EmbeddedEtcd,
    pub(crate) address: SocketAddr,
    _shutdown: DropGuard,
}

impl Etcd {
    /// Serves some scopes, all empty.
    pub(crate) async fn start(scopes: &[String]) -> Self {
        Self::start_with(EmbeddedEtcd::builder(), scopes).await
    }

    /// As [`Self::start`], with options.
    pub(crate) async fn start_with(builder: Builder, scopes: &[String]) -> Self {
        let etcd = builder.start().await.unwrap();
        for scope in scopes {
            etcd.withdraw(&Scope::new(scope.as_str()).unwrap()).await.unwrap();
        }
        etcd.open();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let (server, serving) = (etcd.clone(), shutdown.clone());
        tokio::spawn(async move { server.serve(listener, serving).await.unwrap() });
        Self { server: etcd, address, _shutdown: shutdown.drop_guard() }
    }

    /// The counters, now.
    pub(crate) fn stats(&self) -> Stats {
        self.server.stats()
    }

    /// Makes a scope hold exactly these keys and values, in one change, and returns its revision.
    pub(crate) async fn publish_raw(&self, scope: &str, pairs: &[(String, Bytes)]) -> i64 {
        let documents = pairs.iter().map(|(key, value)| Document {
            key: Key::new(key.as_str()).unwrap(),
            value: value.clone(),
            order: OrderHint(0),
            owner: Owner::new("test"),
        });
        let desired = Desired::new(Scope::new(scope).unwrap(), DocumentSet::new(documents).unwrap());
        self.server.publish(&desired).await.unwrap().revision.get()
    }

    /// Makes a scope hold exactly a configuration. A number that PingSIX ignores makes it another than before,
    /// so that PingSIX builds its router anew.
    pub(crate) async fn publish(&self, scope: &str, config: &Config, edition: usize) -> i64 {
        let mut pairs: Vec<(String, Bytes)> =
            config.iter().map(|(key, document)| (key.to_string(), document.to_json().into())).collect();
        pairs.push(("global_rules/edition".to_owned(), format!(r#"{{"edition":{edition}}}"#).into()));
        self.publish_raw(scope, &pairs).await
    }
}
