//! The real PingSIX, polled for its published revision.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use pingsix_test_programs::free_address;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::gateway::{Gateway, pingora};
use crate::routes::PREFIX;

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Timeout of all waits.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) struct PingSix {
    client: Client<HttpConnector, Empty<Bytes>>,
    status: http::Uri,
    _process: Gateway,
    _directory: TempDir,
}

impl PingSix {
    /// Starts a PingSIX that reads from this address.
    pub(crate) fn start(binary: &Path, etcd: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (proxy, status) = (free_address(), free_address());
        let config = format!(
            "{}pingsix:\n  listeners: [{{address: '{proxy}'}}]\n  etcd: {{host: ['{etcd}'], prefix: {PREFIX}}}\n\
             \x20 status: {{address: '{status}'}}\n",
            pingora(directory.path())
        );
        let file = directory.path().join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let process = Gateway::start(binary, &file, &directory.path().join("log"));
        Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            status: format!("http://{status}/status/config").parse().unwrap(),
            _process: process,
            _directory: directory,
        }
    }

    async fn revision(&self) -> Option<i64> {
        let answer = self.client.get(self.status.clone()).await.ok()?;
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        serde_json::from_slice::<Value>(&body).ok()?["published_revision"].as_i64()
    }

    /// The time at which a revision is published.
    pub(crate) async fn published(&self, revision: i64) -> Instant {
        let wait = async {
            while self.revision().await < Some(revision) {
                sleep(POLL_INTERVAL).await;
            }
            Instant::now()
        };
        timeout(WAIT_TIMEOUT, wait).await.expect("it is published in time")
    }
}
