//! A cluster, the controller and PingSIX, each in a process of its own.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use pingsix_test_cluster::{Process, TestCluster};
use pingsix_test_programs::{free_address, program};
use serde::Deserialize;
use tokio::time::sleep;
use tokio_util::sync::DropGuard;
use tonic::Status;

use super::backends::Backends;
use super::changes;
use super::fixtures::Fixtures;
use super::objects::ABSENT;
use super::subjects::{Listener, Subject};
use super::traffic::Addresses;
use crate::test_env::readers::list;
use crate::test_env::{OWN_KINDS, WAIT_TIMEOUT, pingsix, shop};

/// The running processes.
pub(crate) struct Environment {
    pub(crate) cluster: TestCluster,
    pub(crate) subjects: Arc<Vec<Subject>>,
    pub(crate) controller: Process,
    pub(crate) backends: Backends,
    pub(crate) responder: SocketAddr,
    pub(crate) debug: SocketAddr,
    feed: SocketAddr,
    plain: PingSix,
    behind_tls: PingSix,
    _responds: DropGuard,
}

/// A PingSIX that reads the data plane of one port.
struct PingSix {
    process: Process,
    plane: &'static str,
    address: SocketAddr,
    status: SocketAddr,
    pid: Option<u32>,
}

/// The content of `/status/config`.
#[derive(Debug, Deserialize)]
struct Page {
    published_revision: Option<i64>,
    error_kind: Option<String>,
    last_error: Option<String>,
}

impl Environment {
    /// Starts all processes; `None`, with a message, if the test cannot run.
    pub(crate) async fn start(test: &str, fixtures: impl FnOnce(&Backends) -> Fixtures) -> Option<Self> {
        let binary = pingsix::binary(test)?;
        let backends = Backends::start().await;
        let cluster = TestCluster::builder().start_or_skip().await?;
        cluster.namespace(ABSENT).await.unwrap();
        cluster.apply(OWN_KINDS).await.unwrap();
        cluster.apply(shop::CLASS).await.unwrap();
        let fixtures = fixtures(&backends);
        for (kind, object) in &fixtures.objects {
            changes::create(&cluster.admin(), *kind, object).await;
        }
        let [feed, health, debug, plain, plain_status, behind_tls, secure_status] =
            std::array::from_fn(|_| free_address());
        let (responder, responds) = pingsix::responder().await;
        let statuses = [plain_status, secure_status];
        let controller = start_controller(&cluster, [feed, responder, health, debug], statuses).await;
        let plain = PingSix::start(&cluster, &binary, Listener::Plain, feed, plain, plain_status).await;
        let behind_tls =
            PingSix::start(&cluster, &binary, Listener::Secure, feed, behind_tls, secure_status).await;
        let environment = Self {
            cluster,
            subjects: Arc::new(fixtures.subjects),
            controller,
            responder,
            debug,
            feed,
            plain,
            behind_tls,
            backends,
            _responds: responds,
        };
        environment.is_published().await;
        Some(environment)
    }

    pub(crate) fn addresses(&self) -> Addresses {
        Addresses { plain: self.plain.address, behind_tls: self.behind_tls.address }
    }

    /// The logs of the controller and of PingSIX.
    pub(crate) fn logs(&self) -> String {
        let processes = [&self.controller, &self.plain.process, &self.behind_tls.process];
        processes.map(|process| fs::read_to_string(process.log()).unwrap()).concat()
    }

    /// The content of the feed, by data plane, with its revision.
    pub(crate) async fn feed(&self, plane: &str) -> Result<(i64, Vec<(String, Vec<u8>)>), Status> {
        let found = list(self.feed, plane).await?;
        let pairs = found.kvs.iter().map(|kv| {
            let key = String::from_utf8_lossy(&kv.key);
            (key.strip_prefix(plane).unwrap()[1..].to_owned(), kv.value.to_vec())
        });
        let last = found.kvs.iter().map(|kv| kv.mod_revision).max().unwrap_or_default();
        Ok((last, pairs.collect()))
    }

    /// Whether the feed has documents for each PingSIX.
    pub(crate) async fn is_open(&self) -> bool {
        for pingsix in [&self.plain, &self.behind_tls] {
            if !self.feed(pingsix.plane).await.is_ok_and(|(_, held)| !held.is_empty()) {
                return false;
            }
        }
        true
    }

    /// Waits until each PingSIX has published the documents of the feed.
    pub(crate) async fn is_published(&self) {
        for pingsix in [&self.plain, &self.behind_tls] {
            let started = Instant::now();
            loop {
                if let Ok((last, _)) = self.feed(pingsix.plane).await
                    && last > 0
                {
                    let page = pingsix.page().await;
                    if page.as_ref().is_some_and(|page| page.published_revision >= Some(last)) {
                        break;
                    }
                }
                assert!(
                    started.elapsed() < WAIT_TIMEOUT,
                    "{} is not published: {:?}\n{}\n{}",
                    pingsix.plane,
                    pingsix.page().await,
                    end_of(&pingsix.process.log()),
                    end_of(&self.controller.log())
                );
                sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// The errors of PingSIX's status. The feed may, or must, be absent.
    pub(crate) async fn refusal(&self, may_be_alone: bool) -> Option<String> {
        for pingsix in [&self.plain, &self.behind_tls] {
            if let Some(Page { error_kind: Some(kind), last_error, .. }) = pingsix.page().await
                && !(may_be_alone && kind == "etcd_unavailable")
            {
                return Some(format!("{}: {kind}: {last_error:?}", pingsix.plane));
            }
        }
        None
    }

    /// Ends all processes; PingSIX must have run throughout.
    pub(crate) async fn stop(self) {
        for pingsix in [&self.plain, &self.behind_tls] {
            assert_eq!(pingsix.process.pid().await, pingsix.pid, "{} has ended", pingsix.plane);
            pingsix.process.kill().await.unwrap();
        }
        self.controller.stop().await.unwrap();
    }
}

async fn start_controller(
    cluster: &TestCluster,
    [feed, responder, health, debug]: [SocketAddr; 4],
    [plain, behind_tls]: [SocketAddr; 2],
) -> Process {
    let kubeconfig = cluster.kubeconfig(cluster.administrator()).unwrap();
    let revisions = cluster.folder().join("revisions");
    let mut command = vec![OsString::from(program("pingsix-gateway-controller").await)];
    command.extend(
        [
            "--layout=perPort".to_owned(),
            format!("--responder={responder}"),
            format!("--feed-address={feed}"),
            format!("--feed-state-file={}", revisions.display()),
            format!("--health-address={health}"),
            format!("--kube-config={}", kubeconfig.display()),
            format!("--status-url=default/web:80=http://{plain}"),
            format!("--status-url=default/web:443=http://{behind_tls}"),
            format!("--debug-address={debug}"),
            "--leader-namespace=default".to_owned(),
            "--leader-duration=4s".to_owned(),
            "--leader-renew-deadline=3s".to_owned(),
            "--leader-retry=500ms".to_owned(),
            "--log-filter=warn".to_owned(),
        ]
        .map(OsString::from),
    );
    cluster.run("controller", command).await.unwrap()
}

impl PingSix {
    async fn start(
        cluster: &TestCluster,
        binary: &OsString,
        listener: Listener,
        feed: SocketAddr,
        address: SocketAddr,
        status: SocketAddr,
    ) -> Self {
        let folder = cluster.folder().display().to_string();
        let (name, plane, listener) = match listener {
            Listener::Plain => ("plain", "/pingsix/default/web:80", "offer_h2c: true".to_owned()),
            Listener::Secure => {
                let (certificate, key) = shop::pair("default.example");
                fs::write(cluster.folder().join("default.crt"), certificate).unwrap();
                fs::write(cluster.folder().join("default.key"), key).unwrap();
                let tls = format!(
                    "offer_h2: true, tls: {{cert_path: {folder}/default.crt, key_path: {folder}/default.key}}"
                );
                ("secure", "/pingsix/default/web:443", tls)
            }
        };
        let config = cluster.folder().join(format!("{name}.yaml"));
        fs::write(
            &config,
            format!(
                "
pingora: {{threads: 1, pid_file: {folder}/{name}.pid, upgrade_sock: {folder}/{name}.sock}}
pingsix:
  listeners: [{{address: '{address}', {listener}}}]
  etcd: {{host: ['http://{feed}'], prefix: '{plane}'}}
  status: {{address: '{status}'}}
"
            ),
        )
        .unwrap();
        // PingSIX would write a line for each document each time.
        let command =
            ["/usr/bin/env".into(), "RUST_LOG=warn".into(), binary.clone(), "-c".into(), config.into()];
        let process = cluster.run(name, command.into()).await.unwrap();
        let pid = process.pid().await;
        Self { process, plane, address, status, pid }
    }

    async fn page(&self) -> Option<Page> {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<bytes::Bytes>>();
        let answer =
            client.get(format!("http://{}/status/config", self.status).parse().unwrap()).await.ok()?;
        serde_json::from_slice(&answer.into_body().collect().await.ok()?.to_bytes()).ok()
    }
}

/// The last lines of a log.
pub(crate) fn end_of(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
