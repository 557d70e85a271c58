//! `migrate`: objects of other controllers in, objects of Gateway API and a report out. `pingsix-migrate` converts them.

#[cfg(feature = "cluster")]
mod from_cluster;
mod output;
mod requests;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use pingsix_migrate::{Choices, ReportFormat, Requests};

use crate::arguments::{DefaultInput, Input, MigrateArguments, MigrationReport, TranslationArguments};
use crate::manifest::read_all;
use crate::{Exit, Streams};

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
    let choices = choices(arguments);
    let objects = match &input {
        Input::Files(paths) => from_files(paths)?,
        #[cfg(feature = "cluster")]
        Input::Cluster(cluster) => from_cluster::read(cluster, &choices, streams.err)?,
    };
    let options = TranslationArguments::defaults()?.options();
    let format = report_format(arguments.report);
    if let Some(file) = &arguments.replay {
        let text = requests::read(file)?;
        let requests = Requests { text: &text, host: arguments.replay_host.as_ref() };
        let replayed = pingsix_migrate::replay(objects, &choices, options, requests)?;
        write!(streams.out, "{}", replayed.render(format))?;
        return Ok(if replayed.differs() { Exit::Problems } else { Exit::Success });
    }
    let mut migration = pingsix_migrate::migrate(objects, &choices, options);
    if arguments.only_converted {
        migration.drop_unchanged();
    }
    let shows_report = arguments.report_file.as_deref() == Some(Path::new("-"));
    if shows_report && arguments.output_dir.is_none() {
        bail!("standard output is for the manifests; --report-file - needs --output-dir");
    }
    match &arguments.output_dir {
        Some(directory) => output::write_directory(migration.objects(), directory)?,
        None => output::write_stream(migration.objects(), streams.out)?,
    }
    let text = migration.report().render(format, arguments.all);
    match &arguments.report_file {
        Some(_) if shows_report => write!(streams.out, "{text}")?,
        Some(file) => fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?,
        None => write!(streams.err, "{text}")?,
    }
    let exit = if migration.report().has_losses() { Exit::Problems } else { Exit::Success };
    // The process ends, and freeing all values one by one takes a tenth of the time.
    std::mem::forget(migration);
    Ok(exit)
}

fn choices(arguments: &MigrateArguments) -> Choices {
    Choices {
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
    }
}

const fn report_format(report: MigrationReport) -> ReportFormat {
    match report {
        MigrationReport::Text => ReportFormat::Text,
        MigrationReport::Markdown => ReportFormat::Markdown,
        MigrationReport::Json => ReportFormat::Json,
    }
}

/// Reads files, directories and standard input.
///
/// # Errors
///
/// When a path cannot be read, a document is not valid, or there is no object at all.
fn from_files(paths: &[PathBuf]) -> anyhow::Result<pingsix_migrate::Input> {
    let mut objects = pingsix_migrate::Input::default();
    for file in read_all(paths)? {
        let text = file.text.with_context(|| format!("cannot read {}", file.name))?;
        objects.add_text(&file.name, &text)?;
    }
    if objects.is_empty() {
        bail!("no object in the input");
    }
    Ok(objects)
}
