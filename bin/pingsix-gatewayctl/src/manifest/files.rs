//! Paths to texts.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;

/// A file that was read, or could not be.
#[derive(Debug)]
pub(crate) struct FileText {
    /// As it is shown.
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) text: io::Result<Arc<str>>,
}

/// The name under which standard input is shown.
const STANDARD_INPUT: &str = "<stdin>";

impl FileText {
    /// Reads a file; `-` is standard input.
    pub(crate) fn read(path: &Path, origin: Origin) -> Self {
        if path == Path::new("-") {
            let mut text = String::new();
            let text = io::stdin().lock().read_to_string(&mut text).map(|_| text.into());
            return Self { name: STANDARD_INPUT.to_owned(), origin, text };
        }
        Self { name: path.display().to_string(), origin, text: fs::read_to_string(path).map(Arc::from) }
    }

    pub(crate) fn is_standard_input(&self) -> bool {
        self.name == STANDARD_INPUT
    }
}

/// The origin of a file in the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Somebody named it, or wrote it to standard input: it is meant to hold manifests.
    Named,
    /// The file lies below a named directory, perhaps beside the manifests.
    Found,
}

/// Reads every file that is named or lies below a directory that is named, in the order of the arguments and then of
/// the names. `-` is standard input.
///
/// # Errors
///
/// When a path that was named does not exist, or a directory cannot be read.
pub(crate) fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<FileText>> {
    let found = find(paths)?;
    Ok(found.files.iter().map(|(position, file)| FileText::read(&position.path, file.origin)).collect())
}

/// The position of a file in the input: the argument that names it, or a directory above it, and then its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilePosition {
    pub(crate) argument: usize,
    pub(crate) path: Arc<Path>,
}

/// The files of an input in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundFiles {
    pub(crate) files: BTreeMap<FilePosition, FoundFile>,
    /// Whether there is a link below a directory that is named. A change of its target is seen at the link alone.
    pub(crate) has_links: bool,
}

/// A file that is named, or lies below a directory that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) origin: Origin,
    /// `None` for standard input.
    pub(crate) state: Option<FileState>,
}

impl FoundFiles {
    /// The files that are new, gone or in another state than before.
    pub(crate) fn changes(&self, before: &Self) -> BTreeSet<FilePosition> {
        let differs =
            |(position, file): &(&FilePosition, &FoundFile)| before.files.get(position) != Some(file);
        let changed = self.files.iter().filter(differs).map(|(position, _)| position);
        let gone = before.files.keys().filter(|position| !self.files.contains_key(position));
        changed.chain(gone).cloned().collect()
    }

    /// Whether a file lies below a path.
    pub(crate) fn has_below(&self, FilePosition { argument, path }: &FilePosition) -> bool {
        let from = FilePosition { argument: *argument, path: path.clone() };
        let mut next = self.files.range(from..).map(|(position, _)| position);
        next.find(|position| position.path != *path)
            .is_some_and(|position| position.argument == *argument && position.path.starts_with(path))
    }
}

/// The identity, the length and the times of a file. A write changes them, unless it follows another one within the
/// granularity of the times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds, as the next one.
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The coarsest granularity of times that file systems have, in seconds.
const TIME_GRANULARITY_SECONDS: i64 = 2;

impl FileState {
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether every write after this time changes the state.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        self.modified.0.max(self.changed.0) < now.saturating_sub(TIME_GRANULARITY_SECONDS)
    }
}

/// As [`read_all`], without reading the files. Names that start with a dot are left out.
pub(crate) fn find(paths: &[PathBuf]) -> anyhow::Result<FoundFiles> {
    let mut found = FoundFiles::default();
    let mut seen = HashSet::new();
    for (argument, path) in paths.iter().enumerate() {
        for (path, file) in list(path, &mut found.has_links)? {
            if seen.insert(path.clone()) {
                found.files.insert(FilePosition { argument, path }, file);
            }
        }
    }
    Ok(found)
}

/// A file, or the manifests below a directory.
fn list(path: &Path, has_links: &mut bool) -> anyhow::Result<Vec<(Arc<Path>, FoundFile)>> {
    if path == Path::new("-") {
        return Ok(vec![(path.into(), FoundFile { origin: Origin::Named, state: None })]);
    }
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        let state = Some(FileState::of(&metadata));
        *has_links |= path.is_symlink();
        return Ok(vec![(path.into(), FoundFile { origin: Origin::Named, state })]);
    }
    let mut files = Vec::new();
    list_directory(path, &mut files, has_links)?;
    Ok(files)
}

fn list_directory(
    directory: &Path,
    files: &mut Vec<(Arc<Path>, FoundFile)>,
    has_links: &mut bool,
) -> anyhow::Result<()> {
    let describe = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(describe)? {
        let entry = entry.with_context(describe)?;
        let path = entry.path();
        if is_hidden(Path::new(&entry.file_name())) {
            continue;
        }
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        *has_links |= is_link;
        let metadata = match fs::metadata(&path) {
            // Links to directories are not followed: they may lead in circles, and where Kubernetes mounts files, the
            // files are links themselves.
            Ok(metadata) if metadata.is_dir() => {
                if !is_link {
                    list_directory(&path, files, has_links)?;
                }
                continue;
            }
            // Devices and pipes have no end.
            Ok(metadata) if !metadata.is_file() => continue,
            // The file has been deleted meanwhile, or is a dangling link.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // Reading the path gives the error.
            metadata => metadata.ok(),
        };
        if is_manifest(&path) {
            let state = metadata.as_ref().map(FileState::of);
            files.push((path.into(), FoundFile { origin: Origin::Found, state }));
        }
    }
    Ok(())
}

/// Whether a part of a relative path is hidden.
pub(crate) fn is_hidden(path: &Path) -> bool {
    path.iter().any(|name| name.to_string_lossy().starts_with('.'))
}

/// Whether a file below a directory is a manifest by its name.
pub(crate) fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|extension| matches!(&*extension, "yaml" | "yml" | "json"))
}

/// Paths as a list for a message.
pub(super) fn in_words(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
