//! A file that is either the old one or the new one, whatever moment the process or the machine dies at.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Puts `bytes` in the place of what `path` holds.
///
/// A new file beside it is written, synced and renamed over it, and the directory is synced.
/// Nobody but its owner may read it, or a directory that is made for it, at any moment.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    private_directory(directory)?;
    let fresh = beside(path)?;
    // Left by a process that died; opened anew it could be somebody else's, or a link.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let written = write(&fresh, bytes).and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // It holds private keys. That it cannot be removed either says nothing new.
        let _ = fs::remove_file(&fresh);
    }
    written?;
    File::open(directory)?.sync_all()
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

fn private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// A hidden name in the same directory, so that a rename never crosses file systems.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    let mut fresh = OsString::from(".");
    fresh.push(name);
    fresh.push(".new");
    Ok(path.with_file_name(fresh))
}
