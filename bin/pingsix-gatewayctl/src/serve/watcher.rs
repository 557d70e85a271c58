//! Notices changes of files: by events where the file system has them, by looking where it has not.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::arguments::ServeArguments;
use crate::manifest::list;

/// The bound on the wait for a pause between changes.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(2);

pub(super) struct Watcher {
    paths: Vec<PathBuf>,
    debounce: Duration,
    poll: Duration,
    events: Arc<Notify>,
    seen: Vec<FileState>,
    /// Kept, because it stops when dropped. None where the system has no more watches to give.
    _handle: Option<RecommendedWatcher>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// Name, time of the last change, and length of a file.
type FileState = (PathBuf, Option<SystemTime>, u64);

impl Watcher {
    pub(super) fn new(arguments: &ServeArguments) -> Self {
        let events = Arc::new(Notify::new());
        let watcher = watch(&arguments.paths, events.clone());
        if let Err(error) = &watcher {
            tracing::warn!(error = %error, poll_ms = arguments.poll, "no events from the file system, polling only");
        }
        let seen = look(&arguments.paths);
        Self {
            paths: arguments.paths.clone(),
            debounce: Duration::from_millis(arguments.debounce),
            poll: Duration::from_millis(arguments.poll),
            events,
            seen,
            _handle: watcher.ok(),
        }
    }

    /// Returns once files have changed and then have been left alone for a moment.
    ///
    /// Nothing is lost when the future is dropped: what was not returned is noticed by the next call.
    pub(super) async fn changed(&mut self) {
        loop {
            // Either way the files are looked at.
            let _ = timeout(self.poll, self.events.notified()).await;
            let now = look(&self.paths);
            if now == self.seen {
                continue;
            }
            self.settle().await;
            self.seen = look(&self.paths);
            return;
        }
    }

    async fn settle(&self) {
        let end = Instant::now() + MAX_SETTLE_TIME;
        loop {
            let before = look(&self.paths);
            let quiet = async {
                let _ = timeout(self.debounce, self.events.notified()).await;
                sleep(self.debounce.min(Duration::from_millis(20))).await;
            };
            if timeout_at(end, quiet).await.is_err() || look(&self.paths) == before {
                return;
            }
        }
    }
}

fn watch(paths: &[PathBuf], events: Arc<Notify>) -> anyhow::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading a file is an event too, and reading is what follows.
        let only_read = event.is_ok_and(|event| match event.kind {
            EventKind::Access(access) => access != AccessKind::Close(AccessMode::Write),
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => false,
        });
        if !only_read {
            events.notify_one();
        }
    })?;
    for path in paths {
        if path.is_dir() {
            watcher.watch(path, RecursiveMode::Recursive)?;
        } else {
            // Editors replace a file rather than write to it, so its directory is watched.
            let parent =
                path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            watcher
                .watch(parent, RecursiveMode::NonRecursive)
                .with_context(|| parent.display().to_string())?;
        }
    }
    Ok(watcher)
}

fn look(paths: &[PathBuf]) -> Vec<FileState> {
    let mut states = Vec::new();
    for path in paths {
        // A path that cannot be listed is a state of its own, which differs from every other.
        let files = list(path).unwrap_or_default();
        states.extend(files.into_iter().map(|file| {
            let metadata = std::fs::metadata(&file).ok();
            let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
            let length = metadata.map_or(u64::MAX, |metadata| metadata.len());
            (file, modified, length)
        }));
    }
    states
}
