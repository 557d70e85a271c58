//! The room for the documents of a table while it is built.

use super::route_sizes::ROUTE_SIZES;
use crate::model::Budget;

/// The rest of a budget while a table is built, by the lower bounds of documents. Conditions and wildcards multiply
/// rules, so a table that cannot fit is abandoned as early as possible.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: usize,
    matcher_entries: usize,
}

impl Room {
    pub(crate) fn of(budget: Budget) -> Self {
        Self { bytes: budget.bytes, matcher_entries: budget.matcher_entries }
    }

    pub(crate) fn unlimited() -> Self {
        Self { bytes: usize::MAX, matcher_entries: usize::MAX }
    }

    /// Takes the bytes of a Route with this many conditional rows.
    pub(super) fn take_route(&mut self, conditional: usize) -> Option<()> {
        self.take_bytes(Self::of_route(conditional))
    }

    /// The bytes that a Route with this many conditional rows takes at least, without its patterns.
    pub(super) fn of_route(conditional: usize) -> usize {
        conditional.saturating_mul(ROUTE_SIZES.shortest_split_rule).saturating_add(ROUTE_SIZES.shortest_route)
    }

    /// Takes bytes; `None` when there are not as many.
    pub(crate) fn take_bytes(&mut self, bytes: usize) -> Option<()> {
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }

    /// Takes matcher entries; `None` when there are not as many.
    pub(crate) fn take_matcher_entries(&mut self, entries: usize) -> Option<()> {
        self.matcher_entries = self.matcher_entries.checked_sub(entries)?;
        Some(())
    }
}
