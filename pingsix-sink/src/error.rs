//! What can go wrong in a delivery.

use std::net::SocketAddr;

use crate::document::{Key, Owner};
use crate::embedded::revisions::ReserveError;
use crate::embedded::{ClientsError, TlsError};

/// A publication, or the start of a sink, failed.
///
/// No variant carries a value of a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// A key breaks the rules of [`Key`].
    #[error("key \"{key}\" is not valid: {problem}")]
    InvalidKey {
        /// The key, with unprintable characters escaped.
        key: String,
        /// The rule it breaks.
        problem: &'static str,
    },
    /// A prefix breaks the rules of [`Scope`](crate::Scope).
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
        scope: crate::Scope,
        /// The scope that is held.
        held: crate::Scope,
    },
    /// No message could carry the document.
    #[error("document {key} of scope {scope} has {bytes} bytes, more than the {limit} one message can carry")]
    DocumentTooLarge {
        /// Where the document belongs.
        scope: crate::Scope,
        /// Its key.
        key: Key,
        /// Its size on the wire.
        bytes: usize,
        /// The most that fits.
        limit: usize,
    },
    /// Revisions could not be reserved; nothing was published.
    #[error("no revision to publish with")]
    Revisions(#[from] ReserveError),
    /// The address can be reached from other machines, and the connection would not be encrypted.
    #[error(
        "refusing to serve private keys in plaintext on {address}: serve over TLS, listen on a loopback address, \
         or allow it with the option allow_plaintext_beyond_loopback"
    )]
    PlaintextBeyondLoopback {
        /// The address of the listener.
        address: SocketAddr,
    },
    /// A certificate, key or CA of the server cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The clients that may read cannot be read from their file.
    #[error(transparent)]
    Clients(#[from] ClientsError),
    /// The listener failed.
    #[error("cannot serve on the listener")]
    Listener(#[source] std::io::Error),
    /// The server ended with a fault.
    #[error("the server failed")]
    Serve(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SinkError {
    /// Whether the same call may succeed later without anybody changing its arguments or the options.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InvalidKey { .. }
            | Self::InvalidScope { .. }
            | Self::DuplicateKey { .. }
            | Self::ScopeOverlap { .. }
            | Self::DocumentTooLarge { .. }
            | Self::PlaintextBeyondLoopback { .. } => false,
            Self::Revisions(error) => error.is_retryable(),
            Self::Tls(error) => error.is_retryable(),
            Self::Clients(error) => error.is_retryable(),
            Self::Listener(_) | Self::Serve(_) => true,
        }
    }

    /// A stable name of the kind of fault, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::InvalidKey { .. } => "invalid_key",
            Self::InvalidScope { .. } => "invalid_scope",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::ScopeOverlap { .. } => "scope_overlap",
            Self::DocumentTooLarge { .. } => "document_too_large",
            Self::Revisions(_) => "revisions",
            Self::PlaintextBeyondLoopback { .. } => "plaintext_beyond_loopback",
            Self::Tls(_) => "tls",
            Self::Clients(_) => "clients",
            Self::Listener(_) => "listener",
            Self::Serve(_) => "serve",
        }
    }
}
