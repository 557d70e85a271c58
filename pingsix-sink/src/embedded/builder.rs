//! The options of a server.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::access::{Access, LiveAccess};
use super::pace::Pace;
use super::revisions::{BLOCK, Clock, FileReservations, Reservations, SystemClock, Unsaved, clock_revision};
use super::store::{HistoryBounds, Store};
use super::tls::{LiveTls, ServerTls};
use super::{EmbeddedError, EmbeddedEtcd, LIST_LIMIT, Replica};
use crate::error::SinkError;

/// The most that one watch response carries. PingSIX reads messages up to 4 MiB.
pub(super) const RESPONSE_LIMIT: usize = 3_584 * 1024;

/// Options that the running server reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) response_limit: usize,
    pub(super) coalesce: bool,
    pub(super) pace: Pace,
    pub(super) progress_interval: Duration,
    pub(super) stall_timeout: Duration,
    pub(super) unread_limit: usize,
    pub(super) connection_limit: usize,
    pub(super) watch_limit: usize,
    pub(super) stream_limit: u32,
    pub(super) preface_timeout: Duration,
    pub(super) keepalive_interval: Duration,
    pub(super) keepalive_timeout: Duration,
    pub(super) drain_timeout: Duration,
    pub(super) allow_plaintext_beyond_loopback: bool,
}

/// Collects the options of an [`EmbeddedEtcd`].
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
            options: Options {
                response_limit: RESPONSE_LIMIT,
                coalesce: true,
                pace: Pace::default(),
                progress_interval: Duration::from_secs(15),
                stall_timeout: Duration::from_secs(30),
                unread_limit: 64 * LIST_LIMIT,
                connection_limit: 4_096,
                watch_limit: 65_536,
                stream_limit: 100,
                preface_timeout: Duration::from_secs(10),
                keepalive_interval: Duration::from_secs(10),
                keepalive_timeout: Duration::from_secs(20),
                drain_timeout: Duration::from_secs(5),
                allow_plaintext_beyond_loopback: false,
            },
            tls: None,
            access: None,
            bounds: HistoryBounds { commits: 10_000, bytes: 64 * 1024 * 1024 },
            state_file: None,
            reservations: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// The file that keeps revisions from going back over a restart; see [`revisions`](super::revisions).
    /// It belongs to one process at a time, which holds a lock on the file `<path>.lock` beside it.
    /// Without it the clock alone does what it can.
    #[must_use]
    pub fn state_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_file = Some(path.into());
        self
    }

    /// A store of one's own in the place of the state file, for instance one shared by several servers.
    #[must_use]
    pub fn reservations(mut self, reservations: Arc<dyn Reservations>) -> Self {
        self.reservations = Some(reservations);
        self
    }

    /// The clock that the first revision is taken from. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How much of the past is kept: a number of revisions of each scope, and of bytes of all scopes, whichever is reached
    /// first. Over the bytes, the scope that keeps the most forgets first. A watch that is told each change and falls further
    /// behind is cancelled, and its client lists again. Default: 10,000 and 64 MiB.
    #[must_use]
    pub fn history(mut self, revisions: usize, bytes: usize) -> Self {
        self.bounds = HistoryBounds { commits: revisions, bytes };
        self
    }

    /// The most bytes of one watch response; a publication that needs more becomes several. Default: 3.5 MiB.
    #[must_use]
    pub fn response_limit(mut self, bytes: usize) -> Self {
        self.options.response_limit = bytes;
        self
    }

    /// How often a watch of whole scopes is told of changes.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.options.pace = pace;
        self
    }

    /// Tells every watch each change of each revision, as etcd does. By default a watch of whole scopes is told what
    /// is, rather than all that was: of each key the last change since the response before.
    #[must_use]
    pub fn tell_each_change(mut self) -> Self {
        self.options.coalesce = false;
        self
    }

    /// How long a watch that asked for progress may be silent before it is told the revision. Default: 15 s.
    #[must_use]
    pub fn progress_interval(mut self, interval: Duration) -> Self {
        self.options.progress_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// How long a client may leave a response of a watch unread, or a large answer besides the time that it takes to be
    /// read at 64 KiB a second; its connection is closed then. For so long an answer waits for room as well, and a
    /// request may be on its way for twice as long. Default: 30 s.
    #[must_use]
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.options.stall_timeout = timeout;
        self
    }

    /// How many bytes of answers and of responses of watches clients may have unread, over all listeners. Bytes that clients
    /// share count once. Over the bound, the connection of the client that has left something unread for the longest time
    /// is closed. Default: 256 MiB.
    #[must_use]
    pub fn unread_limit(mut self, bytes: usize) -> Self {
        self.options.unread_limit = bytes;
        self
    }

    /// How many connections may be open at once, over all listeners. One more is closed, or takes the place of the newest
    /// connection of the client that has most, if its own client has at least two fewer. A client is whoever has a
    /// certificate of one subject, a user, or else an address. There may be four times as many watch streams, which are
    /// shared in the same way. Default: 4,096.
    #[must_use]
    pub fn connection_limit(mut self, connections: usize) -> Self {
        self.options.connection_limit = connections;
        self
    }

    /// How many watches may be open at once, over all listeners, of which a connection has 256 at most. One more is refused,
    /// or takes the place of one of the client that has most, as with [connections](Self::connection_limit); the connection
    /// of the latter is closed. Default: 65,536.
    #[must_use]
    pub fn watch_limit(mut self, watches: usize) -> Self {
        self.options.watch_limit = watches;
        self
    }

    /// How many requests and watch streams one connection may carry at once; HTTP/2 tells clients. Default: 100.
    #[must_use]
    pub fn stream_limit(mut self, streams: u32) -> Self {
        self.options.stream_limit = streams;
        self
    }

    /// How long a client may take to begin to speak HTTP/2; the connection is closed then. Default: 10 s.
    #[must_use]
    pub fn preface_timeout(mut self, timeout: Duration) -> Self {
        self.options.preface_timeout = timeout;
        self
    }

    /// How often a silent connection is probed with an HTTP/2 ping, and how long the answer may take.
    /// Default: 10 s and 20 s.
    #[must_use]
    pub fn keepalive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.options.keepalive_interval = interval;
        self.options.keepalive_timeout = timeout;
        self
    }

    /// How long a shutdown waits for connections to end by themselves. Default: 5 s.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.options.drain_timeout = timeout;
        self
    }

    /// Serves over TLS alone, on whatever address. Default: plaintext, on loopback addresses.
    #[must_use]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Serves only clients that prove who they are, each with its own prefixes. Default: anybody, everything.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    /// Allows to serve plaintext on an address that other machines can reach.
    /// What is served carries private keys, so this is refused otherwise.
    #[must_use]
    pub fn allow_plaintext_beyond_loopback(mut self) -> Self {
        self.options.allow_plaintext_beyond_loopback = true;
        self
    }

    /// Reserves the first revisions and starts a server that holds nothing and answers `UNAVAILABLE`. With a store that
    /// servers share, which may be away, the first are reserved when they are needed.
    ///
    /// # Errors
    /// [`EmbeddedError::Tls`] when a certificate, key or CA cannot be used; [`EmbeddedError::Clients`] when the file with the
    /// clients cannot be; [`EmbeddedError::Revisions`] when the state file is damaged, in use, or cannot be written.
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
                Arc::<Unsaved>::default()
            }
        };
        let store = if reservations.shared().is_some() {
            Store::without_revisions(self.bounds)
        } else {
            let block = reservations.reserve(clock_revision(&*self.clock), BLOCK).await?;
            Store::new(block, self.bounds)
        };
        Ok(EmbeddedEtcd::of(Replica::new(store, reservations, self.clock, self.options, tls, access)))
    }
}
