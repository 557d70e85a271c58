//! The errors of watches, with the failed step.

use kube_runtime::watcher;
use thiserror::Error;

use crate::api_error::{ApiError, ApiErrorCategory};

/// The failed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Discovering the served kinds.
    Discovery,
    /// Listing.
    List,
    /// Opening a watch.
    Open,
    /// Reading an open watch.
    Read,
}

impl Step {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Discovery => "discovery failed",
            Self::List => "the list failed",
            Self::Open => "the watch could not be opened",
            Self::Read => "the watch broke off",
        }
    }
}

/// The failure of a watch.
#[derive(Clone, Debug, Error)]
#[error("{}: {cause}", step.as_str())]
pub(super) struct WatchError {
    pub(super) step: Step,
    pub(super) cause: ApiError,
}

impl WatchError {
    pub(super) const fn at(step: Step, cause: ApiError) -> Self {
        Self { step, cause }
    }

    /// The error of a stream that ended although it should run forever.
    pub(super) fn ended(step: Step) -> Self {
        Self::at(step, ApiError::new(ApiErrorCategory::Transport, "the stream ended"))
    }

    pub(super) const fn category(&self) -> ApiErrorCategory {
        self.cause.category
    }

    /// Whether a watch can resume from its last resource version. Otherwise, a new list is necessary.
    pub(super) const fn is_resumable(&self) -> bool {
        match (self.step, self.cause.category) {
            (Step::Open, ApiErrorCategory::Throttled | ApiErrorCategory::Server)
            | (Step::Open | Step::Read, ApiErrorCategory::Timeout | ApiErrorCategory::Transport) => true,
            // An error among the events may have replaced an event.
            (Step::Discovery | Step::List | Step::Open | Step::Read, _) => false,
        }
    }
}

impl From<&watcher::Error> for WatchError {
    fn from(error: &watcher::Error) -> Self {
        let step = match error {
            watcher::Error::InitialListFailed(_) => Step::List,
            watcher::Error::WatchStartFailed(_) => Step::Open,
            watcher::Error::WatchFailed(_)
            | watcher::Error::WatchError(_)
            | watcher::Error::NoResourceVersion => Step::Read,
        };
        Self::at(step, ApiError::from(error))
    }
}
