//! The counters of watches, for metrics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use pingsix_translate::Kind;

use crate::api_error::ApiErrorCategory;

/// The counters of watches since their start, by kind.
#[derive(Debug)]
pub struct WatchStats {
    kinds: BTreeMap<Kind, KindStats>,
    by_name: AtomicU64,
    wide: AtomicU64,
    versions: AtomicU64,
}

/// Counters of one kind, over all its watches.
#[derive(Debug, Default)]
struct KindStats {
    lists: AtomicU64,
    watches: AtomicU64,
    errors: BTreeMap<ApiErrorCategory, AtomicU64>,
}

impl Default for WatchStats {
    fn default() -> Self {
        let errors = || ApiErrorCategory::ALL.iter().map(|category| (*category, AtomicU64::new(0))).collect();
        let kinds =
            Kind::ALL.iter().map(|kind| (*kind, KindStats { errors: errors(), ..KindStats::default() }));
        Self {
            kinds: kinds.collect(),
            by_name: AtomicU64::new(0),
            wide: AtomicU64::new(0),
            versions: AtomicU64::new(0),
        }
    }
}

impl WatchStats {
    /// The number of lists of a kind: the first list, and one for each restart that cannot resume.
    pub(crate) fn lists(&self, kind: Kind) -> u64 {
        self.read(kind, |stats| &stats.lists)
    }

    /// The number of opened watches of a kind. The API server ends a watch after some minutes.
    pub(crate) fn watches(&self, kind: Kind) -> u64 {
        self.read(kind, |stats| &stats.watches)
    }

    /// The number of failures of a category.
    pub(crate) fn errors(&self, kind: Kind, category: ApiErrorCategory) -> u64 {
        let count = self.kinds.get(&kind).and_then(|stats| stats.errors.get(&category));
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// The number of objects watched by name now.
    pub fn by_name(&self) -> u64 {
        self.by_name.load(Ordering::Relaxed)
    }

    /// The number of namespaces with a wide watch now, because many of their objects are referenced. A watch of all
    /// namespaces counts as one.
    pub fn wide(&self) -> u64 {
        self.wide.load(Ordering::Relaxed)
    }

    /// The number of objects with a version in a wide watch, referenced or not.
    pub(crate) fn versions(&self) -> u64 {
        self.versions.load(Ordering::Relaxed)
    }

    pub(super) fn listing(&self, kind: Kind) {
        self.count(kind, |stats| Some(&stats.lists));
    }

    pub(super) fn opened(&self, kind: Kind) {
        self.count(kind, |stats| Some(&stats.watches));
    }

    pub(super) fn failed(&self, kind: Kind, category: ApiErrorCategory) {
        self.count(kind, |stats| stats.errors.get(&category));
    }

    pub(super) fn watching_referenced(&self, by_name: usize, wide: usize, versions: usize) {
        self.by_name.store(by_name as u64, Ordering::Relaxed);
        self.wide.store(wide as u64, Ordering::Relaxed);
        self.versions.store(versions as u64, Ordering::Relaxed);
    }

    fn read(&self, kind: Kind, counter: impl Fn(&KindStats) -> &AtomicU64) -> u64 {
        self.kinds.get(&kind).map_or(0, |stats| counter(stats).load(Ordering::Relaxed))
    }

    fn count(&self, kind: Kind, counter: impl Fn(&KindStats) -> Option<&AtomicU64>) {
        if let Some(counter) = self.kinds.get(&kind).and_then(counter) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}
