//! With the real PingSIX, if `PINGSIX_BIN` names it: `serve` and `pingsix-config` together bring up a gateway.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::serve::Served;
use crate::support::{GATEWAY, Manifests, route, run};

const PATIENCE: Duration = Duration::from_secs(30);

struct PingSix(Child);

impl Drop for PingSix {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Answers every request with a word, until the test ends.
fn backend(word: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let length = word.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{word}"
            );
        }
    });
    address
}

fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_gateway_comes_up_and_follows_the_files() {
    let Some(binary) = std::env::var_os("PINGSIX_BIN") else {
        eprintln!("PINGSIX_BIN is not set: not run against PingSIX");
        return;
    };
    let port = free_port();
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    manifests.write("gateway.yaml", &GATEWAY.replace("port: 80", &format!("port: {port}")));
    let supplied = format!("shop/cart={}", backend("cart"));
    let served = Served::start(&manifests, &["--endpoints", &supplied]);
    served.wait_for("ready");

    let (etcd, status) = (served.etcd.to_string(), format!("127.0.0.1:{}", free_port()));
    let arguments = ["--etcd", &etcd, "--bind", "127.0.0.1", "--status", &status, "--data-plane", "shop/web"];
    let config =
        run(["pingsix-config", manifests.path().to_str().unwrap()].iter().chain(&arguments)).exits(0).out;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.yaml");
    std::fs::write(&file, config).unwrap();
    let child = Command::new(binary)
        .arg("-c")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _pingsix = PingSix(child);

    wait_until("the cart answers", || get(port, "/cart").is_some_and(|answer| answer.ends_with("cart")));
    assert!(get(port, "/basket").unwrap().starts_with("HTTP/1.1 404"));
    manifests.write("routes.yaml", &route("cart", "/basket", "cart"));
    wait_until("the basket answers", || get(port, "/basket").is_some_and(|answer| answer.ends_with("cart")));
    assert!(get(port, "/cart").unwrap().starts_with("HTTP/1.1 404"));
}
