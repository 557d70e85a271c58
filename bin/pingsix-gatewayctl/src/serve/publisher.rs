//! Data planes to the etcd server.

use std::collections::BTreeMap;

use pingsix_gateway_api::pipeline::Output;
use pingsix_gateway_api::{Desired, EmbeddedEtcd, Published};
use pingsix_translate::DataPlaneKey;
use tokio::sync::watch;

use super::print_line;

pub(super) struct Publisher {
    inner: pingsix_gateway_api::Publisher<EmbeddedEtcd>,
    /// The last publication of each data plane that was not withdrawn.
    publications: watch::Sender<BTreeMap<DataPlaneKey, Publication>>,
}

/// The last publication of a data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Publication {
    /// The revision, if a publication was made.
    pub(super) revision: Option<i64>,
    /// The error of a later attempt.
    pub(super) error: Option<String>,
}

impl Publisher {
    pub(super) fn new(etcd: EmbeddedEtcd) -> Self {
        let publications = watch::Sender::new(BTreeMap::new());
        Self { inner: pingsix_gateway_api::Publisher::new(etcd), publications }
    }

    /// The last publication of each data plane, as it changes.
    pub(super) fn publications(&self) -> watch::Receiver<BTreeMap<DataPlaneKey, Publication>> {
        self.publications.subscribe()
    }

    /// Publishes every data plane, empties removed ones, and prints the changes. Returns the failures in words.
    ///
    /// After a failure, a data plane keeps its documents, and the next change repeats the publication.
    pub(super) async fn publish(&mut self, output: &Output) -> anyhow::Result<Vec<String>> {
        let mut failures = Vec::new();
        let results = self.inner.publish(output).await;
        let desired: BTreeMap<&DataPlaneKey, &Desired> = output.desired().collect();
        for (key, result) in results {
            match result {
                Ok(published) => self.record(&key, desired.get(&key).copied(), &published)?,
                Err(error) => {
                    failures.push(format!("error: data plane {key} is not published: {error}"));
                    let error = Some(error.to_string());
                    self.publications.send_modify(|all| all.entry(key).or_default().error = error);
                }
            }
        }
        Ok(failures)
    }

    /// Keeps and prints a publication. `desired` is `None` if the documents were withdrawn.
    fn record(
        &self,
        key: &DataPlaneKey,
        desired: Option<&Desired>,
        published: &Published,
    ) -> anyhow::Result<()> {
        let mut before = None;
        self.publications.send_modify(|all| {
            let publication = Publication { revision: Some(published.revision.get()), error: None };
            before = if desired.is_some() { all.insert(key.clone(), publication) } else { all.remove(key) };
        });
        let is_first = before.is_none_or(|publication| publication.revision.is_none());
        if desired.is_some() && !is_first && published.changed.is_empty() {
            return Ok(());
        }
        let size = desired.and_then(|desired| self.inner.sink().size_of(desired.scope()));
        let bytes = size.map(|size| size.bytes).unwrap_or_default();
        let (gone, count) = desired.map_or((" (withdrawn)", 0), |desired| ("", desired.documents().len()));
        print_line(format_args!(
            "published {key}{gone} revision {}: {}; {count} documents, {bytes} bytes",
            published.revision, published.changed,
        ))
    }
}
