use std::sync::atomic::{AtomicBool, Ordering};

use pingsix_gateway_sidecar::stream::{StreamOptions, Subject};
use pingsix_test_programs::free_port;
use tokio::net::TcpStream;

use super::*;
use crate::support::*;

#[test]
fn a_session_whose_node_leaves_chooses_again_and_others_notice_nothing() {
    run(async {
        let nodes = [Node::named(b'a').await, Node::named(b'b').await];
        let (port, other) = (free_port(), free_port());
        let both = [
            upstream("u", &nodes.each_ref().map(|node| node.address)),
            udp(port, &[("u", 1)]),
            upstream("o", &[nodes[0].address]),
            udp(other, &[("o", 1)]),
        ];
        let proxy = Proxy::serving(&both).await;
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        for _ in 0..40 {
            let client = Client::new(port).await;
            let name = client.name().await;
            if name == b'a' { of_a.push(client) } else { of_b.push(client) }
        }
        let unconcerned = Client::new(other).await;
        assert_eq!(unconcerned.name().await, b'a');
        assert!(of_a.len() > 4 && of_b.len() > 4);
        let before = nodes[1].sources();
        let mut world = both.clone();
        for round in 0..20_u32 {
            // Another weight, another document, and the nodes of others: nothing of it concerns sessions at b.
            world[0] = upstream("u", &[nodes[1].address]);
            world[1] = udp(port, &[("u", 1 + round)]);
            proxy.apply(&world).await;
            for client in &of_b {
                assert_eq!(client.name().await, b'b');
            }
        }
        assert_eq!(nodes[1].sources(), before, "the same sessions");
        for client in &of_a {
            assert_eq!(client.name().await, b'b');
        }
        assert_eq!(nodes[1].sources(), 40);
        assert_eq!(unconcerned.name().await, b'a');
        assert_eq!(proxy.streams.sessions(), 41);
    });
}

#[test]
fn no_change_is_noticed_by_sessions_that_it_does_not_concern() {
    run(async {
        let (steady, moving) = (Node::echo().await, [Node::echo().await, Node::echo().await]);
        let (port, changing, gone) = (free_port(), free_port(), free_port());
        let fixed = [upstream("s", &[steady.address]), udp(port, &[("s", 1)])];
        let proxy = Proxy::serving(&fixed).await;
        let stop = Arc::new(AtomicBool::new(false));
        let judges: Vec<_> = (0..100_u64)
            .map(|seed| {
                let stop = Arc::clone(&stop);
                tokio::spawn(async move {
                    let client = Client::new(port).await;
                    let mut rounds = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let datagram = bytes(seed << 32 | rounds, 1 + (rounds % 1_500) as usize);
                        assert!(client.ask(&datagram).await == datagram, "client {seed} got other bytes");
                        rounds += 1;
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    rounds
                })
            })
            .collect();
        for round in 0..60_u32 {
            let mut world = fixed.to_vec();
            let nodes = moving.each_ref().map(|node| node.address);
            let concerned = &nodes[..=(round % 2) as usize];
            world.push(upstream("m", concerned));
            world.push(udp(changing, &[("m", 1 + round), ("!invalid", 1)]));
            if round % 3 == 0 {
                world.push(udp(gone, &[("m", 1)]));
            }
            // Another document of the same route.
            world[1] = udp(port, &[("s", 1 + round)]);
            proxy.apply(&world).await;
            for port in [changing, gone] {
                Client::new(port).await.send(b"?").await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop.store(true, Ordering::Relaxed);
        for judge in judges {
            assert!(judge.await.unwrap() > 10);
        }
        assert_eq!(steady.sources(), 100, "the sessions of the beginning");
    });
}

#[test]
fn a_rejecting_route_drops_datagrams_until_it_serves_again() {
    run(async {
        let (a, b) = (Node::named(b'a').await, Node::named(b'b').await);
        let port = free_port();
        let (up_a, up_b) = (upstream("a", &[a.address]), upstream("b", &[b.address]));
        let proxy = Proxy::serving(&[up_a.clone(), udp(port, &[("a", 1)])]).await;
        let client = Client::new(port).await;
        assert_eq!(client.name().await, b'a');
        for (world, word) in [
            (vec![up_a.clone(), udp(port, &[("!no_endpoints", 1)])], "no_endpoints"),
            (vec![up_a.clone(), udp(port, &[("a", 1)])], ""),
            // The document of the upstream is gone.
            (vec![udp(port, &[("a", 1)])], "invalid"),
            (vec![up_a.clone(), udp(port, &[("a", 1)])], ""),
        ] {
            proxy.apply(&world).await;
            if word.is_empty() {
                assert_eq!(client.name().await, b'a');
            } else {
                client.send(b"?").await;
                proxy.drops(port, word).await;
                client.hears_nothing().await;
            }
        }
        // Another target.
        proxy.apply(&[up_a, up_b, udp(port, &[("b", 1)])]).await;
        assert_eq!(client.name().await, b'b');
        assert_eq!(proxy.streams.sessions(), 1);
    });
}

#[test]
fn answers_of_a_withdrawn_backend_end_after_a_grace() {
    run(async {
        let node = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = free_port();
        let options = StreamOptions { removed_grace: Duration::from_secs(1), ..options() };
        let proxy = Proxy::start(options);
        proxy.apply(&[upstream("a", &[node.local_addr().unwrap()]), udp(port, &[("a", 1)])]).await;
        let client = Client::new(port).await;
        client.send(b"?").await;
        let mut buffer = [0; 8];
        let (_, session) = timeout(ANSWER_TIMEOUT, node.recv_from(&mut buffer)).await.unwrap().unwrap();
        proxy.apply(&[udp(port, &[("!no_route", 1)])]).await;
        node.send_to(b"late", session).await.unwrap();
        assert_eq!(client.receive().await, b"late");
        // Though the backend goes on and on.
        for _ in 0..1_000 {
            let _ = node.send_to(b"more", session).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            if proxy.streams.sessions() == 0 {
                break;
            }
        }
        assert_eq!(proxy.metric(&ended(port, "withdrawn")), 1);
    });
}

#[test]
fn a_port_comes_and_goes_beside_tcp_on_the_same_number() {
    run(async {
        let (node, backend) = (Node::named(b'a').await, Backend::start(b't').await);
        let port = free_port();
        let tcp_only = [upstream("t", &[backend.address]), tcp(port, &[("t", 1)])];
        let both = [&tcp_only[..], &[upstream("a", &[node.address]), udp(port, &[("a", 1)])]].concat();
        let options = StreamOptions { removed_grace: Duration::from_secs(1), ..options() };
        let proxy = Proxy::start(options);
        let applied = proxy.streams.apply(&documents(&both)).await;
        assert_eq!((applied.bound, applied.errors), (vec![port], vec![]));
        let client = Client::new(port).await;
        for _ in 0..5 {
            assert_eq!(client.name().await, b'a');
            let mut stream = connect(port).await;
            assert_eq!(greeting(&mut stream).await, Some(b't'));
            let before = node.sources();
            // Away and back within the grace: the session is the same.
            proxy.apply(&tcp_only).await;
            client.send(b"?").await;
            client.hears_nothing().await;
            proxy.apply(&both).await;
            assert_eq!(client.name().await, b'a');
            assert_eq!(node.sources(), before);
            // Away for longer: the port is free.
            proxy.apply(&tcp_only).await;
            until(|| is_free(port), "a free port").await;
            assert_eq!(proxy.streams.sessions(), 0);
            assert_eq!(ask(port).await, Some(b't'));
            proxy.apply(&both).await;
        }
        assert_eq!(client.name().await, b'a');
    });
}

fn is_free(port: u16) -> bool {
    std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok()
}

#[test]
fn a_taken_port_is_the_error_of_this_port_and_tried_again() {
    run(async {
        let node = Node::named(b'a').await;
        let (taken, free) = (free_port(), free_port());
        let holder = UdpSocket::bind(("127.0.0.1", taken)).await.unwrap();
        let proxy = Proxy::start(options());
        let world = [upstream("a", &[node.address]), udp(taken, &[("a", 1)]), udp(free, &[("a", 1)])];
        let applied = proxy.streams.apply(&documents(&world)).await;
        assert_eq!((applied.bound, &applied.errors[0].subject), (vec![free], &Subject::Port(taken)));
        assert!(applied.errors[0].message.starts_with(&format!("Cannot listen on UDP port {taken}: ")));
        assert_eq!(Client::new(free).await.name().await, b'a');
        drop(holder);
        for _ in 0..500 {
            if proxy.streams.state().await.errors.is_empty() {
                assert_eq!(Client::new(taken).await.name().await, b'a');
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the port was never tried again");
    });
}

#[test]
fn a_drain_keeps_sessions_and_begins_none() {
    run(async {
        let node = Node::named(b'a').await;
        let port = free_port();
        let proxy = Proxy::start(StreamOptions { session_idle: Duration::from_secs(2), ..options() });
        proxy.apply(&[upstream("a", &[node.address]), udp(port, &[("a", 1)])]).await;
        let (client, stranger) = (Client::new(port).await, Client::new(port).await);
        assert_eq!(client.name().await, b'a');
        let drained = tokio::spawn(proxy.streams.drain(Duration::from_mins(1)));
        tokio::time::sleep(Duration::from_millis(200)).await;
        stranger.send(b"?").await;
        for _ in 0..10 {
            assert_eq!(client.name().await, b'a');
        }
        stranger.hears_nothing().await;
        assert_eq!(node.sources(), 1);
        assert!(!drained.is_finished());
        // The session is idle, and the last.
        drained.await.unwrap();
        assert!(is_free(port));
    });
}

#[test]
fn a_drain_cuts_sessions_after_its_grace() {
    run(async {
        let node = Node::named(b'a').await;
        let port = free_port();
        let proxy = Proxy::serving(&[upstream("a", &[node.address]), udp(port, &[("a", 1)])]).await;
        assert_eq!(Client::new(port).await.name().await, b'a');
        proxy.streams.drain(Duration::from_millis(100)).await;
        assert!(is_free(port));
        // TCP takes the number, too.
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    });
}
