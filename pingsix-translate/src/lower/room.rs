//! The rest of a budget, which is handed out piece by piece.

use super::Size;
use super::route_sizes::ROUTE_SIZES;
use crate::model::Budget;

/// The rest of a budget. During admission, it is charged the upper bounds of documents ([`super::budget`]). While a table is
/// built, it is charged their lower bounds: conditions and wildcards multiply rules, so a table that cannot fit is
/// abandoned as early as possible.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    left: Size,
}

impl Room {
    pub(crate) const fn unlimited() -> Self {
        Self { left: Size { bytes: usize::MAX, matcher_entries: usize::MAX } }
    }

    pub(crate) const fn new(left: Size) -> Self {
        Self { left }
    }

    pub(crate) const fn of(budget: Budget) -> Self {
        Self { left: Size::of(budget) }
    }

    /// The rest.
    pub(super) const fn left(&self) -> Size {
        self.left
    }

    /// The used part of `whole`.
    pub(super) fn used_of(&self, whole: Size) -> Size {
        whole.with(self.left, usize::saturating_sub)
    }

    /// The minimum of both.
    pub(super) fn within(&self, other: &Self) -> Self {
        Self { left: self.left.with(other.left, usize::min) }
    }

    /// Takes bytes and matcher entries; `None` without room. The rest is then meaningless.
    pub(crate) fn take(&mut self, bytes: usize, matcher_entries: usize) -> Option<()> {
        self.left.bytes = self.left.bytes.checked_sub(bytes)?;
        self.left.matcher_entries = self.left.matcher_entries.checked_sub(matcher_entries)?;
        Some(())
    }

    /// Takes an amount.
    pub(super) fn take_size(&mut self, Size { bytes, matcher_entries }: Size) -> Option<()> {
        self.take(bytes, matcher_entries)
    }

    /// Takes the bytes of a Route with this many conditional rows.
    pub(super) fn take_route(&mut self, conditional: usize) -> Option<()> {
        self.take(Self::of_route(conditional), 0)
    }

    /// The bytes that a Route with this many conditional rows takes at least, without its patterns.
    pub(super) fn of_route(conditional: usize) -> usize {
        conditional.saturating_mul(ROUTE_SIZES.shortest_split_rule).saturating_add(ROUTE_SIZES.shortest_route)
    }
}
