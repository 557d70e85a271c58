//! Errors of an input.

/// A file that cannot be converted. A part of an input might lack the protection of the rest, so nothing is converted then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A document is no YAML.
    #[error("{file}:{line}: the document is not valid YAML: {message}")]
    NotYaml {
        /// The name of the file.
        file: String,
        /// The line of the problem, from 1.
        line: usize,
        /// The problem.
        message: String,
    },
    /// A document holds no manifest.
    #[error("{file}:{line} holds no manifest")]
    NotAManifest {
        /// The name of the file.
        file: String,
        /// The first line of the document, from 1.
        line: usize,
        /// The problem.
        source: ManifestError,
    },
}

/// A value that is no manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The value is no object.
    #[error("a manifest is an object with apiVersion and kind")]
    NotAnObject,
    /// The object has no `apiVersion` or no `kind`.
    #[error("a manifest needs apiVersion and kind")]
    WithoutKind,
    /// Lists are nested in lists.
    #[error("lists are nested too deeply")]
    TooDeep,
}

/// Requests that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The text has no request.
    #[error("the file of --replay has no request{}", first(skipped.as_ref()))]
    NoRequest {
        /// The first line that is no request, and the reason.
        skipped: Option<(usize, String)>,
    },
    /// The text has too many requests.
    #[error("the file of --replay has more than {most} different requests")]
    TooMany {
        /// The most requests.
        most: usize,
    },
}

fn first(skipped: Option<&(usize, String)>) -> String {
    skipped.map(|(line, why)| format!(": line {line}: {why}")).unwrap_or_default()
}
