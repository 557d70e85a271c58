//! Notices changes of files: by events where the file system has them, by looking where it has not.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::arguments::ServeArguments;
use crate::manifest::{FilePosition, FileState, FoundFile, FoundFiles, Origin, find, is_hidden, is_manifest};

/// The bound on the wait for a pause between changes.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(2);

/// The number of paths with events above which all files are looked at.
const MAX_PATHS: usize = 4096;

#[derive(Debug)]
pub(super) struct Watcher {
    debounce: Duration,
    poll: Duration,
    events: Arc<Events>,
    found: Found,
    /// The files that have changed since [`Self::take_changed`].
    changed: BTreeSet<FilePosition>,
    /// Whether files or the error of a path have changed since then.
    has_news: bool,
    /// Kept, because it stops when dropped. None where the system has no more watches to give.
    _handle: Option<RecommendedWatcher>,
}

/// The paths of events that were not examined yet.
#[derive(Debug, Default)]
struct Events {
    seen: Mutex<Seen>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    paths: BTreeSet<PathBuf>,
    /// Whether the paths are not all.
    has_more: bool,
}

impl Events {
    fn add(&self, event: notify::Result<notify::Event>) {
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) => {
                    seen.has_more |= event.need_rescan() || event.paths.is_empty();
                    seen.paths.extend(event.paths);
                }
                Err(_) => seen.has_more = true,
            }
            if seen.paths.len() > MAX_PATHS {
                *seen = Seen { paths: BTreeSet::new(), has_more: true };
            }
        }
        self.notify.notify_one();
    }

    fn take(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Watcher {
    /// # Errors
    ///
    /// When a path cannot be listed: that is a mistake in the command line.
    pub(super) fn new(arguments: &ServeArguments) -> anyhow::Result<Self> {
        if arguments.paths.iter().any(|path| path == Path::new("-")) {
            bail!("standard input cannot be watched; name a file or directory");
        }
        let events = Arc::new(Events::default());
        let watcher = watch(&arguments.paths, events.clone());
        if let Err(error) = &watcher {
            tracing::warn!(error = %error, poll_ms = arguments.poll, "no events from the file system, polling only");
        }
        let found = Found::new(arguments.paths.clone())?;
        Ok(Self {
            debounce: Duration::from_millis(arguments.debounce),
            poll: Duration::from_millis(arguments.poll),
            events,
            changed: found.files.files.keys().cloned().collect(),
            found,
            has_news: false,
            _handle: watcher.ok(),
        })
    }

    /// The files as they were found last.
    pub(super) const fn found(&self) -> &Found {
        &self.found
    }

    /// The files that are new, gone or other ones since the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<FilePosition> {
        self.has_news = false;
        std::mem::take(&mut self.changed)
    }

    /// Returns once files have changed and then have been left alone for a moment.
    ///
    /// The future may be dropped: the next call notices a change that was not returned.
    pub(super) async fn changed(&mut self) {
        while !self.has_news {
            let is_poll = timeout(self.poll, self.events.notify.notified()).await.is_err();
            let mut reach = if is_poll { Reach::Everything } else { Reach::Events };
            self.look(&mut reach);
            // A new directory is watched a moment after its event, so files in it may have none.
            if self.has_news || (reach == Reach::Everything && !is_poll) {
                self.settle(reach).await;
            }
        }
    }

    /// Waits for a pause between changes.
    async fn settle(&mut self, mut reach: Reach) {
        let end = Instant::now() + MAX_SETTLE_TIME;
        loop {
            let quiet = async {
                let _ = timeout(self.debounce, self.events.notify.notified()).await;
                sleep(self.debounce.min(Duration::from_millis(20))).await;
            };
            let is_late = timeout_at(end, quiet).await.is_err();
            if !self.look(&mut reach) || is_late {
                return;
            }
        }
    }

    /// Looks at files again. Returns whether any is new, gone or in another state, or whether there is another error.
    fn look(&mut self, reach: &mut Reach) -> bool {
        let Seen { paths, has_more } = self.events.take();
        let (mut told, mut changed) = (BTreeSet::new(), BTreeSet::new());
        if has_more || !paths.iter().all(|path| self.found.look_at(path, &mut told, &mut changed)) {
            *reach = Reach::Everything;
        }
        let has_other_error = *reach == Reach::Everything && self.found.look_at_all(&mut changed);
        let has_changed = has_other_error || !changed.is_empty();
        self.has_news |= has_changed || !told.is_empty();
        self.changed.append(&mut changed);
        self.changed.append(&mut told);
        has_changed
    }
}

/// The files at which the watcher looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Those of events.
    Events,
    Everything,
}

/// The files of the paths as they were found last.
#[derive(Debug)]
pub(super) struct Found {
    paths: Vec<PathBuf>,
    pub(super) files: FoundFiles,
    /// The error of a path. The files are those before it.
    pub(super) error: Option<String>,
    roots: Vec<Root>,
}

/// A path of the command line, with the path that its events have.
#[derive(Debug)]
struct Root {
    absolute: PathBuf,
    is_directory: bool,
}

impl Found {
    pub(super) fn new(paths: Vec<PathBuf>) -> anyhow::Result<Self> {
        let files = find(&paths)?;
        let root =
            |path: &PathBuf| Some(Root { absolute: absolute(path).ok()?, is_directory: path.is_dir() });
        // If two paths overlap, one has the events of both. Events then show that a file changed, and not which one.
        let real: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let overlaps = (0..real.len())
            .flat_map(|one| (0..real.len()).map(move |other| (one, other)))
            .any(|(one, other)| one != other && real[one].starts_with(&real[other]));
        let roots = if overlaps { None } else { paths.iter().map(root).collect() };
        Ok(Self { paths, files, error: None, roots: roots.unwrap_or_default() })
    }

    /// Looks at all files. Returns whether there is another error.
    fn look_at_all(&mut self, changed: &mut BTreeSet<FilePosition>) -> bool {
        match find(&self.paths) {
            Ok(files) => {
                changed.append(&mut files.changes(&self.files));
                self.files = files;
                self.error.take().is_some()
            }
            Err(error) => {
                let error = Some(format!("{error:#}"));
                std::mem::replace(&mut self.error, error.clone()) != error
            }
        }
    }

    /// Examines the path of an event. The path counts as changed even with equal metadata, because two writes within the
    /// granularity of times leave equal metadata. Returns false if the event may be about other files, too.
    fn look_at(
        &mut self,
        path: &Path,
        told: &mut BTreeSet<FilePosition>,
        changed: &mut BTreeSet<FilePosition>,
    ) -> bool {
        if self.files.has_links || self.error.is_some() || self.roots.len() != self.paths.len() {
            return false;
        }
        // Directories come and go with all their files.
        let is_above =
            |root: &Root| root.absolute.starts_with(path) && (root.is_directory || root.absolute != *path);
        if self.roots.iter().any(is_above) {
            return false;
        }
        let mut roots = self.roots.iter().enumerate();
        let below = |(argument, root): (usize, &Root)| {
            Some((argument, root.is_directory, path.strip_prefix(&root.absolute).ok()?.to_owned()))
        };
        let Some((argument, is_in_directory, below)) = roots.find_map(below) else { return true };
        if is_hidden(&below) {
            return true;
        }
        let (path, origin) = if is_in_directory {
            (self.paths[argument].join(below), Origin::Found)
        } else {
            (self.paths[argument].clone(), Origin::Named)
        };
        let position = FilePosition { argument, path: path.into() };
        match fs::symlink_metadata(&position.path) {
            Ok(metadata) if metadata.is_file() => {
                if origin == Origin::Named || is_manifest(&position.path) {
                    let file = FoundFile { origin, state: Some(FileState::of(&metadata)) };
                    let is_same = self.files.files.get(&position) == Some(&file);
                    self.files.files.insert(position.clone(), file);
                    (if is_same { told } else { changed }).insert(position);
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::NotFound && origin == Origin::Found => {
                let is_directory = self.files.has_below(&position);
                if self.files.files.remove(&position).is_some() {
                    changed.insert(position);
                }
                !is_directory
            }
            // A directory, a link or a device, or an error.
            Ok(_) | Err(_) => false,
        }
    }
}

fn watch(paths: &[PathBuf], events: Arc<Events>) -> anyhow::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading a file is an event too, and a read follows each event.
        let only_read = event.as_ref().is_ok_and(|event| match event.kind {
            EventKind::Access(access) => access != AccessKind::Close(AccessMode::Write),
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => false,
        });
        if !only_read {
            events.add(event);
        }
    })?;
    for path in paths {
        // Events have paths below the watched one.
        let target = absolute(path).with_context(|| path.display().to_string())?;
        if path.is_dir() {
            watcher.watch(&target, RecursiveMode::Recursive)?;
        } else {
            // Editors replace a file rather than write to it, so its directory is watched.
            let parent = target.parent().unwrap_or(Path::new("/"));
            watcher
                .watch(parent, RecursiveMode::NonRecursive)
                .with_context(|| parent.display().to_string())?;
        }
    }
    Ok(watcher)
}

#[cfg(test)]
mod tests;
