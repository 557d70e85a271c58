//! Asks PingSIX instances how far they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use pingsix_translate::DataPlaneKey;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::delivery::Instances;
use crate::delivery::status_page::{StatusClient, StatusPage, StatusUrl};

/// How often is asked while an answer is awaited.
const IMPATIENT: Duration = Duration::from_millis(250);

/// How often is asked when all have confirmed.
const PATIENT: Duration = Duration::from_secs(10);

/// The revision of each data plane that was published last.
pub(super) type PublishedRevisions = BTreeMap<DataPlaneKey, i64>;

/// What was found out about the instances of a data plane.
pub(super) type Pages = (DataPlaneKey, Instances);

/// Asks the status pages, in every replica: the one that leads says what has come of a publication, and each searches for
/// what the instances refuse that read from it. Each data plane has its own pace, so that an instance that does not answer
/// keeps nobody waiting but those beside it.
pub(super) fn start(
    pages: &BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    client: &StatusClient,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) -> (watch::Sender<PublishedRevisions>, mpsc::Receiver<Pages>) {
    let published = watch::Sender::new(PublishedRevisions::new());
    let (answers, receiver) = mpsc::channel(16);
    for (data_plane, urls) in pages.clone() {
        let poll = Poll {
            data_plane,
            urls,
            client: client.clone(),
            revisions: published.subscribe(),
            answers: answers.clone(),
        };
        let stop = stop.clone();
        tasks.spawn(async move {
            stop.run_until_cancelled(poll.run()).await;
        });
    }
    (published, receiver)
}

/// Asks the instances of one data plane.
struct Poll {
    data_plane: DataPlaneKey,
    urls: BTreeSet<StatusUrl>,
    client: StatusClient,
    revisions: watch::Receiver<PublishedRevisions>,
    answers: mpsc::Sender<Pages>,
}

impl Poll {
    /// Runs until nobody publishes, or nobody listens.
    async fn run(mut self) {
        loop {
            let published = self.revisions.wait_for(|revisions| revisions.contains_key(&self.data_plane));
            let Ok(revision) = published.await.map(|revisions| revisions.get(&self.data_plane).copied())
            else {
                return;
            };
            let read = join_all(self.urls.iter().map(|url| read(&self.client, url))).await;
            let confirmed = |page: &Result<StatusPage, String>| {
                page.as_ref().is_ok_and(|page| Some(page.published_revision) >= revision)
            };
            let pause = if read.iter().all(confirmed) { PATIENT } else { IMPATIENT };
            let instances = Instances::Pages(self.urls.iter().cloned().zip(read).collect());
            if self.answers.send((self.data_plane.clone(), instances)).await.is_err() {
                return;
            }
            let other =
                self.revisions.wait_for(|revisions| revisions.get(&self.data_plane).copied() != revision);
            tokio::select! {
                () = sleep(pause) => {}
                other = other => if other.is_err() { return },
            }
        }
    }
}

async fn read(client: &StatusClient, url: &StatusUrl) -> Result<StatusPage, String> {
    client.read(url).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    use axum::Router;
    use axum::routing::get;
    use tokio::net::TcpListener;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::operations::server::serve;

    /// An instance that is at a revision.
    #[derive(Clone, Default)]
    struct Instance {
        revision: Arc<AtomicI64>,
        asked: Arc<AtomicUsize>,
    }

    impl Instance {
        async fn start(&self, stop: &CancellationToken) -> StatusUrl {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let this = self.clone();
            let page = async move || {
                this.asked.fetch_add(1, Ordering::Relaxed);
                format!("{{\"published_revision\": {}}}", this.revision.load(Ordering::Relaxed))
            };
            let router = Router::new().route("/status/config", get(page));
            tokio::spawn(serve("test", listener, router, stop.clone()));
            format!("http://{address}").parse().unwrap()
        }
    }

    fn plane(name: &str) -> DataPlaneKey {
        DataPlaneKey::Gateway { gateway: pingsix_translate::ObjectName::new("infra", name), port: None }
    }

    fn is_at(pages: &Instances, revision: i64) -> bool {
        let Instances::Pages(pages) = pages else { return false };
        pages.values().all(|page| page.as_ref().is_ok_and(|page| page.published_revision == revision))
    }

    #[tokio::test]
    async fn an_instance_that_does_not_answer_keeps_no_other_data_plane_waiting() {
        let stop = CancellationToken::new();
        let _ends = stop.clone().drop_guard();
        let instance = Instance::default();
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent_url = format!("http://{}", silent.local_addr().unwrap()).parse().unwrap();
        let pages = BTreeMap::from([
            (plane("a"), BTreeSet::from([silent_url])),
            (plane("b"), BTreeSet::from([instance.start(&stop).await])),
        ]);
        let mut tasks = JoinSet::new();
        let (published, mut answers) = start(&pages, &StatusClient::new(None), &stop, &mut tasks);
        // Nobody is asked before there is something to ask for.
        sleep(IMPATIENT * 2).await;
        assert_eq!(instance.asked.load(Ordering::Relaxed), 0);
        for revision in 1..5 {
            let from = Instant::now();
            published.send_replace(BTreeMap::from([(plane("a"), revision), (plane("b"), revision)]));
            instance.revision.store(revision, Ordering::Relaxed);
            let confirmed = async {
                loop {
                    let (data_plane, pages) = answers.recv().await.unwrap();
                    if data_plane == plane("b") && is_at(&pages, revision) {
                        return;
                    }
                }
            };
            timeout(Duration::from_secs(2), confirmed).await.unwrap();
            assert!(from.elapsed() < Duration::from_secs(2), "{:?}", from.elapsed());
        }
        // All have confirmed, and what concerns others is no reason to ask again.
        sleep(IMPATIENT).await;
        let asked = instance.asked.load(Ordering::Relaxed);
        for revision in 5..50 {
            published.send_replace(BTreeMap::from([(plane("a"), revision), (plane("b"), 4)]));
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(instance.asked.load(Ordering::Relaxed), asked);
        stop.cancel();
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }
}
