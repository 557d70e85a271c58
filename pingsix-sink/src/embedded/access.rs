//! Authentication and authorisation of clients.
//!
//! Without access control, every client that can connect reads all keys. With it, a client authenticates by its
//! certificate and reads only below its own prefixes; refusals have the codes and texts of etcd.
//!
//! - **Certificates** authenticate their holders by their common name, when the server verifies clients with a CA.
//!   There are no passwords: a password would need its own tokens, and would open the keys to every reader of a
//!   configuration file.
//! - **URIs of certificates** grant prefixes to their holders, with [`Access::certificate_uris`]. Each alternative
//!   name of the form `pingsix-feed:///pingsix/shop/web:80` ([`feed_uri`]) is a prefix; a malformed one with the
//!   scheme is ignored and logged. Such clients need no configuration, because the CA vouches for the certificates
//!   that it signed. The prefixes of the common name come on top. A URI may name the owner of its prefix as well
//!   ([`feed_uri_of_owner`]); see [`Desired::owned_by`](crate::Desired::owned_by).
//!
//! A range or a watch must lie within one prefix of the client. A prefix grants only the keys below it. Clients can
//! be replaced while the server runs, by a call or a file; watches that are no longer permitted are cancelled.
//!
//! # Validity of certificates
//!
//! A handshake verifies a certificate once, and a watch goes on for months. With [`Access::certificate_uris`], a
//! connection therefore ends with its certificate. The server closes it within
//! [`ServerTls::reread_interval`](super::ServerTls::reread_interval) after the certificate has expired, or after the
//! CA that signed it was removed. The client reconnects with its current certificate: PingSIX reads its files again
//! for that, and continues a second later. A certificate that is renewed in time causes no gap. Without certificate
//! URIs, a connection keeps its first certificate.

mod certificate;
mod clients;
mod live;
mod uri;

use std::path::PathBuf;
use std::time::Duration;

pub(super) use certificate::Certificate;
pub use clients::Clients;
pub(super) use clients::ClientsError;
pub(super) use live::{Denied, LiveAccess, Reader};
pub use uri::{feed_uri, feed_uri_of_owner};

/// Access control of a server: its clients.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use pingsix_sink::embedded::{Access, Clients, EmbeddedEtcd, ServerTls};
/// use pingsix_sink::Scope;
///
/// let clients = Clients::new().certificate("web", [Scope::new("/pingsix/shop/web")?]);
/// let tls = ServerTls::from_files("/tls/tls.crt", "/tls/tls.key").client_ca_file("/tls/ca.crt");
/// let etcd = EmbeddedEtcd::builder().tls(tls).access(Access::of(clients)).start().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Access {
    source: Source,
    certificate_uris: bool,
    reread_interval: Duration,
}

/// The source of the clients.
#[derive(Clone, Debug)]
enum Source {
    Given(Clients),
    File(PathBuf),
}

impl Access {
    /// Access for these clients, until [`EmbeddedEtcd::replace_clients`](super::EmbeddedEtcd::replace_clients)
    /// replaces them.
    pub fn of(clients: Clients) -> Self {
        Self::from(Source::Given(clients))
    }

    /// Access for the clients of a file, which is read again when it changes. Each line has a client. Empty lines and
    /// those that start with `#` say nothing:
    ///
    /// ```text
    /// # common name    proof         prefixes
    /// web              certificate   /pingsix/shop/web /pingsix/shop/web:8080
    /// edge-1           certificate   /pingsix/shop/edge
    /// ```
    ///
    /// The file has at least one client, and its last line ends with a line break. Otherwise a writer may still be at
    /// work, and the previous clients stay. The best way of a change is a new file that is renamed to this path.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::from(Source::File(path.into()))
    }

    fn from(source: Source) -> Self {
        Self { source, certificate_uris: false, reread_interval: Duration::from_secs(10) }
    }

    /// Grants access by the [URIs](feed_uri) of certificates, besides the configured clients. The server must verify
    /// clients ([`ServerTls::client_ca_pem`](super::ServerTls::client_ca_pem)) with a CA that signs for this purpose
    /// alone. A connection ends when its certificate does. Default: off.
    #[must_use]
    pub fn certificate_uris(mut self) -> Self {
        self.certificate_uris = true;
        self
    }

    /// Interval between reads of the file. Default: 10 s.
    #[must_use]
    pub fn reread_interval(mut self, interval: Duration) -> Self {
        self.reread_interval = interval.max(Duration::from_millis(1));
        self
    }
}
