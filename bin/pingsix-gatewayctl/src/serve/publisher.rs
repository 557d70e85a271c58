//! Data planes to the etcd server, and findings to whoever watches.

use std::collections::{BTreeMap, BTreeSet};

use pingsix_gateway_api::bridge::withdrawn;
use pingsix_sink::{Desired, EmbeddedEtcd, Sink as _};
use pingsix_translate::{DataPlaneKey, Options};
use tokio::sync::watch;

use super::print_line;
use crate::finding::Finding;
use crate::plane::Translated;

pub(super) struct Publisher {
    etcd: EmbeddedEtcd,
    options: Options,
    /// Data planes that were published, and whether they hold something.
    known: BTreeMap<DataPlaneKey, PlaneState>,
    /// The printed lines that still hold.
    said: BTreeSet<String>,
    /// The last publication of each data plane.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaneState {
    Current,
    Withdrawn,
}

impl Publisher {
    pub(super) fn new(etcd: EmbeddedEtcd, options: Options) -> Self {
        let publications = watch::Sender::new(BTreeMap::new());
        Self { etcd, options, known: BTreeMap::new(), said: BTreeSet::new(), publications }
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
        for (key, desired) in translated.output.desired() {
            failures.extend(self.send(key, desired, PlaneState::Current).await?);
        }
        let gone: Vec<DataPlaneKey> = self
            .known
            .iter()
            .filter(|(key, held)| **held == PlaneState::Current && !translated.output.has(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in gone {
            failures.extend(self.send(&key, &withdrawn(&key, &self.options)?, PlaneState::Withdrawn).await?);
        }
        self.report(&translated.findings, failures)
    }

    /// Returns what went wrong, if anything did.
    async fn send(
        &mut self,
        key: &DataPlaneKey,
        desired: &Desired,
        held: PlaneState,
    ) -> anyhow::Result<Option<String>> {
        let published = match self.etcd.publish(desired).await {
            Ok(published) => published,
            Err(error) => {
                let fault = error.to_string();
                self.publications.send_modify(|all| all.entry(key.clone()).or_default().fault = Some(fault));
                return Ok(Some(format!("error: data plane {key} is not published: {error}")));
            }
        };
        let publication = Publication { revision: Some(published.revision.get()), fault: None };
        self.publications.send_modify(|all| drop(all.insert(key.clone(), publication)));
        let before = self.known.insert(key.clone(), held);
        if before != Some(held) || !published.changed.is_empty() {
            let size = self.etcd.size_of(desired.scope()).map(|size| size.bytes).unwrap_or_default();
            let gone = if held == PlaneState::Withdrawn { " (withdrawn)" } else { "" };
            print_line(format_args!(
                "published {key}{gone} revision {}: {}; {} documents, {size} bytes",
                published.revision,
                published.changed,
                desired.documents().len()
            ))?;
        }
        Ok(None)
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
