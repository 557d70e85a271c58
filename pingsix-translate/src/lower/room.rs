//! The room for the documents of a table while it is built.

use crate::model::Budget;

/// The rest of a budget while a table is built, by the lower bounds of documents. Conditions and wildcards multiply
/// rules, so a table that cannot fit is abandoned as early as possible.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: usize,
    matcher_entries: usize,
}

impl Room {
    /// The key of a Route, and `{"uri":"","upstream_id":"nowhere","priority":2}`.
    pub(crate) const ROUTE: usize = 64;
    /// `{"vars":[["arg_a","!=",""]],"weighted_upstreams":[{"upstream_id":"status-500","weight":1}]},`
    pub(crate) const SPLIT_RULE: usize = 90;

    pub(crate) fn of(budget: Budget) -> Self {
        Self { bytes: budget.bytes, matcher_entries: budget.matcher_entries }
    }

    pub(crate) fn unlimited() -> Self {
        Self { bytes: usize::MAX, matcher_entries: usize::MAX }
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
