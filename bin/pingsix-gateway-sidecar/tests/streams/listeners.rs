use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pingsix_gateway_sidecar::stream::{StreamOptions, Subject};
use pingsix_test_programs::free_port;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::*;

/// Sends changing bytes through a connection and checks each that comes back, until it is told to stop.
async fn judge(
    port: u16,
    name: Option<&'static str>,
    seed: usize,
    stop: Arc<AtomicBool>,
    bytes: Arc<AtomicUsize>,
) {
    let mut stream = connect(port).await;
    let mut expected = Vec::new();
    if let Some(name) = name {
        let hello = client_hello(Some(name));
        stream.write_all(&hello).await.unwrap();
        expected.extend(hello);
    }
    assert!(greeting(&mut stream).await.is_some());
    let mut round = seed;
    loop {
        let mut received = vec![0; expected.len()];
        stream.read_exact(&mut received).await.unwrap();
        assert!(received == expected, "connection {seed} got the bytes of another one");
        bytes.fetch_add(received.len(), Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // From a few bytes to more than a relay copies before it splices.
        round = round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = if round.is_multiple_of(16) { 100_000 } else { 1 + (round >> 33) % 3_000 };
        expected = (0..length).map(|place| (place ^ (round >> 40) ^ seed).to_le_bytes()[0]).collect();
        let (mut input, mut output) = stream.split();
        let mut received = vec![0; expected.len()];
        let (sent, read) = tokio::join!(output.write_all(&expected), input.read_exact(&mut received));
        sent.unwrap();
        read.unwrap();
        assert!(received == expected, "connection {seed} got the bytes of another one");
        bytes.fetch_add(received.len(), Ordering::Relaxed);
        expected.clear();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The end is orderly too.
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[test]
fn no_change_is_noticed_by_open_connections() {
    run(async {
        let (a, b) = (Backend::start(b'a').await, Backend::start(b'b').await);
        let (plain, named, gone) = (free_port(), free_port(), free_port());
        let steady = [
            upstream("a", &[a.address, b.address]),
            upstream("b", &[b.address]),
            tcp(plain, &[("a", 1), ("b", 1)]),
            tls(named, &["a.test"], "a"),
            tls(named, &["*.test"], "b"),
        ];
        let with = |more: &[(String, Value)]| [&steady[..], more].concat();
        let proxy = Proxy::serving(&with(&[tcp(gone, &[("a", 1)])])).await;
        let (stop, bytes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let judges: Vec<_> = (0..judges())
            .map(|seed| {
                let (port, name) = match seed % 4 {
                    0 => (plain, None),
                    1 => (named, Some("a.test")),
                    2 => (named, Some("b.test")),
                    _ => (gone, None),
                };
                tokio::spawn(judge(port, name, seed, Arc::clone(&stop), Arc::clone(&bytes)))
            })
            .collect();
        until(|| a.accepted() + b.accepted() == judges.len(), "the connections").await;

        let others: Vec<u16> = (0..5).map(|_| free_port()).collect();
        let routes = size("STREAMS_ROUTES", 100);
        for round in 0..40 {
            // Listeners come and go, that of a quarter of the connections among them; all routes change; nodes vanish and
            // come back.
            let mut world = with(&[]);
            let target = if round % 2 == 0 { "a" } else { "b" };
            world.extend((0..routes).map(|route| tls(named, &[&format!("r{route}.example")], target)));
            world.extend(others.iter().skip(round % 5).map(|port| tcp(*port, &[("b", 1)])));
            if round % 4 == 0 {
                world[0] = upstream("a", &[b.address]);
            }
            if round % 3 == 0 {
                world[2] = tcp(plain, &[("!no_route", 1)]);
                world.remove(3);
            }
            if round % 7 == 6 {
                world.push(tcp(gone, &[("b", 1)]));
            }
            proxy.apply(&world).await;
            let open = tokio::net::TcpStream::connect(("127.0.0.1", gone)).await;
            assert_eq!(open.is_ok(), round % 7 == 6);
            for (index, port) in others.iter().enumerate() {
                let served = tokio::net::TcpStream::connect(("127.0.0.1", *port)).await.is_ok();
                assert_eq!(served, index >= round % 5);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Everything goes, and they still go on.
        proxy.apply(&[]).await;
        end_judges(judges, &stop, &bytes, &proxy).await;
    });
}

#[test]
fn a_taken_port_is_the_error_of_this_port_and_tried_again() {
    run(async {
        let backend = Backend::start(b'a').await;
        let (taken, free) = (free_port(), free_port());
        let holder = tokio::net::TcpListener::bind(("127.0.0.1", taken)).await.unwrap();
        let proxy = Proxy::start(options());
        let world = [upstream("a", &[backend.address]), tcp(taken, &[("a", 1)]), tcp(free, &[("a", 1)])];
        let applied = proxy.streams.apply(&documents(&world)).await;
        assert_eq!(applied.bound, [free]);
        assert_eq!(applied.errors[0].subject, Subject::Port(taken));
        assert!(applied.errors[0].message.starts_with(&format!("Cannot listen on port {taken}: ")));
        assert_eq!(ask(free).await, Some(b'a'));
        drop(holder);
        for _ in 0..500 {
            if proxy.streams.state().await.errors.is_empty() {
                assert_eq!(ask(taken).await, Some(b'a'));
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the port was never tried again");
    });
}

#[test]
fn connections_of_a_removed_listener_end_after_a_grace_unless_it_returns() {
    run(async {
        let backend = Backend::start(b'a').await;
        let (stays_away, comes_back) = (free_port(), free_port());
        let grace = Duration::from_secs(1);
        let proxy = Proxy::start(StreamOptions { removed_grace: grace, ..options() });
        let back = [upstream("a", &[backend.address]), tcp(comes_back, &[("a", 1)])];
        let all = [&back[..], &[tcp(stays_away, &[("a", 1)])]].concat();
        proxy.apply(&all).await;
        let (mut cut, mut kept) = (connect(stays_away).await, connect(comes_back).await);
        assert_eq!((greeting(&mut cut).await, greeting(&mut kept).await), (Some(b'a'), Some(b'a')));
        proxy.apply(&[]).await;
        proxy.apply(&back).await;
        let error = cut.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        tokio::time::sleep(grace).await;
        kept.write_all(b"x").await.unwrap();
        assert_eq!(kept.read_u8().await.unwrap(), b'x');
    });
}

#[test]
fn a_revision_that_cannot_be_understood_changes_nothing() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let good = [upstream("a", &[backend.address]), tcp(port, &[("a", 1)])];
        let proxy = Proxy::serving(&good).await;
        let mut bad = documents(&[]);
        bad.revision = 2;
        bad.by_key.insert("stream_routes/x".to_owned(), "{}".into());
        let applied = proxy.streams.apply(&bad).await;
        assert_eq!((applied.revision, applied.bound), (1, vec![port]));
        assert!(
            applied.errors[0].to_string().starts_with("stream_routes/x: The former revision stays in force")
        );
        assert_eq!(ask(port).await, Some(b'a'));
        proxy.apply(&good).await;
    });
}

/// Ports 1 to 1023 are 10000 higher here. Of two that lead to the same, the lower one has it, whenever it comes.
#[test]
fn a_lower_port_displaces_a_higher_one_and_no_connection() {
    run(async {
        let (a, b) = (Backend::start(b'a').await, Backend::start(b'b').await);
        let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
        let low = (1..1_000).find(|port| (0..2).all(|step| is_free(port + 10_000 + step))).unwrap();
        let high = low + 10_000;
        let upstreams = [upstream("a", &[a.address]), upstream("b", &[b.address])];
        let of_high = tcp(high, &[("b", 1)]);
        let mut documents = upstreams.to_vec();
        documents.push(of_high);
        let proxy = Proxy::serving(&documents).await;
        let mut open = connect(high).await;
        assert_eq!(greeting(&mut open).await, Some(b'b'));

        documents.push(tcp(low, &[("a", 1)]));
        proxy.apply(&documents).await;
        assert_eq!(greeting(&mut connect(high).await).await, Some(b'a'), "port {low}");
        assert_eq!(greeting(&mut connect(high + 1).await).await, Some(b'b'), "port {high}");
        open.write_all(b"x").await.unwrap();
        assert_eq!(open.read_u8().await.unwrap(), b'x');

        documents.pop();
        proxy.apply(&documents).await;
        assert_eq!(greeting(&mut connect(high).await).await, Some(b'b'));
    });
}
