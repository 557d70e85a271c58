//! Files that change, and what they held when they were last valid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::finding::{Finding, Level, reason};
use crate::manifest::{FileObjects, Manifests, SuppliedEndpoints, list, read_all};

/// Reads files again and again. Someone who is editing a file must not take a Gateway down:
///
/// - a file of which any document is not YAML, or that cannot be read, counts as it was when it was last whole;
/// - an object that does not decode, or whose version is not supported, counts as it was in that file;
/// - a file that is gone is gone, with all its objects.
#[derive(Debug)]
pub(super) struct ManifestCache {
    paths: Vec<PathBuf>,
    supplied: Vec<SuppliedEndpoints>,
    good: BTreeMap<String, FileObjects>,
}

const KEPT: &str = " The previous manifests stay in force.";

impl ManifestCache {
    /// Looks at the paths once, so that a mistake in the command line ends the program.
    pub(super) fn new(paths: Vec<PathBuf>, supplied: Vec<SuppliedEndpoints>) -> anyhow::Result<Self> {
        for path in &paths {
            if path == Path::new("-") {
                bail!("standard input cannot be watched; name a file or directory");
            }
            list(path)?;
        }
        Ok(Self { paths, supplied, good: BTreeMap::new() })
    }

    /// The objects as they stand now.
    pub(super) fn load(&mut self) -> Manifests {
        let mut unreadable = None;
        let files = match read_all(&self.paths) {
            Ok(files) => {
                let names: std::collections::BTreeSet<&str> =
                    files.iter().map(|file| file.name.as_str()).collect();
                self.good.retain(|name, _| names.contains(name.as_str()));
                files.iter().map(|file| (file.name.clone(), FileObjects::decode(file))).collect()
            }
            Err(error) => {
                unreadable = Some(general(Level::Error, reason::UNREADABLE, format!("{error:#}.{KEPT}")));
                Vec::new()
            }
        };
        let current: Vec<FileObjects> = if unreadable.is_some() {
            self.good.values().cloned().collect()
        } else {
            files.into_iter().map(|(name, file)| self.last_good(name, file)).collect()
        };
        let mut manifests = Manifests::collect(&current, &self.supplied);
        if current.is_empty() && unreadable.is_none() {
            let message = "There are no manifests (*.yaml, *.yml, *.json) yet.".to_owned();
            manifests.findings.push(general(Level::Warning, reason::NO_MANIFESTS, message));
        }
        manifests.findings.extend(unreadable);
        manifests
    }

    /// The valid content of a file: the new objects, or the last valid ones.
    fn last_good(&mut self, name: String, mut file: FileObjects) -> FileObjects {
        let Some(good) = self.good.get(&name) else {
            if !file.broken {
                self.good.insert(name, file.clone());
            }
            return file;
        };
        if file.broken {
            for finding in &mut file.findings {
                if matches!(finding.reason.as_str(), reason::NOT_YAML | reason::UNREADABLE) {
                    finding.message.push_str(KEPT);
                }
            }
            let mut kept = good.clone();
            kept.findings = file.findings;
            return kept;
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
        self.good.insert(name, file.clone());
        file
    }
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
