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

use super::peer::{Peer, UNREAD_BYTES_PER_CONNECTION};
use super::unread_bytes::{UnreadBytes, UnreadGuard};

/// A response up to this size may stay unread as long as its connection lasts.
const SMALL_RESPONSE_BYTES: usize = 4 * 1024;

/// The slowest rate of a client that counts as reading, in bytes per second.
const MIN_READ_RATE: usize = 64 * 1024;

/// The pending responses of a server.
#[derive(Debug)]
pub(super) struct PendingResponses {
    unread: UnreadBytes,
    /// Timeout of an unread response, besides the time for reading it.
    stall_timeout: Duration,
}

/// The room of a response on its connection.
#[derive(Debug)]
pub(super) struct ResponseRoom(
    #[expect(dead_code, reason = "held until the response is written")] OwnedSemaphorePermit,
);

/// A response that is not written yet.
struct PendingResponse {
    bytes: Bytes,
    _counted: UnreadGuard,
    _room: ResponseRoom,
    _written: oneshot::Sender<()>,
}

impl PendingResponses {
    pub(super) fn new(stall_timeout: Duration, unread: UnreadBytes) -> Self {
        Self { unread, stall_timeout }
    }

    /// Room for a response of so many bytes, if there is any now.
    pub(super) fn try_reserve(peer: &Peer, bytes: usize) -> Option<ResponseRoom> {
        Arc::clone(peer.room()).try_acquire_many_owned(Self::permits(bytes)).ok().map(ResponseRoom)
    }

    /// Waits for room until a timeout.
    pub(super) async fn wait_for_room(&self, peer: &Peer, bytes: usize) -> Result<ResponseRoom, Status> {
        let waiting = Arc::clone(peer.room()).acquire_many_owned(Self::permits(bytes));
        match timeout(self.stall_timeout, waiting).await {
            Ok(Ok(room)) => Ok(ResponseRoom(room)),
            // etcd's message under overload.
            Ok(Err(_)) | Err(_) => Err(Status::resource_exhausted("etcdserver: too many requests")),
        }
    }

    /// The permits of a response. The largest responses take all of a connection.
    fn permits(bytes: usize) -> u32 {
        u32::try_from(bytes.min(UNREAD_BYTES_PER_CONNECTION)).unwrap_or(u32::MAX)
    }

    /// A response that takes room until it is written. `stalled` is called when a connection is closed because its
    /// client left the response unread.
    pub(super) fn track(
        &self,
        peer: &Peer,
        bytes: Bytes,
        wait_for_room: ResponseRoom,
        stalled: impl FnOnce() + Send + 'static,
    ) -> Bytes {
        let (sender, written) = oneshot::channel();
        let close = peer.close_token();
        let counted = self.unread.count(&bytes, close.clone());
        if bytes.len() > SMALL_RESPONSE_BYTES {
            let to_read = Duration::from_secs((bytes.len() / MIN_READ_RATE) as u64);
            let limit = self.stall_timeout.saturating_add(to_read);
            tokio::spawn(close_if_unread(written, limit, close, stalled));
        }
        Bytes::from_owner(PendingResponse {
            bytes,
            _counted: counted,
            _room: wait_for_room,
            _written: sender,
        })
    }
}

async fn close_if_unread(
    written: oneshot::Receiver<()>,
    limit: Duration,
    close: CancellationToken,
    stalled: impl FnOnce(),
) {
    // The channel only closes: the sender is dropped with the response.
    if timeout(limit, written).await.is_err() {
        stalled();
        close.cancel();
    }
}

impl AsRef<[u8]> for PendingResponse {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
