//! Who may read what.
//!
//! Without this, whoever can connect reads everything. With it, a client proves who it is and reads only below its own
//! prefixes, with the calls and the answers of etcd's authentication.
//!
//! - **Users** prove themselves with a password, in a call to `Authenticate`, and get a token for the other calls.
//!   The token is signed with a key made of the password, and kept nowhere: every server with the same users takes it,
//!   so a client that moves from one to another does not notice. It is void as soon as its user is gone or has another
//!   password. It expires for new connections; a connection that has shown it may go on with it.
//! - **Certificates** prove by themselves who holds them, by their common name, when the server verifies clients with
//!   a CA. A user is not proved by a certificate of the same name.
//! - **URIs of certificates** say which prefixes their holders may read, with [`Access::certificate_uris`]. Each
//!   alternative name of the form `pingsix-feed:///pingsix/shop/web:80` ([`feed_uri`]) is a prefix; one that has the scheme
//!   and is written otherwise is none, and is logged. Nobody has to name such clients: the CA answers for what it signed.
//!   What a certificate may read by its common name comes on top. A URI may name the owner of its prefix as well
//!   ([`feed_uri_of_owner`]); see [`Desired::owned_by`](crate::Desired::owned_by).
//!
//! A range or a watch must lie within one prefix of the client: a prefix opens what is below it, and neither its neighbours
//! nor what it is below of. Clients can be replaced while the server runs, by call or by file; a watch of a client that may
//! no longer read it is cancelled.
//!
//! # How long a certificate proves something
//!
//! A handshake verifies a certificate, and a watch goes on for months. With [`Access::certificate_uris`], a connection ends
//! with what it rests on: it is closed, within [`ServerTls::reread_interval`](super::ServerTls::reread_interval), when the
//! certificate has expired, and when the CA that signed it is no longer among those of the server. Its client comes again
//! with the certificate that it has by then: PingSIX reads its files anew for that, and goes on a second later where it
//! was. A certificate that was replaced in time is never missed, and one that was not is worth nothing on any connection.
//! Without it, a connection goes on with the certificate it began with.

mod certificate;
mod certified;
mod clients;
mod live;
mod token;
mod uri;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(super) use certificate::Certificate;
pub(super) use certified::{Certified, Lapse};
pub use clients::{Clients, ClientsError, ClientsProblem};
pub(super) use live::{Credentials, Denied, LiveAccess, Reader};
pub use uri::{feed_uri, feed_uri_of_owner};

/// How long a new connection may show a token, unless something else is said.
const TOKEN_LIFETIME: Duration = Duration::from_hours(24);

/// Who may read, and how long tokens are good for.
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

/// Where the clients come from.
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
    /// For these clients, until [`EmbeddedEtcd::replace_clients`](super::EmbeddedEtcd::replace_clients) says otherwise.
    pub fn of(clients: Clients) -> Self {
        Self::from(Source::Given(clients))
    }

    /// For the clients that a file names, which is read again when it changes; see [`Clients::parse`] for its form.
    ///
    /// The file names at least one client, and its last line ends with a line break: otherwise somebody is still
    /// writing it, and the clients from before stay. Best is a new file that is renamed to this path.
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

    /// Lets certificates say by [URIs](feed_uri) what their holders may read, besides the clients that are named. The
    /// server must verify clients ([`ServerTls::client_ca_pem`](super::ServerTls::client_ca_pem)), with a CA that signs
    /// nothing for anybody else; and a connection ends when its certificate does. Default: off.
    #[must_use]
    pub fn certificate_uris(mut self) -> Self {
        self.certificate_uris = true;
        self
    }

    /// How long a new connection may show a token. Default: 24 h.
    #[must_use]
    pub fn token_lifetime(mut self, lifetime: Duration) -> Self {
        self.token_lifetime = lifetime;
        self
    }

    /// How often the file is looked at. Default: 10 s.
    #[must_use]
    pub fn reread_interval(mut self, interval: Duration) -> Self {
        self.reread_interval = interval.max(Duration::from_millis(1));
        self
    }
}
