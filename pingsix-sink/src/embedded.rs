//! A server with etcd's v3 protocol for published documents.
//!
//! Programs that read their configuration from etcd (PingSIX, `etcd-client`, `etcdctl`) list and watch here instead
//! of an etcd. All scopes share one server and one revision counter.
//!
//! ```text
//! publish ─► plan ─► commits ─► Store (scopes now, each with a bounded past) ◄─ Range, Txn: read a copy that shares it
//!                                 │ header advanced
//!                                 ▼
//!                         one task per watch stream: sends the difference, at the pace of its client
//!                                 │ batches, encoded once for all watches with the same difference
//!                                 ▼
//!                         one response on its way: the next is made when HTTP/2 has written it
//! ```
//!
//! - **Gate.** Every read is answered `UNAVAILABLE` until [`EmbeddedEtcd::open`], and reads of a scope until its
//!   first publication. So no client ever lists an empty or a partial scope. If clients read ranges over several
//!   scopes, the program publishes all of them and then opens the gate. If each client reads one scope, the program
//!   opens the gate as soon as it knows the desired documents. A range without a key of a known scope is
//!   `UNAVAILABLE` too, and a log line names the known scopes. A range over several scopes is answered. The key
//!   `health`, which `etcdctl endpoint health` reads, is absent.
//! - **One publication, one response.** All events of a publication share one revision and one watch response. Only a
//!   publication above the message limit is cut, in the order of its plan, into several revisions.
//! - **Coalescing.** PingSIX reads its whole configuration again for every response, so the number of responses
//!   matters, and the number of changes does not. An idle watch receives a change at once. Changes while its response
//!   is unwritten, or while it rests ([`Pace`]), become one response with the last change of each key; keys that were
//!   created and deleted meanwhile are left out. The last event has the revision of the last publication, and so have
//!   the deletions. The response leads from one state of the store to a later one. A difference that exceeds a message
//!   is cut only between two publications.
//! - **History.** Every scope has a history of its own: its states from a revision on. The bytes of all histories are
//!   bounded, and the scope with the most forgets first. A watch receives the difference between the state that its
//!   client has and the current one. A resting watch keeps this state, and any other watch needs it from the history.
//!   Without it, the watch is cancelled with the compaction revision, as in etcd. Lists are of the current state alone:
//!   every earlier revision counts as compacted.
//! - **Slow clients.** Neither a publication nor another client ever waits for a client or for a request in progress.
//!   At most one response of a stream is in memory. A client that leaves a watch response or a large list unread for
//!   long loses its connection, as does one without an HTTP/2 preface or a ping response.
//! - **Limits.** A key of a request has at most 4 KiB, and a connection 256 watches and 16 MiB of unread responses;
//!   there are 65,536 watches in all. A response waits for room on its connection; a larger request is refused as in
//!   etcd. All unread responses have at most 256 MiB, and bytes that clients share count once. Above that, the
//!   connection of the client with the oldest unread response is closed.
//! - **Fairness.** Clients share connections, watch streams and watches: at a limit, the client with the most gives
//!   one to a client with at least two fewer. See [`Builder::connection_limit`].
//! - **Orders.** A list has all keys of its range in their order. Other orders and filters are refused with
//!   `UNIMPLEMENTED`, as are the services of etcd's members and users.
//! - **Read only.** `Put`, `DeleteRange`, `Compact` and a `Txn` with a write in either branch are refused with
//!   `FAILED_PRECONDITION`. There are no leases, because a reader has nothing to attach to one.
//! - **Security.** The documents contain private keys. Plaintext is served on loopback addresses alone, unless
//!   [`Builder::allow_plaintext_beyond_loopback`] allows it; [`Builder::tls`] serves on any address over TLS, to all
//!   clients or to those with a certificate of a given CA. See [`ServerTls`].
//! - **Access.** With [`Builder::access`], clients authenticate and read only their own prefixes. See [`Access`].
//! - **Restarts.** See [`revisions`].
//!
//! ```no_run
//! # async fn example(desired: pingsix_sink::Desired) -> Result<(), Box<dyn std::error::Error>> {
//! use pingsix_sink::{Sink, embedded::EmbeddedEtcd};
//!
//! let etcd = EmbeddedEtcd::builder().state_file("/var/lib/gateway/revisions").start().await?;
//! etcd.publish(&desired).await?;
//! etcd.open();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:2379").await?;
//! etcd.serve(listener, tokio_util::sync::CancellationToken::new()).await?;
//! # Ok(())
//! # }
//! ```

mod access;
mod batch;
mod builder;
mod connection;
mod error;
mod fair_limit;
mod log_limiter;
mod options;
mod pace;
mod peer;
mod publication;
mod readers;
mod replica;
mod responses;
pub mod revisions;
mod server;
mod service;
mod shared_cache;
mod stats;
mod store;
mod target;
mod tls;
mod unread_bytes;
mod watched_files;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::desired::LIST_LIMIT;
pub use access::{Access, Clients, feed_uri, feed_uri_of_owner};
pub use builder::Builder;
pub use error::EmbeddedError;
pub use pace::Pace;
pub use stats::Stats;
pub use store::ScopeSize;
pub(crate) use target::EmbeddedTarget;
pub use tls::ServerTls;

use crate::desired::{Desired, DocumentSet, Scope};
use crate::error::SinkError;
use crate::revision::Revision;
use crate::sink::{Published, Sink};
use replica::Replica;
use service::UNKNOWN_SCOPE;

/// An etcd-compatible server; clones are the same server.
#[derive(Clone, Debug)]
pub struct EmbeddedEtcd {
    replica: Arc<Replica>,
}

impl EmbeddedEtcd {
    /// The options of a new server.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Empties `scope` and keeps it known, so that its clients read an empty scope and no error.
    ///
    /// # Errors
    /// Those of [`Sink::publish`].
    pub async fn withdraw(&self, scope: &Scope) -> Result<Published, SinkError> {
        self.publish(&Desired::empty(scope.clone())).await
    }

    /// Declares the publications so far complete and starts to answer reads.
    ///
    /// Later calls have no effect; the gate never closes again.
    pub fn open(&self) {
        self.replica.open();
    }

    /// Whether the gate is open.
    pub fn is_open(&self) -> bool {
        self.replica.read(store::Store::is_complete)
    }

    /// The published scopes in order, with their sizes as lists.
    pub fn scopes(&self) -> Vec<(Scope, ScopeSize)> {
        self.replica.read(|store| store.scopes().map(|(scope, size)| (scope.clone(), size)).collect())
    }

    /// The size of `scope` as a list; `None` before its first publication.
    ///
    /// A scope above [`LIST_LIMIT`] is served, with a warning in the log, but PingSIX cannot read it.
    pub fn size_of(&self, scope: &Scope) -> Option<ScopeSize> {
        self.replica.read(|store| store.size_of(scope))
    }

    /// The documents of `scope`; `None` before its first publication.
    pub fn documents(&self, scope: &Scope) -> Option<DocumentSet> {
        self.replica.documents(scope)
    }

    /// The highest issued revision.
    pub fn revision(&self) -> Revision {
        Revision::new(self.replica.read(store::Store::header)).unwrap_or(Revision::MIN)
    }

    /// Replaces the clients, each with its own prefixes, also on a server without access control before.
    ///
    /// The server cancels watches that their clients may no longer read. A change of the file of clients replaces
    /// them again.
    pub fn replace_clients(&self, clients: Clients) {
        self.replica.access.replace(clients);
    }

    /// Replaces the certificate of the server and the CAs of clients. New connections use them. Open connections
    /// continue, unless they [depend on certificates](Access::certificate_uris) of removed CAs. Limits of handshakes
    /// stay.
    ///
    /// # Errors
    /// [`EmbeddedError::Tls`] when the certificate, key or CA cannot be used; the previous ones then stay.
    /// [`EmbeddedError::NoTls`] on a server that was started without TLS.
    pub fn replace_tls(&self, tls: ServerTls) -> Result<(), SinkError> {
        let live = self.replica.tls.as_ref().ok_or(EmbeddedError::NoTls)?;
        live.replace(tls, &self.replica.counters).map_err(EmbeddedError::from)?;
        Ok(())
    }

    /// Whether this server, and no other server of the same scopes, is known to have issued `revision`.
    pub fn has_issued(&self, revision: Revision) -> bool {
        self.replica.read(|store| store.has_issued(revision.get()))
    }

    /// The number of open watches on keys of `scope`. A client that reads the scope has one watch. The cost is linear
    /// in the open watches.
    pub fn readers_of(&self, scope: &Scope) -> usize {
        self.replica.readers.of(scope)
    }

    /// Tells the server that the readers of `scope` have applied everything up to `revision`, as their status pages say. The
    /// next change of a watch that [rests](Pace) after that revision is sent at once, as long as its [burst](Pace::burst) lasts.
    pub fn confirm(&self, scope: &Scope, revision: Revision) {
        let issued = self.replica.read(store::Store::header);
        self.replica.readers.confirm(scope, revision.get().min(issued));
    }

    /// Makes the [intervals](Pace) of the watches of `scope` longer, up to the longest one: twice as long at 50 percent. A
    /// reader that takes as long for a response as the pace expects then spends this share of one core on responses. 100 is
    /// the default.
    pub fn limit_cpu(&self, scope: &Scope, percent: u8) {
        self.replica.limit_cpu(scope, percent);
    }

    /// The number of open watches on keys of each scope with any.
    pub fn readers(&self) -> BTreeMap<Scope, usize> {
        self.replica.read(|store| self.replica.readers.by_scope(store))
    }

    /// Changes when a watch is opened or ends, so that [`readers_of`](Self::readers_of) may have changed.
    pub fn readers_changed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.replica.readers.changes()
    }

    /// The counters, now.
    pub fn stats(&self) -> Stats {
        self.replica.stats()
    }

    /// Serves on `listener` until `shutdown` is cancelled, then lets connections end for a short while.
    ///
    /// The call may precede the opening of the gate, and several calls may serve several listeners.
    ///
    /// # Errors
    /// [`EmbeddedError::PlaintextBeyondLoopback`] for an address that is not a loopback address, unless
    /// [`Builder::tls`] or [`Builder::allow_plaintext_beyond_loopback`] was called; [`EmbeddedError::Listener`] and
    /// [`EmbeddedError::Serve`] when the network fails.
    pub async fn serve(&self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), SinkError> {
        Ok(server::serve(Arc::clone(&self.replica), listener, shutdown).await?)
    }
}

impl Sink for EmbeddedEtcd {
    /// Publishes to all watches at once. The call returns when every list contains the change; connected clients then
    /// receive it at their own pace.
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        self.replica.publish(desired).await
    }
}
