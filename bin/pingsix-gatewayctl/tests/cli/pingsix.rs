//! With the real PingSIX, if `PINGSIX_BIN` names it: `serve` and `pingsix-config` together bring up a gateway.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pingsix_test_programs::{free_address, free_port, pingsix};
use tempfile::TempDir;

use crate::authority::Authority;
use crate::migrate::root as migrations;
use crate::serve::Served;
use crate::support::{GATEWAY, Manifests, route, run, run_with};
use crate::translate::https;

const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

struct PingSix {
    process: Child,
    _directory: TempDir,
}

impl Drop for PingSix {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl PingSix {
    fn start(binary: &Path, config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.yaml");
        std::fs::write(&file, config).unwrap();
        let process = Command::new(binary)
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, _directory: directory }
    }
}

/// A shop whose Gateway listens on a free port.
fn shop() -> (u16, Manifests) {
    let port = free_port();
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    manifests.write("gateway.yaml", &GATEWAY.replace("port: 80", &format!("port: {port}")));
    (port, manifests)
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
    get_with(port, path, "Host: a.test")
}

fn get_with(port: u16, path: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_gateway_comes_up_and_follows_the_files() {
    let Some(binary) = pingsix() else { return };
    let (port, manifests) = shop();
    let supplied = format!("shop/cart={}", backend("cart"));
    let served = Served::start(&manifests, &["--endpoints", &supplied]);
    served.wait_for("ready");

    let (etcd, status) = (served.etcd.to_string(), free_address().to_string());
    let arguments = ["--etcd", &etcd, "--bind", "127.0.0.1", "--status", &status, "--data-plane", "shop/web"];
    let config =
        run(["pingsix-config", manifests.path().to_str().unwrap()].iter().chain(&arguments)).exits(0).out;
    let _pingsix = PingSix::start(&binary, &config);

    wait_until("the cart answers", || get(port, "/cart").is_some_and(|answer| answer.ends_with("cart")));
    assert!(get(port, "/basket").unwrap().starts_with("HTTP/1.1 404"));
    manifests.write("routes.yaml", &route("cart", "/basket", "cart"));
    wait_until("the basket answers", || get(port, "/basket").is_some_and(|answer| answer.ends_with("cart")));
    assert!(get(port, "/cart").unwrap().starts_with("HTTP/1.1 404"));
}

#[test]
fn a_feed_over_tls_is_read_with_a_client_certificate() {
    let Some(binary) = pingsix() else { return };
    let (port, manifests) = shop();
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let files = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let [of_server, of_client] = [servers.issue(), clients.issue()];
    let [certificate, key, ca] =
        [("tls.crt", &of_server.0), ("tls.key", &of_server.1), ("ca.crt", &clients.pem())]
            .map(|(name, content)| write(name, content));
    let supplied = format!("shop/cart={}", backend("cart"));
    let tls = ["--tls-cert", &certificate, "--tls-key", &key, "--client-ca", &ca];
    let served = Served::start(&manifests, &[&tls[..], &["--endpoints", &supplied]].concat());
    served.wait_for("ready");

    let (etcd, status) = (format!("https://{}", served.etcd), free_address().to_string());
    let [ca, certificate, key] =
        [("feed-ca.crt", &servers.pem()), ("feed.crt", &of_client.0), ("feed.key", &of_client.1)]
            .map(|(name, content)| write(name, content));
    let arguments = ["--etcd", &etcd, "--etcd-ca", &ca, "--etcd-cert", &certificate, "--etcd-key", &key];
    let own = ["--bind", "127.0.0.1", "--status", &status];
    let config = ["pingsix-config", manifests.path().to_str().unwrap()];
    let config = run(config.iter().chain(&arguments).chain(&own)).exits(0).out;
    let _pingsix = PingSix::start(&binary, &config);
    wait_until("the cart answers", || get(port, "/cart").is_some_and(|answer| answer.ends_with("cart")));
}

#[test]
fn keys_of_a_migration_open_the_route_and_no_other_does() {
    let Some(binary) = pingsix() else { return };
    let input = std::fs::read_to_string(migrations().join("keys/input.yaml")).unwrap();
    // Without HTTPS, which would need a certificate on disk.
    let objects: Vec<&str> = input.split("\n---\n").filter(|object| !object.contains("ApisixTls")).collect();
    let migrated = run_with(&objects.join("\n---\n"), ["migrate", "-"]).exits(0);
    let port = free_port();
    let output = migrated
        .out
        .replace("    port: 80\n    protocol: HTTP", &format!("    port: {port}\n    protocol: HTTP"));
    let manifests = Manifests::new(&[("output.yaml", &output)]);
    let supplied = format!("shop/orders={}", backend("orders"));
    let served = Served::start(&manifests, &["--endpoints", &supplied]);
    served.wait_for("ready");
    let (etcd, status) = (served.etcd.to_string(), free_address().to_string());
    let arguments = ["--etcd", &etcd, "--bind", "127.0.0.1", "--status", &status];
    let config =
        run(["pingsix-config", manifests.path().to_str().unwrap()].iter().chain(&arguments)).exits(0).out;
    let _pingsix = PingSix::start(&binary, &config);

    let host = "Host: shop.example.com";
    let ask = |path: &str, headers: &str| get_with(port, path, headers);
    wait_until("a key opens the route", || {
        ask("/orders/1", &format!("{host}\r\napikey: alices-key"))
            .is_some_and(|answer| answer.ends_with("orders"))
    });
    assert!(ask("/orders/1", &format!("{host}\r\napikey: bobs-key")).unwrap().ends_with("orders"));
    assert!(ask("/orders/1?apikey=bobs-key", host).unwrap().ends_with("orders"));
    for headers in [host.to_owned(), format!("{host}\r\napikey: carols-key")] {
        assert!(ask("/orders/1", &headers).unwrap().starts_with("HTTP/1.1 401"), "{headers}");
    }
}

/// The beginning of a connection over HTTP/2: the preface and empty settings.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Whether a server answers the beginning of a connection over HTTP/2 with settings, and does not close it.
fn speaks_http2(port: u16) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    stream.write_all(HTTP2).unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).is_ok() && head[3] == 4
}

#[test]
fn http2_without_tls_takes_a_process_without_tls() {
    let Some(binary) = pingsix() else { return };
    let (manifests, _) = https();
    let (plain, tls) = (free_port(), free_port());
    let gateway = std::fs::read_to_string(manifests.path().join("gateway.yaml")).unwrap();
    let gateway = gateway.replace("port: 80,", &format!("port: {plain},"));
    manifests.write("gateway.yaml", &gateway.replace("port: 443", &format!("port: {tls}")));
    let supplied = format!("shop/cart={}", backend("cart"));
    let served = Served::start(&manifests, &["--endpoints", &supplied]);
    served.wait_for("ready");
    let files = tempfile::tempdir().unwrap();
    let certificate = rcgen::generate_simple_self_signed(["default.test".to_owned()]).unwrap();
    let write = |name: &str, content: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let crt = write("tls.crt", &certificate.cert.pem());
    let key = write("tls.key", &certificate.signing_key.serialize_pem());
    let start = |ports: &str| {
        let (etcd, status) = (served.etcd.to_string(), free_address().to_string());
        let arguments = ["--etcd", &etcd, "--bind", "127.0.0.1", "--status", &status, "--ports", ports];
        let config = ["pingsix-config", manifests.path().to_str().unwrap(), "--cert", &crt, "--key", &key];
        PingSix::start(&binary, &run(config.iter().chain(&arguments)).exits(0).out)
    };
    let is_served = || get(plain, "/cart").is_some_and(|answer| answer.ends_with("cart"));

    let both = start("all");
    wait_until("the cart answers", is_served);
    assert!(!speaks_http2(plain), "explain and limits.md say that such connections are closed");
    drop(both);

    let _plaintext = start("plaintext");
    let _tls = start("tls");
    wait_until("the cart answers", is_served);
    assert!(speaks_http2(plain));
    wait_until("the port with TLS is open", || TcpStream::connect(("127.0.0.1", tls)).is_ok());
}
