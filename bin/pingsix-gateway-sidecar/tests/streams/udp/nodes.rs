use pingsix_test_programs::free_port;

use super::*;
use crate::support::*;

#[test]
fn weights_are_kept_and_a_rejected_share_goes_to_no_node() {
    run(async {
        let (a, b, none) = (Node::named(b'a').await, Node::named(b'b').await, Node::named(b'n').await);
        let (port, partly) = (free_port(), free_port());
        let proxy = Proxy::serving(&[
            upstream("a", &[a.address]),
            upstream("b", &[b.address]),
            // A backend of weight 0 is in no route.
            upstream("none", &[none.address]),
            udp(port, &[("a", 70), ("b", 30)]),
            udp(partly, &[("a", 9), ("!no_endpoints", 1)]),
        ])
        .await;
        let mut names = Vec::new();
        for _ in 0..50 {
            let ten = std::array::from_fn::<_, 10, _>(|_| {
                tokio::spawn(async move { Client::new(port).await.name().await })
            });
            for name in ten {
                names.push(name.await.unwrap());
            }
        }
        let (of_a, of_b): (Vec<u8>, Vec<u8>) = names.iter().partition(|name| **name == b'a');
        assert!((348..=352).contains(&of_a.len()), "{}", of_a.len());
        assert!(of_b.iter().all(|name| *name == b'b'));
        assert_eq!((names.len(), none.sources()), (500, 0));

        let clients = Client::many(100, partly).await;
        for client in &clients {
            client.send(b"?").await;
        }
        proxy.metric_reaches(&dropped(partly, "no_endpoints"), 10).await;
        // A client that is rejected stays so, because another backend would take more than its share.
        for client in &clients {
            client.send(b"?").await;
        }
        proxy.metric_reaches(&dropped(partly, "no_endpoints"), 20).await;
        let answers = format!("stream_datagrams_total{{port=\"{partly}\",direction=\"out\"}}");
        proxy.metric_reaches(&answers, 180).await;
        assert_eq!((proxy.metric(&answers), proxy.metric(&dropped(partly, "no_endpoints"))), (180, 20));
    });
}

#[test]
fn a_node_that_refuses_is_left_with_the_next_datagram() {
    run(async {
        let (good, bad) = (Node::named(b'g').await, Node::named(b'b').await);
        let port = free_port();
        let proxy =
            Proxy::serving(&[upstream("u", &[good.address, bad.address]), udp(port, &[("u", 1)])]).await;
        let clients = Client::many(40, port).await;
        for client in &clients {
            client.name().await;
        }
        let stay = good.sources();
        assert!((5..=35).contains(&stay), "{stay}");
        let address = bad.close().await;
        let refusals = format!("stream_session_refusals_total{{port=\"{port}\"}}");
        for client in &clients {
            client.send(b"lost").await;
        }
        proxy.metric_reaches(&refusals, 40 - stay as u64).await;
        for client in &clients {
            // The answers of the good node to the datagrams before.
            while client.name_or(b"lost").await.is_none() {}
        }
        assert_eq!(good.sources(), 40, "each client has one session, and one address");

        // A new session does not reach the resting node, and the node is tried again later.
        let back = Node::with(UdpSocket::bind(address).await.unwrap(), b"b");
        for _ in 0..500 {
            Client::new(port).await.name().await;
            if back.sources() > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the node was never tried again");
    });
}

impl Client {
    /// The name of the backend that answers; none if the answer is that to another datagram.
    async fn name_or(&self, other: &[u8]) -> Option<u8> {
        let answer = self.ask(b"?").await;
        (answer[1..] != *other).then(|| answer[0])
    }
}

#[test]
fn the_only_node_is_asked_again_after_it_refused() {
    run(async {
        let node = Node::named(b'a').await;
        let port = free_port();
        let proxy = Proxy::serving(&[upstream("u", &[node.address]), udp(port, &[("u", 1)])]).await;
        let client = Client::new(port).await;
        assert_eq!(client.name().await, b'a');
        let address = node.close().await;
        let refusals = format!("stream_session_refusals_total{{port=\"{port}\"}}");
        for round in 1..=5 {
            client.send(b"lost").await;
            proxy.metric_reaches(&refusals, round).await;
        }
        let _back = Node::with(UdpSocket::bind(address).await.unwrap(), b"b");
        assert_eq!(client.name().await, b'b');
        assert_eq!(proxy.streams.sessions(), 1);
    });
}

#[test]
fn a_client_on_the_address_of_a_backend_or_of_a_port_gets_no_session() {
    run(async {
        let node = Node::named(b'a').await;
        let (port, other) = (free_port(), free_port());
        let spoofed = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let world = [
            upstream("a", &[node.address]),
            upstream("elsewhere", &[spoofed.local_addr().unwrap()]),
            udp(port, &[("a", 1)]),
            udp(other, &[("elsewhere", 1)]),
        ];
        let proxy = Proxy::serving(&world).await;
        spoofed.connect(("127.0.0.1", port)).await.unwrap();
        let spoofed = Client(spoofed);
        spoofed.send(b"?").await;
        proxy.drops(port, "source").await;
        let of_port = UdpSocket::bind(("127.0.0.9", other)).await.unwrap();
        of_port.send_to(b"?", ("127.0.0.1", port)).await.unwrap();
        proxy.metric_reaches(&dropped(port, "source"), 2).await;
        spoofed.hears_nothing().await;
        assert_eq!((proxy.streams.sessions(), node.sources()), (0, 0));
        // No longer a backend.
        proxy.apply(&world[..3]).await;
        proxy.apply(&[world[0].clone(), world[2].clone()]).await;
        assert_eq!(spoofed.name().await, b'a');
    });
}

#[test]
fn a_node_that_is_a_port_of_the_proxy_makes_no_loop() {
    run(async {
        let port = free_port();
        let own: SocketAddr = ([127, 0, 0, 1], port).into();
        let proxy = Proxy::serving(&[upstream("a", &[own]), udp(port, &[("a", 1)])]).await;
        Client::new(port).await.send(b"?").await;
        proxy.drops(port, "unreachable").await;
        assert_eq!(proxy.streams.sessions(), 0);
    });
}
