use pingsix_gateway_sidecar::stream::StreamOptions;
use pingsix_test_programs::free_port;

use super::*;
use crate::support::*;

#[test]
fn the_least_recently_used_session_gives_way() {
    run(async {
        let node = Node::named(b'a').await;
        let port = free_port();
        let proxy = Proxy::start(StreamOptions { max_sessions: 10, ..options() });
        proxy.apply(&[upstream("a", &[node.address]), udp(port, &[("a", 1)])]).await;
        let mut clients = Vec::new();
        for _ in 0..10 {
            let client = Client::new(port).await;
            client.name().await;
            clients.push(client);
        }
        // The first one is in use, so that the second is the oldest.
        clients[0].name().await;
        let newest = Client::new(port).await;
        newest.name().await;
        assert_eq!((proxy.streams.sessions(), proxy.metric(&ended(port, "evicted"))), (10, 1));
        let before = node.sources();
        clients[0].name().await;
        for client in &clients[2..] {
            client.name().await;
        }
        assert_eq!(node.sources(), before, "they have their sessions");
        // And the second has a new one.
        clients[1].name().await;
        assert_eq!((node.sources(), proxy.metric(&ended(port, "evicted"))), (before + 1, 2));
    });
}

#[test]
fn a_port_with_many_sessions_gives_up_for_a_port_with_few() {
    run(async {
        let node = Node::named(b'a').await;
        let (many, few) = (free_port(), free_port());
        let proxy = Proxy::start(StreamOptions { max_sessions: 20, ..options() });
        proxy.apply(&[upstream("a", &[node.address]), udp(many, &[("a", 1)]), udp(few, &[("a", 1)])]).await;
        let mut kept = Vec::new();
        for _ in 0..5 {
            let client = Client::new(few).await;
            client.name().await;
            kept.push(client);
        }
        for _ in 0..100 {
            Client::new(many).await.name().await;
        }
        let before = node.sources();
        for client in &kept {
            client.name().await;
        }
        assert_eq!(node.sources(), before, "the sessions of the other port are untouched");
        assert_eq!(proxy.metric(&ended(few, "evicted")), 0);
        for _ in 0..5 {
            let client = Client::new(few).await;
            client.name().await;
            kept.push(client);
        }
        until(|| proxy.streams.sessions() <= 20, "the limit").await;
        assert_eq!(proxy.metric(&ended(few, "evicted")), 0);
        assert_eq!(proxy.metric(&format!("stream_active_sessions{{port=\"{few}\"}}")), 10);
        assert_eq!(proxy.metric(&format!("stream_active_sessions{{port=\"{many}\"}}")), 10);
    });
}

#[test]
fn an_idle_session_ends_and_one_in_use_does_not() {
    run(async {
        let node = Node::named(b'a').await;
        let port = free_port();
        let proxy = Proxy::start(StreamOptions { session_idle: Duration::from_secs(2), ..options() });
        proxy.apply(&[upstream("a", &[node.address]), udp(port, &[("a", 1)])]).await;
        let (idle, used) = (Client::new(port).await, Client::new(port).await);
        idle.name().await;
        for _ in 0..40 {
            used.name().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!((proxy.metric(&ended(port, "idle")), proxy.streams.sessions()), (1, 1));
        assert_eq!(node.sources(), 2);
        idle.name().await;
        assert_eq!(node.sources(), 3);
    });
}

#[test]
fn new_sessions_have_a_rate_and_others_go_on() {
    run(async {
        let node = Node::named(b'a').await;
        let port = free_port();
        let proxy = Proxy::start(StreamOptions { new_sessions_per_second: 5, ..options() });
        proxy.apply(&[upstream("a", &[node.address]), udp(port, &[("a", 1)])]).await;
        let client = Client::new(port).await;
        client.name().await;
        let begin = std::time::Instant::now();
        let mut strangers = Vec::new();
        for _ in 0..200 {
            let stranger = Client::new(port).await;
            stranger.send(b"?").await;
            strangers.push(stranger);
        }
        proxy.drops(port, "rate").await;
        for _ in 0..100 {
            client.name().await;
        }
        let (most, sessions) = (5 + 5 * (begin.elapsed().as_secs() + 1), node.sources() as u64);
        assert!((5..=most).contains(&sessions), "{sessions}");
    });
}
