//! `diff`: what publishing manifests would change on a target.

use anyhow::{Context as _, bail};
use pingsix_sink::difference::{Change, Difference, Differences, Field, differences};
use pingsix_sink::{Desired, Key, Owner};
use pingsix_translate::DataPlaneKey;
use serde_json::{Value, json};

use crate::arguments::{DefaultInput, DiffArguments, Input, ReportOutput};
use crate::finding::{Tally, counted, print_grouped};
use crate::plane::Translated;
use crate::readable::write_field;
use crate::{Exit, Streams, input};

/// A data plane, and what publishing it would change.
struct Compared<'a> {
    key: &'a DataPlaneKey,
    desired: &'a Desired,
    differences: Differences,
    translated: &'a Translated,
}

impl Compared<'_> {
    /// The objects behind a document.
    fn objects(&self, key: &Key, owner: &Owner) -> String {
        let related = self.translated.output.related(self.key, key.as_str());
        std::iter::once(owner.to_string()).chain(related).collect::<Vec<_>>().join(", ")
    }
}

pub(crate) fn run(
    arguments: &DiffArguments,
    default: DefaultInput,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let input = Input::choose(&arguments.paths, &arguments.cluster, default)?;
    let manifests = input::load(&input, &arguments.translation.endpoints, streams.err)?;
    let options = arguments.translation.options();
    let mut translated = Translated::new(&manifests, &options);
    translated.require_verdicts(&options);
    let tally = Tally::of(&translated.findings);
    if tally != Tally::default() {
        print_grouped(&translated.findings, streams.err)?;
        writeln!(streams.err, "{tally}")?;
    }
    let wanted = wanted(&translated, arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let compared = runtime.block_on(async {
        let mut compared = Vec::with_capacity(wanted.len());
        for (key, desired) in wanted {
            let held = arguments.target.read(desired.scope(), &|name| std::env::var(name).ok()).await;
            let held =
                held.with_context(|| format!("cannot read data plane {key} from {}", arguments.target))?;
            let differences = differences(&held, desired.documents());
            compared.push(Compared { key, desired, differences, translated: &translated });
        }
        anyhow::Ok(compared)
    })?;
    match arguments.output {
        ReportOutput::Text => print_text(&compared, streams)?,
        ReportOutput::Json => print_json(&compared, streams)?,
    }
    let changes = compared.iter().any(|compared| !compared.differences.changes.is_empty());
    Ok(if changes { Exit::Problems } else { Exit::Success })
}

/// The data planes to compare.
fn wanted<'a>(
    translated: &'a Translated,
    arguments: &DiffArguments,
) -> anyhow::Result<Vec<(&'a DataPlaneKey, &'a Desired)>> {
    let planes = translated
        .output
        .planes
        .iter()
        .map(|(key, plane)| (key, plane.bridged.as_ref().map(|bridged| &bridged.desired)));
    let streams = translated
        .output
        .streams
        .iter()
        .map(|(key, streams)| (key, streams.bridged.as_ref().map(|bridged| &bridged.desired)));
    let all: Vec<_> = planes.chain(streams).collect();
    let known: Vec<String> = all.iter().map(|(key, _)| key.to_string()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let mut wanted = Vec::new();
    for (key, desired) in all {
        if arguments.data_plane.as_ref().is_some_and(|name| *name != key.to_string()) {
            continue;
        }
        let Some(desired) = desired else {
            bail!("data plane {key} would not be published at all, so there is nothing to compare");
        };
        wanted.push((key, desired));
    }
    match (&arguments.data_plane, wanted.len()) {
        (Some(name), 0) => bail!("there is no data plane {name}; known: {known}"),
        (None, 0) => bail!("the manifests have no data plane, so there is nothing to compare"),
        (_, count) if count > 1 && arguments.target.is_for_one_scope() => {
            bail!("{} is for one data plane; choose one with --data-plane: {known}", arguments.target)
        }
        _ => Ok(wanted),
    }
}

fn print_text(compared: &[Compared<'_>], streams: &mut Streams<'_>) -> anyhow::Result<()> {
    for plane in compared {
        let Compared { key, desired, differences, .. } = plane;
        let mut out = String::new();
        for Difference { key, owner, change } in &differences.changes {
            match change {
                Change::Created(value) => {
                    block(&mut out, '+', key.as_str(), &plane.objects(key, owner), value);
                }
                // Stored documents do not contain their origins.
                Change::Deleted(value) => block(&mut out, '-', key.as_str(), "", value),
                Change::Updated(fields) => {
                    push_line(&mut out, '~', key.as_str(), &plane.objects(key, owner));
                    for field in fields {
                        push_field(&mut out, field);
                    }
                }
            }
        }
        write!(streams.out, "{out}")?;
        let prefix = desired.scope();
        writeln!(streams.out, "data plane {key}, prefix {prefix}: {}", differences.changed())?;
        if !differences.unknown.is_empty() {
            let documents = counted(differences.unknown.len(), "document");
            writeln!(
                streams.out,
                "  {documents} not compared in full: the target does not show their secrets"
            )?;
        }
    }
    Ok(())
}

fn push_line(out: &mut String, sign: char, key: &str, owner: &str) {
    out.push(sign);
    out.push(' ');
    out.push_str(key);
    if !owner.is_empty() {
        out.push_str("  # ");
        out.push_str(owner);
    }
    out.push('\n');
}

/// A whole document, each line with its sign.
fn block(out: &mut String, sign: char, key: &str, owner: &str, value: &Value) {
    push_line(out, sign, key, owner);
    push_value(out, sign, None, value);
}

fn push_field(out: &mut String, field: &Field) {
    let sides = [('-', &field.before), ('+', &field.after)];
    for (sign, value) in sides.into_iter().filter_map(|(sign, value)| Some((sign, value.as_ref()?))) {
        push_value(out, sign, Some(&field.path).filter(|path| !path.is_empty()), value);
    }
}

fn push_value(out: &mut String, sign: char, path: Option<&String>, value: &Value) {
    let mut text = String::new();
    match (path, value) {
        (Some(path), value) => write_field(&mut text, 0, path, value),
        (None, Value::Object(fields)) => {
            for (name, value) in fields {
                write_field(&mut text, 0, name, value);
            }
        }
        (None, value) => text = value.to_string(),
    }
    for line in text.lines() {
        out.push_str("  ");
        out.push(sign);
        out.push(' ');
        out.push_str(line);
        out.push('\n');
    }
}

fn print_json(compared: &[Compared<'_>], streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let planes: Vec<Value> = compared
        .iter()
        .map(|plane| {
            let Compared { key, desired, differences, .. } = plane;
            let changed = differences.changed();
            json!({
                "dataPlane": key.to_string(), "prefix": desired.scope().as_str(),
                "created": changed.created, "updated": changed.updated, "deleted": changed.deleted,
                "changes": differences.changes.iter().map(|difference| change(plane, difference)).collect::<Vec<_>>(),
                "notCompared": differences.unknown.iter().map(Key::as_str).collect::<Vec<_>>(),
            })
        })
        .collect();
    writeln!(streams.out, "{}", serde_json::to_string_pretty(&json!({ "dataPlanes": planes }))?)?;
    Ok(())
}

fn change(plane: &Compared<'_>, Difference { key, owner, change }: &Difference) -> Value {
    let (owner, key) = (plane.objects(key, owner), key.as_str());
    match change {
        Change::Created(value) => json!({"change": "created", "key": key, "owner": owner, "after": value}),
        Change::Deleted(value) => json!({"change": "deleted", "key": key, "before": value}),
        Change::Updated(fields) => {
            let fields: Vec<Value> = fields.iter().map(field).collect();
            json!({"change": "updated", "key": key, "owner": owner, "fields": fields})
        }
    }
}

/// A side that is not there is absent, which null would not say.
fn field(Field { path, before, after }: &Field) -> Value {
    let sides = [("before", before), ("after", after)];
    let sides = sides.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let path = [("path".to_owned(), Value::from(path.as_str()))];
    Value::Object(path.into_iter().chain(sides).collect())
}
