//! The embedded server.

use pingsix_sink::error::SinkErrorSource as _;
use pingsix_sink::etcd::ClientTls;
use pingsix_sink::{EmbeddedEtcd, Sink as _};

use crate::authority::{Authority, NAME};
use crate::reading::{builder, builder_of, content, next, owned, until, web};
use crate::wire::Served;
use pingsix_sink::contract::documents::desired;

async fn served() -> Served {
    let served = Served::start(EmbeddedEtcd::builder()).await;
    served.etcd.publish(&desired("/s/web", &[("upstreams/u", "1"), ("routes/r", "1")])).await.unwrap();
    served.etcd.open();
    served
}

#[tokio::test]
async fn publications_are_followed() {
    let served = served().await;
    let mut reader = builder(served.address).reader(web()).unwrap();
    let (first, pairs) = content(&mut reader).await;
    assert_eq!(pairs, owned(&[("routes/r", "1"), ("upstreams/u", "1")]));
    let published = served.etcd.publish(&desired("/s/web", &[("upstreams/u", "1"), ("routes/r", "2")])).await;
    let (revision, pairs) = content(&mut reader).await;
    assert!(revision > first && revision == published.unwrap().revision.get());
    assert_eq!(pairs, owned(&[("routes/r", "2"), ("upstreams/u", "1")]));
    served.etcd.publish(&desired("/s/web", &[])).await.unwrap();
    until(&mut reader, &[]).await;
}

#[tokio::test]
async fn a_long_list_is_read_as_a_whole() {
    let served = served().await;
    let documents: Vec<(String, String)> =
        (0..3_000).map(|number| (format!("routes/r{number:05}"), number.to_string())).collect();
    let documents: Vec<(&str, &str)> =
        documents.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    served.etcd.publish(&desired("/s/web", &documents)).await.unwrap();
    let mut reader = builder(served.address).reader(web()).unwrap();
    assert_eq!(content(&mut reader).await.1, owned(&documents));
}

/// Replicas count their own revisions.
#[tokio::test]
async fn another_server_at_the_same_address_is_listed_and_replaces_everything() {
    let served = served().await;
    for value in ["2", "3", "4"] {
        served.etcd.publish(&desired("/s/web", &[("upstreams/u", value)])).await.unwrap();
    }
    let mut reader = builder(served.address).reader(web()).unwrap();
    until(&mut reader, &[("upstreams/u", "4")]).await;
    let before = reader.content().revision;
    let address = served.address;
    drop(served.stop().await);
    assert_eq!(next(&mut reader).await.unwrap_err().category(), "etcd_unavailable");
    let other = EmbeddedEtcd::builder().start().await.unwrap();
    other.publish(&desired("/s/web", &[("routes/new", "1")])).await.unwrap();
    other.open();
    let served = Served::serve_on(other, address).await;
    until(&mut reader, &[("routes/new", "1")]).await;
    // The server may have begun above or below; either way its revisions count now.
    let after = reader.content().revision;
    assert_ne!(before, after);
    let published = served.etcd.publish(&desired("/s/web", &[("routes/new", "2")])).await.unwrap();
    until(&mut reader, &[("routes/new", "2")]).await;
    assert_eq!(reader.content().revision, published.revision.get());
}

#[tokio::test]
async fn a_scope_that_is_not_there_yet_is_waited_for() {
    let served = served().await;
    let scope = pingsix_sink::contract::documents::scope("/s/later");
    let mut reader = pingsix_sink::etcd::Builder::new([served.address.to_string()]).reader(scope).unwrap();
    let error = next(&mut reader).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    served.etcd.publish(&desired("/s/later", &[("routes/r", "1")])).await.unwrap();
    until(&mut reader, &[("routes/r", "1")]).await;
}

#[tokio::test]
async fn both_sides_prove_themselves() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let tls = servers.issue(1).server().client_ca_pem(clients.pem());
    let served = Served::start(EmbeddedEtcd::builder().tls(tls)).await;
    served.etcd.publish(&desired("/s/web", &[("routes/r", "1")])).await.unwrap();
    served.etcd.open();
    let url = format!("https://{}", served.address);
    let client = clients.issue(2);
    let known = ClientTls::ca_pem(servers.pem()).domain(NAME);
    let mut reader = builder_of(&url)
        .tls(known.clone().identity_pem(client.certificate.as_str(), client.key.as_str()))
        .reader(web())
        .unwrap();
    until(&mut reader, &[("routes/r", "1")]).await;
    let mut stranger = builder_of(&url).tls(known).reader(web()).unwrap();
    let error = next(&mut stranger).await.unwrap_err();
    assert_eq!(error.category(), "etcd_unavailable", "without a certificate: {error}");
}

#[tokio::test]
async fn options_that_cannot_be_used_are_refused() {
    for (endpoint, category) in [
        ("http://192.0.2.1:2379", "plaintext_beyond_loopback"),
        ("https://127.0.0.1:2379", "etcd_option"),
        ("127.0.0.1", "etcd_option"),
    ] {
        let error = builder_of(endpoint).reader(web()).unwrap_err();
        assert_eq!((error.category(), error.is_retryable()), (category, false), "{error}");
    }
    assert!(builder_of("http://192.0.2.1:2379").allow_plaintext_beyond_loopback().reader(web()).is_ok());
}
