//! The server in a process of its own (this program again), whose memory is measured.

use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Sink as _};

use crate::child_process::{ChildServer, answer, commands};
use crate::wire::Served;
use pingsix_sink::contract::documents::{document, scope};

/// The test function that only serves this process.
const SERVER_TEST: &str = "server::serves_until_its_input_ends";

const DOCUMENTS: usize = 1_000;

/// The state of a step: a changed value, and ten documents that exist in two of three steps.
fn state(step: usize) -> Desired {
    let present = |id: &usize| !(id + step).is_multiple_of(3) || !id.is_multiple_of(100);
    let documents = (0..DOCUMENTS).filter(present).map(|id| {
        let value = if id == step % DOCUMENTS { step } else { 0 };
        document(&format!("routes/{id:04}"), format!(r#"{{"uri":"/{id}","priority":{value:0>100}}}"#))
    });
    Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap())
}

/// A measured server. Ends with this value.
pub(crate) struct Server {
    process: ChildServer,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let (process, address) = ChildServer::start(&["--exact", SERVER_TEST, "--ignored", "--nocapture"]);
        Self { process, address }
    }

    /// Lets the server publish the next state, and returns the revision.
    pub(crate) fn change(&mut self, step: usize) -> i64 {
        self.process.request(&step.to_string()).parse().unwrap()
    }

    /// Its counters: cancelled watches, and all counters as text.
    pub(crate) fn counts(&mut self) -> (u64, String) {
        let answer = self.process.request("stats");
        let (cut, all) = answer.split_once(' ').unwrap();
        (cut.parse().unwrap(), all.to_owned())
    }

    /// The resident memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", self.process.pid())).unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the server of the soak, which that starts itself"]
async fn serves_until_its_input_ends() {
    let served = Served::start(EmbeddedEtcd::builder().history(2_000, 64 << 20)).await;
    served.etcd.publish(&state(0)).await.unwrap();
    served.etcd.open();
    let mut commands = commands();
    answer(&served.address.to_string());
    while let Some(command) = commands.recv().await {
        if let Ok(step) = command.parse() {
            answer(&served.etcd.publish(&state(step)).await.unwrap().revision.get().to_string());
        } else {
            let stats = served.etcd.stats();
            answer(&format!("{} {stats:?}", stats.watches_compacted + stats.streams_stalled));
        }
    }
}
