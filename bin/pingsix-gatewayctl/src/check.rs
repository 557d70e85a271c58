//! `check`: everything that is wrong with manifests, or with a PingSIX configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use pingsix_translate::manifest::documents;
use pingsix_translate::pingsix::Config;
use pingsix_translate::pingsix::validate::{
    Severity, Subject, ValidateOptions, Violation, order_dependence, validate_static,
};
use pingsix_translate::stream::StreamKind;
use serde_json::{Value, json};

use crate::arguments::{CheckArguments, DefaultInput, Input, ReportOutput};
use crate::finding::{DocumentLocation, Finding, Level, Tally, counted, print_grouped, reason};
use crate::manifest::read_all;
use crate::missing_class::{missing_classes, print_missing};
use crate::plane::Translated;
use crate::{Exit, Streams, input};

pub(crate) fn run(
    arguments: &CheckArguments,
    default: DefaultInput,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let mut findings = Vec::new();
    let mut subjects = Vec::new();
    let mut classes = Vec::new();
    // A PingSIX configuration needs no other input.
    if arguments.pingsix.is_empty() || !arguments.paths.is_empty() || arguments.cluster.cluster {
        let input = Input::choose(&arguments.paths, &arguments.cluster, default)?;
        let mut manifests = input::load(&input, &arguments.translation.endpoints, streams.err)?;
        let options = arguments.translation.options();
        manifests.assume_parameters(&input, &options, arguments.assumptions.managed);
        let mut translated = Translated::new(&manifests, &options);
        translated.require_verdicts(&options);
        subjects.push(format!(
            "{}, {}",
            counted(manifests.count(), "object"),
            counted(translated.output.planes.len() + translated.output.streams.len(), "data plane")
        ));
        classes = missing_classes(&translated.output, &manifests.objects, &options);
        findings.extend(translated.findings);
    }
    if !arguments.pingsix.is_empty() {
        let checked = check_pingsix(&arguments.pingsix, arguments)?;
        subjects.push(counted(checked.documents, "PingSIX document"));
        let is_silent = checked.documents == 0 && checked.findings.is_empty();
        findings.extend(is_silent.then(|| {
            let message = "The input has no route, upstream or other document of PingSIX to check.";
            Finding::empty_input(message)
        }));
        findings.extend(checked.findings);
    }
    findings.sort();
    // A problem may have a finding in the status of an object and one about its field.
    let mut said = BTreeSet::new();
    findings.retain(|one| {
        said.insert((one.place.clone(), one.object.clone(), one.field.clone(), one.message.clone()))
    });
    let tally = Tally::of(&findings);
    match arguments.output {
        ReportOutput::Text => {
            print_grouped(&findings, streams.out)?;
            print_missing(&classes, streams.out)?;
            writeln!(streams.out, "{tally} ({})", subjects.join(", "))?;
        }
        ReportOutput::Json => {
            let mut report =
                json!({ "findings": findings, "errors": tally.errors, "warnings": tally.warnings });
            if !classes.is_empty() {
                report["missingClasses"] = classes.into();
            }
            writeln!(streams.out, "{}", serde_json::to_string_pretty(&report)?)?;
        }
    }
    let failed = tally.errors > 0 || (arguments.strict && tally.warnings > 0);
    Ok(if failed { Exit::Problems } else { Exit::Success })
}

#[derive(Default)]
struct Checked {
    /// Routes, upstreams and so on.
    documents: usize,
    findings: Vec<Finding>,
}

/// Judges static PingSIX configurations: each YAML document is one.
fn check_pingsix(paths: &[PathBuf], arguments: &CheckArguments) -> anyhow::Result<Checked> {
    let options = ValidateOptions {
        prefix: arguments.translation.root.clone(),
        bytes_budget: arguments.translation.budget_bytes,
        entries_budget: arguments.translation.budget_entries,
        ..ValidateOptions::default()
    };
    let mut checked = Checked::default();
    for path in paths {
        let path: &Path = path;
        for file in read_all(std::slice::from_ref(&path.to_owned()))? {
            let text = file.text.with_context(|| format!("cannot read {}", file.name))?;
            let documents = documents(&text);
            if documents.is_empty() {
                bail!("no PingSIX configuration in {}", file.name);
            }
            for document in documents {
                let place = DocumentLocation::of(&file.name, &document);
                match document.decode() {
                    Ok(value) => checked.add(&place, &value, &options),
                    Err(error) => checked.findings.push(Finding::not_yaml(place, &error)),
                }
            }
        }
    }
    Ok(checked)
}

impl Checked {
    fn add(&mut self, place: &DocumentLocation, value: &Value, options: &ValidateOptions) {
        // Judged by PingSIX's rules, they would be full of problems that are none.
        if value.get(StreamKind::StreamRoute.segment()).is_some() {
            let message =
                "These are stream documents, which are for a stream proxy; PingSIX refuses them as a whole.";
            let finding = Finding::new(Level::Error, reason::STREAM_DOCUMENTS, message);
            self.findings.push(finding.at(place.clone()).of_field(StreamKind::StreamRoute.segment()));
            return;
        }
        let mut violations = validate_static(value, options);
        if let Ok(config) = Config::from_static(value) {
            self.documents += config.len();
            violations.extend(order_dependence(&config));
        }
        self.findings.extend(violations.into_iter().map(|violation| finding(place, violation)));
    }
}

fn finding(place: &DocumentLocation, violation: Violation) -> Finding {
    let (severity, consequence) = match violation.severity {
        // The message has the consequence, and PingSIX serves everything else.
        Severity::Misbehaves | Severity::Harmful => (Level::Warning, ""),
        Severity::RejectedLate => (Level::Error, " PingSIX accepts the change and then fails to publish it."),
        Severity::Rejected => (Level::Error, " PingSIX refuses the whole configuration."),
        Severity::Fatal => (Level::Error, " PingSIX cannot synchronise at all."),
    };
    let object = match violation.subject {
        Subject::Configuration => String::new(),
        Subject::Key(key) => key,
        Subject::Document(key) => key.to_string(),
    };
    Finding::new(severity, violation.rule.ident(), format!("{}{consequence}", violation.message))
        .about(&object, Some(place))
        .of_field(violation.field)
}
