//! TLS that the proxy terminates.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::stream::StreamOptions;
use pingsix_test_programs::free_port;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, HandshakeKind, SignatureScheme};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::certificates::{Authority, Client};
use crate::support::*;

const VERSIONS: [&rustls::SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

/// A route that terminates TLS with these certificates.
fn terminate(port: u16, names: &[&str], certificates: &[&str], target: &str) -> (String, Value) {
    let (key, mut route) = tls(port, names, target);
    route["tls"] = json!("terminate");
    route["ssl_ids"] = json!(certificates);
    (key, route)
}

/// A backend, an authority, and the documents of a route for `a.test` on a port with the certificate `s`.
async fn one_route() -> (Backend, Authority, u16, Vec<(String, Value)>) {
    let (backend, authority, port) = (Backend::start(b'a').await, Authority::new(), free_port());
    let world = vec![
        upstream("a", &[backend.address]),
        authority.certificate(&["a.test"]).document("s"),
        terminate(port, &["a.test"], &["s"], "a"),
    ];
    (backend, authority, port, world)
}

/// The greeting of the backend that a client reaches.
async fn greeted(client: &Client, port: u16, name: &str) -> io::Result<u8> {
    client.open(port, name).await?.read_u8().await
}

/// Sends bytes and checks that they come back.
async fn echo(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) {
    let (mut input, mut output) = tokio::io::split(stream);
    let mut returned = vec![0; bytes.len()];
    let write = async {
        output.write_all(bytes).await?;
        output.flush().await
    };
    let (written, read) = tokio::join!(write, input.read_exact(&mut returned));
    written.unwrap();
    read.unwrap();
    assert!(returned == bytes, "{} bytes have changed", bytes.len());
}

fn handshakes(proxy: &Proxy, port: u16, kind: &str) -> u64 {
    proxy.metric(&format!("stream_handshakes_total{{port=\"{port}\",kind=\"{kind}\"}}"))
}

fn random_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}

#[test]
fn the_whole_chain_is_presented_and_plaintext_reaches_the_backend() {
    run(async {
        let (_backend, authority, port, mut world) = one_route().await;
        let certificate = authority.certificate(&["a.test"]);
        world[1] = certificate.document("s");
        let proxy = Proxy::serving(&world).await;
        for version in VERSIONS {
            let mut stream = authority.client(version).open(port, "a.test").await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'a');
            echo(&mut stream, b"a question").await;
            let tls = stream.get_ref().1;
            assert_eq!(certificate.chain.len(), 3);
            assert!(tls.peer_certificates().unwrap() == certificate.chain);
            assert_eq!(tls.protocol_version(), Some(version.version));
        }
        assert_eq!(handshakes(&proxy, port, "full"), 2);
        proxy
            .metric_reaches(
                &format!("stream_transferred_bytes_total{{port=\"{port}\",direction=\"in\"}}"),
                20,
            )
            .await;
    });
}

#[test]
fn a_million_random_bytes_in_both_directions_are_unharmed() {
    run(async {
        let (_backend, authority, port, world) = one_route().await;
        let _proxy = Proxy::serving(&world).await;
        for version in VERSIONS {
            let mut stream = authority.client(version).open(port, "a.test").await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'a');
            let bytes = random_bytes(1_000_000, 7);
            let mut rest = bytes.as_slice();
            let mut random = fastrand::Rng::with_seed(11);
            while !rest.is_empty() {
                let most = if random.bool() { 100 } else { 200_000 };
                let (now, later) = rest.split_at(rest.len().min(1 + random.usize(..most)));
                echo(&mut stream, now).await;
                rest = later;
            }
            echo(&mut stream, &bytes).await;
        }
    });
}

#[test]
fn a_client_gets_the_first_certificate_for_its_name_whose_key_it_knows() {
    run(async {
        let (backend, authority, port) = (Backend::start(b'a').await, Authority::new(), free_port());
        let other = authority.certificate(&["other.test"]);
        let elliptic = authority.certificate(&["*.y.test"]);
        let rsa = authority.rsa_certificate(&["a.y.test"]);
        let later = authority.certificate(&["a.y.test"]);
        let _proxy = Proxy::serving(&[
            upstream("a", &[backend.address]),
            other.document("other"),
            elliptic.document("elliptic"),
            rsa.document("rsa"),
            later.document("later"),
            terminate(port, &["*.y.test", "z.test"], &["other", "elliptic", "rsa", "later"], "a"),
        ])
        .await;
        for version in VERSIONS {
            for (scheme, expected) in [
                (None, &elliptic),
                (Some(SignatureScheme::ECDSA_NISTP256_SHA256), &elliptic),
                (Some(SignatureScheme::RSA_PSS_SHA256), &rsa),
            ] {
                let client = authority.picky_client(version, scheme);
                let stream = client.open(port, "a.y.test").await.unwrap();
                assert!(
                    stream.get_ref().1.peer_certificates().unwrap()[0] == expected.chain[0],
                    "{scheme:?}"
                );
            }
            // No certificate is for this name, so the first is shown, and the client refuses it.
            let error = authority.client(version).open(port, "z.test").await.unwrap_err();
            assert!(error.to_string().contains("not valid for name"), "{error}");
        }
    });
}

/// Sends a `ClientHello` as `change` has it, finishes the handshake, and reads the greeting.
async fn open_with(client: &Client, port: u16, name: &str, change: impl Fn(&[u8]) -> Vec<u8>) -> u8 {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::clone(&client.config), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    let mut stream = connect(port).await;
    stream.set_nodelay(true).unwrap();
    for byte in change(&hello) {
        stream.write_all(&[byte]).await.unwrap();
    }
    loop {
        let mut buffer = [0; 4_096];
        let bytes = stream.read(&mut buffer).await.unwrap();
        let mut read = &buffer[..bytes];
        assert!(!read.is_empty(), "the connection ended");
        while !read.is_empty() {
            tls.read_tls(&mut read).unwrap();
            tls.process_new_packets().unwrap();
        }
        let mut answer = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut answer).unwrap();
        }
        stream.write_all(&answer).await.unwrap();
        let mut greeting = [0];
        if io::Read::read(&mut tls.reader(), &mut greeting).is_ok() {
            return greeting[0];
        }
    }
}

#[test]
fn a_client_hello_in_any_segments_and_records_begins_a_handshake() {
    run(async {
        let (_backend, authority, port, world) = one_route().await;
        let _proxy = Proxy::serving(&world).await;
        for version in VERSIONS {
            let client = authority.client(version);
            assert_eq!(open_with(&client, port, "a.test", <[u8]>::to_vec).await, b'a');
            for length in [1, 7, 100] {
                let records = |hello: &[u8]| {
                    let fragment = |content: &[u8]| {
                        let length = u8::try_from(content.len()).unwrap();
                        [&[22, 3, 1, 0, length], content].concat()
                    };
                    hello[5..].chunks(length).flat_map(fragment).collect()
                };
                assert_eq!(open_with(&client, port, "a.test", records).await, b'a', "{length}");
            }
        }
    });
}

/// Sends bytes; all that comes back.
async fn answer_to(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port).await;
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer).await {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    answer
}

#[test]
fn other_server_names_are_rejected_without_an_alert() {
    run(async {
        let (backend, authority, port, mut world) = one_route().await;
        world.push(terminate(port, &["*.wild.test"], &["s"], "a"));
        world.push(terminate(port, &["closed.test"], &["s"], "!no_route"));
        let proxy = Proxy::serving(&world).await;
        for (name, word) in [
            (None, "no_server_name"),
            (Some("b.test"), "no_match"),
            (Some("test"), "no_match"),
            (Some("closed.test"), "no_route"),
            // The parser of the proxy has no rule for characters, and rustls has.
            (Some("no name.wild.test"), "invalid_handshake"),
        ] {
            assert_eq!(answer_to(port, &client_hello(name)).await, b"", "{name:?}");
            proxy.rejects(port, word).await;
        }
        let error = authority.client(&TLS13).open(port, "b.test").await.unwrap_err();
        assert!([ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof].contains(&error.kind()), "{error}");
        assert_eq!(backend.accepted(), 0);
    });
}

#[test]
fn a_handshake_that_fails_ends_with_an_alert_and_costs_the_backend_nothing() {
    run(async {
        let (backend, authority, port, world) = one_route().await;
        let proxy = Proxy::serving(&world).await;
        // The hello has no signature schemes, suites of TLS 1.3 alone, and no key share.
        answer_to(port, &client_hello(Some("a.test"))).await;
        proxy.rejects(port, "invalid_handshake").await;
        let rsa_alone = authority.picky_client(&TLS13, Some(SignatureScheme::RSA_PSS_SHA256));
        let error = rsa_alone.open(port, "a.test").await.unwrap_err();
        assert!(error.to_string().contains("HandshakeFailure"), "{error}");
        proxy.rejects(port, "incompatible_client").await;
        Authority::new().client(&TLS13).open(port, "a.test").await.unwrap_err();
        proxy.rejects(port, "client_refused").await;
        let mut stream = connect(port).await;
        stream.write_all(&hello_of(&authority.client(&TLS13), "a.test")).await.unwrap();
        stream.read_u8().await.unwrap();
        drop(stream);
        proxy.rejects(port, "client_left_handshake").await;
        let garbage = [hello_of(&authority.client(&TLS13), "a.test"), vec![0; 100]].concat();
        assert!(!answer_to(port, &garbage).await.is_empty(), "the flight of the proxy, and an alert");
        until(|| proxy.streams.connections() == 0, "the end of all").await;
        assert_eq!(backend.accepted(), 0);
    });
}

/// The `ClientHello` of a client.
fn hello_of(client: &Client, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut tls = ClientConnection::new(Arc::clone(&client.config), name).unwrap();
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    hello
}

#[test]
fn a_backend_sees_no_connection_before_the_handshake_has_ended() {
    run(async {
        let (backend, authority, port, world) = one_route().await;
        let proxy = Proxy::start(StreamOptions { handshake_timeout: Duration::from_secs(1), ..options() });
        proxy.apply(&world).await;
        let begin = Instant::now();
        let mut stream = connect(port).await;
        stream.write_all(&hello_of(&authority.client(&TLS13), "a.test")).await.unwrap();
        stream.read_u8().await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(backend.accepted(), 0);
        proxy.rejects(port, "slow_handshake").await;
        assert!(begin.elapsed() >= Duration::from_secs(1));
        assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(backend.accepted(), 0);
        assert_eq!(greeted(&authority.client(&TLS13), port, "a.test").await.unwrap(), b'a');
        assert_eq!(backend.accepted(), 1);
    });
}

#[test]
fn an_end_of_either_side_is_passed_on_and_the_other_direction_goes_on() {
    run(async {
        let (listener, authority, port) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), Authority::new(), free_port());
        let world = [
            upstream("a", &[listener.local_addr().unwrap()]),
            authority.certificate(&["a.test"]).document("s"),
            terminate(port, &["a.test"], &["s"], "a"),
        ];
        let proxy = Proxy::serving(&world).await;
        for version in VERSIONS {
            let client = authority.client(version);
            for client_first in [true, false] {
                let (client, backend) = tokio::join!(client.open(port, "a.test"), listener.accept());
                let (mut client, mut backend) = (client.unwrap(), backend.unwrap().0);
                let mut received = Vec::new();
                if client_first {
                    client.write_all(b"the end").await.unwrap();
                    client.shutdown().await.unwrap();
                    backend.read_to_end(&mut received).await.unwrap();
                    assert_eq!(received, b"the end");
                    backend.write_all(&vec![7; 100_000]).await.unwrap();
                    drop(backend);
                    received.clear();
                    // An error would be an end without close_notify.
                    client.read_to_end(&mut received).await.unwrap();
                } else {
                    backend.write_all(b"the end").await.unwrap();
                    backend.shutdown().await.unwrap();
                    client.read_to_end(&mut received).await.unwrap();
                    assert_eq!(received, b"the end");
                    client.write_all(&vec![7; 100_000]).await.unwrap();
                    client.shutdown().await.unwrap();
                    received.clear();
                    backend.read_to_end(&mut received).await.unwrap();
                }
                assert!(received == vec![7; 100_000]);
            }
        }
        let closed = format!("stream_connections_total{{port=\"{port}\",outcome=\"closed\",reason=\"\"}}");
        proxy.metric_reaches(&closed, 4).await;
    });
}

#[test]
fn a_connection_that_is_cut_off_has_no_clean_end() {
    run(async {
        let (listener, authority, port) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), Authority::new(), free_port());
        let world = [
            upstream("a", &[listener.local_addr().unwrap()]),
            authority.certificate(&["a.test"]).document("s"),
            terminate(port, &["a.test"], &["s"], "a"),
        ];
        let proxy = Proxy::serving(&world).await;
        let client = authority.client(&TLS13);
        for client_is_cut in [true, false] {
            let (client, backend) = tokio::join!(client.open(port, "a.test"), listener.accept());
            let (mut client, mut backend) = (client.unwrap(), backend.unwrap().0);
            client.write_all(b"x").await.unwrap();
            client.flush().await.unwrap();
            assert_eq!(backend.read_u8().await.unwrap(), b'x');
            if client_is_cut {
                // The end of TCP without close_notify.
                let (mut stream, _) = client.into_inner();
                stream.shutdown().await.unwrap();
                assert_eq!(backend.read_u8().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
                assert_eq!(
                    stream.read_to_end(&mut Vec::new()).await.unwrap_err().kind(),
                    ErrorKind::ConnectionReset
                );
            } else {
                backend.set_zero_linger().unwrap();
                drop(backend);
                let error = client.read_to_end(&mut Vec::new()).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            }
        }
        let broken = format!("stream_connections_total{{port=\"{port}\",outcome=\"broken\",reason=\"\"}}");
        proxy.metric_reaches(&broken, 2).await;
    });
}

/// Opens connections one after another; the kinds of their handshakes.
async fn kind_of_handshake(client: &Client, port: u16) -> HandshakeKind {
    let mut stream = client.open(port, "a.test").await.unwrap();
    // With the greeting come the tickets of TLS 1.3.
    assert_eq!(stream.read_u8().await.unwrap(), b'a');
    stream.get_ref().1.handshake_kind().unwrap()
}

#[test]
fn a_session_is_resumed_at_its_route_and_nowhere_else() {
    run(async {
        for version in VERSIONS {
            let (backend, authority, port, world) = one_route().await;
            let proxy = Proxy::serving(&world).await;
            let client = authority.client(version);
            assert_eq!(kind_of_handshake(&client, port).await, HandshakeKind::Full);
            assert_eq!(kind_of_handshake(&client, port).await, HandshakeKind::Resumed);

            // Other documents, and other targets of the route, change nothing.
            let mut changed = world.clone();
            changed.push(authority.certificate(&["b.test"]).document("t"));
            changed.push(terminate(port, &["b.test"], &["t", "s"], "a"));
            changed.push(upstream("b", &[backend.address]));
            changed[2] = terminate(port, &["a.test"], &["s"], "b");
            proxy.apply(&changed).await;
            assert_eq!(kind_of_handshake(&client, port).await, HandshakeKind::Resumed);
            assert_eq!(handshakes(&proxy, port, "resumed"), 2);

            // The same name and the same certificate, but another route.
            let (_, other) = changed.remove(2);
            changed.push(("stream_routes/other".to_owned(), other));
            proxy.apply(&changed).await;
            assert_eq!(kind_of_handshake(&client, port).await, HandshakeKind::Full);
            assert_eq!(kind_of_handshake(&client, port).await, HandshakeKind::Resumed);

            // Another certificate.
            changed[1] = authority.certificate(&["a.test"]).document("s");
            proxy.apply(&changed).await;
            assert_eq!(kind_of_handshake(&client, port).await, HandshakeKind::Full);
            assert_eq!(kind_of_handshake(&client, port).await, HandshakeKind::Resumed);
        }
    });
}

#[test]
fn passthrough_and_termination_share_a_port_by_server_name() {
    run(async {
        let (plain, passed) = (Backend::start(b'p').await, Backend::start(b'q').await);
        let (authority, port) = (Authority::new(), free_port());
        let proxy = Proxy::serving(&[
            upstream("p", &[plain.address]),
            upstream("q", &[passed.address]),
            authority.certificate(&["a.test", "*.b.test"]).document("s"),
            terminate(port, &["a.test"], &["s"], "p"),
            tls(port, &["*.test"], "q"),
            terminate(port, &["*.b.test"], &["s"], "p"),
            tls(port, &["x.b.test"], "q"),
        ])
        .await;
        let client = authority.client(&TLS13);
        for (name, terminated) in
            [("a.test", true), ("c.test", false), ("y.b.test", true), ("x.b.test", false)]
        {
            if terminated {
                assert_eq!(greeted(&client, port, name).await.unwrap(), b'p', "{name}");
            } else {
                assert_eq!(ask_tls(port, Some(name)).await, Some(b'q'), "{name}");
            }
        }
        assert_eq!(handshakes(&proxy, port, "full"), 2);
    });
}

#[test]
fn a_certificate_that_cannot_be_used_rejects_its_routes_alone() {
    run(async {
        let (_backend, authority, port, mut world) = one_route().await;
        let (_, mut broken) = authority.certificate(&["b.test"]).document("t");
        broken["key"] = world[1].1["key"].clone();
        world.push(("ssls/t".to_owned(), broken));
        world.push(terminate(port, &["b.test"], &["t"], "a"));
        world.push(terminate(port, &["c.test"], &["s", "t"], "a"));
        world.push(terminate(port, &["d.test"], &["nowhere"], "a"));
        world.push(tls(port, &["*.test"], "a"));
        let proxy = Proxy::start(options());
        let applied = proxy.streams.apply(&documents(&world)).await;
        let faults: Vec<String> = applied.faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            faults,
            [
                "ssls/t: key: The private key is not that of the first certificate.".to_owned(),
                format!("stream_routes/tls-{port}-b.test: ssl_ids: There is no usable document ssls/t."),
                format!("stream_routes/tls-{port}-c.test: ssl_ids: There is no usable document ssls/t."),
                format!(
                    "stream_routes/tls-{port}-d.test: ssl_ids: There is no usable document ssls/nowhere."
                ),
            ]
        );
        assert_eq!(applied.revision, 1);
        let client = authority.client(&TLS13);
        for name in ["b.test", "c.test", "d.test"] {
            assert_eq!(answer_to(port, &client_hello(Some(name))).await, b"", "{name}");
        }
        proxy.rejects(port, "invalid").await;
        assert_eq!(greeted(&client, port, "a.test").await.unwrap(), b'a');
        assert_eq!(ask_tls(port, Some("e.test")).await, Some(b'a'));

        world[3] = authority.certificate(&["b.test"]).document("t");
        world.retain(|(key, _)| !key.ends_with("d.test"));
        proxy.apply(&world).await;
        assert_eq!(greeted(&client, port, "b.test").await.unwrap(), b'a');

        // The text of the role, with all that it holds, has no key.
        let shown = format!("{:?}", proxy.streams);
        for (_, document) in world.iter().filter(|(key, _)| key.starts_with("ssls/")) {
            let key = document["key"].as_str().unwrap();
            assert!(!shown.contains(key.lines().nth(1).unwrap()));
        }
    });
}

/// Sends changing bytes and checks each that comes back, until it is told to stop.
async fn judge(client: Client, port: u16, seed: u64, stop: Arc<AtomicBool>, bytes: Arc<AtomicUsize>) {
    let mut stream = client.open(port, "a.test").await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'a');
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let length = if random.u8(..16) == 0 { 40_000 } else { 1 + random.usize(..3_000) };
        echo(&mut stream, &random_bytes(length, random.u64(..))).await;
        bytes.fetch_add(length, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(random.u64(1..20))).await;
    }
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[test]
fn a_certificate_is_replaced_under_200_connections_that_go_on() {
    run(async {
        let (backend, authority, port, mut world) = one_route().await;
        let proxy = Proxy::serving(&world).await;
        let (stop, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let judges: Vec<_> = (0..200)
            .map(|seed| {
                let client = authority.client(VERSIONS[usize::from(seed % 2 == 0)]);
                tokio::spawn(judge(client, port, seed, Arc::clone(&stop), Arc::clone(&bytes)))
            })
            .collect();
        until(|| backend.accepted() == 200, "200 connections").await;
        let mut resumption = authority.client(&TLS13);
        Arc::get_mut(&mut resumption.config).unwrap().resumption = Resumption::disabled();
        for round in 0..20 {
            let certificate = authority.certificate(&["a.test"]);
            world[1] = certificate.document("s");
            proxy.apply(&world).await;
            let stream = resumption.open(port, "a.test").await.unwrap();
            assert!(stream.get_ref().1.peer_certificates().unwrap()[0] == certificate.chain[0], "{round}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The route goes too.
        proxy.apply(&world[..2]).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(judges.iter().all(|judge| !judge.is_finished()));
        stop.store(true, Ordering::Relaxed);
        for judge in judges {
            judge.await.unwrap();
        }
        assert!(bytes.load(Ordering::Relaxed) > 2_000_000, "{bytes:?}");
        until(|| proxy.streams.connections() == 0, "no connections").await;
    });
}

/// Clients that send a `ClientHello` and nothing more.
async fn stalled(authority: &Authority, port: u16, number: usize) -> Vec<TcpStream> {
    let mut stalled = Vec::new();
    for _ in 0..number {
        let mut stream = connect(port).await;
        stream.write_all(&hello_of(&authority.client(&TLS13), "a.test")).await.unwrap();
        stalled.push(stream);
    }
    stalled
}

#[test]
fn clients_that_stall_keep_nobody_out() {
    run(async {
        let (backend, authority, port, mut world) = one_route().await;
        let plain = free_port();
        world.extend([tls(port, &["passed.test"], "a"), tcp(plain, &[("a", 1)])]);
        let proxy = Proxy::start(StreamOptions { max_handshakes: 4, ..options() });
        proxy.apply(&world).await;
        let stalled = stalled(&authority, port, 8).await;
        let begin = Instant::now();
        assert_eq!(ask(plain).await, Some(b'a'));
        assert_eq!(ask_tls(port, Some("passed.test")).await, Some(b'a'));
        assert!(begin.elapsed() < Duration::from_secs(1), "they wait for no handshake");
        // Four of those that stall are before it, and then as many again.
        assert_eq!(greeted(&authority.client(&TLS13), port, "a.test").await.unwrap(), b'a');
        assert!(begin.elapsed() < Duration::from_secs(5));
        proxy.rejects(port, "evicted_handshake").await;
        assert_eq!(backend.accepted(), 3);
        drop(stalled);
    });
}

#[test]
fn a_crowd_of_honest_clients_waits_and_is_served() {
    run(async {
        let (_backend, authority, port, world) = one_route().await;
        let proxy = Proxy::start(StreamOptions { max_handshakes: 4, ..options() });
        proxy.apply(&world).await;
        let crowd: Vec<_> = (0..200)
            .map(|number| {
                let client = authority.client(VERSIONS[number % 2]);
                tokio::spawn(async move { greeted(&client, port, "a.test").await.unwrap() })
            })
            .collect();
        for client in crowd {
            assert_eq!(client.await.unwrap(), b'a');
        }
        assert_eq!(handshakes(&proxy, port, "full"), 200);
    });
}

#[test]
fn the_oldest_unfinished_handshake_gives_its_place_to_a_new_connection() {
    run(async {
        let (_backend, authority, port, mut world) = one_route().await;
        let plain = free_port();
        world.push(tcp(plain, &[("a", 1)]));
        let proxy = Proxy::start(StreamOptions { max_connections: 10, ..options() });
        proxy.apply(&world).await;
        let _stalled = stalled(&authority, port, 20).await;
        for _ in 0..5 {
            assert_eq!(ask(plain).await, Some(b'a'));
        }
        let evicted =
            format!("stream_connections_total{{port=\"{port}\",outcome=\"rejected\",reason=\"evicted\"}}");
        proxy.metric_reaches(&evicted, 15).await;
    });
}

#[test]
fn a_client_that_reads_nothing_can_still_send() {
    run(async {
        let (listener, authority, port) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), Authority::new(), free_port());
        let world = [
            upstream("a", &[listener.local_addr().unwrap()]),
            authority.certificate(&["a.test"]).document("s"),
            terminate(port, &["a.test"], &["s"], "a"),
        ];
        let _proxy = Proxy::serving(&world).await;
        let client = authority.client(&TLS13);
        let (client, backend) = tokio::join!(client.open(port, "a.test"), listener.accept());
        let (mut client, mut backend) = (client.unwrap(), backend.unwrap().0);
        // More than all buffers on the way hold.
        let mut held = 0_usize;
        let (mut input, mut output) = backend.split();
        while let Ok(written) =
            tokio::time::timeout(Duration::from_millis(300), output.write(&vec![5; 65_536])).await
        {
            held += written.unwrap();
        }
        let bytes = random_bytes(1_000_000, 3);
        let mut received = vec![0; bytes.len()];
        let send = async {
            client.write_all(&bytes).await?;
            client.flush().await
        };
        let (written, read) = tokio::join!(send, input.read_exact(&mut received));
        written.unwrap();
        read.unwrap();
        assert!(received == bytes);
        let mut taken = vec![0; held];
        client.read_exact(&mut taken).await.unwrap();
        assert!(taken.iter().all(|byte| *byte == 5));
    });
}
