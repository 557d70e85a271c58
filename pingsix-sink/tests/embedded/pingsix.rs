//! The real PingSIX lists and watches from the server. Runs when `PINGSIX_BIN` names its binary.

use std::time::Duration;

use crate::authority::Authority;
use crate::data_plane::{PingSix, backend, state};
use crate::wire::Served;
use pingsix_sink::contract::documents::{desired, scope};
use pingsix_sink::embedded::{Access, Clients};
use pingsix_sink::{EmbeddedEtcd, Sink};
use pingsix_test_programs::free_address;
use rcgen::DnType;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_follows_publications_and_survives_a_restart_of_the_server() {
    let Some(binary) = pingsix_test_programs::pingsix() else { return };
    let directory = tempfile::tempdir().unwrap();
    let revisions = directory.path().join("revisions");
    let backends = [("one", backend("one").await), ("two", backend("two").await)];

    let etcd = EmbeddedEtcd::builder().state_file(&revisions).start().await.unwrap();
    let address = free_address();
    let served = Served::serve_on(etcd, address).await;
    let pingsix = PingSix::start(&binary, directory.path(), address);

    // The publication is not complete yet: PingSIX gets no response.
    let first = state(&backends, &[("a", "one"), ("b", "one")]);
    let published = served.etcd.publish(&first).await.unwrap().revision.get();
    let mut tries = tokio::time::interval(Duration::from_millis(50));
    while served.etcd.stats().refused == 0 {
        tries.tick().await;
    }
    assert_eq!(pingsix.status("published_revision").await, None);
    served.etcd.open();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await, (200, "one".to_owned()));
    assert_eq!(pingsix.get("/b").await, (200, "one".to_owned()));

    // An update, a deletion and an addition in one publication.
    let lists = served.etcd.stats().lists;
    let second = state(&backends, &[("a", "two"), ("c", "one")]);
    let published = served.etcd.publish(&second).await.unwrap().revision.get();
    assert_eq!(pingsix.wait_published(published).await, published);
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    assert_eq!(pingsix.get("/b").await.0, 404);
    assert_eq!(pingsix.get("/c").await.0, 200);
    assert_eq!(served.etcd.stats().lists, lists, "it came by the watch");

    // The server restarts; during and after the restart every route is served.
    drop(served.stop().await);
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    let etcd = EmbeddedEtcd::builder().state_file(&revisions).start().await.unwrap();
    assert!(etcd.revision().get() > published);
    let served = Served::serve_on(etcd, address).await;
    while served.etcd.stats().refused == 0 {
        tries.tick().await;
        assert_eq!(pingsix.get("/c").await.0, 200);
    }
    let published = served.etcd.publish(&second).await.unwrap().revision.get();
    served.etcd.open();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    assert_eq!(pingsix.get("/b").await.0, 404);

    // The watch continues at the new server, and a withdrawn scope is empty.
    let published = served.etcd.publish(&first).await.unwrap().revision.get();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/b").await, (200, "one".to_owned()));
    let published = served.etcd.withdraw(&scope("/p/web")).await.unwrap().revision.get();
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await.0, 404);
    pingsix.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_shows_its_certificate_and_is_told_a_burst_in_few_responses() {
    const CHANGES: usize = 200;
    let Some(binary) = pingsix_test_programs::pingsix() else { return };
    let directory = tempfile::tempdir().unwrap();
    let revisions = directory.path().join("revisions");
    let backends = [("one", backend("one").await), ("two", backend("two").await)];
    let (servers, authority) = (Authority::new("servers"), Authority::new("clients"));
    let certificate =
        authority.issue_with(2, |params| params.distinguished_name.push(DnType::CommonName, "web"));
    let start = async || {
        let access = Access::of(Clients::new().certificate("web", [scope("/p/web")]));
        let tls = servers.issue(1).server().client_ca_pem(authority.pem());
        let builder = EmbeddedEtcd::builder().tls(tls).access(access).state_file(&revisions);
        let etcd = builder.start().await.unwrap();
        etcd.publish(&desired("/p/api", &[("routes/a", "not for this client")])).await.unwrap();
        etcd
    };
    let etcd = start().await;
    let published = etcd.publish(&state(&backends, &[("a", "one")])).await.unwrap().revision.get();
    etcd.open();
    let address = free_address();
    let served = Served::serve_on(etcd, address).await;
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let options = format!(
        "\x20   tls: {{ ca_cert: {}, client_cert: {}, client_key: {} }}\n",
        file("ca.crt", &servers.pem()),
        file("client.crt", &certificate.certificate),
        file("client.key", &certificate.key)
    );
    let pingsix = PingSix::start_with(&binary, directory.path(), &format!("https://{address}"), &options);
    pingsix.wait_published(published).await;

    let (before, mut last) = (served.etcd.stats(), 0);
    for change in 0..CHANGES {
        let to = if change % 2 == 0 { "two" } else { "one" };
        let next = state(&backends, &[("a", to), (if change % 3 == 0 { "b" } else { "c" }, "one")]);
        last = served.etcd.publish(&next).await.unwrap().revision.get();
    }
    pingsix.wait_published(last).await;
    assert_eq!(pingsix.get("/a").await, (200, "one".to_owned()));
    assert_eq!(pingsix.get("/c").await.0, 200);
    assert_eq!(pingsix.get("/b").await.0, 404);
    let after = served.etcd.stats();
    assert_eq!(after.lists, before.lists, "the watch went on");
    let responses = after.watch_responses - before.watch_responses;
    assert!(responses < CHANGES as u64 / 2, "{responses} responses for {CHANGES} changes");

    // The next server admits PingSIX by the same certificate.
    drop(served.stop().await);
    let etcd = start().await;
    let published = etcd.publish(&state(&backends, &[("a", "two")])).await.unwrap().revision.get();
    etcd.open();
    let served = Served::serve_on(etcd, address).await;
    pingsix.wait_published(published).await;
    assert_eq!(pingsix.get("/a").await, (200, "two".to_owned()));
    assert_eq!(served.etcd.stats().denied, 0);
    pingsix.kill().await;
}
