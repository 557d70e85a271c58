//! The server, in a process of its own (this program again), so that its memory is what is measured.

use pingsix_sink::{Desired, DocumentSet, EmbeddedEtcd, Sink as _};

use crate::commanded::{Commanded, answer, orders};
use crate::documents::{document, scope};
use crate::wire::Served;

/// The test that is no test but this process.
const MODE: &str = "server::serves_until_nobody_gives_orders";

const DOCUMENTS: usize = 1_000;

/// What changes from one state to the next: a value, and ten documents that are there two times of three.
fn state(step: usize) -> Desired {
    let present = |id: &usize| !(id + step).is_multiple_of(3) || !id.is_multiple_of(100);
    let documents = (0..DOCUMENTS).filter(present).map(|id| {
        let value = if id == step % DOCUMENTS { step } else { 0 };
        document(&format!("routes/{id:04}"), format!(r#"{{"uri":"/{id}","priority":{value:0>100}}}"#))
    });
    Desired::new(scope("/p/web"), DocumentSet::new(documents).unwrap())
}

/// A server that is measured. Ends with this value.
pub(crate) struct Server {
    process: Commanded,
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let (process, address) = Commanded::start(&["--exact", MODE, "--ignored", "--nocapture"]);
        Self { process, address }
    }

    /// Has it publish the next state, and says in which revision.
    pub(crate) fn change(&mut self, step: usize) -> i64 {
        self.process.ask(&step.to_string()).parse().unwrap()
    }

    /// What it has counted: watches that were cut off, and everything in words.
    pub(crate) fn counts(&mut self) -> (u64, String) {
        let answer = self.process.ask("stats");
        let (cut, all) = answer.split_once(' ').unwrap();
        (cut.parse().unwrap(), all.to_owned())
    }

    /// The memory that it has resident, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", self.process.pid())).unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the server of the soak, which that starts itself"]
async fn serves_until_nobody_gives_orders() {
    let served = Served::start(EmbeddedEtcd::builder().history(2_000, 64 << 20)).await;
    served.etcd.publish(&state(0)).await.unwrap();
    served.etcd.open();
    let mut orders = orders();
    answer(&served.address.to_string());
    while let Some(order) = orders.recv().await {
        if let Ok(step) = order.parse() {
            answer(&served.etcd.publish(&state(step)).await.unwrap().revision.get().to_string());
        } else {
            let stats = served.etcd.stats();
            answer(&format!("{} {stats:?}", stats.watches_compacted + stats.streams_stalled));
        }
    }
}
