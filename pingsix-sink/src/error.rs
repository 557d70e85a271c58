//! The common error of all sinks.
//!
//! Each module has its own error and describes it by [`SinkErrorSource`]. The common error names none of them, so no
//! sink depends on another one through its errors.

use std::error::Error;
use std::fmt;

/// An error of one sink, or of the values that sinks are given. Its message carries no value of a document.
pub trait SinkErrorSource: Error + Send + Sync + 'static {
    /// A stable name of the kind of error, for metrics.
    fn category(&self) -> &'static str;

    /// Whether a retry with the same arguments and options may succeed.
    fn is_retryable(&self) -> bool;

    /// Whether the target holds no document of the published scope, so that nothing needs to be withdrawn.
    fn holds_nothing(&self) -> bool {
        false
    }
}

/// A publication, or the start of a sink, failed.
///
/// Every [`SinkErrorSource`] converts into it; [`downcast_ref`](Self::downcast_ref) leads back.
pub struct SinkError(Box<dyn SinkErrorSource>);

impl SinkError {
    /// The target failed; the documents written before stay. For targets without an error of their own.
    pub fn target(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        TargetFailed(source.into()).into()
    }

    /// The error of a sink, if it is of this type.
    pub fn downcast_ref<E: SinkErrorSource>(&self) -> Option<&E> {
        let error: &(dyn Error + 'static) = &*self.0;
        error.downcast_ref()
    }

    /// Whether a retry with the same arguments and options may succeed.
    pub fn is_retryable(&self) -> bool {
        self.0.is_retryable()
    }

    /// Whether the target holds no document of the published scope, so that nothing needs to be withdrawn.
    pub fn holds_nothing(&self) -> bool {
        self.0.holds_nothing()
    }

    /// A stable name of the kind of error, for metrics.
    pub fn category(&self) -> &'static str {
        self.0.category()
    }
}

impl<E: SinkErrorSource> From<E> for SinkError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for SinkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the target failed")]
struct TargetFailed(#[source] Box<dyn Error + Send + Sync>);

impl SinkErrorSource for TargetFailed {
    fn category(&self) -> &'static str {
        "target"
    }

    fn is_retryable(&self) -> bool {
        true
    }
}
