//! TLS: admitted clients and protocols, and the effect of refused clients on others.

use std::time::{Duration, Instant};

use crate::authority::{Authority, Pair, Prober, channel, client};
use crate::wire::{Served, WAIT_TIMEOUT, Watcher, events, pairs, under, watch_under};
use pingsix_sink::contract::documents::desired;
use pingsix_sink::embedded::{Builder, EmbeddedError, ServerTls};
use pingsix_sink::{EmbeddedEtcd, Sink};
use pingsix_test_programs::proto::etcdserverpb::kv_client::KvClient;
use rcgen::ExtendedKeyUsagePurpose;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::rustls::{HandshakeKind, ProtocolVersion, version};
use tonic::transport::{Channel, ClientTlsConfig};

/// A server with one scope.
async fn served(tls: ServerTls) -> Served {
    let served = Served::start(EmbeddedEtcd::builder().tls(tls)).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "A")])).await.unwrap();
    served.etcd.open();
    served
}

/// The list of a client; with TLS 1.3 a refused certificate becomes known only then.
async fn list(served: &Served, tls: ClientTlsConfig) -> Result<Vec<String>, String> {
    let asking = async {
        let channel = channel(served.address, tls).await.map_err(|error| format!("{error:?}"))?;
        let response = KvClient::new(channel).range(under("/p/web/")).await;
        Ok(pairs(&response.map_err(|error| format!("{error:?}"))?.into_inner()))
    };
    tokio::time::timeout(WAIT_TIMEOUT, asking).await.expect("an answer in time")
}

async fn until(condition_name: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < WAIT_TIMEOUT, "{condition_name} does not happen");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the server closes the connection.
async fn closed(connection: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    // A reset is an end too.
    tokio::time::timeout(WAIT_TIMEOUT, connection.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_lists_and_watches() {
    let authority = Authority::new("server");
    let served = served(authority.issue(1).server()).await;
    assert_eq!(list(&served, client(&authority, None)).await.unwrap(), ["/p/web/routes/a=A"]);

    let channel = channel(served.address, client(&authority, None)).await.unwrap();
    let mut watcher = Watcher::open(channel).await.unwrap();
    watcher.create(watch_under("/p/web/", 0)).await;
    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);

    assert_eq!(served.etcd.stats().handshakes_failed, 0);
    drop(watcher);
    served.stop().await;
}

#[tokio::test]
async fn a_client_that_trusts_another_authority_does_not_speak_to_the_server() {
    let (authority, other) = (Authority::new("server"), Authority::new("other"));
    let served = served(authority.issue(1).server()).await;
    let refused = list(&served, client(&other, None)).await.unwrap_err();
    assert!(refused.contains("UnknownIssuer"), "{refused}");
    until("the failure", || served.etcd.stats().handshakes_failed == 1).await;
    assert!(list(&served, client(&authority, None)).await.is_ok());
}

#[tokio::test]
async fn with_a_client_ca_only_its_certificates_are_served() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let foreign = Authority::new("foreign");
    // A CA with the name of the right one and another key.
    let namesake = Authority::new("clients");
    let served = served(servers.issue(1).server().client_ca_pem(clients.pem())).await;

    let known = clients.issue(2);
    assert_eq!(list(&served, client(&servers, Some(&known))).await.unwrap(), ["/p/web/routes/a=A"]);
    assert_eq!(served.etcd.stats().handshakes_failed, 0);

    let expired = clients.issue_with(3, |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    let of_a_server = clients.issue_with(4, |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let strangers: [(&str, Option<Pair>); 6] = [
        ("no certificate", None),
        ("another authority", Some(foreign.issue(2))),
        ("the authority of servers", Some(servers.issue(2))),
        ("an authority of the same name", Some(namesake.issue(2))),
        ("an expired certificate", Some(expired)),
        ("a certificate for servers", Some(of_a_server)),
    ];
    for (number, (who, identity)) in (1..).zip(strangers) {
        let listed = list(&served, client(&servers, identity.as_ref())).await;
        assert!(listed.is_err(), "{who}: {listed:?}");
        until(who, || served.etcd.stats().handshakes_failed >= number).await;
    }
    assert_eq!(served.etcd.stats().lists, 1);
    assert!(list(&served, client(&servers, Some(&known))).await.is_ok());
}

#[tokio::test]
async fn a_bundle_may_hold_several_authorities() {
    let (servers, old, new) = (Authority::new("servers"), Authority::new("old"), Authority::new("new"));
    let bundle = format!("The authorities:\n{}\n{}", old.pem(), new.pem());
    let served = served(servers.issue(1).server().client_ca_pem(bundle)).await;
    for authority in [&old, &new] {
        list(&served, client(&servers, Some(&authority.issue(2)))).await.unwrap();
    }
}

#[tokio::test]
async fn tls_1_2_and_1_3_are_spoken_with_http_2() {
    let authority = Authority::new("server");
    let served = served(authority.issue(1).server()).await;
    let versions = [(&version::TLS12, ProtocolVersion::TLSv1_2), (&version::TLS13, ProtocolVersion::TLSv1_3)];
    for (offered, agreed) in versions {
        let prober = Prober::with(&[offered], "h2", &authority, None);
        let connection = prober.connect(served.address).await.unwrap();
        let session = connection.get_ref().1;
        assert_eq!(session.protocol_version(), Some(agreed));
        assert_eq!(session.alpn_protocol(), Some(b"h2".as_slice()));
        let http1 = Prober::with(&[offered], "http/1.1", &authority, None);
        assert!(http1.connect(served.address).await.is_err());
    }
}

#[tokio::test]
async fn no_session_is_resumed() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let served = served(servers.issue(1).server().client_ca_pem(clients.pem())).await;
    let known = clients.issue(2);
    for version in [&version::TLS12, &version::TLS13] {
        let prober = Prober::with(&[version], "h2", &servers, Some(&known));
        for _ in 0..2 {
            let mut connection = prober.connect(served.address).await.unwrap();
            assert_eq!(connection.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
            // The HTTP/2 settings follow any TLS 1.3 tickets.
            connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
            connection.read_u8().await.unwrap();
        }
    }
}

#[tokio::test]
async fn with_tls_any_address_may_be_served() {
    let authority = Authority::new("server");
    let etcd = EmbeddedEtcd::builder().tls(authority.issue(1).server()).start().await.unwrap();
    let served = Served::serve_on(etcd, "0.0.0.0:0".parse().unwrap()).await;
    let loopback = ([127, 0, 0, 1], served.address.port()).into();
    Prober::new(&authority, None).connect(loopback).await.unwrap();
    served.stop().await;
}

#[tokio::test]
async fn plaintext_is_refused_and_hurts_no_other_client() {
    let authority = Authority::new("server");
    let served = served(authority.issue(1).server()).await;
    let mut watcher =
        Watcher::open(channel(served.address, client(&authority, None)).await.unwrap()).await.unwrap();
    watcher.create(watch_under("/p/web/", 0)).await;

    let refused = Channel::from_shared(format!("http://{}", served.address)).unwrap().connect().await;
    let answered = match refused {
        Ok(channel) => KvClient::new(channel).range(under("/p/web/")).await.is_ok(),
        Err(_) => false,
    };
    assert!(!answered);
    let mut http1 = TcpStream::connect(served.address).await.unwrap();
    http1.write_all(b"GET /health HTTP/1.1\r\nHost: feed.test\r\n\r\n").await.unwrap();
    assert!(closed(&mut http1).await);
    until("two failures", || served.etcd.stats().handshakes_failed >= 2).await;

    served.etcd.publish(&desired("/p/web", &[("routes/a", "2")])).await.unwrap();
    assert_eq!(events(&watcher.next().await), ["PUT /p/web/routes/a=2"]);
    assert!(list(&served, client(&authority, None)).await.is_ok());
}

#[tokio::test]
async fn an_endless_handshake_delays_no_other_client_and_is_ended() {
    let authority = Authority::new("server");
    let tls = authority.issue(1).server().handshake_timeout(Duration::from_millis(300));
    let served = served(tls).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(served.address).await.unwrap());
    }
    // The beginning of a record that is longer than the data that follows.
    let mut stalled = TcpStream::connect(served.address).await.unwrap();
    stalled.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
    assert!(list(&served, client(&authority, None)).await.is_ok());
    for connection in silent.iter_mut().chain([&mut stalled]) {
        assert!(closed(connection).await);
    }
    until("the failures", || served.etcd.stats().handshakes_failed == 21).await;
}

#[tokio::test]
async fn too_many_handshakes_end_the_oldest() {
    let authority = Authority::new("server");
    let tls = authority.issue(1).server().handshake_timeout(Duration::from_hours(1)).handshake_limit(3);
    let served = served(tls).await;
    let mut silent = Vec::new();
    for _ in 0..5 {
        silent.push(TcpStream::connect(served.address).await.unwrap());
    }
    for connection in &mut silent[..2] {
        assert!(closed(connection).await);
    }
    assert_eq!(served.etcd.stats().handshakes_failed, 2);
    // Each of the others waits until a good client needs its place.
    assert!(list(&served, client(&authority, None)).await.is_ok());
    assert!(closed(&mut silent[2]).await);
    let last = silent.last().unwrap();
    assert_eq!(last.try_read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    served.stop().await;
}

#[tokio::test]
async fn an_address_with_too_many_handshakes_ends_its_own_and_no_others() {
    let authority = Authority::new("server");
    let tls = authority.issue(1).server().handshake_timeout(Duration::from_hours(1)).handshake_limit(3);
    let served = served(tls).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let slow = socket.connect(served.address).await.unwrap();
    let mut flood = Vec::new();
    for _ in 0..20 {
        flood.push(TcpStream::connect(served.address).await.unwrap());
    }
    for connection in &mut flood[..18] {
        assert!(closed(connection).await);
    }
    assert_eq!(served.etcd.stats().handshakes_failed, 18);
    assert_eq!(slow.try_read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    served.stop().await;
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_handshakes() {
    let authority = Authority::new("server");
    let served = served(authority.issue(1).server().handshake_timeout(Duration::from_hours(1))).await;
    let mut silent = TcpStream::connect(served.address).await.unwrap();
    Prober::new(&authority, None).connect(served.address).await.unwrap();
    served.stop().await;
    assert!(closed(&mut silent).await);
}

/// Starts a server with a certificate, key and CA in files, and expects this error.
async fn failure(certificate: &[u8], key: &[u8], ca: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for (name, content) in [("crt", certificate), ("key", key), ("ca", ca)] {
        if content != b"missing" {
            std::fs::write(path(name), content).unwrap();
        }
    }
    let tls = ServerTls::from_files(path("crt"), path("key")).client_ca_file(path("ca"));
    let error = EmbeddedEtcd::builder().tls(tls).start().await.unwrap_err();
    assert_eq!((error.category(), error.is_retryable()), ("tls", true));
    let text = error.to_string();
    let server_certificate = format!("{text} {error:?}");
    for secret in
        String::from_utf8_lossy(key).lines().filter(|line| line.len() > 12 && !line.contains("-----"))
    {
        assert!(!server_certificate.contains(secret), "{server_certificate}");
    }
    assert!(matches!(error.downcast_ref(), Some(EmbeddedError::Tls(_))), "{text}");
    text.replace(&format!("{}/", directory.path().display()), "")
}

#[tokio::test]
async fn an_unusable_part_is_named_with_its_file() {
    let authority = Authority::new("server");
    let (good, other) = (authority.issue(1), authority.issue(2));
    let (crt, key, ca) = (good.certificate.as_bytes(), good.key.as_bytes(), authority.pem());
    let ca = ca.as_bytes();
    let message = async |certificate: &[u8], key: &[u8], ca: &[u8], expected: &str| {
        let text = failure(certificate, key, ca).await;
        assert!(text.starts_with(expected), "{text}\nexpected: {expected}");
    };
    message(b"missing", key, ca, "the TLS certificate crt cannot be read: No such file").await;
    message(crt, b"missing", ca, "the TLS private key key cannot be read: No such file").await;
    message(crt, key, b"missing", "the client CA bundle ca cannot be read: No such file").await;
    message(b"", key, ca, "the TLS certificate crt is not PEM").await;
    message(&good.der(), key, ca, "the TLS certificate crt is not PEM").await;
    message(&crt[..crt.len() / 2], key, ca, "the TLS certificate crt is not PEM").await;
    message(key, key, ca, "the TLS certificate crt holds no certificate").await;
    message(crt, b"x", ca, "the TLS private key key is not PEM").await;
    message(crt, &key[..key.len() / 2], ca, "the TLS private key key is not PEM").await;
    message(crt, crt, ca, "the TLS private key key holds no private key").await;
    message(crt, other.key.as_bytes(), ca, "the TLS private key key is not the key of the certificate crt")
        .await;
    message(crt, key, b"", "the client CA bundle ca is not PEM").await;
    message(crt, key, key, "the client CA bundle ca holds no certificate").await;
    let empty = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    message(empty, key, ca, "the TLS certificate crt holds a certificate that cannot be read, number 1")
        .await;
    let bundle = [ca, empty].concat();
    message(crt, key, &bundle, "the client CA bundle ca holds a certificate that cannot be read, number 2")
        .await;
    let empty = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    message(crt, empty, ca, "the TLS private key key is not a key that can be used").await;
    let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    message(crt, encrypted, ca, "the TLS private key key is encrypted with a passphrase").await;
    let encrypted =
        b"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END EC PRIVATE KEY-----\n";
    message(crt, encrypted, ca, "the TLS private key key is encrypted with a passphrase").await;
}

#[tokio::test]
async fn an_error_of_bytes_has_no_file_and_is_not_retryable() {
    let authority = Authority::new("server");
    let (good, other) = (authority.issue(1), authority.issue(2));
    let tls = ServerTls::from_pem(good.certificate.as_str(), other.key.as_str());
    let error = EmbeddedEtcd::builder().tls(tls).start().await.unwrap_err();
    assert_eq!(error.to_string(), "the TLS private key is not the key of the certificate");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn keys_are_never_shown() {
    let pair = Authority::new("server").issue(1);
    let builder: Builder = EmbeddedEtcd::builder().tls(pair.server().client_ca_file("/tls/ca.crt"));
    let served = Served::start(EmbeddedEtcd::builder().tls(pair.server())).await;
    let server_certificate = format!("{:?} {builder:?} {:?}", pair.server(), served.etcd);
    assert!(server_certificate.contains("/tls/ca.crt"), "{server_certificate}");
    let first_bytes = format!("{:?}", &pair.key.as_bytes()[..8]);
    for secret in [pair.key.lines().nth(1).unwrap(), first_bytes.trim_matches(['[', ']'])] {
        assert!(!server_certificate.contains(secret), "{server_certificate}");
    }
}
