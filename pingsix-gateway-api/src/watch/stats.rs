//! The counters of watches, for metrics.

use pingsix_translate::Kind;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::api_error::ApiErrorCategory;

type Counters<const LABELS: usize> = Family<[(&'static str, &'static str); LABELS], Counter>;

/// The counters of watches since their start, by kind.
#[derive(Debug)]
pub struct WatchStats {
    lists: Counters<1>,
    watches: Counters<1>,
    errors: Counters<2>,
    by_name: Gauge,
    wide: Gauge,
    versions: Gauge,
}

impl Default for WatchStats {
    fn default() -> Self {
        let (lists, watches, errors) =
            (Counters::<1>::default(), Counters::<1>::default(), Counters::<2>::default());
        // Prometheus sees no increase in a series that begins at 1.
        for kind in Kind::ALL {
            drop(lists.get_or_create(&of(*kind)));
            drop(watches.get_or_create(&of(*kind)));
            for category in ApiErrorCategory::ALL {
                drop(errors.get_or_create(&of_category(*kind, *category)));
            }
        }
        Self {
            lists,
            watches,
            errors,
            by_name: Gauge::default(),
            wide: Gauge::default(),
            versions: Gauge::default(),
        }
    }
}

impl WatchStats {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Started lists: the first list of a watch, and one for each restart that cannot resume";
        registry.register("watch_lists", help, self.lists.clone());
        registry.register("watches", "Opened watches", self.watches.clone());
        registry.register("watch_errors", "Failures of lists and watches", self.errors.clone());
        registry.register("watches_by_name", "Secrets and ConfigMaps watched by name", self.by_name.clone());
        let help = "Watches of whole namespaces with many referenced objects";
        registry.register("watches_wide", help, self.wide.clone());
        let help = "Objects with a version in a watch of a namespace, referenced or not";
        registry.register("watches_wide_versions", help, self.versions.clone());
    }

    pub(crate) fn listing(&self, kind: Kind) {
        self.lists.get_or_create(&of(kind)).inc();
    }

    pub(crate) fn opened(&self, kind: Kind) {
        self.watches.get_or_create(&of(kind)).inc();
    }

    pub(crate) fn failed(&self, kind: Kind, category: ApiErrorCategory) {
        self.errors.get_or_create(&of_category(kind, category)).inc();
    }

    pub(crate) fn watching_referenced(&self, by_name: usize, wide: usize, versions: usize) {
        for (gauge, count) in [(&self.by_name, by_name), (&self.wide, wide), (&self.versions, versions)] {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}

/// For the tests against a cluster.
impl WatchStats {
    /// The number of objects watched by name.
    pub fn by_name(&self) -> i64 {
        self.by_name.get()
    }

    /// The number of wide watches.
    pub fn wide(&self) -> i64 {
        self.wide.get()
    }
}

#[cfg(test)]
impl WatchStats {
    pub(super) fn lists(&self, kind: Kind) -> u64 {
        self.lists.get_or_create(&of(kind)).get()
    }

    pub(super) fn watches(&self, kind: Kind) -> u64 {
        self.watches.get_or_create(&of(kind)).get()
    }

    pub(super) fn errors(&self, kind: Kind, category: ApiErrorCategory) -> u64 {
        self.errors.get_or_create(&of_category(kind, category)).get()
    }

    pub(super) fn versions(&self) -> i64 {
        self.versions.get()
    }
}

const fn of(kind: Kind) -> [(&'static str, &'static str); 1] {
    [("kind", kind.as_str())]
}

const fn of_category(kind: Kind, category: ApiErrorCategory) -> [(&'static str, &'static str); 2] {
    [("kind", kind.as_str()), ("category", category.as_str())]
}
