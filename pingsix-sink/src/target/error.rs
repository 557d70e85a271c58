//! Why a text is no [`Target`](super::Target).

use super::SCHEMES;

/// A URL names no target. Never quotes the URL, which may hold a secret in spite of all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// There is no such scheme.
    #[error("a target begins with one of {}", SCHEMES.join(", "))]
    Scheme,
    /// It is no address of a server that others run.
    #[error("the address of a server begins with one of etcd://, etcds://, admin+http://, admin+https://")]
    NoServer,
    /// A part cannot be used.
    #[error("{scheme} {part}: {problem}")]
    Part {
        /// What the URL begins with.
        scheme: &'static str,
        /// The part, such as `host` or `parameter ca`.
        part: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The URL holds a password.
    #[error(
        "{scheme} a URL is no place for a secret, for process lists and logs show it: name an environment variable with \
         {parameter}-env=NAME, or a file with {parameter}-file=PATH"
    )]
    Password {
        /// What the URL begins with.
        scheme: &'static str,
        /// What the parameters are called.
        parameter: &'static str,
    },
}

impl TargetError {
    pub(super) fn part(scheme: &'static str, part: &str, problem: impl Into<String>) -> Self {
        Self::Part { scheme, part: part.to_owned(), problem: problem.into() }
    }

    pub(super) fn parameter(scheme: &'static str, name: &str, problem: impl Into<String>) -> Self {
        Self::Part { scheme, part: format!("parameter {name}"), problem: problem.into() }
    }
}
