//! Sinks that PingSIX reads from this process.

use std::collections::BTreeMap;

use pingsix_sink::{EmbeddedEtcd, MemorySink, Revision, Scope};
use tokio::sync::watch;

/// The readers of a sink that this replica serves itself.
///
/// PingSIX reads from [`EmbeddedEtcd`]. Another [`Sink`](pingsix_sink::Sink) becomes a feed with [`open`](Self::open), as in
/// the example `embedded_controller`.
pub trait Feed: Send + Sync {
    /// The label of the feed in metrics.
    fn name(&self) -> &'static str {
        "custom"
    }

    /// The embedded server, for dumps and for certificates.
    fn embedded(&self) -> Option<&EmbeddedEtcd> {
        None
    }

    /// Called when the controller has read all objects. From now on, the feed answers reads of a scope after the first
    /// publication of that scope. A read that comes earlier has to wait, because an empty answer would be wrong.
    fn open(&self);

    /// The number of readers of a scope. With `None`, the default, readers are unknown, and each publication counts as
    /// delivered.
    fn readers_of(&self, _scope: &Scope) -> Option<usize> {
        None
    }

    /// The number of readers of each scope that has readers, for the other replicas. Default: none.
    fn readers(&self) -> BTreeMap<Scope, usize> {
        BTreeMap::new()
    }

    /// Changes with the result of [`readers_of`](Self::readers_of). Default: `None`, when readers are unknown.
    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Called when all readers of a scope have applied everything up to a revision, so that the next change need not wait for
    /// them. Default: nothing.
    fn confirm(&self, _scope: &Scope, _revision: Revision) {}

    /// Called with the share of one core, in percent, that each reader of a scope may spend on changes. Default: no limit.
    fn limit_cpu(&self, _scope: &Scope, _percent: u8) {}

    /// Whether this replica may have issued the revision. Another replica with the same documents issues others.
    fn issued(&self, _revision: Revision) -> bool {
        true
    }
}

impl Feed for EmbeddedEtcd {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn embedded(&self) -> Option<&EmbeddedEtcd> {
        Some(self)
    }

    fn open(&self) {
        Self::open(self);
    }

    fn readers_of(&self, scope: &Scope) -> Option<usize> {
        Some(Self::readers_of(self, scope))
    }

    fn readers(&self) -> BTreeMap<Scope, usize> {
        Self::readers(self)
    }

    fn readers_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(Self::readers_changed(self))
    }

    fn confirm(&self, scope: &Scope, revision: Revision) {
        Self::confirm(self, scope, revision);
    }

    fn limit_cpu(&self, scope: &Scope, percent: u8) {
        Self::limit_cpu(self, scope, percent);
    }

    fn issued(&self, revision: Revision) -> bool {
        self.has_issued(revision)
    }
}

impl Feed for MemorySink {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn open(&self) {}
}
