//! The peer of a connection: its client, and everything that is charged to the connection.

mod certificate_connections;

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::LIST_LIMIT;
use super::access::Certificate;
use super::fair_limit::{FairPermit, Holder};
pub(super) use certificate_connections::{CertificateConnections, Lapse};

/// Limit of unread response bytes per connection: several of the largest lists that PingSIX can read.
pub(super) const UNREAD_BYTES_PER_CONNECTION: usize = 4 * LIST_LIMIT;

/// Limit of the watches on all streams of one connection. PingSIX has one.
const WATCHES_PER_CONNECTION: usize = 256;

/// The peer of a connection; each request carries it.
#[derive(Debug)]
pub(super) struct Peer {
    certificate: Option<Certificate>,
    close: CancellationToken,
    /// The client to whom its connection, streams and watches are charged.
    holder: Holder,
    slot: FairPermit,
    /// The room for unread responses.
    room: Arc<Semaphore>,
    /// The room for watches of all its streams.
    watches: Arc<Semaphore>,
}

impl Peer {
    pub(super) fn new(
        certificate: Option<Certificate>,
        holder: Holder,
        slot: FairPermit,
        close: CancellationToken,
    ) -> Self {
        let room = Arc::new(Semaphore::new(UNREAD_BYTES_PER_CONNECTION));
        let watches = Arc::new(Semaphore::new(WATCHES_PER_CONNECTION));
        Self { certificate, close, holder, slot, room, watches }
    }

    /// The client to whom streams and watches are charged.
    pub(super) fn holder(&self) -> Holder {
        self.holder.clone()
    }

    /// The verified client certificate.
    pub(super) fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// The room for responses, in bytes.
    pub(super) const fn room(&self) -> &Arc<Semaphore> {
        &self.room
    }

    /// Counts one more watch; `None` if the connection has too many.
    pub(super) fn try_add_watch(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.watches).try_acquire_owned().ok()
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        self.close.cancel();
    }

    /// The token whose cancellation closes the connection.
    pub(super) fn close_token(&self) -> CancellationToken {
        self.close.clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.close.is_cancelled()
    }

    /// Frees the place of the connection. Requests may still hold the peer of an ended connection.
    pub(super) fn release_slot(&self) {
        self.slot.release();
    }
}
