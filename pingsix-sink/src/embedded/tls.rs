//! TLS of the server: its certificate and the authentication of clients.
//!
//! ```text
//! files ─► read until settled ─► material ─► current configuration ─► each new connection's handshake
//!            every few seconds     (or an error: the current one stays)
//! ```
//!
//! - **Rotation.** Files are read again every few seconds and compared by content, because a mounted Secret is
//!   replaced by a change of a symbolic link. A connection keeps its configuration (but see
//!   [`Access::certificate_uris`](super::Access::certificate_uris)); new connections get the new one. Files that
//!   cannot be used, such as a certificate whose key has not arrived yet, change nothing: a log line names the file
//!   and the error, once.
//! - **From memory.** A program with certificates of its own supplies them by
//!   [`EmbeddedEtcd::replace_tls`](super::EmbeddedEtcd::replace_tls), and may start a server before it has any.
//! - **Clients.** With a client CA, only clients with a certificate of it are served. Sessions are never resumed, so
//!   that every connection is verified under the current CA.
//! - **Limits.** Handshakes run beside the listener, each with a timeout. At the limit, the oldest handshake of the
//!   address with the most is aborted in favour of the newest: a good one takes milliseconds.
//! - **Protocol.** TLS 1.2 and 1.3, with HTTP/2 as the application protocol.

mod error;
mod live;
mod sources;

use std::path::PathBuf;
use std::time::Duration;

pub(super) use error::TlsError;
pub(super) use live::LiveTls;
use sources::Sources;

use crate::pem::PemSource;

/// Certificate, key and client CAs of a server.
///
/// Certificates and keys are PEM. The chain begins with the server's own certificate; the key is PKCS #8, PKCS #1 or
/// SEC 1, without a passphrase. [`Builder::start`](super::Builder::start) reads them, and the running server reads
/// files again.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use pingsix_sink::embedded::{EmbeddedEtcd, ServerTls};
///
/// let tls = ServerTls::from_files("/tls/tls.crt", "/tls/tls.key").client_ca_file("/tls/ca.crt");
/// let etcd = EmbeddedEtcd::builder().tls(tls).start().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// `None` until [`replace_tls`](super::EmbeddedEtcd::replace_tls) supplies them.
    sources: Option<Sources>,
    reread_interval: Duration,
    pub(super) handshake_timeout: Duration,
    pub(super) handshake_limit: usize,
}

impl ServerTls {
    /// A certificate chain and its key in files, which are read again when they change.
    pub fn from_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self::new(PemSource::File(certificate.into()), PemSource::File(key.into()))
    }

    /// A certificate chain and its key, until [`replace_tls`](super::EmbeddedEtcd::replace_tls) replaces them.
    pub fn from_pem(certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self::new(PemSource::Pem(certificate.into()), PemSource::Pem(key.into()))
    }

    /// No certificate yet: all clients are turned away until [`replace_tls`](super::EmbeddedEtcd::replace_tls)
    /// supplies one.
    pub fn deferred() -> Self {
        Self::of(None)
    }

    fn new(certificate: PemSource, key: PemSource) -> Self {
        Self::of(Some(Sources { certificate, key, client_ca: None }))
    }

    fn of(sources: Option<Sources>) -> Self {
        Self {
            sources,
            reread_interval: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            handshake_limit: 512,
        }
    }

    /// Serves only clients with a certificate of one of the CAs in this file, which is read again when it changes.
    #[must_use]
    pub fn client_ca_file(self, bundle: impl Into<PathBuf>) -> Self {
        self.with_client_ca(PemSource::File(bundle.into()))
    }

    /// Serves only clients with a certificate of one of these CAs.
    #[must_use]
    pub fn client_ca_pem(self, bundle: impl Into<Vec<u8>>) -> Self {
        self.with_client_ca(PemSource::Pem(bundle.into()))
    }

    /// A server without a certificate serves no client anyway.
    fn with_client_ca(mut self, client_ca: PemSource) -> Self {
        if let Some(sources) = &mut self.sources {
            sources.client_ca = Some(client_ca);
        }
        self
    }

    /// Interval at which files and the expiry of certificates are checked. Default: 10 s.
    #[must_use]
    pub fn reread_interval(mut self, interval: Duration) -> Self {
        self.reread_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Timeout of a handshake; the connection is then closed. Default: 10 s.
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Limit of concurrent handshakes on a listener; a further one aborts the oldest of the address with the most
    /// (for IPv6: the first 64 bits). Default: 512.
    #[must_use]
    pub fn handshake_limit(mut self, handshakes: usize) -> Self {
        self.handshake_limit = handshakes.max(1);
        self
    }
}
