//! The check of a configuration by its changed documents.

use std::collections::{BTreeMap, BTreeSet};

use super::ValidateOptions;
use super::budget::BYTES_LIMIT;
use super::inspect::summary;
use crate::pingsix::{Config, DocumentKey, LazyDocument, Summary, canonical_prefix, listed_bytes};
use crate::shared_map::Change;

/// Checks a configuration whenever it has changed, at the cost of the changed documents.
///
/// The check has one answer: whether [`validate`](super::validate) would find nothing, apart from
/// [intended](super::Violation::is_intended) behaviour. It says no for configurations whose patterns may conflict and for
/// services with hosts, which only `validate` decides.
#[derive(Debug, Default)]
pub struct AcceptanceCheck {
    config: Config,
    totals: Totals,
    /// The number of references to each document.
    references: BTreeMap<DocumentKey, usize>,
    /// The documents that are missing although others refer to them.
    missing: BTreeSet<DocumentKey>,
    /// The number of each server name in certificates.
    server_names: BTreeMap<String, usize>,
}

/// Sums over all documents.
#[derive(Debug, Default)]
struct Totals {
    /// Bytes in the list response, without prefixes. Translation has a sum of its own: the check does not rely on it, and its
    /// configuration lacks the documents in quarantine.
    bytes: usize,
    matcher_entries: usize,
    /// Documents with violations of their own, or whose violations depend on others.
    suspects: usize,
    /// Server names that repeat others.
    repeated_names: usize,
}

impl AcceptanceCheck {
    /// Whether PingSIX accepts the configuration, and handles it as its text suggests.
    pub fn is_passed(&self, options: &ValidateOptions) -> bool {
        let Totals { bytes, matcher_entries, suspects, repeated_names } = self.totals;
        let bytes = bytes + self.config.len() * canonical_prefix(&options.prefix).len();
        suspects == 0
            && repeated_names == 0
            && self.missing.is_empty()
            && bytes < BYTES_LIMIT
            && bytes <= options.bytes_budget
            && matcher_entries <= options.entries_budget
    }

    /// Replaces the configuration.
    pub fn update(&mut self, config: &Config) {
        let before = std::mem::replace(&mut self.config, config.clone());
        let mut touched = BTreeSet::new();
        for change in config.documents().changes(before.documents()) {
            let (key, old, new) = match change {
                Change::Added(key, new) => (key, None, Some(new)),
                Change::Replaced(key, old, new) => (key, Some(old), Some(new)),
                Change::Removed(key, old) => (key, Some(old), None),
            };
            touched.insert(key.clone());
            if let Some(old) = old {
                self.subtract(key, old, &mut touched);
            }
            if let Some(new) = new {
                self.add(key, new, &mut touched);
            }
        }
        for key in touched {
            if self.references.contains_key(&key) && !self.config.contains(&key) {
                self.missing.insert(key);
            } else {
                self.missing.remove(&key);
            }
        }
    }

    fn add(&mut self, key: &DocumentKey, document: &LazyDocument, touched: &mut BTreeSet<DocumentKey>) {
        let summary = summary(key, document);
        let Summary { references, server_names, matcher_entries, .. } = &*summary;
        for reference in references {
            *self.references.entry(reference.clone()).or_default() += 1;
            touched.insert(reference.clone());
        }
        for name in server_names {
            let count = self.server_names.entry(name.clone()).or_default();
            self.totals.repeated_names += usize::from(*count > 0);
            *count += 1;
        }
        self.totals.bytes += listed_bytes(key, document);
        self.totals.matcher_entries += matcher_entries;
        self.totals.suspects += usize::from(summary.has_violations || summary.is_entangled);
    }

    fn subtract(&mut self, key: &DocumentKey, document: &LazyDocument, touched: &mut BTreeSet<DocumentKey>) {
        let summary = summary(key, document);
        let Summary { references, server_names, matcher_entries, .. } = &*summary;
        for reference in references {
            if drop_one(&mut self.references, reference) == 0 {
                touched.insert(reference.clone());
            }
        }
        for name in server_names {
            let left = drop_one(&mut self.server_names, name);
            self.totals.repeated_names -= usize::from(left > 0);
        }
        self.totals.bytes -= listed_bytes(key, document);
        self.totals.matcher_entries -= matcher_entries;
        self.totals.suspects -= usize::from(summary.has_violations || summary.is_entangled);
    }
}

/// Counts one less. Returns the rest.
fn drop_one<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) -> usize {
    let Some(count) = counts.get_mut(key) else { return 0 };
    *count = count.saturating_sub(1);
    let left = *count;
    if left == 0 {
        counts.remove(key);
    }
    left
}
