//! Scopes and documents that no sink takes.

use super::Scope;
use crate::document::{Key, Owner};
use crate::error::SinkFault;

/// A scope or a set of documents cannot be published as it is, to this target or to any.
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
        /// Who gave it.
        owners: [Owner; 2],
    },
    /// A scope lies inside another that the sink already holds.
    #[error("scope {scope} and scope {held} lie inside one another")]
    ScopeOverlap {
        /// The scope of the refused publication.
        scope: Scope,
        /// The scope that is held.
        held: Scope,
    },
    /// A target that is for one scope alone holds another.
    #[error("the target is for one scope: it holds {held}, and {scope} cannot be published to it")]
    OneScope {
        /// The scope of the refused publication.
        scope: Scope,
        /// The scope that is held.
        held: Scope,
    },
    /// No message could carry the document.
    #[error("document {key} of scope {scope} has {bytes} bytes, more than the {limit} one message can carry")]
    DocumentTooLarge {
        /// Where the document belongs.
        scope: Scope,
        /// Its key.
        key: Key,
        /// Its size on the wire.
        bytes: usize,
        /// The most that fits.
        limit: usize,
    },
}

impl SinkFault for DesiredError {
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
