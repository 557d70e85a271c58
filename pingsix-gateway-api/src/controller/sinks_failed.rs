//! The common result of a publication to several sinks.

use std::fmt;
use std::sync::Arc;

use pingsix_sink::error::SinkErrorSource;
use pingsix_sink::{Published, SinkError};

/// Publications to some targets of a data plane failed.
#[derive(Debug, thiserror::Error)]
#[error("{} of {of} targets failed: {}", failures.len(), listed(failures))]
pub(super) struct SinksFailed {
    failures: Vec<Arc<Failure>>,
    /// The number of targets.
    of: usize,
}

/// The failure of one target.
#[derive(Debug)]
struct Failure {
    target: String,
    error: SinkError,
}

impl SinksFailed {
    /// The failure of one target among several.
    pub(super) fn of(target: &str, error: SinkError, of: usize) -> Self {
        Self { failures: vec![Arc::new(Failure { target: target.to_owned(), error })], of }
    }
}

impl SinkErrorSource for SinksFailed {
    fn category(&self) -> &'static str {
        "several"
    }

    fn is_retryable(&self) -> bool {
        self.failures.iter().any(|failure| failure.error.is_retryable())
    }

    /// The other targets are empty.
    fn holds_nothing(&self) -> bool {
        self.failures.iter().all(|failure| failure.error.holds_nothing())
    }
}

/// The common result of all targets, in their order: the result of the first one, or all failures. `None` without a target.
pub(super) fn joined(
    results: impl IntoIterator<Item = Result<Published, SinkError>>,
) -> Option<Result<Published, SinkError>> {
    results.into_iter().reduce(|all, next| match (all, next) {
        (all, Ok(_)) => all,
        (Ok(_), failed) => failed,
        (Err(one), Err(other)) => Err(combined(one, &other)),
    })
}

fn combined(one: SinkError, other: &SinkError) -> SinkError {
    match (one.downcast_ref::<SinksFailed>(), other.downcast_ref::<SinksFailed>()) {
        (Some(one), Some(other)) => {
            let failures = one.failures.iter().chain(&other.failures).cloned().collect();
            SinksFailed { failures, of: one.of }.into()
        }
        _ => one,
    }
}

fn listed(failures: &[Arc<Failure>]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.target, self.error)?;
        let mut cause = std::error::Error::source(&self.error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
