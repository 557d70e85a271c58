//! Output of lowering: the documents of data planes with their provenance.

use std::collections::BTreeMap;

use crate::model::{Budget, Provenance, StreamProvenance};
use crate::pingsix::{Config, DocumentKey};
use crate::shared_map::SharedMap;
use crate::stream::{StreamConfig, StreamKey};

/// The configuration of one data plane, and where each document comes from.
#[derive(Clone, Debug, Default)]
pub struct DataPlane {
    /// The documents.
    pub config: Config,
    /// One entry per document of `config`.
    pub provenance: SharedMap<DocumentKey, Provenance>,
    /// The used part of the budget.
    pub size: Size,
    /// The charged part of the budget without its guards, from 0 to 1: of bytes or of matcher entries, the larger one.
    ///
    /// Rules and certificates are charged upper bounds, so this is more than the part that `size` is of the budget, and
    /// a rule or certificate for which the rest does not suffice is refused. After incremental translations, it may
    /// differ by some hundredths from that of a full one.
    pub charged_ratio: f64,
}

/// The stream documents of a Gateway, and where each comes from.
#[derive(Clone, Debug, Default)]
pub struct StreamPlane {
    /// The documents.
    pub config: StreamConfig,
    /// One entry per document of `config`.
    pub provenance: BTreeMap<StreamKey, StreamProvenance>,
    /// The used part of the budget.
    pub size: Size,
}

/// The size of a data plane's configuration in the units of [`Budget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of the list response.
    pub bytes: usize,
    /// Entries in the matchers of PingSIX or of a stream proxy.
    pub matcher_entries: usize,
}

impl Size {
    pub(crate) const fn of(Budget { bytes, matcher_entries }: Budget) -> Self {
        Self { bytes, matcher_entries }
    }

    /// The amounts of two sizes, each by a function.
    pub(crate) fn with(self, other: Self, by: impl Fn(usize, usize) -> usize) -> Self {
        let matcher_entries = by(self.matcher_entries, other.matcher_entries);
        Self { bytes: by(self.bytes, other.bytes), matcher_entries }
    }

    /// One of some equal parts.
    pub(crate) const fn part(self, parts: usize) -> Self {
        Self { bytes: self.bytes / parts, matcher_entries: self.matcher_entries / parts }
    }

    /// The part of a budget that this is: of bytes or of matcher entries, the larger one. The part of an empty budget is 1.
    pub fn ratio_of(self, budget: Budget) -> f64 {
        part(self.bytes, budget.bytes).max(part(self.matcher_entries, budget.matcher_entries))
    }

    /// Whether a budget suffices.
    pub(crate) const fn fits(self, budget: Budget) -> bool {
        self.bytes <= budget.bytes && self.matcher_entries <= budget.matcher_entries
    }
}

#[expect(clippy::cast_precision_loss, reason = "no budget comes near 2^53")]
fn part(used: usize, whole: usize) -> f64 {
    if whole == 0 { 1.0 } else { used as f64 / whole as f64 }
}
