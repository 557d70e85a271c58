//! PingSIX as a child process that reads its configuration from an etcd server.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pingsix_test_programs::free_address;
use serde::Deserialize;

use crate::client::{Addresses, Http1, Reply};

/// Far more than a start or a publication takes.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The interval of status requests.
const POLL_INTERVAL: Duration = Duration::from_millis(3);

/// A running PingSIX, killed when it is dropped.
pub(crate) struct PingSix {
    child: Child,
    /// The traffic address.
    pub(crate) address: SocketAddr,
    /// The certificate of its TLS listener for names that no other is for, in DER; of no use without one.
    pub(crate) default_certificate: Vec<u8>,
    status: SocketAddr,
    metrics: SocketAddr,
    directory: tempfile::TempDir,
}

/// The listeners of a process. In a process that offers HTTP/2 in plaintext, TLS connections without HTTP/2 break, so a
/// process has one or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// HTTP/1.1, and HTTP/2 with prior knowledge.
    Plaintext,
    /// As [`Self::Plaintext`], on a socket of IPv6 that takes connections of IPv4, as `[::]` does, from this machine alone.
    MappedPlaintext,
    /// HTTP/1.1 and HTTP/2 by ALPN.
    Tls,
    /// As [`Self::Tls`], in a process that has another listener, which offers HTTP/2 in plaintext.
    TlsBesideH2c,
}

impl Drop for PingSix {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The options of a process.
#[derive(Clone, Copy)]
struct Setting<'a> {
    listener: Listener,
    /// The authority of backends, in place of those of the system.
    ca: Option<&'a str>,
    feed: Option<&'a FeedTls>,
    threads: u8,
}

impl From<Listener> for Setting<'_> {
    fn from(listener: Listener) -> Self {
        Self { listener, ca: None, feed: None, threads: 1 }
    }
}

/// The feed of a process over TLS, all in PEM.
pub(crate) struct FeedTls {
    /// The authority of the server.
    pub(crate) ca: String,
    /// The identity of the process: a certificate and its key.
    pub(crate) identity: Option<(String, String)>,
}

impl FeedTls {
    /// The setting of PingSIX, for files in a directory.
    fn write(&self, directory: &Path) -> String {
        let write = |name: &str, pem: &str| {
            let path = directory.join(name);
            fs::write(&path, pem).unwrap();
            path.display().to_string()
        };
        let ca = write("feed-ca.pem", &self.ca);
        let identity = self.identity.as_ref().map_or_else(String::new, |(certificate, key)| {
            let (certificate, key) = (write("feed-cert.pem", certificate), write("feed-key.pem", key));
            format!(r#", client_cert: "{certificate}", client_key: "{key}""#)
        });
        format!(r#", tls: {{ ca_cert: "{ca}"{identity} }}"#)
    }
}

/// The content of `/status/config`.
#[derive(Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) initialized: bool,
    pub(crate) published_revision: Option<i64>,
    pub(crate) error_kind: Option<String>,
    pub(crate) last_error: Option<String>,
}

/// The outcome of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// PingSIX has published the revision.
    Accepted,
    /// PingSIX has refused the revision: the kind of error, and its text.
    Refused(String, String),
    /// The outcome is unknown, so the process is gone.
    Silent,
}

impl PingSix {
    /// Starts the binary and waits until it serves the documents of the scope. PingSIX cannot report its ports, so a
    /// start with taken ports is repeated with others.
    pub(crate) async fn start(binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        Self::start_with(Listener::Plaintext, binary, etcd, scope).await
    }

    /// As [`Self::start`], with another listener.
    pub(crate) async fn start_with(listener: Listener, binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        Self::start_by(|| Self::spawn(listener.into(), binary, etcd, scope)).await
    }

    /// As [`Self::start_with`], with this CA certificate for backends in place of those of the system.
    pub(crate) async fn start_trusting(
        ca: &str,
        listener: Listener,
        binary: &Path,
        etcd: SocketAddr,
        scope: &str,
    ) -> Self {
        let setting = Setting { ca: Some(ca), ..listener.into() };
        Self::start_by(|| Self::spawn(setting, binary, etcd, scope)).await
    }

    /// As [`Self::start`], with this number of threads.
    pub(crate) async fn start_threads(threads: u8, binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        let setting = Setting { threads, ..Listener::Plaintext.into() };
        Self::start_by(|| Self::spawn(setting, binary, etcd, scope)).await
    }

    /// As [`Self::start`], with the configuration read over TLS.
    pub(crate) async fn start_reading(feed: &FeedTls, binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        let setting = Setting { feed: Some(feed), ..Listener::Plaintext.into() };
        Self::start_by(|| Self::spawn(setting, binary, etcd, scope)).await
    }

    async fn start_by(spawn: impl Fn() -> Self) -> Self {
        let started = Instant::now();
        loop {
            let mut pingsix = spawn();
            if let Ok(()) = pingsix.wait_until_initialized().await {
                return pingsix;
            }
            assert!(started.elapsed() < WAIT_TIMEOUT, "PingSIX does not start: {}", pingsix.log());
        }
    }

    /// Starts the binary and waits only until it can be asked for its status.
    pub(crate) async fn launch(binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        Self::launch_by(|| Self::spawn(Listener::Plaintext.into(), binary, etcd, scope)).await
    }

    /// As [`Self::launch`], with the configuration read over TLS.
    pub(crate) async fn launch_reading(feed: &FeedTls, binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        let setting = Setting { feed: Some(feed), ..Listener::Plaintext.into() };
        Self::launch_by(|| Self::spawn(setting, binary, etcd, scope)).await
    }

    async fn launch_by(spawn: impl Fn() -> Self) -> Self {
        let started = Instant::now();
        let mut pingsix = spawn();
        while pingsix.try_status().await.is_none() {
            assert!(started.elapsed() < WAIT_TIMEOUT, "PingSIX does not start: {}", pingsix.log());
            if pingsix.child.try_wait().unwrap().is_some() {
                pingsix = spawn();
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        pingsix
    }

    fn spawn(setting: Setting<'_>, binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        let (address, status, metrics) = (free_address(), free_address(), free_address());
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| -> PathBuf { directory.path().join(name) };
        let default = rcgen::generate_simple_self_signed(["default.test".to_owned()]).unwrap();
        let beside = match setting.listener {
            Listener::Plaintext | Listener::MappedPlaintext | Listener::Tls => String::new(),
            Listener::TlsBesideH2c => format!(r#", {{ address: "{}", offer_h2c: true }}"#, free_address()),
        };
        let listener = match setting.listener {
            Listener::Plaintext | Listener::MappedPlaintext => r"offer_h2c: true".to_owned(),
            Listener::Tls | Listener::TlsBesideH2c => {
                fs::write(path("cert.pem"), default.cert.pem()).unwrap();
                fs::write(path("key.pem"), default.signing_key.serialize_pem()).unwrap();
                format!(
                    r#"offer_h2: true, tls: {{ cert_path: "{0}/cert.pem", key_path: "{0}/key.pem" }}"#,
                    directory.path().display()
                )
            }
        };
        let bind = match setting.listener {
            Listener::MappedPlaintext => format!("[::ffff:{}]:{}", address.ip(), address.port()),
            Listener::Plaintext | Listener::Tls | Listener::TlsBesideH2c => address.to_string(),
        };
        let ca_file = setting.ca.map_or_else(String::new, |ca| {
            fs::write(path("ca.pem"), ca).unwrap();
            format!(r#", ca_file: "{}""#, path("ca.pem").display())
        });
        let scheme = if setting.feed.is_some() { "https" } else { "http" };
        let feed = setting.feed.map_or_else(String::new, |feed| feed.write(directory.path()));
        fs::write(
            path("config.yaml"),
            format!(
                r#"pingora: {{ threads: {1}, pid_file: "{0}/pid", upgrade_sock: "{0}/sock"{ca_file} }}
pingsix:
  listeners: [ {{ address: "{bind}", {listener} }}{beside} ]
  etcd: {{ host: [ "{scheme}://{etcd}" ], prefix: "{scope}"{feed} }}
  status: {{ address: "{status}" }}
  prometheus: {{ address: "{metrics}" }}
  defaults: {{ dns_refresh_interval: 3600, dns_resolution_timeout: 1 }}
"#,
                directory.path().display(),
                setting.threads,
            ),
        )
        .unwrap();
        let log = fs::File::create(path("log")).unwrap();
        let child = Command::new(binary)
            .arg("-c")
            .arg(path("config.yaml"))
            .env("RUST_LOG", "error,pingsix::plugins::file_logger=info")
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let default_certificate = default.cert.der().to_vec();
        Self { child, address, default_certificate, status, metrics, directory }
    }

    async fn wait_until_initialized(&mut self) -> Result<(), ()> {
        let started = Instant::now();
        while started.elapsed() < WAIT_TIMEOUT / 3 {
            if self.child.try_wait().unwrap().is_some() {
                return Err(());
            }
            let listens = tokio::net::TcpStream::connect(self.address).await.is_ok();
            if listens && self.try_status().await.is_some_and(|status| status.initialized) {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Err(())
    }

    /// The address of its status page.
    #[allow(dead_code, reason = "not every program with this file asks for it")]
    pub(crate) const fn status_address(&self) -> SocketAddr {
        self.status
    }

    /// The metrics of the process.
    #[allow(dead_code, reason = "not every program with this file asks for them")]
    pub(crate) async fn metrics(&self) -> String {
        let request = b"GET /metrics HTTP/1.1\r\nHost: metrics\r\n\r\n";
        let Reply { body, .. } = Http1::new(self.metrics).send(request, false).await.unwrap();
        String::from_utf8(body).unwrap()
    }

    /// The memory of the process, in bytes.
    pub(crate) fn resident_bytes(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// The log of the process.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    pub(crate) async fn status(&self) -> Status {
        self.try_status().await.unwrap_or_else(|| panic!("no status: {}", self.log()))
    }

    async fn try_status(&self) -> Option<Status> {
        let request = b"GET /status/config HTTP/1.1\r\nHost: status\r\n\r\n";
        let Reply { status, body, .. } = Http1::new(self.status).send(request, false).await.ok()?;
        (status == 200).then(|| serde_json::from_slice(&body).unwrap())
    }

    /// Waits until a revision is published or a refusal is reported. PingSIX keeps an error until its next
    /// publication, so a refusal belongs to the revision only if there was no error before.
    pub(crate) async fn verdict(&self, revision: i64, limit: Duration) -> Verdict {
        let started = Instant::now();
        loop {
            let status = self.status().await;
            if status.published_revision >= Some(revision) {
                return Verdict::Accepted;
            }
            if let Some(kind) = status.error_kind {
                return Verdict::Refused(kind, status.last_error.unwrap_or_default());
            }
            if started.elapsed() > limit {
                return Verdict::Silent;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Replaces the files by which it reads its configuration.
    pub(crate) fn replace_feed(&self, feed: &FeedTls) {
        feed.write(self.directory.path());
    }

    /// Waits until a revision is published, whatever was refused before.
    pub(crate) async fn published(&self, revision: i64) {
        let started = Instant::now();
        loop {
            let status = self.status().await;
            if status.published_revision >= Some(revision) {
                return;
            }
            assert!(
                started.elapsed() < WAIT_TIMEOUT,
                "{revision} is not published: {status:?}\n{}",
                self.log()
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Two processes on one scope, one for each [`Listener`], so that one configuration is served over every protocol.
pub(crate) struct Pair {
    pub(crate) plaintext: PingSix,
    pub(crate) tls: PingSix,
}

impl Pair {
    pub(crate) async fn start(binary: &Path, etcd: SocketAddr, scope: &str) -> Self {
        let plaintext = PingSix::start_with(Listener::Plaintext, binary, etcd, scope).await;
        let tls = PingSix::start_with(Listener::Tls, binary, etcd, scope).await;
        Self { plaintext, tls }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        Addresses { plaintext: self.plaintext.address, tls: Some(self.tls.address) }
    }

    /// The outcome of a revision, where every refusal counts.
    pub(crate) async fn verdict(&self, revision: i64, limit: Duration) -> Verdict {
        match self.plaintext.verdict(revision, limit).await {
            Verdict::Accepted => self.tls.verdict(revision, limit).await,
            verdict @ (Verdict::Refused(..) | Verdict::Silent) => verdict,
        }
    }
}
