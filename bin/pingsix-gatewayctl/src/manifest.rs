//! Manifests to objects: what an API server would have stored, as far as translation needs it.

mod endpoints;
mod files;
mod missing_endpoints;
mod other_gateways;
mod parameters;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use pingsix_translate::manifest::{Decoded, Document, Fault, decode, documents};
use pingsix_translate::snapshot::{self, Object, Objects};
use pingsix_translate::{Kind, ObjectKey, ObjectName};

use crate::arguments::Input;
use crate::finding::{DocumentLocation, Finding, Level, counted, reason};
pub(crate) use endpoints::SuppliedEndpoints;
pub(crate) use files::{FileState, FileText, FoundFile, Origin, find, read_all};

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileObjects {
    /// The objects in order.
    pub(crate) objects: Vec<(DocumentLocation, Object)>,
    /// Objects that are named but cannot be decoded.
    pub(crate) undecodable: BTreeSet<ObjectKey>,
    /// Whether part of the file cannot be read, so that nobody knows what it holds.
    pub(crate) broken: bool,
    /// Whether there is no document in it, or it was found beside manifests and belongs to another tool.
    without_manifests: bool,
    pub(crate) findings: Vec<Finding>,
    /// Kinds that translation does not read, and where they occur first.
    unknown_kinds: BTreeMap<UnknownKind, (DocumentLocation, usize)>,
}

/// A kind that translation does not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnknownKind {
    group: String,
    kind: String,
    version: String,
}

impl FileObjects {
    /// Decodes every document of a file; a fault costs the document it is in, and nothing else.
    pub(crate) fn decode(file: &FileText) -> Self {
        let mut decoded = Self::default();
        let text = match &file.text {
            Ok(text) => text,
            Err(error) => {
                decoded.broken = true;
                let place = DocumentLocation { file: file.name.clone(), document: 1, line: 0 };
                let message = format!("The file cannot be read: {error}.");
                decoded.findings.push(about(place, Level::Error, reason::UNREADABLE, message));
                return decoded;
            }
        };
        let documents = documents(text);
        for document in &documents {
            let place = DocumentLocation::of(&file.name, document);
            match document.decode() {
                Ok(value) => decoded.add_document(&place, value, document),
                Err(error) => {
                    decoded.broken = true;
                    decoded.findings.push(Finding::not_yaml(place, &error));
                }
            }
        }
        let documents = documents.len();
        decoded.without_manifests = documents == 0;
        if file.origin == Origin::Found {
            decoded.leave_alone(documents);
        }
        decoded
    }

    /// Decodes objects that are in no file.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_values(name: &str, values: Vec<serde_json::Value>) -> Self {
        let place = DocumentLocation { file: name.to_owned(), document: 0, line: 0 };
        let mut decoded = Self::default();
        for value in values {
            decoded.add(&place, value);
        }
        decoded
    }

    /// Adds the content of another file.
    #[cfg(feature = "cluster")]
    pub(crate) fn extend(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.undecodable.extend(other.undecodable);
        self.findings.extend(other.findings);
        for (kind, (place, count)) in other.unknown_kinds {
            self.unknown_kinds.entry(kind).or_insert((place, 0)).1 += count;
        }
    }

    fn add_document(&mut self, place: &DocumentLocation, value: serde_json::Value, document: &Document<'_>) {
        let version = version_of(&value);
        let decoded = decode(value);
        let Decoded::List(items) = decoded else { return self.add_decoded(place, version, decoded) };
        let lines = document.item_lines(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let line = lines.get(index).copied().unwrap_or(place.line);
            self.add(&DocumentLocation { line, ..place.clone() }, item);
        }
    }

    /// A file that was found beside manifests and has nothing but what is no manifest belongs to another tool.
    fn leave_alone(&mut self, documents: usize) {
        let foreign = |finding: &Finding| finding.reason == reason::NOT_A_MANIFEST;
        if self.findings.len() != documents || !self.findings.iter().all(foreign) {
            return;
        }
        self.without_manifests = true;
        self.findings.truncate(1);
        for finding in &mut self.findings {
            finding.severity = Level::Info;
            finding.field = String::new();
            "The file holds no manifest, for want of kind and metadata, and is ignored."
                .clone_into(&mut finding.message);
        }
    }

    fn add(&mut self, place: &DocumentLocation, value: serde_json::Value) {
        let version = version_of(&value);
        self.add_decoded(place, version, decode(value));
    }

    fn add_decoded(&mut self, place: &DocumentLocation, version: String, decoded: Decoded) {
        match decoded {
            Decoded::Nothing => {}
            Decoded::List(items) => items.into_iter().for_each(|item| self.add(place, item)),
            Decoded::Object { object, ignored } => {
                let name = object.key().to_string();
                self.findings.extend(ignored.into_iter().map(|field| Finding {
                    place: Some(place.clone()),
                    object: name.clone(),
                    message: format!("The API has no field {field}, so the field has no effect."),
                    field,
                    severity: Level::Warning,
                    reason: reason::UNKNOWN_FIELD.to_owned(),
                }));
                self.objects.push((place.clone(), object));
            }
            Decoded::UnknownKind { group, kind } => {
                let unknown = UnknownKind { group, kind, version };
                self.unknown_kinds.entry(unknown).or_insert_with(|| (place.clone(), 0)).1 += 1;
            }
            Decoded::Fault(Fault { object, key, field, reason, message, .. }) => {
                self.undecodable.extend(key);
                self.findings.push(Finding {
                    place: Some(place.clone()),
                    object,
                    field,
                    severity: Level::Error,
                    reason: reason.as_str().to_owned(),
                    message,
                });
            }
        }
    }
}

/// The version of an object, without its group.
fn version_of(value: &serde_json::Value) -> String {
    let api_version = value.get("apiVersion").and_then(serde_json::Value::as_str).unwrap_or_default();
    api_version.rsplit('/').next().unwrap_or_default().to_owned()
}

fn about(place: DocumentLocation, severity: Level, reason: &str, message: String) -> Finding {
    Finding {
        place: Some(place),
        object: String::new(),
        field: String::new(),
        severity,
        reason: reason.to_owned(),
        message,
    }
}

/// All objects of all files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifests {
    pub(crate) objects: Objects,
    pub(crate) places: BTreeMap<ObjectKey, DocumentLocation>,
    pub(crate) findings: Vec<Finding>,
    /// The number of objects, without generated ones.
    pub(crate) count: usize,
}

impl Manifests {
    /// Puts files together, in order. Of two objects with one key the first counts.
    pub(crate) fn collect<'a>(
        files: impl IntoIterator<Item = &'a FileObjects>,
        supplied: &[SuppliedEndpoints],
    ) -> Self {
        let mut all = Self::default();
        let mut unknown: BTreeMap<&UnknownKind, (&DocumentLocation, usize)> = BTreeMap::new();
        for file in files {
            all.findings.extend(file.findings.iter().cloned());
            for (kind, (place, count)) in &file.unknown_kinds {
                unknown.entry(kind).or_insert((place, 0)).1 += count;
            }
            for (place, object) in &file.objects {
                all.insert(place, object);
            }
        }
        for (UnknownKind { group, kind, version }, (place, count)) in unknown {
            let of_group = if group.is_empty() { "the core group" } else { group };
            let ignored =
                format!("{} {} ignored", counted(count, "object"), if count == 1 { "is" } else { "are" });
            all.findings.push(if let Some(other) = other_gateways::find(group, version, kind) {
                let message = format!(
                    "Objects of kind {kind} of {of_group} are for {}, so PingSIX does not serve them; {ignored}. {}",
                    other.gateway, other.advice
                );
                about(place.clone(), other.level, reason::KIND_OF_OTHER_GATEWAY, message)
            } else {
                let message = format!("{kind} ({of_group}) is not read; {ignored}.");
                about(place.clone(), Level::Info, reason::UNKNOWN_KIND, message)
            });
        }
        endpoints::supply(&mut all, supplied);
        missing_endpoints::report(&mut all);
        all
    }

    fn insert(&mut self, place: &DocumentLocation, object: &Object) {
        let key = object.key();
        if let Some(first) = self.places.get(&key) {
            self.findings.push(Finding {
                place: Some(place.clone()),
                object: key.to_string(),
                field: String::new(),
                severity: Level::Error,
                reason: reason::DUPLICATE.to_owned(),
                message: format!("The object is already defined at {first}; this one is ignored."),
            });
            return;
        }
        self.objects.insert(object.clone());
        self.places.insert(key, place.clone());
        self.count += 1;
    }

    /// The place of an object, with its key.
    pub(crate) fn location(&self, key: &ObjectKey) -> Option<&DocumentLocation> {
        self.places.get(key)
    }

    fn add_endpoint_slice(&mut self, slice: snapshot::EndpointSlice) {
        self.objects.insert(Object::EndpointSlice(Arc::new(slice)));
    }
}

/// Reads the input of a command once.
///
/// # Errors
///
/// When a path cannot be read, or a cluster does not answer, or there is no manifest at all.
pub(crate) fn load_input(
    input: &Input,
    supplied: &[SuppliedEndpoints],
    #[cfg_attr(not(feature = "cluster"), expect(unused_variables, reason = "files need no notes"))]
    notes: &mut dyn Write,
) -> anyhow::Result<Manifests> {
    match input {
        Input::Files(paths) => load(paths, supplied),
        #[cfg(feature = "cluster")]
        Input::Cluster(arguments) => crate::cluster::load(arguments, supplied, notes),
    }
}

/// Reads manifests once.
///
/// # Errors
///
/// When a path cannot be read, or there is no manifest at all: these are mistakes of whoever typed the command.
pub(crate) fn load(paths: &[PathBuf], supplied: &[SuppliedEndpoints]) -> anyhow::Result<Manifests> {
    let files = read_all(paths)?;
    if files.is_empty() {
        bail!("no manifests (*.yaml, *.yml, *.json) in {}", files::in_words(paths));
    }
    for file in files.iter().filter(|file| file.origin == Origin::Named) {
        if let Err(error) = &file.text {
            bail!("cannot read {}: {error}", file.name);
        }
    }
    let decoded: Vec<FileObjects> = files.iter().map(FileObjects::decode).collect();
    // A pipeline that checks the wrong directory, or the output of a program that failed, must not be told that all is
    // well.
    if decoded.iter().all(|file| file.without_manifests) {
        let is_empty = |file: &FileText| file.text.as_ref().is_ok_and(|text| text.trim().is_empty());
        match files.as_slice() {
            [file] if file.is_standard_input() && is_empty(file) => bail!("standard input is empty"),
            [file] if file.is_standard_input() => bail!("standard input holds no manifest"),
            _ => bail!("no file holds a manifest in {}", files::in_words(paths)),
        }
    }
    Ok(Manifests::collect(&decoded, supplied))
}

/// The key of an object of a kind.
fn key(kind: Kind, name: &ObjectName) -> ObjectKey {
    ObjectKey { kind, name: name.clone() }
}

#[cfg(test)]
mod tests;
