//! A process with few file descriptors.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use pingsix_test_programs::free_port;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::support::{Proxy, options, run};

const PORT: &str = "STREAMS_TEST_PORT";
const NODE: &str = "STREAMS_TEST_NODE";

/// The body of the test that is the process: it has 128 descriptors, of which others hold those of `take`. Without the
/// variables of [`FewFiles::start`] it does nothing. It ends with the value of a metric.
#[expect(clippy::print_stdout, reason = "the test that starts the process reads its output")]
pub(crate) fn serve(
    take: impl AsyncFnOnce(&Proxy, u16, SocketAddr) -> Vec<File>,
    metric: impl FnOnce(u16) -> String,
) {
    let (Ok(port), Ok(node)) = (std::env::var(PORT), std::env::var(NODE)) else { return };
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum: Some(128) }).unwrap();
    run(async {
        let proxy = Proxy::start(options());
        let port = port.parse().unwrap();
        let mut taken = take(&proxy, port, node.parse().unwrap()).await;
        println!("ready");
        tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
            taken.clear();
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        })
        .await
        .unwrap();
        println!("counted {}", proxy.metric(&metric(port)));
    });
}

/// A running process.
pub(crate) struct FewFiles {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
    pub(crate) port: u16,
}

impl FewFiles {
    /// Starts the test of this name as a process that serves a node.
    pub(crate) fn start(test: &str, node: SocketAddr) -> Self {
        let port = free_port();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(PORT, port.to_string())
            .env(NODE, node.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        lines.find(|line| line.ends_with("ready")).unwrap();
        Self { child, lines: Box::new(lines), port }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Others close the descriptors that they hold.
    pub(crate) fn free_descriptors(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Ends the process. Returns the value of its metric.
    pub(crate) fn end(mut self) -> u128 {
        drop(self.child.stdin.take());
        let report = self.lines.find(|line| line.contains("counted")).unwrap();
        assert!(self.child.wait().unwrap().success());
        report.split(' ').next_back().unwrap().parse().unwrap()
    }
}
