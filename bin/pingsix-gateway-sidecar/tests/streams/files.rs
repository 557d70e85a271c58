//! A process with few file descriptors.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pingsix_test_programs::free_port;
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::*;

const PORT: &str = "STREAMS_TEST_PORT";
const NODE: &str = "STREAMS_TEST_NODE";

#[test]
#[ignore = "a process of its own, for the test below"]
fn serve_with_128_files() {
    let (Ok(port), Ok(node)) = (std::env::var(PORT), std::env::var(NODE)) else { return };
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum: Some(128) }).unwrap();
    run(async {
        let proxy = Proxy::start(options());
        let port = port.parse().unwrap();
        // Other descriptors of the process, so that fewer are left than for all places.
        let mut taken: Vec<_> = (0..60).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        proxy.apply(&[upstream("a", &[node.parse().unwrap()]), tcp(port, &[("a", 1)])]).await;
        println!("ready");
        tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
            taken.clear();
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        })
        .await
        .unwrap();
        let pauses = proxy.metric(&format!("stream_accept_pauses_total{{port=\"{port}\"}}"));
        println!("pauses {pauses}");
    });
}

#[test]
fn a_shortage_of_descriptors_pauses_accepting_and_harms_no_connection() {
    run(async {
        let backend = Backend::start(b'a').await;
        let port = free_port();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::serve_with_128_files", "--ignored", "--nocapture"])
            .env(PORT, port.to_string())
            .env(NODE, backend.address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        lines.find(|line| line.ends_with("ready")).unwrap();

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
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"\n").unwrap();
        let mut served = false;
        for _ in 0..100 {
            served = ask(port).await == Some(b'a');
            if served {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(served);
        drop(input);
        let report = lines.find(|line| line.contains("pauses")).unwrap();
        assert!(child.wait().unwrap().success());
        let pauses: u128 = report.split(' ').next_back().unwrap().parse().unwrap();
        // One in 100 ms; a loop that spins has thousands.
        assert!((1..=begin.elapsed().as_millis() / 100 + 1).contains(&pauses), "{report}");
    });
}
