//! `serve` over TLS: the admitted readers of the feed, their addresses and certificates.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

use crate::authority::Authority;
use crate::serve::{Served, keys};
use crate::support::{Manifests, route, run};

/// The time limit of an effect, also on a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Files in a directory of their own.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Writes `tls.crt` and `tls.key`.
    fn write_pair(&self, (certificate, key): &(String, String)) {
        self.write("tls.crt", certificate);
        self.write("tls.key", key);
    }
}

/// The answer to a served client.
fn read(port: u16, trusted: &Authority, identity: Option<&(String, String)>) -> Result<Vec<String>, String> {
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(trusted.pem()));
    let tls = match identity {
        None => tls,
        Some((certificate, key)) => tls.identity(Identity::from_pem(certificate, key)),
    };
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let endpoint = Channel::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap();
    keys(&endpoint, "/pingsix/shop/web/")
        .map_err(|error| format!("{error:?}"))?
        .map_err(|error| format!("{error:?}"))
}

#[test]
fn only_clients_with_a_certificate_of_the_client_ca_read_the_feed() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let files = Files::new();
    files.write_pair(&servers.issue());
    files.write("ca.crt", &clients.pem());
    let (certificate, key, ca) = (files.name("tls.crt"), files.name("tls.key"), files.name("ca.crt"));
    let served =
        Served::start(&manifests, &["--tls-cert", &certificate, "--tls-key", &key, "--client-ca", &ca]);
    served.wait_for("ready");
    let port = served.etcd.port();
    let read_keys = read(port, &servers, Some(&clients.issue())).unwrap();
    assert!(read_keys.iter().any(|key| key.starts_with("/pingsix/shop/web/routes/")), "{read_keys:?}");
    assert!(read(port, &servers, None).is_err());
    assert!(read(port, &servers, Some(&servers.issue())).is_err());
    assert!(read(port, &clients, Some(&clients.issue())).is_err());
    let plaintext = Channel::from_shared(format!("http://{}", served.etcd)).unwrap();
    assert!(!matches!(keys(&plaintext, "/pingsix/shop/web/"), Ok(Ok(_))));
}

#[test]
fn other_machines_may_reach_the_feed_over_tls_and_nothing_else() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let servers = Authority::new("servers");
    let files = Files::new();
    files.write_pair(&servers.issue());
    let (certificate, key) = (files.name("tls.crt"), files.name("tls.key"));
    let tls = ["--tls-cert", certificate.as_str(), "--tls-key", key.as_str()];
    let served = Served::start_at("0.0.0.0:0", &manifests, &tls);
    served.wait_for("ready");
    assert!(!read(served.etcd.port(), &servers, None).unwrap().is_empty());
    drop(served);

    let path = manifests.path().to_str().unwrap();
    let explain = ["serve", path, "--listen", "127.0.0.1:0", "--responder", "off", "--explain", "0.0.0.0:0"];
    run(explain.iter().chain(&tls)).exits(2).prints_error("--allow-non-loopback");
    let responder = ["serve", path, "--listen", "127.0.0.1:0", "--responder", "0.0.0.0:0"];
    run(responder.iter().chain(&tls)).exits(2).prints_error("--allow-non-loopback");
}

#[test]
fn a_certificate_that_is_replaced_is_shown_to_new_connections() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let files = Files::new();
    files.write_pair(&old.issue());
    let (certificate, key) = (files.name("tls.crt"), files.name("tls.key"));
    let served = Served::start(&manifests, &["--tls-cert", &certificate, "--tls-key", &key]);
    served.wait_for("ready");
    let port = served.etcd.port();
    read(port, &old, None).unwrap();
    files.write_pair(&new.issue());
    let end = Instant::now() + WAIT_TIMEOUT;
    while let Err(error) = read(port, &new, None) {
        assert!(Instant::now() < end, "{error}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(read(port, &old, None).is_err());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let manifests = Manifests::shop(&route("cart", "/cart", "cart"));
    let path = manifests.path().to_str().unwrap();
    let servers = Authority::new("servers");
    let files = Files::new();
    files.write_pair(&servers.issue());
    let (_, other) = servers.issue();
    files.write("other.key", &other);
    let serve = |flags: &[(&str, &str)]| {
        let mut arguments: Vec<String> =
            ["serve", path, "--listen", "127.0.0.1:0", "--responder", "off"].map(str::to_owned).into();
        for (flag, file) in flags {
            arguments.extend([(*flag).to_owned(), files.name(file)]);
        }
        run(arguments).exits(2)
    };
    serve(&[("--tls-cert", "tls.crt"), ("--tls-key", "gone.key")])
        .prints_error(&format!("{} cannot be read", files.name("gone.key")))
        .prints_error("--tls-key");
    let mismatch = serve(&[("--tls-cert", "tls.crt"), ("--tls-key", "other.key")]).prints_error(&format!(
        "{} is not the key of the certificate {}",
        files.name("other.key"),
        files.name("tls.crt")
    ));
    assert!(!mismatch.err.contains(other.lines().nth(1).unwrap()));
    serve(&[("--tls-cert", "tls.crt"), ("--tls-key", "tls.key"), ("--client-ca", "tls.key")])
        .prints_error("holds no certificate");
    // One without the other is a mistake, not plaintext.
    serve(&[("--tls-cert", "tls.crt")]).prints_error("--tls-key");
    serve(&[("--tls-key", "tls.key")]).prints_error("--tls-cert");
    serve(&[("--client-ca", "tls.crt")]).prints_error("--tls-cert");
}
