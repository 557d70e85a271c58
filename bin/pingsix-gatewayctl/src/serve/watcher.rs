//! Notices changes of files: by events where the file system has them, by looking where it has not.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::arguments::ServeArguments;
use crate::manifest::{FoundFile, find};

/// The bound on the wait for a pause between changes.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(2);

pub(super) struct Watcher {
    paths: Vec<PathBuf>,
    debounce: Duration,
    poll: Duration,
    events: Arc<Notify>,
    found: Found,
    /// Kept, because it stops when dropped. None where the system has no more watches to give.
    _handle: Option<RecommendedWatcher>,
}

impl std::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watcher").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// The files of the paths, or the fault of a path.
pub(super) type Found = Result<Vec<FoundFile>, String>;

impl Watcher {
    /// # Errors
    ///
    /// When a path cannot be listed: that is a mistake in the command line.
    pub(super) fn new(arguments: &ServeArguments) -> anyhow::Result<Self> {
        if arguments.paths.iter().any(|path| path == Path::new("-")) {
            bail!("standard input cannot be watched; name a file or directory");
        }
        let events = Arc::new(Notify::new());
        let watcher = watch(&arguments.paths, events.clone());
        if let Err(error) = &watcher {
            tracing::warn!(error = %error, poll_ms = arguments.poll, "no events from the file system, polling only");
        }
        Ok(Self {
            paths: arguments.paths.clone(),
            debounce: Duration::from_millis(arguments.debounce),
            poll: Duration::from_millis(arguments.poll),
            events,
            found: Ok(find(&arguments.paths)?),
            _handle: watcher.ok(),
        })
    }

    /// The files as they were found last.
    pub(super) const fn found(&self) -> &Found {
        &self.found
    }

    /// Returns once files have changed and then have been left alone for a moment.
    ///
    /// Nothing is lost when the future is dropped: a change that was not returned is noticed by the next call.
    pub(super) async fn changed(&mut self) {
        loop {
            // Either way the files are looked at.
            let _ = timeout(self.poll, self.events.notified()).await;
            let found = self.look();
            if found != self.found {
                self.found = self.settled(found).await;
                return;
            }
        }
    }

    /// The files after a pause between changes.
    async fn settled(&self, mut before: Found) -> Found {
        let end = Instant::now() + MAX_SETTLE_TIME;
        loop {
            let quiet = async {
                let _ = timeout(self.debounce, self.events.notified()).await;
                sleep(self.debounce.min(Duration::from_millis(20))).await;
            };
            let is_late = timeout_at(end, quiet).await.is_err();
            let now = self.look();
            if is_late || now == before {
                return now;
            }
            before = now;
        }
    }

    fn look(&self) -> Found {
        find(&self.paths).map_err(|error| format!("{error:#}"))
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
