//! Changes of certificates, and resumption.

use super::*;

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
        let errors: Vec<String> = applied.errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
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
fn a_certificate_is_replaced_under_connections_that_go_on() {
    run(async {
        let (backend, authority, port, mut world) = one_route().await;
        let proxy = Proxy::serving(&world).await;
        let (stop, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let judges: Vec<_> = (0..)
            .take(judges())
            .map(|seed| {
                let client = authority.client(VERSIONS[usize::from(seed % 2 == 0)]);
                tokio::spawn(judge(client, port, seed, Arc::clone(&stop), Arc::clone(&bytes)))
            })
            .collect();
        until(|| backend.accepted() == judges.len(), "the connections").await;
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
        end_judges(judges, &stop, &bytes, &proxy).await;
    });
}
