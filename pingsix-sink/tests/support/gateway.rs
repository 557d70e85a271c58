//! A real PingSIX with a configuration of the test's own, and a backend behind it.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// A running PingSIX; dropping it kills it.
pub(crate) struct Gateway {
    child: Child,
}

impl Gateway {
    pub(crate) fn start(binary: &Path, config: &Path, log: &Path) -> Self {
        let log = std::fs::File::create(log).unwrap();
        let child = Command::new(binary)
            .arg("-c")
            .arg(config)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child }
    }

    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// The `pingora` section of a configuration, with its files in a directory of the test.
pub(crate) fn pingora(directory: &Path) -> String {
    let here = directory.display();
    format!(
        "pingora:\n  version: 1\n  threads: 1\n  pid_file: {here}/pid\n  upgrade_sock: {here}/upgrade.sock\n"
    )
}

/// Status and body of a response.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await.ok()?;
        let (head, body) = response.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    };
    tokio::time::timeout(Duration::from_secs(5), exchange).await.ok()?
}

/// Waits for a response with this status, and returns its body.
pub(crate) async fn answers(address: SocketAddr, path: &str, status: u16) -> String {
    let mut tries = tokio::time::interval(Duration::from_millis(20));
    let mut last = None;
    for _ in 0..1_000 {
        tries.tick().await;
        last = get(address, path).await;
        if let Some((answered, body)) = &last
            && *answered == status
        {
            return body.clone();
        }
    }
    panic!("{path} does not answer {status}: {last:?}");
}

/// An HTTP server that always responds with `name`.
pub(crate) async fn backend(name: &'static str) -> SocketAddr {
    answering(move |_| name.to_owned()).await
}

/// An HTTP server that responds with the request.
pub(crate) async fn echo() -> SocketAddr {
    answering(|request| request).await
}

async fn answering(answer: impl Fn(String) -> String + Copy + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4_096];
                let read = stream.read(&mut request).await.unwrap_or_default();
                let body = answer(String::from_utf8_lossy(&request[..read]).into_owned());
                let length = body.len();
                let response =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
                let _ = stream.write_all(response.as_bytes()).await;
            });
        }
    });
    address
}
