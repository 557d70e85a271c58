//! The real PingSIX lists and watches from the server. Runs when `PINGSIX_BIN` names its binary.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/documents.rs"]
mod documents;
#[path = "support/programs.rs"]
mod programs;
#[path = "support/wire.rs"]
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use documents::{desired, scope};
use pingsix_sink::embedded::{Access, Clients};
use pingsix_sink::{Desired, EmbeddedEtcd, Sink};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use wire::Served;

/// A PingSIX that reads `/p/web` from one etcd address; dropping it kills it.
struct PingSix {
    child: Child,
    proxy: SocketAddr,
    status: SocketAddr,
}

impl PingSix {
    async fn start(binary: &str, directory: &Path, etcd: SocketAddr) -> Self {
        Self::start_with(binary, directory, etcd, "").await
    }

    /// Starts it with more options of its section on etcd, each a line with a line break.
    async fn start_with(binary: &str, directory: &Path, etcd: SocketAddr, options: &str) -> Self {
        let (proxy, status, metrics) = (free_address().await, free_address().await, free_address().await);
        let here = directory.display();
        let config = format!(
            "pingora:\n  version: 1\n  threads: 1\n  pid_file: {here}/pid\n  upgrade_sock: {here}/upgrade.sock\n\
             pingsix:\n  listeners:\n    - address: {proxy}\n  etcd:\n    host: [\"{etcd}\"]\n    prefix: /p/web\n\
             {options}\x20 status:\n    address: {status}\n  prometheus:\n    address: {metrics}\n"
        );
        let file = directory.join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let log = std::fs::File::create(directory.join("log")).unwrap();
        let child = Command::new(binary)
            .arg("-c")
            .arg(file)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child, proxy, status }
    }

    /// A number in `/status/config`, once it is there.
    async fn status(&self, field: &str) -> Option<i64> {
        let (_, body) = get(self.status, "/status/config").await?;
        let rest = body.split(&format!("\"{field}\":")).nth(1)?;
        rest.trim_start().split([',', '}']).next()?.trim().parse().ok()
    }

    async fn wait_published(&self, revision: i64) -> i64 {
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
    async fn get(&self, path: &str) -> (u16, String) {
        get(self.proxy, path).await.expect("the gateway answers")
    }

    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

async fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

async fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await.ok()?;
        let (head, body) = response.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    };
    tokio::time::timeout(wire::PATIENCE, exchange).await.ok()?
}

/// An HTTP server that always says `name`.
async fn backend(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4_096];
                let _ = stream.read(&mut request).await;
                let length = name.len();
                let response =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{name}");
                let _ = stream.write_all(response.as_bytes()).await;
            });
        }
    });
    address
}

/// Upstreams for the backends and one route per path.
fn state(backends: &[(&str, SocketAddr)], routes: &[(&str, &str)]) -> Desired {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_follows_publications_and_survives_a_restart_of_the_server() {
    let Ok(binary) = std::env::var("PINGSIX_BIN") else {
        programs::skipped("PINGSIX_BIN does not name the PingSIX binary");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let revisions = directory.path().join("revisions");
    let backends = [("one", backend("one").await), ("two", backend("two").await)];

    let served = Served::start(EmbeddedEtcd::builder().state_file(&revisions)).await;
    let address = served.address;
    let pingsix = PingSix::start(&binary, directory.path(), address).await;

    // Published, but not yet complete: PingSIX gets nothing.
    let first = state(&backends, &[("a", "one"), ("b", "one")]);
    let published = served.etcd.publish(&first).await.unwrap().revision.get();
    let mut tries = tokio::time::interval(Duration::from_millis(50));
    while served.etcd.stats().refused == 0 {
        tries.tick().await;
    }
    assert_eq!(pingsix.status("published_revision").await, None);
    served.etcd.open();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await, (200, "one".to_owned()));
    assert_eq!(pingsix.get("/b").await, (200, "one".to_owned()));

    // An update, a deletion and an addition in one publication.
    let lists = served.etcd.stats().lists;
    let second = state(&backends, &[("a", "two"), ("c", "one")]);
    let published = served.etcd.publish(&second).await.unwrap().revision.get();
    assert_eq!(pingsix.wait_published(published).await, published);
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    assert_eq!(pingsix.get("/b").await.0, 404);
    assert_eq!(pingsix.get("/c").await.0, 200);
    assert_eq!(served.etcd.stats().lists, lists, "it came by the watch");

    // The server restarts; meanwhile and afterwards every route is there.
    drop(served.stop().await);
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    let etcd = EmbeddedEtcd::builder().state_file(&revisions).start().await.unwrap();
    assert!(etcd.revision().get() > published);
    let served = Served::serve_on(etcd, address).await;
    while served.etcd.stats().refused == 0 {
        tries.tick().await;
        assert_eq!(pingsix.get("/c").await.0, 200);
    }
    let published = served.etcd.publish(&second).await.unwrap().revision.get();
    served.etcd.open();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    assert_eq!(pingsix.get("/b").await.0, 404);

    // The watch goes on at the new server, and a withdrawn scope is empty.
    let published = served.etcd.publish(&first).await.unwrap().revision.get();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/b").await, (200, "one".to_owned()));
    let published = served.etcd.withdraw(&scope("/p/web")).await.unwrap().revision.get();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await.0, 404);
    pingsix.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_logs_in_once_and_is_told_a_burst_in_few_responses() {
    const CHANGES: usize = 200;
    let Ok(binary) = std::env::var("PINGSIX_BIN") else {
        programs::skipped("PINGSIX_BIN does not name the PingSIX binary");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let revisions = directory.path().join("revisions");
    let backends = [("one", backend("one").await), ("two", backend("two").await)];
    let start = async || {
        let clients = Clients::new().user("web", "s3cret", [scope("/p/web")]);
        let etcd =
            EmbeddedEtcd::builder().access(Access::of(clients)).state_file(&revisions).start().await.unwrap();
        etcd.publish(&desired("/p/api", &[("routes/a", "not for this client")])).await.unwrap();
        etcd
    };
    let etcd = start().await;
    let published = etcd.publish(&state(&backends, &[("a", "one")])).await.unwrap().revision.get();
    etcd.open();
    let served = Served::serve(etcd).await;
    let address = served.address;
    let options = "\x20   user: web\n\x20   password: s3cret\n";
    let pingsix = PingSix::start_with(&binary, directory.path(), address, options).await;
    pingsix.wait_published(published).await;

    let (before, mut last) = (served.etcd.stats(), 0);
    for change in 0..CHANGES {
        let to = if change % 2 == 0 { "two" } else { "one" };
        let next = state(&backends, &[("a", to), (if change % 3 == 0 { "b" } else { "c" }, "one")]);
        last = served.etcd.publish(&next).await.unwrap().revision.get();
    }
    pingsix.wait_published(last).await;
    assert_eq!(pingsix.get("/a").await, (200, "one".to_owned()));
    assert_eq!(pingsix.get("/c").await.0, 200);
    assert_eq!(pingsix.get("/b").await.0, 404);
    let after = served.etcd.stats();
    assert_eq!(after.lists, before.lists, "the watch went on");
    let responses = after.watch_responses - before.watch_responses;
    assert!(responses < CHANGES as u64 / 2, "{responses} responses for {CHANGES} changes");

    // The token that PingSIX has is good at the next server, which has never seen it.
    drop(served.stop().await);
    let etcd = start().await;
    let published = etcd.publish(&state(&backends, &[("a", "two")])).await.unwrap().revision.get();
    etcd.open();
    let served = Served::serve_on(etcd, address).await;
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    assert_eq!(served.etcd.stats().denied, 0);
    pingsix.kill().await;
}
