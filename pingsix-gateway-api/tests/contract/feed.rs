//! The configuration itself, read over TLS: PingSIX proves itself to the server and the server to PingSIX.

use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::ServerTls;
use pingsix_translate::pingsix::Request;

use crate::authority::Authority;
use crate::client::{Client, Protocol};
use crate::etcd::Etcd;
use crate::mirror::Mirror;
use crate::process::{FeedTls, PingSix, Verdict, WAIT_TIMEOUT};
use crate::run::{binary, print_message};

const SCOPE: &str = "/contract/feed";

/// One route to a backend.
fn route(path: &str, backend: &Mirror) -> Vec<(String, Bytes)> {
    let upstream = format!(r#"{{"nodes":{{"{}":1}}}}"#, backend.address);
    let route = format!(r#"{{"uri":"{path}","upstream_id":"one"}}"#);
    vec![("upstreams/one".to_owned(), upstream.into()), ("routes/one".to_owned(), route.into())]
}

async fn status(pingsix: &PingSix, path: &str) -> u16 {
    let mut client = Client::new(Protocol::Http1, pingsix.address, None);
    client.ask(&Request::get("shop.test", path)).await.unwrap().status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_reads_over_tls_and_proves_itself_where_it_must() {
    const TEST: &str = "feed over TLS";
    let Some(binary) = binary(TEST) else { return };
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let backend = Mirror::start().await;
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |(certificate, key): &(String, String)| {
        fs::write(path("tls.crt"), certificate).unwrap();
        fs::write(path("tls.key"), key).unwrap();
    };
    for mutual in [false, true] {
        write(&servers.issue());
        let mut tls = ServerTls::from_files(path("tls.crt"), path("tls.key"))
            .reread_interval(Duration::from_millis(10));
        if mutual {
            tls = tls.client_ca_pem(clients.pem());
        }
        let etcd = Etcd::start_with(EmbeddedEtcd::builder().tls(tls), &[SCOPE.to_owned()]).await;
        let identity = mutual.then(|| clients.issue());
        let feed = FeedTls { ca: servers.pem(), identity };
        let pingsix = PingSix::start_reading(&feed, &binary, etcd.address, SCOPE).await;
        let revision = etcd.publish_raw(SCOPE, &route("/one", &backend)).await;
        assert_eq!(pingsix.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
        assert_eq!(status(&pingsix, "/one").await, 200);

        // The certificate of the server is replaced: the watch goes on, and new clients verify the new certificate.
        let lists = etcd.stats().lists;
        write(&servers.issue());
        let started = Instant::now();
        while etcd.stats().tls_rotations == 0 {
            assert!(started.elapsed() < WAIT_TIMEOUT, "the certificate is not replaced");
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        let revision = etcd.publish_raw(SCOPE, &route("/two", &backend)).await;
        assert_eq!(pingsix.verdict(revision, WAIT_TIMEOUT).await, Verdict::Accepted);
        assert_eq!((status(&pingsix, "/one").await, status(&pingsix, "/two").await), (404, 200));
        assert_eq!(etcd.stats().lists, lists, "it came by the watch");
        drop(pingsix);
        let pingsix = PingSix::start_reading(&feed, &binary, etcd.address, SCOPE).await;
        assert_eq!(status(&pingsix, "/two").await, 200);
    }
    print_message(&format!(
        "{TEST}: read with and without a client certificate, before and after a rotation"
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pingsix_that_does_not_prove_itself_reads_nothing() {
    const TEST: &str = "feed over TLS, strangers";
    let Some(binary) = binary(TEST) else { return };
    let (servers, clients, foreign) =
        (Authority::new("servers"), Authority::new("clients"), Authority::new("clients"));
    let (certificate, key) = servers.issue();
    let tls = ServerTls::from_pem(certificate, key).client_ca_pem(clients.pem());
    let etcd = Etcd::start_with(EmbeddedEtcd::builder().tls(tls), &[SCOPE.to_owned()]).await;
    let strangers = [
        ("no certificate", FeedTls { ca: servers.pem(), identity: None }),
        (
            "a certificate of another authority",
            FeedTls { ca: servers.pem(), identity: Some(foreign.issue()) },
        ),
        ("another authority trusted", FeedTls { ca: foreign.pem(), identity: Some(clients.issue()) }),
    ];
    for (who, feed) in &strangers {
        let before = etcd.stats().handshakes_failed;
        let pingsix = PingSix::launch_reading(feed, &binary, etcd.address, SCOPE).await;
        let started = Instant::now();
        // PingSIX keeps retrying.
        while etcd.stats().handshakes_failed < before + 2 {
            assert!(started.elapsed() < WAIT_TIMEOUT, "{who}: {}", pingsix.log());
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        assert!(!pingsix.status().await.initialized, "{who}");
    }
    assert_eq!(etcd.stats().lists, 0);

    // The client's files are replaced, and PingSIX needs no restart.
    let [_, (_, stranger), _] = &strangers;
    let pingsix = PingSix::launch_reading(stranger, &binary, etcd.address, SCOPE).await;
    pingsix.replace_feed(&FeedTls { ca: servers.pem(), identity: Some(clients.issue()) });
    let revision = etcd.publish_raw(SCOPE, &[]).await;
    pingsix.published(revision).await;
    print_message(&format!(
        "{TEST}: {} refused, and one of them read with a new certificate",
        strangers.len()
    ));
}
