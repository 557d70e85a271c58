//! The options of a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::access::{Access, LiveAccess};
use super::options::Options;
use super::pace::Pace;
use super::replica::Replica;
use super::revisions::{
    BLOCK_LEN, Clock, FileReservations, MemoryReservations, Reservations, SystemClock, clock_revision,
};
use super::store::{HistoryBounds, Store};
use super::tls::{LiveTls, ServerTls};
use super::{EmbeddedError, EmbeddedEtcd};
use crate::error::SinkError;

/// Options of an [`EmbeddedEtcd`].
pub struct Builder {
    options: Options,
    tls: Option<ServerTls>,
    access: Option<Access>,
    bounds: HistoryBounds,
    state_file: Option<PathBuf>,
    reservations: Option<Arc<dyn Reservations>>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .field("tls", &self.tls)
            .field("access", &self.access)
            .field("bounds", &self.bounds)
            .field("state_file", &self.state_file)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            options: Options::default(),
            tls: None,
            access: None,
            bounds: HistoryBounds { commits: 10_000, bytes: 64 * 1024 * 1024 },
            state_file: None,
            reservations: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// The file that keeps revisions from going back over a restart; see [`revisions`](super::revisions). One process
    /// at a time owns the file and holds a lock on `<path>.lock` beside it. Without the file, the clock alone keeps
    /// revisions from going back.
    #[must_use]
    pub fn state_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_file = Some(path.into());
        self
    }

    /// A store of reservations in place of the state file, for instance one that several servers share.
    #[must_use]
    pub fn reservations(mut self, reservations: Arc<dyn Reservations>) -> Self {
        self.reservations = Some(reservations);
        self
    }

    /// The clock of the first revision. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Limits of the history: revisions of each scope, and bytes of all scopes. Above the byte limit, the scope with
    /// the most history forgets first. A watch that falls behind the history is cancelled, and its client lists again.
    /// Default: 10,000 and 64 MiB.
    #[must_use]
    pub fn history(mut self, revisions: usize, bytes: usize) -> Self {
        self.bounds = HistoryBounds { commits: revisions, bytes };
        self
    }

    /// Size limit of one watch response; a larger publication becomes several. Default: 3.5 MiB.
    #[must_use]
    pub fn response_limit(mut self, bytes: usize) -> Self {
        self.options.response_limit = bytes;
        self
    }

    /// The interval between responses to a watch.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.options.pace = pace;
        self
    }

    /// Silence after which a watch that asked for progress receives the revision. Default: 15 s.
    #[must_use]
    pub fn progress_interval(mut self, interval: Duration) -> Self {
        self.options.progress_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Timeout of a client that leaves a watch response unread, or a large response beyond the time to read it at 64
    /// KiB a second. The server then closes the connection. A response waits for room at most as long, and a request
    /// may take twice as long. Default: 30 s.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.options.stall_timeout = timeout;
        self
    }

    /// Byte limit of unread responses over all listeners. Bytes that clients share count once. Above the limit, the
    /// server closes the connection of the client that has left a response unread for the longest time. Default: 256
    /// MiB.
    #[must_use]
    pub fn unread_limit(mut self, bytes: usize) -> Self {
        self.options.unread_limit = bytes;
        self
    }

    /// Limit of open connections over all listeners. A further connection is closed, or replaces the newest
    /// connection of the client with the most, if its own client has at least two fewer. A client is a certificate
    /// subject, a user, or else an address. Watch streams have four times this limit and are shared in the same way.
    /// Default: 4,096.
    #[must_use]
    pub fn connection_limit(mut self, connections: usize) -> Self {
        self.options.connection_limit = connections;
        self
    }

    /// Limit of open watches over all listeners; a connection has at most 256. A further watch is refused, or
    /// replaces a watch of the client with the most, as with [connections](Self::connection_limit); the connection of
    /// the latter is closed. Default: 65,536.
    #[must_use]
    pub fn watch_limit(mut self, watches: usize) -> Self {
        self.options.watch_limit = watches;
        self
    }

    /// Limit of concurrent requests and watch streams of one connection; HTTP/2 announces it to clients. Default:
    /// 100.
    #[must_use]
    pub fn stream_limit(mut self, streams: u32) -> Self {
        self.options.stream_limit = streams;
        self
    }

    /// Timeout of a client before its HTTP/2 preface; the connection is then closed. Default: 10 s.
    #[must_use]
    pub fn preface_timeout(mut self, timeout: Duration) -> Self {
        self.options.preface_timeout = timeout;
        self
    }

    /// Interval of HTTP/2 pings on a silent connection, and timeout of their responses. Default: 10 s and 20 s.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.options.keepalive_interval = interval;
        self.options.keepalive_timeout = timeout;
        self
    }

    /// Time that a shutdown waits for connections to end. Default: 5 s.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.options.drain_timeout = timeout;
        self
    }

    /// Serves only over TLS, on any address. Default: plaintext, on loopback addresses.
    #[must_use]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Serves only authenticated clients, each with its own prefixes. Default: all clients and keys.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    /// Allows plaintext on an address that other machines can reach. The documents contain private keys, so the
    /// default is a refusal.
    #[must_use]
    pub fn allow_plaintext_beyond_loopback(mut self) -> Self {
        self.options.allow_plaintext_beyond_loopback = true;
        self
    }

    /// Reserves the first revisions and starts an empty server that answers `UNAVAILABLE`. With a shared store of
    /// reservations, which may be unreachable, the server reserves at the first publication.
    ///
    /// # Errors
    /// [`EmbeddedError::Tls`] when a certificate, key or CA cannot be used; [`EmbeddedError::Clients`] when the file
    /// with the clients cannot be; [`EmbeddedError::Revisions`] when the state file is damaged, in use, or cannot be
    /// written.
    pub async fn start(self) -> Result<EmbeddedEtcd, SinkError> {
        Ok(self.try_start().await?)
    }

    async fn try_start(self) -> Result<EmbeddedEtcd, EmbeddedError> {
        let tls = self.tls.map(|tls| LiveTls::load(tls, Arc::clone(&self.clock))).transpose()?.map(Arc::new);
        let access = Arc::new(LiveAccess::load(self.access, Arc::clone(&self.clock))?);
        let reservations: Arc<dyn Reservations> = match (self.reservations, self.state_file) {
            (Some(reservations), _) => reservations,
            (None, Some(path)) => Arc::new(FileReservations::open(path)?),
            (None, None) => {
                tracing::warn!(
                    "no state file: if the clock is set back before a restart, clients may ignore changes until it has caught up"
                );
                Arc::<MemoryReservations>::default()
            }
        };
        let store = if reservations.shared().is_some() {
            Store::without_revisions(self.bounds)
        } else {
            let block = reservations.reserve(clock_revision(&*self.clock), BLOCK_LEN).await?;
            Store::new(block, self.bounds)
        };
        let replica = Replica::new(store, reservations, self.clock, self.options, tls, access);
        Ok(EmbeddedEtcd { replica: Arc::new(replica) })
    }
}
