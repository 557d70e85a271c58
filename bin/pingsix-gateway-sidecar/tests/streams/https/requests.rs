//! Protocols, and the beginning of requests.

use super::*;

#[test]
fn the_server_chooses_the_first_protocol_that_the_client_offers() {
    run(async {
        let (_backend, authority, port, mut world) = one_route().await;
        let proxy = serving(&world).await;
        let agreed = async |protocols: &'static [&str], version| {
            let client = authority.client(version).offering(protocols);
            let (_, stream) = ask(&client, port, "a.test").await?;
            io::Result::Ok(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
        };
        for version in VERSIONS {
            for (offered, expected) in [
                (&["http/1.1", "h2"][..], Some("h2")),
                (&["h2"], Some("h2")),
                (&["h3", "http/1.1"], Some("http/1.1")),
                (&[], None),
            ] {
                let expected = expected.map(|protocol| protocol.as_bytes().to_vec());
                assert_eq!(agreed(offered, version).await.unwrap(), expected, "{offered:?}");
            }
            let error = agreed(&["h3"], version).await.unwrap_err();
            assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
        }
        proxy.rejects(port, "incompatible_client").await;
        world[2].1["alpn"] = json!(["http/1.1", "h2"]);
        proxy.apply(&world).await;
        assert_eq!(agreed(&["h2", "http/1.1"], &TLS13).await.unwrap().unwrap(), b"http/1.1");
        world[2].1["alpn"] = json!(["http/1.1"]);
        proxy.apply(&world).await;
        assert!(agreed(&["h2"], &TLS13).await.is_err());
    });
}

#[test]
fn random_bytes_in_both_directions_are_unharmed() {
    run(async {
        let (_backend, authority, port, world) = one_route().await;
        let _proxy = serving(&world).await;
        for version in VERSIONS {
            let client = authority.client(version).offering(&["h2"]);
            let (greeting, mut stream) = ask(&client, port, "a.test").await.unwrap();
            assert_eq!(greeting, b'a');
            let bytes = random_bytes(random_length(), 5);
            echo_in_portions(&mut stream, &bytes, 13).await;
            echo(&mut stream, &bytes).await;
            stream.shutdown().await.unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
        }
    });
}

#[test]
fn the_backend_is_connected_to_with_the_24th_byte() {
    run(async {
        let (backend, authority, port, world) = one_route().await;
        let proxy = serving(&world).await;
        for version in VERSIONS {
            let before = backend.accepted();
            let mut stream = authority.client(version).open(port, "a.test").await.unwrap();
            let (last, first) = BEGINNING.split_last().unwrap();
            for byte in first {
                stream.write_all(&[*byte]).await.unwrap();
                stream.flush().await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert_eq!(backend.accepted(), before);
            stream.write_all(&[*last]).await.unwrap();
            stream.flush().await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'a');
            assert_eq!(backend.accepted(), before + 1);
        }
        assert_eq!(handshakes(&proxy, port, "full"), 2);
    });
}

#[test]
fn a_client_without_a_request_has_an_orderly_end_and_reaches_no_backend() {
    run(async {
        let (backend, authority, port, world) = one_route().await;
        let proxy = Proxy::start(StreamOptions { request_timeout: Duration::from_secs(1), ..options() });
        proxy.apply(&world).await;
        for version in VERSIONS {
            let client = authority.client(version);
            for sent in [&b""[..], &BEGINNING[..23]] {
                let begin = Instant::now();
                let mut stream = client.open(port, "a.test").await.unwrap();
                stream.write_all(sent).await.unwrap();
                stream.flush().await.unwrap();
                // An error would be an end without close_notify, or a reset.
                assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
                assert!(begin.elapsed() >= Duration::from_secs(1));
            }
            proxy.rejects(port, "slow_request").await;
            // A client that leaves has the same end, at once.
            let begin = Instant::now();
            let mut stream = client.open(port, "a.test").await.unwrap();
            stream.shutdown().await.unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            assert!(begin.elapsed() < Duration::from_secs(1));
            drop(client.open(port, "a.test").await.unwrap());
            proxy.rejects(port, "client_left_request").await;
        }
        until(|| proxy.streams.connections() == 0, "no connections").await;
        assert_eq!(backend.accepted(), 0);
        assert_eq!(greeted(&authority.client(&TLS13), port, "a.test").await.unwrap(), b'a');
    });
}

#[test]
fn clients_that_ask_for_nothing_give_way_to_others() {
    run(async {
        let (backend, authority, port, world) = one_route().await;
        let proxy = Proxy::start(StreamOptions { max_connections: 20, max_unrouted: 10, ..options() });
        proxy.apply(&world).await;
        let client = authority.client(&TLS13);
        let mut silent = Vec::new();
        for _ in 0..30 {
            silent.push(client.open(port, "a.test").await.unwrap());
        }
        // Each request takes a place of its own, and in the end those of all that are silent.
        let mut held = Vec::new();
        for _ in 0..20 {
            held.push(ask(&client, port, "a.test").await.unwrap());
        }
        let evicted =
            format!("stream_connections_total{{port=\"{port}\",outcome=\"rejected\",reason=\"evicted\"}}");
        proxy.metric_reaches(&evicted, 30).await;
        assert_eq!(backend.accepted(), 20);
        for mut stream in silent {
            assert!(stream.read(&mut [0]).await.is_err());
        }
        for (_, stream) in &mut held {
            echo(stream, b"still open").await;
        }
    });
}

#[test]
fn a_node_of_this_machine_is_refused_unless_its_upstream_says_so() {
    run(async {
        let (backend, authority, port, mut world) = one_route().await;
        world[0] = upstream("a", &[backend.address]);
        let proxy = Proxy::start(StreamOptions { local_nodes: false, ..options() });
        let applied = proxy.streams.apply(&documents(&world)).await;
        assert!(applied.errors[0].to_string().starts_with("upstreams/a: nodes: "), "{:?}", applied.errors);
        let client = authority.client(&TLS13);
        assert!(greeted(&client, port, "a.test").await.is_err());
        proxy.rejects(port, "invalid").await;
        assert_eq!(backend.accepted(), 0);
        world[0] = local("a", &[backend.address]);
        proxy.apply(&world).await;
        assert_eq!(greeted(&client, port, "a.test").await.unwrap(), b'a');
    });
}
