//! Files that change, and what they held when they were last valid.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::SystemTime;

use super::watcher::Found;
use crate::finding::{Finding, Level, reason};
use crate::manifest::{FileObjects, FileState, FileText, FoundFile, Manifests, SuppliedEndpoints};

/// Reads files again and again, those that have changed. Someone who is editing a file must not take a Gateway down:
///
/// - a file of which any document is not YAML, or that cannot be read, counts as it was when it was last whole;
/// - an object that does not decode, or whose version is not supported, counts as it was in that file;
/// - a file that is gone is gone, with all its objects.
#[derive(Debug)]
pub(super) struct ManifestCache {
    supplied: Vec<SuppliedEndpoints>,
    /// In the order of the input.
    files: Vec<CachedFile>,
}

/// A file as it was read last.
#[derive(Debug)]
struct CachedFile {
    path: PathBuf,
    /// The state of the file; `None` if a later change could leave it the same.
    state: Option<FileState>,
    /// The objects that count.
    current: FileObjects,
    /// The last valid content.
    good: Option<FileObjects>,
}

const KEPT: &str = " The previous manifests stay in force.";

impl ManifestCache {
    pub(super) const fn new(supplied: Vec<SuppliedEndpoints>) -> Self {
        Self { supplied, files: Vec::new() }
    }

    /// The objects as they stand in these files. Those of unchanged files are the same as the last time.
    pub(super) fn load(&mut self, found: &Found) -> Manifests {
        self.load_at(found, SystemTime::now())
    }

    fn load_at(&mut self, found: &Found, now: SystemTime) -> Manifests {
        let mut further = None;
        match found {
            Ok(found) => {
                let before = std::mem::take(&mut self.files).into_iter();
                let mut before: HashMap<PathBuf, CachedFile> =
                    before.map(|file| (file.path.clone(), file)).collect();
                let files = found.iter().map(|file| CachedFile::read(file, before.remove(&file.path), now));
                self.files = files.collect();
                if found.is_empty() {
                    let message = "There are no manifests (*.yaml, *.yml, *.json) yet.".to_owned();
                    further = Some(general(Level::Warning, reason::NO_MANIFESTS, message));
                }
            }
            Err(error) => {
                let message = format!("{error}.{KEPT}");
                further = Some(general(Level::Error, reason::UNREADABLE, message));
            }
        }
        let mut manifests = Manifests::collect(self.files.iter().map(|file| &file.current), &self.supplied);
        manifests.findings.extend(further);
        manifests
    }
}

impl CachedFile {
    /// Reads a file, unless it is unchanged.
    fn read(found: &FoundFile, last: Option<Self>, now: SystemTime) -> Self {
        let state = found.state.clone().filter(|state| state.is_settled(now));
        let good = match last {
            Some(last) if state.is_some() && last.state == state => return last,
            Some(last) => last.good,
            None => None,
        };
        let read = FileObjects::decode(&FileText::read(found));
        let (current, good) = last_good(read, good);
        Self { path: found.path.clone(), state, current, good }
    }
}

/// The content of a file that counts, and its last valid content.
fn last_good(mut file: FileObjects, good: Option<FileObjects>) -> (FileObjects, Option<FileObjects>) {
    let Some(good) = good else {
        let good = (!file.broken).then(|| file.clone());
        return (file, good);
    };
    if file.broken {
        for finding in &mut file.findings {
            if matches!(finding.reason.as_str(), reason::NOT_YAML | reason::UNREADABLE) {
                finding.message.push_str(KEPT);
            }
        }
        let mut kept = good.clone();
        kept.findings = file.findings;
        return (kept, Some(good));
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
    (file.clone(), Some(file))
}

fn general(severity: Level, reason: &str, message: String) -> Finding {
    Finding {
        place: None,
        object: String::new(),
        field: String::new(),
        severity,
        reason: reason.to_owned(),
        message,
    }
}

#[cfg(test)]
mod tests;
