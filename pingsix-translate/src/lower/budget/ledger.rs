//! The rest of a budget during admission.

use crate::lower::Size;
use crate::model::Budget;

/// An amount of bytes and matcher entries that is handed out piece by piece.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    left: Size,
}

impl Ledger {
    pub(super) const fn new(left: Size) -> Self {
        Self { left }
    }

    /// The rest.
    pub(super) const fn left(&self) -> Size {
        self.left
    }

    /// The used part of `whole`.
    pub(super) const fn used_of(&self, whole: Size) -> Size {
        Size {
            bytes: whole.bytes - self.left.bytes,
            matcher_entries: whole.matcher_entries - self.left.matcher_entries,
        }
    }

    /// The minimum of both.
    pub(super) fn within(&self, other: &Self) -> Self {
        let left = Size {
            bytes: self.left.bytes.min(other.left.bytes),
            matcher_entries: self.left.matcher_entries.min(other.left.matcher_entries),
        };
        Self { left }
    }

    /// Takes bytes and matcher entries; `None` without room. The ledger is then meaningless.
    pub(super) fn take(&mut self, bytes: usize, matcher_entries: usize) -> Option<()> {
        self.left.bytes = self.left.bytes.checked_sub(bytes)?;
        self.left.matcher_entries = self.left.matcher_entries.checked_sub(matcher_entries)?;
        Some(())
    }
}

/// The budget divided by `parts`.
pub(super) const fn divided(Budget { bytes, matcher_entries }: Budget, parts: usize) -> Size {
    Size { bytes: bytes / parts, matcher_entries: matcher_entries / parts }
}

/// The divisor of the budget for the part of guards.
pub(super) const GUARDS: usize = 16;

/// The room that there is for rules and certificates.
pub(super) fn room(budget: Budget) -> Size {
    let guards = divided(budget, GUARDS);
    Size {
        bytes: budget.bytes - guards.bytes,
        matcher_entries: budget.matcher_entries - guards.matcher_entries,
    }
}
