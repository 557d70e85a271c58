//! Authentication and authorisation of clients.
//!
//! Without access control, every client that can connect reads all keys. With it, a client authenticates and reads
//! only below its own prefixes, with the calls and the responses of etcd's authentication.
//!
//! - **Users** send a password to `Authenticate` and get a token for the other calls. The token is signed with a key
//!   derived from the password, and not stored: every server with the same users accepts it, so a client may move
//!   between servers. It is void as soon as its user is removed or has another password. It expires for new
//!   connections; a connection that has presented it may go on.
//! - **Certificates** authenticate their holders by their common name, when the server verifies clients with a CA. A
//!   certificate does not authenticate the user of the same name.
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
mod certificate_connections;
mod clients;
mod live;
mod token;
mod uri;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(super) use certificate::Certificate;
pub(super) use certificate_connections::{CertificateConnections, Lapse};
pub use clients::{Clients, ClientsError, ClientsProblem};
pub(super) use live::{Credentials, Denied, LiveAccess, Reader};
pub use uri::{feed_uri, feed_uri_of_owner};

/// Default lifetime of a token for new connections.
const TOKEN_LIFETIME: Duration = Duration::from_hours(24);

/// Access control of a server: its clients, and the lifetime of tokens.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use pingsix_sink::embedded::{Access, Clients, EmbeddedEtcd};
/// use pingsix_sink::Scope;
///
/// let clients = Clients::new().user("web", "a long random word", [Scope::new("/pingsix/shop/web")?]);
/// let etcd = EmbeddedEtcd::builder().access(Access::of(clients)).start().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Access {
    source: Source,
    certificate_uris: bool,
    token_lifetime: Duration,
    reread_interval: Duration,
}

/// The source of the clients.
#[derive(Clone, Debug)]
enum Source {
    Given(Clients),
    File(PathBuf),
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("source", &self.source)
            .field("certificate_uris", &self.certificate_uris)
            .field("token_lifetime", &self.token_lifetime)
            .field("reread_interval", &self.reread_interval)
            .finish()
    }
}

impl Access {
    /// Access for these clients, until [`EmbeddedEtcd::replace_clients`](super::EmbeddedEtcd::replace_clients)
    /// replaces them.
    pub fn of(clients: Clients) -> Self {
        Self::from(Source::Given(clients))
    }

    /// Access for the clients of a file, which is read again when it changes; see [`Clients::parse`] for its form.
    ///
    /// The file has at least one client, and its last line ends with a line break. Otherwise a writer may still be at
    /// work, and the previous clients stay. The best way of a change is a new file that is renamed to this path.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::from(Source::File(path.into()))
    }

    fn from(source: Source) -> Self {
        Self {
            source,
            certificate_uris: false,
            token_lifetime: TOKEN_LIFETIME,
            reread_interval: Duration::from_secs(10),
        }
    }

    /// Grants access by the [URIs](feed_uri) of certificates, besides the configured clients. The server must verify
    /// clients ([`ServerTls::client_ca_pem`](super::ServerTls::client_ca_pem)) with a CA that signs for this purpose
    /// alone. A connection ends when its certificate does. Default: off.
    #[must_use]
    pub fn certificate_uris(mut self) -> Self {
        self.certificate_uris = true;
        self
    }

    /// Lifetime of a token for new connections. Default: 24 h.
    #[must_use]
    pub fn token_lifetime(mut self, lifetime: Duration) -> Self {
        self.token_lifetime = lifetime;
        self
    }

    /// Interval between reads of the file. Default: 10 s.
    #[must_use]
    pub fn reread_interval(mut self, interval: Duration) -> Self {
        self.reread_interval = interval.max(Duration::from_millis(1));
        self
    }
}
