//! One limit for all bytes that the clients of a server have not read yet.
//!
//! HTTP/2 keeps a response until its client has read it. Bytes count from their encoding until HTTP/2 has written
//! them. A buffer that several clients share counts once, until the last of them has read it. Above the limit,
//! connections are closed until the rest is within it. The first one is that of the client with the oldest unread
//! response, regardless of its size. A response counts until it is read to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::stats::Counters;

/// All unread bytes of a server.
#[derive(Clone, Debug)]
pub(super) struct UnreadBytes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    state: Mutex<State>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct State {
    /// The distinct bytes that some client has not read.
    bytes: usize,
    /// Buffers by address.
    buffers: BTreeMap<usize, Buffer>,
    /// Pending reads in the order of their begin.
    reads: BTreeMap<u64, PendingRead>,
    last: u64,
}

/// A buffer that some client has not read.
#[derive(Debug)]
struct Buffer {
    bytes: usize,
    reads: usize,
}

/// A response that one client has not read.
#[derive(Debug)]
struct PendingRead {
    buffer: usize,
    /// Closes the connection.
    close: CancellationToken,
}

/// Bytes that count as unread until this is dropped.
#[derive(Debug)]
pub(super) struct UnreadGuard {
    unread: UnreadBytes,
    id: u64,
}

impl UnreadBytes {
    pub(super) fn new(limit: usize, counters: Arc<Counters>) -> Self {
        Self(Arc::new(Inner { limit, state: Mutex::default(), counters }))
    }

    /// The distinct bytes that some client has not read.
    pub(super) fn bytes(&self) -> usize {
        self.0.state.lock().bytes
    }

    /// Counts bytes that the client of a connection has not read; `close` closes that connection.
    pub(super) fn count(&self, bytes: &Bytes, close: CancellationToken) -> UnreadGuard {
        let mut guard = self.0.state.lock();
        let state = &mut *guard;
        state.last += 1;
        let id = state.last;
        let buffer = bytes.as_ptr().addr();
        let shared = state.buffers.entry(buffer).or_insert(Buffer { bytes: bytes.len(), reads: 0 });
        shared.reads += 1;
        if shared.reads == 1 {
            state.bytes += bytes.len();
        }
        state.reads.insert(id, PendingRead { buffer, close });
        let mut evicted = Vec::new();
        while state.bytes > self.0.limit
            && let Some((_, reading)) = state.reads.pop_first()
        {
            state.release(reading.buffer);
            evicted.push(reading.close);
        }
        drop(guard);
        for close in evicted {
            if !close.is_cancelled() {
                self.0.counters.update(|stats| stats.connections_evicted += 1);
                close.cancel();
            }
        }
        UnreadGuard { unread: self.clone(), id }
    }
}

impl State {
    fn release(&mut self, buffer: usize) {
        let Some(shared) = self.buffers.get_mut(&buffer) else { return };
        shared.reads -= 1;
        if shared.reads == 0 {
            self.bytes -= shared.bytes;
            self.buffers.remove(&buffer);
        }
    }
}

impl Drop for UnreadGuard {
    fn drop(&mut self) {
        let mut state = self.unread.0.state.lock();
        if let Some(reading) = state.reads.remove(&self.id) {
            state.release(reading.buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer_of(bytes: usize) -> Bytes {
        Bytes::from(vec![0; bytes])
    }

    #[test]
    fn shared_bytes_count_once_until_the_last_client_has_read_them() {
        let unread = UnreadBytes::new(100, Arc::default());
        let (shared, own) = (buffer_of(60), buffer_of(30));
        let one = unread.count(&shared, CancellationToken::new());
        let other = unread.count(&shared.clone(), CancellationToken::new());
        let third = unread.count(&own, CancellationToken::new());
        assert_eq!(unread.bytes(), 90);
        drop(one);
        assert_eq!(unread.bytes(), 90);
        drop((other, third));
        assert_eq!((unread.bytes(), unread.0.counters.get().connections_evicted), (0, 0));
        assert!(unread.0.state.lock().buffers.is_empty());
    }

    #[test]
    fn above_the_limit_the_slowest_readers_are_closed() {
        let unread = UnreadBytes::new(100, Arc::default());
        let cuts: Vec<_> = (0..4).map(|_| CancellationToken::new()).collect();
        let are_cut = || cuts.iter().map(CancellationToken::is_cancelled).collect::<Vec<_>>();
        let shared = buffer_of(50);
        let buffers = [buffer_of(20), shared.clone(), buffer_of(20), shared];
        let mut counted: Vec<_> =
            buffers.iter().zip(&cuts).map(|(bytes, close)| unread.count(bytes, close.clone())).collect();
        assert_eq!((unread.bytes(), are_cut()), (90, vec![false; 4]));
        // A client that has read everything is not the slowest, however old its connection is.
        drop(counted.remove(0));
        let last = CancellationToken::new();
        let more = buffer_of(80);
        let counted_last = unread.count(&more, last.clone());
        assert_eq!((unread.bytes(), unread.0.counters.get().connections_evicted), (80, 3));
        assert_eq!((are_cut(), last.is_cancelled()), (vec![false, true, true, true], false));
        drop((counted, counted_last));
        assert_eq!(unread.bytes(), 0);
    }
}
