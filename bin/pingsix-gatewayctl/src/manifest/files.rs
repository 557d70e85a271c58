//! Paths to texts.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

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
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        if path == Path::new("-") {
            let mut text = String::new();
            let text = io::stdin().lock().read_to_string(&mut text).map(|_| text);
            files.push(FileText { name: STANDARD_INPUT.to_owned(), origin: Origin::Named, text });
            continue;
        }
        let origin = if path.is_dir() { Origin::Found } else { Origin::Named };
        for file in list(path)? {
            if seen.insert(file.clone()) {
                let text = fs::read_to_string(&file);
                files.push(FileText { name: file.display().to_string(), origin, text });
            }
        }
    }
    Ok(files)
}

/// A file, or the manifests below a directory, sorted. Names that start with a dot are left out.
pub(crate) fn list(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let describe = || format!("cannot read {}", path.display());
    let mut files = Vec::new();
    if fs::metadata(path).with_context(describe)?.is_dir() {
        list_directory(path, &mut files)?;
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    Ok(files)
}

fn list_directory(directory: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let describe = || format!("cannot read {}", directory.display());
    for entry in fs::read_dir(directory).with_context(describe)? {
        let path = entry.with_context(describe)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden {
            continue;
        }
        // Links to directories are not followed: they may lead in circles, and where Kubernetes mounts files, the
        // files are links themselves.
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                if !path.is_symlink() {
                    list_directory(&path, files)?;
                }
            }
            // Devices and pipes have no end.
            Ok(metadata) if !metadata.is_file() => {}
            // The file has been deleted meanwhile, or is a dangling link.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Reading it says what is wrong.
            Ok(_) | Err(_) => {
                let extension =
                    path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
                if extension.is_some_and(|extension| matches!(&*extension, "yaml" | "yml" | "json")) {
                    files.push(path);
                }
            }
        }
    }
    Ok(())
}

/// Paths as a list for a message.
pub(super) fn in_words(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
