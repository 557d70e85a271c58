//! Revisions: their sources, and why they never decrease.
//!
//! A PingSIX that reads a lower header revision than it has seen drops the response silently. So the numbers of a
//! server must lie above all numbers that earlier and concurrent servers have issued. Two sources work together, and
//! neither is trusted alone:
//!
//! 1. **Reservations.** Every issued number lies in a [`Block`] that was reserved before from a [`Reservations`]
//!    store, which has the highest reserved number on disk *before* it returns the block. Let `r` be any number that
//!    a client has seen; `r` lies in some block, so the store's ceiling was at least `r` before `r` was used. A
//!    starting server takes its first number from a block above the ceiling, hence above `r`. A crash loses only the
//!    rest of a block: the numbers have gaps, as etcd's may.
//! 2. **The clock.** The first block of a server that owns its store starts no lower than the microseconds since
//!    1970. This covers a store that was lost or restored from an old copy, provided that the clock has not gone back
//!    further than the publications went ahead (one publication takes one number, and takes longer than a
//!    microsecond). Without a state file this source stands alone, and the server logs that at its start.
//!    Microseconds stay below 2^53 until the year 2255, so tools that read JSON numbers as floats show them exactly.
//!
//! **Clients are no source.** The start of a watch neither raises the header nor reserves numbers, because a client
//! may invent it. A watch that starts above the header is cancelled as compacted, so its client lists again. That
//! list is answered above all numbers that this server, and the servers with the same store, have issued. PingSIX
//! always lists before it watches, and starts its watch right after that list: raising the header for the watch would
//! come too late.
//!
//! The header revision may therefore exceed that of every stored key. Every later event exceeds every issued header,
//! because both come from one counter under the store's lock.
//!
//! **Several servers for the same scopes.** A store that they share ([`Reservations::shared`]) must return each block
//! above all earlier blocks. A server then reserves a fresh block for every list and answers with a number from it.
//! That number is above all headers and events that any server has issued so far, because all of those lie in earlier
//! blocks. Waiting lists share a reservation: all that arrived before its request use its numbers. A starting server
//! issues nothing before its first reservation, so it can start while the store is unreachable.
//!
//! **While the store is unreachable**, lists are answered by [`SharedTime`]: a revision that grows by one in a
//! microsecond, of which every server has a reading. Only a shared time orders servers without communication. A
//! reading advances by the monotonic clock of its machine, and never falls below the server's own reservations, nor
//! below observed readings and reservations of others. So readings agree up to the latency of announcements,
//! independent of the times of day. Let `d` be the [tolerance](SharedTime::tolerance) of a server. A list without a
//! reservation within `2.5 d` is answered after that time, with a number between `d` and `1.5 d` above the reading at
//! its arrival. If readings differ by less than `d`:
//!
//! - the number is above all numbers that any server issued before the arrival: no reservation exceeds the reading of
//!   its server by more than a block, and other unreserved lists arrived `2.5 d` before their answers;
//! - the number is below all numbers that any server issues after the answer: reservations start no lower than the
//!   reading of their server, and all readings have passed the number by then.
//!
//! An announcement later than `d` breaks this until it arrives, and not again: `d` then becomes its latency, on both
//! servers.
//!
//! The same holds where some servers reach the store and others do not, and when they reach it again. Publications
//! and watches get their numbers in the same way. A client may miss changes until it lists again in the remaining
//! case: the store is unreachable *and* readings disagree. Readings disagree on a server that has observed neither
//! another server nor the store since its start, after a suspended machine, and after hours on machines with drifting
//! clocks. Numbers may also repeat when all servers of an outage end in it and their successors have slower clocks.
//! Even then, events of a server exceed the headers of that server.
//!
//! Two servers never issue the same number, so each number identifies its server, and does not order changes across
//! servers: a change with number 90 on one server may have 110 on another, and a client that listed there at 100 has
//! not seen it. A watch continues its list, so it may start only at a number of this server. A start at any other
//! number, also one from before a restart, is answered as compacted, and the client lists again until it lists and
//! watches on the same server. If every request may reach another of `n` servers, that takes `n` lists on average; if
//! a connection stays with one server, the first is enough.
//!
//! Servers that lag behind one another each serve a state that is right. A client that moves to a lagging server sees
//! an older state under a higher number until that server has caught up; it never loses a change that it has seen
//! afterwards.
//!
//! Servers *without* a shared store issue the same numbers, which clients cannot distinguish. Let clients read from
//! one of them at a time.

mod allocator;
mod file;
mod shared;

use std::path::PathBuf;
use std::pin::Pin;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::revision::Revision;

pub(super) use allocator::RevisionAllocator;
pub(super) use file::FileReservations;
pub use shared::{MAX_TOLERANCE, SharedTime, TOLERANCE};

/// Size of a reservation by a server that owns its store: a little more than a minute of the clock.
pub(super) const BLOCK_LEN: u32 = 1 << 26;

/// Size of a reservation from a shared store: four milliseconds of [`SharedTime`], which reservations must not
/// outrun.
pub(super) const SHARED_BLOCK_LEN: u32 = 1 << 12;

/// The last plausible clock, in microseconds. A later clock is broken and ignored.
const LAST_PLAUSIBLE_CLOCK: i64 = 1 << 53;

/// The time of day.
pub trait Clock: Send + Sync {
    /// The current time; it may jump in either direction.
    fn now(&self) -> SystemTime;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// The clock as a revision: microseconds since 1970, or the smallest revision if the clock is not plausible.
pub(super) fn clock_revision(clock: &dyn Clock) -> Revision {
    let elapsed = clock.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_micros())
        .ok()
        .filter(|micros| *micros <= LAST_PLAUSIBLE_CLOCK)
        .and_then(Revision::new)
        .unwrap_or(Revision::MIN)
}

/// Consecutive revisions for exclusive use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The lowest revision.
    pub first: Revision,
    /// The highest revision.
    pub last: Revision,
}

impl Block {
    /// The block of `count` revisions (at least one) that follows `ceiling` and starts at `at_least` or later.
    ///
    /// # Errors
    /// [`ReserveError::Exhausted`] when the numbers are used up.
    pub fn above(ceiling: Option<Revision>, at_least: Revision, count: u32) -> Result<Self, ReserveError> {
        let next = match ceiling {
            Some(ceiling) => ceiling.checked_add(1).ok_or(ReserveError::Exhausted)?,
            None => Revision::MIN,
        };
        let first = next.max(at_least);
        let last = first.checked_add(count.saturating_sub(1)).ok_or(ReserveError::Exhausted)?;
        Ok(Self { first, last })
    }
}

/// A future of [`Reservations::reserve`].
pub type Reserving<'a> = Pin<Box<dyn Future<Output = Result<Block, ReserveError>> + Send + 'a>>;

/// A store of the highest issued revision that outlives the process.
pub trait Reservations: Send + Sync {
    /// Reserves `count` revisions at or above `at_least`, all above every earlier reservation of any server.
    ///
    /// The store must be durable when the future is ready.
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_>;

    /// The time that all servers with this store share; `None`, the default, for a store of one server.
    ///
    /// A shared store without a ceiling must start at the time of day.
    fn shared(&self) -> Option<&SharedTime> {
        None
    }
}

/// A store that does not outlive the process: the clock alone keeps a restart from going back.
#[derive(Debug, Default)]
pub(super) struct MemoryReservations {
    ceiling: Mutex<Option<Revision>>,
}

impl Reservations for MemoryReservations {
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_> {
        let mut ceiling = self.ceiling.lock();
        let block = Block::above(*ceiling, at_least, count);
        if let Ok(block) = &block {
            *ceiling = Some(block.last);
        }
        Box::pin(std::future::ready(block))
    }
}

/// Revisions could not be reserved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The state file could not be read or written.
    #[error("state file {} cannot be {action}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The state file has another format or is damaged.
    #[error(
        "state file {} is damaged ({problem}); restore it, or remove it to go on from the clock",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The error.
        problem: &'static str,
    },
    /// Another process holds the state file.
    #[error("state file {} is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// No positive 64-bit number is left.
    #[error("all revisions are used up")]
    Exhausted,
    /// A store outside of this crate failed.
    #[error("revisions could not be reserved")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ReserveError {
    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Io { .. } | Self::Store(_) | Self::InUse { .. } => true,
            Self::Corrupt { .. } | Self::Exhausted => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct At(SystemTime);

    impl Clock for At {
        fn now(&self) -> SystemTime {
            self.0
        }
    }

    #[test]
    fn an_implausible_clock_is_ignored() {
        let at = |time| clock_revision(&At(time)).get();
        assert_eq!(at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)), 1_700_000_000_000_000);
        assert_eq!(at(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), 1);
        assert_eq!(at(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40)), 1);
    }

    #[test]
    fn blocks_follow_the_ceiling_and_never_leave_the_positive_numbers() {
        let revision = |number| Revision::new(number).unwrap();
        let block = Block::above(Some(revision(10)), revision(5), 3).unwrap();
        assert_eq!((block.first.get(), block.last.get()), (11, 13));
        let block = Block::above(Some(revision(10)), revision(50), 1).unwrap();
        assert_eq!((block.first.get(), block.last.get()), (50, 50));
        for (ceiling, at_least) in [(i64::MAX, 1), (1, i64::MAX)] {
            let error = Block::above(Some(revision(ceiling)), revision(at_least), 2).unwrap_err();
            assert!(matches!(error, ReserveError::Exhausted), "{error}");
            assert!(!error.is_retryable());
        }
    }
}
