//! Revisions, which order publications.

use std::fmt;

/// A point in the history of a target: positive, and greater for every later change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(i64);

impl Revision {
    /// The smallest revision.
    pub const MIN: Self = Self(1);

    /// The revision with this number, unless it is zero or negative.
    pub fn new(number: i64) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// The number, always positive.
    pub fn get(self) -> i64 {
        self.0
    }

    /// The revision `count` higher, unless the numbers are used up.
    pub fn checked_add(self, count: u32) -> Option<Self> {
        self.0.checked_add(i64::from(count)).map(Self)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
