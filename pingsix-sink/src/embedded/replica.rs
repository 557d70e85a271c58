//! The state that publications write and connections read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Mutex as AsyncMutex;

use super::access::LiveAccess;
use super::batch::{BATCH_CACHE_BYTES, BatchCache};
use super::fair_limit::FairLimit;
use super::log_limiter::LogLimiter;
use super::options::Options;
use super::publication::{commits, split};
use super::readers::Readers;
use super::responses::PendingResponses;
use super::revisions::{Clock, Reservations, ReserveError, RevisionAllocator};
use super::shared_cache::SharedCache;
use super::stats::{Counters, Stats};
use super::store::{EVENT_OVERHEAD, KeyRange, Store};
use super::tls::LiveTls;
use super::unread_bytes::UnreadBytes;
use super::{EmbeddedError, LIST_LIMIT};
use crate::desired::{Desired, DocumentSet, Scope};
use crate::error::SinkError;
use crate::plan::{Changed, plan};
use crate::revision::Revision;
use crate::sink::Published;

/// Watch streams per allowed connection. One client may have more.
const STREAMS_PER_CONNECTION: usize = 4;

/// Cache of plain lists, by their range and the revision of its last change. A list above the byte limit is `None`.
pub(super) type ListCache = SharedCache<(KeyRange, i64), Option<Bytes>>;

/// Byte limit of the cached lists: two full ones.
pub(super) const LIST_CACHE_BYTES: usize = 2 * LIST_LIMIT;

pub(super) struct Replica {
    /// Held by a publication from its first attempt to its commit. A later publication must not overtake a
    /// publication that waits for revisions, which would then replace the later one.
    publishing: AsyncMutex<()>,
    /// The last publication of each scope. The lock order is this lock, then the store's.
    published: Mutex<BTreeMap<Scope, PublishedScope>>,
    store: RwLock<Store>,
    allocator: RevisionAllocator,
    pub(super) options: Options,
    pub(super) tls: Option<Arc<LiveTls>>,
    pub(super) access: Arc<LiveAccess>,
    pub(super) responses: PendingResponses,
    pub(super) unread: UnreadBytes,
    pub(super) counters: Arc<Counters>,
    pub(super) connections: FairLimit,
    pub(super) streams: FairLimit,
    pub(super) watches: FairLimit,
    pub(super) readers: Readers,
    /// The share of one core for the responses of a scope, in percent, where it is below 100.
    cpu_limits: Mutex<BTreeMap<Scope, u8>>,
    pub(super) batches: BatchCache,
    pub(super) lists: ListCache,
    /// Log messages about connections.
    pub(super) log_limiter: LogLimiter,
}

#[derive(Debug)]
struct PublishedScope {
    documents: DocumentSet,
    revision: Revision,
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica")
            .field("options", &self.options)
            .field("tls", &self.tls)
            .field("access", &self.access)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Replica {
    pub(super) fn new(
        store: Store,
        reservations: Arc<dyn Reservations>,
        clock: Arc<dyn Clock>,
        options: Options,
        tls: Option<Arc<LiveTls>>,
        access: Arc<LiveAccess>,
    ) -> Self {
        let counters = Arc::<Counters>::default();
        let unread = UnreadBytes::new(options.unread_limit, Arc::clone(&counters));
        let fair_limit = |limit| FairLimit::new(limit, Arc::clone(&counters));
        Self {
            publishing: AsyncMutex::default(),
            published: Mutex::default(),
            store: RwLock::new(store),
            allocator: RevisionAllocator::new(reservations, clock, Arc::clone(&counters)),
            options,
            tls,
            access,
            responses: PendingResponses::new(options.stall_timeout, unread.clone()),
            unread,
            connections: fair_limit(options.connection_limit),
            streams: fair_limit(options.connection_limit.saturating_mul(STREAMS_PER_CONNECTION)),
            watches: fair_limit(options.watch_limit),
            counters,
            readers: Readers::default(),
            cpu_limits: Mutex::default(),
            batches: BatchCache::new(BATCH_CACHE_BYTES),
            lists: ListCache::new(LIST_CACHE_BYTES),
            log_limiter: LogLimiter::default(),
        }
    }

    /// Reads the current store. A publication does not wait for `read` to end and does not change the store that
    /// `read` sees.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Store) -> T) -> T {
        let store = self.store.read().clone();
        read(&store)
    }

    pub(super) fn open(&self) {
        let _held = self.published.lock();
        self.store.write().complete();
    }

    pub(super) fn documents(&self, scope: &Scope) -> Option<DocumentSet> {
        self.published.lock().get(scope).map(|published| published.documents.clone())
    }

    pub(super) async fn publish(&self, desired: &Desired) -> Result<Published, SinkError> {
        let _publishing = self.publishing.lock().await;
        let passes = self.access.begin_transfer(desired);
        if passes {
            self.close_disowned(desired);
        }
        let published = loop {
            if let Some(published) = self.try_publish(desired)? {
                break published;
            }
            let next = self.next_revision().map_err(EmbeddedError::from)?;
            let block = self.allocator.take(next).await.map_err(EmbeddedError::from)?;
            let _held = self.published.lock();
            self.store.write().extend(block);
        };
        if passes {
            self.access.complete_transfer(desired);
        }
        Ok(published)
    }

    /// Makes the intervals of the watches of a scope longer.
    pub(super) fn limit_cpu(&self, scope: &Scope, percent: u8) {
        let mut limits = self.cpu_limits.lock();
        if percent < 100 {
            limits.insert(scope.clone(), percent);
        } else {
            limits.remove(scope);
        }
    }

    /// The interval between the responses to a watch of a range. The lowest limit of its scopes counts.
    pub(super) fn interval(&self, store: &Store, range: &KeyRange) -> Duration {
        let lowest = {
            let limits = self.cpu_limits.lock();
            store.scopes_of(range).filter_map(|scope| limits.get(scope)).min().copied()
        };
        self.options.pace.of(store.size_of_range(range), lowest.unwrap_or(100))
    }

    /// Closes the connections of other owners of the scope before they could read this publication.
    fn close_disowned(&self, desired: &Desired) {
        let Some(tls) = &self.tls else { return };
        let closed = tls.certificate_connections().close_disowned(desired.scope(), desired.owner());
        if closed > 0 {
            self.counters.update(|stats| stats.connections_lapsed += closed as u64);
            let scope = desired.scope();
            tracing::info!(%scope, closed, "connections closed: their certificates name another owner of the prefix");
        }
    }

    /// Publishes; `None` if too few revisions are reserved.
    fn try_publish(&self, desired: &Desired) -> Result<Option<Published>, SinkError> {
        let scope = desired.scope();
        let mut published = self.published.lock();
        let current = published.get(scope);
        if current.is_none() {
            scope.check_overlap(published.keys())?;
        }
        let nothing = DocumentSet::default();
        let documents = current.map_or(&nothing, |published| &published.documents);
        let steps = plan(documents, desired.documents());
        // The subtracted room is for the header of the response.
        let limit = self.options.response_limit.saturating_sub(2 * EVENT_OVERHEAD);
        let (steps, parts) = split(scope, steps, documents, limit)?;

        let mut store = self.store.read().clone();
        let Some(revisions) = store.next_revisions(parts.len()) else { return Ok(None) };
        store.add_scope(scope);
        store.commit(scope, &commits(&steps, &parts, revisions));
        let changed = Changed::of(&steps);
        let header = Revision::new(store.header()).unwrap_or(Revision::MIN);
        let revision = current.filter(|_| changed.is_empty()).map_or(header, |published| published.revision);
        let size = store.size_of(scope).unwrap_or_default();
        // This call holds the lock of the published scopes, so the store has not changed meanwhile.
        let before = std::mem::replace(&mut *self.store.write(), store);
        published.insert(scope.clone(), PublishedScope { documents: desired.documents().clone(), revision });
        drop(published);
        drop(before);
        if !changed.is_empty() {
            self.counters.update(|stats| stats.publications += 1);
            self.readers.wake(scope);
            report(scope, revision, changed, parts.len(), size.bytes);
        }
        Ok(Some(Published { revision, changed }))
    }

    fn next_revision(&self) -> Result<Revision, ReserveError> {
        let header = self.read(Store::header);
        header.checked_add(1).and_then(Revision::new).ok_or(ReserveError::Exhausted)
    }

    /// Raises the header above every revision that any server may have issued.
    pub(super) async fn fence(&self) -> Result<(), ReserveError> {
        if self.allocator.shared().is_none() {
            return Ok(());
        }
        let fence = async {
            let block = self.allocator.take(self.next_revision()?).await?;
            let _held = self.published.lock();
            let mut store = self.store.write();
            store.extend(block);
            store.raise(block.first.get());
            Ok(())
        };
        self.allocator.fenced(fence).await
    }

    /// Whether this server issued the list that a watch from `start` continues, or knows that the changes since are
    /// compacted. A start after any other list, or after none, changes nothing here: see
    /// [`revisions`](super::revisions).
    pub(super) fn has_listed_before(&self, start: i64) -> bool {
        self.read(|store| start < store.compacted() || store.has_issued(start.saturating_sub(1)))
    }

    pub(super) fn stats(&self) -> Stats {
        let (revision, compacted, (history_commits, history_bytes)) =
            self.read(|store| (store.header(), store.floor(), store.history_size()));
        Stats {
            connections: self.connections.occupied(),
            streams: self.streams.occupied(),
            watches: self.watches.occupied(),
            answer_bytes_unread: self.unread.bytes() as u64,
            store_away: self.allocator.is_unreachable(),
            revision,
            compacted,
            history_commits: history_commits as u64,
            history_bytes: history_bytes as u64,
            ..self.counters.get()
        }
    }
}

fn report(scope: &Scope, revision: Revision, changed: Changed, responses: usize, bytes: usize) {
    tracing::info!(
        %scope, %revision, changed.created, changed.updated, changed.deleted, responses, bytes,
        "published"
    );
    if bytes > LIST_LIMIT {
        tracing::warn!(%scope, bytes, limit = LIST_LIMIT, "the scope is too large for a list of PingSIX");
    }
}

#[cfg(test)]
mod tests;
