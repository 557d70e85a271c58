//! Verdicts on all objects, and the findings on standard error. Verdicts take longer than a publication, so no
//! publication waits for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use pingsix_gateway_api::{IncrementalPipeline, UnjudgedOutput};
use pingsix_translate::Options;
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;

use super::print_line;
use crate::finding::Finding;
use crate::manifest::Manifests;
use crate::plane::Translated;

/// An output with the manifests that it comes from, to be judged.
pub(super) struct Unjudged {
    manifests: Manifests,
    pub(super) output: UnjudgedOutput,
    /// The failures of publications, in words.
    pub(super) failures: Vec<String>,
}

impl Unjudged {
    /// Translates manifests.
    pub(super) fn new(manifests: Manifests, pipeline: &mut IncrementalPipeline) -> Self {
        let output = pipeline.translate(&manifests.objects, Some(Timestamp::now()));
        Self { manifests, output, failures: Vec::new() }
    }

    pub(super) fn judge(self, options: &Options) -> (Arc<Translated>, Vec<String>) {
        let Self { manifests, output, failures } = self;
        (Arc::new(Translated::of(&manifests, output.judge(), options)), failures)
    }
}

/// Judges and reports publications. Of several that wait, the newest one alone.
pub(super) async fn run(
    mut publications: mpsc::UnboundedReceiver<Unjudged>,
    options: Options,
    latest: watch::Sender<Arc<Translated>>,
    mut reporter: Reporter,
) -> anyhow::Result<()> {
    while let Some(mut unjudged) = publications.recv().await {
        while let Ok(newer) = publications.try_recv() {
            unjudged = newer;
        }
        let options = options.clone();
        let (translated, failures) = spawn_blocking(move || unjudged.judge(&options)).await?;
        latest.send_replace(translated.clone());
        reporter.report(&translated.findings, failures)?;
    }
    Ok(())
}

/// Prints findings as they come and go.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    /// The printed lines that still hold.
    said: BTreeSet<String>,
}

impl Reporter {
    /// Prints new findings, and findings that no longer hold.
    pub(super) fn report(&mut self, findings: &[Finding], failures: Vec<String>) -> anyhow::Result<()> {
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

/// A finding without its line, which changes with every edit above it.
fn sentence(finding: &Finding) -> String {
    let place = finding.place.as_ref();
    let file = place.map(|place| format!("{}: ", place.file)).unwrap_or_default();
    let object = if finding.object.is_empty() { String::new() } else { format!("{}: ", finding.object) };
    let line = place.filter(|_| finding.object.is_empty()).map(|place| format!("line {}: ", place.line));
    let statement = finding.statement();
    let (severity, rest) = statement.split_once(": ").unwrap_or(("", &statement));
    format!("{severity}: {file}{}{object}{rest}", line.unwrap_or_default())
}
