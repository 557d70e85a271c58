//! The real PingSIX, and backends behind it.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use pingsix_sink::Desired;
use pingsix_test_programs::free_address;

pub(crate) use crate::gateway::backend;
use crate::gateway::{Gateway, get, pingora};
use pingsix_sink::contract::documents::desired;

/// A PingSIX that reads `/p/web` from one etcd address; dropping it kills it.
pub(crate) struct PingSix {
    process: Gateway,
    proxy: SocketAddr,
    status: SocketAddr,
}

impl PingSix {
    pub(crate) fn start(binary: &Path, directory: &Path, etcd: SocketAddr) -> Self {
        Self::start_with(binary, directory, &etcd.to_string(), "")
    }

    /// Starts a PingSIX with more options of its section on etcd, each a line with a line break.
    pub(crate) fn start_with(binary: &Path, directory: &Path, etcd: &str, options: &str) -> Self {
        let (proxy, status, metrics) = (free_address(), free_address(), free_address());
        let config = format!(
            "{}pingsix:\n  listeners:\n    - address: {proxy}\n  etcd:\n    host: [\"{etcd}\"]\n    prefix: /p/web\n\
             {options}\x20 status:\n    address: {status}\n  prometheus:\n    address: {metrics}\n",
            pingora(directory)
        );
        let file = directory.join("config.yaml");
        std::fs::write(&file, config).unwrap();
        Self { process: Gateway::start(binary, &file, &directory.join("log")), proxy, status }
    }

    /// A number in `/status/config`, once it is there.
    pub(crate) async fn status(&self, field: &str) -> Option<i64> {
        let (_, body) = get(self.status, "/status/config").await?;
        let rest = body.split(&format!("\"{field}\":")).nth(1)?;
        rest.trim_start().split([',', '}']).next()?.trim().parse().ok()
    }

    pub(crate) async fn wait_published(&self, revision: i64) -> i64 {
        let mut tries = tokio::time::interval(Duration::from_millis(10));
        for _ in 0..2_000 {
            tries.tick().await;
            if let Some(published) = self.status("published_revision").await
                && published >= revision
            {
                return published;
            }
        }
        let last = get(self.status, "/status/config").await;
        panic!("revision {revision} was not published: {last:?}");
    }

    /// Status and body of a request through the gateway.
    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        get(self.proxy, path).await.expect("the gateway answers")
    }

    pub(crate) async fn kill(self) {
        self.process.kill().await;
    }
}

/// Upstreams for the backends and one route per path.
pub(crate) fn state(backends: &[(&str, SocketAddr)], routes: &[(&str, &str)]) -> Desired {
    let mut documents = Vec::new();
    for (name, address) in backends {
        documents.push((format!("upstreams/{name}"), format!(r#"{{"nodes":{{"{address}":1}}}}"#)));
    }
    for (path, upstream) in routes {
        documents
            .push((format!("routes/{path}"), format!(r#"{{"uri":"/{path}","upstream_id":"{upstream}"}}"#)));
    }
    let documents: Vec<(&str, &str)> =
        documents.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    desired("/p/web", &documents)
}
