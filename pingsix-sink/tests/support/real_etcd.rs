//! A real etcd, started for one test.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use pingsix_sink::proto::etcdserverpb::StatusRequest;
use pingsix_sink::proto::etcdserverpb::maintenance_client::MaintenanceClient;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tonic::transport::{Channel, ClientTlsConfig};

use crate::programs;

/// A running etcd with a store of its own; dropping it ends it.
pub(crate) struct RealEtcd {
    pub(crate) address: String,
    pub(crate) directory: TempDir,
    program: PathBuf,
    peer: String,
    options: Vec<String>,
    tls: Option<ClientTlsConfig>,
    child: Child,
}

/// What a signal does to a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Pause,
    Continue,
}

impl RealEtcd {
    /// Starts etcd and waits until it answers, or prints that the test is skipped.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// With more options.
    pub(crate) async fn start_with(options: &[&str]) -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), options, None).await
    }

    /// With a directory that has the certificates named in the options; over TLS, if given how to talk to it.
    pub(crate) async fn start_in(
        directory: TempDir,
        options: &[&str],
        tls: Option<ClientTlsConfig>,
    ) -> Option<Self> {
        let program = programs::find("etcd")?;
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let (address, peer) = (free_address(), free_address());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let child = spawn(&program, &directory, &format!("{scheme}://{address}"), &peer, &options);
        let etcd = Self { address, directory, program, peer, options, tls, child };
        etcd.wait().await;
        Some(etcd)
    }

    /// Waits until it answers.
    async fn wait(&self) {
        let mut tries = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..200 {
            tries.tick().await;
            let asking = async {
                let channel = self.try_channel().await.ok()?;
                MaintenanceClient::new(channel).status(StatusRequest {}).await.ok()
            };
            // A connection made before etcd serves may never be answered.
            if let Ok(Some(status)) = tokio::time::timeout(Duration::from_secs(1), asking).await
                && status.into_inner().leader != 0
            {
                return;
            }
        }
        panic!("etcd did not answer in time");
    }

    /// The URL of the only member.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    async fn try_channel(&self) -> Result<Channel, tonic::transport::Error> {
        let endpoint = Channel::from_shared(self.url()).unwrap();
        match &self.tls {
            Some(tls) => endpoint.tls_config(tls.clone())?.connect().await,
            None => endpoint.connect().await,
        }
    }

    pub(crate) async fn channel(&self) -> Channel {
        self.try_channel().await.unwrap()
    }

    pub(crate) async fn stop(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Ends the process and keeps the store.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Starts it again, on the same address with the same store.
    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(&self.program, &self.directory, &self.url(), &self.peer, &self.options);
        self.wait().await;
    }

    /// Starts it again with nothing in its store, as if it had been lost.
    pub(crate) async fn start_empty(&mut self) {
        std::fs::remove_dir_all(self.directory.path().join("data")).unwrap();
        self.start_again().await;
    }

    /// Pauses the process, or lets it go on.
    pub(crate) fn signal(&self, signal: Signal) {
        let name = match signal {
            Signal::Pause => "-STOP",
            Signal::Continue => "-CONT",
        };
        let process = self.child.id().expect("it runs").to_string();
        assert!(std::process::Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    /// Runs `etcdctl` on it, which must succeed.
    pub(crate) async fn control(&self, arguments: &[&str]) -> String {
        let program = programs::find("etcdctl").expect("etcdctl comes with etcd");
        let endpoints = format!("--endpoints={}", self.address);
        let said = programs::run(&program, [&[endpoints.as_str()], arguments].concat()).await;
        assert!(said.ok, "{arguments:?}: {said:?}");
        said.out
    }
}

fn spawn(program: &PathBuf, directory: &TempDir, client: &str, peer: &str, options: &[String]) -> Child {
    Command::new(program)
        .arg("--data-dir")
        .arg(directory.path().join("data"))
        .args(["--listen-client-urls", client, "--advertise-client-urls", client])
        .args(["--listen-peer-urls", &format!("http://{peer}")])
        .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
        .args(["--initial-cluster", &format!("default=http://{peer}")])
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
