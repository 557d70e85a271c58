//! `pingsix-gatewayctl serve` as a child process.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Timeout of a start, far longer than it takes.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `serve`, killed when it is dropped.
pub(crate) struct Serve {
    _child: Child,
    /// The address of PingSIX's configuration source.
    pub(crate) etcd: SocketAddr,
}

impl Serve {
    /// Serves manifests, each Service with the endpoints given for it, and waits until it is ready.
    pub(crate) async fn start(manifests: &Path, endpoints: &[(String, SocketAddr)], layout: &str) -> Self {
        let mut arguments: Vec<String> =
            ["--responder", "127.0.0.1:0", "--layout", layout].map(str::to_owned).into();
        for (service, address) in endpoints {
            arguments.extend(["--endpoints".to_owned(), format!("{service}={address}")]);
        }
        Self::start_with(manifests, &arguments).await
    }

    /// Serves manifests with these options of translation, and waits until it is ready.
    pub(crate) async fn start_with(manifests: &Path, arguments: &[String]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pingsix-gatewayctl"));
        command.arg("serve").arg(manifests).args(["--listen", "127.0.0.1:0"]).args(arguments);
        command.env("RUST_LOG", "error");
        command.args(["--debounce", "1", "--poll", "10"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut etcd = None;
        let started = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some(address) = line.strip_prefix("etcd on ") {
                    etcd = Some(address.parse().unwrap());
                }
                if line == "ready" {
                    return;
                }
            }
            panic!("serve ended");
        };
        tokio::time::timeout(WAIT_TIMEOUT, started).await.expect("serve hangs");
        // A thread reads the further output, so the program never waits for a reader.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { _child: child, etcd: etcd.unwrap() }
    }
}
