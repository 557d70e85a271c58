//! The URLs of PingSIX's static configuration.

use std::fmt;
use std::path::PathBuf;

use super::{FileLocation, FileSink};
use crate::desired::{DocumentSet, Scope};
use crate::dyn_sink::DynSink;
use crate::factory::{Env, OpenError, Parameters, Query, SinkFactory, TargetError, decoded, encoded};

/// PingSIX's static configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileTarget {
    /// One file, or a directory with one file for each scope, with a slash at the end.
    location: FileLocation,
    /// The configuration to which documents are added: `base`.
    base: Option<PathBuf>,
}

impl FileTarget {
    async fn sink(&self) -> Result<FileSink, OpenError> {
        Ok(FileSink::open(self.location.clone(), self.base.clone()).await?)
    }
}

impl SinkFactory for FileTarget {
    const SCHEMES: &'static [&'static str] = &["file:"];
    const KIND: &'static str = "file";

    fn parse(
        scheme: &'static str,
        location: &str,
        parameters: &mut Parameters<'_>,
    ) -> Result<Self, TargetError> {
        let failure = |part, problem| TargetError::part(scheme, part, problem);
        // `file:///path` equals `file:/path`; an authority would be another machine.
        let path = match location.strip_prefix("//") {
            Some(path) if path.starts_with('/') => path,
            Some(_) => {
                return Err(failure("host", "files of this machine alone can be written; use file:/PATH"));
            }
            None => location,
        };
        let path = decoded(path).ok_or_else(|| failure("path", "its percent-encoding is not UTF-8"))?;
        // Two slashes at the beginning would be displayed as an authority.
        let rooted = path.trim_start_matches('/');
        let path = if rooted.len() < path.len() { format!("/{rooted}") } else { path };
        let location = match path.trim_end_matches('/') {
            "" if path.is_empty() => return Err(failure("path", "missing")),
            "" => return Err(failure("path", "the root directory is no place for them")),
            directory if directory.len() < path.len() => FileLocation::Directory(directory.into()),
            file => FileLocation::File(file.into()),
        };
        Ok(Self { location, base: parameters.path("base")? })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, query: &mut Query) -> fmt::Result {
        let (path, slash) = match &self.location {
            FileLocation::File(path) => (path, ""),
            FileLocation::Directory(path) => (path, "/"),
        };
        write!(f, "file:{}{slash}", encoded(&path.to_string_lossy()))?;
        query.path("base", self.base.as_deref());
        Ok(())
    }

    async fn open(&self, _env: Env<'_>) -> Result<DynSink, OpenError> {
        Ok(DynSink::new(self.sink().await?))
    }

    async fn read(&self, scope: &Scope, _env: Env<'_>) -> Result<DocumentSet, OpenError> {
        Ok(self.sink().await?.documents(scope).await?.unwrap_or_default())
    }

    fn is_for_one_scope(&self) -> bool {
        matches!(self.location, FileLocation::File(_))
    }
}
