//! Reservations in a small file.
//!
//! The file has one line: a version mark, the highest issued revision, and a check sum of both. Before the revisions
//! are issued, a new line is written to a file beside it, synced and renamed over it, and the directory is synced.
//! The file therefore has a ceiling at or above every issued revision, whenever the process dies.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Block, Reservations, ReserveError, Reserving};
use crate::document::Digest;
use crate::revision::Revision;

const VERSION_MARK: &str = "pingsix-revisions-v1";

/// A store in a file of one process at a time.
#[derive(Debug)]
pub(in crate::embedded) struct FileReservations {
    file: Arc<StateFile>,
}

#[derive(Debug)]
struct StateFile {
    path: PathBuf,
    ceiling: Mutex<Option<Revision>>,
    /// Held for the life of the store, so that a second process cannot reserve from the same ceiling.
    _lock: File,
}

impl FileReservations {
    /// Reads the file, or starts without a ceiling if the file is absent, and takes the lock beside it.
    ///
    /// # Errors
    /// [`ReserveError::InUse`], [`ReserveError::Corrupt`] and [`ReserveError::Io`], each with the file.
    pub(in crate::embedded) fn open(path: impl Into<PathBuf>) -> Result<Self, ReserveError> {
        let path = path.into();
        let failure = |action| {
            let path = path.clone();
            move |source| ReserveError::Io { path, action, source }
        };
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(sibling(&path, "lock"))
            .map_err(failure("locked"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ReserveError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(failure("locked")(source)),
        }
        let ceiling = match std::fs::read(&path) {
            Ok(text) => {
                let parsed = parse(&text);
                Some(parsed.map_err(|problem| ReserveError::Corrupt { path: path.clone(), problem })?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure("read")(error)),
        };
        Ok(Self { file: Arc::new(StateFile { path, ceiling: Mutex::new(ceiling), _lock: lock }) })
    }
}

impl Reservations for FileReservations {
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_> {
        let file = Arc::clone(&self.file);
        Box::pin(async move {
            let joined = tokio::task::spawn_blocking(move || file.reserve(at_least, count)).await;
            joined.unwrap_or_else(|error| Err(ReserveError::Store(Box::new(error))))
        })
    }
}

impl StateFile {
    fn reserve(&self, at_least: Revision, count: u32) -> Result<Block, ReserveError> {
        let mut ceiling = self.ceiling.lock();
        let block = Block::above(*ceiling, at_least, count)?;
        self.write(block.last).map_err(|source| ReserveError::Io {
            path: self.path.clone(),
            action: "written",
            source,
        })?;
        *ceiling = Some(block.last);
        Ok(block)
    }

    fn write(&self, ceiling: Revision) -> io::Result<()> {
        let fresh = sibling(&self.path, "new");
        let mut file = File::create(&fresh)?;
        file.write_all(format_line(ceiling).as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, &self.path)?;
        let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// The path with a dot and `suffix` appended to the file name.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

fn format_line(ceiling: Revision) -> String {
    let body = format!("{VERSION_MARK} {ceiling}");
    let sum = check_sum(&body);
    format!("{body} {sum}\n")
}

fn parse(text: &[u8]) -> Result<Revision, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not text")?;
    let line = text.strip_suffix('\n').ok_or("it does not end with a line break")?;
    let (body, sum) = line.rsplit_once(' ').ok_or("it has too few fields")?;
    let number = body
        .strip_prefix(VERSION_MARK)
        .and_then(|rest| rest.strip_prefix(' '))
        .ok_or("it has an unknown mark")?;
    if sum != check_sum(body) {
        return Err("its check sum does not match");
    }
    number.parse().ok().and_then(Revision::new).ok_or("its revision is not a positive number")
}

fn check_sum(body: &str) -> String {
    let mut sum = Digest::of(body.as_bytes()).to_string();
    sum.truncate(16);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ceiling(store: &FileReservations) -> Option<Revision> {
        *store.file.ceiling.lock()
    }

    fn revision(number: i64) -> Revision {
        Revision::new(number).unwrap()
    }

    #[tokio::test]
    async fn a_ceiling_survives_and_blocks_never_meet() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let mut highest = 0;
        for _ in 0..3 {
            let store = FileReservations::open(&path).unwrap();
            for _ in 0..2 {
                let block = store.reserve(revision(7), 100).await.unwrap();
                assert!(block.first.get() > highest);
                highest = block.last.get();
            }
        }
        assert_eq!(ceiling(&FileReservations::open(&path).unwrap()), Some(revision(highest)));
    }

    #[tokio::test]
    async fn two_processes_cannot_hold_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let first = FileReservations::open(&path).unwrap();
        assert!(matches!(FileReservations::open(&path).unwrap_err(), ReserveError::InUse { .. }));
        drop(first);
        FileReservations::open(&path).unwrap();
    }

    #[test]
    fn a_damaged_file_is_an_error_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let good = format_line(revision(1_763_726_400_000_000));
        assert_eq!(parse(good.as_bytes()), Ok(revision(1_763_726_400_000_000)));
        let damaged = [
            String::new(),
            "hello\n".to_owned(),
            good.replace("17637", "17638"),
            good.trim_end().to_owned(),
            good[..20].to_owned(),
            format_line(revision(1)).replace("-v1", "-v2"),
        ];
        for text in damaged {
            std::fs::write(&path, &text).unwrap();
            let error = FileReservations::open(&path).unwrap_err();
            assert!(matches!(error, ReserveError::Corrupt { .. }), "{text:?}");
            assert!(error.to_string().contains(path.to_str().unwrap()));
        }
    }

    #[tokio::test]
    async fn a_write_that_fails_gives_no_revisions() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let store = FileReservations::open(inner.join("state")).unwrap();
        std::fs::remove_dir_all(&inner).unwrap();
        let error = store.reserve(revision(1), 1).await.unwrap_err();
        assert!(error.is_retryable());
        assert_eq!(ceiling(&store), None);
    }
}
