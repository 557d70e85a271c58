//! The controller in a process of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use pingsix_gateway_api::controller::{Controller, ControllerOptions};
use pingsix_sink::EmbeddedEtcd;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::process;

/// The first argument of a process that is a controller.
pub(crate) const MODE: &str = "controller";

/// A controller that is measured. Ends with this value.
pub(crate) struct Controlled {
    child: Child,
    /// When it is closed, the process ends.
    _stdin: ChildStdin,
    /// The address of its feed.
    pub(crate) address: String,
}

impl Controlled {
    pub(crate) async fn start(kubeconfig: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(MODE)
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut address = String::new();
        let (_, address) = tokio::task::spawn_blocking(move || {
            (BufReader::new(stdout).read_line(&mut address).unwrap(), address)
        })
        .await
        .unwrap();
        Self { child, _stdin: stdin, address: address.trim().to_owned() }
    }

    pub(crate) fn cpu(&self) -> Duration {
        process::cpu(self.child.id())
    }

    pub(crate) fn memory(&self) -> process::Memory {
        process::memory(self.child.id())
    }

    /// Waits until it has nothing to do any more, for a minute at most.
    pub(crate) async fn settle(&self) {
        let mut before = self.cpu();
        for _ in 0..60 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.cpu();
            if now.saturating_sub(before) < Duration::from_millis(20) {
                return;
            }
            before = now;
        }
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The task of the process.
pub(crate) async fn run(kubeconfig: &str) {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let etcd = EmbeddedEtcd::builder().start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::io::stdout().flush().unwrap();
    let stop = CancellationToken::new();
    let (feed, until) = (etcd.clone(), stop.clone());
    let server = tokio::spawn(async move { feed.serve(listener, until).await });
    let controller = Controller::new(
        client,
        Arc::new(etcd),
        ControllerOptions::new(pingsix_translate::Options::default(), "bench"),
    );
    let parent_is_gone = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    tokio::select! {
        ended = controller.run(stop.clone()) => ended.unwrap(),
        ended = server => ended.unwrap().unwrap(),
        _ = parent_is_gone => {}
    }
}
