//! Outputs to a sink, one after another.

use std::collections::BTreeMap;
use std::fmt;

use pingsix_sink::{Desired, Published, Scope, Sink, SinkError};
use pingsix_translate::DataPlaneKey;
use pingsix_translate::manifest::ManifestProblem;

use super::Output;

impl Output {
    /// Publishes the documents of every data plane that can be published. A failure stops no other publication.
    ///
    /// Data planes of earlier outputs stay as they are; a [`Publisher`] withdraws those that are gone.
    ///
    /// # Errors
    /// [`PublishError`] with each data plane that failed.
    pub async fn publish(&self, sink: &impl Sink) -> Result<(), PublishError> {
        let mut failures = BTreeMap::new();
        for (key, desired) in self.desired() {
            if let Err(error) = sink.publish(desired).await {
                failures.insert(key.clone(), error);
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(PublishError::Sink(failures)) }
    }
}

/// Publishes outputs to a sink, and withdraws the documents of data planes that a later output lacks.
///
/// It remembers the outputs of its own lifetime. Documents that a former process has published under other prefixes stay.
#[derive(Debug)]
pub struct Publisher<S> {
    sink: S,
    /// The scopes that may hold documents.
    scopes: BTreeMap<DataPlaneKey, Scope>,
}

impl<S: Sink> Publisher<S> {
    /// A publisher that has published nothing yet.
    pub const fn new(sink: S) -> Self {
        Self { sink, scopes: BTreeMap::new() }
    }

    /// The sink.
    pub const fn sink(&self) -> &S {
        &self.sink
    }

    /// Publishes the documents of every data plane that can be published, and empties those of earlier outputs that this
    /// one lacks ([`Output::has`]). Returns the result of each. A failure stops no other publication; the next call tries
    /// again.
    pub async fn publish(&mut self, output: &Output) -> BTreeMap<DataPlaneKey, Result<Published, SinkError>> {
        let mut results = BTreeMap::new();
        for (key, desired) in output.desired() {
            // A publication that fails may have written documents.
            self.scopes.insert(key.clone(), desired.scope().clone());
            results.insert(key.clone(), self.sink.publish(desired).await);
        }
        let gone = self.scopes.iter().filter(|(key, _)| !output.has(key));
        let gone: Vec<_> = gone.map(|(key, scope)| (key.clone(), Desired::empty(scope.clone()))).collect();
        for (key, empty) in gone {
            let result = self.sink.publish(&empty).await;
            if result.as_ref().err().is_none_or(SinkError::holds_nothing) {
                self.scopes.remove(&key);
            }
            results.insert(key, result);
        }
        results
    }
}

/// Why documents of manifests are not published.
#[derive(Debug)]
#[non_exhaustive]
pub enum PublishError {
    /// A manifest cannot be used. No function of this crate returns it: it is for programs that read manifests with
    /// [`Objects::try_from_yaml`](pingsix_translate::Objects::try_from_yaml) before they publish.
    Manifest(ManifestProblem),
    /// Publications failed; the others were made.
    Sink(BTreeMap<DataPlaneKey, SinkError>),
}

impl PublishError {
    /// Whether a retry with the same manifests may change something.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Manifest(_) => false,
            Self::Sink(failures) => failures.values().any(SinkError::is_retryable),
        }
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest(problem) => problem.fmt(f),
            Self::Sink(failures) => {
                for (index, (key, error)) in failures.iter().enumerate() {
                    let separator = if index > 0 { "; " } else { "" };
                    write!(f, "{separator}data plane {key} is not published: {error}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for PublishError {}

impl From<ManifestProblem> for PublishError {
    fn from(problem: ManifestProblem) -> Self {
        Self::Manifest(problem)
    }
}
