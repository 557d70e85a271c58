//! A shortage of file descriptors.

use std::fs::File;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::few_files::{FewFiles, serve};
use crate::support::*;

#[test]
#[ignore = "a process of its own, for the test below"]
fn serve_with_128_files() {
    let take = async |proxy: &Proxy, port, node| {
        // Other descriptors of the process, so that fewer are left than for all places.
        let taken = (0..60).map(|_| File::open("/dev/null").unwrap()).collect();
        proxy.apply(&[upstream("a", &[node]), tcp(port, &[("a", 1)])]).await;
        taken
    };
    serve(take, |port| format!("stream_accept_pauses_total{{port=\"{port}\"}}"));
}

#[test]
fn a_shortage_of_descriptors_pauses_accepting_and_harms_no_connection() {
    run(async {
        let backend = Backend::start(b'a').await;
        let begin = Instant::now();
        let mut process = FewFiles::start("files::serve_with_128_files", backend.address);
        let port = process.port;
        let mut kept = connect(port).await;
        assert_eq!(greeting(&mut kept).await, Some(b'a'));
        // Far more than fit; each is served, rejected, or waits in the queue.
        let mut crowd = Vec::new();
        for _ in 0..200 {
            crowd.extend(tokio::net::TcpStream::connect(("127.0.0.1", port)).await);
        }
        for round in 0..20_u8 {
            kept.write_all(&[round; 100]).await.unwrap();
            let mut answer = [0; 100];
            kept.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, [round; 100]);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // With descriptors again, others are served.
        drop(crowd);
        process.free_descriptors();
        let mut served = false;
        for _ in 0..100 {
            served = ask(port).await == Some(b'a');
            if served {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(served);
        let pauses = process.end();
        // One in 100 ms; a loop that spins has thousands.
        assert!((1..=begin.elapsed().as_millis() / 100 + 1).contains(&pauses), "{pauses}");
    });
}
