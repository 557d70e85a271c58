//! Handshakes: certificates, server names, failures.

use super::*;

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
fn a_failed_handshake_ends_with_an_alert_and_reaches_no_backend() {
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
