use std::time::{Duration, Instant};

use pingsix_test_programs::free_port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::*;

#[test]
fn a_drain_lets_connections_end_and_takes_no_new_ones() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let proxy = Proxy::serving(&[upstream("a", &[backend.address]), tcp(port, &[("a", 1)])]).await;
        let mut stream = connect(port).await;
        assert_eq!(greeting(&mut stream).await, Some(b'a'));
        let drained = tokio::spawn(proxy.streams.drain(Duration::from_secs(30)));
        no_listener(port).await;
        stream.write_all(b"still here").await.unwrap();
        let mut answer = [0; 10];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"still here");
        assert!(!drained.is_finished());
        drop(stream);
        drained.await.unwrap();
    });
}

#[test]
fn connections_in_the_queue_are_served_and_those_that_last_are_reset() {
    // One thread: nothing is accepted between the connections and the drain.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let proxy = Proxy::serving(&[upstream("a", &[backend.address]), tcp(port, &[("a", 1)])]).await;
        let queued: Vec<_> =
            (0..20).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        let begin = Instant::now();
        let drained = tokio::spawn(proxy.streams.drain(Duration::from_millis(500)));
        let mut served = Vec::new();
        for stream in queued {
            stream.set_nonblocking(true).unwrap();
            let mut stream = tokio::net::TcpStream::from_std(stream).unwrap();
            assert_eq!(greeting(&mut stream).await, Some(b'a'));
            served.push(stream);
        }
        for mut stream in served {
            let error = stream.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        }
        drained.await.unwrap();
        assert!((500..20_000).contains(&begin.elapsed().as_millis()));
    });
}

#[test]
fn a_dropped_role_closes_everything() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let proxy = Proxy::serving(&[upstream("a", &[backend.address]), tcp(port, &[("a", 1)])]).await;
        let mut stream = connect(port).await;
        assert_eq!(greeting(&mut stream).await, Some(b'a'));
        drop(proxy);
        assert_eq!(stream.read_u8().await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        // Another task closes the listener.
        no_listener(port).await;
    });
}
