//! The real PingSIX, if available: its responses and its health.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::responder::{Options, Reach, Responder};
use pingsix_test_cluster::{Process, TestCluster};
use pingsix_test_programs::{free_port, pingsix_config};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::WAIT_TIMEOUT;
use super::shop::PLANE;

/// Prints a message past the test harness, which would capture it.
pub(crate) fn print_message(text: &str) {
    // In one piece, because other tests speak at the same time.
    let _ = std::io::stderr().write_all(format!("\n{text}\n").as_bytes());
}

/// The program of `PINGSIX_BIN`; `None`, with a message, without it.
pub(crate) fn binary(test: &str) -> Option<OsString> {
    let named = std::env::var_os("PINGSIX_BIN").filter(|name| !name.is_empty());
    if named.is_none() {
        print_message(&format!("{test}: NOT RUN: PINGSIX_BIN does not name a PingSIX binary"));
    }
    named
}

/// A responder, and what ends it.
pub(crate) async fn responder() -> (SocketAddr, DropGuard) {
    let loopback = (Ipv4Addr::LOCALHOST, 0).into();
    let responder = Responder::bind(loopback, Reach::Loopback, Options::default()).await.unwrap();
    let (address, end) = (responder.local_addr().unwrap(), CancellationToken::new());
    tokio::spawn(responder.run(end.clone().cancelled_owned()));
    (address, end.drop_guard())
}

/// The addresses of a PingSIX, and its configuration file.
pub(crate) struct Ports {
    pub(crate) traffic: u16,
    pub(crate) status: u16,
    config: PathBuf,
}

impl Ports {
    /// The arguments of a PingSIX that reads the Gateway's documents from a feed.
    pub(crate) fn new(cluster: &TestCluster, feed: SocketAddr) -> Self {
        Self::of_plane(cluster, feed, PLANE)
    }

    /// The arguments of a PingSIX that reads the documents with this prefix.
    pub(crate) fn of_plane(cluster: &TestCluster, feed: SocketAddr, plane: &str) -> Self {
        let (traffic, status) = (free_port(), free_port());
        let at = |port| (Ipv4Addr::LOCALHOST, port).into();
        let feed = format!("http://{feed}");
        let config = pingsix_config(cluster.folder(), at(traffic), (&feed, plane), at(status));
        Self { traffic, status, config }
    }

    /// Starts the PingSIX.
    pub(crate) async fn run(&self, cluster: &TestCluster, binary: OsString) -> Process {
        let command = vec![binary, "-c".into(), self.config.clone().into()];
        cluster.run("pingsix", command).await.unwrap()
    }
}

/// Head and body of an answer.
async fn exchange(port: u16, host: &str, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// The head of an answer in lower case.
pub(crate) async fn get(port: u16, host: &str, path: &str) -> Option<String> {
    exchange(port, host, path).await.map(|(head, _)| head.to_lowercase())
}

/// The content of a JSON page.
pub(crate) async fn page(port: u16, path: &str) -> Option<Value> {
    let (_, body) = exchange(port, "localhost", path).await?;
    serde_json::from_str(&body).ok()
}

/// Repeats a request until the lower-case head of its response satisfies a condition.
pub(crate) async fn until(port: u16, host: &str, path: &str, log: &Path, is_expected: impl Fn(&str) -> bool) {
    let started = Instant::now();
    loop {
        let head = get(port, host, path).await.unwrap_or_default();
        if is_expected(&head) {
            return;
        }
        let log = || fs::read_to_string(log).unwrap_or_default();
        assert!(started.elapsed() < WAIT_TIMEOUT, "{host}{path} is answered {head:?}\n{}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
