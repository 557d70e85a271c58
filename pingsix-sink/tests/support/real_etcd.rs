//! A real etcd, started for one test.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use pingsix_sink::proto::etcdserverpb::StatusRequest;
use pingsix_sink::proto::etcdserverpb::maintenance_client::MaintenanceClient;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tonic::transport::Channel;

use crate::programs;

/// A running etcd with an empty store; dropping it ends it.
pub(crate) struct RealEtcd {
    pub(crate) address: String,
    child: Child,
    _directory: TempDir,
}

impl RealEtcd {
    /// Starts etcd and waits until it answers, or prints that the test is skipped.
    pub(crate) async fn start() -> Option<Self> {
        let program = programs::find("etcd")?;
        let directory = tempfile::tempdir().unwrap();
        let (client, peer) = (free_address(), free_address());
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(["--listen-client-urls", &format!("http://{client}")])
            .args(["--advertise-client-urls", &format!("http://{client}")])
            .args(["--listen-peer-urls", &format!("http://{peer}")])
            .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
            .args(["--initial-cluster", &format!("default=http://{peer}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let etcd = Self { address: client, child, _directory: directory };
        let mut tries = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..200 {
            tries.tick().await;
            let endpoint = Channel::from_shared(format!("http://{}", etcd.address)).unwrap();
            let asking = async {
                let channel = endpoint.connect().await.ok()?;
                MaintenanceClient::new(channel).status(StatusRequest {}).await.ok()
            };
            // A connection made before etcd serves may never be answered.
            if let Ok(Some(status)) = tokio::time::timeout(Duration::from_secs(1), asking).await
                && status.into_inner().leader != 0
            {
                return Some(etcd);
            }
        }
        panic!("etcd did not answer in time");
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    pub(crate) async fn stop(mut self) {
        self.child.kill().await.unwrap();
    }
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
