use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use pingsix_gateway_sidecar::stream::StreamOptions;
use pingsix_test_programs::free_port;
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::*;
use crate::support::*;

const SIZES: [usize; 6] = [0, 1, 1_472, 1_473, 9_000, 65_507];

#[test]
fn each_datagram_arrives_as_it_was_sent() {
    run(async {
        let node = Node::echo().await;
        let port = free_port();
        let proxy = Proxy::serving(&[upstream("a", &[node.address]), udp(port, &[("a", 1)])]).await;
        let client = Client::new(port).await;
        for (seed, size) in (0..).zip(SIZES) {
            let datagram = bytes(seed, size);
            assert!(client.ask(&datagram).await == datagram, "{size} bytes");
        }
        // Without waiting for answers, in order, and some of one size one after the other.
        let burst: Vec<Vec<u8>> = (0..60).map(|seed| bytes(seed, SIZES[(seed / 3 % 4) as usize])).collect();
        for datagram in &burst {
            client.send(datagram).await;
        }
        for datagram in &burst {
            assert!(client.receive().await == *datagram);
        }
        assert_eq!(node.sources(), 1);
        let total = SIZES.iter().sum::<usize>() + burst.iter().map(Vec::len).sum::<usize>();
        for direction in ["in", "out"] {
            let labels = format!("{{port=\"{port}\",direction=\"{direction}\"}}");
            assert_eq!(proxy.metric(&format!("stream_datagrams_total{labels}")), 66);
            assert_eq!(proxy.metric(&format!("stream_datagram_bytes_total{labels}")), total as u64);
        }
    });
}

#[test]
fn ipv6_clients_and_nodes_get_fragments_too() {
    run(async {
        let (node, v4) = (Node::on("[::1]:0", &[]).await, Node::echo().await);
        let (port, mixed) = (free_port(), free_port());
        let proxy = Proxy::start(StreamOptions { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), ..options() });
        proxy
            .apply(&[
                upstream("a", &[node.address]),
                udp(port, &[("a", 1)]),
                upstream("b", &[v4.address]),
                udp(mixed, &[("b", 1)]),
            ])
            .await;
        for (host, port) in [("::1", port), ("127.0.0.1", port), ("::1", mixed), ("127.0.0.1", mixed)] {
            let client = Client::of(SocketAddr::new(host.parse().unwrap(), port)).await;
            for (seed, size) in (0..).zip(SIZES) {
                let datagram = bytes(seed, size);
                assert!(client.ask(&datagram).await == datagram, "{size} bytes from {host}");
            }
        }
        // More than a datagram of IPv4 can have.
        let client = Client::of((Ipv6Addr::LOCALHOST, port).into()).await;
        let datagram = bytes(1, 65_527);
        assert!(client.ask(&datagram).await == datagram);
        let client = Client::of((Ipv6Addr::LOCALHOST, mixed).into()).await;
        client.send(&datagram).await;
        proxy.drops(mixed, "too_large").await;
        assert_eq!(client.ask(b"x").await, b"x");
    });
}

/// Sends datagrams of one size, the last of which is shorter, in one call.
async fn send_together(
    socket: &UdpSocket,
    state: &UdpSocketState,
    to: SocketAddr,
    contents: &[u8],
    size: usize,
) {
    let transmit = Transmit { destination: to, ecn: None, contents, segment_size: Some(size), src_ip: None };
    let send = || state.try_send(UdpSockRef::from(socket), &transmit);
    socket.async_io(Interest::WRITABLE, send).await.unwrap();
}

async fn receive_together(socket: &UdpSocket, state: &UdpSocketState) -> (RecvMeta, Vec<u8>) {
    let (mut buffer, mut meta) = (vec![0; 65_536], [RecvMeta::default()]);
    let receive = || state.recv(UdpSockRef::from(socket), &mut [IoSliceMut::new(&mut buffer)], &mut meta);
    timeout(ANSWER_TIMEOUT, socket.async_io(Interest::READABLE, receive)).await.unwrap().unwrap();
    buffer.truncate(meta[0].len);
    (meta[0], buffer)
}

#[test]
fn joined_datagrams_keep_their_boundaries_in_both_directions() {
    run(async {
        let backend = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let port = free_port();
        let _proxy =
            Proxy::serving(&[upstream("a", &[backend.local_addr().unwrap()]), udp(port, &[("a", 1)])]).await;
        let client = Client::new(port).await;
        let to = client.0.peer_addr().unwrap();
        let state = UdpSocketState::new(UdpSockRef::from(&client.0)).unwrap();
        let of_backend = UdpSocketState::new(UdpSockRef::from(&backend)).unwrap();
        assert!(state.max_gso_segments() > 1, "this machine has GSO");
        let contents = bytes(7, 40 * 1_200 + 500);
        send_together(&client.0, &state, to, &contents, 1_200).await;
        let (meta, received) = receive_together(&backend, &of_backend).await;
        assert_eq!((meta.stride, received.len()), (1_200, contents.len()), "one call has passed them on");
        assert!(received == contents);
        send_together(&backend, &of_backend, meta.addr, &contents, 1_100).await;
        let (meta, received) = receive_together(&client.0, &state).await;
        assert_eq!((meta.stride, received.len()), (1_100, contents.len()));
        assert!(received == contents);

        // A receiver that knows nothing of it gets single datagrams.
        let plain = Node::echo().await;
        let port = free_port();
        let _proxy = Proxy::serving(&[upstream("a", &[plain.address]), udp(port, &[("a", 1)])]).await;
        let sender = Client::new(port).await;
        let state = UdpSocketState::new(UdpSockRef::from(&sender.0)).unwrap();
        send_together(&sender.0, &state, sender.0.peer_addr().unwrap(), &contents[..3_700], 1_200).await;
        let mut received = Vec::new();
        while received.len() < 4 {
            let (meta, bytes) = receive_together(&sender.0, &state).await;
            received.extend(bytes.chunks(meta.stride).map(<[u8]>::to_vec));
        }
        let sent: Vec<Vec<u8>> = contents[..3_700].chunks(1_200).map(<[u8]>::to_vec).collect();
        assert!(received == sent);
    });
}

#[test]
fn a_thousand_clients_get_their_own_datagrams() {
    run(async {
        let nodes = [Node::echo().await, Node::echo().await, Node::echo().await];
        let port = free_port();
        let world = [upstream("a", &nodes.each_ref().map(|node| node.address)), udp(port, &[("a", 1)])];
        let proxy = Proxy::serving(&world).await;
        let judges: Vec<_> = (0..1_000_u64)
            .map(|client| {
                tokio::spawn(async move {
                    let socket = Client::new(port).await;
                    for round in 0..10_u64 {
                        let seed = client * 100 + round;
                        let mut datagram = seed.to_le_bytes().to_vec();
                        datagram.extend(bytes(seed, (seed * 7_919 % 3_000) as usize));
                        // A thousand at once can be more than a socket holds, so a lost one is sent again.
                        let mut buffer = vec![0; 65_536];
                        loop {
                            socket.send(&datagram).await;
                            let received = timeout(SILENCE * 5, socket.0.recv(&mut buffer)).await;
                            let Ok(length) = received else { continue };
                            let answer = &buffer[..length.unwrap()];
                            let number = u64::from_le_bytes(answer[..8].try_into().unwrap());
                            assert!(number / 100 == client, "client {client} got a datagram of {number}");
                            // An answer to one that was sent again.
                            if number < seed {
                                continue;
                            }
                            assert!(*answer == *datagram, "client {client} got other bytes");
                            break;
                        }
                    }
                })
            })
            .collect();
        for judge in judges {
            judge.await.unwrap();
        }
        assert_eq!(proxy.streams.sessions(), 1_000);
        let sources: Vec<usize> = nodes.iter().map(Node::sources).collect();
        assert_eq!(sources.iter().sum::<usize>(), 1_000, "{sources:?}");
        assert!(sources.iter().all(|sources| *sources > 200), "{sources:?}");
    });
}

#[test]
fn answers_come_from_the_address_that_was_asked() {
    run(async {
        let node = Node::echo().await;
        let port = free_port();
        for address in ["0.0.0.0", "::"] {
            let proxy = Proxy::start(StreamOptions { address: address.parse().unwrap(), ..options() });
            proxy.apply(&[upstream("a", &[node.address]), udp(port, &[("a", 1)])]).await;
            let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            // One client, which asks two addresses, has two sessions.
            for host in ["127.0.0.2", "127.0.0.3", "127.0.0.2"] {
                let asked = SocketAddr::new(host.parse().unwrap(), port);
                client.send_to(host.as_bytes(), asked).await.unwrap();
                let mut buffer = [0; 64];
                let (length, source) =
                    timeout(ANSWER_TIMEOUT, client.recv_from(&mut buffer)).await.unwrap().unwrap();
                assert_eq!((source, &buffer[..length]), (asked, host.as_bytes()));
            }
            assert_eq!(proxy.streams.sessions(), 2);
            proxy.streams.drain(Duration::ZERO).await;
        }
    });
}
