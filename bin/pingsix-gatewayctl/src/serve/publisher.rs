//! Data planes to the etcd server, and findings to whoever watches.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_gateway_api::{Desired, EmbeddedEtcd, Published};
use pingsix_translate::{DataPlaneKey, Options};
use tokio::sync::watch;

use super::print_line;
use crate::finding::Finding;
use crate::plane::Translated;

pub(super) struct Publisher {
    inner: pingsix_gateway_api::Publisher<EmbeddedEtcd>,
    options: Options,
    /// The printed lines that still hold.
    said: BTreeSet<String>,
    /// The last publication of each data plane that was not withdrawn.
    publications: watch::Sender<BTreeMap<DataPlaneKey, Publication>>,
}

/// The last publication of a data plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Publication {
    /// The revision, if a publication was made.
    pub(super) revision: Option<i64>,
    /// The fault of a later attempt.
    pub(super) fault: Option<String>,
}

impl Publisher {
    pub(super) fn new(etcd: EmbeddedEtcd, options: Options) -> Self {
        let publications = watch::Sender::new(BTreeMap::new());
        let inner = pingsix_gateway_api::Publisher::new(etcd);
        Self { inner, options, said: BTreeSet::new(), publications }
    }

    /// The last publication of each data plane, as it changes.
    pub(super) fn publications(&self) -> watch::Receiver<BTreeMap<DataPlaneKey, Publication>> {
        self.publications.subscribe()
    }

    pub(super) const fn options(&self) -> &Options {
        &self.options
    }

    /// Publishes every data plane, empties those that are gone, and says what changed.
    ///
    /// A data plane that cannot be published keeps what it has; that is said, and tried again with the next change.
    pub(super) async fn publish(&mut self, translated: &Translated) -> anyhow::Result<()> {
        let mut failures = Vec::new();
        let results = self.inner.publish(&translated.output).await;
        let desired: BTreeMap<&DataPlaneKey, &Desired> = translated.output.desired().collect();
        for (key, result) in results {
            match result {
                Ok(published) => self.record(&key, desired.get(&key).copied(), &published)?,
                Err(error) => {
                    failures.push(format!("error: data plane {key} is not published: {error}"));
                    let fault = Some(error.to_string());
                    self.publications.send_modify(|all| all.entry(key).or_default().fault = fault);
                }
            }
        }
        self.report(&translated.findings, failures)
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
            let publication = Publication { revision: Some(published.revision.get()), fault: None };
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

    /// Says what is new, and what no longer holds.
    fn report(&mut self, findings: &[Finding], failures: Vec<String>) -> anyhow::Result<()> {
        let now: BTreeSet<String> = findings.iter().map(sentence).chain(failures).collect();
        for line in now.difference(&self.said) {
            print_line(line)?;
        }
        for line in self.said.difference(&now) {
            print_line(format_args!("resolved: {line}"))?;
        }
        self.said = now;
        Ok(())
    }
}

/// A finding without its line, which changes whenever somebody edits the file above it.
fn sentence(finding: &Finding) -> String {
    let place = finding.place.as_ref();
    let file = place.map(|place| format!("{}: ", place.file)).unwrap_or_default();
    let object = if finding.object.is_empty() { String::new() } else { format!("{}: ", finding.object) };
    let line = place.filter(|_| finding.object.is_empty()).map(|place| format!("line {}: ", place.line));
    let statement = finding.statement();
    let (severity, rest) = statement.split_once(": ").unwrap_or(("", &statement));
    format!("{severity}: {file}{}{object}{rest}", line.unwrap_or_default())
}
