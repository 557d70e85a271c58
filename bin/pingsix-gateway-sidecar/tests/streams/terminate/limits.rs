//! Limits of unfinished handshakes.

use super::*;

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
fn clients_that_stall_keep_no_other_client_out() {
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
fn a_flood_of_handshakes_leaves_turns_to_others() {
    run(async {
        let (_backend, authority, port, mut world) = one_route().await;
        let plain = free_port();
        world[1] = authority.rsa_certificate(&["a.test"]).document("s");
        world.extend([tls(port, &["passed.test"], "a"), tcp(plain, &[("a", 1)])]);
        let proxy = Proxy::serving(&world).await;
        let stop = Arc::new(AtomicBool::new(false));
        let flood: Vec<_> = (0..50)
            .map(|_| {
                let (stop, hello) = (Arc::clone(&stop), hello_of(&authority.client(&TLS13), "a.test"));
                tokio::spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        let mut stream = connect(port).await;
                        stream.write_all(&hello).await.unwrap();
                        // The signature is made.
                        let _ = stream.read_u8().await;
                    }
                })
            })
            .collect();
        let left = format!(
            "stream_connections_total{{port=\"{port}\",outcome=\"rejected\",reason=\"client_left_handshake\"}}"
        );
        proxy.metric_reaches(&left, 100).await;
        for _ in 0..100 {
            assert_eq!(ask(plain).await, Some(b'a'));
            assert_eq!(ask_tls(port, Some("passed.test")).await, Some(b'a'));
        }
        assert_eq!(greeted(&authority.client(&TLS13), port, "a.test").await.unwrap(), b'a');
        stop.store(true, Ordering::Relaxed);
        for client in flood {
            client.await.unwrap();
        }
    });
}
