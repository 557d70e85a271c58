//! Buffers that are shared by all connections.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;

/// The size of a buffer.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;
/// The most unused buffers that are kept: 4 MiB.
const MAX_UNUSED_BUFFERS: usize = 256;

type Storage = Box<[u8]>;

/// A pool of buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Storage>>>);

#[cfg(test)]
impl Buffers {
    /// The number of buffers in use.
    pub(super) fn lent(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

impl Buffers {
    /// A buffer of [`BUFFER_BYTES`] bytes, of any content.
    pub(super) fn take(&self) -> Buffer {
        let kept = self.0.lock().pop();
        Buffer { storage: kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into()), pool: self.clone() }
    }
}

/// A buffer that goes back to its pool.
#[derive(Debug)]
pub(in super::super) struct Buffer {
    storage: Storage,
    pool: Buffers,
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.storage
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.storage
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut kept = self.pool.0.lock();
        if kept.len() < MAX_UNUSED_BUFFERS {
            kept.push(std::mem::take(&mut self.storage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_few_are_kept() {
        let pool = Buffers::default();
        let first = pool.take();
        let place = first.as_ptr();
        drop(first);
        assert_eq!(pool.take().as_ptr(), place);
        let many: Vec<_> = (0..MAX_UNUSED_BUFFERS + 10).map(|_| pool.take()).collect();
        assert!(many.iter().all(|buffer| buffer.len() == BUFFER_BYTES));
        drop(many);
        assert_eq!(pool.0.lock().len(), MAX_UNUSED_BUFFERS);
    }
}
