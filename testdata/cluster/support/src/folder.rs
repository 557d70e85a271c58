//! The folder of a cluster, and remains of clusters whose tests were killed.

use std::fs::{self, File};
use std::path::Path;
use std::{env, io};

use tempfile::TempDir;

const PREFIX: &str = "pingsix-cluster-";
/// Locked as long as a process uses the folder; the system unlocks it when that process ends.
const LOCK: &str = "lock";

/// A folder that is removed when this is dropped, or by the next cluster if the process was killed.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(&env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        remove_left_overs(parent)?;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // The folder gets its name after its lock, so other processes never find it unlocked.
        let unnamed = folder.path().join("lock.new");
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn remove_left_overs(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let of_a_cluster = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if of_a_cluster && is_left_over(&entry.path()) {
            // The removal may fail, because another process is faster or another user owns the folder; the next run retries.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

fn is_left_over(folder: &Path) -> bool {
    // Without a lock it is one that is just being made.
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_folders_are_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let used = Folder::new_in(parent.path()).unwrap();
        let left_over = parent.path().join(format!("{PREFIX}left-over"));
        let being_made = parent.path().join(format!("{PREFIX}being-made"));
        let foreign = parent.path().join("foreign");
        for folder in [&left_over, &being_made, &foreign] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(left_over.join(LOCK), "").unwrap();
        fs::write(foreign.join(LOCK), "").unwrap();

        let another = Folder::new_in(parent.path()).unwrap();
        assert!(!left_over.exists());
        for kept in [used.path(), another.path(), &being_made, &foreign] {
            assert!(kept.exists(), "{}", kept.display());
        }
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
