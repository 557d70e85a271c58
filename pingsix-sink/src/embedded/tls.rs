//! TLS of the server: what it proves itself with, and whom it asks for proof.
//!
//! ```text
//! files ─► read until settled ─► material ─► current configuration ─► each new connection's handshake
//!            every few seconds     (or a fault: what was current stays)
//! ```
//!
//! - **Rotation.** Files are read again every few seconds and compared by content, for a mounted Secret is replaced by
//!   pointing a symbolic link elsewhere. A connection keeps what it began with (but see
//!   [`Access::certificate_uris`](super::Access::certificate_uris)); new ones get the new material. Material
//!   that cannot be used, such as a certificate whose key has not come yet, changes nothing: a log line names the file
//!   and the fault, once.
//! - **From memory.** A program that makes certificates itself hands them over
//!   ([`EmbeddedEtcd::replace_tls`](super::EmbeddedEtcd::replace_tls)), and may start a server before it has any.
//! - **Clients.** With a client CA, a client proves itself with a certificate of it or is not served. Sessions are
//!   never resumed, so that whoever is served has proved itself under the CA in force.
//! - **Bounds.** Handshakes run beside the listener, each for a limited time. When there are too many at once, the
//!   oldest of the address that has most is ended in favour of the newest: an honest one takes milliseconds.
//! - **Protocol.** TLS 1.2 and 1.3, with HTTP/2 as the application protocol.

mod fault;
mod handshakes;
mod live;
mod material;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use fault::{TlsError, TlsFault, TlsPart};
pub(super) use handshakes::accept;
pub(super) use live::LiveTls;
use material::Sources;

use crate::pem::PemSource;

/// What a server proves itself with, and whom it asks for proof.
///
/// Certificates and keys are PEM. The chain has the server's own certificate first; the key is PKCS #8, PKCS #1 or
/// SEC 1, without a passphrase. They are read by [`Builder::start`](super::Builder::start), and files again while the
/// server serves.
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
#[derive(Clone)]
pub struct ServerTls {
    /// `None` for those that are to come.
    sources: Option<Sources>,
    reread_interval: Duration,
    handshake_timeout: Duration,
    handshake_limit: usize,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls")
            .field("sources", &self.sources)
            .field("reread_interval", &self.reread_interval)
            .field("handshake_timeout", &self.handshake_timeout)
            .field("handshake_limit", &self.handshake_limit)
            .finish()
    }
}

impl ServerTls {
    /// A certificate chain and its key in files, which are read again when they change.
    pub fn from_files(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self::new(PemSource::File(certificate.into()), PemSource::File(key.into()))
    }

    /// A certificate chain and its key, which stay as they are until others are
    /// [put in their place](super::EmbeddedEtcd::replace_tls).
    pub fn from_pem(certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self::new(PemSource::Pem(certificate.into()), PemSource::Pem(key.into()))
    }

    /// Nothing so far: whoever connects is turned away until [`replace_tls`](super::EmbeddedEtcd::replace_tls) brings
    /// something.
    pub fn to_come() -> Self {
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

    /// Serves only clients with a certificate of one of the authorities in this file, which is read again when it
    /// changes.
    #[must_use]
    pub fn client_ca_file(self, bundle: impl Into<PathBuf>) -> Self {
        self.demand(PemSource::File(bundle.into()))
    }

    /// Serves only clients with a certificate of one of these authorities.
    #[must_use]
    pub fn client_ca_pem(self, bundle: impl Into<Vec<u8>>) -> Self {
        self.demand(PemSource::Pem(bundle.into()))
    }

    /// Of a server that has nothing to prove itself with, nobody is served anyway.
    fn demand(mut self, client_ca: PemSource) -> Self {
        if let Some(sources) = &mut self.sources {
            sources.client_ca = Some(client_ca);
        }
        self
    }

    /// How often files are looked at, and whether certificates are still good. Default: 10 s.
    #[must_use]
    pub fn reread_interval(mut self, interval: Duration) -> Self {
        self.reread_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// How long a handshake may take; the connection is closed then. Default: 10 s.
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// How many handshakes may run at once on a listener; one more ends the oldest of the address that has most of them
    /// (of IPv6: its first 64 bits). Default: 512.
    #[must_use]
    pub fn handshake_limit(mut self, handshakes: usize) -> Self {
        self.handshake_limit = handshakes.max(1);
        self
    }
}
