//! A sink for an etcd of another operator, from which PingSIX reads.
//!
//! ```text
//! publish ─► Keeper of the scope ─► transactions ─► etcd ─► PingSIX
//!                ▲                                   │
//!                └─────── watch: foreign changes ◄───┘
//! ```
//!
//! - **Transactions.** A change is one transaction when it fits into etcd's limits, by default 128 operations and 1.5
//!   MiB, and [units](crate::units) of it otherwise. Equal content writes nothing.
//! - **Ownership.** Written documents are recorded under `<scope>/.pingsix_sink_owned.0` to `.f`, which PingSIX does
//!   not read, in the transaction that writes them: twelve bytes for each document. Keys without a record stay;
//!   [`EtcdSink::foreign`] reports them, and they are logged. A desired document under a foreign key replaces it and
//!   is recorded.
//! - **Publisher.** With a [name](Sink::publish_as), a scope has its publisher under
//!   `<scope>/.pingsix_sink_publisher`, from before the first document until after the last. A later process may
//!   withdraw the documents of its own name, and of no other.
//! - **Other writers.** Each transaction compares the revision of every key it writes and of the guard key
//!   `<scope>/.pingsix_graph_revision`, which PingSIX's Admin API compares and writes as well. So no writer
//!   overwrites unseen changes. After a lost race the scope is read and planned again, a few times; then the error is
//!   [`EtcdError::Conflict`]. Several programs that publish different documents to one scope revert each other: there
//!   should be one, such as the leader of several replicas.
//! - **Fence.** Each of several leaders has a higher [term](Sink::fence) than the one before. An earlier leader
//!   cannot write to a scope that a later one has published to: `<scope>/.pingsix_sink_fence` has the term, and the
//!   error is [`EtcdError::Fenced`].
//! - **Drift.** A published scope is watched. When another writer changes an owned document, [`EtcdSink::drift`]
//!   reports the scope, and another publication repairs it. A watch that ends for any reason is followed by a new
//!   list.
//! - **Revisions.** [`Published::revision`] is the revision of the last transaction that changed a document, which
//!   PingSIX shows as its published one.
//! - **Secrets.** With a [keyring](Builder::keyring) they are stored in the form of PingSIX's `data_encryption`. The
//!   next publication rewrites secrets of another key and secrets in plaintext.
//! - **Endpoints.** One is in use at a time; after a failure the next one is, in turn.
//!
//! ```no_run
//! # async fn example(desired: pingsix_sink::Desired) -> Result<(), Box<dyn std::error::Error>> {
//! use pingsix_sink::Sink;
//! use pingsix_sink::etcd::{ClientTls, EtcdSink};
//!
//! let sink = EtcdSink::builder(["etcd-0.etcd:2379", "etcd-1.etcd:2379"])
//!     .tls(ClientTls::ca_file("/tls/ca.crt"))
//!     .credentials("gateway", "password")
//!     .build()?;
//! sink.publish(&desired).await?;
//! # Ok(())
//! # }
//! ```

mod batch;
mod builder;
mod client;
mod drift;
mod endpoints;
mod error;
mod fence;
mod mark;
mod reader;
mod scope_state;
mod scope_writer;
mod single_connection;
mod target;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use builder::Builder;
pub use error::EtcdError;
pub use reader::{EtcdReader, KeyValues};
pub use target::ETCD_PASSWORD_VARIABLE;
pub(crate) use target::EtcdTarget;

use crate::backoff::Backoff;
pub use crate::client_tls::ClientTls;
use crate::desired::{Desired, DocumentSet, Scope};
use crate::error::SinkError;
use crate::resource::{Keyring, opened};
use crate::sink::{Published, Sink};
use batch::Limits;
use client::Client;
use drift::Drift;
use fence::Term;
use scope_state::ScopeState;
use scope_writer::ScopeWriter;

/// The guard key inside a scope, by which writers detect each other.
const GUARD: &str = ".pingsix_graph_revision";

/// The key inside a scope with the name of its publisher.
const PUBLISHER: &str = ".pingsix_sink_publisher";

/// Publishes to an etcd cluster; dropping it ends its watches.
pub struct EtcdSink {
    client: Arc<Client>,
    limits: Limits,
    keyring: Option<Keyring>,
    is_watching: bool,
    drift: Arc<Drift>,
    publisher: Arc<OnceLock<Bytes>>,
    term: Arc<Term>,
    scopes: Mutex<BTreeMap<Scope, FollowedScope>>,
}

/// A scope and its watch.
struct FollowedScope {
    scope_writer: Arc<ScopeWriter>,
    _watch: DropGuard,
}

impl fmt::Debug for EtcdSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdSink")
            .field("client", &self.client)
            .field("limits", &self.limits)
            .field("scopes", &self.scopes.lock().keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl EtcdSink {
    /// Options of a sink for a cluster with these endpoints: `host:port`, or a URL with `http` or `https`.
    pub fn builder<E: Into<String>>(endpoints: impl IntoIterator<Item = E>) -> Builder {
        Builder::new(endpoints)
    }

    fn of(client: Arc<Client>, limits: Limits, keyring: Option<Keyring>, is_watching: bool) -> Self {
        let (drift, publisher, scopes) = (Arc::new(Drift::new()), Arc::default(), Mutex::default());
        Self { client, limits, keyring, is_watching, drift, publisher, term: Arc::default(), scopes }
    }

    /// The published scopes that another writer has changed, with notification of changes.
    ///
    /// A scope leaves the set when it is published again or another writer restores it.
    pub fn drift(&self) -> watch::Receiver<BTreeSet<Scope>> {
        self.drift.subscribe()
    }

    /// The published documents of `scope`, by this sink or an earlier one, as they are in etcd, decrypted as far as
    /// the keyring allows. With [`differences`](crate::difference::differences) they show the changes of a
    /// publication. Owners are not recorded. The call neither writes nor starts a watch.
    ///
    /// # Errors
    /// [`EtcdError`] when etcd cannot be read.
    pub async fn documents(&self, scope: &Scope) -> Result<DocumentSet, SinkError> {
        let list = self.client.list(scope).await?;
        let documents = ScopeState::of(scope, &list).documents();
        Ok(match &self.keyring {
            Some(keyring) => opened(keyring, &documents),
            None => documents,
        })
    }

    /// The keys under `scope` that the sink did not write and PingSIX reads; PingSIX may refuse the scope because of
    /// them. Empty before the first publication.
    pub async fn foreign(&self, scope: &Scope) -> BTreeSet<String> {
        let scope_writer = self.scopes.lock().get(scope).map(|kept| Arc::clone(&kept.scope_writer));
        match scope_writer {
            Some(scope_writer) => scope_writer.foreign().await,
            None => BTreeSet::new(),
        }
    }

    /// Ends the watch of a scope that will not be published again. Its documents stay.
    pub fn forget(&self, scope: &Scope) {
        self.scopes.lock().remove(scope);
        self.drift.set(scope, false);
    }

    /// The keeper of a scope, whose watch starts with the first publication.
    fn scope_writer(&self, scope: &Scope) -> Result<Arc<ScopeWriter>, SinkError> {
        let mut scopes = self.scopes.lock();
        if let Some(kept) = scopes.get(scope) {
            return Ok(Arc::clone(&kept.scope_writer));
        }
        scope.check_overlap(scopes.keys())?;
        let (client, drift) = (Arc::clone(&self.client), Arc::clone(&self.drift));
        let (limits, claims) = (self.limits, (Arc::clone(&self.publisher), Arc::clone(&self.term)));
        let scope_writer =
            ScopeWriter::new(scope.clone(), client, drift, claims, limits, self.keyring.clone());
        let scope_writer = Arc::new(scope_writer);
        let ended = CancellationToken::new();
        if self.is_watching {
            let following = follow(Arc::clone(&scope_writer), scope.clone());
            tokio::spawn(ended.clone().run_until_cancelled_owned(following));
        }
        scopes.insert(
            scope.clone(),
            FollowedScope { scope_writer: Arc::clone(&scope_writer), _watch: ended.drop_guard() },
        );
        Ok(scope_writer)
    }
}

impl Sink for EtcdSink {
    /// Returns after etcd has committed all transactions; watching clients are then notified.
    ///
    /// # Errors
    /// [`EtcdError`]; the documents written before stay, a valid prefix of the plan.
    async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        self.scope_writer(desired.scope())?.publish(desired).await
    }

    fn drifted(&self) -> Option<watch::Receiver<BTreeSet<Scope>>> {
        self.is_watching.then(|| self.drift())
    }

    fn forget(&self, scope: &Scope) {
        Self::forget(self, scope);
    }

    fn publish_as(&self, publisher: &str) {
        // The first name counts.
        let _ = self.publisher.set(Bytes::copy_from_slice(publisher.as_bytes()));
    }

    fn fence(&self, term: u64) {
        self.term.raise(term);
    }

    /// The user needs to read all keys below `root`.
    async fn own_scopes(&self, root: &Scope) -> Result<BTreeSet<Scope>, SinkError> {
        let Some(publisher) = self.publisher.get() else { return Ok(BTreeSet::new()) };
        let mut own = BTreeSet::new();
        for key in self.client.keys(root, PUBLISHER).await? {
            if self.client.get(root, key.clone()).await?.as_ref() != Some(publisher) {
                continue;
            }
            let prefix =
                std::str::from_utf8(&key).ok().and_then(|key| key.strip_suffix(PUBLISHER)?.strip_suffix('/'));
            own.extend(prefix.map(Scope::new).transpose()?);
        }
        Ok(own)
    }
}

/// Watches a scope without end.
async fn follow(scope_writer: Arc<ScopeWriter>, scope: Scope) {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
    let mut is_failing = false;
    loop {
        match scope_writer.follow(&mut backoff).await {
            Ok(()) => is_failing = false,
            // Logged once, because publications fail as well and report to their callers.
            Err(error) if !is_failing => {
                is_failing = true;
                tracing::warn!(%scope, %error, "the watch of the scope failed; retrying");
            }
            Err(error) => tracing::debug!(%scope, %error, "the scope cannot be watched yet"),
        }
        backoff.pause().await;
    }
}
