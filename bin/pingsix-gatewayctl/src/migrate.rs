//! `migrate`: objects of APISIX, of the Go controller and of ingress-nginx in, objects of Gateway API and a report out.
//!
//! ```text
//! files ──► source (objects, field by field) ──► convert ──► output (manifests), report
//!            │                        consumer, plugin ┘          │                 ▲
//!            └──► asked (requests) ──────────────► judge ◄── translated, answer     │
//!                                                    └── overrules ─────────────────┘
//! files ──► original (models of the former controllers) ──► replay ◄── translated, answer
//! ```
//!
//! The conversion is pure. Each field of the input is taken with a verdict, and a field that is left is a loss. A rule
//! with a loss that might admit other requests is not written. In the end, `convert/account.rs` compares the report with the
//! input, so that each field is named.

mod answer;
mod asked;
mod consumer;
mod convert;
#[cfg(feature = "cluster")]
mod from_cluster;
mod judge;
mod original;
mod origins;
mod output;
mod plugin;
mod replay;
mod report;
mod source;
mod translated;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::arguments::{DefaultInput, Input, MigrateArguments, TranslationArguments};
use crate::{Exit, Streams};
use convert::{Choices, Converted};
use report::Report;
use source::Sources;
use translated::Translated;

pub(crate) fn run(
    arguments: &MigrateArguments,
    default: DefaultInput,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let input = Input::choose(&arguments.paths, &arguments.cluster, default)?;
    let is_standard_input = |path: &Path| path == Path::new("-");
    if arguments.replay.as_deref().is_some_and(is_standard_input)
        && arguments.paths.iter().any(|path| is_standard_input(path))
    {
        bail!("standard input has either the manifests or the requests");
    }
    let choices = Choices {
        gateway: arguments.gateway.clone(),
        gateway_class: arguments.gateway_class.clone(),
        name_suffix: arguments.name_suffix.clone(),
        default_certificate: arguments.default_certificate.clone(),
        keep_ingress: arguments.keep_ingress,
        ingress_class: arguments.ingress_class.clone(),
        allow_weaker: arguments
            .allow_weaker
            .iter()
            .map(|object| (object.kind.clone(), object.name.clone()))
            .collect(),
    };
    let mut report = Report::default();
    let sources = match &input {
        Input::Files(paths) => Sources::read(paths, &mut report)?,
        #[cfg(feature = "cluster")]
        Input::Cluster(cluster) => from_cluster::read(cluster, &choices, &mut report, streams.err)?,
    };
    let unchanged = if arguments.only_converted { sources.kept.clone() } else { BTreeMap::new() };
    let asked = asked::asked(&sources);
    let adopts = choices.name_suffix.is_none();
    let created = if arguments.replay.is_some() { sources.as_created() } else { Vec::new() };
    let Converted { mut objects, origins, mut report, account } = convert::convert(sources, choices, report);
    let options = TranslationArguments::defaults()?.options();
    // Neither needs the result of the other, and each takes a good part of the time.
    let (translated, ()) = rayon::join(
        || Translated::new(&objects, adopts, options),
        || account.complete(&objects, &mut report),
    );
    if let Some(requests) = &arguments.replay {
        let replayed = replay::replay(
            &replay::read(requests)?,
            arguments.replay_host.as_ref(),
            &created,
            &translated.answers(),
        )?;
        write!(streams.out, "{}", replayed.render(arguments.report))?;
        return Ok(if replayed.differs() { Exit::Problems } else { Exit::Success });
    }
    judge::judge(&asked, &objects, &origins, &translated, &mut report);
    objects.retain(|(key, value)| unchanged.get(key) != Some(value));
    let shows_report = arguments.report_file.as_deref() == Some(Path::new("-"));
    if shows_report && arguments.output_dir.is_none() {
        bail!("standard output is for the manifests; --report-file - needs --output-dir");
    }
    match &arguments.output_dir {
        Some(directory) => output::write_directory(&objects, directory)?,
        None => output::write_stream(&objects, streams.out)?,
    }
    let text = report.render(arguments.report, arguments.all);
    match &arguments.report_file {
        Some(_) if shows_report => write!(streams.out, "{text}")?,
        Some(file) => fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?,
        None => write!(streams.err, "{text}")?,
    }
    let exit = if report.has_losses() { Exit::Problems } else { Exit::Success };
    // The process ends, and freeing all values one by one takes a tenth of the time.
    std::mem::forget((asked, objects, origins, translated, report, account));
    Ok(exit)
}
