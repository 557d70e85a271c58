//! Files that change, with their last valid content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use super::watcher::Found;
use crate::arguments::SuppliedEndpoints;
use crate::finding::{Finding, Level, reason};
use crate::manifest::{FileObjects, FilePosition, FileText, FoundFile, Manifests};

/// Reads files again and again, those that have changed. Someone who is editing a file must not take a Gateway down:
///
/// - a file of which any document is not YAML, or that cannot be read, counts as it was when it was last whole;
/// - an object that does not decode, or whose version is not supported, counts as it was in that file;
/// - a file that is gone is gone, with all its objects.
#[derive(Debug)]
pub(super) struct ManifestCache {
    supplied: Vec<SuppliedEndpoints>,
    files: BTreeMap<FilePosition, CachedFile>,
    /// Files that a later write may leave in the state in which they were read.
    unsettled: BTreeSet<FilePosition>,
    manifests: Manifests,
}

/// A file as it was read last.
#[derive(Debug, Default)]
struct CachedFile {
    /// `None` if the file could not be read.
    text: Option<Arc<str>>,
    /// The last valid content.
    good: Option<Arc<FileObjects>>,
}

const KEPT: &str = " The previous manifests stay in force.";

impl ManifestCache {
    pub(super) fn new(supplied: Vec<SuppliedEndpoints>) -> Self {
        Self { supplied, files: BTreeMap::new(), unsettled: BTreeSet::new(), manifests: Manifests::default() }
    }

    /// Reads the changed files. Returns the number of changes: files with another text, and another error of a path.
    pub(super) fn load(&mut self, found: &Found, changed: BTreeSet<FilePosition>) -> usize {
        self.load_at(found, changed, SystemTime::now())
    }

    fn load_at(&mut self, found: &Found, mut changed: BTreeSet<FilePosition>, now: SystemTime) -> usize {
        changed.append(&mut self.unsettled);
        let mut replaced = Vec::new();
        for position in changed {
            let Some(file) = found.files.files.get(&position) else {
                self.files.remove(&position);
                replaced.push((position, None));
                continue;
            };
            if file.state.as_ref().is_none_or(|state| !state.is_settled(now)) {
                self.unsettled.insert(position.clone());
            }
            if let Some(content) = self.files.entry(position.clone()).or_default().read(&position, file) {
                replaced.push((position, Some(content)));
            }
        }
        let further = match &found.error {
            Some(error) => vec![Finding::new(Level::Error, reason::UNREADABLE, format!("{error}.{KEPT}"))],
            None if found.files.files.is_empty() => {
                let message = "There are no manifests (*.yaml, *.yml, *.json) yet.";
                vec![Finding::new(Level::Warning, reason::NO_MANIFESTS, message)]
            }
            None => Vec::new(),
        };
        let count = replaced.len() + usize::from(self.manifests.further != further);
        self.manifests.update(replaced, &self.supplied);
        self.manifests.further = further;
        count
    }

    /// The objects of all files.
    pub(super) const fn manifests(&self) -> &Manifests {
        &self.manifests
    }
}

impl CachedFile {
    /// Reads a file. Returns the content that counts, unless the text is the same as before.
    fn read(&mut self, position: &FilePosition, found: &FoundFile) -> Option<Arc<FileObjects>> {
        let file = FileText::read(&position.path, found.origin);
        let text = file.text.as_ref().ok().cloned();
        if text.is_some() && text == self.text {
            return None;
        }
        self.text = text;
        let (current, good) = last_good(FileObjects::decode(&file), self.good.take());
        self.good = good;
        Some(current)
    }
}

/// The content of a file that counts, and its last valid content.
fn last_good(
    mut file: FileObjects,
    good: Option<Arc<FileObjects>>,
) -> (Arc<FileObjects>, Option<Arc<FileObjects>>) {
    let Some(good) = good else {
        let file = Arc::new(file);
        let good = (!file.broken).then(|| file.clone());
        return (file, good);
    };
    if file.broken {
        for finding in &mut file.findings {
            if matches!(finding.reason.as_str(), reason::NOT_YAML | reason::UNREADABLE) {
                finding.message.push_str(KEPT);
            }
        }
        let mut kept = FileObjects::clone(&good);
        kept.findings = file.findings;
        return (Arc::new(kept), Some(good));
    }
    let undecodable = std::mem::take(&mut file.undecodable);
    let kept: Vec<_> =
        good.objects.iter().filter(|(_, object)| undecodable.contains(&object.key())).cloned().collect();
    let is_kept = |finding: &&mut Finding| {
        matches!(finding.reason.as_str(), reason::DOES_NOT_DECODE | reason::UNSUPPORTED_VERSION)
    };
    for finding in file.findings.iter_mut().filter(is_kept) {
        if kept.iter().any(|(_, object)| object.key().to_string() == finding.object) {
            finding.message.push_str(KEPT);
        }
    }
    file.objects.extend(kept);
    let file = Arc::new(file);
    (file.clone(), Some(file))
}

#[cfg(test)]
mod tests;
