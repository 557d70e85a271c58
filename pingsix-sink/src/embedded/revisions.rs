//! Where revisions come from, and why they never go back.
//!
//! A PingSIX that reads a lower header revision than it has seen drops what it reads and says nothing, so the numbers a
//! server hands out must lie above all that any server before it, or beside it, has handed out.
//! Two sources work together, and neither is trusted alone:
//!
//! 1. **Reservations.** Before a number is used it lies in a [`Block`] reserved from a [`Reservations`] store, which
//!    remembers the highest number it ever gave and has it on disk *before* it gives it. Let `r` be any number seen by a
//!    client; `r` lies in some block, so the store's ceiling was at least `r` before `r` was used. A server that starts
//!    takes its first number from a block above the ceiling, hence above `r`. A crash at any point loses the rest of a
//!    block, nothing else: the numbers have gaps, as etcd's may.
//! 2. **The clock.** The first block of a server that owns its store starts no lower than the microseconds since 1970. This covers a store that was lost
//!    or restored from an old copy, as long as the clock has not gone back further than the publications went ahead
//!    (one publication takes one number, and takes longer than the microsecond it stands for). Without a state file
//!    this source stands alone, and the server says so when it starts. Microseconds stay below 2^53 until the year
//!    2255, so tools that read JSON numbers as floats show them exactly.
//!
//! **Clients are no source.** The start of a watch neither raises the header nor reserves anything, since a client may
//! invent it. A watch that starts above the header is cancelled as one whose start was compacted, so its client lists
//! again. That list is answered above everything that this server, and the servers it shares a store with, have handed
//! out. PingSIX always lists before it watches, and starts its watch right after that list: raising the header for it
//! would come too late.
//!
//! The header revision may therefore be greater than that of every stored key; every later event is greater than every
//! header handed out, because both come from the one counter under the store's lock.
//!
//! **Several servers for the same scopes.** A store shared by them ([`Reservations::shared`]) must give each block above
//! all blocks given to anybody. A server then takes a fresh block for every list, and answers with a number from it:
//! above everything any server has handed out until then, whether as a header or as an event, since all of those lie in
//! blocks reserved earlier. Lists that wait share a reservation: all that came before it was asked for have numbers of it.
//! A server that starts hands out nothing before its first reservation, so it can start while the store is away.
//!
//! **While the store is away** lists are answered all the same, by [`SharedTime`]: a revision that grows by one in a
//! microsecond, of which every server has a reading. Nothing else could order servers that do not hear of each other.
//! A reading goes on by the monotonic clock of its machine, and never stands below what its server has reserved, nor below
//! the readings and reservations of others that it hears of. So readings agree up to how long such news takes, however
//! far apart the times of day are, and whoever sets them. Let `d` be the [lateness](SharedTime::lateness) that a server
//! reckons with. A list that gets no reservation within `2.5 d` is answered when that is over, with a number between `d` and
//! `1.5 d` above the reading of when it came. With readings that differ by less than `d`:
//!
//! - it is above what any server has handed out before it came: no reservation exceeds the reading of who made it by
//!   more than a block, and other lists without one were asked `2.5 d` before they were answered;
//! - it is below what any server hands out after it was answered: reservations start no lower than the reading of who
//!   asks for them, and all readings have passed it by then.
//!
//! News that take longer than `d` break this until they come, and not again: then `d` is what they took, at the server that
//! was behind as well as at the one that was ahead.
//!
//! The same holds where some servers reach the store and others do not, and when they do again. What publications and
//! watches need is had the same way. What remains, and may make a client miss changes until it lists again: the store is
//! away *and* readings disagree. They do for a server that has not heard of the others since it started, whether from
//! them or from the store; for one whose machine was suspended; and after hours on machines whose clocks drift. Numbers
//! may also be had twice when all servers that were there in an outage end in it, and those that follow have clocks
//! behind theirs. Even then, events of a server exceed the headers of that server.
//!
//! The numbers of two servers are apart, so each number says who has handed it out, and of the others it says nothing:
//! a change that one server took at 90 may come to another at 110, and a client that listed there at 100 has not seen
//! it. A watch goes on from the list it starts at; so it may start only at a number that this server has handed out
//! itself. Any other, also one from before a restart, is answered as etcd answers a start that was compacted, and the
//! client lists again, here or elsewhere, until it lists and watches on the same server. Where every request may go to
//! another of `n` servers, that takes `n` lists on average; where a connection stays with one, the first is enough.
//!
//! Servers that lag behind one another are each right as of the state they have read. A client that moves to one that
//! lags sees a state from before, under a higher number, until that server has caught up; it never sees a change that
//! it then loses.
//!
//! Servers *without* a shared store hand out the same numbers, which nothing tells apart. Let clients read from one of
//! them at a time.

mod file;
mod shared;
mod supply;

use std::path::PathBuf;
use std::pin::Pin;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::revision::Revision;

pub use file::FileReservations;
pub use shared::{LATENESS, LONGEST_LATENESS, SharedTime};
pub(super) use supply::Supply;

/// How many numbers a server that owns its store reserves at a time: a little more than a minute of the clock.
pub(super) const BLOCK: u32 = 1 << 26;

/// How many numbers are reserved at a time when the store is shared: four milliseconds of [`SharedTime`], which
/// reservations must not run ahead of.
pub(super) const SHARED_BLOCK: u32 = 1 << 12;

/// A clock beyond this many microseconds is broken, and is not believed.
const LAST_PLAUSIBLE_CLOCK: i64 = 1 << 53;

/// The time of day.
pub trait Clock: Send + Sync {
    /// Now; it may jump in either direction.
    fn now(&self) -> SystemTime;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

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

/// Consecutive revisions that nobody else will use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The lowest.
    pub first: Revision,
    /// The highest.
    pub last: Revision,
}

impl Block {
    /// The block of `count` revisions (at least one) that follows `ceiling` and starts no lower than `at_least`.
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

/// Remembers the highest revision ever given, beyond the life of the process.
pub trait Reservations: Send + Sync {
    /// Gives `count` revisions, none below `at_least`, all above every revision given before to anybody.
    ///
    /// The store must be durable when the future is ready.
    fn reserve(&self, at_least: Revision, count: u32) -> Reserving<'_>;

    /// The time that servers of the same scopes have in common, if they reserve from the same store; `None`, unless told
    /// otherwise, for a store that belongs to one server.
    ///
    /// The store then has the time of day in mind where it remembers nothing: revisions start no lower than that.
    fn shared(&self) -> Option<&SharedTime> {
        None
    }
}

/// Remembers nothing beyond the life of the process: the clock alone keeps a restart from going back.
#[derive(Debug, Default)]
pub struct Unsaved {
    ceiling: Mutex<Option<Revision>>,
}

impl Reservations for Unsaved {
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
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// The state file is not one of ours, or was damaged.
    #[error(
        "state file {} is damaged ({problem}); restore it, or remove it to go on from the clock",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
    /// Whether the same call may succeed later.
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
    fn an_implausible_clock_is_not_believed() {
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
