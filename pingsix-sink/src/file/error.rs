//! Errors of the files of a [`FileSink`](super::FileSink).

use std::io;
use std::path::PathBuf;

use crate::desired::Scope;
use crate::document::{Key, Owner};
use crate::error::SinkErrorSource;

/// A file cannot be published to. Messages never contain the content of a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// The file system failed.
    #[error("{} cannot be {action}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The base configuration is invalid.
    #[error("the base configuration {}{} {problem}", path.display(), line.map_or_else(String::new, |line| format!(", line {line},")))]
    Base {
        /// The file.
        path: PathBuf,
        /// The line at fault, from 1, if known.
        line: Option<u64>,
        /// The error; its text continues a sentence that begins with the file.
        problem: &'static str,
    },
    /// A document has the id of a resource in the base configuration.
    #[error("document {key} of {owner} has the id of a resource in the base configuration {}", base.display())]
    IdConflict {
        /// The key of the document.
        key: Key,
        /// The owner of the document.
        owner: Owner,
        /// The base configuration.
        base: PathBuf,
    },
    /// The file is the base configuration itself.
    #[error("{} is the base configuration, and would be overwritten", path.display())]
    IsBase {
        /// The file.
        path: PathBuf,
    },
    /// A file exists that no sink has written.
    #[error("{} was not written by this program: move it away, or name it as the base configuration of another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A scope has a segment that is no valid file name.
    #[error("scope {scope} has a segment that begins with a dot, so it has no file")]
    NoFileName {
        /// The scope.
        scope: Scope,
    },
    /// The caller abandoned the publication, and the file is unchanged.
    #[error("{} was not written: the publication was given up", path.display())]
    Abandoned {
        /// The file.
        path: PathBuf,
    },
    /// The runtime is shutting down and starts no task.
    #[error("the program is shutting down")]
    ShuttingDown,
    /// A document cannot be written as YAML.
    #[error("the configuration cannot be written as YAML")]
    Yaml,
}

impl SinkErrorSource for FileError {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Io { .. }
            | Self::Base { .. }
            | Self::IdConflict { .. }
            | Self::Foreign { .. }
            | Self::Abandoned { .. }
            | Self::ShuttingDown => true,
            Self::IsBase { .. } | Self::NoFileName { .. } | Self::Yaml => false,
        }
    }

    fn category(&self) -> &'static str {
        "file"
    }

    fn holds_nothing(&self) -> bool {
        matches!(self, Self::IsBase { .. } | Self::NoFileName { .. })
    }
}
