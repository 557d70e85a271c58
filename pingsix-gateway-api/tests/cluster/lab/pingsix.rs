//! The real PingSIX, where there is one: what it answers, and how it says that it is well.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use pingsix_gateway_responder::{Options, Reach, Responder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::PATIENCE;

/// Says something past the harness, which would swallow it.
pub(crate) fn say(text: &str) {
    // In one piece, because other tests speak at the same time.
    let _ = std::io::stderr().write_all(format!("\n{text}\n").as_bytes());
}

/// The program that `PINGSIX_BIN` names, or nothing after having said that the test does not run.
pub(crate) fn binary(test: &str) -> Option<OsString> {
    let named = std::env::var_os("PINGSIX_BIN").filter(|name| !name.is_empty());
    if named.is_none() {
        say(&format!("{test}: NOT RUN: PINGSIX_BIN does not name a PingSIX binary"));
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

/// The head of an answer in lower case.
async fn get(port: u16, host: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer.split("\r\n\r\n").next().unwrap_or_default().to_lowercase())
}

/// Asks until the head of an answer, in lower case, is as expected.
pub(crate) async fn until(port: u16, host: &str, path: &str, log: &Path, is_it: impl Fn(&str) -> bool) {
    let started = Instant::now();
    loop {
        let head = get(port, host, path).await.unwrap_or_default();
        if is_it(&head) {
            return;
        }
        let log = || fs::read_to_string(log).unwrap_or_default();
        assert!(started.elapsed() < PATIENCE, "{host}{path} is answered {head:?}\n{}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
