//! Documents of a file: the output of `pingsix-gatewayctl translate --stream`.
//!
//! The file is looked at every second and after SIGHUP, and read when it has changed. A file that cannot be used
//! changes nothing.

mod format;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use pingsix_sink::Scope;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::documents::Documents;

/// Byte limit of the file.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The interval of looks at the file.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("cannot read {}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{} is larger than {MAX_FILE_BYTES} bytes", file.display())]
    TooLarge { file: PathBuf },
    /// The text of the error quotes no content.
    #[error("{} is no output of translate --stream: {problem}", file.display())]
    Format { file: PathBuf, problem: String },
}

impl FileError {
    pub(crate) const fn category(&self) -> &'static str {
        match self {
            Self::Read { .. } => "file_read",
            Self::TooLarge { .. } => "file_too_large",
            Self::Format { .. } => "file_format",
        }
    }
}

/// Reads the documents of a file again and again.
#[derive(Debug)]
pub(crate) struct FileReader {
    file: PathBuf,
    /// The prefix of the documents, if the file has those of several Gateways.
    prefix: Option<Scope>,
    hangup: Signal,
    /// The file as of the last reading; `None` if it has to be read.
    seen: Option<FileState>,
    documents: Documents,
}

/// The signs of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FileState {
    Absent,
    Present { modified: Option<SystemTime>, length: u64, inode: u64 },
}

impl FileState {
    fn of(file: &Path) -> Self {
        let Ok(metadata) = std::fs::metadata(file) else { return Self::Absent };
        Self::Present { modified: metadata.modified().ok(), length: metadata.len(), inode: metadata.ino() }
    }
}

impl FileReader {
    /// A reader, which takes SIGHUP from now on.
    pub(crate) fn new(file: PathBuf, prefix: Option<Scope>) -> io::Result<Self> {
        let hangup = signal(SignalKind::hangup())?;
        Ok(Self { file, prefix, hangup, seen: None, documents: Documents::default() })
    }

    /// Waits until the file has other documents, or becomes unusable. Revisions count these documents from one.
    pub(crate) async fn changed(&mut self) -> Result<&Documents, FileError> {
        loop {
            let state = FileState::of(&self.file);
            if self.seen.as_ref() != Some(&state) {
                let by_key = self.read();
                // A reading that fails is repeated after the next change alone.
                self.seen = Some(state);
                let by_key = by_key?;
                if self.documents.revision == 0 || by_key != self.documents.by_key {
                    self.documents.by_key = by_key;
                    self.documents.revision += 1;
                    return Ok(&self.documents);
                }
            }
            tokio::select! {
                () = sleep(POLL_INTERVAL) => {}
                _ = self.hangup.recv() => self.seen = None,
            }
        }
    }

    fn read(&self) -> Result<BTreeMap<String, Bytes>, FileError> {
        let file = || self.file.clone();
        let failure = |source| FileError::Read { file: file(), source };
        let mut bytes = Vec::new();
        let opened = File::open(&self.file).map_err(failure)?;
        opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failure)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
            return Err(FileError::TooLarge { file: file() });
        }
        let text = String::from_utf8(bytes);
        let documents = text.map_err(|_| "it is not UTF-8".to_owned());
        let documents = documents.and_then(|text| format::documents(&text, self.prefix.as_ref()));
        documents.map_err(|problem| FileError::Format { file: file(), problem })
    }
}

#[cfg(test)]
mod tests;
