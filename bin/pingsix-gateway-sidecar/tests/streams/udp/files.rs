//! A process with few file descriptors.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use pingsix_test_programs::free_port;
use rustix::process::{Resource, Rlimit, setrlimit};

use super::*;
use crate::support::*;

const PORT: &str = "STREAMS_TEST_UDP_PORT";
const NODE: &str = "STREAMS_TEST_UDP_NODE";

#[test]
#[ignore = "a process of its own, for the test below"]
fn serve_with_128_files() {
    let (Ok(port), Ok(node)) = (std::env::var(PORT), std::env::var(NODE)) else { return };
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum: Some(128) }).unwrap();
    run(async {
        let proxy = Proxy::start(options());
        let port = port.parse().unwrap();
        proxy.apply(&[upstream("a", &[node.parse().unwrap()]), udp(port, &[("a", 1)])]).await;
        // Others take all descriptors, and leave four.
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        taken.truncate(taken.len() - 4);
        println!("ready");
        tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
            taken.clear();
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        })
        .await
        .unwrap();
        println!("dropped {}", proxy.metric(&dropped(port, "resources")));
    });
}

/// The processor time of a process, in hundredths of a second.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_shortage_of_descriptors_drops_new_clients_and_harms_no_session() {
    run(async {
        let node = Node::named(b'a').await;
        let port = free_port();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "udp::files::serve_with_128_files", "--ignored", "--nocapture"])
            .env(PORT, port.to_string())
            .env(NODE, node.address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        lines.find(|line| line.ends_with("ready")).unwrap();

        let kept = Client::new(port).await;
        assert_eq!(kept.name().await, b'a');
        let mut crowd = Vec::new();
        for _ in 0..100 {
            let client = Client::new(port).await;
            client.send(b"?").await;
            crowd.push(client);
        }
        for _ in 0..20 {
            assert_eq!(kept.name().await, b'a');
        }
        assert!(node.sources() <= 4, "{}", node.sources());
        let waiting = ticks(child.id());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let used = ticks(child.id()) - waiting;
        assert!(used < 30, "the process spins for {used} hundredths of a second");
        // With descriptors again, others are served.
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"\n").unwrap();
        let mut buffer = [0; 8];
        let mut served = false;
        for _ in 0..100 {
            crowd[99].send(b"?").await;
            served = timeout(SILENCE, crowd[99].0.recv(&mut buffer)).await.is_ok();
            if served {
                break;
            }
        }
        assert!(served);
        assert_eq!(kept.name().await, b'a');
        drop(input);
        let report = lines.find(|line| line.contains("dropped")).unwrap();
        assert!(child.wait().unwrap().success());
        let dropped: u64 = report.split(' ').next_back().unwrap().parse().unwrap();
        assert!(dropped >= 96, "{report}");
    });
}
