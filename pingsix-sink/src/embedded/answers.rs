//! Answers that their clients have not read yet.
//!
//! HTTP/2 keeps an answer until its client has read it, and a client may ask for a hundred at a time and read none. So an
//! answer is made only when there is room for it: on its connection, and, unless it is a list whose bytes all clients share,
//! in all. What waits for room is a request, which is small. Room comes back when HTTP/2 has written the answer, or never
//! will; a client that leaves a large one unread loses its connection. An honest one notices nothing: it reads, so that the
//! next answer has its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::LIST_LIMIT;
use super::connection::Peer;

/// How many bytes of answers one connection has unread: several of the largest lists that PingSIX can read.
pub(super) const PER_CONNECTION: usize = 4 * LIST_LIMIT;

/// How many bytes all of them have unread that are not shared.
pub(super) const IN_ALL: usize = 64 * LIST_LIMIT;

/// An answer up to this size counts on its connection alone, and may stay unread.
const SMALL: usize = 4 * 1024;

/// A client that reads more slowly than this many bytes a second does not count as reading.
const SLOWEST: usize = 64 * 1024;

/// Whose the bytes of an answer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bytewise {
    /// They were made for one client.
    Own,
    /// They are those of whoever else asks for the same.
    Shared,
}

/// All answers of a server.
#[derive(Debug)]
pub(super) struct Answers {
    room: Arc<Semaphore>,
    unread: Arc<AtomicU64>,
    /// How long one may be unread, besides the time that it takes to be read.
    patience: Duration,
}

/// The room that an answer takes.
#[derive(Debug)]
pub(super) struct Room {
    _of_connection: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

/// An answer that is not written yet.
struct Unread {
    bytes: Bytes,
    count: Arc<AtomicU64>,
    _room: Room,
    _written: oneshot::Sender<()>,
}

impl Answers {
    pub(super) fn new(patience: Duration) -> Self {
        Self { room: Arc::new(Semaphore::new(IN_ALL)), unread: Arc::default(), patience }
    }

    /// The bytes of answers that were made and not written.
    pub(super) fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    /// Room for an answer of so many bytes, if there is any now.
    pub(super) fn try_room(&self, peer: Option<&Peer>, bytes: usize, bytewise: Bytewise) -> Option<Room> {
        let take = |(room, bytes): (&Arc<Semaphore>, u32)| Arc::clone(room).try_acquire_many_owned(bytes);
        let of_connection = Self::of_connection(peer, bytes).map(take).transpose().ok()?;
        let of_all = self.of_all(bytes, bytewise).map(take).transpose().ok()?;
        Some(Room { _of_connection: of_connection, _of_all: of_all })
    }

    /// Waits for room, for a while.
    pub(super) async fn room(
        &self,
        peer: Option<&Peer>,
        bytes: usize,
        bytewise: Bytewise,
    ) -> Result<Room, Status> {
        let waiting = async {
            let (mut of_connection, mut of_all) = (None, None);
            // In this order: who waits for its own client keeps nothing from others.
            if let Some((own, bytes)) = Self::of_connection(peer, bytes) {
                of_connection = Arc::clone(own).acquire_many_owned(bytes).await.ok();
            }
            if let Some((all, bytes)) = self.of_all(bytes, bytewise) {
                of_all = Arc::clone(all).acquire_many_owned(bytes).await.ok();
            }
            Room { _of_connection: of_connection, _of_all: of_all }
        };
        // As etcd says it when it has too much to do.
        let too_many = |_| Status::resource_exhausted("etcdserver: too many requests");
        timeout(self.patience, waiting).await.map_err(too_many)
    }

    /// What a connection has to have room for. The largest answers need all of it.
    fn of_connection(peer: Option<&Peer>, bytes: usize) -> Option<(&Arc<Semaphore>, u32)> {
        peer.map(|peer| (peer.room(), u32::try_from(bytes.min(PER_CONNECTION)).unwrap_or(u32::MAX)))
    }

    fn of_all(&self, bytes: usize, bytewise: Bytewise) -> Option<(&Arc<Semaphore>, u32)> {
        let counts = bytewise == Bytewise::Own && bytes > SMALL;
        counts.then(|| (&self.room, u32::try_from(bytes.min(IN_ALL)).unwrap_or(u32::MAX)))
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
        self.unread.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if let Some(peer) = peer.filter(|_| bytes.len() > SMALL) {
            let to_read = Duration::from_secs((bytes.len() / SLOWEST) as u64);
            let limit = self.patience.saturating_add(to_read);
            tokio::spawn(cut_if_unread(written, limit, peer.to_cut(), stalled));
        }
        let count = Arc::clone(&self.unread);
        Bytes::from_owner(Unread { bytes, count, _room: room, _written: sender })
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

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.count.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_shared_needs_no_room_that_others_have_taken() {
        let answers = Answers::new(Duration::from_secs(30));
        let all = answers.try_room(None, 2 * IN_ALL, Bytewise::Own).unwrap();
        assert!(answers.try_room(None, SMALL + 1, Bytewise::Own).is_none());
        assert!(answers.try_room(None, LIST_LIMIT, Bytewise::Shared).is_some());
        assert!(answers.try_room(None, SMALL, Bytewise::Own).is_some());
        let refused = answers.room(None, LIST_LIMIT, Bytewise::Own).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        let bytes = answers.unwritten(None, Bytes::from_static(b"all"), all, || ());
        assert_eq!((&*bytes, answers.unread()), (&b"all"[..], 3));
        drop(bytes);
        assert_eq!(answers.unread(), 0);
        assert!(answers.try_room(None, IN_ALL, Bytewise::Own).is_some());
    }
}
