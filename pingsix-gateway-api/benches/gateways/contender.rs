//! A running controller with its data plane.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pingsix_gateway_sidecar::responder::{Options, Reach, Responder};
use pingsix_test_cluster::{Process, TestCluster};
use pingsix_test_programs::pingsix_config;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::Client;
use crate::description::{Description, Ours, PREFIX, Program};
use crate::lab::CORE;
use crate::process::{self, Memory};

/// The names of processes, of which a cluster has each once.
const NAMES: [[&str; 2]; 2] = [["controller", "data-plane"], ["controller-beside", "data-plane-beside"]];

/// One of the measured controllers.
pub(crate) struct Contender {
    description: Description,
    controller: Process,
    data_plane: Option<Process>,
    _responder: Option<DropGuard>,
}

/// The processor time of the processes until a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) at: Instant,
    pub(crate) controller: Duration,
    pub(crate) data_plane: Duration,
}

impl Contender {
    pub(crate) async fn start(cluster: &TestCluster, description: &Description, index: usize) -> Self {
        let kubeconfig = cluster.kubeconfig(cluster.administrator()).unwrap();
        let [controller, data_plane] = NAMES[index];
        let run = async |name, program: &Program| {
            let words = program.words(CORE, &kubeconfig, cluster.folder());
            cluster.run(name, words.into_iter().map(Into::into).collect()).await.unwrap()
        };
        let mut responder = None;
        if let (Some(ours), Some(plane)) = (description.ours, &description.data_plane) {
            let feed = format!("http://{}", ours.feed);
            pingsix_config(cluster.folder(), plane.address, (&feed, PREFIX), ours.status);
            responder = Some(start_responder(ours.responder).await);
        }
        let controller = run(controller, &description.controller).await;
        let data_plane = match &description.data_plane {
            Some(plane) => Some(run(data_plane, &plane.program).await),
            None => None,
        };
        Self { description: description.clone(), controller, data_plane, _responder: responder }
    }

    pub(crate) fn name(&self) -> &str {
        self.description.name()
    }

    pub(crate) fn gateway(&self) -> String {
        self.description.gateway()
    }

    /// A client of the data plane, if there is one.
    pub(crate) fn client(&self) -> Option<Client> {
        self.description.data_plane.as_ref().map(|plane| Client::new(plane.address))
    }

    /// The addresses between our controller and PingSIX.
    pub(crate) fn ours(&self) -> Option<Ours> {
        self.description.ours
    }

    pub(crate) async fn usage(&self) -> Usage {
        let data_plane = match &self.data_plane {
            Some(plane) => process::cpu(plane.pid().await.expect("the data plane runs")),
            None => Duration::ZERO,
        };
        let controller = process::cpu(self.controller.pid().await.expect("the controller runs"));
        Usage { at: Instant::now(), controller, data_plane }
    }

    pub(crate) async fn memory(&self) -> Memory {
        process::memory(self.controller.pid().await.expect("the controller runs"))
    }

    /// The largest resident memory of the controller and of the data plane, in bytes.
    pub(crate) async fn peaks(&self) -> (u64, u64) {
        let data_plane = match &self.data_plane {
            Some(plane) => process::memory(plane.pid().await.expect("the data plane runs")).peak,
            None => 0,
        };
        (self.memory().await.peak, data_plane)
    }

    /// Waits until neither process has anything to do, for two minutes at most.
    pub(crate) async fn settle(&self) {
        let mut before = self.usage().await;
        for _ in 0..120 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let now = self.usage().await;
            let used = now.since(&before);
            if used.controller + used.data_plane < Duration::from_millis(30) {
                return;
            }
            before = now;
        }
    }
}

/// Used since an earlier moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) wall: Duration,
    pub(crate) controller: Duration,
    pub(crate) data_plane: Duration,
}

impl Usage {
    pub(crate) fn since(&self, earlier: &Self) -> Used {
        Used {
            wall: self.at - earlier.at,
            controller: self.controller.saturating_sub(earlier.controller),
            data_plane: self.data_plane.saturating_sub(earlier.data_plane),
        }
    }
}

async fn start_responder(address: SocketAddr) -> DropGuard {
    let responder = Responder::bind(address, Reach::Loopback, Options::default()).await.unwrap();
    let end = CancellationToken::new();
    tokio::spawn(responder.run(end.clone().cancelled_owned()));
    end.drop_guard()
}
