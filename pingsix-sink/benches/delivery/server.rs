//! An embedded server in a process of its own (this program again), whose time and memory nobody shares.

use pingsix_sink::embedded::Pace;
use pingsix_sink::{EmbeddedEtcd, Sink as _};
use tonic::transport::Channel;

use crate::commanded::{Commanded, answer, orders};
use crate::process;
use crate::routes::Routes;
use crate::wire::Served;

/// The first argument of such a process.
pub(crate) const MODE: &str = "server";

/// How often it tells a watch of changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pacing {
    Default,
    None,
}

/// How many publications it remembers for watches.
pub(crate) const HISTORY: usize = 256;

/// A server that is measured. Ends with this value.
pub(crate) struct Server {
    process: Commanded,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(routes: usize, pacing: Pacing) -> Self {
        let (process, address) = Commanded::start(&[MODE, &routes.to_string(), &format!("{pacing:?}")]);
        Self { process, address }
    }

    /// Has it change one route, and says in which revision.
    pub(crate) fn change(&mut self, number: usize) -> i64 {
        self.process.ask(&number.to_string()).parse().unwrap()
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

/// What such a process does.
pub(crate) async fn run(count: usize, pacing: &str) {
    let pace = if pacing == "None" { Pace::NONE } else { Pace::default() };
    let mut routes = Routes::new(count);
    let served = Served::start(EmbeddedEtcd::builder().pace(pace).history(HISTORY, 64 << 20)).await;
    served.etcd.publish(&routes.desired()).await.unwrap();
    served.etcd.open();
    let mut orders = orders();
    answer(&served.address.to_string());
    while let Some(order) = orders.recv().await {
        let Ok(number) = order.parse() else { break };
        routes.change(number);
        let revision = served.etcd.publish(&routes.desired()).await.unwrap().revision;
        answer(&revision.get().to_string());
    }
}
