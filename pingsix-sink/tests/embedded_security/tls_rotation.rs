//! Certificates that are replaced while the server serves, and expired certificates.

use crate::log;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::authority::{Authority, Pair, Prober, channel, client};
use crate::wire::{Served, WAIT_TIMEOUT, Watcher, events, watch_under};
use parking_lot::Mutex;
use pingsix_sink::contract::documents::desired;
use pingsix_sink::embedded::revisions::Clock;
use pingsix_sink::embedded::{ServerTls, Stats};
use pingsix_sink::{EmbeddedEtcd, Sink};
use tempfile::TempDir;

/// A directory as a mounted Secret: links into a directory that is replaced as a whole.
struct MountedSecret {
    directory: TempDir,
    editions: usize,
}

impl MountedSecret {
    fn new(files: &[(&str, impl AsRef<str>)]) -> Self {
        let mut secret = Self { directory: tempfile::tempdir().unwrap(), editions: 0 };
        secret.replace(files);
        for (name, _) in files {
            symlink(format!("..data/{name}"), secret.path(name)).unwrap();
        }
        secret
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn replace(&mut self, files: &[(&str, impl AsRef<str>)]) {
        self.editions += 1;
        let edition = format!("..{}", self.editions);
        fs::create_dir(self.path(&edition)).unwrap();
        for (name, content) in files {
            fs::write(self.path(&edition).join(name), content.as_ref()).unwrap();
        }
        symlink(&edition, self.path("..data_tmp")).unwrap();
        fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
    }

    fn tls(&self) -> ServerTls {
        ServerTls::from_files(self.path("tls.crt"), self.path("tls.key"))
            .reread_interval(Duration::from_millis(5))
    }

    fn name(&self) -> String {
        self.directory.path().display().to_string()
    }
}

fn pair(pair: &Pair) -> [(&str, &str); 2] {
    [("tls.crt", &pair.certificate), ("tls.key", &pair.key)]
}

async fn served(tls: ServerTls) -> Served {
    log::keep();
    let served = Served::start(EmbeddedEtcd::builder().tls(tls)).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "1")])).await.unwrap();
    served.etcd.open();
    served
}

/// Waits until the counters satisfy the condition.
async fn until(served: &Served, condition_name: &str, condition: impl Fn(&Stats) -> bool) {
    let started = Instant::now();
    while !condition(&served.etcd.stats()) {
        assert!(
            started.elapsed() < WAIT_TIMEOUT,
            "{condition_name} does not happen: {:?}",
            served.etcd.stats()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Fails if a key was logged by any test.
fn no_key_was_logged(pairs: &[&Pair]) {
    let log = log::all();
    for pair in pairs {
        for line in pair.key.lines().filter(|line| !line.contains("-----")) {
            assert!(!log.contains(line));
        }
    }
}

#[tokio::test]
async fn new_connections_get_the_new_certificate_and_open_watches_go_on() {
    let authority = Authority::new("server");
    let (old, new) = (authority.issue(1), authority.issue(2));
    let mut secret = MountedSecret::new(&pair(&old));
    let served = served(secret.tls()).await;
    let prober = Prober::new(&authority, None);
    assert_eq!(prober.server_certificate(served.address).await, old.der());
    let mut watcher =
        Watcher::open(channel(served.address, client(&authority, None)).await.unwrap()).await.unwrap();
    watcher.create(watch_under("/p/web/", 0)).await;

    secret.replace(&pair(&new));
    until(&served, "the rotation", |stats| stats.tls_rotations == 1).await;
    assert_eq!(prober.server_certificate(served.address).await, new.der());
    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);

    // A rewrite without a change is no rotation, and none of this is a warning.
    secret.replace(&pair(&new));
    let back = authority.issue(3);
    secret.replace(&pair(&back));
    until(&served, "the second rotation", |stats| stats.tls_rotations == 2).await;
    assert_eq!(prober.server_certificate(served.address).await, back.der());
    assert_eq!(served.etcd.stats().tls_rotations_refused, 0);
    assert_eq!(log::warnings(&secret.name()), Vec::<String>::new());
    no_key_was_logged(&[&old, &new, &back]);
}

#[tokio::test]
async fn a_pair_that_is_replaced_while_it_is_read_is_not_taken_for_a_broken_one() {
    let authority = Authority::new("server");
    let pairs: Vec<Pair> = (1..=300).map(|serial| authority.issue(serial)).collect();
    let mut secret = MountedSecret::new(&pair(&pairs[0]));
    let served = served(secret.tls().reread_interval(Duration::from_millis(1))).await;
    let last = pairs.last().unwrap().clone();
    let replacing = tokio::task::spawn_blocking(move || {
        for next in &pairs {
            secret.replace(&pair(next));
            std::thread::sleep(Duration::from_millis(2));
        }
        secret
    });
    let _mount = replacing.await.unwrap();
    let prober = Prober::new(&authority, None);
    let started = Instant::now();
    while prober.server_certificate(served.address).await != last.der() {
        assert!(started.elapsed() < WAIT_TIMEOUT, "the last certificate does not come");
    }
    assert_eq!(served.etcd.stats().tls_rotations_refused, 0);
}

#[tokio::test]
async fn an_unusable_pair_keeps_the_last_good_one_and_is_logged_once() {
    let authority = Authority::new("server");
    let (old, new) = (authority.issue(1), authority.issue(2));
    let mut secret = MountedSecret::new(&pair(&old));
    let served = served(secret.tls()).await;
    let prober = Prober::new(&authority, None);
    let mut watcher =
        Watcher::open(channel(served.address, client(&authority, None)).await.unwrap()).await.unwrap();
    watcher.create(watch_under("/p/web/", 0)).await;

    let key = &old.key[..old.key.len() / 2];
    let broken: [(&[(&str, &str)], &str); 4] = [
        // The certificate has arrived, and its key has not.
        (&[("tls.crt", &new.certificate), ("tls.key", &old.key)], "is not the key of the certificate"),
        (&[("tls.crt", &new.certificate)], "tls.key cannot be read: No such file"),
        (&[("tls.crt", &old.certificate), ("tls.key", key)], "tls.key is not PEM"),
        (&[("tls.crt", ""), ("tls.key", &new.key)], "tls.crt is not PEM"),
    ];
    for (number, (files, message)) in (1..).zip(broken) {
        secret.replace(files);
        until(&served, message, |stats| stats.tls_rotations_refused == number).await;
        assert_eq!(prober.server_certificate(served.address).await, old.der(), "{message}");
        let warnings = log::warnings(&secret.name());
        assert_eq!(warnings.len() as u64, number, "{warnings:#?}");
        assert!(warnings.last().unwrap().contains(message), "{warnings:#?}");
    }
    // After many checks it is still logged once.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(log::warnings(&secret.name()).len(), 4);
    assert_eq!(served.etcd.stats().tls_rotations, 0);

    secret.replace(&pair(&new));
    until(&served, "the rotation", |stats| stats.tls_rotations == 1).await;
    assert_eq!(prober.server_certificate(served.address).await, new.der());
    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);
    no_key_was_logged(&[&old, &new]);
}

#[tokio::test]
async fn a_new_client_ca_judges_new_connections_alone() {
    let servers = Authority::new("servers");
    let (old, new) = (Authority::new("clients"), Authority::new("clients"));
    let (own, old_client, new_client) = (servers.issue(1), old.issue(2), new.issue(3));
    let files = |ca: &Authority| {
        [("tls.crt", own.certificate.clone()), ("tls.key", own.key.clone()), ("ca.crt", ca.pem())]
    };
    let mut secret = MountedSecret::new(&files(&old));
    let served = served(secret.tls().client_ca_file(secret.path("ca.crt"))).await;
    let open = async |pair: &Pair| {
        let channel = channel(served.address, client(&servers, Some(pair))).await.ok()?;
        let mut watcher = Watcher::open(channel).await.ok()?;
        watcher.create(watch_under("/p/web/", 0)).await;
        Some(watcher)
    };
    let mut watcher = open(&old_client).await.unwrap();
    assert!(open(&new_client).await.is_none());

    secret.replace(&files(&new));
    until(&served, "the rotation", |stats| stats.tls_rotations == 1).await;
    assert!(open(&old_client).await.is_none());
    let mut renewed = open(&new_client).await.unwrap();
    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    for watcher in [&mut watcher, &mut renewed] {
        assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);
    }

    // A missing bundle does not admit clients without a certificate.
    secret.replace(&files(&new)[..2]);
    until(&served, "the refusal", |stats| stats.tls_rotations_refused == 1).await;
    assert!(open(&old_client).await.is_none());
    assert!(open(&new_client).await.is_some());
    let ca = secret.path("ca.crt").display().to_string();
    assert!(log::warnings(&ca)[0].contains("cannot be read"), "{:?}", log::warnings(&ca));
}

struct ManualClock(Mutex<SystemTime>);

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.lock()
    }
}

#[tokio::test]
async fn a_certificate_out_of_its_time_is_served_and_named_once() {
    log::keep();
    let authority = Authority::new("server");
    let old = authority.issue_with(1, |params| {
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 2, 1);
    });
    let day = |days: u64| SystemTime::UNIX_EPOCH + Duration::from_hours(24 * days);
    let (before, during, after) = (day(20_400), day(20_460), day(20_500));
    let secret = MountedSecret::new(&pair(&old));
    let clock = Arc::new(ManualClock(Mutex::new(before)));
    let served = Served::start(EmbeddedEtcd::builder().tls(secret.tls()).clock(clock.clone())).await;
    let warnings = async |count: usize| {
        let started = Instant::now();
        while log::warnings(&secret.name()).len() < count {
            assert!(started.elapsed() < WAIT_TIMEOUT, "{:?}", log::warnings(&secret.name()));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // Time for checks that could log it again.
        tokio::time::sleep(Duration::from_millis(30)).await;
        log::warnings(&secret.name())
    };
    let early = warnings(1).await;
    assert!(early.len() == 1 && early[0].contains("is not valid yet"), "{early:?}");
    *clock.0.lock() = during;
    assert_eq!(warnings(1).await.len(), 1);
    *clock.0.lock() = after;
    let late = warnings(2).await;
    assert!(late.len() == 2 && late[1].contains("has expired"), "{late:?}");
    // The client judges by its own clock.
    let error = Prober::new(&authority, None).connect(served.address).await.unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
}

#[tokio::test]
async fn a_failed_handshake_is_logged_with_the_reason() {
    let log = log::ThreadLog::keep();
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let served = served(servers.issue(1).server().client_ca_pem(clients.pem())).await;
    for _ in 0..3 {
        // With TLS 1.3 the client learns of the refusal only when it reads.
        let _ = Prober::new(&servers, None).connect(served.address).await;
    }
    until(&served, "three failures", |stats| stats.handshakes_failed == 3).await;
    let output = log.warnings("peer sent no certificates");
    assert_eq!(
        output.iter().filter(|line| line.contains("a TLS handshake failed")).count(),
        1,
        "{output:#?}"
    );
}
