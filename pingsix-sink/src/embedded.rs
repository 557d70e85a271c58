//! A server that speaks etcd's v3 protocol and holds nothing but what is published to it.
//!
//! Programs that read their configuration from etcd (PingSIX, `etcd-client`, `etcdctl`) list and watch here; nobody has
//! to run etcd. All scopes share one server and one revision counter.
//!
//! ```text
//! publish ─► plan ─► commits ─► Store (scopes now, each with a bounded past) ◄─ Range, Txn: read a copy that shares it
//!                                 │ header advanced
//!                                 ▼
//!                         one task per watch stream: tells what it has not told, at the pace of its client
//!                                 │ batches, encoded once for all watches that are told the same
//!                                 ▼
//!                         one response on its way: the next is made when HTTP/2 has written it
//! ```
//!
//! - **Gate.** Until [`EmbeddedEtcd::open`] every read is answered `UNAVAILABLE`, and a scope until its own first
//!   publication, with which it appears, whole. So no client ever lists an empty or a partial scope. A program whose clients
//!   read ranges over several scopes publishes all of them, then opens; where each reads its own, it opens as soon as it
//!   knows what to publish. A range that has no key of a known scope is `UNAVAILABLE` too, and a log line names the known
//!   ones. A range over several scopes is answered. The key `health`, which `etcdctl endpoint health` reads, is absent.
//! - **One publication, one response.** All events of a publication share one revision and one watch response. Only a
//!   publication above the message limit is cut, in the order of its plan, into several revisions.
//! - **What is, not what was.** PingSIX reads its whole configuration again for every response, so responses cost, not
//!   changes. A watch of whole scopes that is idle is told a change at once; what changes while its response is
//!   unwritten, or while it rests ([`Pace`]), becomes one response with the last change of each key, and without the
//!   keys that came and went. Its last event has the revision of the last publication. It leads from one state of the
//!   store to a later one, and is cut only between two publications when it does not fit a message. A watch that asks
//!   for the pair before a change, for one kind of changes, or for a part of a scope, is told each change, as in etcd;
//!   with [`Builder::tell_each_change`] all are.
//! - **The past.** Every scope has a past of its own; the bytes of all of them are bounded, and the scope that keeps the most
//!   forgets first. A watch that coalesces needs no past: the store indexes the last change of each key, deletions included
//!   while a resting watch needs them. A watch that is told each change, and whose client reads more slowly than the past
//!   is forgotten, is cancelled with the compaction revision, as in etcd.
//! - **Slow clients.** A publication never waits for a client, nor for a request that is being answered, nor does another
//!   client. At most one response of a stream is in memory. A client that leaves a response of a watch, or a large list,
//!   unread for long loses its connection, as does one that never begins to speak HTTP/2 or answers no ping.
//! - **Bounds.** A key of a request has 4 KiB at most, a connection 256 watches and 16 MiB of answers that are not read;
//!   there are 65,536 watches in all. An answer waits for its room on its connection; what asks for more is refused as
//!   etcd refuses it. Answers and responses of watches that are not read are 256 MiB in all, bytes that clients share
//!   counted once; over that, the connection of the client that has left something unread for the longest time is closed.
//! - **Shares.** Connections, watch streams and watches are shared by clients: when all places are taken, one of the client
//!   that has most makes room for a client with at least two fewer. See [`Builder::connection_limit`].
//! - **Read only.** `Put`, `DeleteRange`, `Compact` and a `Txn` with a write in either branch are refused with
//!   `FAILED_PRECONDITION`. Leases can be granted and kept, for clients that insist, but nothing can be attached.
//! - **Security.** What is served carries private keys. Plaintext is served on loopback addresses alone, unless
//!   [`Builder::allow_plaintext_beyond_loopback`] says otherwise; [`Builder::tls`] serves anywhere, over TLS, to any
//!   client or to those with a certificate of a given authority. See [`ServerTls`].
//! - **Access.** With [`Builder::access`], a client proves who it is and reads below its own prefixes only. See
//!   [`Access`].
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
mod answers;
mod batch;
mod builder;
mod connection;
mod error;
mod lists;
mod log_limiter;
mod pace;
mod publication;
mod readers;
mod replica;
mod rests;
pub mod revisions;
mod server;
mod service;
mod settled;
mod shares;
mod stats;
mod store;
mod target;
mod tls;
mod unread;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::desired::LIST_LIMIT;
pub use access::{Access, Clients, ClientsError, ClientsProblem, feed_uri, feed_uri_of_owner};
pub use builder::Builder;
pub use error::EmbeddedError;
pub use pace::Pace;
pub use stats::Stats;
pub use store::ScopeSize;
pub use target::EmbeddedTarget;
pub use tls::{ServerTls, TlsError, TlsFault, TlsPart};

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

    fn of(replica: Replica) -> Self {
        Self { replica: Arc::new(replica) }
    }

    /// Empties `scope` and remembers it: its clients are told that everything is gone, rather than that it is unknown.
    ///
    /// # Errors
    /// Those of [`Sink::publish`].
    pub async fn withdraw(&self, scope: &Scope) -> Result<Published, SinkError> {
        self.publish(&Desired::empty(scope.clone())).await
    }

    /// Declares the publications made so far complete: from now on reads are answered.
    ///
    /// Later calls change nothing; the gate never closes again.
    pub fn open(&self) {
        self.replica.open();
    }

    /// Whether the gate is open.
    pub fn is_open(&self) -> bool {
        self.replica.read(store::Store::is_complete)
    }

    /// The scopes published so far, in order, with what each weighs in a list.
    pub fn scopes(&self) -> Vec<(Scope, ScopeSize)> {
        self.replica.read(|store| store.scopes().map(|(scope, size)| (scope.clone(), size)).collect())
    }

    /// What a list of `scope` weighs; `None` before its first publication.
    ///
    /// A scope above [`LIST_LIMIT`] is served, with a warning in the log, but PingSIX cannot read it.
    pub fn size_of(&self, scope: &Scope) -> Option<ScopeSize> {
        self.replica.read(|store| store.size_of(scope))
    }

    /// What `scope` holds; `None` before its first publication.
    pub fn documents(&self, scope: &Scope) -> Option<DocumentSet> {
        self.replica.documents(scope)
    }

    /// The highest revision handed out.
    pub fn revision(&self) -> Revision {
        Revision::new(self.replica.read(store::Store::header)).unwrap_or(Revision::MIN)
    }

    /// Serves only these clients from now on, each with its own prefixes, also where anybody was served before.
    ///
    /// A watch that its client may no longer read is cancelled. A file that clients were read from replaces them again
    /// when it changes.
    pub fn replace_clients(&self, clients: Clients) {
        self.replica.access.replace(clients);
    }

    /// Proves itself with other material from now on, and asks clients for certificates of other authorities. New
    /// connections get it; those that are open go on, unless they [rest on certificates](Access::certificate_uris) of
    /// authorities that are none any more. How handshakes are bounded stays as it was.
    ///
    /// # Errors
    /// [`EmbeddedError::Tls`] when it cannot be used; then what was in force stays. [`EmbeddedError::NoTls`] on a server that
    /// was started without TLS.
    pub fn replace_tls(&self, tls: ServerTls) -> Result<(), SinkError> {
        let live = self.replica.tls.as_ref().ok_or(EmbeddedError::NoTls)?;
        live.replace(tls, &self.replica).map_err(EmbeddedError::from)?;
        Ok(())
    }

    /// Whether this server has handed out `revision`, as far as it remembers, and no other one that serves the same.
    pub fn has_given(&self, revision: Revision) -> bool {
        self.replica.read(|store| store.has_given(revision.get()))
    }

    /// How many watches are open that want keys of `scope`: a client that reads it holds one. Costs a look at each
    /// open watch.
    pub fn readers_of(&self, scope: &Scope) -> usize {
        self.replica.readers.of(scope)
    }

    /// How many watches are open that want keys of each scope of which there are any. Costs a look at each scope for every
    /// range that is watched.
    pub fn readers(&self) -> BTreeMap<Scope, usize> {
        let scopes: Vec<Scope> =
            self.replica.read(|store| store.scopes().map(|(scope, _)| scope.clone()).collect());
        self.replica.readers.by_scope(&scopes)
    }

    /// Changes whenever a watch is opened or ends, so that [`readers_of`](Self::readers_of) may say something else.
    pub fn readers_changed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.replica.readers.changes()
    }

    /// The counters, now.
    pub fn stats(&self) -> Stats {
        self.replica.stats()
    }

    /// Serves on `listener` until `shutdown` is cancelled, then lets connections end for a short while.
    ///
    /// May be called before the gate is open, and several times for several listeners.
    ///
    /// # Errors
    /// [`EmbeddedError::PlaintextBeyondLoopback`] for an address that is not a loopback address, unless [`Builder::tls`] or
    /// [`Builder::allow_plaintext_beyond_loopback`] was called; [`EmbeddedError::Listener`] and [`EmbeddedError::Serve`] when
    /// the network fails.
    pub async fn serve(&self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), SinkError> {
        Ok(server::serve(Arc::clone(&self.replica), listener, shutdown).await?)
    }
}

impl Sink for EmbeddedEtcd {
    /// Publishes to all watches at once. Returns when the change is visible to every list; clients that are connected
    /// receive it then at their own pace.
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        self.replica.publish(desired).await
    }
}
