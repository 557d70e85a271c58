//! A shortage of file descriptors.

use std::fs::File;

use super::*;
use crate::few_files::{FewFiles, serve};
use crate::support::*;

#[test]
#[ignore = "a process of its own, for the test below"]
fn serve_with_128_files() {
    let take = async |proxy: &Proxy, port, node| {
        proxy.apply(&[upstream("a", &[node]), udp(port, &[("a", 1)])]).await;
        // Others take all descriptors, and leave four.
        let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        taken.truncate(taken.len() - 4);
        taken
    };
    serve(take, |port| dropped(port, "resources"));
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
        let mut process = FewFiles::start("udp::files::serve_with_128_files", node.address);
        let port = process.port;
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
        let waiting = ticks(process.id());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let used = ticks(process.id()) - waiting;
        assert!(used < 30, "the process spins for {used} hundredths of a second");
        // With descriptors again, others are served.
        process.free_descriptors();
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
        let dropped = process.end();
        assert!(dropped >= 96, "{dropped}");
    });
}
