//! The file of `--replay`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};

/// The most bytes of a file of requests.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads a file, or standard input.
///
/// # Errors
///
/// When the file cannot be read, or is too large.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = Vec::new();
    let shown = path.display();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MAX_FILE_BYTES + 1).read_to_end(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text))
    };
    let read = read.with_context(|| format!("cannot read {shown}"))?;
    if read as u64 > MAX_FILE_BYTES {
        bail!("{shown} has more than {} MiB of requests", MAX_FILE_BYTES >> 20);
    }
    // Logs have the bytes of any client.
    Ok(String::from_utf8_lossy(&text).into_owned())
}
