//! A real etcd. Runs when `etcd` and `etcdctl` are on the PATH.

use std::time::{Duration, Instant};

use pingsix_sink::error::SinkErrorSource as _;
use pingsix_sink::etcd::ClientTls;
use pingsix_sink::{EtcdSink, Sink as _};
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use pingsix_test_programs::proto::etcdserverpb::request_op;
use pingsix_test_programs::proto::etcdserverpb::{PutRequest, RequestOp, TxnRequest};
use pingsix_test_programs::{Etcd, Signal};

use crate::authority::{Authority, NAME};
use crate::reading::{builder, builder_of, content, next, owned, until, web};
use crate::wire::channel;
use pingsix_sink::contract::documents::desired;

async fn put(etcd: &Etcd, key: &str, value: &str) {
    etcd.control(&["put", key, value]).await;
}

#[tokio::test]
async fn changes_follow_the_list() {
    let Some(etcd) = Etcd::start().await else { return };
    put(&etcd, "/s/webinar/a", "no").await;
    put(&etcd, "/s/web/.guard", "no").await;
    put(&etcd, "/s/web/a/1", "one").await;
    let mut reader = builder(etcd.address()).reader(web()).unwrap();
    let (listed, pairs) = content(&mut reader).await;
    assert_eq!((listed, pairs), (4, owned(&[("a/1", "one")])));

    put(&etcd, "/s/web/a/2", "two").await;
    assert_eq!(content(&mut reader).await, (5, owned(&[("a/1", "one"), ("a/2", "two")])));
    put(&etcd, "/s/webinar/a", "no").await;
    etcd.control(&["del", "/s/web/a/1"]).await;
    assert_eq!(content(&mut reader).await, (7, owned(&[("a/2", "two")])));

    // A sink's documents come without the sink's own records.
    let sink = EtcdSink::builder([etcd.address().to_string()]).build().unwrap();
    sink.publish(&desired("/s/web", &[("upstreams/u", "1"), ("routes/r", "2")])).await.unwrap();
    until(&mut reader, &[("a/2", "two"), ("routes/r", "2"), ("upstreams/u", "1")]).await;
}

#[tokio::test]
async fn a_transaction_applies_as_a_whole() {
    let Some(etcd) = Etcd::start().await else { return };
    let mut reader = builder(etcd.address()).reader(web()).unwrap();
    assert_eq!(content(&mut reader).await.1, owned(&[]));
    let put = |number: usize| {
        let put = PutRequest {
            key: format!("/s/web/{number}").into(),
            value: vec![b'x'; 1000].into(),
            ..PutRequest::default()
        };
        RequestOp { request: Some(request_op::Request::RequestPut(put)) }
    };
    let success = (0..100).map(put).collect();
    let mut kv = KvClient::new(channel(etcd.address()).await);
    kv.txn(TxnRequest { success, ..TxnRequest::default() }).await.unwrap();
    assert_eq!(content(&mut reader).await.1.len(), 100);
}

#[tokio::test]
async fn a_long_list_is_read_as_a_whole() {
    let Some(etcd) = Etcd::start().await else { return };
    let documents: Vec<(String, String)> =
        (0..2_000).map(|number| (format!("routes/r{number:05}"), "x".repeat(number % 700))).collect();
    let documents: Vec<(&str, &str)> =
        documents.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let sink = EtcdSink::builder([etcd.address().to_string()]).build().unwrap();
    let published = sink.publish(&desired("/s/web", &documents)).await.unwrap();
    let mut reader = builder(etcd.address()).reader(web()).unwrap();
    let (revision, pairs) = content(&mut reader).await;
    assert!(revision >= published.revision.get());
    assert_eq!(pairs, owned(&documents));
}

#[tokio::test]
async fn a_list_within_the_limit_is_read_and_a_larger_one_refused() {
    let Some(etcd) = Etcd::start().await else { return };
    let value = "x".repeat(1_000_000);
    let mut kv = KvClient::new(channel(etcd.address()).await);
    for number in 0..80 {
        let (key, value) = (format!("/s/web/{number:03}").into(), value.clone().into());
        kv.put(PutRequest { key, value, ..PutRequest::default() }).await.unwrap();
    }
    let mut reader = builder(etcd.address()).timeout(Duration::from_secs(20)).reader(web()).unwrap();
    assert_eq!(next(&mut reader).await.unwrap().by_key.len(), 80);

    let mut bounded =
        builder(etcd.address()).timeout(Duration::from_secs(20)).max_bytes(70 << 20).reader(web()).unwrap();
    let error = next(&mut bounded).await.unwrap_err();
    assert_eq!((error.category(), error.is_retryable()), ("etcd_too_large", true), "{error}");
    assert_eq!(bounded.content().revision, 0);
}

#[tokio::test]
async fn content_above_the_limit_keeps_the_last_good_content() {
    let Some(etcd) = Etcd::start().await else { return };
    put(&etcd, "/s/web/a", "one").await;
    let mut reader = builder(etcd.address()).max_bytes(1_000).reader(web()).unwrap();
    content(&mut reader).await;
    put(&etcd, "/s/web/b", &"x".repeat(1_000)).await;
    let error = next(&mut reader).await.unwrap_err();
    assert_eq!(error.category(), "etcd_too_large");
    assert_eq!(crate::reading::shown(reader.content()), (2, owned(&[("a", "one")])));
    etcd.control(&["del", "/s/web/b"]).await;
    put(&etcd, "/s/web/c", "three").await;
    until(&mut reader, &[("a", "one"), ("c", "three")]).await;
}

#[tokio::test]
async fn an_etcd_that_is_killed_is_listed_again() {
    let Some(mut etcd) = Etcd::start().await else { return };
    put(&etcd, "/s/web/a", "one").await;
    let mut reader = builder(etcd.address()).reader(web()).unwrap();
    content(&mut reader).await;
    etcd.kill().await;
    let error = next(&mut reader).await.unwrap_err();
    assert_eq!(error.category(), "etcd_unavailable", "{error}");
    // Attempts have pauses between them.
    let begun = Instant::now();
    for _ in 0..4 {
        assert_eq!(next(&mut reader).await.unwrap_err().category(), "etcd_unavailable");
    }
    assert!(begun.elapsed() > Duration::from_millis(100 + 200 + 400 + 800), "{:?}", begun.elapsed());
    assert_eq!(reader.content().by_key.len(), 1);
    etcd.start_again().await;
    put(&etcd, "/s/web/b", "two").await;
    until(&mut reader, &[("a", "one"), ("b", "two")]).await;

    // A store that was lost has lower revisions.
    etcd.kill().await;
    etcd.start_empty().await;
    put(&etcd, "/s/web/c", "three").await;
    until(&mut reader, &[("c", "three")]).await;
    assert_eq!(reader.content().revision, 2);
}

#[tokio::test]
async fn a_compacted_watch_is_followed_by_a_list() {
    let Some(etcd) = Etcd::start().await else { return };
    put(&etcd, "/s/web/a", "one").await;
    let mut reader = builder(etcd.address()).reader(web()).unwrap();
    content(&mut reader).await;
    // The reader reads nothing meanwhile; the changes are in its connection, or are compacted.
    for number in 0..50 {
        put(&etcd, "/s/web/a", &number.to_string()).await;
    }
    etcd.control(&["compact", "50"]).await;
    until(&mut reader, &[("a", "49")]).await;
}

#[tokio::test]
async fn another_endpoint_is_used_when_one_is_not_there() {
    let Some(etcd) = Etcd::start().await else { return };
    put(&etcd, "/s/web/a", "one").await;
    let endpoints = ["127.0.0.1:1".to_owned(), etcd.address().to_string()];
    let scope = pingsix_sink::contract::documents::scope("/s/web");
    let mut reader = pingsix_sink::etcd::Builder::new(endpoints).reader(scope).unwrap();
    assert_eq!(until(&mut reader, &[("a", "one")]).await, ["etcd_unavailable"]);
}

#[tokio::test]
async fn a_silent_etcd_is_an_error_in_time() {
    let Some(etcd) = Etcd::start().await else { return };
    put(&etcd, "/s/web/a", "one").await;
    etcd.signal(Signal::Pause);
    let mut reader = builder(etcd.address()).reader(web()).unwrap();
    let error = next(&mut reader).await.unwrap_err();
    assert!(["etcd_timeout", "etcd_unavailable"].contains(&error.category()), "{error}");
    etcd.signal(Signal::Continue);
    until(&mut reader, &[("a", "one")]).await;
}

#[tokio::test]
async fn a_certificate_is_read_again_for_each_connection() {
    let authority = Authority::new("etcd");
    let (server, client) = (authority.issue(2), authority.issue(3));
    let directory = tempfile::tempdir().unwrap();
    let own = tempfile::tempdir().unwrap();
    let write = |folder: &std::path::Path, name: &str, content: &str| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let ca = write(directory.path(), "ca.pem", &authority.pem());
    let certificate = write(directory.path(), "cert.pem", &server.certificate);
    let key = write(directory.path(), "key.pem", &server.key);
    let options =
        ["--cert-file", &certificate, "--key-file", &key, "--trusted-ca-file", &ca, "--client-cert-auth"];
    let Some(mut etcd) = Etcd::start_encrypted(directory, &options).await else { return };

    let stranger = Authority::new("stranger").issue(4);
    let trusted = write(own.path(), "ca.pem", &authority.pem());
    let [certificate, key] = [("cert.pem", &stranger.certificate), ("key.pem", &stranger.key)]
        .map(|(name, content)| write(own.path(), name, content));
    let tls = ClientTls::ca_file(trusted).identity_files(&certificate, &key).domain(NAME);
    let mut reader = builder_of(&etcd.url()).tls(tls).reader(web()).unwrap();
    let error = next(&mut reader).await.unwrap_err();
    assert_eq!(error.category(), "etcd_unavailable", "another authority's certificate: {error}");
    std::fs::write(&certificate, &client.certificate).unwrap();
    std::fs::write(&key, &client.key).unwrap();
    until(&mut reader, &[]).await;
    // A file that is gone is an error, and the connection in use goes on.
    std::fs::remove_file(&key).unwrap();
    etcd.kill().await;
    etcd.start_again().await;
    let mut categories = vec![next(&mut reader).await.unwrap_err().category()];
    categories.push(next(&mut reader).await.unwrap_err().category());
    assert_eq!(categories, ["etcd_unavailable", "etcd_file"]);
    std::fs::write(&key, &client.key).unwrap();
    until(&mut reader, &[]).await;
    assert!(!format!("{reader:?}").contains("PRIVATE"));
}
