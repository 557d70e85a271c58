//! Asks PingSIX instances how far they are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use pingsix_translate::DataPlaneKey;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::delivery::Instances;
use crate::delivery::status_page::{StatusClient, StatusPage, StatusUrl};
use crate::leader::Leadership;

/// How often is asked while an answer is awaited.
const IMPATIENT: Duration = Duration::from_millis(250);

/// How often is asked when all have confirmed.
const PATIENT: Duration = Duration::from_secs(10);

/// The revision of each data plane that was published last.
pub(super) type PublishedRevisions = BTreeMap<DataPlaneKey, i64>;

/// What was found out about the instances of a data plane.
pub(super) type Pages = (DataPlaneKey, Instances);

/// Asks the status pages, while this replica leads: nobody else has a use for the answers.
pub(super) fn start(
    pages: &BTreeMap<DataPlaneKey, BTreeSet<StatusUrl>>,
    client: StatusClient,
    leadership: Leadership,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) -> (watch::Sender<PublishedRevisions>, mpsc::Receiver<Pages>) {
    let (published, mut revisions) = watch::channel(PublishedRevisions::new());
    let (answers, receiver) = mpsc::channel(16);
    let (pages, stop) = (pages.clone(), stop.clone());
    tasks.spawn(async move {
        let poll = async {
            let mut leadership = leadership;
            loop {
                leadership.gained().await;
                let wanted = revisions.borrow_and_update().clone();
                let mut all_confirmed = true;
                for (data_plane, revision) in &wanted {
                    let Some(urls) = pages.get(data_plane) else { continue };
                    let read = join_all(urls.iter().map(|url| read(&client, url))).await;
                    let confirmed = |page: &Result<_, String>| {
                        page.as_ref().is_ok_and(|page: &StatusPage| page.published_revision >= *revision)
                    };
                    all_confirmed &= read.iter().all(confirmed);
                    let instances = Instances::Pages(urls.iter().cloned().zip(read).collect());
                    if answers.send((data_plane.clone(), instances)).await.is_err() {
                        return;
                    }
                }
                let pause = if all_confirmed { PATIENT } else { IMPATIENT };
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    changed = revisions.changed() => if changed.is_err() { return },
                }
            }
        };
        stop.run_until_cancelled(poll).await;
    });
    (published, receiver)
}

async fn read(client: &StatusClient, url: &StatusUrl) -> Result<StatusPage, String> {
    client.read(url).await.map_err(|error| error.to_string())
}
