//! Responses that their clients have not read yet.
//!
//! HTTP/2 keeps a response until its client has read it, and a client may send a hundred requests and read no
//! response. So the server encodes a response only when its connection has room for it. A waiting request is small.
//! Room returns when HTTP/2 has written or dropped the response. A client that leaves a large response unread loses
//! its connection. A client that reads is not affected. All responses of a server share one bound with the responses
//! of watches ([`UnreadBytes`]).

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

/// Limit of unread response bytes per connection: several of the largest lists that PingSIX can read.
pub(super) const PER_CONNECTION: usize = 4 * LIST_LIMIT;

/// A response up to this size may stay unread as long as its connection lasts.
const SMALL: usize = 4 * 1024;

/// The slowest rate of a client that counts as reading, in bytes per second.
const SLOWEST: usize = 64 * 1024;

/// The pending responses of a server.
#[derive(Debug)]
pub(super) struct Answers {
    unread: Unread,
    /// Timeout of an unread response, besides the time for reading it.
    patience: Duration,
}

/// The room of a response on its connection.
#[derive(Debug)]
pub(super) struct Room {
    _of_connection: Option<OwnedSemaphorePermit>,
}

/// A response that is not written yet.
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

    /// Room for a response of so many bytes, if there is any now.
    pub(super) fn try_room(peer: Option<&Peer>, bytes: usize) -> Option<Room> {
        let take = |peer: &Peer| Arc::clone(peer.room()).try_acquire_many_owned(Self::permits(bytes));
        Some(Room { _of_connection: peer.map(take).transpose().ok()? })
    }

    /// Waits for room until a timeout.
    pub(super) async fn room(&self, peer: Option<&Peer>, bytes: usize) -> Result<Room, Status> {
        let waiting = async {
            let of_connection = match peer {
                Some(peer) => Arc::clone(peer.room()).acquire_many_owned(Self::permits(bytes)).await.ok(),
                None => None,
            };
            Room { _of_connection: of_connection }
        };
        // etcd's message under overload.
        let too_many = |_| Status::resource_exhausted("etcdserver: too many requests");
        timeout(self.patience, waiting).await.map_err(too_many)
    }

    /// The permits of a response. The largest responses take all of a connection.
    fn permits(bytes: usize) -> u32 {
        u32::try_from(bytes.min(PER_CONNECTION)).unwrap_or(u32::MAX)
    }

    /// A response that takes room until it is written. `stalled` is called when a connection is closed because its
    /// client left the response unread.
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
    // The channel only closes: the sender is dropped with the response.
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
