use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::stream::StreamOptions;
use pingsix_test_programs::free_port;
use tokio::net::TcpSocket;

use crate::support::*;

#[test]
fn a_node_that_refuses_is_passed_over_and_rests() {
    run(async {
        let (good, bad) = (Backend::start(b'g').await, Backend::start(b'b').await);
        let bad_address = bad.address;
        bad.close().await;
        let port = free_port();
        let proxy =
            Proxy::serving(&[upstream("u", &[good.address, bad_address]), tcp(port, &[("u", 1)])]).await;
        let begin = Instant::now();
        for _ in 0..100 {
            assert_eq!(ask(port).await, Some(b'g'));
        }
        let failures = proxy.metric(&format!("stream_connect_failures_total{{port=\"{port}\"}}"));
        let rests = begin.elapsed().as_secs() + 1;
        assert!((1..=rests).contains(&failures), "{failures} failures");

        // It is taken again once it serves and its rest is over.
        let listener = tokio::net::TcpListener::bind(bad_address).await.unwrap();
        let back = Backend::on(listener, b'b');
        for _ in 0..200 {
            ask(port).await;
            if back.accepted() > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the node was never tried again");
    });
}

#[test]
fn a_node_that_does_not_answer_costs_one_timeout() {
    run(async {
        // A listener whose queue is full lets no connection come about.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let silent = socket.listen(1).unwrap();
        let address = silent.local_addr().unwrap();
        let mut queued = Vec::new();
        while let Ok(Ok(stream)) =
            tokio::time::timeout(Duration::from_millis(300), tokio::net::TcpStream::connect(address)).await
        {
            queued.push(stream);
        }
        let good = Backend::start(b'g').await;
        let port = free_port();
        let proxy = Proxy::start(StreamOptions { connect_timeout: Duration::from_millis(200), ..options() });
        proxy.apply(&[upstream("u", &[good.address, address]), tcp(port, &[("u", 1)])]).await;
        let begin = Instant::now();
        for _ in 0..30 {
            assert_eq!(ask(port).await, Some(b'g'));
        }
        let failures = proxy.metric(&format!("stream_connect_failures_total{{port=\"{port}\"}}"));
        let rests = begin.elapsed().as_secs() + 1;
        assert!((1..=rests).contains(&failures), "{failures} failures");
        proxy.apply(&[upstream("u", &[address]), tcp(port, &[("u", 1)])]).await;
        assert_eq!(ask(port).await, None, "the only node does not answer");
        proxy.rejects(port, "unreachable").await;
    });
}

#[test]
fn connections_spread_over_nodes() {
    run(async {
        let nodes = [Backend::start(b'a').await, Backend::start(b'b').await, Backend::start(b'c').await];
        let addresses = nodes.each_ref().map(|node| node.address);
        let port = free_port();
        let _proxy = Proxy::serving(&[upstream("u", &addresses), tcp(port, &[("u", 1)])]).await;
        let mut open = Vec::new();
        for _ in 0..150 {
            let mut stream = connect(port).await;
            assert!(greeting(&mut stream).await.is_some());
            open.push(stream);
        }
        for node in &nodes {
            assert!((40..=60).contains(&node.accepted()), "{}", node.accepted());
        }
    });
}
