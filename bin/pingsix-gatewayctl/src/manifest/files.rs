//! Paths to texts.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;

/// A file that was read, or could not be.
#[derive(Debug)]
pub(crate) struct FileText {
    /// As it is shown.
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) text: io::Result<String>,
}

/// The name under which standard input is shown.
const STANDARD_INPUT: &str = "<stdin>";

impl FileText {
    /// Reads a file; `-` is standard input.
    pub(crate) fn read(FoundFile { path, origin, .. }: &FoundFile) -> Self {
        let origin = *origin;
        if path == Path::new("-") {
            let mut text = String::new();
            let text = io::stdin().lock().read_to_string(&mut text).map(|_| text);
            return Self { name: STANDARD_INPUT.to_owned(), origin, text };
        }
        Self { name: path.display().to_string(), origin, text: fs::read_to_string(path) }
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
    Ok(find(paths)?.iter().map(FileText::read).collect())
}

/// A file that is named, or lies below a directory that is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    /// `None` for standard input.
    pub(crate) state: Option<FileState>,
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
const TIME_GRANULARITY: i64 = 2;

impl FileState {
    fn of(metadata: &fs::Metadata) -> Self {
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
        self.modified.0.max(self.changed.0) < now.saturating_sub(TIME_GRANULARITY)
    }
}

/// As [`read_all`], without reading the files. Names that start with a dot are left out.
pub(crate) fn find(paths: &[PathBuf]) -> anyhow::Result<Vec<FoundFile>> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for path in paths {
        files.extend(list(path)?.into_iter().filter(|file| seen.insert(file.path.clone())));
    }
    Ok(files)
}

/// A file, or the manifests below a directory, sorted.
fn list(path: &Path) -> anyhow::Result<Vec<FoundFile>> {
    if path == Path::new("-") {
        return Ok(vec![FoundFile { path: path.to_owned(), origin: Origin::Named, state: None }]);
    }
    let metadata = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        let state = Some(FileState::of(&metadata));
        return Ok(vec![FoundFile { path: path.to_owned(), origin: Origin::Named, state }]);
    }
    let mut files = Vec::new();
    list_directory(path, &mut files)?;
    files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn list_directory(directory: &Path, files: &mut Vec<FoundFile>) -> anyhow::Result<()> {
    let describe = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(describe)? {
        let path = entry.with_context(describe)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        let metadata = match fs::metadata(&path) {
            // Links to directories are not followed: they may lead in circles, and where Kubernetes mounts files, the
            // files are links themselves.
            Ok(metadata) if metadata.is_dir() => {
                if !path.is_symlink() {
                    list_directory(&path, files)?;
                }
                continue;
            }
            // Devices and pipes have no end.
            Ok(metadata) if !metadata.is_file() => continue,
            // The file has been deleted meanwhile, or is a dangling link.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // Reading it says what is wrong.
            metadata => metadata.ok(),
        };
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
        if extension.is_some_and(|extension| matches!(&*extension, "yaml" | "yml" | "json")) {
            let state = metadata.as_ref().map(FileState::of);
            files.push(FoundFile { path, origin: Origin::Found, state });
        }
    }
    Ok(())
}

/// Paths as a list for a message.
pub(super) fn in_words(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
