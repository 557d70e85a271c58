//! An embedded server in a process of its own (this program again), whose time and memory can be measured.

use pingsix_sink::embedded::Pace;
use pingsix_sink::{EmbeddedEtcd, Sink as _};
use tonic::transport::Channel;

use crate::child_process::{ChildServer, answer, commands};
use crate::process;
use crate::routes::Routes;
use crate::wire::Served;

/// The first argument of such a process.
pub(crate) const SERVER_ARGUMENT: &str = "server";

/// The pace of a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pacing {
    Default,
    None,
}

/// Publications in the history.
pub(crate) const MAX_HISTORY: usize = 256;

/// A measured server. Ends with this value.
pub(crate) struct Server {
    process: ChildServer,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(routes: usize, pacing: Pacing) -> Self {
        let (process, address) =
            ChildServer::start(&[SERVER_ARGUMENT, &routes.to_string(), &format!("{pacing:?}")]);
        Self { process, address }
    }

    /// Lets the server change one route, and returns the revision.
    pub(crate) fn change(&mut self, number: usize) -> i64 {
        self.process.request(&number.to_string()).parse().unwrap()
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn memory(&self) -> u64 {
        process::memory(self.pid())
    }
}

/// The body of such a process.
pub(crate) async fn run(count: usize, pacing: &str) {
    let pace = if pacing == "None" { Pace::NONE } else { Pace::default() };
    let mut routes = Routes::new(count);
    let served = Served::start(EmbeddedEtcd::builder().pace(pace).history(MAX_HISTORY, 64 << 20)).await;
    served.etcd.publish(&routes.desired()).await.unwrap();
    served.etcd.open();
    let mut commands = commands();
    answer(&served.address.to_string());
    while let Some(command) = commands.recv().await {
        let Ok(number) = command.parse() else { break };
        routes.change(number);
        let revision = served.etcd.publish(&routes.desired()).await.unwrap().revision;
        answer(&revision.get().to_string());
    }
}
