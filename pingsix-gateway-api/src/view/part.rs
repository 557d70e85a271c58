//! A part of a list, for lists that do not fit on a page.

/// The number of rows of a page by default.
pub(super) const DEFAULT_ROWS: usize = 50;

/// A part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The number of the page, from 1.
    pub(super) page: usize,
    /// The number of rows.
    pub(super) rows: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self { page: 1, rows: DEFAULT_ROWS }
    }
}

impl Part {
    /// The number of rows before the part.
    pub(super) const fn skipped(self) -> usize {
        (self.page - 1).saturating_mul(self.rows)
    }

    /// Whether the number of rows is the default.
    pub(super) const fn is_default_size(self) -> bool {
        self.rows == DEFAULT_ROWS
    }
}
