//! Errors of an embedded server.

use std::net::SocketAddr;

use super::access::ClientsError;
use super::revisions::ReserveError;
use super::tls::TlsError;
use crate::error::{SinkError, SinkErrorSource};

/// An embedded server cannot start, serve or publish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// Revisions could not be reserved; nothing was published.
    #[error("no revision to publish with")]
    Revisions(#[from] ReserveError),
    /// A plaintext listener on an address that other machines can reach.
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
    Tls(SinkError),
    /// A server that was started without TLS cannot enable it.
    #[error("the server was started without TLS")]
    NoTls,
    /// The file of clients cannot be used.
    #[error(transparent)]
    Clients(SinkError),
    /// The listener failed.
    #[error("cannot serve on the listener")]
    Listener(#[source] std::io::Error),
    /// The server ended with an error.
    #[error("the server failed")]
    Serve(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<TlsError> for EmbeddedError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error.into())
    }
}

impl From<ClientsError> for EmbeddedError {
    fn from(error: ClientsError) -> Self {
        Self::Clients(error.into())
    }
}

impl SinkErrorSource for EmbeddedError {
    fn category(&self) -> &'static str {
        match self {
            Self::Revisions(_) => "revisions",
            Self::PlaintextBeyondLoopback { .. } => "plaintext_beyond_loopback",
            Self::Tls(_) => "tls",
            Self::NoTls => "no_tls",
            Self::Clients(_) => "clients",
            Self::Listener(_) => "listener",
            Self::Serve(_) => "serve",
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Revisions(error) => error.is_retryable(),
            Self::Tls(error) | Self::Clients(error) => error.is_retryable(),
            Self::Listener(_) | Self::Serve(_) => true,
            Self::PlaintextBeyondLoopback { .. } | Self::NoTls => false,
        }
    }
}
