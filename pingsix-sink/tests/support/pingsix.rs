//! The real PingSIX, and backends behind it.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pingsix_sink::Desired;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::documents::desired;
use crate::{programs, wire};

/// The program that `PINGSIX_BIN` names; prints that the test is skipped when it names none.
pub(crate) fn binary() -> Option<String> {
    let named = std::env::var("PINGSIX_BIN").ok();
    if named.is_none() {
        programs::skipped("PINGSIX_BIN does not name the PingSIX binary");
    }
    named
}

/// A PingSIX that reads `/p/web` from one etcd address; dropping it kills it.
pub(crate) struct PingSix {
    child: Child,
    proxy: SocketAddr,
    status: SocketAddr,
}

impl PingSix {
    pub(crate) async fn start(binary: &str, directory: &Path, etcd: SocketAddr) -> Self {
        let (proxy, status, metrics) = (free_address().await, free_address().await, free_address().await);
        let here = directory.display();
        let config = format!(
            "pingora:\n  version: 1\n  threads: 1\n  pid_file: {here}/pid\n  upgrade_sock: {here}/upgrade.sock\n\
             pingsix:\n  listeners:\n    - address: {proxy}\n  etcd:\n    host: [\"{etcd}\"]\n    prefix: /p/web\n\
             \x20 status:\n    address: {status}\n  prometheus:\n    address: {metrics}\n"
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

    pub(crate) async fn kill(mut self) {
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
pub(crate) async fn backend(name: &'static str) -> SocketAddr {
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
