//! Errors of scopes and documents.

use super::Scope;
use crate::document::{Key, Owner};
use crate::error::SinkErrorSource;

/// A scope or a set of documents is invalid for this target or for all targets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DesiredError {
    /// A prefix breaks the rules of [`Scope`].
    #[error("scope \"{scope}\" is not valid: {problem}")]
    InvalidScope {
        /// The prefix, with unprintable characters escaped.
        scope: String,
        /// The rule it breaks.
        problem: &'static str,
    },
    /// Two documents of one set have the same key.
    #[error("key {key} is given twice, by {} and by {}", owners[0], owners[1])]
    DuplicateKey {
        /// The key.
        key: Key,
        /// The owners of both documents.
        owners: [Owner; 2],
    },
    /// A scope overlaps another scope of the sink.
    #[error("scope {scope} and scope {held} lie inside one another")]
    ScopeOverlap {
        /// The scope of the refused publication.
        scope: Scope,
        /// The scope of the sink.
        held: Scope,
    },
    /// A target of one scope holds another scope.
    #[error("the target is for one scope: it holds {held}, and {scope} cannot be published to it")]
    OneScope {
        /// The scope of the refused publication.
        scope: Scope,
        /// The scope of the target.
        held: Scope,
    },
    /// The document exceeds the size of a message.
    #[error("document {key} of scope {scope} has {bytes} bytes, more than the {limit} one message can carry")]
    DocumentTooLarge {
        /// The scope of the document.
        scope: Scope,
        /// The key of the document.
        key: Key,
        /// The size on the wire.
        bytes: usize,
        /// The size limit.
        limit: usize,
    },
}

impl SinkErrorSource for DesiredError {
    fn category(&self) -> &'static str {
        match self {
            Self::InvalidScope { .. } => "invalid_scope",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::ScopeOverlap { .. } => "scope_overlap",
            Self::OneScope { .. } => "one_scope",
            Self::DocumentTooLarge { .. } => "document_too_large",
        }
    }

    fn is_retryable(&self) -> bool {
        false
    }

    fn holds_nothing(&self) -> bool {
        match self {
            Self::InvalidScope { .. } | Self::ScopeOverlap { .. } | Self::OneScope { .. } => true,
            Self::DuplicateKey { .. } | Self::DocumentTooLarge { .. } => false,
        }
    }
}
