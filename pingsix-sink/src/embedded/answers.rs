//! Answers that their clients have not read yet.
//!
//! HTTP/2 keeps an answer until its client has read it, and a client may ask for a hundred at a time and read none. So an
//! answer is made only when there is room for it on its connection. What waits for room is a request, which is small. Room
//! comes back when HTTP/2 has written the answer, or never will; a client that leaves a large one unread loses its
//! connection. An honest one notices nothing: it reads, so that the next answer has its turn. All answers of a server are
//! within one bound with what watches are told ([`Unread`]).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::LIST_LIMIT;
use super::connection::Peer;
use super::unread::{Counted, Unread};

/// How many bytes of answers one connection has unread: several of the largest lists that PingSIX can read.
pub(super) const PER_CONNECTION: usize = 4 * LIST_LIMIT;

/// An answer up to this size may stay unread for as long as its connection lasts.
const SMALL: usize = 4 * 1024;

/// A client that reads more slowly than this many bytes a second does not count as reading.
const SLOWEST: usize = 64 * 1024;

/// All answers of a server.
#[derive(Debug)]
pub(super) struct Answers {
    unread: Unread,
    /// How long one may be unread, besides the time that it takes to be read.
    patience: Duration,
}

/// The room that an answer takes on its connection.
#[derive(Debug)]
pub(super) struct Room {
    _of_connection: Option<OwnedSemaphorePermit>,
}

/// An answer that is not written yet.
struct Unwritten {
    bytes: Bytes,
    _counted: Counted,
    _room: Room,
    _written: oneshot::Sender<()>,
}

impl Answers {
    pub(super) fn new(patience: Duration, unread: Unread) -> Self {
        Self { unread, patience }
    }

    /// Room for an answer of so many bytes, if there is any now.
    pub(super) fn try_room(peer: Option<&Peer>, bytes: usize) -> Option<Room> {
        let take = |peer: &Peer| Arc::clone(peer.room()).try_acquire_many_owned(Self::permits(bytes));
        Some(Room { _of_connection: peer.map(take).transpose().ok()? })
    }

    /// Waits for room, for a while.
    pub(super) async fn room(&self, peer: Option<&Peer>, bytes: usize) -> Result<Room, Status> {
        let waiting = async {
            let of_connection = match peer {
                Some(peer) => Arc::clone(peer.room()).acquire_many_owned(Self::permits(bytes)).await.ok(),
                None => None,
            };
            Room { _of_connection: of_connection }
        };
        // As etcd says it when it has too much to do.
        let too_many = |_| Status::resource_exhausted("etcdserver: too many requests");
        timeout(self.patience, waiting).await.map_err(too_many)
    }

    /// What a connection has to have room for. The largest answers need all of it.
    fn permits(bytes: usize) -> u32 {
        u32::try_from(bytes.min(PER_CONNECTION)).unwrap_or(u32::MAX)
    }

    /// An answer that takes room until it is written. A connection that leaves it unread is closed, and `stalled` is told.
    pub(super) fn unwritten(
        &self,
        peer: Option<&Peer>,
        bytes: Bytes,
        room: Room,
        stalled: impl FnOnce() + Send + 'static,
    ) -> Bytes {
        let (sender, written) = oneshot::channel();
        let cut = peer.map_or_else(CancellationToken::new, Peer::to_cut);
        let counted = self.unread.count(&bytes, cut.clone());
        if bytes.len() > SMALL {
            let to_read = Duration::from_secs((bytes.len() / SLOWEST) as u64);
            let limit = self.patience.saturating_add(to_read);
            tokio::spawn(cut_if_unread(written, limit, cut, stalled));
        }
        Bytes::from_owner(Unwritten { bytes, _counted: counted, _room: room, _written: sender })
    }
}

async fn cut_if_unread(
    written: oneshot::Receiver<()>,
    limit: Duration,
    cut: CancellationToken,
    stalled: impl FnOnce(),
) {
    // Nothing is ever sent: the other end is dropped.
    if timeout(limit, written).await.is_err() {
        stalled();
        cut.cancel();
    }
}

impl AsRef<[u8]> for Unwritten {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
