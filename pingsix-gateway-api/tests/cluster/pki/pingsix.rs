//! A real PingSIX, which runs through every kind of rotation and is never started again.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use pingsix_gateway_api::pki::{Authorities, FeedIdentity, Lifetimes};
use pingsix_sink::embedded::{Access, Clients, ServerTls, Stats};
use pingsix_sink::{Desired, Document, DocumentSet, EmbeddedEtcd, Key, OrderHint, Owner, Scope, Sink};
use pingsix_test_programs::free_address;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::{NAME, hours, issued};
use crate::test_env::WAIT_TIMEOUT;
use crate::test_env::pingsix::{binary, print_message};
use crate::test_env::readers::Served;

const PREFIX: &str = "/pingsix/default/web:80";

/// A folder of files as a mounted Secret is: links into one that is replaced as a whole.
struct MountedFiles {
    folder: PathBuf,
    editions: usize,
}

impl MountedFiles {
    fn of(folder: PathBuf, identity: &FeedIdentity) -> Self {
        fs::create_dir(&folder).unwrap();
        let mut files = Self { folder, editions: 0 };
        files.write(identity);
        for name in identity.to_data().keys() {
            symlink(format!("..data/{name}"), files.folder.join(name)).unwrap();
        }
        files
    }

    fn write(&mut self, identity: &FeedIdentity) {
        self.editions += 1;
        let edition = format!("..{}", self.editions);
        fs::create_dir(self.folder.join(&edition)).unwrap();
        for (name, content) in identity.to_data() {
            fs::write(self.folder.join(&edition).join(name), content.0).unwrap();
        }
        symlink(&edition, self.folder.join("..data_tmp")).unwrap();
        fs::rename(self.folder.join("..data_tmp"), self.folder.join("..data")).unwrap();
    }
}

/// The server, and the PingSIX that reads it.
struct PingSixUnderLoad {
    etcd: EmbeddedEtcd,
    files: MountedFiles,
    http: SocketAddr,
    status: SocketAddr,
    log: PathBuf,
    process: Child,
    published: usize,
    _served: Served,
    _folder: tempfile::TempDir,
}

impl PingSixUnderLoad {
    async fn start(binary: &std::ffi::OsStr, tls: ServerTls, identity: &FeedIdentity) -> Self {
        let access = Access::of(Clients::new()).certificate_uris();
        let tls = tls.reread_interval(Duration::from_millis(50));
        let etcd = EmbeddedEtcd::builder().access(access).tls(tls).start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let files = MountedFiles::of(folder.path().join("feed-tls"), identity);
        let served = Served::start(&etcd, None).await;
        let (http, status) = (free_address(), free_address());
        let config = config(folder.path(), served.address, http, status);
        let log = folder.path().join("log");
        let output = fs::File::create(&log).unwrap();
        let process = Command::new(binary)
            .arg("-c")
            .arg(config)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut pingsix =
            Self { etcd, files, http, status, log, process, published: 0, _served: served, _folder: folder };
        pingsix.publish().await;
        pingsix.etcd.open();
        pingsix.wait_for_takeover().await;
        pingsix
    }

    /// Publishes new content.
    async fn publish(&mut self) {
        self.published += 1;
        let route = format!(
            r#"{{"uri":"/a","upstream":{{"nodes":{{"127.0.0.1:9":1}}}},"plugins":{{"echo":{{"body":"number {}"}}}}}}"#,
            self.published
        );
        let document = Document {
            key: Key::new("routes/a").unwrap(),
            value: route.into(),
            order: OrderHint(2),
            owner: Owner::new("test"),
        };
        let desired = Desired::new(Scope::new(PREFIX).unwrap(), DocumentSet::new([document]).unwrap());
        self.etcd.publish(&desired).await.unwrap();
    }

    /// Waits until PingSIX responds with the last publication; returns the time.
    async fn wait_for_takeover(&mut self) -> Duration {
        let (started, expected) = (Instant::now(), format!("number {}", self.published));
        loop {
            let answer = get(self.http, "/a").await;
            if answer.as_deref().is_some_and(|answer| answer.ends_with(&expected)) {
                return started.elapsed();
            }
            let log = || fs::read_to_string(&self.log).unwrap_or_default();
            assert!(started.elapsed() < WAIT_TIMEOUT, "{expected}: {answer:?}\n{}", log());
            sleep(Duration::from_millis(10)).await;
        }
    }

    async fn wait_for_publication(&mut self) -> Duration {
        self.publish().await;
        self.wait_for_takeover().await
    }

    async fn until(&self, what: &str, holds: impl Fn(&Stats) -> bool) {
        let started = Instant::now();
        while !holds(&self.etcd.stats()) {
            assert!(started.elapsed() < WAIT_TIMEOUT, "{what}: {:?}", self.etcd.stats());
            sleep(Duration::from_millis(10)).await;
        }
    }

    async fn wait_until_ready(&self) {
        let started = Instant::now();
        while !get(self.status, "/status/ready").await.is_some_and(|answer| answer.contains(" 200 ")) {
            assert!(started.elapsed() < WAIT_TIMEOUT);
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn config(folder: &Path, feed: SocketAddr, http: SocketAddr, status: SocketAddr) -> PathBuf {
    let file = folder.join("config.yaml");
    let here = folder.display();
    let text = format!(
        "
pingora: {{threads: 1, pid_file: {here}/pid, upgrade_sock: {here}/sock}}
pingsix:
  listeners: [{{address: '{http}'}}]
  etcd:
    host: ['https://{feed}']
    prefix: '{PREFIX}'
    tls: {{ca_cert: {here}/feed-tls/ca.crt, client_cert: {here}/feed-tls/tls.crt, client_key: {here}/feed-tls/tls.key, domain: {NAME}}}
  status: {{address: '{status}'}}
"
    );
    fs::write(&file, text).unwrap();
    file
}

/// An answer as it came.
async fn get(address: SocketAddr, path: &str) -> Option<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: web.test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    };
    timeout(Duration::from_secs(5), exchange).await.ok()?
}

/// Continuous requests, until they are dropped or their errors are read.
struct RequestLoop {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

impl RequestLoop {
    fn on(address: SocketAddr) -> Self {
        let load = Self { stop: Arc::default(), asked: Arc::default(), failed: Arc::default() };
        let (stop, asked, failed) = (load.stop.clone(), load.asked.clone(), load.failed.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let answer = get(address, "/a").await;
                asked.fetch_add(1, Ordering::Relaxed);
                if !answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
                sleep(Duration::from_millis(5)).await;
            }
        });
        load
    }

    fn end(&self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        (self.asked.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

/// As a server of the authorities.
fn server(authorities: &Authorities, lifetimes: &Lifetimes) -> ServerTls {
    authorities.server_identity(&[NAME.to_owned()], Timestamp::now(), lifetimes).unwrap().tls()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_lives_through_every_rotation_and_misses_nothing() {
    const TEST: &str = "pingsix_lives_through_every_rotation_and_misses_nothing";
    let Some(binary) = binary(TEST) else { return };
    let lifetimes = hours(240);
    let second = Duration::from_secs(1);
    let brief = Lifetimes::new(lifetimes.authority(), 8 * second, second).unwrap();
    let authorities = Authorities::new(Timestamp::now(), None, &lifetimes).unwrap();
    let first = issued(&authorities, PREFIX, None, &brief).unwrap();
    let mut pingsix = PingSixUnderLoad::start(&binary, server(&authorities, &lifetimes), &first).await;
    let pid = pingsix.process.id();
    let load = RequestLoop::on(pingsix.http);

    // The client's certificate: its successor is in the files when it expires. Until then the connection goes on.
    let second = issued(&authorities, PREFIX, None, &lifetimes).unwrap();
    pingsix.files.write(&second);
    pingsix.wait_for_publication().await;
    let before = pingsix.etcd.stats();
    assert_eq!(before.connections_lapsed, 0);
    pingsix.until("the end of the first certificate", |stats| stats.connections_lapsed == 1).await;
    let back = pingsix.wait_for_publication().await;
    print_message(&format!("after its certificate expired, PingSIX had a change after {back:?}"));
    pingsix.wait_until_ready().await;
    assert!(pingsix.etcd.stats().lists > before.lists, "it came back with another connection");

    // The server's certificate: connected clients are not affected.
    let before = pingsix.etcd.stats();
    pingsix.etcd.replace_tls(server(&authorities, &lifetimes)).unwrap();
    pingsix.wait_for_publication().await;
    let after = pingsix.etcd.stats();
    assert_eq!((after.lists, after.tls_rotations), (before.lists, before.tls_rotations + 1));

    // The authority: trusted by all, then signing, then the only one.
    let now = Timestamp::now();
    let introducing = authorities.step(now, Some("now"), &lifetimes).unwrap().unwrap();
    pingsix.etcd.replace_tls(server(&introducing, &lifetimes)).unwrap();
    let third = issued(&introducing, PREFIX, Some(&second), &lifetimes).unwrap();
    assert_eq!(third.certificate(), second.certificate(), "only what it trusts is other");
    pingsix.files.write(&third);
    pingsix.wait_for_publication().await;
    let confirmed = introducing.confirm_edition(&introducing.edition(), now).unwrap();
    let later = now + jiff::SignedDuration::try_from(lifetimes.overlap()).unwrap();
    let retiring = confirmed.step(later, None, &lifetimes).unwrap().unwrap();
    pingsix.etcd.replace_tls(server(&retiring, &lifetimes)).unwrap();
    let fourth = issued(&retiring, PREFIX, Some(&third), &lifetimes).unwrap();
    assert_ne!(fourth.certificate(), third.certificate());
    pingsix.files.write(&fourth);
    pingsix.wait_for_publication().await;
    assert_eq!(pingsix.etcd.stats().lists, after.lists, "all of this without a new connection");
    let confirmed = retiring.confirm_edition(&retiring.edition(), now).unwrap();
    let settled = confirmed.step(later, None, &lifetimes).unwrap().unwrap();
    pingsix.etcd.replace_tls(server(&settled, &lifetimes)).unwrap();
    let fifth = issued(&settled, PREFIX, Some(&fourth), &lifetimes).unwrap();
    assert_eq!(fifth.certificate(), fourth.certificate());
    pingsix.files.write(&fifth);
    pingsix.until("the end of the first authority", |stats| stats.connections_lapsed == 2).await;
    let back = pingsix.wait_for_publication().await;
    print_message(&format!("after its authority was gone, PingSIX had a change after {back:?}"));
    pingsix.wait_until_ready().await;

    // And it goes on by its watch.
    let lists = pingsix.etcd.stats().lists;
    pingsix.wait_for_publication().await;
    assert_eq!(pingsix.etcd.stats().lists, lists);
    let (asked, failed) = load.end();
    assert!(asked > 100 && failed == 0, "{failed} of {asked} requests failed");
    assert_eq!(pingsix.process.id(), pid);
    assert!(pingsix.process.try_wait().unwrap().is_none(), "it runs on");
    assert_eq!(pingsix.etcd.stats().denied, 0);
}
