//! What can go wrong in a delivery.

use std::net::SocketAddr;

use crate::admin::AdminError;
use crate::document::{Key, Owner};
use crate::embedded::revisions::ReserveError;
use crate::embedded::{ClientsError, TlsError};
use crate::etcd::EtcdError;
use crate::file::FileError;
use crate::resource::ResourceError;
use crate::several::Failure;

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
    /// A target that is for one scope alone holds another.
    #[error("the target is for one scope: it holds {held}, and {scope} cannot be published to it")]
    OneScope {
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
    /// An external etcd, or an option of its sink.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The target took no more; what was written before stays. For targets without a variant of their own.
    #[error("the target failed")]
    Target(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A certificate, key or CA of the server cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A server that was started without TLS cannot begin to serve over it.
    #[error("the server was started without TLS")]
    NoTls,
    /// A document is none that PingSIX's own interfaces could take.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// A value is not JSON on one line.
    #[error("the value of document {key} of {owner} is not JSON on one line")]
    NotJson {
        /// The key of the document.
        key: Key,
        /// Who asked for it.
        owner: Owner,
    },
    /// An Admin API could not be published to.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// Files could not be published to.
    #[error(transparent)]
    File(#[from] FileError),
    /// Some of several targets could not be published to; the others were.
    #[error("{} of {of} targets failed: {}", failures.len(), listed(failures))]
    Several {
        /// Those that failed.
        failures: Vec<Failure>,
        /// How many targets there are.
        of: usize,
    },
    /// What publications are written to failed.
    #[error("cannot write the publication")]
    Output(#[source] std::io::Error),
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
            | Self::OneScope { .. }
            | Self::DocumentTooLarge { .. }
            | Self::Resource(_)
            | Self::NotJson { .. }
            | Self::NoTls
            | Self::PlaintextBeyondLoopback { .. } => false,
            Self::Revisions(error) => error.is_retryable(),
            Self::Tls(error) => error.is_retryable(),
            Self::Admin(error) => error.is_retryable(),
            Self::File(error) => error.is_retryable(),
            Self::Several { failures, .. } => failures.iter().any(|failure| failure.error.is_retryable()),
            Self::Etcd(error) => error.is_retryable(),
            Self::Clients(error) => error.is_retryable(),
            Self::Output(_) | Self::Target(_) | Self::Listener(_) | Self::Serve(_) => true,
        }
    }

    /// Whether it means that the target holds nothing of the scope that was published, so that there is nothing to
    /// withdraw from it.
    pub fn holds_nothing(&self) -> bool {
        match self {
            Self::InvalidScope { .. } | Self::ScopeOverlap { .. } | Self::OneScope { .. } => true,
            Self::File(error) => matches!(error, FileError::IsBase { .. } | FileError::NoFileName { .. }),
            // Those that are not named hold nothing any more.
            Self::Several { failures, .. } => failures.iter().all(|failure| failure.error.holds_nothing()),
            Self::InvalidKey { .. }
            | Self::DuplicateKey { .. }
            | Self::DocumentTooLarge { .. }
            | Self::Revisions(_)
            | Self::PlaintextBeyondLoopback { .. }
            | Self::Etcd(_)
            | Self::Target(_)
            | Self::Tls(_)
            | Self::NoTls
            | Self::Resource(_)
            | Self::NotJson { .. }
            | Self::Admin(_)
            | Self::Output(_)
            | Self::Clients(_)
            | Self::Listener(_)
            | Self::Serve(_) => false,
        }
    }

    /// A stable name of the kind of fault, for metrics.
    pub fn category(&self) -> &'static str {
        match self {
            Self::InvalidKey { .. } => "invalid_key",
            Self::InvalidScope { .. } => "invalid_scope",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::ScopeOverlap { .. } => "scope_overlap",
            Self::OneScope { .. } => "one_scope",
            Self::DocumentTooLarge { .. } => "document_too_large",
            Self::Revisions(_) => "revisions",
            Self::PlaintextBeyondLoopback { .. } => "plaintext_beyond_loopback",
            Self::Tls(_) => "tls",
            Self::NoTls => "no_tls",
            Self::Resource(_) => "resource",
            Self::NotJson { .. } => "not_json",
            Self::Admin(error) => error.category(),
            Self::File(_) => "file",
            Self::Several { .. } => "several",
            Self::Output(_) => "output",
            Self::Etcd(error) => error.category(),
            Self::Target(_) => "target",
            Self::Clients(_) => "clients",
            Self::Listener(_) => "listener",
            Self::Serve(_) => "serve",
        }
    }
}

fn listed(failures: &[Failure]) -> String {
    failures.iter().map(Failure::to_string).collect::<Vec<_>>().join("; ")
}
