//! Manifests to objects: what an API server would have stored, as far as translation needs it.

mod endpoints;
mod files;
pub(crate) mod missing_endpoints;
mod other_gateways;
mod parameters;
mod places;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use pingsix_translate::manifest::{
    Decoded, Document, ManifestReason, decode, decode_known_fields, documents,
};
use pingsix_translate::snapshot::{Object, Objects};
use pingsix_translate::{GATEWAY_GROUP, Kind, ObjectKey, ObjectName, SharedMap};
use serde_json::Value;

use crate::arguments::SuppliedEndpoints;
use crate::finding::{DocumentLocation, Finding, Level, counted, reason};
use endpoints::SuppliedObjects;
pub(crate) use files::{
    FilePosition, FileState, FileText, FoundFile, FoundFiles, Origin, find, is_hidden, is_manifest, read_all,
};
use places::Place;

use crate::schema::{SchemaProblem, misspelled, problems};

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileObjects {
    /// The objects in order.
    pub(crate) objects: Vec<(Place, Object)>,
    /// Objects that are named but cannot be decoded.
    pub(crate) undecodable: BTreeSet<ObjectKey>,
    /// Whether part of the file cannot be read, so its objects are unknown.
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
    /// Decodes every document of a file; a problem costs its own document alone.
    pub(crate) fn decode(file: &FileText) -> Self {
        let mut decoded = Self::default();
        let text = match &file.text {
            Ok(text) => text,
            Err(error) => {
                decoded.broken = true;
                let place = DocumentLocation::of_object_in(&file.name, 1);
                let message = format!("The file cannot be read: {error}.");
                decoded.findings.push(Finding::new(Level::Error, reason::UNREADABLE, message).at(place));
                return decoded;
            }
        };
        let documents = documents(text);
        for document in &documents {
            let location = DocumentLocation::of(&file.name, document);
            match document.decode() {
                Ok(value) => {
                    let first = decoded.findings.len();
                    decoded.add_document(&Place { location, text: text.clone() }, value, document);
                    places::find_lines(&mut decoded.findings[first..], document);
                }
                Err(error) => {
                    decoded.broken = true;
                    decoded.findings.push(Finding::not_yaml(location, &error));
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
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn of_values(name: &str, values: Vec<Value>) -> Self {
        let location = DocumentLocation::of_object_in(name, 0);
        let place = Place { location, text: "".into() };
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

    fn add_document(&mut self, place: &Place, value: Value, document: &Document<'_>) {
        let decoded = Decoding::of(place, value);
        let Decoded::List(items) = decoded.result else { return self.add_decoded(place, decoded) };
        let lines = document.item_lines(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut place = place.item(index);
            if let Some(line) = lines.get(index) {
                place.location.line = *line;
            }
            self.add(&place, item);
        }
    }

    /// A file beside manifests without a manifest of its own belongs to another tool.
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

    fn add(&mut self, place: &Place, value: Value) {
        self.add_decoded(place, Decoding::of(place, value));
    }

    fn add_decoded(&mut self, place: &Place, Decoding { version, problems, result }: Decoding) {
        let location = &place.location;
        match result {
            Decoded::Nothing => {}
            Decoded::List(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    self.add(&place.item(index), item);
                }
            }
            Decoded::Object { object, ignored } => {
                let name = object.key().to_string();
                if place.is_in_file() {
                    self.add_problems(location, &name, problems);
                } else {
                    // The API server took the object, and its definition is newer than this program.
                    self.findings.extend(ignored.into_iter().map(|field| {
                        let message = format!("The API has no field {field}, so the field has no effect.");
                        let finding = Finding::new(Level::Warning, reason::UNKNOWN_FIELD, message);
                        finding.about(&name, Some(location)).of_field(field)
                    }));
                }
                self.objects.push((place.clone(), object));
            }
            Decoded::UnknownKind { group, kind } => {
                let unknown = UnknownKind { group, kind, version };
                self.unknown_kinds.entry(unknown).or_insert_with(|| (location.clone(), 0)).1 += 1;
            }
            Decoded::Problem(problem) => {
                self.undecodable.extend(problem.key);
                // The problems of the object say more, and they say all.
                let is_told = problems.iter().any(|problem| problem.reason == reason::DOES_NOT_DECODE);
                self.add_problems(location, &problem.object, problems);
                if !is_told {
                    let kind = problem.object.split(' ').next().unwrap_or_default();
                    let meant = misspelled(kind, kinds_of(GATEWAY_GROUP).map(Kind::as_str));
                    let advice = match meant.filter(|_| problem.reason == ManifestReason::UnsupportedKind) {
                        Some(meant) => format!(" Did you mean {meant}?"),
                        None => String::new(),
                    };
                    let message = problem.message + &advice;
                    let finding = Finding::new(Level::Error, problem.reason.as_str(), message);
                    self.findings
                        .push(finding.about(&problem.object, Some(location)).of_field(problem.field));
                }
            }
        }
    }

    fn add_problems(&mut self, location: &DocumentLocation, object: &str, problems: Vec<SchemaProblem>) {
        self.findings.extend(problems.into_iter().map(|SchemaProblem { field, reason, message }| {
            Finding::new(Level::Error, reason, message).about(&object, Some(location)).of_field(field)
        }));
    }
}

/// A value that was decoded, and its problems.
struct Decoding {
    /// The version of the object, without its group.
    version: String,
    problems: Vec<SchemaProblem>,
    result: Decoded,
}

impl Decoding {
    fn of(place: &Place, value: Value) -> Self {
        let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let kind =
            Kind::from_group_kind(group, text("kind")).filter(|kind| kind.versions().contains(&version));
        let version = version.to_owned();
        if !place.is_in_file() {
            return Self { version, problems: Vec::new(), result: decode(value) };
        }
        // The problems have the fields that the kind lacks.
        let problems = kind.map(|kind| problems(kind, &value)).unwrap_or_default();
        Self { version, problems, result: decode_known_fields(value) }
    }
}

/// The kinds of a group that translation reads.
fn kinds_of(group: &str) -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(move |kind| kind.group() == group)
}

/// The kind, or else the version, that the author of an unread kind probably meant.
fn meant_kind(group: &str, kind: &str) -> Option<String> {
    if let Some(meant) = misspelled(kind, kinds_of(group).map(Kind::as_str)) {
        return Some(meant.to_owned());
    }
    let mut namesakes = Kind::ALL.iter().filter(|known| known.as_str() == kind);
    let known = namesakes.find(|known| misspelled(group, [known.group()]).is_some())?;
    Some(known.api_version())
}

/// All objects of all files. A copy costs little, as one of a [`SharedMap`] does, and so does a file that changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifests {
    pub(crate) objects: Objects,
    /// Findings that are about no file.
    pub(crate) further: Vec<Finding>,
    files: SharedMap<FilePosition, Arc<FileObjects>>,
    /// The objects of the files, without those that endpoints of the command line bring.
    given: Objects,
    /// The definitions of each object, in order. The first one counts.
    definitions: SharedMap<ObjectKey, Vec<Definition>>,
    /// The objects with several definitions.
    repeated: BTreeSet<ObjectKey>,
    supplied: SuppliedObjects,
}

/// An object in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Definition {
    file: FilePosition,
    /// The index among the objects of the file.
    index: usize,
}

impl Manifests {
    /// Puts files together, in order.
    pub(crate) fn collect(
        files: impl IntoIterator<Item = FileObjects>,
        supplied: &[SuppliedEndpoints],
    ) -> Self {
        let nameless: Arc<Path> = Path::new("").into();
        let position = |argument| FilePosition { argument, path: nameless.clone() };
        let files = files.into_iter().enumerate();
        let mut all = Self::default();
        all.update(files.map(|(number, file)| (position(number), Some(Arc::new(file)))), supplied);
        all
    }

    /// Replaces files. A file without content is gone. Objects of unchanged files stay the same ones.
    pub(crate) fn update(
        &mut self,
        files: impl IntoIterator<Item = (FilePosition, Option<Arc<FileObjects>>)>,
        supplied: &[SuppliedEndpoints],
    ) {
        let mut changed = BTreeSet::new();
        for (position, now) in files {
            let before = self.files.get(&position).cloned();
            for (_, object) in before.iter().flat_map(|file| &file.objects) {
                let key = object.key();
                if let Some(definitions) = self.definitions.get_mut(&key) {
                    definitions.retain(|definition| definition.file != position);
                }
                changed.insert(key);
            }
            for (index, (_, object)) in now.iter().flat_map(|file| &file.objects).enumerate() {
                let key = object.key();
                let definition = Definition { file: position.clone(), index };
                match self.definitions.get_mut(&key) {
                    Some(definitions) => {
                        let at = definitions.partition_point(|other| *other < definition);
                        definitions.insert(at, definition);
                    }
                    None => {
                        self.definitions.insert(key.clone(), vec![definition]);
                    }
                }
                changed.insert(key);
            }
            match now {
                Some(file) => self.files.insert(position, file),
                None => self.files.remove(&position),
            };
        }
        let concerns_endpoints =
            changed.iter().any(|key| matches!(key.kind, Kind::Service | Kind::EndpointSlice));
        for key in changed {
            self.choose(&key);
        }
        if concerns_endpoints || self.supplied.objects.is_empty() {
            self.supplied = SuppliedObjects::new(&self.given, supplied);
        }
        self.objects = self.given.clone();
        for object in &self.supplied.objects {
            self.objects.insert(object.clone());
        }
    }

    /// Takes the first definition of an object.
    fn choose(&mut self, key: &ObjectKey) {
        let definitions = self.definitions.get(key).map_or(&[][..], Vec::as_slice);
        if definitions.len() > 1 {
            self.repeated.insert(key.clone());
        } else {
            self.repeated.remove(key);
        }
        let first = definitions.first().and_then(|first| self.defined(first));
        if let Some((_, object)) = first {
            self.given.insert(object.clone());
        } else {
            self.given.remove(key);
            self.definitions.remove(key);
        }
    }

    fn defined(&self, Definition { file, index }: &Definition) -> Option<&(Place, Object)> {
        self.files.get(file)?.objects.get(*index)
    }

    /// The number of objects, without generated ones.
    pub(crate) fn count(&self) -> usize {
        self.definitions.len()
    }

    /// The place of an object that counts.
    fn place_of(&self, key: &ObjectKey) -> Option<&Place> {
        let (place, _) = self.defined(self.definitions.get(key)?.first()?)?;
        Some(place)
    }

    /// The location of an object that counts.
    pub(crate) fn location(&self, key: &ObjectKey) -> Option<&DocumentLocation> {
        self.place_of(key).map(|place| &place.location)
    }

    /// The findings about the manifests, in no order.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> =
            self.files.values().flat_map(|file| &file.findings).cloned().collect();
        findings.extend(self.unknown_kinds());
        findings.extend(self.repetitions());
        findings.extend(self.supplied.findings.iter().cloned());
        findings.extend(self.further.iter().cloned());
        findings
    }

    /// Definitions of objects after the first one.
    fn repetitions(&self) -> impl Iterator<Item = Finding> {
        let repeated =
            self.repeated.iter().filter_map(|key| Some((key, self.definitions.get(key)?.as_slice())));
        repeated.flat_map(|(key, definitions)| {
            let mut places =
                definitions.iter().filter_map(|one| self.defined(one)).map(|(place, _)| &place.location);
            let first = places.next().map(ToString::to_string).unwrap_or_default();
            places.map(move |place| {
                let message = format!("The object is already defined at {first}; this one is ignored.");
                Finding::new(Level::Error, reason::DUPLICATE, message).about(key, Some(place))
            })
        })
    }

    fn unknown_kinds(&self) -> impl Iterator<Item = Finding> {
        let mut unknown: BTreeMap<&UnknownKind, (&DocumentLocation, usize)> = BTreeMap::new();
        for (kind, (place, count)) in self.files.values().flat_map(|file| &file.unknown_kinds) {
            unknown.entry(kind).or_insert((place, 0)).1 += count;
        }
        unknown.into_iter().map(|(UnknownKind { group, kind, version }, (place, count))| {
            let of_group = if group.is_empty() { "the core group" } else { group };
            let ignored =
                format!("{} {} ignored", counted(count, "object"), if count == 1 { "is" } else { "are" });
            let finding = if let Some(other) = other_gateways::find(group, version, kind) {
                let message = format!(
                    "Objects of kind {kind} of {of_group} are for {}, so PingSIX does not serve them; {ignored}. {}",
                    other.gateway, other.advice
                );
                Finding::new(other.level, reason::KIND_OF_OTHER_GATEWAY, message)
            } else if let Some(meant) = meant_kind(group, kind) {
                let message = format!("{kind} ({of_group}) is not read; {ignored}. Did you mean {meant}?");
                Finding::new(Level::Error, reason::UNKNOWN_KIND, message)
            } else {
                let message = format!("{kind} ({of_group}) is not read; {ignored}.");
                Finding::new(Level::Info, reason::UNKNOWN_KIND, message)
            };
            finding.at(place.clone())
        })
    }
}

/// Reads manifests once.
///
/// # Errors
///
/// When a path cannot be read, or there is no manifest at all: mistakes of the command line.
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
    // A pipeline that checks the wrong directory, or the output of a program that failed, must not succeed.
    if decoded.iter().all(|file| file.without_manifests) {
        let is_empty = |file: &FileText| file.text.as_ref().is_ok_and(|text| text.trim().is_empty());
        match files.as_slice() {
            [file] if file.is_standard_input() && is_empty(file) => bail!("standard input is empty"),
            [file] if file.is_standard_input() => bail!("standard input holds no manifest"),
            _ => bail!("no file holds a manifest in {}", files::in_words(paths)),
        }
    }
    Ok(Manifests::collect(decoded, supplied))
}

/// The key of an object of a kind.
fn key(kind: Kind, name: &ObjectName) -> ObjectKey {
    ObjectKey { kind, name: name.clone() }
}

#[cfg(test)]
mod tests;
