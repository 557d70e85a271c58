//! PingSIX's static configuration in a file.
//!
//! ```text
//! base configuration ─┐
//!                     ├──► lists merged ──► equal? ──► new file, synced ──► renamed over the old one
//! documents of a scope ┘
//! ```
//!
//! A PingSIX without `pingsix.etcd` reads its resources from its own configuration file, once, when it starts.
//!
//! **A publication therefore takes effect at a restart of PingSIX**, and the sink does not learn of the restart:
//! [`Sink::effect`] is [`Effect::OnRestart`], and a publication never counts as confirmed.
//!
//! A file belongs to one scope. Its first line has the scope and the revision of the last change, so a restarted sink
//! continues from there. A file without that line is never replaced. Resources of the base configuration stay, and a
//! document with the id of one is refused. Everything else in the file belongs to the sink, and the next publication
//! reverts foreign changes of it.
//!
//! The file contains private keys: it has mode 0600 from its creation.

mod base;
mod content;
mod error;
mod target;
mod write;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::desired::{Desired, DesiredError, DocumentSet, Scope};
use crate::document::Key;
use crate::error::SinkError;
use crate::ledger::Ledger;
use crate::plan::{Changed, plan};
use crate::resource::Resource;
use crate::sink::{Effect, Published, Sink};

use base::Base;
use content::Mark;
use error::FileError;
pub(crate) use target::FileTarget;

/// Writes PingSIX's static configuration to files; see [`mod@crate::file`].
#[derive(Clone, Debug)]
pub struct FileSink {
    files: Arc<Files>,
}

#[derive(Debug)]
struct Files {
    location: FileLocation,
    base: Option<PathBuf>,
    /// The lock is fair and held throughout a publication. Publications are applied in order, and an abandoned one
    /// ends before the next one begins.
    ledger: Arc<Mutex<Ledger>>,
}

/// The location of the files of scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileLocation {
    /// One file for one scope.
    File(PathBuf),
    /// A file for each scope: `/pingsix/shop/web` in `pingsix/shop/web.yaml`.
    Directory(PathBuf),
}

impl FileSink {
    /// Reads the existing files.
    ///
    /// `base` is the configuration to which documents are added: listeners, threads, and the user's own resources.
    /// Each publication reads it again. Without it a file has the lists of resources alone, which PingSIX does not
    /// load as they are.
    ///
    /// # Errors
    /// When an existing file cannot be read.
    pub async fn open(location: FileLocation, base: Option<PathBuf>) -> Result<Self, SinkError> {
        blocking(move || {
            let mut ledger = Ledger::default();
            for path in location.files()? {
                if let Some(mark) = read(&path)?.as_deref().and_then(Mark::of) {
                    ledger.record(mark.scope, mark.revision);
                }
            }
            let ledger = Arc::new(Mutex::new(ledger));
            Ok(Self { files: Arc::new(Files { location, base, ledger }) })
        })
        .await
    }

    /// The documents of a scope in its file, as JSON without their ids; `None` without a file.
    ///
    /// # Errors
    /// When the file or the base configuration cannot be read.
    pub async fn documents(&self, scope: &Scope) -> Result<Option<DocumentSet>, SinkError> {
        let (files, scope) = (Arc::clone(&self.files), scope.clone());
        blocking(move || {
            let path = files.location.file(&scope)?;
            let Some(text) = files.read_own(&path, &scope)? else { return Ok(None) };
            let base = files.base()?;
            Ok(Some(content::documents(&text, &base)))
        })
        .await
    }
}

impl Sink for FileSink {
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let (files, desired) = (Arc::clone(&self.files), desired.clone());
        let mut ledger = Arc::clone(&files.ledger).lock_owned().await;
        // The blocking task continues after its caller has gone. The task must then leave the file as it is,
        // because another process may have written it meanwhile.
        let abandoned = CancellationToken::new();
        let _waits = abandoned.clone().drop_guard();
        blocking(move || files.publish(&desired, &mut ledger, &abandoned)).await
    }

    fn effect(&self) -> Effect {
        Effect::OnRestart
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SinkError> + Send + 'static,
) -> Result<T, SinkError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(FileError::ShuttingDown.into()),
        },
    }
}

impl Files {
    fn publish(
        &self,
        desired: &Desired,
        ledger: &mut Ledger,
        abandoned: &CancellationToken,
    ) -> Result<Published, SinkError> {
        let scope = desired.scope();
        match self.location {
            FileLocation::File(_) => ledger.admit_alone(scope)?,
            FileLocation::Directory(_) => ledger.admit(scope)?,
        }
        let path = self.location.file(scope)?;
        let resources: Vec<Resource<'_>> =
            desired.documents().iter().map(Resource::decode).collect::<Result<_, _>>()?;
        let base = self.base()?;
        let body = content::body(&base, &resources)?;

        let old = self.read_own(&path, scope)?;
        let published = ledger.get(scope);
        if let Some(old) = &old
            && let Some(mark) = Mark::of(old)
            && content::body_of(old) == body
        {
            let revision = published.unwrap_or(mark.revision).max(mark.revision);
            ledger.record(scope.clone(), revision);
            return Ok(Published { revision, changed: Changed::default() });
        }
        if let Some(mark) = old.as_deref().and_then(Mark::of) {
            // Another replica may have been leader since.
            ledger.observe(mark.revision);
        }
        let before = old.map(|old| content::documents(&old, &base)).unwrap_or_default();
        let after = content::comparable(&resources)?;
        let changed = Changed::of(&plan(&before, &after));
        let revision = ledger.next();
        let text = format!("{}\n{body}", Mark { scope: scope.clone(), revision });
        let written = write::replace(&path, text.as_bytes(), || !abandoned.is_cancelled());
        if !written.map_err(|source| FileError::Io { path: path.clone(), action: "written", source })? {
            return Err(FileError::Abandoned { path }.into());
        }
        ledger.record(scope.clone(), revision);
        Ok(Published { revision, changed })
    }

    fn base(&self) -> Result<Base, FileError> {
        match &self.base {
            Some(path) => Base::read(path),
            None => Ok(Base::default()),
        }
    }

    /// The text of an existing file of this scope.
    fn read_own(&self, path: &Path, scope: &Scope) -> Result<Option<String>, SinkError> {
        if self.base.as_deref().is_some_and(|base| same_file(base, path)) {
            return Err(FileError::IsBase { path: path.to_owned() }.into());
        }
        let Some(text) = read(path)? else { return Ok(None) };
        match Mark::of(&text) {
            Some(mark) if mark.scope == *scope => Ok(Some(text)),
            Some(mark) => Err(DesiredError::OneScope { scope: scope.clone(), held: mark.scope }.into()),
            None if text.trim().is_empty() => Ok(None),
            None => Err(FileError::Foreign { path: path.to_owned() }.into()),
        }
    }
}

impl FileLocation {
    /// The file of a scope.
    fn file(&self, scope: &Scope) -> Result<PathBuf, FileError> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Directory(root) => {
                let mut path = root.clone();
                for segment in scope.as_str().split('/').skip(1) {
                    // The condition excludes `..` and the names of files that are being written.
                    if segment.starts_with('.') {
                        return Err(FileError::NoFileName { scope: scope.clone() });
                    }
                    path.push(segment);
                }
                path.as_mut_os_string().push(".yaml");
                Ok(path)
            }
        }
    }

    /// The candidate files of scopes.
    fn files(&self) -> Result<Vec<PathBuf>, FileError> {
        match self {
            Self::File(path) => Ok(vec![path.clone()]),
            Self::Directory(root) => {
                let mut files = Vec::new();
                collect(root, &mut files).map_err(|source| FileError::Io {
                    path: root.clone(),
                    action: "listed",
                    source,
                })?;
                files.sort();
                Ok(files)
            }
        }
    }
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        // A symbolic link to a directory may form a cycle, and this sink creates none.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() && entry.path().extension().is_some_and(|extension| extension == "yaml") {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<String>, FileError> {
    match fs::read(path) {
        // Only the first line decides the ownership of the file, and that line is text.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::Io { path: path.to_owned(), action: "read", source }),
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// The key of a resource.
fn key_of(kind: crate::resource::ResourceKind, id: &str) -> Option<Key> {
    Key::new(format!("{kind}/{id}")).ok()
}
