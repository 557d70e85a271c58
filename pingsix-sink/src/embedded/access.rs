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
//!
//! A range or a watch must lie within one prefix of the client. Clients can be replaced while the server runs, by call
//! or by file; a watch of a client that may no longer read it is cancelled.

mod clients;
mod live;
mod token;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use clients::{Clients, ClientsError, ClientsProblem};
pub(super) use live::{Credentials, Denied, LiveAccess, Reader};

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
        Self { source, token_lifetime: TOKEN_LIFETIME, reread_interval: Duration::from_secs(10) }
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
