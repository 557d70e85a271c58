//! Atomic replacement of a file: a crash at any time leaves the old file or the new one.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces the content of `path` by `bytes` if `is_wanted` is still true just before the rename; returns its result.
///
/// A new file beside it is written, synced and renamed over it, and the directory is synced, as are created parent
/// directories. Only the owner can ever read the file and created directories.
///
/// Of two concurrent writers, the later one removes the unfinished file of the earlier one, which then fails: a
/// former leader on a volume that was stalled.
pub(super) fn replace(path: &Path, bytes: &[u8], is_wanted: impl FnOnce() -> bool) -> io::Result<bool> {
    let directory = parent_of(path);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    private_directory(directory)?;
    remove_unfinished(directory, name)?;
    // A hidden, unique name in the same directory, so that the rename stays within one file system.
    let temporary = directory.join(unfinished(name, &format!("{:016x}", fastrand::u64(..))));
    let replaced = write(&temporary, bytes).and_then(|()| {
        if !is_wanted() {
            return Ok(false);
        }
        fs::rename(&temporary, path).map(|()| true)
    });
    if !matches!(replaced, Ok(true)) {
        // The file contains private keys. A failed removal adds nothing to the first error.
        let _ = fs::remove_file(&temporary);
    }
    if replaced? {
        File::open(directory)?.sync_all()?;
        return Ok(true);
    }
    Ok(false)
}

const UNFINISHED: &str = ".new";

/// The name of a file that is being written.
fn unfinished(name: &OsStr, mark: &str) -> OsString {
    let mut hidden_name = OsString::from(".");
    for part in [name, OsStr::new("."), OsStr::new(mark), OsStr::new(UNFINISHED)] {
        hidden_name.push(part);
    }
    hidden_name
}

/// Removes unfinished files of a process that died or stalled.
fn remove_unfinished(directory: &Path, name: &OsStr) -> io::Result<()> {
    let is_one = |found: &OsStr| {
        let (found, name) = (found.as_encoded_bytes(), name.as_encoded_bytes());
        let rest = found.strip_prefix(b".").and_then(|found| found.strip_prefix(name));
        let mark = rest.and_then(|rest| rest.strip_suffix(UNFINISHED.as_bytes()));
        // An unfinished file without a mark is from an earlier version.
        mark.is_some_and(|mark| {
            mark.is_empty()
                || mark.len() == 17 && mark[0] == b'.' && mark[1..].iter().all(u8::is_ascii_hexdigit)
        })
    };
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_one(&entry.file_name()) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Creates a missing directory and its parents. Each is synced into its parent: otherwise a power loss may lose the
/// directory and a synced file in it.
fn private_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = parent_of(directory);
    private_directory(parent)?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    File::open(parent)?.sync_all()
}

/// The directory of a path.
fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_abandoned_write_replaces_nothing_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("web.yaml");
        assert!(replace(&path, b"old", || true).unwrap());
        assert!(!replace(&path, b"new", || false).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["web.yaml"]);
    }

    #[cfg(unix)]
    #[test]
    fn directories_that_are_not_there_are_made_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let above = directory.path().join("a");
        let path = above.join("b/web.yaml");
        assert!(replace(&path, b"new", || true).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        for made in [&*above, &above.join("b")] {
            assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
        }
        // A file in place of a directory is an error, and stays.
        let blocked = path.join("web.yaml");
        assert!(replace(&blocked, b"new", || true).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn the_later_of_two_concurrent_writers_wins() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("web.yaml");
        let stalled = replace(&path, b"of the one before", || {
            assert!(replace(&path, b"of the leader", || true).unwrap());
            true
        });
        assert_eq!(stalled.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read(&path).unwrap(), b"of the leader");
        assert_eq!(names(directory.path()), ["web.yaml"]);
    }

    #[test]
    fn unfinished_files_of_a_dead_process_are_removed_and_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("web.yaml");
        let others = [".web.yaml.bak", ".web.yaml.other.new", ".web2.yaml.new", "web.yaml.new"];
        for name in others.iter().chain(&[".web.yaml.new", ".web.yaml.0123456789abcdef.new"]) {
            fs::write(directory.path().join(name), b"key").unwrap();
        }
        assert!(replace(&path, b"new", || true).unwrap());
        let mut left = [&others[..], &["web.yaml"]].concat();
        left.sort_unstable();
        assert_eq!(names(directory.path()), left);
    }
}
