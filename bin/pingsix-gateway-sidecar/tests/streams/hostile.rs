use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::stream::StreamOptions;
use pingsix_test_programs::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::*;

#[test]
fn slow_giant_and_garbled_hellos_end_and_others_are_served() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let timeout = Duration::from_secs(2);
        let proxy = Proxy::start(StreamOptions { hello_timeout: timeout, ..options() });
        proxy.apply(&[upstream("a", &[backend.address]), tls(port, &["a.test"], "a")]).await;

        // A client that sends single bytes is cut at the deadline.
        let begin = Instant::now();
        let mut slow = connect(port).await;
        let hello = client_hello(Some("a.test"));
        let mut drip = hello.iter().cycle();
        while slow.write_all(&[*drip.next().unwrap()]).await.is_ok() && begin.elapsed() < timeout * 5 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(ask_tls(port, Some("a.test")).await, Some(b'a'));
        }
        assert!(begin.elapsed() >= timeout && begin.elapsed() < timeout * 5);
        proxy.rejects(port, "slow_client_hello").await;

        let mut giant = connect(port).await;
        let record = [&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xff][..], &vec![0; 20_000]].concat();
        let _ = giant.write_all(&record).await;
        assert_eq!(greeting(&mut giant).await, None);
        proxy.rejects(port, "large_client_hello").await;

        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\0", b"\x16\x03\x01\x00\x01\x02"] {
            let mut stream = connect(port).await;
            stream.write_all(garbage).await.unwrap();
            let begin = Instant::now();
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
            assert_eq!(answer, [0; 0], "no alert, nothing at all");
            assert!(begin.elapsed() < timeout, "garbage is known at once");
        }
        proxy.rejects(port, "no_client_hello").await;
        drop(connect(port).await);
        proxy.rejects(port, "client_left").await;
        assert_eq!(ask_tls(port, Some("a.test")).await, Some(b'a'));
    });
}

#[test]
fn clients_that_send_nothing_give_way() {
    run(async {
        let backend = Backend::start(b'a').await;
        let (port, plain) = (free_port(), free_port());
        let proxy = Proxy::start(StreamOptions {
            max_connections: 20,
            max_unrouted: 10,
            hello_timeout: Duration::from_mins(1),
            ..options()
        });
        proxy
            .apply(&[upstream("a", &[backend.address]), tls(port, &["a.test"], "a"), tcp(plain, &[("a", 1)])])
            .await;
        let mut silent = Vec::new();
        for _ in 0..50 {
            silent.push(connect(port).await);
        }
        assert_eq!(ask_tls(port, Some("a.test")).await, Some(b'a'));
        let evicted =
            format!("stream_connections_total{{port=\"{port}\",outcome=\"rejected\",reason=\"evicted\"}}");
        proxy.metric_reaches(&evicted, 41).await;

        // Connections with a route take the places of those without one, up to the limit.
        let mut held = Vec::new();
        for _ in 0..20 {
            let mut stream = connect(plain).await;
            assert_eq!(greeting(&mut stream).await, Some(b'a'));
            held.push(stream);
        }
        assert_eq!(ask(plain).await, None);
        proxy.rejects(plain, "limit").await;
        held.pop();
        until(|| proxy.streams.connections() < 20, "a free place").await;
        assert_eq!(ask(plain).await, Some(b'a'));
    });
}

#[test]
fn a_reset_is_passed_on() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free_port();
        let world = [upstream("a", &[listener.local_addr().unwrap()]), tcp(port, &[("a", 1)])];
        let _proxy = Proxy::serving(&world).await;
        for client_resets in [true, false] {
            let (client, backend) = tokio::join!(connect(port), listener.accept());
            let mut backend = backend.unwrap().0;
            let mut client = client;
            client.write_all(b"x").await.unwrap();
            assert_eq!(backend.read_u8().await.unwrap(), b'x');
            let (resets, mut sees) = if client_resets { (client, backend) } else { (backend, client) };
            resets.set_zero_linger().unwrap();
            drop(resets);
            let error = sees.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
    });
}

#[test]
fn a_hello_that_outlives_its_listener_is_rejected() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let world = [upstream("a", &[backend.address]), tls(port, &["a.test"], "a")];
        let proxy = Proxy::serving(&world).await;
        let mut stream = connect(port).await;
        let hello = client_hello(Some("a.test"));
        stream.write_all(&hello[..10]).await.unwrap();
        until(|| proxy.streams.connections() == 1, "an accepted connection").await;
        proxy.apply(&[]).await;
        stream.write_all(&hello[10..]).await.unwrap();
        assert_eq!(greeting(&mut stream).await, None);
        proxy.rejects(port, "no_match").await;
    });
}

#[test]
fn a_reset_after_a_half_close_is_passed_on_without_any_traffic() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = free_port();
        let world = [upstream("a", &[listener.local_addr().unwrap()]), tcp(port, &[("a", 1)])];
        let proxy = Proxy::serving(&world).await;
        let (mut client, backend) = tokio::join!(connect(port), listener.accept());
        let mut backend = backend.unwrap().0;
        client.shutdown().await.unwrap();
        assert_eq!(backend.read(&mut [0]).await.unwrap(), 0);
        client.set_zero_linger().unwrap();
        drop(client);
        until(|| proxy.streams.connections() == 0, "the end of the connection").await;
        assert!(backend.write_all(b"x").await.is_err());
    });
}
